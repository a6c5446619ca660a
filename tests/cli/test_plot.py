"""diff --plot: the picture is XML that says what the numbers say."""

import json
import sys
import xml.etree.ElementTree as ET

import pytest

from support import Store, f32, save

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "layers.0.<script>alert(1)</script>&\x1b[31m\u202e.weight"


def tensors(scale, hostile=False):
    names = [f"model.layers.{layer}.{module}.weight" for layer in range(4)
             for module in ("self_attn.q_proj", "mlp.up_proj")]
    found = {name: ("F32", (2,), f32(3 * scale, 4)) for name in names}
    found["model.embed_tokens.weight"] = ("F32", (2,), f32(1, 1))
    if hostile:
        found[HOSTILE] = ("F32", (2,), f32(scale, float("inf")))
    return found


@pytest.fixture(name="store")
def made_store(tmp_path):
    store = Store(tmp_path)
    for ref, scale in (("a", 1.0), ("b", 1.5)):
        save(tmp_path / ref / "model.safetensors",
             tensors(scale, hostile=True))
        store("commit", f"./{ref}", "-m", ref, "--ref", ref)
    return store


def draw(store, *words):
    store("diff", "a", "b", "--plot", "change.svg", *words)
    return ET.parse(store.path / "change.svg").getroot()


def texts(root):
    return " ".join("".join(node.itertext()) for node in root.iter())


def test_each_cell_is_titled_by_its_module_and_number(store):
    root = draw(store)
    titles = ["".join(t.itertext()) for t in root.iter(SVG + "title")]
    q_proj = [t for t in titles if "q_proj" in t]
    assert len(q_proj) == 4 and all("0.3" in t for t in q_proj)


def test_names_are_text_and_nothing_else(store):
    root = draw(store)
    assert root.tag == SVG + "svg"
    assert not list(root.iter(SVG + "script"))
    raw = (store.path / "change.svg").read_text()
    assert "<script" not in raw and "\x1b" not in raw and "\u202e" not in raw
    assert "http" not in raw.replace("http://www.w3.org/", "")


def test_a_histogram_comes_with_log_probabilities(store):
    (store.path / "p.txt").write_text("one\ntwo\n")
    for ref, logprob in (("a", -0.1), ("b", -0.2)):
        (store.path / "ask.py").write_text(
            "import json, sys\n"
            "for line in sys.stdin:\n"
            f" said = [dict(token='x', logprob={logprob}, top=dict(x={logprob}"
            ", y=-3))]\n"
            " print(json.dumps(dict(id=json.loads(line)['id'], output='x',"
            " logprobs=said)))\n")
        store("fingerprint", ref, "--probes", "p.txt", "--command",
              f"{sys.executable} ask.py")
    assert "KL" in texts(draw(store))


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(store):
    done = store("diff", "a", "b", "--plot", "no/such/change.svg", code=None)
    assert done.code in (3, 7) and "no/such/change.svg" in done.err
    assert done.out == ""


def test_the_picture_does_not_change_what_is_told(store):
    plain = store("--json", "diff", "a", "b").json
    drawn = store("--json", "diff", "a", "b", "--plot", "x.svg").json
    assert json.dumps(plain) == json.dumps(drawn)


def test_nothing_but_a_picture_is_written_over(store):
    model = store.path / "a" / "model.safetensors"
    before = model.read_bytes()
    store("diff", "./a", "./b", "--plot", model, code=2)
    assert model.read_bytes() == before
