"""What results look like in a notebook, read by a parser that is not ours."""

import re
from html.parser import HTMLParser

import numpy
import pytest

import ballast
from ballast import _html

HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[31m\u202e\x00"[:-1]
TAGS = {
    *("table", "thead", "tbody", "tr", "th", "td", "div", "span", "code", "pre"),
    *("details", "summary", "br"),
}


class Page(HTMLParser):
    """Elements, in order, with their text; AssertionError: not well nested."""

    def __init__(self, text):
        super().__init__()
        self.open, self.titles, self.styles = [], [], []
        self.rows, self.cells, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, tag
        attrs = dict(attrs)
        assert set(attrs) <= {"style", "title", "colspan"}, attrs
        if "title" in attrs:
            self.titles.append(attrs["title"])
        if tag != "br":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.cells.append((attrs.get("title"), attrs.get("style", "")))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def shown(thing):
    text = thing._repr_html_()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", text)
    return Page(text)


def model(layers=3, seed=0):
    rng = numpy.random.default_rng(seed)
    parts = ("self_attn.q_proj", "mlp.up_proj")
    made = {
        f"model.layers.{i}.{part}.weight": rng.standard_normal((4, 6), "f4")
        for i in range(layers)
        for part in parts
    }
    return {**made, "lm_head.weight": rng.standard_normal((4, 6), "f4")}


CONFIG = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"]}


def adapter(seed):
    rng = numpy.random.default_rng(seed)
    front = "base_model.model.model.layers.0.self_attn.q"
    return {
        f"{front}.lora_A.weight": rng.standard_normal((2, 6), "f4"),
        f"{front}.lora_B.weight": rng.standard_normal((5, 2), "f4"),
    }


@pytest.fixture
def things(store):
    """One of each kind that shows itself, everything that is free text hostile."""
    message = f"{HOSTILE}\nsecond line"
    made = {**model(), f"layers.1.{HOSTILE}": numpy.ones(3, "f4")}
    one = store.commit("acme", model(), message=message, author=HOSTILE)
    two = store.commit(
        "acme", made, message=message, metadata={HOSTILE: [HOSTILE, {"a": 1.5}]}
    )
    store.commit("acme", adapter(1), config=CONFIG, message="a", ref="left")
    store.commit("acme", adapter(2), config=CONFIG, message="b", ref="right")
    view = store.merge("acme", "linear", ["left", "right"], message="v", ref="both")
    grant = store.grant("acme", two, "other")
    closed = ballast.Store(store.root)
    closed.close()
    return {
        "store": store,
        "closed store": closed,
        "commit": two,
        "view": view,
        "shown commit": store.show("acme", two),
        "log": store.log("acme"),
        "reflog": store.reflog("acme"),
        "grants": store.grants("acme"),
        "grant": grant,
        "diff": store.diff("acme", one, two),
        "layers": store.diff("acme", one, two).layers,
        "diff of adapters": store.diff("acme", "left", "right"),
        "checkout": store.checkout("acme", two),
        "stats": store.stats("acme"),
        "fsck": store.fsck(),
        "gc": store.gc(dry_run=True),
        "plan": store.forget("acme", one, reason=HOSTILE, dry_run=True),
        "proof": store.forget("acme", one, reason=HOSTILE),
    }


def test_everything_shows_itself_and_no_text_becomes_markup(things):
    for name, thing in things.items():
        page = shown(thing)
        assert page.text.strip(), name
        assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", repr(thing)), name
    for name in ("commit", "shown commit", "log", "checkout", "diff", "proof"):
        assert "<img src=x onerror=alert(1)>" in shown(things[name]).text, name


@pytest.mark.parametrize(
    "name, text",
    [
        ("store", "acme"),
        ("closed store", "closed"),
        ("commit", "stored_bytes"),
        ("view", "linear"),
        ("shown commit", "model.layers.2.mlp.up_proj.weight"),
        ("checkout", "model.layers.2.mlp.up_proj.weight"),
        ("diff", "behavioural effect unknown"),
        ("diff of adapters", "as maps: relative change"),
        ("fsck", "ok"),
        ("plan", "nothing was removed"),
        ("proof", "verified"),
    ],
)
def test_what_is_looked_for_is_shown(things, name, text):
    assert text in shown(things[name]).text


def test_a_log_is_a_table_with_a_line_for_each_commit(things):
    head, *lines = shown(things["log"]).rows
    assert head == ["id", "kind", "message", "author", "created_at"]
    assert [line[0] for line in lines] == [row.id[:12] for row in things["log"]]
    assert things["log"][0].id in shown(things["log"]).titles


def test_a_slice_of_rows_shows_itself_too(store):
    for i in range(4):
        store.commit("acme", {"w": numpy.full(3, i)}, message=str(i))
    rows = store.log("acme")
    assert len(shown(rows[1:3]).rows) == 3
    assert rows[1:3] == list(rows)[1:3] and rows[0].message == "3"


def test_a_long_list_is_cut_and_says_so():
    page = Page(_html.table(("n",), [(i,) for i in range(1234)]))
    assert len(page.rows) == 202 and "and 1,034 more" in page.text


def relative(a, b):
    a, b = (numpy.concatenate([x.ravel() for x in s]).astype("f8") for s in (a, b))
    return numpy.linalg.norm(b - a) / numpy.linalg.norm(a)


@pytest.mark.parametrize("layers", [3, 30])
def test_a_heat_map_has_each_module_of_each_layer(store, layers):
    a, b = model(layers), model(layers)
    for i in range(0, layers, 2):
        b[f"model.layers.{i}.mlp.up_proj.weight"] *= 1 + 10.0 ** -(i % 5)
    page = shown(store.diff("acme", a, b))
    titles = [title for title in page.titles if title.startswith("layer ")]
    assert len(titles) == 2 * layers
    for i in range(layers):
        name = f"model.layers.{i}.mlp.up_proj.weight"
        want = relative([a[name]], [b[name]])
        found = [t for t in titles if t.startswith(f"layer {i} mlp.up_proj: ")]
        assert len(found) == 1
        got, changed = re.search(r": (\S+), (\d) of 1 tensors", found[0]).groups()
        assert float(got) == pytest.approx(want, rel=1e-3)
        assert changed == str((i + 1) % 2)


def test_what_has_no_number_is_marked(store):
    a, b = model(), model()
    b["model.layers.1.mlp.up_proj.weight"][0, 0] = numpy.nan
    b["model.layers.0.mlp.extra.weight"] = numpy.ones(2, "f4")
    page = shown(store.diff("acme", a, b))
    assert sum("no number" in title for title in page.titles) == 2


def contrast(style):
    """By WCAG, of the ink on its ground."""
    ground = [int(c) for c in re.search(r"rgb\((.*?)\)", style)[1].split(",")]
    ink = [255 * (";color:#fff" in style)] * 3

    def light(colour):
        c = [x / 255 for x in colour]
        c = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in c]
        return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]

    low, high = sorted((light(ground), light(ink)))
    return (high + 0.05) / (low + 0.05)


