"""Every bit of every stored file, every column of every row; see flips.py."""

from flips import Subject, change, columns, flip


def test_every_bit_of_every_file_is_named_or_harmless(tmp_path):
    subject = Subject(tmp_path)
    missed = []
    for file in subject.files():
        missed += flip(subject, file, range(8 * file.stat().st_size))
    assert not missed


def test_every_column_of_every_row_is_named_or_harmless(tmp_path):
    subject = Subject(tmp_path)
    missed = []
    for table, column, kind, count in columns(subject):
        for row in range(count):
            missed += change(subject, table, column, kind, row)
    assert not missed
