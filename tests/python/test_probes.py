"""Probe sets, runners and fingerprints, against hashlib, json and transformers."""

import hashlib
import json
import pathlib
import pickle
import subprocess
import sys
import urllib.request

import pytest

import ballast
from ballast import errors, serving
from ballast.fingerprinting import fingerprint
from ballast.probes import Probe, ProbeSet
from ballast.runners import FakeRunner, OpenAIRunner, PeftRunner, ProcessRunner
from ballast.store import Store

TREE = pathlib.Path(__file__).parents[2]
ADAPTERS = TREE / "tests" / "data" / "adapters"
LLAMA = TREE / "examples" / "llama"

# Answers each probe with its own prompt, shouted, and the model's files.
SHOUT = (
    "import json, os, sys\n"
    "files = sorted(os.listdir(os.environ['BALLAST_MODEL']))\n"
    "for line in sys.stdin:\n"
    "    row = json.loads(line)\n"
    "    print(json.dumps({'id': row['id'],\n"
    "                      'output': row['prompt'].upper() + files[0]}))\n"
)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as store:
        store.commit("acme", ADAPTERS / "lora_r8_qv", message="one", ref="one")
        store.commit("acme", ADAPTERS / "lora_r16_all_rslora", message="b", ref="two")
        yield store


# ---- probe sets ------------------------------------------------------------------


def test_a_set_is_its_prompts_in_order():
    probes = ProbeSet.of("what?", "why – é 😀")
    assert list(probes) == ["what?", "why – é 😀"]
    assert len(probes) == 2 and probes[1].prompt == "why – é 😀"
    assert all(isinstance(probe, Probe) and isinstance(probe, str) for probe in probes)


def test_a_probe_has_the_first_digits_of_its_prompts_sha256_for_an_id():
    (probe,) = ProbeSet.of("what?")
    assert probe.id == hashlib.sha256(b"what?").hexdigest()[:12]


def test_an_id_tells_what_is_asked_and_in_which_order():
    ids = {ProbeSet.of(*rows).id for rows in [("a",), ("a", "b"), ("b", "a")]}
    assert len(ids) == 3 and all(len(bytes.fromhex(i)) == 32 for i in ids)
    assert ProbeSet.of("a", "b") == ProbeSet.of("a", "b")
    assert len({ProbeSet.of("a"), ProbeSet.of("a")}) == 1
    assert ProbeSet.of("a") != ProbeSet.of("b") and ProbeSet.of("a") != ("a",)


def test_a_file_of_lines_is_the_set_of_its_prompts(tmp_path):
    file = tmp_path / "probes.txt"
    file.write_text("what?\nwhy?\n", encoding="utf-8")
    assert ProbeSet.open(file).id == ProbeSet.of("what?", "why?").id


def test_json_lines_say_more_than_a_prompt(tmp_path):
    rows = [
        {"id": "p", "prompt": "2+2?", "reference": "4", "stop": ["\n"]},
        {"id": "c", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3},
    ]
    file = tmp_path / "probes.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    prompt, chat = ProbeSet.open(file)
    assert (prompt.id, prompt.references, prompt.stop) == ("p", ["4"], ["\n"])
    assert prompt.max_tokens is None and prompt.messages is None
    assert chat.prompt is None and chat.messages == rows[1]["messages"]
    assert json.loads(chat) == rows[1]["messages"] and chat.max_tokens == 3


def test_a_template_makes_prompts_of_variables(tmp_path):
    file = tmp_path / "tests.jsonl"
    file.write_text('{"vars": {"question": "why"}}\n')
    probes = ProbeSet.open(file, template="{{question}}?")
    assert list(probes) == ["why?"]


def test_a_set_survives_a_pickle():
    probes = ProbeSet.of("a", "b")
    assert pickle.loads(pickle.dumps(probes)) == probes
    assert pickle.loads(pickle.dumps(probes[1])).id == probes[1].id


