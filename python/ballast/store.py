"""The store: commits of models, by tenant.

Every call opens what it needs and closes it; results are plain data. A spec is a
full id, a ref, a unique prefix of an id (4 hex digits or more), then any of ``~N``,
``^``, ``@{N}``; a :class:`Commit` may stand for its id.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import numbers
import os
from collections.abc import Iterable, Iterator, Mapping
from ctypes import byref
from typing import Any, cast

from . import _html, errors
from . import _native as native
from ._native import lib
from ._progress import bar, working
from .commit import Commit, Rows, TensorInfo
from .comparing import Diff, compare
from .results import (
    Checked,
    Collected,
    Copied,
    Grant,
    Move,
    Problem,
    Proof,
    Revoked,
    Stats,
    Transferred,
    Written,
    rfc3339,
)
from .tensors import Checkout, Model, dtype_number

__all__ = ["Store"]

Path = str | os.PathLike[str]
Spec = str | Commit
# A path, a spec, arrays by name, or something that was opened.
Source = str | os.PathLike[str] | Commit | Mapping[str, Any] | Model

_PIECE = 4 << 20
_LISTED = (native.BAL_FORM_WHOLE, native.BAL_FORM_DIFFERENCE)


class _Scope:
    """A tenant, opened for one call in one thread."""

    def __init__(self, tenant: int, store: Store) -> None:
        self.tenant = tenant
        self.store = store

    @property
    def name(self) -> str:
        return native.decode(lib.bal_tenant_name(self.tenant))

    def resolve(self, spec: Spec) -> Any:
        if isinstance(spec, Commit):
            return native.parse_id(spec.id)
        out = native.bal_id()
        native.call(lib.bal_resolve, byref(out), self.tenant, native.encode(spec))
        return out

    @contextlib.contextmanager
    def opened(self, commit: Any) -> Iterator[int]:
        pointer = native.create(lib.bal_commit_open, self.tenant, byref(commit))
        try:
            yield pointer
        finally:
            lib.bal_commit_free(pointer)

    def commit(self, commit: Any, more: Mapping[str, Any] | None = None) -> Commit:
        with self.opened(commit) as pointer:
            return _commit_of(pointer, more)

    def model(self, commit: Any) -> Model:
        pointer = native.create(lib.bal_model_from_commit, self.tenant, byref(commit))
        return Model(pointer, self.store.box)


class _Named:
    """A model that was named, and by what: a path, a commit, or neither."""

    def __init__(
        self, model: Model, text: str, commit: Any = None, path: str | None = None
    ) -> None:
        self.model = model
        self.text = text
        self.commit = commit
        self.path = path


def _commit_of(pointer: int, more: Mapping[str, Any] | None = None) -> Commit:
    return Commit(native.decode(lib.bal_commit_json(pointer)), more)


def _is_path(text: str) -> bool:
    return "/" in text or os.path.exists(text)


def _number(value: Any) -> str:
    """A parameter's value as text: also gradients and {filter: value}."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        pairs = [(str(key), _number(item)) for key, item in value.items()]
        return ";".join(f"{key}:{text}" if key else text for key, text in pairs)
    if isinstance(value, list | tuple):
        return ",".join(_number(item) for item in value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    raise errors.Usage(f"a parameter is no {type(value).__name__}")


def _input_text(given: Any, tenant: str) -> str:
    """spec | (spec, weight) | (spec, weight, {parameter: value}) as one text."""
    if isinstance(given, str):
        return given
    spec, *rest = (given,) if isinstance(given, Commit) else tuple(given)
    if isinstance(spec, Commit):
        own = spec.tenant == tenant
        text = spec.id if own else f"{spec.tenant}:{spec.id}"
    else:
        text = str(spec)
    own_values: dict[str, Any] = {}
    for item in rest:
        if isinstance(item, Mapping) and item is rest[-1]:
            own_values.update(item)
        elif item is not None:
            text += f"@{_number(item)}"
    return text + "".join(f",{key}={_number(v)}" for key, v in own_values.items())


def _metadata(value: Mapping[str, Any] | str | None) -> bytes | None:
    if value is None or isinstance(value, str):
        return native.encode(value)
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.Usage(f"metadata: {error}") from None
    return native.encode(text)


class Store(native.Handle):
    """A store, opened; made if it is not there.

    ``root`` is its folder. ``backend`` (a URL of blocks) and ``metadata`` (the URL
    of its database, "postgresql://…") are what the store records if they are not
    given; ``block_size`` (bytes) and ``compression`` ("auto", "none", "fast",
    "best") are settings of a new one, as is ``tenant``, whose name holds where a
    call is given None for a tenant (of a store that is there, ``config`` tells and
    changes compression). ``jobs`` is the number of threads (default:
    the usable cores), ``wait`` the seconds to wait for a lock (default 30).
    ``create=False``: NotFound if there is none. ``cache=False``: resolved views
    are neither kept nor taken from the cache. ``local_cache`` is a folder of this
    machine for copies of blocks that are read from afar, ``local_cache_size`` the
    bytes of them at most (default 10 GiB).

    Raises Conflict if the store has blocks of another size, Unsupported if its
    format is newer.

    Threads may share a store and all its methods; results belong to who got them,
    and a :class:`Checkout` may be read by many threads. A process that was forked
    must open its own: using the parent's raises RuntimeError. After ``close`` (or
    ``with``) methods raise ValueError; a checkout that is open can still be read,
    and the store is let go with the last.

    Methods that take their time have ``progress``: True for a tqdm bar, or a
    function of (done, total), in bytes, total 0 where it is not known, called in
    the calling thread; if it returns False, Cancelled is raised, if it raises,
    that. KeyboardInterrupt stops the work and leaves the store as it was.
    """

    def __init__(
        self,
        root: Path,
        *,
        tenant: str | None = None,
        backend: str | None = None,
        metadata: str | None = None,
        block_size: int | None = None,
        compression: str | None = None,
        jobs: int | None = None,
        create: bool = True,
        wait: float | None = None,
        cache: bool = True,
        local_cache: Path | None = None,
        local_cache_size: int | None = None,
    ) -> None:
        size = native.whole("block_size", block_size or 0, 2**64)
        if wait is not None and not wait >= 0:
            raise errors.Usage(f"wait: {wait} is no number of seconds")
        threads = native.whole("jobs", jobs or 0, 2**32)
        work = native.create(lib.bal_work_new, threads)
        flags = native.BAL_OPEN_CREATE if create else 0
        options = native.bal_store_options(
            root=native.path_bytes(root),
            backend=native.encode(backend),
            db=native.encode(metadata),
            tenant=native.encode(tenant),
            block_size=size,
            compression=native.encode(compression),
            wait=0 if wait is None else max(wait, 1e-6),  # 0: the default
            flags=flags | (0 if cache else native.BAL_OPEN_NO_CACHE),
            work=work,
            cache=None if local_cache is None else native.path_bytes(local_cache),
            cache_size=native.whole("local_cache_size", local_cache_size or 0, 2**64),
        )
        try:
            with native.Operation():
                pointer = native.create(lib.bal_store_open, byref(options))
        except BaseException:
            lib.bal_work_free(work)
            raise
        lib.bal_work_watch(work, native.WATCH, None)

        def free() -> None:
            lib.bal_store_free(pointer)
            lib.bal_work_free(work)

        self._pointer = pointer
        self._work = work
        self._root = os.fsdecode(lib.bal_store_root(pointer))
        self._tenant = tenant
        self._own("store", free)
        recorded = self.config("block_size")
        if block_size and recorded != str(block_size):
            self.close()
            raise errors.Conflict(
                f"'{self._root}' has blocks of {recorded} bytes, not {block_size}"
            )

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def root(self) -> str:
        """The store's folder."""
        return self._root

    @property
    def jobs(self) -> int:
        """Threads that work in it."""
        with self._used():
            return int(lib.bal_work_jobs(self._work))

    @property
    def box(self) -> native.Box:
        """What keeps the store open, for what is made of it."""
        return self._box

    @property
    def pointer(self) -> int:
        """The bal_store, for C. ValueError: closed."""
        if self.closed:
            raise ValueError("the store is closed")
        return self._pointer

    @property
    def work(self) -> int:
        """The store's bal_work, for C. ValueError: closed."""
        if self.closed:
            raise ValueError("the store is closed")
        return self._work

    def __repr__(self) -> str:
        word = " closed" if self.closed else ""
        return f"<ballast.Store {self._root!r}{word}>"

    def _repr_html_(self) -> str:
        if self.closed:
            word = _html.badge("plain", "closed")
            return _html.block(f"Store {word}", {"root": self._root})
        members: dict[str, Any] = {"root": self._root}
        try:
            members["tenants"] = self.tenants()
            members.update(self.stats().to_dict())
        except (errors.Error, RuntimeError) as error:
            members["error"] = str(error)
        return _html.block("Store", members)

    @contextlib.contextmanager
    def scope(self, tenant: str | None) -> Iterator[_Scope]:
        """A bal_tenant as ``.tenant``, for C, while the ``with`` lasts."""
        with self._used():
            pointer = native.create(
                lib.bal_tenant_open,
                self._pointer,
                native.encode(self._tenant if tenant is None else tenant),
            )
            try:
                yield _Scope(pointer, self)
            finally:
                lib.bal_tenant_free(pointer)

    # ---- recording ---------------------------------------------------------

    def commit(
        self,
        tenant: str | None,
        tensors: Path | Mapping[str, Any] | Model,
        *,
        message: str,
        ref: str = "main",
        base: Source | None = None,
        config: Any = None,
        files: Mapping[str, Any] | None = None,
        base_model: str | None = None,
        metadata: Mapping[str, Any] | str | None = None,
        parent: Spec | None = None,
        author: str | None = None,
        allow_empty: bool = False,
        progress: Any = None,
    ) -> Commit:
        """Record a model as it is; returns its :class:`Commit`.

        ``tensors`` is a mapping of names to arrays (see :mod:`ballast.tensors`),
        or the path of an adapter's folder, a folder of safetensors, one
        safetensors file, or a ``.wdelta``, which is taken as the model that it
        makes of ``base``. Else ``base`` (a path, spec, commit or arrays) is what
        the model was made of: its name is the ``base_model`` unless one is told,
        and a commit is what blocks are stored by their distance from
        (``anchor``). Arrays are read where they lie and must not change
        meanwhile. With ``config`` (a mapping, PEFT's config object, or JSON) they
        are an adapter and it is its ``adapter_config.json``; ``files`` are more
        side files by name, bytes, text, or paths. ``metadata`` is an object of
        your own, covered by the id. ``parent``: the commit that the ref must be
        at. The same content and message as the ref's head make no commit
        (``nothing_changed``) unless ``allow_empty``.

        Raises Usage, Corrupt, Conflict (the ref moved), IOFailure.
        """
        with self.scope(tenant) as scope, contextlib.ExitStack() as stack:
            under = None if base is None else self._named(scope, base, stack)
            if isinstance(tensors, Model):
                stack.enter_context(tensors.used())
                model = tensors
            elif isinstance(tensors, Mapping):
                model = stack.enter_context(
                    Model.from_arrays(
                        tensors,
                        config=config,
                        files=files,
                        base_model=base_model,
                    )
                )
                config = files = None
            elif not isinstance(tensors, str | bytes | os.PathLike):
                kind = type(tensors).__name__
                raise errors.Usage(f"arrays by name or a path, not a {kind}")
            elif native.path_bytes(tensors).endswith(b".wdelta"):
                model = self._from_wdelta(tensors, under, stack)
            else:
                model = stack.enter_context(Model.from_path(tensors))
            if config is not None or files is not None:
                raise errors.Usage("config and files: a path has its own")
            if under is not None and not base_model:
                # A delta knows its base by itself.
                if model.facts.kind != native.BAL_KIND_DELTA:
                    base_model = native.maybe(under.model.facts.name)
            draft = self._draft(scope, message, ref, base_model, metadata, author)
            if parent is not None:
                draft.parent = ctypes.pointer(scope.resolve(parent))
            if under is not None and under.commit is not None:
                draft.anchor = ctypes.pointer(under.commit)
            if allow_empty:
                draft.flags = native.BAL_DRAFT_ALLOW_EMPTY
            return self._record(
                scope,
                model,
                draft,
                ("tensors", "bytes", "stored_bytes", "new_blocks", "reused_blocks"),
                progress,
            )

    def delta(
        self,
        tenant: str | None,
        model: Source,
        *,
        base: Source,
        message: str,
        ref: str = "main",
        base_model: str | None = None,
        metadata: Mapping[str, Any] | str | None = None,
        parent: Spec | None = None,
        author: str | None = None,
        progress: Any = None,
    ) -> Commit:
        """Record a fine-tune as its exact difference to a base.

        ``model`` and ``base`` are paths, specs (what exists as a file or has a '/'
        is a path), commits, or mappings of arrays. :meth:`apply` gives the model
        back bit for bit, which is proved while the difference is taken.
        """
        with self.scope(tenant) as scope, contextlib.ExitStack() as stack:
            tuned = self._named(scope, model, stack)
            under = self._named(scope, base, stack)
            draft = self._draft(scope, message, ref, base_model, metadata, author)
            if parent is not None:
                draft.parent = ctypes.pointer(scope.resolve(parent))
            if under.commit is not None:
                draft.anchor = ctypes.pointer(under.commit)
            with working(progress):
                change = stack.enter_context(
                    self._made(
                        lib.bal_model_minus, tuned.model, under.model, self._work
                    )
                )
            counted = ("changed", "unchanged", "added", "removed", "reshaped")
            names = (*counted, "bytes", "stored_bytes")
            return self._record(scope, change, draft, names, progress)

    def merge(
        self,
        tenant: str | None,
        method: str = "linear",
        inputs: Iterable[Any] = (),
        *,
        message: str,
        ref: str = "main",
        base: Any = None,
        space: str | None = None,
        strict: bool = False,
        dtype: str | None = None,
        seed: int | None = None,
        arithmetic: str | None = None,
        rank: int | None = None,
        energy: float | None = None,
        base_model: str | None = None,
        metadata: Mapping[str, Any] | str | None = None,
        parent: Spec | None = None,
        author: str | None = None,
        progress: Any = None,
        **parameters: Any,
    ) -> Commit:
        """Record a merge as a view; nothing is computed until it is read.

        An input is a spec ("support", "tenant:spec@0.6,density=0.3"), (spec,
        weight), or (spec, weight, {parameter: value}). ``parameters`` are the
        method's own (``ballast methods NAME``; a word of Python takes a trailing
        underscore, ``lambda_=0.5``): numbers, booleans, names, a list for a
        gradient over the layers, a mapping {filter: value} for some tensors only.

        Raises Usage (a parameter that the method does not have, kinds that do not
        mix), NotFound, Denied (an input of another tenant without a grant).
        """
        if isinstance(inputs, str | Commit):
            inputs = [inputs]
        common = {
            "space": space,
            "strict": True if strict else None,
            "dtype": dtype,
            "seed": seed,
            "arithmetic": arithmetic,
            "rank": rank,
            "energy": energy,
        }
        own = {key.rstrip("_"): value for key, value in parameters.items()}
        with self.scope(tenant) as scope:
            try:
                recipe = native.create(lib.bal_recipe_new, native.encode(method))
            except errors.NotFound as error:
                raise errors.Usage(str(error), hint=error.hint) from None
            try:
                for key, value in {**common, **own}.items():
                    if value is not None:
                        text = native.encode(_number(value))
                        native.call(
                            lib.bal_recipe_set, recipe, native.encode(key), text
                        )
                for given in inputs:
                    text = native.encode(_input_text(given, scope.name))
                    native.call(lib.bal_recipe_input, recipe, scope.tenant, text)
                if base is not None:
                    text = native.encode(_input_text(base, scope.name))
                    native.call(lib.bal_recipe_base, recipe, scope.tenant, text)
                draft = self._draft(scope, message, ref, base_model, metadata, author)
                if parent is not None:
                    draft.parent = ctypes.pointer(scope.resolve(parent))
                report = native.bal_commit_report()
                with working(progress):
                    made = native.create(
                        lib.bal_commit_view,
                        scope.tenant,
                        recipe,
                        byref(draft),
                        byref(report),
                    )
            finally:
                lib.bal_recipe_free(recipe)
            return self._made_commit(made, draft, report, ())

    def _draft(
        self,
        scope: _Scope,
        message: str,
        ref: str,
        base_model: str | None,
        metadata: Mapping[str, Any] | str | None,
        author: str | None,
    ) -> Any:
        return native.bal_draft(
            ref=native.encode(ref),
            message=native.encode(message),
            author=native.encode(author),
            base_model=native.encode(base_model),
            metadata=_metadata(metadata),
        )

    def _record(
        self,
        scope: _Scope,
        model: Model,
        draft: Any,
        counted: tuple[str, ...],
        progress: Any,
    ) -> Commit:
        report = native.bal_commit_report()
        with working(progress):
            made = native.create(
                lib.bal_commit_model,
                scope.tenant,
                model.pointer,
                byref(draft),
                byref(report),
            )
        return self._made_commit(made, draft, report, counted)

    def _made_commit(
        self, pointer: int, draft: Any, report: Any, counted: tuple[str, ...]
    ) -> Commit:
        more: dict[str, Any] = {"ref": native.decode(draft.ref)}
        more.update((name, getattr(report, name)) for name in counted)
        if report.anchored:
            more["anchor"] = native.hex_id(report.anchor)
        if report.lossy:
            more["residual"] = {
                "total": report.residual.total,
                "worst": report.residual.worst,
                "module": native.decode(report.residual.module),
            }
        try:
            commit = _commit_of(pointer, more)
        finally:
            lib.bal_commit_free(pointer)
        commit.nothing_changed = report.nothing_changed
        return commit

    def _from_wdelta(
        self, path: Path, base: _Named | None, stack: contextlib.ExitStack
    ) -> Model:
        """What a .wdelta makes of its base, once it is known to be of that."""
        if base is None:
            raise errors.Usage(f"'{os.fspath(path)}' needs its base", hint="base=")
        file = native.create(lib.bal_wdelta_open, native.path_bytes(path))
        stack.callback(lib.bal_wdelta_free, file)
        files = (ctypes.c_void_p * 1)(file)
        with native.Operation():
            native.call(
                lib.bal_wdelta_verify, files, 1, base.model.pointer, self._work, None
            )
        pointer = native.create(
            lib.bal_model_from_wdelta, base.model.pointer, files, 1
        )
        return stack.enter_context(Model(pointer, base.model.box))

    def _made(self, function: Any, first: Model, second: Model, *more: Any) -> Model:
        pointer = native.create(function, first.pointer, second.pointer, *more)
        return Model(pointer, first.box, second.box)

    def _named(
        self, scope: _Scope, source: Source, stack: contextlib.ExitStack
    ) -> _Named:
        """What source is, as `ballast delta` reads its arguments."""
        if isinstance(source, Model):
            stack.enter_context(source.used())
            return _Named(source, "model")
        if isinstance(source, Checkout):
            stack.enter_context(source.model.used())
            return _Named(source.model, source.commit.id, None)
        if isinstance(source, Commit):
            commit = native.parse_id(source.id)
            model = stack.enter_context(scope.model(commit))
            return _Named(model, source.id, commit)
        if isinstance(source, Mapping):
            return _Named(stack.enter_context(Model.from_arrays(source)), "arrays")
        if not isinstance(source, str) or _is_path(source):
            path = os.fspath(source)
            model = stack.enter_context(Model.from_path(path))
            return _Named(model, path, path=path)
        commit = scope.resolve(source)
        return _Named(stack.enter_context(scope.model(commit)), source, commit)

    # ---- reading -----------------------------------------------------------

    def checkout(
        self, tenant: str | None, spec: Spec = "main", *, torch: bool = False
    ) -> Checkout:
        """What a commit holds, as a mapping name -> array that is read lazily.

        With ``torch`` its arrays are torch tensors. ``.write(out)`` makes a folder
        of it, ``.load_into(module)`` fills a live module tensor by tensor. Of a
        delta the differences themselves (:meth:`apply` makes a model of it).

        Raises NotFound; Unsupported: a view that lost an input.
        """
        with self.scope(tenant) as scope:
            commit = scope.resolve(spec)
            name = scope.name
            with scope.opened(commit) as pointer:
                what = _commit_of(pointer)
                told = lib.bal_commit_provenance(pointer)
            with native.Operation():
                model = scope.model(commit)

        def write(model: Model, out: Path, force: bool, progress: Any) -> Written:
            with self.scope(name) as scope, model.used():
                if not force and self._holds(model, out, what.id):
                    tensors, size = _count(model)
                    return Written(os.fspath(out), what.id, tensors, size, True)
                return self._write(scope, model, commit, told, out, force, progress)

        return Checkout(model, what, write, torch, self._work)

    def apply(
        self,
        tenant: str | None,
        spec: Spec,
        *,
        base: Source,
        out: Path,
        dtype: str | None = None,
        force: bool = False,
        verify: bool = False,
        progress: Any = None,
    ) -> Written:
        """Write base plus commit as a folder that transformers loads.

        Of a delta the model it was taken of, bit for bit: every tensor of the base
        is compared with what was recorded (Corrupt names the first that differs;
        ``force`` goes on, ``exact`` is False then). Adapters are folded in, views
        resolved. ``dtype`` ("BF16", "F16", "F32", "F64") rounds float tensors.
        Conflict: ``out`` is there and not empty (``force`` replaces it).
        ``verify`` reads back what was written: Corrupt names the first tensor or
        file that is not what it should be.
        """
        with self.scope(tenant) as scope, contextlib.ExitStack() as stack:
            commit = scope.resolve(spec)
            with scope.opened(commit) as pointer:
                kind = _commit_of(pointer).kind
                told = lib.bal_commit_provenance(pointer)
            change = stack.enter_context(scope.model(commit))
            under = self._named(scope, base, stack)
            exact = kind == "delta" and dtype is None
            with working(progress):
                arguments = (lib.bal_model_plus, under.model, change)
                try:
                    whole = self._made(*arguments, 0, self._work)
                except errors.Corrupt:
                    adapter = change.facts.kind == native.BAL_KIND_ADAPTER
                    if not force or adapter:
                        raise
                    exact = False
                    flags = native.BAL_PLUS_ANY_BASE
                    whole = self._made(*arguments, flags, self._work)
            stack.enter_context(whole)
            if dtype is not None:
                cast_to = dtype_number(dtype)
                whole = stack.enter_context(
                    Model(
                        native.create(lib.bal_model_cast, whole.pointer, cast_to),
                        whole.box,
                    )
                )
            written = self._write(
                scope,
                whole,
                commit,
                told,
                out,
                force,
                progress,
                sources=(change, under.model),
                avoid=[] if under.path is None else [under.path],
                exact=exact,
                also=under.commit,
            )
            wrong = self._wrong(whole, out) if verify else None
        if wrong is not None:
            raise errors.Corrupt(f"'{wrong}' in '{written.out}' is not what it was")
        return written

    def _wrong(self, want: Model, out: Path) -> str | None:
        """What differs first in a folder that was written; None: nothing."""
        with native.Operation(), Model.from_path(out) as there:
            return _first_difference(want, there)

    def _write(
        self,
        scope: _Scope,
        model: Model,
        commit: Any,
        provenance: bytes,
        out: Path,
        force: bool,
        progress: Any,
        *,
        sources: tuple[Model, ...] = (),
        avoid: Iterable[str] = (),
        exact: bool = True,
        also: Any = None,
    ) -> Written:
        path = native.path_bytes(out)
        shunned = native.texts([native.path_bytes(p) for p in (self._root, *avoid)])
        pointers = (ctypes.c_void_p * max(len(sources), 1))(
            *(source.pointer for source in sources)
        )
        options = native.bal_write_options(
            provenance=provenance,
            avoid=shunned,
            avoid_count=len(shunned),
            sources=ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p)),
            source_count=len(sources),
            flags=native.BAL_WRITE_FORCE if force else 0,
        )
        written = native.bal_written()
        with working(progress):
            native.call(
                lib.bal_model_write,
                model.pointer,
                path,
                byref(options),
                byref(written),
                self._work,
            )
        for of in (commit, also):
            if of is not None:
                native.call(lib.bal_exported, scope.tenant, byref(of), path)
        report = native.maybe(model.facts.report)
        return Written(
            os.fspath(out),
            native.hex_id(commit),
            written.tensors,
            written.bytes,
            exact,
            json.loads(report) if report else {},
        )

    def _holds(self, model: Model, out: Path, commit: str) -> bool:
        """Is the folder that commit already, byte for byte?"""
        try:
            with open(os.path.join(out, "ballast.json"), "rb") as stream:
                if json.load(stream).get("commit") != commit:
                    return False
            with Model.from_path(out) as there:
                return _first_difference(model, there) is None
        except (OSError, ValueError, AttributeError, errors.Error):
            return False

    def show(self, tenant: str | None, spec: Spec = "main") -> Commit:
        """One commit, with ``tensors`` a list of :class:`TensorInfo`."""
        with self.scope(tenant) as scope:
            commit = scope.resolve(spec)
            with native.Operation(), scope.model(commit) as model:
                rows = [
                    TensorInfo(
                        native.decode(entry.name),
                        native.decode(lib.bal_dtype_name(entry.dtype)),
                        tuple(entry.shape[: entry.rank]),
                        entry.size,
                    )
                    for _, entry in model.entries()
                    if entry.part == native.BAL_PART_TENSOR and entry.form in _LISTED
                ]
            columns = ("name", "dtype", "shape", "bytes")
            return scope.commit(commit, {"tensors": Rows(rows, columns)})

    def resolve(self, tenant: str | None, spec: Spec = "main") -> str:
        """The full id of a spec. NotFound; Usage: an ambiguous prefix."""
        with self.scope(tenant) as scope:
            return native.hex_id(scope.resolve(spec))

    # ---- history -----------------------------------------------------------

    def log(
        self, tenant: str | None, spec: Spec = "main", *, limit: int = 0
    ) -> list[Commit]:
        """A commit and its parents, newest first; ``limit`` 0: all."""
        with self.scope(tenant) as scope:
            commit = scope.resolve(spec)
            rows = native.gather(
                native.bal_commit_fn,
                _commit_of,
                lib.bal_log,
                scope.tenant,
                byref(commit),
                native.whole("limit", limit, 2**63),
            )
        return Rows(rows, ("id", "kind", "message", "author", "created_at"))

    def reflog(self, tenant: str | None, ref: str | None = None) -> list[Move]:
        """How a ref (None: each) moved, newest first."""

        def row(pointer: Any) -> Move:
            move = pointer.contents
            return Move(
                native.decode(move.ref),
                move.n,
                native.decode(move.op),
                native.hex_id(move.old) if move.old else None,
                native.hex_id(move.now) if move.now else None,
                rfc3339(move.at),
                native.decode(move.message),
            )

        with self.scope(tenant) as scope:
            rows = native.gather(
                native.bal_move_fn,
                row,
                lib.bal_reflog,
                scope.tenant,
                native.encode(ref),
            )
        return Rows(rows, ("ref", "n", "op", "old", "new", "at", "message"))

    def refs(self, tenant: str | None) -> dict[str, str]:
        """Each ref and the id of its commit."""

        def row(name: bytes, commit: Any) -> tuple[str, str]:
            return native.decode(name), native.hex_id(commit)

        with self.scope(tenant) as scope:
            return dict(
                native.gather(native.bal_ref_fn, row, lib.bal_ref_each, scope.tenant)
            )

    def reset(
        self,
        tenant: str | None,
        ref: str,
        spec: Spec,
        *,
        expect: Spec | None = None,
        message: str | None = None,
    ) -> Commit:
        """Move a ref, or make it; ``expect``: Conflict unless it is there."""
        with self.scope(tenant) as scope:
            commit = scope.resolve(spec)
            was = None if expect is None else byref(scope.resolve(expect))
            native.call(
                lib.bal_ref_reset,
                scope.tenant,
                native.encode(ref),
                byref(commit),
                was,
                native.encode(message),
            )
            return scope.commit(commit, {"ref": ref})

    # ---- comparing ---------------------------------------------------------

    def diff(
        self,
        tenant: str | None,
        a: Source,
        b: Source,
        *,
        against_base: Source | None = None,
        probe_set: str | None = None,
        threshold: float = 0.01,
        probes: bool = False,
        progress: Any = None,
    ) -> Diff:
        """What changed from a to b, in weights and in what they answer.

        ``a`` and ``b`` are what :meth:`delta` takes. With ``against_base`` those
        that are deltas or adapters are put onto this model first, so that the
        change is that of the weights. Two commits with answers to the same probes
        are compared by these, too; ``probe_set`` names the set by a prefix of its
        id, ``probes`` also gives each probe before and after. ``threshold``: the
        relative change above which some probe should have moved.

        Raises Usage (a delta and a whole model without a base; a probe set where
        not both are commits), NotFound, Corrupt (a delta of another base).
        """
        with self.scope(tenant) as scope, contextlib.ExitStack() as stack:
            one = self._named(scope, a, stack)
            other = self._named(scope, b, stack)
            if against_base is not None:
                under = self._named(scope, against_base, stack)
                one = self._put_on(one, under, stack)
                other = self._put_on(other, under, stack)
            with contextlib.ExitStack() as bars:
                if progress is True:
                    progress = bar(bars)
                return compare(
                    one,
                    other,
                    work=self._work,
                    tenant=scope.tenant,
                    probe_set=probe_set,
                    threshold=threshold,
                    probes=probes,
                    progress=progress or None,
                )

    def _put_on(
        self, change: _Named, base: _Named, stack: contextlib.ExitStack
    ) -> _Named:
        """What a delta or an adapter makes of a base; others are as they are."""
        changes = (native.BAL_KIND_DELTA, native.BAL_KIND_ADAPTER)
        if change.model.facts.kind not in changes:
            return change
        with native.Operation():
            whole = self._made(
                lib.bal_model_plus, base.model, change.model, 0, self._work
            )
        stack.enter_context(whole)
        return _Named(whole, change.text, change.commit, change.path)

    # ---- between stores ----------------------------------------------------

    def push(
        self,
        tenant: str | None,
        to: Path | Store,
        *specs: Spec,
        force: bool = False,
        progress: Any = None,
    ) -> Transferred:
        """Put commits into another store, as far as it lacks them.

        ``to`` is made if it is the path of no store. What specs name goes there with
        its history and the inputs of its views; ids stay. A spec that is a ref moves
        the ref of that name there last: Conflict unless it leads on from where it is,
        or ``force``. Fingerprints, grants and proofs are not sent.
        """
        with _other(to, self) as other:
            return _transfer(self, other, tenant, specs, b"push", force, progress)

    def pull(
        self,
        tenant: str | None,
        origin: Path | Store,
        *specs: Spec,
        force: bool = False,
        progress: Any = None,
    ) -> Transferred:
        """Take commits from another store: :meth:`push` with the roles turned."""
        name = self._tenant if tenant is None else tenant
        with _other(origin) as other:
            return _transfer(other, self, name, specs, b"pull", force, progress)

    # ---- sharing -----------------------------------------------------------

    def grant(self, tenant: str | None, spec: Spec, to: str) -> Grant:
        """Let another tenant build views over a commit's content."""
        with self.scope(tenant) as scope:
            commit = scope.resolve(spec)
            rows = native.gather(
                native.bal_grant_fn,
                _grant_of,
                lib.bal_grant,
                scope.tenant,
                byref(commit),
                native.encode(to),
            )
        return cast(Grant, rows[0])

    def revoke(
        self, tenant: str | None, spec: Spec | None, to: str, *, all: bool = False
    ) -> Revoked:
        """Take back what was granted to a tenant; ``all`` (spec None): everything.

        NotFound: nothing is live, nothing was changed.
        """
        if all == (spec is not None):
            raise errors.Usage("a commit, or all=True and None")
        revoked = ctypes.c_uint64()
        with self.scope(tenant) as scope:
            commit = None if spec is None else byref(scope.resolve(spec))
            broken = native.gather(
                native.bal_view_fn,
                _view_name,
                lib.bal_revoke,
                scope.tenant,
                commit,
                native.encode(to),
                byref(revoked),
            )
        return Revoked(revoked.value, broken)

    def grants(self, tenant: str | None) -> list[Grant]:
        """Given and received, live ones first."""
        with self.scope(tenant) as scope:
            rows = native.gather(
                native.bal_grant_fn, _grant_of, lib.bal_grant_each, scope.tenant
            )
        return Rows(rows, ("owner", "commit", "grantee", "created_at", "revoked_at"))

    # ---- forgetting --------------------------------------------------------

    def forget(
        self,
        tenant: str | None,
        spec: Spec | None,
        *,
        reason: str,
        key: Path | None = None,
        dry_run: bool = False,
        progress: Any = None,
    ) -> Proof:
        """Delete a commit, or with spec None ALL that the tenant has, and prove it.

        ``key`` is a PEM file that signs the proof, else what BALLAST_SIGNING_KEY
        names. ``dry_run``: the plan, as the proof's ``statement``; nothing is
        changed. The proof is verified before it is returned.

        Raises Usage (a reason that is empty), NotFound (nothing matched), Busy.
        """
        with self.scope(tenant) as scope, _key(key) as pointer:
            options = native.bal_forget_options(
                reason=native.encode(reason),
                key=pointer,
                key_path=None if key is None else native.path_bytes(key),
                flags=native.BAL_FORGET_DRY_RUN if dry_run else 0,
            )
            if spec is not None:
                options.commit = ctypes.pointer(scope.resolve(spec))
            with working(progress):
                proof = native.create(lib.bal_forget, scope.tenant, byref(options))
            try:
                return _proof_of(proof, self._pointer, pointer, dry_run=dry_run)
            finally:
                lib.bal_proof_free(proof)

    def verify(
        self,
        attestation: str | os.PathLike[str] | Proof,
        *,
        key: Path | None = None,
        offline: bool = False,
    ) -> Proof:
        """Check a proof anew: one of the store's by its attestation, or a file.

        ``key`` is what it must be signed by (else those that the store trusts).
        ``offline`` looks at the file alone and needs a key. Returns the proof,
        with ``verified`` and ``problems``; nothing is raised for a bad one.
        """
        if isinstance(attestation, Proof):
            attestation = attestation.attestation
        text = os.fspath(attestation)
        stored = len(text) == 64 and not set(text) - set("0123456789abcdef")
        if stored and offline:
            raise errors.Usage("offline needs a file")
        asked = key is not None or offline
        with self._used(), _key(key, wanted=asked) as pointer:
            if stored:
                proof = native.create(
                    lib.bal_proof_open, self._pointer, native.encode(text)
                )
            else:
                proof = native.create(lib.bal_proof_load, native.path_bytes(text))
            try:
                store = None if offline else self._pointer
                return _proof_of(proof, store, pointer)
            finally:
                lib.bal_proof_free(proof)

    # ---- upkeep ------------------------------------------------------------

    @contextlib.contextmanager
    def _perhaps(self, tenant: str | None) -> Iterator[int | None]:
        if tenant is None:
            with self._used():
                yield None
        else:
            with self.scope(tenant) as scope:
                yield scope.tenant

    def fsck(
        self,
        tenant: str | None = None,
        *,
        fast: bool = False,
        repair: bool = False,
        source: Path | None = None,
        progress: Any = None,
    ) -> Checked:
        """Check that all is there and right; tenant None: of every tenant.

        ``fast``: names and sizes, no bytes. ``repair``: mend what can be without
        loss; ``source`` is a model's folder to heal damaged blocks from.
        """
        report = native.bal_fsck_report()
        options = native.bal_fsck_options(
            flags=(native.BAL_FSCK_FAST if fast else 0)
            | (native.BAL_FSCK_REPAIR if repair else 0),
        )
        setattr(options, "from", None if source is None else native.path_bytes(source))

        def row(pointer: Any) -> tuple[bool, Problem]:
            found = pointer.contents
            words = (found.kind, found.what, found.detail)
            return found.expected, Problem(*map(native.decode, words))

        with self._perhaps(tenant) as of, contextlib.ExitStack() as bars:
            if progress is True:
                progress = bar(bars)
            found = native.gather(
                native.bal_problem_fn,
                row,
                lib.bal_fsck,
                self._pointer,
                of,
                byref(options),
                behind=(byref(report),),
                progress=progress or None,
            )
        return Checked(
            ok=report.problems == 0,
            checked={
                name: getattr(report, name) for name in ("commits", "blocks", "bytes")
            },
            problems=[problem for expected, problem in found if not expected],
            expected=[problem for expected, problem in found if expected],
        )

    def gc(
        self,
        tenant: str | None = None,
        *,
        dry_run: bool = False,
        recompress: bool = False,
        progress: Any = None,
    ) -> Collected:
        """Remove blocks that no commit uses; tenant None: of every tenant.

        ``recompress``: and store what stays anew, by the present setting. Busy:
        others are at work.
        """
        report = native.bal_gc_report()
        flags = (native.BAL_GC_DRY_RUN if dry_run else 0) | (
            native.BAL_GC_RECOMPRESS if recompress else 0
        )
        with self._perhaps(tenant) as of, working(progress):
            native.call(lib.bal_gc, self._pointer, of, flags, byref(report))
        return Collected(report.bytes_freed, report.blocks)

    def copy(
        self,
        *,
        backend: str | None = None,
        metadata: str | None = None,
        progress: Any = None,
    ) -> Copied:
        """Move the store's blocks to another backend, its database to another one,
        or both; then this handle is closed, and the root is of the store at the new
        place. What is at the old one is left there.

        Raises Usage: neither is given. Conflict: another store is there. Corrupt: a
        block did not arrive as it should. Busy: others are at work.
        """
        report = native.bal_copy_report()
        with self._used(), working(progress):
            native.call(
                lib.bal_store_copy,
                self._pointer,
                native.encode(backend),
                native.encode(metadata),
                byref(report),
            )
        self.close()
        return Copied(report.blocks, report.bytes, report.present, report.rows)

    def stats(self, tenant: str | None = None) -> Stats:
        """Counts and bytes; tenant None: of the whole store."""
        out = native.bal_stats()
        with self._perhaps(tenant) as of:
            native.call(lib.bal_stats_get, byref(out), self._pointer, of)
        return Stats(
            out.commits,
            out.manifests,
            out.blocks,
            out.logical_bytes,
            out.unique_bytes,
            out.stored_bytes,
            _ratio(out.logical_bytes, out.unique_bytes),
            _ratio(out.unique_bytes, out.stored_bytes),
        )

    def tenants(self) -> list[str]:
        """Names of the tenants that have commits."""
        with self._used():
            return native.gather(
                native.bal_name_fn, native.decode, lib.bal_tenant_each, self._pointer
            )

    def config(self, key: str | None = None, value: str | None = None) -> Any:
        """The settings by name; one of them (None: not set); or set it.

        Usage: an unknown one, a bad value, or one that is fixed at creation.
        """
        with self._used():
            if key is None:

                def row(name: bytes, text: bytes | None) -> tuple[str, str | None]:
                    return native.decode(name), native.maybe(text)

                return dict(
                    native.gather(
                        native.bal_setting_fn, row, lib.bal_setting_each, self._pointer
                    )
                )
            name = native.encode(key)
            if value is not None:
                text = native.encode(str(value))
                native.call(lib.bal_setting_set, self._pointer, name, text)
            return native.maybe(lib.bal_setting_get(self._pointer, name))


