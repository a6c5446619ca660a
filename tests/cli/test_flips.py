"""A sample of tests/torture/test_flips.py: bits of small files, and every
column of one row of every table."""

import sys

import pytest

from support import TREE

sys.path.insert(0, str(TREE / "tests" / "torture"))
from flips import Subject, change, columns, flip  # noqa: E402


@pytest.fixture(name="subject", scope="module")
def made_subject(tmp_path_factory):
    return Subject(tmp_path_factory.mktemp("flips"))


def test_a_changed_bit_of_a_file_is_named_or_harmless(subject):
    missed = []
    for number, file in enumerate(subject.files()):
        bits = 8 * file.stat().st_size
        missed += flip(subject, file, range(number, bits, bits // 16 | 1))
    assert not missed


def test_a_changed_column_of_any_table_is_named_or_harmless(subject):
    missed, looked = [], set()
    for table, column, kind, count in columns(subject):
        if count:
            missed += change(subject, table, column, kind, count // 2)
            looked.add(table)
    assert not missed
    assert {"blocks", "commits", "grants", "manifests", "moves", "inputs",
            "refs", "settings", "tenants", "uses"} <= looked
