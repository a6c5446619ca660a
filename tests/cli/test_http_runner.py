"""Probes asked of servers: the stand-in for vLLM and SGLang, and servers of our
own that answer like llama.cpp, like nobody we know, or wrongly."""

import json
import os
import signal
import subprocess
import threading

import numpy as np
import pytest

from servers import BUILD, Fake, Server, clean, program
from support import adapter, model, save

COMMIT = "0123456789abcdef" * 4
NAME = "acme-main-01234567"
OTHER = "fedcba9876543210" * 4

PROBES = [
    {"id": "a", "prompt": "Once upon a time"},
    {"id": "b", "prompt": "Grüße, 世界", "max_tokens": 5},
    {"id": "c", "messages": [{"role": "system", "content": "be kind"},
                             {"role": "user", "content": "hello"}]},
    {"id": "d", "prompt": "stops early", "stop": ["e", "\n"]},
    {"id": "e", "prompt": "x" * 300},
]


def weights(path, scale=0.5):
    """An adapter on o_proj, which both engines take alone."""
    adapter(path)
    module = "base_model.model.model.layers.0.self_attn.o_proj"
    a = np.arange(8, dtype="<f4") + 1
    save(path / "adapter_model.safetensors", {
        f"{module}.lora_A.weight": ("F32", (2, 4), a.tobytes()),
        f"{module}.lora_B.weight": ("F32", (4, 2), (a * scale)
                                    .astype("<f4").tobytes()),
    })
    config = json.loads((path / "adapter_config.json").read_text())
    config["target_modules"] = ["o_proj"]
    (path / "adapter_config.json").write_text(json.dumps(config))
    return path


class Place:
    """Folders and files of one test."""

    def __init__(self, path):
        self.path = path
        self.adapter = weights(path / "adapter")
        self.whole = model(path / "whole")
        self.probes = path / "probes.jsonl"
        self.set(PROBES)

    def set(self, probes):
        self.probes.write_text("".join(json.dumps(row) + "\n"
                                       for row in probes))

    def __call__(self, url, what="adapter", commit=COMMIT, env=None, **options):
        code, rows = program("ask-http", url, self.probes, self.path / what,
                             commit, json.dumps(options), env=env)
        return code, rows

    def answers(self, url, *args, **options):
        """{id: [answer]}, about, [warning]"""
        code, rows = self(url, *args, **options)
        assert code == 0, rows
        assert rows[-1]["terms"] == {"api": "openai"}
        found = {}
        for row in rows[:-1]:
            if "id" in row:
                found.setdefault(row["id"], []).append(row)
        return found, rows[-1]["about"], [row["warning"] for row in rows
                                          if "warning" in row]

    def error(self, url, *args, **options):
        code, rows = self(url, *args, **options)
        assert code == 1, rows
        assert "\n" not in rows[-1]["text"]
        return rows[-1]


@pytest.fixture(name="place")
def made_place(tmp_path):
    return Place(tmp_path)


def served(place, engine, *args, name=NAME, folder="adapter"):
    return Fake("--engine", engine, "--max-cpu-loras", "4", "--lora",
                f"{name}={place.path / folder}", *args)


ENGINES = ["vllm", "sglang"]
ASKED = {"vllm": NAME, "sglang": f"base:{NAME}"}


