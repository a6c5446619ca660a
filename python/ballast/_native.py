"""libballast as ctypes sees it: the header's types and functions, and how they
are called.

What the header says is written down here once; tests/python/test_native.py
compares it with what a C compiler makes of the header. The interpreter lock is
released during every call. Callbacks run in the thread that called: an exception
in one ends the walk and is raised after it. While work runs, Python's signal
handlers run between its pieces, and an exception in one (KeyboardInterrupt)
cancels the work.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import logging
import operator
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from . import errors

# ruff: noqa: N801  (types are named as in C)

# ---- types -------------------------------------------------------------------


class bal_error(Structure):
    _fields_ = [
        ("code", c_int),
        ("text", c_char * 508),
        ("hint", c_char * 252),
    ]


class bal_code_row(Structure):
    _fields_ = [
        ("code", c_int),
        ("word", c_char_p),
        ("exit", c_int),
        ("http", c_int),
        ("python", c_char_p),
    ]


bal_log_fn = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)


class bal_id(Structure):
    _fields_ = [
        ("bytes", c_uint8 * 32),
    ]


_ID = POINTER(bal_id)
_ERR = POINTER(bal_error)
_OUT = POINTER(c_void_p)

bal_watch_fn = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)


class bal_store_options(Structure):
    _fields_ = [
        ("root", c_char_p),
        ("backend", c_char_p),
        ("db", c_char_p),
        ("tenant", c_char_p),
        ("block_size", c_uint64),
        ("compression", c_char_p),
        ("default_jobs", c_uint),
        ("wait", c_double),
        ("flags", c_uint),
        ("work", c_void_p),
        ("cache", c_char_p),
        ("cache_size", c_uint64),
    ]


bal_setting_fn = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p)
bal_name_fn = CFUNCTYPE(c_int, c_void_p, c_char_p)


class bal_tensor(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("part", c_int),
        ("form", c_int),
        ("dtype", c_int),
        ("of", c_int),
        ("rank", c_uint32),
        ("shape", POINTER(c_uint64)),
        ("size", c_uint64),
        ("base", _ID),
        ("tuned", _ID),
    ]


class bal_facts(Structure):
    _fields_ = [
        ("kind", c_int),
        ("name", c_char_p),
        ("base_model", c_char_p),
        ("revision", c_char_p),
        ("report", c_char_p),
    ]


class bal_array(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("part", c_int),
        ("dtype", c_int),
        ("rank", c_uint32),
        ("shape", POINTER(c_uint64)),
        ("data", c_void_p),
        ("size", c_uint64),
    ]


bal_release_fn = CFUNCTYPE(None, c_void_p)


class bal_arrays(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("base_model", c_char_p),
        ("rows", POINTER(bal_array)),
        ("count", c_size_t),
        ("release", bal_release_fn),
        ("ctx", c_void_p),
    ]


class bal_entry_to(Structure):
    _fields_ = [("entry", c_size_t), ("to", c_void_p)]


class bal_write_options(Structure):
    _fields_ = [
        ("provenance", c_char_p),
        ("avoid", POINTER(c_char_p)),
        ("avoid_count", c_size_t),
        ("sources", _OUT),
        ("source_count", c_size_t),
        ("flags", c_uint),
    ]


class bal_written(Structure):
    _fields_ = [
        ("tensors", c_uint64),
        ("bytes", c_uint64),
    ]


class bal_lora_options(Structure):
    _fields_ = [
        ("rank", c_uint64),
        ("energy", c_double),
        ("dtype", c_char_p),
    ]


class bal_extract_options(Structure):
    _fields_ = [
        ("lora", bal_lora_options),
        ("seed", c_uint64),
        ("targets", POINTER(c_char_p)),
        ("target_count", c_size_t),
        ("base_model", c_char_p),
    ]


class bal_lora_row(Structure):
    _fields_ = [
        ("module", c_char_p),
        ("rank_a", c_uint64),
        ("rank_b", c_uint64),
        ("norm_a", c_double),
        ("norm_b", c_double),
        ("difference", c_double),
        ("columns", c_double),
        ("rows", c_double),
        ("column_angle", c_double),
        ("row_angle", c_double),
    ]


bal_lora_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_lora_row))


class bal_residual(Structure):
    _fields_ = [
        ("total", c_double),
        ("worst", c_double),
        ("module", c_char * 256),
    ]


class bal_commit_info(Structure):
    _fields_ = [
        ("id", bal_id),
        ("manifest", bal_id),
        ("parent", bal_id),
        ("has_parent", c_bool),
        ("tenant", c_char_p),
        ("kind", c_char_p),
        ("message", c_char_p),
        ("author", c_char_p),
        ("base_model", c_char_p),
        ("metadata", c_char_p),
        ("recipe", c_char_p),
        ("created_at", c_int64),
    ]


class bal_draft(Structure):
    _fields_ = [
        ("ref", c_char_p),
        ("message", c_char_p),
        ("author", c_char_p),
        ("base_model", c_char_p),
        ("metadata", c_char_p),
        ("parent", _ID),
        ("expect", _ID),
        ("anchor", _ID),
        ("residual", POINTER(bal_residual)),
        ("flags", c_uint),
    ]


class bal_commit_report(Structure):
    _fields_ = [
        ("nothing_changed", c_bool),
        ("tensors", c_uint64),
        ("bytes", c_uint64),
        ("stored_bytes", c_uint64),
        ("new_blocks", c_uint64),
        ("reused_blocks", c_uint64),
        ("changed", c_uint64),
        ("unchanged", c_uint64),
        ("added", c_uint64),
        ("removed", c_uint64),
        ("reshaped", c_uint64),
        ("anchored", c_bool),
        ("anchor", bal_id),
        ("lossy", c_bool),
        ("residual", bal_residual),
    ]


bal_ref_fn = CFUNCTYPE(c_int, c_void_p, c_char_p, _ID)
bal_commit_fn = CFUNCTYPE(c_int, c_void_p, c_void_p)


class bal_move(Structure):
    _fields_ = [
        ("ref", c_char_p),
        ("n", c_uint64),
        ("op", c_char_p),
        ("old", _ID),
        ("now", _ID),
        ("at", c_int64),
        ("message", c_char_p),
    ]


bal_move_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_move))


class bal_push_options(Structure):
    _fields_ = [
        ("specs", POINTER(c_char_p)),
        ("count", c_size_t),
        ("op", c_char_p),
        ("flags", c_uint),
        ("moved", bal_move_fn),
        ("ctx", c_void_p),
    ]


class bal_push_report(Structure):
    _fields_ = [
        ("commits", c_uint64),
        ("blocks", c_uint64),
        ("reused_blocks", c_uint64),
        ("bytes", c_uint64),
        ("stored_bytes", c_uint64),
        ("refs", c_uint64),
    ]


class bal_param(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("type", c_int),
        ("per_input", c_bool),
        ("fallback", c_char_p),
        ("low", c_double),
        ("high", c_double),
        ("choices", c_char_p),
        ("mergekit", c_char_p),
        ("help", c_char_p),
    ]


class bal_method_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("summary", c_char_p),
        ("paper", c_char_p),
        ("formula", c_char_p),
        ("guard", c_char_p),
        ("min_inputs", c_size_t),
        ("max_inputs", c_size_t),
        ("flags", c_uint),
        ("params", POINTER(bal_param)),
    ]


bal_imported_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_char_p)


class bal_import(Structure):
    _fields_ = [
        ("text", c_char_p),
        ("size", c_size_t),
        ("what", c_char_p),
        ("map", POINTER(c_char_p)),
        ("map_count", c_size_t),
        ("arithmetic", c_char_p),
        ("stream", c_char_p),
        ("each", bal_imported_fn),
        ("not_used", bal_name_fn),
        ("ctx", c_void_p),
    ]


class bal_diff_row(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("change", c_int),
        ("dtype_changed", c_bool),
        ("finite", c_bool),
        ("same_bits", c_bool),
        ("relative", c_double),
        ("max_abs", c_double),
        ("diff2", c_double),
        ("norm2", c_double),
    ]


bal_diff_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_diff_row))


class bal_diff_options(Structure):
    _fields_ = [
        ("names", c_char_p * 2),
        ("commits", _ID * 2),
        ("tenant", c_void_p),
        ("probe_set", c_char_p),
        ("threshold", POINTER(c_double)),
        ("flags", c_uint),
        ("work", c_void_p),
        ("fn", bal_diff_fn),
        ("ctx", c_void_p),
    ]


class bal_probe(Structure):
    _fields_ = [
        ("id", c_char_p),
        ("prompt", c_char_p),
        ("messages", c_char_p),
        ("references", POINTER(c_char_p)),
        ("reference_count", c_size_t),
        ("choices", POINTER(c_char_p)),
        ("choice_count", c_size_t),
        ("stop", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("max_tokens", c_uint64),
    ]


class bal_probes_options(Structure):
    _fields_ = [
        ("pattern", c_char_p),
        ("flags", c_uint),
    ]


class bal_likely(Structure):
    _fields_ = [
        ("token", c_char_p),
        ("logprob", c_double),
    ]


class bal_said(Structure):
    _fields_ = [
        ("token", c_char_p),
        ("logprob", c_double),
        ("top", POINTER(bal_likely)),
        ("top_count", c_size_t),
    ]


class bal_answer(Structure):
    _fields_ = [
        ("output", c_char_p),
        ("tokens", POINTER(bal_said)),
        ("token_count", c_size_t),
    ]


class bal_fingerprint_info(Structure):
    _fields_ = [
        ("commit", bal_id),
        ("probes", bal_id),
        ("terms", c_char_p),
        ("answers", c_uint64),
        ("created_at", c_int64),
    ]


bal_fingerprint_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_fingerprint_info))


class bal_probes_info(Structure):
    _fields_ = [
        ("id", bal_id),
        ("probes", c_uint64),
        ("fingerprints", c_uint64),
        ("created_at", c_int64),
    ]


bal_probes_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_probes_info))


class bal_ask_options(Structure):
    _fields_ = [
        ("runner", c_char_p),
        ("command", c_char_p),
        ("url", c_char_p),
        ("model", c_char_p),
        ("base", c_char_p),
        ("base_model", c_void_p),
        ("timeout", c_double),
        ("max_tokens", c_uint64),
        ("repeat", c_uint),
        ("top", c_uint),
        ("parallel", c_uint),
        ("flags", c_uint),
    ]


bal_bisect_fn = CFUNCTYPE(c_int, c_void_p, _ID, c_bool, c_uint64)


class bal_bisect_options(Structure):
    _fields_ = [
        ("probes", c_void_p),
        ("expect", c_char_p),
        ("command", c_char_p),
        ("ask", bal_ask_options),
        ("fn", bal_bisect_fn),
        ("ctx", c_void_p),
    ]


class bal_bisected(Structure):
    _fields_ = [
        ("commit", bal_id),
        ("asked", c_uint64),
        ("between", c_uint64),
    ]


class bal_behaviour(Structure):
    _fields_ = [
        ("total", c_uint64),
        ("moved", c_uint64),
        ("unsure", c_uint64),
        ("similarity", c_double),
        ("tokens", c_uint64),
        ("kld", c_double),
        ("kld_low", c_double),
        ("kld_high", c_double),
        ("kld_p99", c_double),
        ("kld_most", c_double),
        ("kld_noise", c_double),
        ("same_top", c_double),
        ("perplexity_ratio", c_double),
        ("graded", c_uint64),
        ("right_a", c_uint64),
        ("right_b", c_uint64),
        ("only_a", c_uint64),
        ("only_b", c_uint64),
        ("p_value", c_double),
    ]


class bal_probe_row(Structure):
    _fields_ = [
        ("probe", POINTER(bal_probe)),
        ("before", c_char_p),
        ("after", c_char_p),
        ("moved", c_bool),
        ("unsure", c_bool),
        ("similarity", c_double),
        ("kld", c_double),
        ("kld_most", c_double),
        ("tokens", c_uint64),
        ("parted", c_uint64),
        ("right_a", c_int),
        ("right_b", c_int),
        ("klds", POINTER(c_double)),
    ]


bal_probe_row_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_probe_row))


class bal_wdelta_info(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("size", c_uint64),
        ("version", c_uint32),
        ("strategy", c_char_p),
        ("parent_hash", c_char_p),
        ("tensors", c_size_t),
    ]


class bal_wdelta_row(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("strategy", c_char_p),
        ("dtype", c_char_p),
        ("rank", c_uint32),
        ("shape", POINTER(c_uint64)),
        ("bytes", c_uint64),
    ]


class bal_wdelta_options(Structure):
    _fields_ = [
        ("strategy", c_char_p),
        ("outlier_fraction", c_double),
        ("sparsity", c_double),
        ("max_error", c_double),
        ("parents", _OUT),
        ("parent_count", c_size_t),
        ("avoid", POINTER(c_char_p)),
        ("avoid_count", c_size_t),
    ]


class bal_wdelta_saved(Structure):
    _fields_ = [
        ("tensors", c_uint64),
        ("size", c_uint64),
        ("version", c_uint32),
        ("parent_hash", c_char * 65),
    ]


class bal_wdelta_quality(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("error2", c_double),
        ("delta2", c_double),
        ("max_abs", c_double),
        ("wrong", c_uint64),
    ]


bal_wdelta_quality_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_wdelta_quality))


class bal_grant_info(Structure):
    _fields_ = [
        ("owner", c_char_p),
        ("grantee", c_char_p),
        ("manifest", bal_id),
        ("commit", bal_id),
        ("created_at", c_int64),
        ("revoked_at", c_int64),
    ]


bal_grant_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_grant_info))
bal_view_fn = CFUNCTYPE(c_int, c_void_p, c_char_p, _ID)


class bal_forget_options(Structure):
    _fields_ = [
        ("commit", _ID),
        ("reason", c_char_p),
        ("key", c_void_p),
        ("key_path", c_char_p),
        ("flags", c_uint),
    ]


bal_pending_fn = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p, c_char_p)


class bal_proof_info(Structure):
    _fields_ = [
        ("attestation", c_char * 65),
        ("tenant", c_char_p),
        ("reason", c_char_p),
        ("algorithm", c_char_p),
        ("key_id", c_char_p),
        ("log_index", c_uint64),
        ("commits", c_uint64),
        ("manifests", c_uint64),
        ("blocks", c_uint64),
        ("bytes_freed", c_uint64),
        ("revoked_grants", c_uint64),
        ("completed_at", c_int64),
        ("statement", c_char_p),
        ("envelope", c_char_p),
    ]


bal_retained_fn = CFUNCTYPE(c_int, c_void_p, c_char_p, _ID, c_char_p)
bal_proof_fn = CFUNCTYPE(c_int, c_void_p, c_void_p)
bal_finding_fn = CFUNCTYPE(c_int, c_void_p, c_int, c_char_p)


class bal_verdict(Structure):
    _fields_ = [
        ("problems", c_uint64),
        ("signed_by_trusted", c_bool),
    ]


class bal_engine_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("version", c_char_p),
        ("max_rank", c_uint64),
    ]


class bal_preflight_row(Structure):
    _fields_ = [
        ("rule", c_char_p),
        ("outcome", c_int),
        ("engine", c_char_p),
        ("where", c_char_p),
        ("text", c_char_p),
    ]


bal_preflight_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_preflight_row))


class bal_serving_options(Structure):
    _fields_ = [
        ("engine", c_char_p),
        ("base", c_void_p),
        ("max_rank", c_uint64),
    ]


class bal_export_options(Structure):
    _fields_ = [
        ("dir", c_char_p),
        ("serve", bal_serving_options),
        ("told", bal_preflight_fn),
        ("ctx", c_void_p),
        ("flags", c_uint),
    ]


class bal_exported_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("path", c_char_p),
        ("tenant", c_char_p),
        ("ref", c_char_p),
        ("commit", bal_id),
        ("manifest", bal_id),
        ("int_id", c_uint32),
        ("base_model", c_char_p),
        ("rank", c_uint64),
        ("reused", c_bool),
    ]


bal_exported_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_exported_info))
bal_pruned_fn = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p)


class bal_loaded(Structure):
    _fields_ = [
        ("server", c_char_p),
        ("name", c_char_p),
        ("path", c_char_p),
        ("commit", bal_id),
        ("loaded_at", c_int64),
        ("unloaded_at", c_int64),
    ]


bal_loaded_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_loaded))


class bal_problem(Structure):
    _fields_ = [
        ("kind", c_char_p),
        ("what", c_char_p),
        ("detail", c_char_p),
        ("expected", c_bool),
    ]


bal_problem_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_problem))


class bal_fsck_report(Structure):
    _fields_ = [
        ("commits", c_uint64),
        ("blocks", c_uint64),
        ("bytes", c_uint64),
        ("problems", c_uint64),
        ("healed", c_uint64),
    ]


class bal_fsck_options(Structure):
    _fields_ = [
        ("flags", c_uint),
        ("from", c_char_p),
    ]


class bal_copy_report(Structure):
    _fields_ = [
        ("blocks", c_uint64),
        ("bytes", c_uint64),
        ("present", c_uint64),
        ("rows", c_uint64),
    ]


class bal_gc_report(Structure):
    _fields_ = [
        ("bytes_freed", c_uint64),
        ("blocks", c_uint64),
        ("recompressed", c_uint64),
        ("bytes_before", c_uint64),
        ("bytes_after", c_uint64),
    ]


class bal_stats(Structure):
    _fields_ = [
        ("commits", c_uint64),
        ("manifests", c_uint64),
        ("blocks", c_uint64),
        ("logical_bytes", c_uint64),
        ("unique_bytes", c_uint64),
        ("stored_bytes", c_uint64),
    ]


class bal_codec_stats(Structure):
    _fields_ = [
        ("codec", c_char_p),
        ("blocks", c_uint64),
        ("bytes", c_uint64),
        ("stored", c_uint64),
    ]


bal_codec_stats_fn = CFUNCTYPE(c_int, c_void_p, POINTER(bal_codec_stats))

# ---- constants ---------------------------------------------------------------

BAL_NONE = c_size_t(-1).value
BAL_ECANCELLED = -12
BAL_OPEN_CREATE, BAL_OPEN_INIT, BAL_OPEN_NO_CACHE = 1, 2, 4
BAL_PART_TENSOR, BAL_PART_FILE, BAL_PART_HEADER = range(3)
(
    BAL_FORM_WHOLE,
    BAL_FORM_DIFFERENCE,
    BAL_FORM_RESIDUAL,
    BAL_FORM_SAME,
    BAL_FORM_REMOVED,
) = range(5)
BAL_KIND_WEIGHTS, BAL_KIND_ADAPTER, BAL_KIND_DELTA, BAL_KIND_VIEW = range(4)
BAL_DTYPES = 22
BAL_PLUS_ANY_BASE = 1
BAL_WRITE_FORCE, BAL_WRITE_CANONICAL = 1, 2
BAL_DRAFT_ALLOW_EMPTY = 1
BAL_FORGET_DRY_RUN = 1
BAL_FINDING_PROBLEM, BAL_FINDING_NOTE = range(2)
BAL_DIFF_PROBES, BAL_DIFF_CELLS = 1, 2
BAL_FSCK_FAST, BAL_FSCK_REPAIR = 1, 2
BAL_GC_DRY_RUN, BAL_GC_RECOMPRESS = 1, 2
BAL_PUSH_FORCE = 1
BAL_CHANGES = (
    "changed",
    "unchanged",
    "added",
    "removed",
    "reshaped",
    "dtype_changed",
)

# ---- functions ---------------------------------------------------------------

# name: (result, arguments ...)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "bal_code_find": (POINTER(bal_code_row), c_int),
    "bal_version": (c_char_p,),
    "bal_version_details": (c_char_p,),
    "bal_log_to": (None, bal_log_fn, c_void_p),
    "bal_id_parse": (c_int, _ID, c_char_p, _ERR),
    "bal_id_hex": (None, c_char_p, _ID),
    "bal_id_serving": (c_uint32, _ID),
    "bal_work_new": (c_int, _OUT, c_uint, _ERR),
    "bal_work_watch": (None, c_void_p, bal_watch_fn, c_void_p),
    "bal_work_jobs": (c_uint, c_void_p),
    "bal_work_free": (None, c_void_p),
    "bal_store_open": (c_int, _OUT, POINTER(bal_store_options), _ERR),
    "bal_store_free": (None, c_void_p),
    "bal_store_root": (c_char_p, c_void_p),
    "bal_setting_each": (c_int, c_void_p, bal_setting_fn, c_void_p, _ERR),
    "bal_setting_get": (c_char_p, c_void_p, c_char_p),
    "bal_setting_set": (c_int, c_void_p, c_char_p, c_char_p, _ERR),
    "bal_tenant_open": (c_int, _OUT, c_void_p, c_char_p, _ERR),
    "bal_tenant_name": (c_char_p, c_void_p),
    "bal_tenant_free": (None, c_void_p),
    "bal_tenant_each": (c_int, c_void_p, bal_name_fn, c_void_p, _ERR),
    "bal_dtype_name": (c_char_p, c_int),
    "bal_dtype_bits": (c_uint, c_int),
    "bal_kind_name": (c_char_p, c_int),
    "bal_model_from_path": (c_int, _OUT, c_char_p, _ERR),
    "bal_model_from_arrays": (c_int, _OUT, POINTER(bal_arrays), _ERR),
    "bal_model_from_commit": (c_int, _OUT, c_void_p, _ID, _ERR),
    "bal_model_minus": (c_int, _OUT, c_void_p, c_void_p, c_void_p, _ERR),
    "bal_model_plus": (c_int, _OUT, c_void_p, c_void_p, c_uint, c_void_p, _ERR),
    "bal_model_cast": (c_int, _OUT, c_void_p, c_int, _ERR),
    "bal_model_count": (c_size_t, c_void_p),
    "bal_model_at": (POINTER(bal_tensor), c_void_p, c_size_t),
    "bal_model_find": (c_size_t, c_void_p, c_int, c_char_p),
    "bal_model_facts": (POINTER(bal_facts), c_void_p),
    "bal_model_read": (c_int, c_void_p, c_size_t, c_uint64, c_void_p, c_size_t, _ERR),
    "bal_model_read_all": (
        c_int, c_void_p, POINTER(bal_entry_to), c_size_t, c_void_p, _ERR,
    ),
    "bal_model_ref": (c_void_p, c_void_p),
    "bal_model_free": (None, c_void_p),
    "bal_model_write": (
        c_int, c_void_p, c_char_p, POINTER(bal_write_options), POINTER(bal_written),
        c_void_p, _ERR,
    ),
    "bal_lora_resize": (
        c_int, _OUT, c_void_p, POINTER(bal_lora_options), c_void_p, _ERR,
    ),
    "bal_model_lora_rank": (c_uint64, c_void_p),
    "bal_lora_scale": (c_int, _OUT, c_void_p, c_double, c_char_p, _ERR),
    "bal_lora_extract": (
        c_int, _OUT, c_void_p, POINTER(bal_extract_options), c_void_p, _ERR,
    ),
    "bal_lora_import": (c_int, _OUT, c_void_p, c_void_p, c_char_p, _ERR),
    "bal_lora_compare": (
        c_int, POINTER(bal_residual), c_void_p, c_void_p, c_void_p, bal_lora_fn,
        c_void_p, _ERR,
    ),
    "bal_lora_spaces": (
        c_int, POINTER(bal_residual), c_void_p, c_void_p, c_void_p, bal_lora_fn,
        c_void_p, _ERR,
    ),
    "bal_lora_distance": (
        c_int, POINTER(bal_residual), c_void_p, c_void_p, c_void_p, bal_lora_fn,
        c_void_p, _ERR,
    ),
    "bal_commit_model": (
        c_int, _OUT, c_void_p, c_void_p, POINTER(bal_draft), POINTER(bal_commit_report),
        _ERR,
    ),
    "bal_commit_open": (c_int, _OUT, c_void_p, _ID, _ERR),
    "bal_commit_info_of": (POINTER(bal_commit_info), c_void_p),
    "bal_commit_json": (c_char_p, c_void_p),
    "bal_commit_provenance": (c_char_p, c_void_p),
    "bal_commit_free": (None, c_void_p),
    "bal_resolve": (c_int, _ID, c_void_p, c_char_p, _ERR),
    "bal_ref_each": (c_int, c_void_p, bal_ref_fn, c_void_p, _ERR),
    "bal_ref_reset": (c_int, c_void_p, c_char_p, _ID, _ID, c_char_p, _ERR),
    "bal_log": (c_int, c_void_p, _ID, c_size_t, bal_commit_fn, c_void_p, _ERR),
    "bal_reflog": (c_int, c_void_p, c_char_p, bal_move_fn, c_void_p, _ERR),
    "bal_push": (
        c_int, c_void_p, c_void_p, POINTER(bal_push_options), POINTER(bal_push_report),
        _ERR,
    ),
    "bal_method_count": (c_size_t,),
    "bal_method_at": (POINTER(bal_method_info), c_size_t),
    "bal_method_find": (POINTER(bal_method_info), c_char_p),
    "bal_method_base": (c_int, POINTER(bal_method_info)),
    "bal_recipe_new": (c_int, _OUT, c_char_p, _ERR),
    "bal_recipe_input": (c_int, c_void_p, c_void_p, c_char_p, _ERR),
    "bal_recipe_base": (c_int, c_void_p, c_void_p, c_char_p, _ERR),
    "bal_recipe_set": (c_int, c_void_p, c_char_p, c_char_p, _ERR),
    "bal_recipe_inputs": (c_size_t, c_void_p),
    "bal_recipe_free": (None, c_void_p),
    "bal_commit_view": (
        c_int, _OUT, c_void_p, c_void_p, POINTER(bal_draft), POINTER(bal_commit_report),
        _ERR,
    ),
    "bal_import_mergekit": (
        c_int, _OUT, c_void_p, POINTER(bal_import), POINTER(bal_draft), _ERR,
    ),
    "bal_export_mergekit": (
        c_int, POINTER(c_char_p), c_void_p, _ID, POINTER(c_char_p), c_size_t, _ERR,
    ),
    "bal_diff": (c_int, c_void_p, c_void_p, c_void_p, bal_diff_fn, c_void_p, _ERR),
    "bal_diff_json": (
        c_int, POINTER(c_void_p), c_void_p, c_void_p, POINTER(bal_diff_options), _ERR,
    ),
    "bal_probes_open": (c_int, _OUT, c_char_p, POINTER(bal_probes_options), _ERR),
    "bal_probes_of": (c_int, _OUT, POINTER(c_char_p), c_size_t, _ERR),
    "bal_probes_read": (c_int, _OUT, c_char_p, c_size_t, _ERR),
    "bal_probes_id": (_ID, c_void_p),
    "bal_probes_count": (c_size_t, c_void_p),
    "bal_probes_at": (POINTER(bal_probe), c_void_p, c_size_t),
    "bal_probes_find": (c_size_t, c_void_p, c_char_p),
    "bal_probes_json": (c_char_p, c_void_p),
    "bal_probes_unused": (c_char_p, c_void_p),
    "bal_probes_ref": (c_void_p, c_void_p),
    "bal_probes_free": (None, c_void_p),
    "bal_fingerprint_new": (c_int, _OUT, c_void_p, c_char_p, _ERR),
    "bal_fingerprint_add": (c_int, c_void_p, c_size_t, POINTER(bal_answer), _ERR),
    "bal_fingerprint_about": (c_int, c_void_p, c_char_p, _ERR),
    "bal_fingerprint_probes": (c_void_p, c_void_p),
    "bal_fingerprint_terms": (c_char_p, c_void_p),
    "bal_fingerprint_facts": (c_char_p, c_void_p),
    "bal_fingerprint_at": (POINTER(bal_answer), c_void_p, c_size_t),
    "bal_fingerprint_distinct": (c_size_t, c_void_p, c_size_t),
    "bal_fingerprint_count": (c_size_t, c_void_p),
    "bal_fingerprint_free": (None, c_void_p),
    "bal_fingerprint_put": (c_int, c_void_p, c_void_p, _ID, c_uint, _ERR),
    "bal_fingerprint_each": (c_int, c_void_p, _ID, bal_fingerprint_fn, c_void_p, _ERR),
    "bal_fingerprint_open": (c_int, _OUT, c_void_p, _ID, _ID, c_char_p, _ERR),
    "bal_probes_each": (c_int, c_void_p, bal_probes_fn, c_void_p, _ERR),
    "bal_probes_resolve": (c_int, _ID, c_void_p, c_char_p, _ERR),
    "bal_probes_load": (c_int, _OUT, c_void_p, c_char_p, _ERR),
    "bal_probes_forget": (c_int, c_void_p, _ID, POINTER(c_uint64), _ERR),
    "bal_ask": (
        c_int, _OUT, POINTER(c_bool), c_void_p, _ID, c_void_p, POINTER(bal_ask_options),
        _ERR,
    ),
    "bal_bisect": (
        c_int, POINTER(bal_bisected), c_void_p, _ID, POINTER(bal_bisect_options), _ERR,
    ),
    "bal_behaviour_compare": (
        c_int, POINTER(bal_behaviour), c_void_p, c_void_p, bal_probe_row_fn, c_void_p,
        _ERR,
    ),
    "bal_behaviour_find": (c_int, _OUT, _OUT, c_void_p, _ID, c_char_p, _ERR),
    "bal_wdelta_open": (c_int, _OUT, c_char_p, _ERR),
    "bal_wdelta_info_get": (None, POINTER(bal_wdelta_info), c_void_p),
    "bal_wdelta_at": (None, POINTER(bal_wdelta_row), c_void_p, c_size_t),
    "bal_wdelta_free": (None, c_void_p),
    "bal_wdelta_verify": (
        c_int, _OUT, c_size_t, c_void_p, c_void_p, POINTER(c_char_p), _ERR,
    ),
    "bal_model_from_wdelta": (c_int, _OUT, c_void_p, _OUT, c_size_t, _ERR),
    "bal_wdelta_save": (
        c_int, c_char_p, c_void_p, c_void_p, POINTER(bal_wdelta_options),
        POINTER(bal_wdelta_saved), c_void_p, _ERR,
    ),
    "bal_wdelta_compare": (
        c_int, c_void_p, c_void_p, c_void_p, c_void_p, bal_wdelta_quality_fn, c_void_p,
        _ERR,
    ),
    "bal_grant": (c_int, c_void_p, _ID, c_char_p, bal_grant_fn, c_void_p, _ERR),
    "bal_revoke": (
        c_int, c_void_p, _ID, c_char_p, POINTER(c_uint64), bal_view_fn, c_void_p, _ERR,
    ),
    "bal_grant_each": (c_int, c_void_p, bal_grant_fn, c_void_p, _ERR),
    "bal_key_generate": (c_int, _OUT, _ERR),
    "bal_key_load": (c_int, _OUT, c_char_p, _ERR),
    "bal_key_environment": (c_int, _OUT, _ERR),
    "bal_key_id": (c_char_p, c_void_p),
    "bal_key_public": (c_char_p, c_void_p),
    "bal_key_write": (c_int, c_void_p, c_char_p, _ERR),
    "bal_key_free": (None, c_void_p),
    "bal_key_trust": (c_int, c_void_p, c_void_p, _ERR),
    "bal_forget": (c_int, _OUT, c_void_p, POINTER(bal_forget_options), _ERR),
    "bal_forget_finish": (c_int, c_void_p, c_void_p, bal_pending_fn, c_void_p, _ERR),
    "bal_proof_open": (c_int, _OUT, c_void_p, c_char_p, _ERR),
    "bal_proof_load": (c_int, _OUT, c_char_p, _ERR),
    "bal_proof_info_of": (POINTER(bal_proof_info), c_void_p),
    "bal_proof_views": (c_int, c_void_p, bal_view_fn, c_void_p, _ERR),
    "bal_proof_retained": (c_int, c_void_p, bal_retained_fn, c_void_p, _ERR),
    "bal_proof_free": (None, c_void_p),
    "bal_proof_each": (c_int, c_void_p, c_void_p, bal_proof_fn, c_void_p, _ERR),
    "bal_proof_verify": (
        c_int, c_void_p, c_void_p, c_void_p, bal_finding_fn, c_void_p,
        POINTER(bal_verdict), _ERR,
    ),
    "bal_proof_bundle": (c_int, POINTER(c_char_p), c_void_p, c_void_p, _ERR),
    "bal_proof_checkpoint": (c_int, POINTER(c_char_p), c_void_p, c_void_p, _ERR),
    "bal_proof_prove": (
        c_int, POINTER(c_char_p), c_void_p, c_void_p, c_uint64, c_uint64, _ERR,
    ),
    "bal_text_free": (None, c_void_p),
    "bal_exported": (c_int, c_void_p, _ID, c_char_p, _ERR),
    "bal_stream_open": (c_int, _OUT, c_void_p, _ERR),
    "bal_stream_size": (c_uint64, c_void_p),
    "bal_stream_read": (c_int, c_void_p, c_uint64, c_void_p, c_size_t, _ERR),
    "bal_stream_free": (None, c_void_p),
    "bal_engine_count": (c_size_t,),
    "bal_engine_at": (POINTER(bal_engine_info), c_size_t),
    "bal_engine_find": (POINTER(bal_engine_info), c_char_p),
    "bal_preflight": (
        c_int, c_void_p, POINTER(bal_serving_options), bal_preflight_fn, c_void_p, _ERR,
    ),
    "bal_lora_adapt": (
        c_int, _OUT, c_void_p, POINTER(bal_serving_options), bal_preflight_fn, c_void_p,
        _ERR,
    ),
    "bal_gguf_write": (c_int, c_char_p, c_void_p, c_void_p, _ERR),
    "bal_export": (
        c_int, c_void_p, c_char_p, POINTER(bal_export_options), bal_exported_fn,
        c_void_p, _ERR,
    ),
    "bal_export_prune": (
        c_int, c_void_p, c_char_p, _ID, c_size_t, bal_pruned_fn, c_void_p, _ERR,
    ),
    "bal_loaded_put": (c_int, c_void_p, POINTER(bal_loaded), _ERR),
    "bal_loaded_each": (c_int, c_void_p, _ID, bal_loaded_fn, c_void_p, _ERR),
    "bal_loaded_drop": (c_int, c_void_p, c_char_p, c_char_p, _ERR),
    "bal_store_changes": (c_int, POINTER(c_uint64), c_void_p, _ERR),
    "bal_tenant_store_id": (c_int, c_char_p, c_void_p, _ERR),
    "bal_fsck": (
        c_int, c_void_p, c_void_p, POINTER(bal_fsck_options), bal_problem_fn, c_void_p,
        POINTER(bal_fsck_report), _ERR,
    ),
    "bal_store_copy": (
        c_int, c_void_p, c_char_p, c_char_p, POINTER(bal_copy_report), _ERR,
    ),
    "bal_gc": (c_int, c_void_p, c_void_p, c_uint, POINTER(bal_gc_report), _ERR),
    "bal_stats_codecs": (c_int, c_void_p, c_void_p, bal_codec_stats_fn, c_void_p, _ERR),
    "bal_stats_get": (c_int, POINTER(bal_stats), c_void_p, c_void_p, _ERR),
}


def _find() -> str:
    """The library's path: BALLAST_LIBRARY, beside the package, or the system's."""
    named = os.environ.get("BALLAST_LIBRARY")
    if named:
        return named
    beside = Path(__file__).parent / "_lib"
    for name in ("libballast.so", "libballast.so.0", "libballast.dylib"):
        if (beside / name).exists():
            return str(beside / name)
    return ctypes.util.find_library("ballast") or "libballast.so.0"


def _load() -> ctypes.CDLL:
    path = _find()
    try:
        found = ctypes.CDLL(path)
        for name, (result, *arguments) in SIGNATURES.items():
            function = getattr(found, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"libballast cannot be used: {error}. "
            "BALLAST_LIBRARY names the library's path"
        ) from error
    return found


lib = _load()

# ---- text --------------------------------------------------------------------


def encode(text: str | None) -> bytes | None:
    """UTF-8 for C, which ends at a NUL: text with one inside is refused."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"a text is needed, not {type(text).__name__}")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise errors.Usage(f"not text that UTF-8 has: {error.reason}") from None
    if b"\0" in data:
        raise errors.Usage("a text with a NUL in it")
    return data


