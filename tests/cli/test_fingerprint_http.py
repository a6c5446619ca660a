"""fingerprint --url and diff, whole programs against the stand-in for vLLM and
SGLang: the three outcomes, and that the adapter has answered."""

import json

import pytest

from servers import Fake
from support import Store
from test_http_runner import weights


@pytest.fixture(name="store")
def made_store(tmp_path):
    """Two adapters of one shape, and each as a server needs it."""
    store = Store(tmp_path)
    for ref, scale in (("one", 0.5), ("two", 0.75)):
        weights(tmp_path / ref, scale)
        store("commit", f"./{ref}", "-m", ref, "--ref", ref)
    (tmp_path / "p.jsonl").write_text("".join(
        json.dumps(row) + "\n" for row in (
            {"id": "a", "prompt": "Once upon a time"},
            {"id": "b", "messages": [{"role": "user", "content": "hello"}]})))
    return store


def names(store):
    """ref: what sync-vllm calls its commit."""
    refs = store("--json", "refs").json["refs"]
    return {ref: f"acme-{ref}-{commit[:8]}" for ref, commit in refs.items()}


def ask(store, ref, url, *words, **more):
    return store("--json", "fingerprint", ref, "--probes", "p.jsonl", "--url",
                 url, "--max-tokens", "8", *words, **more)


@pytest.fixture(name="server", params=["vllm", "sglang"])
def made_server(request, store):
    loras = [word for ref, name in names(store).items()
             for word in ("--lora", f"{name}={store.path / ref}")]
    with Fake("--engine", request.param, "--max-loras", "4", *loras) as fake:
        yield fake


def test_a_model_is_found_by_its_commit_and_a_change_is_seen(store, server):
    for ref in ("one", "two"):
        got = ask(store, ref, server.url).json
        assert got["runner"] == "http" and len(got["outputs"]) == 2
        assert got["about"]["model"].endswith(names(store)[ref])
        assert all(o["tokens"] for o in got["outputs"])
    done = store("--json", "diff", "one", "two").json
    assert done["probes_total"] == 2 and done["mean_kld"] > 0
    assert done["evidence"] in ("answers", "logprobs")


def test_the_same_adapter_answers_the_same(store, server):
    """Under another message it is another commit; it is served by name."""
    store("commit", "./one", "-m", "again", "--ref", "again")
    ask(store, "one", server.url)
    ask(store, "again", server.url, "--model", names(store)["one"])
    done = store("--json", "diff", "one", "again").json
    assert (done["probes_changed"], done["mean_kld"]) == (0, 0)
    assert not done["unobserved"]


def test_the_base_is_not_asked_for_an_adapter(store, server):
    done = ask(store, "one", server.url, "--model", "base", code=7)
    assert "base" in done.error["message"]
    assert store("--json", "probes").json["probe_sets"] == []


def test_a_server_that_does_not_serve_it_says_what_it_serves(store, server):
    weights(store.path / "three", 2.0)
    store("commit", "./three", "-m", "three", "--ref", "three")
    done = ask(store, "three", server.url, code=None)
    assert done.code in (3, 7)
    assert names(store)["one"] in done.err or "--model" in done.err


def test_a_server_that_is_not_there_is_named(store):
    done = ask(store, "one", "http://127.0.0.1:9", "--timeout", "3", code=7)
    assert "127.0.0.1:9" in done.error["message"]