def plain(fake, asked, probe, count=20):
    """(text, [(token, logprob)]) of a request of our own."""
    body = {"model": asked, "temperature": 0, "seed": 0,
            "max_tokens": probe.get("max_tokens", 8),
            "stop": probe.get("stop")}
    if "prompt" in probe:
        body.update(prompt=probe["prompt"], logprobs=count)
        choice = fake.send("/v1/completions", body)["choices"][0]
        logprobs = choice["logprobs"]
        return choice["text"], list(zip(logprobs["tokens"],
                                        logprobs["token_logprobs"]))
    body.update(messages=probe["messages"], logprobs=True, top_logprobs=count)
    choice = fake.send("/v1/chat/completions", body)["choices"][0]
    return choice["message"]["content"], [
        (row["token"], row["logprob"])
        for row in choice["logprobs"]["content"]]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_answers_are_the_adapters(place, engine):
    with served(place, engine) as fake:
        answers, about, warnings = place.answers(fake.url)
        assert not warnings
        for probe in PROBES:
            (answer,) = answers[probe["id"]]
            text, tokens = plain(fake, ASKED[engine], probe)
            base, _ = plain(fake, "base", probe)
            assert answer["output"] == text != base
            assert [(row["token"], row["logprob"])
                    for row in answer["tokens"]] == tokens
        assert about["engine"] == engine
        assert about["model"] == NAME
        assert about["parent"] == "base"
        assert about["root"] == "adapter"
        assert about["answers_as_base"] is False
        assert about["parallel"] == 4
        assert str(place.path) not in json.dumps(about)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_likely_tokens_are_those_that_are_told(place, engine):
    with served(place, engine) as fake:
        answers, _, _ = place.answers(fake.url, top=7)
        for row in answers["a"][0]["tokens"]:
            top = dict(row["top"])
            assert len(top) == len(row["top"]) <= 7
            assert top[row["token"]] == row["logprob"] == max(top.values())
            assert sum(np.exp(list(top.values()))) < 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_request_sets_all_that_moves_an_answer(place, engine):
    with served(place, engine) as fake:
        place.answers(fake.url)
        sent = [json.loads(row["body"]) for row in fake.log("/v1/completions")]
        sent += [json.loads(row["body"]) for row in fake.log("/v1/chat/")]
        assert {row["model"] for row in sent} == {ASKED[engine], "base"}
        for body in sent:
            for name, value in {"temperature": 0, "top_p": 1, "n": 1,
                                "top_k": -1, "min_p": 0, "seed": 0,
                                "repetition_penalty": 1, "stream": False,
                                "presence_penalty": 0,
                                "frequency_penalty": 0}.items():
                assert body[name] == value, name
        assert len({row.get("cache_salt") for row in sent}) == 1
        assert (engine == "vllm") == ("cache_salt" in sent[0])


def test_another_adapter_of_the_same_name_and_path_is_not_mixed_up(place):
    """vLLM keeps what it has seen of long prompts by name and path."""
    with served(place, "vllm") as fake:
        place.set([{"id": "long", "prompt": "x" * 300}])
        first, _, _ = place.answers(fake.url)
        fake.send("/v1/unload_lora_adapter", {"lora_name": NAME})
        weights(place.adapter, 0.25)
        fake.send("/v1/load_lora_adapter",
                  {"lora_name": NAME, "lora_path": str(place.adapter)})
        second, _, _ = place.answers(fake.url)
    with served(place, "vllm") as fresh:
        third, _, _ = place.answers(fresh.url)
    assert first != second == third


@pytest.mark.parametrize("engine", ENGINES)
def test_an_adapter_without_effect_is_warned_of(place, engine):
    weights(place.path / "none", 0.0)
    with served(place, engine, folder="none") as fake:
        _, about, warnings = place.answers(fake.url)
        assert about["answers_as_base"] is True
        assert [row for row in warnings if NAME in row and "as-base" in row]


@pytest.mark.parametrize("repeat", [1, 3])
def test_each_probe_is_answered_as_often_as_it_is_asked(place, repeat):
    with served(place, "vllm") as fake:
        answers, _, _ = place.answers(fake.url, repeat=repeat)
        assert {id: len(rows) for id, rows in answers.items()} == {
            probe["id"]: repeat for probe in PROBES}


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_url_may_end_in_v1(place, suffix):
    with served(place, "vllm") as fake:
        place.answers(fake.url + suffix)


# ---- which model --------------------------------------------------------


@pytest.mark.parametrize("engine, name", [
    ("vllm", "mine"), ("sglang", "mine"), ("sglang", "base:mine")])
def test_a_name_can_be_given(place, engine, name):
    with served(place, engine, name="mine") as fake:
        answers, about, _ = place.answers(fake.url, model=name)
        text, _ = plain(fake, "base:mine" if engine == "sglang" else "mine",
                        PROBES[0])
        assert answers["a"][0]["output"] == text
        assert about["model"] == "mine"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("options, commit", [
    ({"model": "mine"}, COMMIT), ({}, OTHER), ({"model": ""}, OTHER)])