# ---- what operations are made of ------------------------------------------------


@contextlib.contextmanager
def _other(given: Path | Store, like: Store | None = None) -> Iterator[Store]:
    """A store, or the one at a path; one that is not there is made ``like`` it."""
    if isinstance(given, Store):
        yield given
        return
    try:
        opened = Store(given, create=False)
    except errors.NotFound:
        if like is None:
            raise
        settings = like.config()
        opened = Store(
            given,
            tenant=settings.get("tenant"),
            block_size=int(settings["block_size"]),
            compression=settings["compression"],
        )
    with opened:
        yield opened


def _transfer(
    origin: Store,
    to: Store,
    tenant: str | None,
    specs: tuple[Spec, ...],
    op: bytes,
    force: bool,
    progress: Any,
) -> Transferred:
    names = [
        native.encode(spec.id if isinstance(spec, Commit) else spec) or b""
        for spec in specs
    ]
    report = native.bal_push_report()
    refs: list[dict[str, str | None]] = []

    def row(pointer: Any) -> None:
        move = pointer.contents
        old = native.hex_id(move.old) if move.old else None
        new = native.hex_id(move.now)
        refs.append({"ref": native.decode(move.ref), "old": old, "new": new})

    with (
        origin.scope(tenant) as source,
        to.scope(source.name) as target,
        working(progress) as operation,
    ):
        told = native.bal_move_fn(lambda _, pointer: operation.carry(row, pointer))
        what = native.bal_push_options(
            specs=native.texts(names),
            count=len(names),
            op=op,
            flags=native.BAL_PUSH_FORCE if force else 0,
            moved=told,
        )
        native.call(
            lib.bal_push, source.tenant, target.tenant, byref(what), byref(report)
        )
    return Transferred(
        report.commits,
        report.blocks,
        report.reused_blocks,
        report.bytes,
        report.stored_bytes,
        refs,
    )