@pytest.mark.parametrize("prompts", [(), ("a", "a"), ("a\0b",)])
def test_what_is_no_set_is_refused(prompts):
    with pytest.raises(errors.Usage):
        ProbeSet.of(*prompts)


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(errors.NotFound, match="nowhere"):
        ProbeSet.open(tmp_path / "nowhere")


# ---- fingerprints ----------------------------------------------------------------


class Object:
    """Answers by what it was given."""

    name = "object"

    def run(self, tensors, config, base_model, probes):
        self.seen = (sorted(tensors), config, base_model, probes)
        total = sum(int(tensors[name].size) for name in tensors)
        return [f"{probe} {total}" for probe in probes]


def test_an_object_is_given_the_model_and_its_answers_are_recorded(store):
    pytest.importorskip("numpy")
    probes, runner = ProbeSet.of("a", "b"), Object()
    got = fingerprint(store, "acme", "one", probes, runner)
    config = json.loads((ADAPTERS / "lora_r8_qv" / "adapter_config.json").read_text())
    names, seen, base_model, asked = runner.seen
    assert (seen, base_model) == (config, "base") and asked == probes
    # 4 layers, rank 8: q is 192 -> 192, v is 192 -> 96.
    assert len(names) == 16
    total = 4 * 8 * ((192 + 192) + (192 + 96))
    assert [row["output"] for row in got.outputs] == [f"a {total}", f"b {total}"]
    assert got.terms == {"runner": "object"} and got.asked
    assert got.commit == store.show("acme", "one").id and got.probe_set == probes.id
    assert ProbeSet.load(store, "acme", probes.id[:8]) == probes
    json.dumps(got)


def test_diff_sees_what_two_fingerprints_say(store):
    probes = ProbeSet.of("a", "b", "c")
    for ref in ("one", "two"):
        fingerprint(store, "acme", ref, probes, FakeRunner())
    found = store.diff("acme", "one", "two")
    assert (found.probes_changed, found.probes_total) == (3, 3)


def test_another_number_of_answers_is_refused(store):
    class Short(Object):
        def run(self, tensors, config, base_model, probes):
            return ["only one"]

    with pytest.raises(ValueError, match="returned 1 outputs for 2 probes"):
        fingerprint(store, "acme", "one", ProbeSet.of("a", "b"), Short())


def test_an_answer_may_lack_where_partly_is_enough(store):
    class Partly(Object):
        def run(self, tensors, config, base_model, probes):
            return ["yes", None]

    probes = ProbeSet.of("a", "b")
    with pytest.raises(TypeError, match="an answer is a str"):
        fingerprint(store, "acme", "one", probes, Partly())
    got = fingerprint(store, "acme", "one", probes, Partly(), partial=True)
    assert [row["output"] for row in got.outputs] == ["yes"]


def test_what_an_object_raises_is_raised(store):
    class Broken(Object):
        def run(self, tensors, config, base_model, probes):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        fingerprint(store, "acme", "one", ProbeSet.of("a"), Broken())
    with pytest.raises(errors.NotFound):
        ProbeSet.load(store, "acme", ProbeSet.of("a").id)


def test_something_else_is_neither_a_runner_nor_a_set(store):
    with pytest.raises(TypeError, match=r"has no run\(\)"):
        fingerprint(store, "acme", "one", ProbeSet.of("a"), object())
    with pytest.raises(TypeError, match="ProbeSet"):
        fingerprint(store, "acme", "one", ["a"], Object())
    with pytest.raises(errors.NotFound):
        fingerprint(store, "acme", "nothing", ProbeSet.of("a"), Object())


def test_a_process_is_given_the_model_in_a_folder(store):
    runner = ProcessRunner([sys.executable, "-c", SHOUT], timeout=60)
    got = fingerprint(store, "acme", "one", ProbeSet.of("a", "it's"), runner)
    want = ["Aadapter_config.json", "IT'Sadapter_config.json"]
    assert [row["output"] for row in got.outputs] == want
    assert got.runner == "process"