def test_what_is_not_served_is_not_asked(place, engine, options, commit):
    with served(place, engine) as fake:
        told = place.error(fake.url, commit=commit, **options)
        assert told["error"] == "not-found"
        assert "'base'" in told["text"] and f"'{NAME}'" in told["text"]
        assert "--model" in told["hint"]
        assert not fake.log("/v1/completions")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_base_is_not_taken_for_an_adapter(place, engine):
    with served(place, engine) as fake:
        told = place.error(fake.url, model="base")
        assert told["error"] == "io"
        assert "'base'" in told["text"] and "no adapter" in told["text"]
        assert not fake.log("/v1/completions")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_base_of_the_commits_name_is_not_taken_for_an_adapter(place, engine):
    with Fake("--engine", engine, "--name", NAME) as fake:
        assert "no adapter" in place.error(fake.url)["text"]


def test_two_that_may_be_it_are_named(place):
    with served(place, "vllm", "--lora",
                f"b-{NAME}={place.adapter}") as fake:
        told = place.error(fake.url)
        assert told["error"] == "usage"
        assert f"'{NAME}'" in told["text"] and f"'b-{NAME}'" in told["text"]
        place.answers(fake.url, model=f"b-{NAME}")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_whole_model_is_asked_by_its_name(place, engine):
    with Fake("--engine", engine) as fake:
        answers, about, _ = place.answers(fake.url, "whole", model="base")
        assert answers["a"][0]["output"] == plain(fake, "base", PROBES[0])[0]
        assert "parent" not in about and "answers_as_base" not in about


def provenance(path, commit):
    (path / "ballast.json").write_text(json.dumps({"commit": commit}))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_of_another_commit_is_found_out(place, engine):
    provenance(place.adapter, OTHER)
    with served(place, engine) as fake:
        told = place.error(fake.url)
        assert told["error"] == "io"
        assert OTHER[:12] in told["text"] and COMMIT[:12] in told["text"]
        provenance(place.adapter, COMMIT)
        place.answers(fake.url)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_of_the_commit_is_found_under_any_name(place, engine):
    provenance(place.adapter, COMMIT)
    with served(place, engine, name="mine") as fake:
        _, about, _ = place.answers(fake.url)
        assert about["model"] == "mine"
        assert place.error(fake.url, commit=OTHER)["error"] == "not-found"


def test_a_ballast_json_that_says_nothing_is_passed_over(place):
    for text in ("", "[]", "{", '{"commit":1}', '{"commit":"x"}', "\0" * 9):
        (place.adapter / "ballast.json").write_text(text)
        with served(place, "vllm") as fake:
            place.answers(fake.url)


# ---- keys ---------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_the_key_comes_from_the_environment_and_stays_there(place, engine):
    with served(place, engine, "--api-key", "s3cret") as fake:
        for env in ({"BALLAST_PROBE_API_KEY": "s3cret", "OPENAI_API_KEY": "x"},
                    {"OPENAI_API_KEY": "s3cret"}):
            code, rows = place(fake.url, env=env)
            assert code == 0
            assert "s3cret" not in json.dumps(rows)
        for env in ({}, {"BALLAST_PROBE_API_KEY": "wr0ng"}):
            told = place.error(fake.url, env=env)
            assert told["error"] == "io" and "401" in told["text"]
            assert "BALLAST_PROBE_API_KEY" in told["hint"]
            assert "wr0ng" not in json.dumps(told)


def test_a_server_that_repeats_the_key_is_not_quoted(place):
    with Server(lambda asked: asked.say(401, {"error": {
            "message": "bad key " + asked.headers["Authorization"]}})) as bad:
        told = place.error(bad.url, env={"OPENAI_API_KEY": "s3cret"})
        assert "401" in told["text"] and "s3cret" not in json.dumps(told)


# ---- trouble ------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["503", "429", "drop", "cut"])
def test_passing_trouble_is_passed(place, engine, how):
    with served(place, engine) as fake:
        want, _, _ = place.answers(fake.url)
        fake.set(fail=1.0, fail_how=how, fail_times=2, fail_path="/v1/comp")
        got, _, _ = place.answers(fake.url, parallel=1)
        assert got == want


@pytest.mark.parametrize("path", ["/v1/models", "/v1/completions",
                                  "/v1/chat/completions"])