def _ratio(a: int, b: int) -> float:
    return a / b if b else 1.0


def _view_name(tenant: bytes, commit: Any) -> str:
    return f"{native.decode(tenant)}:{native.hex_id(commit)}"


def _grant_of(pointer: Any) -> Grant:
    row = pointer.contents
    return Grant(
        native.decode(row.owner),
        native.hex_id(row.manifest),
        native.hex_id(row.commit),
        native.decode(row.grantee),
        rfc3339(row.created_at),
        rfc3339(row.revoked_at) if row.revoked_at else None,
    )


def _count(model: Model) -> tuple[int, int]:
    sizes = [
        entry.size
        for _, entry in model.entries()
        if entry.part == native.BAL_PART_TENSOR and entry.form in _LISTED
    ]
    return len(sizes), sum(sizes)


def _first_difference(want: Model, got: Model) -> str | None:
    """The first tensor or side file of want that got has not, byte for byte."""
    for i, entry in want.entries():
        tensor = entry.part == native.BAL_PART_TENSOR and entry.form in _LISTED
        index = entry.name.endswith(b".safetensors.index.json")
        file = entry.part == native.BAL_PART_FILE and (
            entry.form == native.BAL_FORM_WHOLE and not index
        )
        if (tensor or file) and not _has(got, want, i, entry):
            return native.decode(entry.name)
    return None