def test_what_is_recorded_is_not_asked_again(store, tmp_path, monkeypatch):
    log = tmp_path / "log"
    runner = ProcessRunner(f"echo x >> {log}; {sys.executable} -c \"$SHOUT\"")
    monkeypatch.setenv("SHOUT", SHOUT)
    first = fingerprint(store, "acme", "one", ProbeSet.of("a"), runner, reuse=True)
    again = fingerprint(store, "acme", "one", ProbeSet.of("a"), runner, reuse=True)
    assert first.asked and not again.asked and first.outputs == again.outputs
    assert log.read_text() == "x\n"


def test_a_process_that_fails_records_nothing(store):
    with pytest.raises(errors.IOFailure):
        fingerprint(store, "acme", "one", ProbeSet.of("a"), ProcessRunner("exit 3"))
    with pytest.raises(errors.NotFound):
        ProbeSet.load(store, "acme", ProbeSet.of("a").id)


def test_a_server_that_is_not_there_is_an_io_failure(store):
    runner = OpenAIRunner("http://127.0.0.1:9", "m", timeout=1)
    with pytest.raises(errors.IOFailure):
        fingerprint(store, "acme", "one", ProbeSet.of("a"), runner)


@pytest.fixture
def server(store, tmp_path):
    """The stand-in for vLLM with an export loaded: its URL and the name there."""
    (item,) = serving.export(store, "acme", out=tmp_path / "out", specs=["one"])
    program = TREE / "tests" / "support" / "fake-vllm"
    words = ["--model", LLAMA / "base", "--lora", f"{item.name}={item.path}"]
    with subprocess.Popen(
        [sys.executable, program, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process.stdout.readline().split()[1], item.name
        process.terminate()


def test_a_server_is_asked_for_the_export_it_has_loaded(store, server):
    url, name = server
    prompts = ["Once upon a time", "Grüße"]
    wanted = []
    for prompt in prompts:
        body = {"model": name, "prompt": prompt, "max_tokens": 9, "temperature": 0}
        request = urllib.request.Request(
            f"{url}/v1/completions", json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request) as answer:
            wanted.append(json.load(answer)["choices"][0]["text"])
    runner = OpenAIRunner(url, max_tokens=9)
    got = fingerprint(store, "acme", "one", ProbeSet.of(*prompts), runner)
    assert [row["output"] for row in got.outputs] == wanted
    assert all(len(row["tokens"]) == 9 for row in got.outputs)
    with pytest.raises(errors.NotFound, match="does not serve"):
        fingerprint(store, "acme", "two", ProbeSet.of(*prompts), runner)


def test_a_runner_of_the_library_runs_tensors_that_are_in_no_store():
    numpy = pytest.importorskip("numpy")
    tensors = {"w": numpy.arange(6, dtype=numpy.float32)}
    probes = ProbeSet.of("a", "b")
    one = FakeRunner().run(tensors, None, None, probes)
    tensors["w"][3] += 1
    two = FakeRunner().run(tensors, None, None, probes)
    assert len(one) == 2 and all(a != b for a, b in zip(one, two))
    assert FakeRunner("other*").run(tensors, None, None, probes) != two


def test_peft_answers_as_transformers_alone_does(store):
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    answers = TREE / "tests" / "peers" / "data" / "llama_answers.json"
    rows = json.loads(answers.read_text())["models"]["lora_r8_qv"]
    runner = PeftRunner(LLAMA / "base", max_tokens=24)
    probes = ProbeSet.of(*list(ProbeSet.open(LLAMA / "probes.jsonl"))[:4])
    got = fingerprint(store, "acme", "one", probes, runner)
    assert [row["output"] for row in got.outputs] == [row["text"] for row in rows[:4]]
    for row, want in zip(got.outputs, rows):
        logprobs = [token["logprob"] for token in row["tokens"]]
        assert logprobs == pytest.approx(want["logprobs"], abs=2e-4)


def test_the_names_are_where_they_are_promised():
    assert ballast.ProbeSet is ProbeSet and ballast.fingerprint is fingerprint
    assert ballast.runners.PeftRunner is PeftRunner