def decode(data: bytes | None) -> str:
    """Text of C; bytes that are none are shown as replacement characters."""
    return "" if data is None else data.decode("utf-8", "replace")


def maybe(data: bytes | None) -> str | None:
    """As :func:`decode`, and None for NULL."""
    return None if data is None else decode(data)


def path_bytes(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """A file's name for C."""
    data = os.fsencode(path)
    if b"\0" in data:
        raise errors.Usage("a path with a NUL in it")
    return data


def whole(name: str, value: int, below: int) -> int:
    """A count for C, which would wrap it. Usage: negative, or too large."""
    count = operator.index(value)
    if not 0 <= count < below:
        raise errors.Usage(f"{name}: {count} is out of range")
    return count


def texts(values: list[bytes]) -> Any:
    """An array of C strings; it must live as long as it is used."""
    return (c_char_p * max(len(values), 1))(*values)


def parse_id(hex_digits: str) -> bal_id:
    """64 hex digits as an id. Usage: it is not one."""
    out = bal_id()
    call(lib.bal_id_parse, byref(out), encode(hex_digits))
    return out


def hex_id(of: Any) -> str:
    """An id, or a pointer to one, as 64 hex digits."""
    value = of if isinstance(of, bal_id) else of.contents
    return bytes(value.bytes).hex()


# ---- errors ------------------------------------------------------------------


def exception(error: bal_error, code: int) -> errors.Error:
    """The exception for what a call filled in."""
    row = lib.bal_code_find(code).contents
    kind = getattr(errors, row.python.decode(), errors.Error)
    made: errors.Error = kind(
        decode(error.text),
        code=row.word.decode(),
        exit=row.exit,
        hint=decode(error.hint),
    )
    return made


def call(function: Any, *args: Any) -> None:
    """Call what can fail, with a bal_error behind args; raise what it says."""
    error = bal_error()
    code = function(*args, byref(error))
    if code:
        raise exception(error, code)


def text_of(function: Any, *args: Any) -> str:
    """As :func:`call` of what makes a text; returns a copy."""
    pointer = create(function, *args)
    try:
        return decode(ctypes.cast(pointer, c_char_p).value)
    finally:
        lib.bal_text_free(pointer)


def create(function: Any, *args: Any) -> int:
    """As :func:`call` of what makes something; returns the pointer to it."""
    out = c_void_p()
    call(function, byref(out), *args)
    return out.value or 0


# ---- callbacks, progress, signals --------------------------------------------

Progress = Callable[[int, int], object]
Handler = Callable[[int, "FrameType | None"], Any]

_DEFERRED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)


