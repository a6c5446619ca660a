"""Configurations as people publish them, over tiny models; values and keys that
YAML or mergekit take otherwise than they look; and absurd ones. Each by
mergekit 0.1.5 and by ballast."""

import pytest
import yaml

from mergekit_models import write_all
from mergekit_published import PUBLISHED
from mergekit_run import Ballast, Mergekit, differences

# Other names for models, as configurations have them.
NAMES = {
    "./la-base": "la-base", "./la-dense": "la-dense", "la-base@main": "la-base",
    "la-dense@3f2a9c1": "la-dense", "./ad-scaled@v2": "ad-scaled",
    "E:\\merges\\first": "la-base", "D:\\hub\\second": "la-dense",
}


@pytest.fixture(name="both", scope="module")
def made_both(tmp_path_factory):
    models = write_all(tmp_path_factory.mktemp("models"))
    work = tmp_path_factory.mktemp("work")
    return Mergekit(models, work), Ballast(models, work, NAMES)


def outcome(both, text, seed=None):
    """"same", "refused" by both, "only ours", "only theirs"; or what differs.
    And what we said."""
    mergekit, ballast = both
    theirs, refused = mergekit(text, seed)
    ours, error = ballast(text, seed)
    if error:
        assert error.startswith(("exit 2: ", "exit 9: ")), error
        assert "RECORDED" not in error
        return "refused" if refused else "only theirs", error
    if refused:
        return "only ours", refused
    methods = [document["merge_method"]
               for document in yaml.safe_load_all(text)]
    return differences(ours, theirs, methods) or "same", ""


# ---- as they are published ---------------------------------------------------

@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_gives_what_mergekit_gives(both, name):
    assert outcome(both, PUBLISHED[name], 7) == ("same", "")


SLERP = PUBLISHED["a slerp of models"]


@pytest.mark.parametrize("text", [
    SLERP.replace("\n", "\r\n"), "\ufeff" + SLERP.lstrip(),
    SLERP.replace("\n", "\n "), f"%YAML 1.1\n---{SLERP}...\n"],
    ids=["CRLF", "BOM", "indented", "directive"])
def test_how_lines_are_written_does_not_matter(both, text):
    assert outcome(both, text) == ("same", "")


# What is wrong with it, to us; mergekit fails at it as well.
BROKEN = {
    "'50%' is not a number": PUBLISHED["flow maps"].replace("0.53", '"50%"'),
    "mixture of experts": """
base_model: la-base
gate_mode: hidden
experts:
  - source_model: la-dense
    positive_prompts: ["write a function"]
""",
    "no 'weight' is told for tensor":
        PUBLISHED["a condition that is in no list"].replace("0.1}", "[]}"),
    "line 3, column": "\nbase_model: la-base\n  - model: x\nmerge_method: ties",
    "cannot start any token": f"# card\n```yaml{SLERP}```\n",
    "stands for no commit": SLERP.replace("./la-dense", "\u201cla-dense\u201d"),
    "escape character": SLERP.replace("./la-base", '"E:\\m"'),
    "the tag": SLERP + "x: !!python/object/apply:os.system [true]\n",
    "is there twice": SLERP.replace("./la-dense", "./la-base"),
    "is not a map": "- merge_method: slerp\n",
    "there is nothing in it": "# nothing\n",
}


@pytest.mark.parametrize("word", BROKEN)
def test_what_is_broken_is_refused_by_its_name(both, word):
    result, said = outcome(both, BROKEN[word])
    assert result == "refused" and word in said, said


# Refused here alone, and why: it would be passed over in silence, or it is
# not done, and documentation says so.
OURS = {
    "has no parameter 'int_space'":
        SLERP.replace("t: 0.35", "t: 0.35, int_space: cs"),
    "'parameters' is there twice": SLERP + "parameters: {t: 0.5}\n",
    "'chat_template' asks for": SLERP + "chat_template: chatml\n",
    "cannot be written down":
        SLERP.replace("0.35", "[{filter: 'a;b', value: 1}, {value: 0.35}]"),
    "'.inf' is not a number": SLERP.replace("0.35", ".inf"),
    "' 0.5' is not a number": SLERP.replace("0.35", "' 0.5'"),
}


@pytest.mark.parametrize("word", OURS)
def test_what_mergekit_passes_over_is_refused(both, word):
    result, said = outcome(both, OURS[word])
    assert result == "only theirs" and word in said, said


# ---- values ------------------------------------------------------------------

VALUES = """
merge_method: linear
models:
  - model: la-dense
    parameters:
      weight: WEIGHT
  - model: la-sparse
    parameters: {weight: 1}
parameters: {normalize: false, weight: 0.25}
"""

