"""Adapters at the edge of what can be folded: what is written is whole, what
cannot be is refused by name, and nothing is left of it."""

import json
import struct

import numpy as np
import pytest

from support import Store, load, save

P = "base_model.model."
ROWS, COLUMNS, RANK = 8, 4, 2


def ones(*shape, dtype="F32"):
    count = int(np.prod(shape))
    if dtype == "I8":
        return (dtype, shape, bytes(count))
    return (dtype, shape, struct.pack("<f", 0.5) * count)


def lora(module, out=ROWS, into=COLUMNS):
    return {f"{P}{module}.lora_A.weight": ones(RANK, into),
            f"{P}{module}.lora_B.weight": ones(out, RANK)}


BASE = {"model.q.weight": ones(ROWS, COLUMNS),
        "lm_head.weight": ones(ROWS, COLUMNS),
        "model.embed_tokens.weight": ones(ROWS, COLUMNS)}
TIED = {name: value for name, value in BASE.items() if name != "lm_head.weight"}
UNTIED = {"model_type": "llama", "tie_word_embeddings": False, "vocab_size": ROWS}
RESIZED = {P + "model.embed_tokens.weight": ones(ROWS + 2, COLUMNS),
           P + "lm_head.weight": ones(ROWS + 2, COLUMNS)}
ONLY_EMBEDDING = {P + "model.embed_tokens.weight": ones(ROWS + 2, COLUMNS)}


class Place:
    def __init__(self, path, base, config, adapter, told, indent=None):
        save(path / "base" / "model.safetensors", base)
        (path / "base" / "config.json").write_text(
            json.dumps(config, indent=indent))
        save(path / "adapter" / "adapter_model.safetensors", adapter)
        (path / "adapter" / "adapter_config.json").write_text(json.dumps(
            {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK,
             "target_modules": ["q"], **told}))
        self.path, self.store = path, Store(path)
        self.done = self.store("commit", "adapter", "-m", "a", "--kind",
                               "adapter", code=None)

    def apply(self, code=0):
        if self.done.code:
            return self.done
        return self.store("apply", "main", "--base", "base", "-o", "out",
                          code=code)

    def config(self):
        return json.loads((self.path / "out" / "config.json").read_text())


@pytest.mark.parametrize("indent", [None, 8])
@pytest.mark.parametrize("base, config, adapter, wanted", [
    (TIED, {"model_type": "llama", "tie_word_embeddings": True},
     lora("model.embed_tokens"), {"tie_word_embeddings": False}),
    (BASE, UNTIED, {**RESIZED, **lora("model.q")}, {"vocab_size": ROWS + 2}),
    (BASE, {**UNTIED, "vocab_size": 1000000000000}, {**RESIZED, **lora("model.q")},
     {"vocab_size": ROWS + 2}),
], ids=["untied", "longer", "shorter"])
def test_a_config_that_is_changed_is_whole(tmp_path, base, config, adapter,
                                           wanted, indent):
    told = {"modules_to_save": ["embed_tokens", "lm_head"]}
    if "lm_head.weight" not in base:
        adapter = {
            name.replace("lora_A.weight", "lora_embedding_A").replace(
                "lora_B.weight", "lora_embedding_B"): value
            for name, value in lora("model.embed_tokens", COLUMNS, ROWS).items()}
        told = {"target_modules": ["embed_tokens"]}
    place = Place(tmp_path, base, config, adapter, told, indent)
    place.apply()
    assert place.config() == {**config, **wanted}


REFUSED = {
    "one number for a whole module":
        (BASE, {P + "model.q.ia3_l": ones(1, 1)}, {"peft_type": "IA3"}, "model.q"),
    "more rows than integers of the base can have":
        ({**BASE, "model.embed_tokens.weight": ones(ROWS, COLUMNS, dtype="I8")},
         {P + "model.embed_tokens.base_layer.weight": ones(ROWS + 2, COLUMNS),
          **lora("model.q")}, {}, "embed_tokens"),
    "a parameter that has other rows beside":
        (BASE, {P + "model.embed_tokens.base_layer.weight":
                ones(ROWS + 4, COLUMNS), **lora("model.embed_tokens")},
         {"target_parameters": ["embed_tokens.weight"], "target_modules": None},
         "embed_tokens"),
    "an embedding of another vocabulary than the head's":
        (BASE, {**ONLY_EMBEDDING, **lora("model.q")},
         {"modules_to_save": ["embed_tokens"]}, "lm_head"),
    "factors of no dimension":
        (BASE, {P + "model.q.lokr_w1_a": ones(), P + "model.q.lokr_w1_b": ones(2, 2),
                P + "model.q.lokr_w2": ones(2, 2)}, {"peft_type": "LOKR"},
         "model.q"),
    "a rank above the first":
        (BASE, {P + "model.q.lora_A": ones(RANK, COLUMNS),
                P + "model.q.lora_B": ones(ROWS, RANK),
                P + "model.q.lora_E": ones(RANK, 1)},
         {"peft_type": "ADALORA", "init_r": 1}, "model.q"),
    "more patterns than anybody writes":
        (BASE, lora("model.q"), {"rank_pattern": {f"m{i}": 2 for i in range(5000)}},
         "rank_pattern"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_folded_is_named_and_nothing_is_written(tmp_path, why):
    base, adapter, told, says = REFUSED[why]
    place = Place(tmp_path, base, UNTIED, adapter, told)
    done = place.apply(code=None)
    assert done.code in (2, 6, 9), done
    assert says in done.err
    assert not (tmp_path / "out").exists()


def folded(tmp_path, name, *args):
    place = Place(tmp_path, *args)
    place.apply()
    dtype, shape, data = load(tmp_path / "out")[name]
    assert dtype == "F32"
    return np.frombuffer(data, "<f4").reshape(shape)


def test_a_key_of_another_kind_of_adapter_scales_nothing(tmp_path):
    got = folded(tmp_path, "model.q.weight", BASE, UNTIED, lora("model.q"),
                 {"alpha": 400})
    assert (got == 0.5 + 2 * RANK * 0.25).all()


def test_adalora_is_scaled_by_the_rank_it_began_with(tmp_path):
    """PEFT 0.21: ranknum stays what init_r was, whatever ranks are left."""
    adapter = {P + "model.q.lora_A": ones(RANK, COLUMNS),
               P + "model.q.lora_B": ones(ROWS, RANK),
               P + "model.q.lora_E": ones(RANK, 1)}
    told = {"peft_type": "ADALORA", "r": 8, "init_r": 3, "lora_alpha": 6,
            "rank_pattern": {"model.q.lora_E": [True, False, True]}}
    got = folded(tmp_path, "model.q.weight", BASE, UNTIED, adapter, told)
    assert np.allclose(got, 0.5 + 6 / (3 + 1e-5) * RANK * 0.125, rtol=1e-7)


def test_a_decoder_of_conv1d_is_turned_inside_another_model(tmp_path):
    name = "decoder.h.0.attn.c_proj"
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(2, 4)).astype("<f4"), rng.normal(size=(4, 2)).astype("<f4"))
    adapter = {f"{P}{name}.lora_A.weight": ("F32", (2, 4), a.tobytes()),
               f"{P}{name}.lora_B.weight": ("F32", (4, 2), b.tobytes())}
    config = {"model_type": "vision-encoder-decoder",
              "decoder": {"model_type": "gpt2"}}
    got = folded(tmp_path, name + ".weight", {name + ".weight": ones(4, 4)}, config,
                 adapter, {"fan_in_fan_out": True})
    assert np.allclose(got, 0.5 + 2 * (b.astype("<f8") @ a).T, rtol=1e-6)
