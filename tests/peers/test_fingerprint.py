"""Fingerprints by transformers and PEFT, and diffs of them, against answers
that transformers gave by itself and numbers that numpy and scipy compute."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from transformers import AutoTokenizer

TREE = pathlib.Path(os.environ["BALLAST_TREE"])
LLAMA = TREE / "examples" / "llama"
BASE = LLAMA / "base"
ADAPTER = TREE / "tests" / "data" / "adapters" / "lora_r8_qv"
EXPECTED = json.loads((pathlib.Path(__file__).parent / "data" /
                       "llama_answers.json").read_text())["models"]
# What a ref of the store is called there.
MODELS = {"base": "base", "small": "ft_small", "large": "ft_large",
          "tone": "lora_r8_qv"}


def ballast(*words, cwd, code=0):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("BALLAST_")}
    environment["BALLAST_PYTHON"] = sys.executable
    done = subprocess.run([os.environ["BALLAST"], "--tenant", "acme",
                           *map(os.fspath, words)], cwd=cwd, env=environment,
                          text=True, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def ask(ref, *words, cwd):
    return json.loads(ballast("--json", "fingerprint", ref, "--probes",
                              LLAMA / "probes.jsonl", "--base", BASE,
                              "--max-tokens", "24", *words, cwd=cwd))


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The four models, each asked by PEFT."""
    folder = tmp_path_factory.mktemp("work")
    ballast("commit", BASE, "-m", "base", "--ref", "base", cwd=folder)
    for tuned, ref in (("ft-small", "small"), ("ft-large", "large")):
        ballast("delta", LLAMA / tuned, "--base", BASE, "-m", ref, "--ref", ref,
                cwd=folder)
    ballast("commit", ADAPTER, "-m", "tone", "--ref", "tone", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def answers(work):
    return {ref: ask(ref, "--runner", "peft", cwd=work)["outputs"]
            for ref in MODELS}


def same_as_expected(outputs, model):
    expected = EXPECTED[model]
    assert [o["output"] for o in outputs] == [e["text"] for e in expected]
    for got, want in zip(outputs, expected):
        logprobs = [t["logprob"] for t in got["tokens"]]
        np.testing.assert_allclose(logprobs, want["logprobs"], atol=2e-4)


@pytest.mark.parametrize("ref", MODELS)
def test_peft_answers_as_transformers_alone_does(answers, ref):
    same_as_expected(answers[ref], MODELS[ref])


@pytest.mark.parametrize("ref", ["base", "small", "large"])
def test_the_example_of_a_process_runner_answers_the_same(work, ref):
    command = f"{sys.executable} {TREE / 'examples' / 'ask.py'}"
    got = ask(ref, "--command", command, cwd=work)["outputs"]
    same_as_expected(got, MODELS[ref])


def test_tokens_are_called_as_the_tokenizer_calls_them(answers):
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    for got, want in zip(answers["large"], EXPECTED["ft_large"]):
        assert ([t["token"] for t in got["tokens"]] ==
                tokenizer.convert_ids_to_tokens(want["new_ids"]))


def diff(a, b, *words, cwd):
    return json.loads(ballast("--json", "diff", a, b, *words, cwd=cwd))


def test_a_change_of_answers_is_seen(work, answers):
    moved = sum(a["output"] != b["output"]
                for a, b in zip(answers["small"], answers["large"]))
    got = diff("small", "large", cwd=work)
    assert (got["probes_changed"], got["probes_total"]) == (moved, 12)
    assert moved and got["evidence"] == "answers" and not got["unobserved"]
    assert got["mean_kld"] > 0
    text = ballast("diff", "small", "large", cwd=work)
    assert f"probes: {moved} of 12 moved (similarity 0." in text


def test_without_fingerprints_the_effect_is_unknown(work):
    ballast("merge", "small", "large", "-m", "blend", "--ref", "blend", cwd=work)
    text = ballast("diff", "small", "blend", cwd=work)
    assert "behavioural effect unknown" in text


@pytest.fixture(scope="module")
def nudged(work):
    """large with one matrix off by 3 %: as a view of it and of what differs."""
    from safetensors.torch import load_file, save_file
    folder = work / "nudged"
    ballast("apply", "large", "--base", BASE, "-o", "large", cwd=work)
    subprocess.run(["cp", "-r", work / "large", folder], check=True)
    for path in folder.glob("*.safetensors"):
        tensors = load_file(path)
        for name in tensors:
            if name == "model.layers.3.mlp.down_proj.weight":
                tensors[name] = (tensors[name].float() * 1.03).bfloat16()
        save_file(tensors, path, metadata={"format": "pt"})
    ballast("delta", folder, "--base", BASE, "-m", "nudge", "--ref", "nudge",
            cwd=work)
    return "nudge"


# Asked for one token, greedy decoding does not see the nudge.
def test_a_nudge_that_greedy_decoding_cannot_see_is_unobserved(work, nudged):
    blind = TREE / "examples" / "ask.py"
    (work / "blind.py").write_text(re.sub(r'"logprobs": said,', "",
                                          blind.read_text()))
    (work / "one.txt").write_text("# ****************\nRelease notes\n")
    for ref in ("large", nudged):
        ballast("fingerprint", ref, "--probes", "one.txt", "--base", BASE,
                "--max-tokens", "4", "--command",
                f"{sys.executable} blind.py", cwd=work)
    text = ballast("diff", "large", nudged, cwd=work)
    assert "UNOBSERVED CHANGE: weights moved, no probe detected it" in text
    got = diff("large", nudged, cwd=work)
    assert got["unobserved"] and got["probes_changed"] == 0
    assert got["evidence"] is None


def test_log_probabilities_see_it(work, nudged, answers):
    (work / "one.txt").write_text("# ****************\nRelease notes\n")
    for ref in ("large", nudged):
        ballast("fingerprint", ref, "--probes", "one.txt", "--base", BASE,
                "--max-tokens", "4", "--runner", "peft", cwd=work)
    got = diff("large", nudged, cwd=work)
    assert got["probes_changed"] == 0 and got["mean_kld"] > 0
    assert not got["unobserved"] and got["evidence"] == "logprobs"
    assert "seen by log-probabilities alone" in ballast("diff", "large", nudged,
                                                        cwd=work)


# ---- numbers ----------------------------------------------------------------

RUNNER = """
import json, sys
rows = json.load(open(sys.argv[1]))
for line in sys.stdin:
    print(json.dumps(dict(rows[json.loads(line)["id"]], id=json.loads(line)["id"])))
"""


def classes(a, b):
    """What both list, token by token, and the rest of each."""
    both = sorted(set(a) & set(b))
    p = [np.exp(a[t]) for t in both]
    q = [np.exp(b[t]) for t in both]
    return (np.array(p + [max(1 - sum(p), 0)]),
            np.array(q + [max(1 - sum(q), 2.0 ** -20)]))


def draw(rng, near=None):
    """Logits of 12 tokens, of which the 6 likeliest are listed."""
    logits = rng.normal(0, 2, 12) if near is None else near + rng.normal(0, .3, 12)
    logs = logits - np.log(np.exp(logits).sum())
    best = np.argsort(-logs)[:6]
    return logits, {f"t{i}": float(logs[i]) for i in best}


def made_up(rng):
    """Answers of two models to 40 probes of 5 tokens: {id: …} of each, and
    what is compared: (top of a, top of b, token of a, token of b)."""
    rows = ({}, {})
    compared = []
    for n in range(40):
        said = ([], [])
        parted = False
        for _ in range(5):
            logits, a = draw(rng)
            _, b = draw(rng, logits)
            best = [max(top, key=top.get) for top in (a, b)]
            for one, top, token in zip(said, (a, b), best):
                one.append({"token": token, "logprob": top[token], "top": top})
            if not parted:
                compared.append((n, a, b, best))
            parted = parted or best[0] != best[1]
        for one, to in zip(said, rows):
            text = " ".join(t["token"] for t in one)
            to[f"p{n}"] = {"output": text, "logprobs": one}
    return rows, compared


def test_divergence_and_perplexity_are_numpys(work, tmp_path):
    rng = np.random.default_rng(11)
    rows, compared = made_up(rng)
    (tmp_path / "ask.py").write_text(RUNNER)
    (tmp_path / "probes.jsonl").write_text("".join(
        json.dumps({"id": f"p{n}", "prompt": f"q{n}"}) + "\n"
        for n in range(40)))
    (tmp_path / "rows.json").write_text(json.dumps(rows[0]))
    ballast("commit", ADAPTER, "-m", "a", "--ref", "a", cwd=tmp_path)
    ballast("lora", "scale", "a", "1.5", "--ref", "b", cwd=tmp_path)
    command = f"{sys.executable} {tmp_path}/ask.py {tmp_path}/rows.json"
    for ref, told in (("a", rows[0]), ("b", rows[1])):
        (tmp_path / "rows.json").write_text(json.dumps(told))
        ballast("fingerprint", ref, "--probes", "probes.jsonl", "--command",
                command, cwd=tmp_path)
    got = diff("a", "b", cwd=tmp_path)
    klds = np.array([stats.entropy(*classes(a, b)) for _, a, b, _ in compared])
    probes = np.array([n for n, *_ in compared])
    sums = np.array([klds[probes == n].sum() for n in range(40)])
    counts = np.array([(probes == n).sum() for n in range(40)])
    mean = klds.sum() / len(klds)
    spread = 1.96 * np.sqrt(40 / 39 * ((sums - mean * counts) ** 2).sum()) / len(klds)
    ratio = np.exp(np.mean([a[t[0]] - b.get(t[0], min(b.values()))
                            for _, a, b, t in compared]))
    assert got["kld_tokens"] == len(klds)
    assert got["mean_kld"] == pytest.approx(mean, abs=1e-9)
    assert got["max_kld"] == pytest.approx(klds.max(), abs=1e-9)
    assert got["p99_kld"] == pytest.approx(
        np.sort(klds)[int(np.ceil(.99 * len(klds))) - 1], abs=1e-9)
    assert got["kld_low"] == pytest.approx(max(mean - spread, 0), abs=1e-9)
    assert got["kld_high"] == pytest.approx(mean + spread, abs=1e-9)
    assert got["perplexity_ratio"] == pytest.approx(ratio, abs=1e-9)
    assert got["same_top"] == pytest.approx(
        np.mean([t[0] == t[1] for *_, t in compared]), abs=1e-12)


@pytest.mark.parametrize("right_a, right_b", [
    ("ABABABABAB", "ABABABABAB"), ("ABABABABAB", "AAAAAAAAAA"),
    ("AAAAAAAAAA", "BBBBBBBBBB"), ("BBBBBBBBBA", "AAAAABBBBB"),
])
def test_mcnemar_is_scipys(tmp_path, right_a, right_b):
    (tmp_path / "ask.py").write_text(RUNNER)
    (tmp_path / "probes.jsonl").write_text("".join(
        json.dumps({"id": f"p{n}", "prompt": f"q{n}", "reference": "A",
                    "choices": ["A", "B"]}) + "\n" for n in range(10)))
    ballast("commit", ADAPTER, "-m", "a", "--ref", "a", cwd=tmp_path)
    ballast("lora", "scale", "a", "1.5", "--ref", "b", cwd=tmp_path)
    for ref, told in (("a", right_a), ("b", right_b)):
        (tmp_path / "rows.json").write_text(json.dumps(
            {f"p{n}": {"output": f"The answer is {c}."}
             for n, c in enumerate(told)}))
        ballast("fingerprint", ref, "--probes", "probes.jsonl", "--command",
                f"{sys.executable} ask.py rows.json", cwd=tmp_path)
    got = diff("a", "b", cwd=tmp_path)
    lost = sum(a == "A" != b for a, b in zip(right_a, right_b))
    gained = sum(b == "A" != a for a, b in zip(right_a, right_b))
    want = 1.0 if not lost + gained else stats.binomtest(
        lost, lost + gained).pvalue
    assert (got["only_a"], got["only_b"]) == (lost, gained)
    assert got["p_value"] == pytest.approx(want, abs=1e-12)