@pytest.mark.parametrize("how, words", [
    ("500", "500: failing on demand"), ("junk", "not json"), ("hang", "no answer within"),
])
def test_trouble_that_stays_is_told(place, path, how, words):
    with served(place, "vllm") as fake:
        fake.set(fail=1.0, fail_how=how, fail_path=path)
        told = place.error(fake.url, timeout=1)
        assert told["error"] == "io"
        assert f"{fake.url}{path}" in told["text"]
        assert words in told["text"].lower()


def test_a_server_that_ends_meanwhile_is_told(place):
    with served(place, "vllm") as fake:
        fake.set(fail=1.0, fail_how="drop", fail_path="/v1/completions")
        told = place.error(fake.url, timeout=20)
        assert told["error"] == "io" and "without an answer" in told["text"]


def test_a_server_that_is_not_there_is_told(place):
    with served(place, "vllm") as fake:
        url = fake.url
    told = place.error(url)
    assert told["error"] == "io" and "cannot be reached" in told["text"]


@pytest.mark.parametrize("url", [
    "", "localhost:8000", "ftp://x/", "http://a:s3cret@b/",
    "http://127.0.0.1:1/?x", "http://127.0.0.1:1/v1#x"])
def test_what_is_no_servers_url_is_refused(place, url):
    told = place.error(url)
    assert told["error"] == "usage"
    assert "s3cret" not in json.dumps(told)


# ---- servers of our own -------------------------------------------------


def lists(said):
    return {"tokens": [t for t, _, _ in said],
            "token_logprobs": [p for _, p, _ in said],
            "top_logprobs": [dict(top) for _, _, top in said]}


def content(said):
    return {"content": [
        {"token": t, "logprob": p,
         "top_logprobs": [{"token": u, "logprob": q} for u, q in top]}
        for t, p, top in said]}


SAID = [("yes", -0.25, [("yes", -0.25), ("no", -1.75)]),
        (" it", -0.5, [(" it", -0.5), (" is", -1.0)])]
PARENTS = {NAME: "base", "base": None}


class Engine:
    """Answers like vLLM, but as its parts say."""

    shape, chat_shape = staticmethod(lists), staticmethod(content)
    owner = "vllm"

    def __init__(self):
        self.spoil = lambda body, answer: answer
        self.said = {NAME: SAID, "base": [("no", -0.5, [("no", -0.5)])]}
        self.models = [{"id": id, "parent": parent, "owned_by": self.owner,
                        "root": id} for id, parent in PARENTS.items()]
        self.facts = {"/version": {"version": "9.9"}}
        self.refuse = lambda body: None

    def choice(self, asked, said):
        text = "".join(row[0] for row in said)
        if asked.path == "/v1/completions":
            count = asked.json.get("logprobs")
            return {"text": text, "logprobs": self.shape(said) if count
                    else None}
        assert asked.path == "/v1/chat/completions"
        return {"message": {"role": "assistant", "content": text},
                "logprobs": self.chat_shape(said)
                if asked.json.get("logprobs") else None}

    def said_to(self, body):
        return self.said[body["model"]]

    def name_of(self, body):
        return body["model"]

    def __call__(self, asked):
        if asked.path == "/v1/models":
            return asked.say(200, {"object": "list", "data": self.models})
        if asked.method == "GET":
            fact = self.facts.get(asked.path)
            return asked.say(*((200, fact) if fact is not None else (404, {})))
        body = asked.json
        why = self.refuse(body)
        if why:
            return asked.say(400, {"error": {"message": why, "code": 400}})
        answer = {"model": self.name_of(body), "system_fingerprint": "fp_1",
                  "choices": [self.choice(asked, self.said_to(body))]}
        answer = self.spoil(body, answer)
        return asked.say(200, answer)


