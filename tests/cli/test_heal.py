"""What fsck tells apart and mends: rows that do not fit their bytes, blocks put
again from a folder, views that lost an input with and without a reason."""

import pytest

from support import Store, adapter, f32, files, model, save
from test_damage import change

ROW_CHANGES = {
    "size": "size = size + 4",
    "stored": "stored = stored + 1",
    "codec": "codec = 1 - min(codec, 1)",
    "check": "check_hash = zeroblob(32)",
}


def kinds(result):
    return [line.split()[0] for line in result.out.splitlines()]


@pytest.mark.parametrize("column", ROW_CHANGES)
def test_a_row_that_does_not_fit_its_block_is_renewed(tmp_path, column):
    store = Store(tmp_path)
    store("commit", model(tmp_path / "m"), "-m", "m")
    change(store, f"UPDATE blocks SET {ROW_CHANGES[column]}")
    assert "wrong-block-row" in kinds(store("fsck", code=1))
    store("fsck", "--repair", code=None)
    assert store("fsck").out == "consistent\n"


def test_a_swapped_block_is_told_where_both_are_whole(tmp_path):
    store = Store(tmp_path)
    store("commit", model(tmp_path / "m"), "-m", "m")
    one, two = sorted(store.root.glob("blocks/acme/*/*"))[:2]
    text = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(text)
    told = store("fsck", code=1)
    assert one.name in told.out and two.name in told.out


# ---- blocks put again -------------------------------------------------------


def large(path, changed=None):
    """Tensors that have blocks of their own, and many that share them."""
    tensors = {}
    for number in range(3):
        values = [number + n % 97 / 8 for n in range(40000)]
        if changed == number:
            values[7] += 1
        tensors[f"large{number}"] = ("F32", (40000,), f32(*values))
    for number in range(60):
        values = [number * 7 + n for n in range(300)]
        tensors[f"w{number:02}"] = ("F32", (3, 100), f32(*values))
        tensors[f"h{number:02}"] = ("U8", (1200,), f32(*values))
    save(path / "model.safetensors", tensors, {"format": "pt"})
    (path / "config.json").write_text('{"large": true}')
    return path


@pytest.fixture(name="lost")
def lost_store(tmp_path):
    """A store of small blocks, each of which is lost one way or another."""
    store = Store(tmp_path)
    store("init", "--block-size", "65536")
    store("commit", large(tmp_path / "m"), "-m", "m")
    for number, block in enumerate(sorted(store.root.glob("blocks/acme/*/*"))):
        text = block.read_bytes()
        if number % 3 == 0:
            block.unlink()
        elif number % 3 == 1:
            block.write_bytes(text[:-1])
        else:
            block.write_bytes(text[:-1] + bytes([text[-1] ^ 4]))
    assert len(kinds(store("fsck", code=1))) > 8
    return store


def test_lost_blocks_are_put_again_from_the_folder(lost):
    told = lost("--json", "fsck", "--repair", "--from", "m").json
    assert told["ok"] and not told["problems"]
    assert {row["kind"] for row in told["expected"]} == {"healed-block"}
    assert lost("fsck").out == "consistent\n"
    lost("checkout", "main", "-o", "out")
    assert (files(lost.path / "out")["model.safetensors"] ==
            files(lost.path / "m")["model.safetensors"])


def test_what_the_folder_has_otherwise_is_not_put_and_told(lost):
    large(lost.path / "other", changed=1)
    told = lost("--json", "fsck", "--repair", "--from", "other", code=1).json
    assert len(told["problems"]) == 1
    assert "is not what was committed" in told["problems"][0]["detail"]
    assert lost("fsck", "--repair", "--from", "m").out == (
        "healed 1 block\nconsistent\n")


def test_another_model_heals_nothing_and_that_is_told(lost):
    model(lost.path / "other")
    told = lost("fsck", "--repair", "--from", "other", code=1).out
    assert "healed" not in told
    for line in told.splitlines():
        assert "has no such tensor" in line or "not what was" in line, line


def test_what_a_delta_holds_as_a_difference_is_not_healed(tmp_path):
    store = Store(tmp_path)
    large(tmp_path / "base")
    large(tmp_path / "tuned", changed=1)
    store("delta", "tuned", "--base", "base", "-m", "d")
    for block in store.root.glob("blocks/acme/*/*"):
        block.unlink()
    told = store("fsck", "--repair", "--from", "tuned", code=1)
    assert "part of a difference" in told.out


@pytest.mark.parametrize("folder", ["none", "empty", "store"])
def test_a_folder_that_is_no_model_is_one_clear_line(lost, folder):
    (lost.path / "empty").mkdir()
    told = lost("fsck", "--repair", "--from", folder, code=None)
    assert told.code not in (0, 1) and told.out == ""
    assert told.err.startswith("ballast: ") and folder in told.err
    assert told.err.count("ballast: ") == 1
    assert len(kinds(lost("fsck", code=1))) > 8


# ---- views ------------------------------------------------------------------


def shared(tmp_path):
    """An adapter of acme's, granted to zeta; zeta's view of it, and a view of
    that."""
    store = Store(tmp_path)
    store("commit", adapter(tmp_path / "a"), "-m", "a", "--ref", "a")
    store("grant", "a", "--to", "zeta")
    other = Store(tmp_path, "zeta")
    other("commit", adapter(tmp_path / "b", scale=2.0), "-m", "b", "--ref", "b")
    other("merge", "acme:a@0.5", "b@0.5", "-m", "v", "--ref", "v")
    other("merge", "v@0.5", "b@0.25", "-m", "w", "--ref", "w")
    assert store("fsck", "--all").out == "consistent\n"
    return store


def test_views_that_lost_a_grant_by_revoke_are_expected(tmp_path):
    store = shared(tmp_path)
    store("revoke", "a", "--to", "zeta")
    told = store("--json", "fsck", "--all").json
    assert told["ok"] and not told["problems"]
    lost = [row["detail"] for row in told["expected"]
            if row["kind"] == "broken-view"]
    assert len(lost) == 2 and all("granted no more" in text for text in lost)
    assert store("fsck", "--all").out == "consistent\n"


@pytest.mark.parametrize("statements", [
    ("DELETE FROM grants",),
    ("DELETE FROM moves WHERE ref = 'a'", "DELETE FROM refs WHERE name = 'a'",
     "DELETE FROM commits WHERE message = 'a'"),
], ids=["grant", "commit"])
def test_views_that_lost_an_input_without_a_trace_are_problems(tmp_path,
                                                               statements):
    store = shared(tmp_path)
    change(store, *statements)
    told = store("fsck", "--all", code=1)
    assert kinds(told).count("broken-view") == 2


def test_inputs_that_are_not_the_recipes_are_told(tmp_path):
    store = shared(tmp_path)
    change(store, "DELETE FROM inputs WHERE position = 0")
    assert "wrong-inputs" in kinds(store("fsck", "--all", code=1))
