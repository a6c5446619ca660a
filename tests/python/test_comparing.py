"""A diff is the program's document, and says what the program prints."""

import json
import math
import sys

import numpy
import pytest

import ballast


def weights(seed=0, n=4):
    rng = numpy.random.default_rng(seed)
    return {f"layers.{i}.w": rng.standard_normal((8, 8), "f4") for i in range(n)}


def documents(got, program, store, *args):
    """Ours and the program's."""
    text = program("--json", "--tenant", "acme", "diff", *args, root=store.root)
    want = json.loads(text)
    assert want.pop("schema") == "ballast/diff/1"
    return got.to_dict(), want


def test_diff_of_adapters_compares_their_maps(store, program):
    rng = numpy.random.default_rng(3)
    front = "base_model.model.model.layers.7.self_attn.q_proj"
    down, up = rng.standard_normal((2, 6), "f4"), rng.standard_normal((5, 2), "f4")
    config = {
        "peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"],
    }  # fmt: skip
    turned = numpy.array([[0, 1], [-1, 0]], "f4")
    for ref, (a, b) in {
        "one": (down, up),
        "same": (turned @ down, up @ turned.T),
        "other": (down, 2 * up),
    }.items():
        factors = {f"{front}.lora_A.weight": a, f"{front}.lora_B.weight": b}
        store.commit("acme", factors, config=config, message="m", ref=ref)
    same = store.diff("acme", "one", "same")
    assert same.maps["relative_change"] == pytest.approx(0, abs=1e-6)
    assert same.relative_change > 0.1
    other = store.diff("acme", "one", "other")
    (module,) = other.maps["modules"]
    norm = 2 * numpy.linalg.norm(up.astype("f8") @ down)
    assert module["norm_a"] == pytest.approx(norm, rel=1e-5)
    assert module["difference"] == pytest.approx(norm, rel=1e-5)
    assert other.layers[0].name == "7" and other.cells[0].name == "self_attn.q_proj"
    for ref, got in (("same", same), ("other", other)):
        ours, want = documents(got, program, store, "one", ref)
        assert ours == want
        text = program("--tenant", "acme", "diff", "one", ref, root=store.root)
        assert repr(got) == text.rstrip("\n")


def test_diff_by_layers_and_modules_is_what_numpy_says(store):
    a = {
        f"model.layers.{i}.{part}.weight": numpy.full((3, 3), i + 1.0)
        for i in range(3)
        for part in ("mlp.up_proj", "self_attn.q_proj")
    }
    a["lm_head.weight"] = numpy.ones((2, 2))
    b = {name: tensor * (1 + 0.1 * ("mlp" in name)) for name, tensor in a.items()}
    got = store.diff("acme", a, b)

    def relative(part):
        one = numpy.concatenate([a[name].ravel() for name in a if part in name])
        two = numpy.concatenate([b[name].ravel() for name in a if part in name])
        return pytest.approx(numpy.linalg.norm(two - one) / numpy.linalg.norm(one))

    assert [row.name for row in got.layers] == ["0", "1", "2"]
    for row in got.layers:
        assert row.relative == relative(f"layers.{row.name}.")
        assert (row.tensors, row.changed, row.layer) == (2, 1, None)
    assert {row.name: row.relative for row in got.modules} == {
        "lm_head": 0,
        "mlp.up_proj": relative("mlp"),
        "self_attn.q_proj": 0,
    }
    found = {(row.layer, row.name): row.relative for row in got.cells}
    assert len(found) == len(got.cells) == 7
    assert found[("1", "mlp.up_proj")] == relative("layers.1.mlp")
    assert found[("", "lm_head")] == 0


def test_diff_against_a_base_is_that_of_the_weights(store, program, tmp_path):
    base = weights(0)
    tuned = {name: tensor * 1.5 for name, tensor in base.items()}
    store.commit("acme", base, message="m", ref="base")
    store.delta("acme", tuned, base="base", message="m", ref="delta")
    store.commit("acme", tuned, message="m", ref="tuned")
    got = store.diff("acme", "base", "delta", against_base="base")
    assert got.relative_change == pytest.approx(0.5)
    ours, want = documents(
        got, program, store, "base", "delta", "--against-base", "base"
    )
    assert ours == want
    same = store.diff("acme", "delta", "tuned", against_base="base")
    assert not same.differs
    with pytest.raises(ballast.Usage):
        store.diff("acme", "delta", "tuned")
    with pytest.raises(ballast.Corrupt):
        store.diff("acme", "delta", "tuned", against_base="tuned")


