"""With BALLAST_TEST_DB, stores are in PostgreSQL; see support.DATABASE."""

import sqlite3
import subprocess

import pytest
from support import DATABASE, SCHEMAS


def pytest_configure():
    """What looks into SQLite's file has nothing to look into."""
    if DATABASE:
        sqlite3.connect = lambda *_, **__: pytest.skip("looks into SQLite")


def pytest_sessionfinish():
    if not DATABASE:
        return
    find = ("SELECT format('DROP SCHEMA %I CASCADE;', nspname) "
            f"FROM pg_namespace WHERE nspname LIKE '{SCHEMAS[:-1]}\\_%'")
    ask = ["psql", "-qAt", "-d", DATABASE]
    drop = subprocess.run([*ask, "-c", find], check=True, capture_output=True)
    # One at a time: a transaction of thousands of tables has too many locks.
    subprocess.run(ask, input=drop.stdout, check=True, capture_output=True)