# Numbers by YAML 1.1, and texts that are numbers to what reads them; a space is
# written "·".
NUMBERS = """1e-10 1E5 12e03 .5 5. 1.e+5 1_000 010 0b11 0x1F 1:30 1:30.5 yes no
on OFF True 1.0e-10 -.5 +.5 1.0e10 1e+5 "0.5" "+.5" "5." "1e-5" -0 0. 1.5e+3
9007199254740993 18446744073709551616 1e-320 4.9e-324 1__0 0.1_5 190:20:30 08
09.5 +1 0.1e1 [0.5] [] [true,0.5] ["0.5",1] {value:·0.5}
[{value:·0.5,filter:·null}] [{filter:·"*",value:·2}]
[{filter:·"*:5",value:·2},{value:·1}]
[{filter:·"0.5,1",value:·2},{value:·1}]
[{filter:·"ünï",value:·2},{value:·1}]
[{filter:·mlp,value:·[]},{value:·0.5}] [{value:·[]}]
[{filter:·Mlp,value:·2},{value:·[1,0]}]
[{value:·0.5},{value:·abc}]""".split()
NOT_NUMBERS = """0o17 1/3 50% 2024-05-01 0.5#c "0x1F" "true" "yes" "0b11" "1:30"
"--5" [[0.5]] {} ~ null {filter:·mlp} [{value:·null}] [0.5,null]
[0.5,{value:·1}] [0.5,"abc"] 0.5f 0x1p-3 1d5 _1 1,5 1.000.000
[{filter:·5,value:·1},{value:·0.5}]""".split()


def with_weight(value):
    return VALUES.replace("WEIGHT", value.replace("·", " "))


@pytest.mark.parametrize("value", NUMBERS)
def test_a_value_is_the_number_that_it_is_to_mergekit(both, value):
    assert outcome(both, with_weight(value)) == ("same", "")


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_no_value_to_mergekit_is_none(both, value):
    assert outcome(both, with_weight(value))[0] == "refused"


# ---- slices ------------------------------------------------------------------

def passthrough(*sources):
    """Slices of (model, first, end)."""
    rows = [f"- sources: [{{model: {model}, layer_range: [{first}, {end}]}}]\n"
            for model, first, end in sources]
    return "merge_method: passthrough\nslices:\n" + "".join(rows)