def _has(got: Model, want: Model, i: int, entry: Any) -> bool:
    j = lib.bal_model_find(got.pointer, entry.part, entry.name)
    if j == native.BAL_NONE:
        return False
    there = lib.bal_model_at(got.pointer, j).contents
    if (entry.dtype, entry.size) != (there.dtype, there.size) or (
        entry.shape[: entry.rank] != there.shape[: there.rank]
    ):
        return False
    buffers = [ctypes.create_string_buffer(_PIECE) for _ in range(2)]
    for at in range(0, entry.size, _PIECE):
        size = min(_PIECE, entry.size - at)
        want.read(i, at, ctypes.addressof(buffers[0]), size)
        got.read(j, at, ctypes.addressof(buffers[1]), size)
        if memoryview(buffers[0])[:size] != memoryview(buffers[1])[:size]:
            return False
    return True


@contextlib.contextmanager
def _key(path: Path | None, wanted: bool = True) -> Iterator[int | None]:
    """A key by its file, or the environment's; None: there is none."""
    pointer = None
    if path is not None:
        pointer = native.create(lib.bal_key_load, native.path_bytes(path))
    elif wanted:
        pointer = native.create(lib.bal_key_environment) or None
    try:
        yield pointer
    finally:
        lib.bal_key_free(pointer)