def test_ink_can_be_read_on_every_ground():
    cells = [_html.Cell(str(i), "m", 10 ** (i / 10), 1, 1) for i in range(100)]
    page = Page(_html.heat_map([cell.layer for cell in cells], cells))
    styles = [style for title, style in page.cells if title and "rgb(" in style]
    styles = [style for style in styles if "background:rgb" in style]
    assert len(styles) == 100
    assert min(map(contrast, styles)) >= 4.5


def test_grounds_come_with_their_ink_and_others_leave_the_page_s(things):
    for name, thing in things.items():
        for style in re.findall(r'style="(.*?)"', thing._repr_html_()):
            ink = re.search(r"(^|;)color:(?!inherit)", style)
            ground = re.search(r"background:(?!transparent)", style)
            assert not ink or ground, (name, style)


def test_a_model_of_very_many_parts_stays_small(store):
    a = {f"layers.{i}.part{i % 300}.w": numpy.ones(2, "f4") for i in range(600)}
    a.update({f"alone{i}": numpy.ones(2, "f4") for i in range(600)})
    b = {name: tensor * 2 for name, tensor in a.items()}
    text = store.diff("acme", a, b)._repr_html_()
    assert len(text) < 3_000_000
    assert "more" in Page(text).text


def test_an_unobserved_change_is_seen_first(store):
    class Same:
        def run(self, tensors, config, base_model, probes):
            return ["the same"] * len(probes)

    for i in (1, 2):
        store.commit("acme", {"w": numpy.full(4, i, "f4")}, message="m")
        probes = ballast.ProbeSet.of("one", "two")
        ballast.fingerprint(store, "acme", "main", probes, Same())
    diff = store.diff("acme", "main~1", "main")
    assert diff.unobserved
    assert shown(diff).text.count("UNOBSERVED CHANGE") == 1
    assert repr(diff).count("UNOBSERVED CHANGE") == 1


@pytest.mark.parametrize(
    "text, want",
    [
        ("plain ü 漢 \U0001f600", "plain ü 漢 \U0001f600"),
        ("a\tb\x7f", "a\\x09b\\x7f"),
        ("\u202eabc\u2066", "\\u{202e}abc\\u{2066}"),
        ("\x9b1m", "\\u{9b}1m"),
        ("\ud800", "\ufffd"),
    ],
)
def test_what_deceives_is_written_out_as_the_program_does(text, want):
    assert _html.printable(text) == want
