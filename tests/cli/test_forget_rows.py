"""Deletion and the rows it goes by: what it takes of them, what it leaves in
none, and that it goes by none that somebody has changed."""

import sqlite3

import pytest
from support import Store, files, model


@pytest.fixture(name="store")
def made_store(tmp_path):
    """c0 <- c1 <- c2 on main; a view of a and b."""
    store = Store(tmp_path)
    for number in range(3):
        model(tmp_path / f"m{number}", (number, 2, 3, 4.5))
        store("commit", f"./m{number}", "-m", f"c{number}")
    for name, values in (("a", (1, 0, 1)), ("b", (0, 1, 1))):
        model(tmp_path / name, values)
        store("commit", f"./{name}", "-m", name, "--ref", name)
    store("merge", "a", "b", "-m", "view", "--ref", "v")
    return store


def change(store, sql):
    db = sqlite3.connect(store.root / "graph.db")
    with db:
        db.executescript(sql)
    db.close()


def blocks(store):
    return {name for name in files(store.root / "blocks") if "/" in name}


# ---- rows that somebody has changed -----------------------------------------

@pytest.mark.parametrize("spec", ["main", "main~1", "v", None], ids=str)
@pytest.mark.parametrize("sql", [
    "DELETE FROM uses", "DELETE FROM inputs",
    "DELETE FROM uses WHERE block = (SELECT MAX(block) FROM uses)",
    "DELETE FROM uses WHERE block = (SELECT MIN(block) FROM uses)",
    "INSERT INTO uses SELECT m.number, b.number FROM manifests m, blocks b "
    "WHERE NOT EXISTS (SELECT 1 FROM uses u WHERE u.manifest = m.number "
    "AND u.block = b.number)",
    "UPDATE inputs SET tenant = 'other'",
    "UPDATE inputs SET input_manifest = input_commit",
    "UPDATE manifests SET body = x'7b7d'",
    "UPDATE manifests SET kind = 'weights', body = (SELECT body FROM manifests "
    "WHERE number = 4); DELETE FROM inputs; CREATE TABLE old AS "
    "SELECT block FROM uses WHERE manifest = 4; DELETE FROM uses; "
    "INSERT INTO uses SELECT m.number, o.block FROM manifests m, old o; "
    "DROP TABLE old"])
def test_it_goes_by_no_rows_that_are_not_what_manifests_say(store, spec, sql):
    words = ["forget", *([spec] if spec else []), "--reason", "r"]
    before = blocks(store)
    change(store, sql)
    if "inputs" in sql[:20] and spec in ("main", "main~1"):
        store(*words)  # of a manifest that has none
        return
    error = store("--json", *words, code=6).error
    assert "fsck" in error["hint"]
    assert error["code"] == "corrupt"
    assert blocks(store) == before and not store("proofs").out
    store("--json", *words, "--dry-run", code=6)


def test_a_block_without_a_user_goes_too(store):
    """As a writer of another kind may leave it: row and bytes."""
    (spare,) = [block for block in store(
        "--json", "forget", "a", "--reason", "r", "--dry-run").json["plan"][
            "blocks"]]
    keep = next((store.root / "blocks" / "acme").rglob(spare)).read_bytes()
    rows = sqlite3.connect(store.root / "graph.db")
    row = rows.execute("SELECT * FROM blocks WHERE id = ?",
                       (bytes.fromhex(spare),)).fetchone()
    rows.close()
    store("forget", "a", "--reason", "r")
    path = store.root / "blocks" / "acme" / spare[0] / spare
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(keep)
    rows = sqlite3.connect(store.root / "graph.db")
    with rows:
        rows.execute(f"INSERT INTO blocks VALUES ({','.join('?' * len(row))})",
                     row)
    rows.close()
    got = store("--json", "forget", "main~1", "--reason", "r").json
    assert spare in got["statement"]["predicate"]["blocks"]
    assert not path.exists()
    store("fsck")


# ---- what is left in none ---------------------------------------------------

@pytest.mark.parametrize("suffix", ["", "~1", "^", "@{0}"])
def test_the_name_of_a_ref_that_went_is_in_no_move_of_another(store, suffix):
    name = "Zz-secret"
    for number in range(2):
        store("commit", f"./m{number}", "-m", "its own", "--ref", name)
    store("commit", "./m2", "-m", "x", "--ref", name + "er")
    store("reset", "other", name + suffix)
    store("reset", "other", "main")
    store("reset", "longer", name + "er")
    store("reset", name, "a")
    store("forget", "a", "--reason", "r")
    assert [move["message"] for move in
            store("--json", "reflog", "other").lines] == ["main", ""]
    (kept,) = store("--json", "reflog", "longer").lines
    assert kept["message"] == name + "er"
    store("reset", "longer", "main")
    store("forget", name + "er", "--reason", "r")
    for file, data in files(store.root).items():
        assert name.encode() not in data, file
    store("fsck")


def test_all_of_the_view_cache_goes_whatever_it_stood_on(store):
    store("checkout", "v", "-o", "out")
    other = Store(store.path, tenant="other")
    for name in ("a", "b"):
        other("commit", f"./{name}", "-m", name, "--ref", name)
    other("merge", "a", "b", "-m", "view", "--ref", "v")
    other("checkout", "v", "-o", "theirs")
    cached = [path for path in (store.root / "cache").glob("*/*/*")]
    assert {path.parts[-3] for path in cached} == {"acme", "other"}
    got = store("--json", "forget", "main", "--reason", "r").json
    assert got["statement"]["predicate"]["cache"] == []
    assert not any(path.exists() for path in cached)
    store("checkout", "v", "-o", "again")
    assert files(store.path / "again")["model.safetensors"] == (
        files(store.path / "out")["model.safetensors"])


# ---- pages of history -------------------------------------------------------

@pytest.fixture(name="long", scope="module")
def made_long(tmp_path_factory):
    """As many commits as two pages of a history have, and three."""
    store = Store(tmp_path_factory.mktemp("long"))
    model(store.path / "m")
    for number in range(515):
        store("commit", "./m", "-m", f"c{number}", "--allow-empty")
    return store


@pytest.mark.parametrize("count", [1, 255, 256, 257, 511, 512, 513, 515, 600])
def test_a_history_is_told_whole_and_in_order(long, count):
    got = [row["message"] for row in
           long("--json", "log", "-n", str(count)).lines]
    assert got == [f"c{number}" for number in range(514, -1, -1)][:count]


def test_a_history_is_told_whole_without_a_limit(long):
    assert len(long("log").out.splitlines()) == 515
    assert len(long("reflog").out.splitlines()) == 515