SLICES = {
    "empty ones": passthrough(("la-base", 1, 1), ("la-dense", 0, 1),
                              ("la-wide", 2, 2)),
    "hexadecimal": passthrough(("la-base", "0x0", "0x2")),
    "of a deeper model": passthrough(("la-deep", 10, 12), ("la-base", 0, 3)),
    "many": passthrough(*[("la-base", 0, 3), ("la-wide", 1, 2)] * 40),
    "a tied one last": passthrough(("la-dense", 0, 1), ("la-tied", 1, 2)),
    "a tied one first": passthrough(("la-tied", 0, 1), ("la-dense", 1, 2)),
    "a base that is no source": """
merge_method: linear
base_model: la-base
slices:
- sources: [{model: la-dense, layer_range: [0, 1], parameters: {weight: 2}}]
""",
    "fewer sources first": """
merge_method: linear
slices:
- sources: [{model: la-dense, layer_range: [0, 1]}]
- sources: [{model: la-wide, layer_range: [1, 2]},
            {model: la-base, layer_range: [0, 1]}]
parameters: {weight: 0.25, normalize: false}
""",
    "a tied source beside one that is not": """
merge_method: linear
slices:
- sources: [{model: la-dense, layer_range: [0, 1]},
            {model: la-base, layer_range: [0, 1]}]
- sources: [{model: la-dense, layer_range: [0, 1]},
            {model: la-tied, layer_range: [1, 2]}]
parameters: {weight: 0.25}
""",
    "a vocabulary of other models": """
merge_method: linear
slices:
- sources: [{model: la-dense, layer_range: [0, 1]},
            {model: la-words, layer_range: [0, 1]}]
- sources: [{model: la-dense, layer_range: [0, 1]},
            {model: la-more, layer_range: [0, 1]}]
parameters: {weight: 1}
tokenizer_source: union
""",
    "a base of their own": """
merge_method: linear
base_model: la-words
slices:
- sources: [{model: la-dense, layer_range: [0, 1]},
            {model: la-words, layer_range: [0, 1]}]
  base_model: la-dense
parameters: {weight: 0.25}
tokenizer_source: base
""",
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_give_what_mergekit_gives(both, name):
    assert outcome(both, SLICES[name]) == ("same", "")


@pytest.mark.parametrize("source", [
    ("la-base", 0, 4), ("la-base", -1, 2), ("la-base", 0, 1.5),
    ("la-base", "null", 3), ("la-base", 0, 2**62),
    ("la-base", 2**62, 2**62 + 1), ("la-base", 2**70, 2**70 + 1)], ids=str)
def test_layers_that_there_are_not_are_refused(both, source):
    mergekit, ballast = both
    text = passthrough(source)
    assert source[2] == 2**62 or mergekit(text)[1]
    assert ballast(text)[1].startswith("exit 2: ")


# ---- vocabularies ------------------------------------------------------------

WORDS = """
merge_method: linear
models:
  - {model: la-tied, parameters: {weight: 1}}
  - {model: la-words, parameters: {weight: 0.5}}
  - {model: la-f32, parameters: {weight: 0.5}}
"""


@pytest.mark.parametrize("first", ["la-tied", "la-dense"])
@pytest.mark.parametrize("more", [
    "tokenizer_source: union", "tokenizer_source: la-words", "tokenizer: {}",
    "tokenizer_source: base\nbase_model: la-words\nparameters: {weight: 1}",
    "tokenizer: {pad_to_multiple_of: 16}\ndtype: bfloat16",
    "tokenizer: {pad_to_multiple_of: 16}\ndtype: float16\nout_dtype: float32",
    "tokenizer: {tokens: {w05: {source: la-tied, force: true}}}",
    "tokenizer: {tokens: {w29: {source: {kind: zero}}}}",
    "tokenizer: {tokens: {new: {source: {kind: model_token, model: la-f32, "
    "token_id: 9}}}}"])
def test_a_vocabulary_is_what_mergekit_makes_of_it(both, more, first):
    text = (WORDS + more + "\n").replace("la-tied", first)
    assert outcome(both, text) == ("same", "")


@pytest.mark.parametrize("more", [
    "tokenizer: []", "tokenizer: union", "tokenizer: {source: }",
    "tokenizer: {tokens: {w01: }}", "tokenizer: {pad_to_multiple_of: -7}",
    "tokenizer: {tokens: {w01: {force: 2}}}",
    "tokenizer: {tokens: {w01: {source: {kind: model_token, model: la-tied, "
    "token_id: 99}, force: true}}}", "base_model: []", "parameters: []",
    "dtype: half", "dtype: 5", "dtype: int64"])
def test_what_mergekit_refuses_is_refused(both, more):
    assert outcome(both, WORDS + "tokenizer_source: union\n" * (
        "tokenizer" not in more) + more + "\n")[0] == "refused"


# ---- absurd ones -------------------------------------------------------------

def laughs():
    """Aliases of aliases: 9 ** 9 values."""
    lines = ["a: &a [1,1,1,1,1,1,1,1,1]\n"]
    for one, two in zip("abcdefgh", "bcdefghi"):
        lines.append(f"{two}: &{two} [{','.join([f'*{one}'] * 9)}]\n")
    return "".join(lines)


def listed(*values):
    return with_weight("[" + ",".join(values) + "]")


ABSURD = {
    "more than 4096 models": passthrough(*[("la-base", 0, 1)] * 5000),
    "more than 64 documents": ("---" + VALUES) * 100,
    "more than 4096 values": listed(*["0.5"] * 4097),
    "more than 100000 values": listed(*["0.5"] * 100001),
    "more than 64 levels": with_weight("[" * 2000 + "]" * 2000),
    "more than 100000 values ": laughs() + with_weight("1"),
    "control characters": VALUES + "# \x07\n",
    "a nul byte": with_weight('[{filter: "a\\0b", value: 1}, {value: 1}]'),
    "in a circle": "name: a\nmerge_method: karcher\nmodels: [{model: b}]\n---\n"
                   "name: b\nmerge_method: karcher\nmodels: [{model: a}]\n"
                   "---\nmerge_method: karcher\nmodels: [{model: a}]\n",
    "larger than 1048576 bytes": VALUES + "#" * 2**20,
    "is not a ref name": "name: ../x\n" + VALUES.replace("WEIGHT", "1") + "---"
                         + VALUES.replace("WEIGHT", "1"),
    "token": WORDS + "tokenizer: {tokens: {'': {source: {kind: zero}}}}\n",
    "pad_to_multiple_of": WORDS + f"tokenizer: {{pad_to_multiple_of: {2**62}}}",
    "max_iter": "merge_method: karcher\nmodels: [{model: la-base}]\n"
                "parameters: {max_iter: 1000000000}\n",
    "\\x1b[31m": SLERP.replace("./la-base", '"a\\e[31mb"'),
    "\\u{202e}": SLERP.replace("./la-base", '"a\u202eb"'),
}


@pytest.mark.parametrize("word", ABSURD)
def test_what_is_absurd_ends_in_one_clear_line(both, word):
    _, ballast = both
    done = ballast.bring(ABSURD[word])
    lines = done.stderr.splitlines()
    assert done.returncode in (2, 9), done
    assert word.strip(" '") in lines[0] and len(lines[0]) < 1000, done
    assert all(line.startswith("hint: ") for line in lines[1:]), done


def test_steps_that_never_end_are_taken_as_mergekit_takes_them(both):
    text = PUBLISHED["an exponent that is a text to YAML"]
    assert outcome(both, text.replace("15", "200")) == ("same", "")
