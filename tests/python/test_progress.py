"""How work tells how far it is, and is stopped."""

import shutil
import signal
import sys
import time

import numpy
import pytest

import ballast
from ballast import store as module

MEGABYTES = 24


def noise(seed):
    """Another model than any before, made in more time than the library lets pass
    before it tells."""
    begin = time.monotonic()
    while True:
        rng = numpy.random.default_rng(seed)
        data = {f"w{i}": rng.standard_normal(1 << 18, "f4") for i in range(MEGABYTES)}
        if time.monotonic() - begin > 0.12:
            return data


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """"base", and on "tuned" the difference of another model to it."""
    root = tmp_path_factory.mktemp("made") / "store"
    with ballast.Store(root, jobs=2) as store:
        base = noise(0)
        store.commit("acme", base, message="m", ref="base")
        tuned = {name: tensor + 1 for name, tensor in base.items()}
        store.delta("acme", tuned, base="base", message="m", ref="tuned")
    return root


@pytest.fixture
def filled(made, tmp_path):
    shutil.copytree(made, tmp_path / "store")
    with ballast.Store(tmp_path / "store", jobs=2) as store:
        yield store


# What takes its time; what it would make lies at "new" or in out.
OPERATIONS = {
    "commit": lambda store, data, out, **more: store.commit(
        "acme", data, message="m", ref="new", **more
    ),
    "delta": lambda store, data, out, **more: store.delta(
        "acme", data, base="base", message="m", ref="new", **more
    ),
    "apply": lambda store, data, out, **more: store.apply(
        "acme", "tuned", base="base", out=out, **more
    ),
    "diff": lambda store, data, out, **more: store.diff("acme", "base", data, **more),
    "write": lambda store, data, out, **more: store.checkout("acme", "base").write(
        out, **more
    ),
    "fsck": lambda store, data, out, **more: store.fsck("acme", **more),
}


def attempt(store, name, out, progress):
    """Do it, until progress was told of it."""
    for seed in range(1, 20):
        data = noise(seed)
        OPERATIONS[name](store, data, out / str(seed), progress=progress)
        if progress.told:
            return


class Told:
    def __init__(self, then=lambda: None):
        self.told, self.then = [], then

    def __call__(self, done, total):
        self.told.append((done, total))
        return self.then()


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_function_is_told_bytes(filled, tmp_path, name):
    told = Told()
    (tmp_path / "out").mkdir()
    attempt(filled, name, tmp_path / "out", told)
    assert all(0 <= done <= total for done, total in told.told if total)


def stop(how):
    def then():
        if how is False:
            return False
        if how is KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
            return None
        # A new one: what an exception was raised through lives as long as it.
        raise how("mine")

    return then


@pytest.mark.parametrize(
    "how, raised",
    [
        (False, ballast.Cancelled),
        (KeyboardInterrupt, KeyboardInterrupt),
        (ZeroDivisionError, ZeroDivisionError),
    ],
    ids=["false", "interrupt", "exception"],
)
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_stopped_leaves_the_store_as_it_was(
    filled, tmp_path, name, how, raised
):
    before = filled.refs("acme"), filled.stats("acme")
    told = Told(stop(how))
    handler = signal.getsignal(signal.SIGINT)
    (tmp_path / "out").mkdir()
    with pytest.raises(raised):
        attempt(filled, name, tmp_path / "out", told)
    assert len(told.told) == 1
    assert signal.getsignal(signal.SIGINT) is handler
    assert list((tmp_path / "out").iterdir()) == []
    assert (filled.refs("acme"), filled.stats("acme")) == before
    assert filled.fsck()
    assert filled.gc().blocks == 0 or name in ("commit", "delta")


class Bar:
    """Stands for tqdm's."""

    made = []

    def __init__(self, **given):
        self.given, self.states, self.closed = given, [], False
        self.total, self.n = None, 0
        Bar.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True

    def refresh(self):
        self.states.append((self.n, self.total))


@pytest.fixture
def bars(monkeypatch):
    class Tqdm:
        tqdm = Bar

    Bar.made = []
    monkeypatch.setitem(sys.modules, "tqdm", Tqdm)
    monkeypatch.setitem(sys.modules, "tqdm.auto", Tqdm)
    return Bar.made


@pytest.mark.parametrize("name", OPERATIONS)
def test_true_is_a_bar_that_is_taken_away_at_the_end(filled, tmp_path, bars, name):
    (tmp_path / "out").mkdir()
    for seed in range(1, 20):
        data = noise(seed)
        out = tmp_path / "out" / str(seed)
        OPERATIONS[name](filled, data, out, progress=True)
        assert all(bar.closed for bar in bars)
        if any(bar.states for bar in bars):
            break
    states = [state for bar in bars for state in bar.states]
    assert states and all(n <= total for n, total in states if total)
    given = {"unit": "B", "unit_scale": True, "leave": False}
    assert all(bar.given == given for bar in bars)


def test_a_bar_is_taken_away_after_an_error_too(filled, tmp_path, bars):
    with pytest.raises(ballast.NotFound):
        filled.commit("acme", tmp_path / "none", message="m", progress=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    with pytest.raises(ballast.Conflict):
        filled.checkout("acme", "base").write(tmp_path / "full", progress=True)
    assert bars and all(bar.closed for bar in bars)


@pytest.mark.parametrize("name", OPERATIONS)
def test_without_tqdm_true_is_nothing(filled, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    (tmp_path / "out").mkdir()
    OPERATIONS[name](filled, noise(1), tmp_path / "out" / "1", progress=True)


def test_the_real_bar_counts_bytes(filled, capsys, monkeypatch):
    tqdm = pytest.importorskip("tqdm")
    seen = []
    real = tqdm.std.tqdm.refresh

    def refresh(bar, *args, **more):
        seen.append((bar.n, bar.total, bar.unit, str(bar)))
        return real(bar, *args, **more)

    monkeypatch.setattr(tqdm.std.tqdm, "refresh", refresh)
    for seed in range(1, 20):
        data = noise(seed)
        filled.commit("acme", data, message="m", ref="new", progress=True)
        if any(total for _, total, _, _ in seen):
            break
    n, total, unit, text = next(row for row in seen if row[1])
    assert unit == "B" and 0 <= n <= total and "B/s" in text
    assert list(tqdm.tqdm._instances) == []


def test_a_bar_does_not_start_for_what_no_one_asked(filled, bars):
    for progress in (None, False):
        filled.commit("acme", {"w": bytes(3)}, message="m", progress=progress)
    assert bars == [] and module.__name__ == "ballast.store"