def test_diff_shows_each_probe_when_asked(store, program):
    class Runner:
        def __init__(self, answer):
            self.answer = answer

        def run(self, tensors, config, base_model, probes):
            return [f"{self.answer} <{i % 2 and self.answer}>" for i in range(3)]

    probes = ballast.ProbeSet.of("a", "b", "c")
    for i, answer in enumerate(("yes", "no")):
        store.commit("acme", weights(i), message="m")
        ballast.fingerprint(store, "acme", "main", probes, Runner(answer))
    got = store.diff("acme", "main~1", "main", probes=True)
    ours, want = documents(got, program, store, "main~1", "main", "--probes")
    assert ours == want
    before = [row["before"] for row in got.probes]
    assert before == ["yes <0>", "yes <yes>", "yes <0>"]
    assert "yes &lt;yes&gt;" in got._repr_html_()
    assert store.diff("acme", "main~1", "main").probes is None


# ---- what is printed of answers ------------------------------------------------

TELLS = """
import json, sys
rows = json.load(open(sys.argv[1]))
for line in sys.stdin:
    probe = json.loads(line)
    said = rows[probe["prompt"]]
    if isinstance(said, list):
        said = said.pop(0)
        json.dump(rows, open(sys.argv[1], "w"))
    print(json.dumps(dict(said, id=probe["id"])))
"""


def said(text, p=None):
    """An answer; with p, one token that has this probability."""
    if p is None:
        return {"output": text}
    top = {text: math.log(p), "other": math.log(1 - p)}
    token = {"token": text, "logprob": math.log(p), "top": top}
    return {"output": text, "logprobs": [token]}


def ask(store, tmp_path, ref, rows, repeat, fields):
    (tmp_path / "tells.py").write_text(TELLS)
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    lines = [json.dumps({"prompt": prompt, **fields}) for prompt in rows]
    (tmp_path / "probes.jsonl").write_text("\n".join(lines))
    probes = ballast.ProbeSet.open(tmp_path / "probes.jsonl")
    command = [sys.executable, tmp_path / "tells.py", tmp_path / "rows.json"]
    runner = ballast.runners.ProcessRunner(command, repeat=repeat)
    ballast.fingerprint(store, "acme", ref, probes, runner)


OUTCOMES = {
    # what it is: answers before, after, times asked, more of each probe, a line
    "moved": ({"q": said("a"), "r": said("b")}, {"q": said("A"), "r": said("b")}, 1, {},
              "probes: 1 of 2 moved (similarity"),
    "unobserved": ({"q": said("a")}, {"q": said("a")}, 1, {}, "UNOBSERVED CHANGE"),
    "log-probabilities alone": (
        {f"q{i}": said("a", 0.5 + i / 50) for i in range(9)},
        {f"q{i}": said("a", 0.9) for i in range(9)}, 1, {},
        "seen by log-probabilities alone"),
    "endless": ({"q": said("a", 0.5)}, {"q": said("a", 1e-300)}, 1, {},
                "KL divergence"),
    "noise": ({"q": [said("a"), said("b")]}, {"q": [said("a"), said("a")]}, 2, {},
              "answered in several ways"),
    "noise of log-probabilities": (
        {"q": [said("a", 0.5), said("a", 0.6)]},
        {"q": [said("a", 0.9), said("a", 0.8)]}, 2, {}, "noise "),
    "graded": ({f"q{i}": said("A") for i in range(8)},
               {f"q{i}": said("AB"[i % 2]) for i in range(8)}, 1,
               {"reference": "A", "choices": ["A", "B"]}, "right answers: 8 of 8"),
}  # fmt: skip


@pytest.mark.parametrize("moves", [True, False], ids=["moved", "same"])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_probes_tell_is_said_as_the_program_says_it(
    store, program, tmp_path, outcome, moves
):
    before, after, repeat, fields, line = OUTCOMES[outcome]
    store.commit("acme", weights(1), message="m", ref="a")
    store.commit("acme", weights(2 if moves else 1), message="other", ref="b")
    ask(store, tmp_path, "a", before, repeat, fields)
    ask(store, tmp_path, "b", after, repeat, fields)
    got = store.diff("acme", "a", "b")
    ours, want = documents(got, program, store, "a", "b")
    assert ours == want
    for name, value in want.items():
        if not isinstance(value, list | dict):
            assert getattr(got, name) == value, name
    text = program("--tenant", "acme", "diff", "a", "b", root=store.root)
    assert repr(got) == text.rstrip("\n")
    assert line in repr(got) or not moves
    for told in repr(got).splitlines()[1:]:
        assert told.strip().split(":")[0] in got._repr_html_().replace("&#x27;", "'")