class Operation:
    """One call into C that calls back, or that takes its time.

    Python would run a signal's handler at the first instruction of a callback,
    where nothing can catch what it raises: ctypes prints and drops it. So in the
    main thread handlers only note their signal while the operation lasts, and run
    when the library asks whether to go on.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self.error: BaseException | None = None
        self._outer: Operation | None = None
        self._handlers: dict[int, Handler] = {}
        self._noted: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Operation:
        self._outer = getattr(_current, "operation", None)
        _current.operation = self
        if threading.current_thread() is threading.main_thread():
            self._defer()
        return self

    def __exit__(self, kind: Any, value: BaseException | None, trace: Any) -> None:
        _current.operation = self._outer
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        try:
            self._run_handlers()
        finally:
            self._handlers.clear()
        if self.error is not None and (
            value is None or isinstance(value, errors.Error)
        ):
            raise self.error from None

    def _defer(self) -> None:
        for number in _DEFERRED:
            handler = signal.getsignal(number)
            if callable(handler) and getattr(handler, "__func__", None) is not (
                Operation._note
            ):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append((number, frame))

    def _run_handlers(self) -> None:
        while self._noted:
            number, frame = self._noted.pop(0)
            self._handlers[number](number, frame)

    def carry(self, function: Callable[..., object], *args: Any) -> int:
        """Call function; 1 where it raised, which is kept, or returned True."""
        try:
            return 1 if function(*args) is True else 0
        except BaseException as error:
            if self.error is None:
                self.error = error
            return 1

    def watch(self, done: int, total: int) -> int:
        """Go on? 0: yes."""
        if self._interrupted():
            return 1
        if self.progress is None:
            return 0
        # Its handler runs now if a signal came while that was told.
        return self.carry(self._tell, done, total) or self._interrupted()

    def _interrupted(self) -> int:
        for operation in (self, self._outer):
            if operation is not None and operation._noted:
                return operation.carry(operation._run_handlers)
        return 0

    def _tell(self, done: int, total: int) -> bool:
        return self.progress is not None and self.progress(done, total) is False


_current = threading.local()


def _watch(_ctx: int | None, done: int, total: int) -> int:
    operation: Operation | None = getattr(_current, "operation", None)
    return 0 if operation is None else operation.watch(done, total)


WATCH = bal_watch_fn(_watch)


def walk(
    kind: Any,
    row: Callable[..., object],
    function: Any,
    *args: Any,
    behind: tuple[Any, ...] = (),
    progress: Progress | None = None,
) -> None:
    """Call a function that ends in (fn, ctx, *behind, err), with row as its fn.

    row gets what C gives but ctx, and must copy what it keeps. True ends the walk.
    It must not commit, merge, reset, check or collect: gather rows first.
    """
    operation = Operation(progress)

    def each(_ctx: int | None, *given: Any) -> int:
        return operation.carry(row, *given)

    with operation:
        call(function, *args, kind(each), None, *behind)


def gather(
    kind: Any,
    row: Callable[..., Any],
    function: Any,
    *args: Any,
    behind: tuple[Any, ...] = (),
    progress: Progress | None = None,
) -> list[Any]:
    """What row makes of each thing that :func:`walk` meets."""
    rows: list[Any] = []

    def each(*given: Any) -> None:
        rows.append(row(*given))

    walk(kind, each, function, *args, behind=behind, progress=progress)
    return rows


# ---- handles -----------------------------------------------------------------

_generation = 0


def _forked() -> None:
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Box:
    """A pointer with its owners: freed when nobody uses it any more.

    ``close`` is the owner's word that no call may begin; those that run, and
    what was made of it, keep it until they end.
    """

    __slots__ = ("_closed", "_generation", "_holds", "_lock", "_users", "free", "what")

    def __init__(
        self, what: str, free: Callable[[], object], holds: tuple[Box, ...] = ()
    ) -> None:
        self.what = what
        self.free = free
        self._generation = _generation
        self._closed = False
        self._users = 1
        # A collection may end another owner while the lock is held.
        self._lock = threading.RLock()
        for box in holds:
            box.retain()
        self._holds = holds

    @property
    def closed(self) -> bool:
        """No call may begin any more."""
        return self._closed

    def retain(self) -> None:
        """One more user. ValueError: closed. RuntimeError: of another process."""
        if self._generation != _generation:
            raise RuntimeError(
                f"the {self.what} was opened before a fork: open it again in "
                "this process"
            )
        with self._lock:
            if self._closed:
                raise ValueError(f"the {self.what} is closed")
            self._users += 1

    def release(self) -> None:
        """One user less."""
        if self._generation != _generation:
            return  # the parent's: its threads and locks are not in this process
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self.free()
            for box in self._holds:
                box.release()

    def close(self) -> None:
        """The owner is done with it. Again: nothing."""
        if self._generation != _generation:
            self._closed = True
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.release()


def not_copied(what: str) -> TypeError:
    """What pickling or copying a handle raises."""
    return TypeError(
        f"a {what} is open in this process alone and cannot be copied or pickled: "
        "open it again where it is needed"
    )


class Handle:
    """An object of the library. ``close`` frees it, as leaving ``with`` does, as
    does forgetting it."""

    _box: Box

    def __reduce__(self) -> NoReturn:
        raise not_copied(self._box.what)

    def _own(
        self, what: str, free: Callable[[], object], *holds: Box
    ) -> None:
        self._box = Box(what, free, holds)
        self._finalizer = weakref.finalize(self, self._box.close)

    @property
    def closed(self) -> bool:
        """True once :meth:`close` was called."""
        return self._box.closed

    def close(self) -> None:
        """Free it as soon as no call uses it. May be called again."""
        self._finalizer()

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        self._box.retain()
        try:
            yield
        finally:
            self._box.release()


# ---- what the library has to say ----------------------------------------------

_logger = logging.getLogger("ballast")


def _log(_ctx: int | None, level: int, area: bytes, line: bytes) -> None:
    """To the logger "ballast"; a record's ``area`` is the part of the library."""
    with contextlib.suppress(Exception):
        number = logging.WARNING if level else logging.DEBUG
        if _logger.isEnabledFor(number):
            name = decode(area)
            more = {"area": name}
            _logger.log(number, "%s: %s", name, decode(line), extra=more)


LOG = bal_log_fn(_log)
lib.bal_log_to(LOG, None)