class Llama(Engine):
    """Adapters by number, one model by name, one shape."""

    shape = staticmethod(content)
    owner = "llamacpp"

    def __init__(self):
        super().__init__()
        self.models = [{"id": "base.gguf", "owned_by": self.owner}]
        self.adapters = [
            {"id": 0, "path": "/models/other.gguf", "scale": 1.0},
            {"id": 3, "path": f"/models/{NAME}.gguf", "scale": 0.5},
            {"id": 4, "path": "/models/deep-89abcdef/lora.gguf", "scale": 0}]
        self.facts = {"/lora-adapters": self.adapters,
                      "/props": {"build_info": "b1-abc",
                                 "model_path": "/models/base.gguf"}}

    def name_of(self, body):
        return "base.gguf"

    def said_to(self, body):
        scales = {row["id"]: row["scale"] for row in body["lora"]}
        assert set(scales) == {row["id"] for row in self.adapters}
        on = [id for id, scale in scales.items() if scale]
        assert all(scale in (0, 1) for scale in scales.values())
        assert len(on) <= 1
        return [(f"{on}", -0.5, [(f"{on}", -0.5), ("x", -1.5)])]


@pytest.mark.parametrize("options, commit, on", [
    ({}, COMMIT, "[3]"), ({"model": NAME}, OTHER, "[3]"),
    ({"model": "other"}, COMMIT, "[0]"), ({}, "89abcdef" * 8, "[4]"),
    ({"model": "deep-89abcdef"}, COMMIT, "[4]"), ({"model": "lora"}, OTHER, "[4]"),
])
def test_llama_cpp_takes_adapters_by_number(place, options, commit, on):
    with Server(Llama()) as server:
        answers, about, warnings = place.answers(server.url, commit=commit,
                                                 **options)
        assert not warnings
        for probe in PROBES:
            (answer,) = answers[probe["id"]]
            assert answer["output"] == on
            assert answer["tokens"] == [{"token": on, "logprob": -0.5, "top": [
                [on, -0.5], ["x", -1.5]]}]
        assert about["engine"] == "llama.cpp" and about["version"] == "b1-abc"
        assert about["parent"] == "base.gguf"
        assert about["answers_as_base"] is False


def test_llama_cpp_switches_adapters_off_for_a_whole_model(place):
    with Server(Llama()) as server:
        answers, about, _ = place.answers(server.url, "whole",
                                          model="base.gguf")
        assert answers["a"][0]["output"] == "[]"
        assert "answers_as_base" not in about


def test_llama_cpp_without_adapters_serves_none(place):
    engine = Llama()
    engine.adapters.clear()
    with Server(engine) as server:
        assert place.error(server.url)["error"] == "not-found"
        assert "no adapter" in place.error(server.url,
                                           model="base.gguf")["text"]


@pytest.mark.parametrize("rows", [
    None, {}, "x", [1], [{}], [{"id": 0}], [{"path": "/x"}],
    [{"id": "0", "path": "/x"}], [{"id": -1, "path": "/x"}],
    [{"id": 0.5, "path": "/x"}], [{"id": 0, "path": 7}]])
def test_a_wrong_list_of_adapters_is_refused(place, rows):
    engine = Llama()
    engine.facts["/lora-adapters"] = rows
    with Server(engine) as server:
        told = place.error(server.url)
        assert told["error"] == "io" and "/lora-adapters" in told["text"]


@pytest.mark.parametrize("data", [
    None, {}, "x", [], [1], [{}], [{"id": 7}], [{"id": None}]])
def test_a_wrong_list_of_models_is_refused(place, data):
    engine = Engine()
    engine.models = data
    with Server(engine) as server:
        told = place.error(server.url)
        assert told["error"] == "io" and "/v1/models" in told["text"]


def choice(answer):
    return answer["choices"][0]


def spoilt(change):
    def spoil(_, answer):
        change(answer)
        return answer
    return spoil


def put(*path):
    """Set the value at the path's end."""
    *way, name, value = path

    def change(answer):
        at = answer
        for step in way:
            at = at[step]
        at[name] = value
    return change