def _proof_of(
    proof: int, store: int | None, key: int | None, *, dry_run: bool = False
) -> Proof:
    info = lib.bal_proof_info_of(proof).contents
    problems: list[str] = []
    notes: list[str] = []
    verdict = native.bal_verdict()

    def found(kind: int, text: bytes) -> None:
        to = problems if kind == native.BAL_FINDING_PROBLEM else notes
        to.append(native.decode(text))

    def kept(_kind: bytes, of: Any, why: bytes) -> dict[str, str]:
        return {"id": native.hex_id(of), "why": native.decode(why)}

    if not dry_run:
        native.walk(
            native.bal_finding_fn,
            found,
            lib.bal_proof_verify,
            proof,
            store,
            key,
            behind=(byref(verdict),),
        )
    retained: list[dict[str, str]] = []
    broken: list[str] = []
    # What cannot be read of a bad proof is one of its problems.
    with contextlib.suppress(errors.Corrupt):
        retained = native.gather(
            native.bal_retained_fn, kept, lib.bal_proof_retained, proof
        )
    with contextlib.suppress(errors.Corrupt):
        broken = native.gather(
            native.bal_view_fn, _view_name, lib.bal_proof_views, proof
        )
    return Proof(
        attestation=native.decode(info.attestation),
        signed=info.key_id is not None,
        key_id=native.maybe(info.key_id),
        statement=json.loads(info.statement) if info.statement else None,
        envelope=json.loads(info.envelope) if info.envelope else None,
        log_index=info.log_index,
        commits=info.commits,
        manifests=info.manifests,
        blocks=info.blocks,
        bytes_freed=info.bytes_freed,
        retained=retained,
        broken_views=broken,
        revoked_grants=info.revoked_grants,
        verified=not dry_run and verdict.problems == 0,
        problems=problems,
        notes=notes,
        tenant=native.decode(info.tenant),
        reason=native.decode(info.reason),
        dry_run=dry_run,
    )