LP = ("choices", 0, "logprobs")
WRONG = {
    "a list": lambda body, answer: [answer],
    "a number": lambda body, answer: 7,
    "nothing": lambda body, answer: b"",
    "half": lambda body, answer: json.dumps(answer).encode()[:-20],
    "two": lambda body, answer: json.dumps(answer).encode() * 2,
    "not utf-8": lambda body, answer: b'{"a":"\xff\xfe"}',
    "nan": lambda body, answer: json.dumps(answer).replace(
        "-0.25", "NaN").encode(),
    "minus infinity": lambda body, answer: json.dumps(answer).replace(
        "-0.25", "-Infinity").encode(),
    "too big a number": lambda body, answer: json.dumps(answer).replace(
        "-0.25", "-1e999").encode(),
    "deep": lambda body, answer: b"[" * 100000,
    "twice": lambda body, answer: json.dumps(answer).replace(
        '"choices"', '"choices": [], "choices"').encode(),
    "no choices": spoilt(lambda answer: answer.pop("choices")),
    "empty choices": spoilt(put("choices", [])),
    "two choices": spoilt(lambda a: a["choices"].append(choice(a))),
    "choices of numbers": spoilt(put("choices", [1])),
    "choices an object": spoilt(put("choices", {"0": {}})),
    "no text": spoilt(lambda answer: choice(answer).pop("text")),
    "text null": spoilt(put("choices", 0, "text", None)),
    "text a list": spoilt(put("choices", 0, "text", ["a"])),
    "no model": spoilt(lambda answer: answer.pop("model")),
    "model null": spoilt(put("model", None)),
    "no logprobs": spoilt(put("choices", 0, "logprobs", None)),
    "logprobs a list": spoilt(put("choices", 0, "logprobs", [1])),
    "logprobs empty": spoilt(put("choices", 0, "logprobs", {})),
    "fewer logprobs": spoilt(put(*LP, "token_logprobs", [-0.25])),
    "more logprobs": spoilt(put(*LP, "token_logprobs", [-0.25] * 3)),
    "fewer tops": spoilt(put(*LP, "top_logprobs", [{}])),
    "no numbers": spoilt(put(*LP, "token_logprobs", None)),
    "tokens a text": spoilt(put(*LP, "tokens", "yes it")),
    "no tokens": spoilt(lambda a: choice(a)["logprobs"].update(
        tokens=[], token_logprobs=[], top_logprobs=[])),
    "a token a number": spoilt(put(*LP, "tokens", 1, 5)),
    "a logprob null": spoilt(put(*LP, "token_logprobs", 0, None)),
    "a logprob a text": spoilt(put(*LP, "token_logprobs", 0, "-1")),
    "a logprob above 0": spoilt(put(*LP, "token_logprobs", 1, 0.5)),
    "a top a list": spoilt(put(*LP, "top_logprobs", 1, [1])),
    "a top null": spoilt(put(*LP, "top_logprobs", 1, "no", None)),
    "a top above 0": spoilt(put(*LP, "top_logprobs", 1, "no", 1)),
    "too many tops": spoilt(put(*LP, "top_logprobs", 0, {
        str(i): -1.0 for i in range(65)})),
    "too many tokens": spoilt(lambda a: choice(a)["logprobs"].update(
        tokens=["a"] * 65537, token_logprobs=[-1] * 65537,
        top_logprobs=None)),
    "too long a text": spoilt(put("choices", 0, "text", "x" * 262145)),
    "too long an answer": spoilt(put("more", "x" * (16 << 20))),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("at", ["first", "later"])
def test_a_wrong_answer_is_told_in_one_line(place, case, at):
    engine = Engine()
    place.set([{"id": f"p{i}", "prompt": f"{i}"} for i in range(9)])
    asked = "0" if at == "first" else "7"
    engine.spoil = lambda body, answer: (
        WRONG[case](body, answer) if body["prompt"] == asked else answer)
    with Server(engine) as server:
        told = place.error(server.url)
        assert told["error"] == "io"
        assert f"{server.url}/v1/completions" in told["text"]
        assert f"'p{asked}'" in told["text"] or "16777216" in told["text"]


CHAT = {
    "no message": spoilt(lambda answer: choice(answer).pop("message")),
    "message null": spoilt(put("choices", 0, "message", None)),
    "content a list": spoilt(put("choices", 0, "message", "content", [{}])),
    "content a number": spoilt(put("choices", 0, "message", "content", 1)),
    "no logprobs": spoilt(put("choices", 0, "logprobs", None)),
    "content null": spoilt(put(*LP, "content", None)),
    "a number": spoilt(put(*LP, "content", 0, 5)),
    "no token": spoilt(lambda a: choice(a)["logprobs"]["content"][0].pop(
        "token")),
    "logprob null": spoilt(put(*LP, "content", 0, "logprob", None)),
    "top an object": spoilt(put(*LP, "content", 0, "top_logprobs", {})),
    "top of numbers": spoilt(put(*LP, "content", 0, "top_logprobs", [1])),
    "top without numbers": spoilt(put(*LP, "content", 0, "top_logprobs",
                                      [{"token": "a"}])),
    "too many tops": spoilt(put(*LP, "content", 0, "top_logprobs", [
        {"token": str(i), "logprob": -1} for i in range(65)])),
}


@pytest.mark.parametrize("case", CHAT)
def test_a_wrong_chat_is_told_in_one_line(place, case):
    engine = Engine()
    place.set([PROBES[2]])
    engine.spoil = CHAT[case]
    with Server(engine) as server:
        told = place.error(server.url)
        assert told["error"] == "io"
        assert f"{server.url}/v1/chat/completions" in told["text"]


@pytest.mark.parametrize("model_name", ["base", "other", NAME + "x", ""])
def test_an_answer_of_another_model_is_refused(place, model_name):
    engine = Engine()
    engine.spoil = spoilt(put("model", model_name))
    with Server(engine) as server:
        told = place.error(server.url)
        assert told["error"] == "io"
        assert f"'{NAME}'" in told["text"] and f"'{model_name}'" in told["text"]


FINE = {
    "unknown members": (put("choices", 0, "x", {"y": [1]}), "yes it", 2),
    "an empty text": (lambda a: choice(a).update(text="", logprobs={
        "tokens": [], "token_logprobs": [], "top_logprobs": []}), "", 0),
    "an empty text, no logprobs": (lambda a: choice(a).update(
        text="", logprobs=None), "", 0),
    "an empty text of a token": (lambda a: choice(a).update(
        text="", logprobs=lists([("", -0.5, [])])), "", 1),
    "no top": (lambda a: choice(a)["logprobs"].pop("top_logprobs"), "yes it", 2),
    "top null": (put(*LP, "top_logprobs", None), "yes it", 2),
    "a top null": (put(*LP, "top_logprobs", 0, None), "yes it", 2),
    "just above 0": (put(*LP, "token_logprobs", 0, 1e-7), "yes it", 2),
    "text that stops before its tokens": (put("choices", 0, "text", "ye"),
                                          "ye", 2),
    "a cut answer": (put("choices", 0, "finish_reason", "length"), "yes it", 2),
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_odd_but_right_is_taken(place, case):
    change, text, count = FINE[case]
    engine = Engine()
    place.set(PROBES[:2])
    engine.spoil = spoilt(change)
    with Server(engine) as server:
        answers, _, _ = place.answers(server.url)
        for id in ("a", "b"):
            assert answers[id][0]["output"] == text
            assert len(answers[id][0]["tokens"]) == count
            assert all(row["logprob"] <= 0 for row in answers[id][0]["tokens"])


def test_tokens_that_may_be_several_are_not_among_the_likely(place):
    """Halves of a character all look the same, and so do twins; a NUL, which is
    told as its picture, is itself."""
    engine = Engine()
    said = [("\ufffd", -0.5, [("\ufffd", -0.5), ("a", -2.0)]),
            ("\0", -0.5, [("\0", -0.5), ("b", -2.0), ("\ufffd", -3.0)]),
            ("d", -0.5, [("d", -0.5), ("e", -2.0), ("d", -3.0)])]
    engine.said[NAME] = said
    place.set([PROBES[0], PROBES[2]])
    with Server(engine) as server:
        answers, _, _ = place.answers(server.url)
    assert answers["a"][0]["output"] == "\ufffd\u2400d"
    for id, last in (("a", [["e", -2.0]]), ("c", [["e", -2.0]])):
        assert [row["top"] for row in answers[id][0]["tokens"]] == [
            [["a", -2.0]], [["\u2400", -0.5], ["b", -2.0]], last]


def test_what_a_model_thought_is_no_answer(place):
    engine = Engine()
    place.set([PROBES[2]])
    engine.spoil = spoilt(lambda a: choice(a)["message"].update(
        content=None, reasoning_content="hm"))
    with Server(engine) as server:
        answers, about, _ = place.answers(server.url)
        assert answers["c"][0]["output"] == ""
        assert about["reasoning"] is True


# ---- engines that are not known, or old ---------------------------------


def refuse_above(most):
    def refuse(body):
        count = body.get("top_logprobs", body.get("logprobs")) or 0
        if count > most:
            return f"no more than {most}"
        return None
    return refuse


@pytest.mark.parametrize("most, got", [(20, None), (5, 5), (3, 0), (0, 0)])
def test_fewer_log_probabilities_are_taken_where_more_are_refused(
        place, most, got):
    engine = Engine()
    engine.refuse = refuse_above(most)
    with Server(engine) as server:
        answers, about, _ = place.answers(server.url)
        assert about.get("top") == about.get("top_chat") == got
        assert bool(answers["a"][0]["tokens"]) == (got != 0)
        assert about.get("logprobs") is (False if got == 0 else None)
        assert answers["a"][0]["output"] == "yes it"


def test_another_bad_request_is_told_as_it_was(place):
    engine = Engine()
    engine.refuse = lambda body: (
        "the prompt is empty" if "logprobs" in body else "something else")
    with Server(engine) as server:
        told = place.error(server.url)
        assert told["error"] == "io"
        assert "400: the prompt is empty" in told["text"]
        assert "'a'" in told["text"]


@pytest.mark.parametrize("facts, engine_name, version", [
    ({"/version": {"version": "1.2"}}, "vllm", "1.2"),
    ({"/get_model_info": {"model_path": "/x"},
      "/server_info": {"version": "0.5"}}, "sglang", "0.5"),
    ({"/version": {"commit": "x"}, "/get_model_info": []}, "openai", None),
    ({}, "openai", None),
])
def test_an_engine_is_known_by_what_it_answers(place, facts, engine_name,
                                               version):
    engine = Engine()
    for row in engine.models:
        row["owned_by"] = "somebody"
    engine.facts = facts
    engine.said[f"base:{NAME}"] = SAID
    with Server(engine) as server:
        _, about, _ = place.answers(server.url)
        assert about["engine"] == engine_name
        assert about.get("version") == version


def test_a_server_that_has_a_page_for_everything_is_no_engine(place):
    engine = Engine()
    engine.models[0]["owned_by"] = "somebody"

    def answer(asked):
        if asked.method == "GET" and asked.path != "/v1/models":
            return asked.say(200, b"<html>")
        return engine(asked)

    with Server(answer) as server:
        assert place.answers(server.url)[1]["engine"] == "openai"


def test_nothing_but_openais_own_is_sent_to_who_is_not_known(place):
    engine = Engine()
    for row in engine.models:
        row.update(owned_by="somebody")
        del row["parent"]
    engine.facts = {}
    with Server(engine) as server:
        _, about, warnings = place.answers(server.url)
        for asked in server.asked:
            if asked.method == "POST":
                assert set(asked.json) <= {
                    "model", "prompt", "messages", "max_tokens", "stop", "n",
                    "temperature", "top_p", "seed", "presence_penalty",
                    "frequency_penalty", "stream", "logprobs", "top_logprobs"}
        assert about["top"] == 5
        assert [row for row in warnings if "adapter=unknown" in row]


# ---- many at once -------------------------------------------------------


def test_as_many_are_asked_at_once_as_was_said(place):
    engine, together = Engine(), threading.Barrier(6)
    place.set([{"id": f"p{i}", "prompt": f"{i}"} for i in range(25)])
    answer = engine.__call__

    def wait(asked):
        # The first is asked alone, of the adapter and of the base.
        if asked.method == "POST" and asked.json["prompt"] != "0":
            together.wait(60)
        answer(asked)

    with Server(wait) as server:
        answers, about, _ = place.answers(server.url, parallel=6)
        assert len(answers) == 25 and about["parallel"] == 6
        assert server.connections <= 7


def test_an_interrupt_ends_the_asking(place):
    there = threading.Event()
    engine = Engine()

    def answer(asked):
        if asked.method == "GET":
            return engine(asked)
        there.set()
        return asked.hang()

    with Server(answer) as server:
        with subprocess.Popen(
                [os.path.join(BUILD, "tests", "ask-http"), server.url,
                 place.probes, place.adapter, COMMIT], stdout=subprocess.PIPE,
                env=clean()) as process:
            assert there.wait(60)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        assert json.loads(out.splitlines()[-1])["error"] == "cancelled"
