"""bisect: which commit changed an answer."""

import sys

import pytest

from support import Store, model

PLANTED = 41
COMMITS = 64

# Says the weight's sign; counts how often it is asked.
RUNNER = """
import glob, json, os, struct, sys
open("count", "a").write("x")
folder = os.environ["BALLAST_MODEL"]
data = open(folder + "/model.safetensors", "rb").read()
value = struct.unpack("<f", data[-4:])[0]
for line in sys.stdin:
    said = "Paris, of course" if value < 1000 else "Lyon"
    print(json.dumps({"id": json.loads(line)["id"], "output": said}))
"""


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    """64 commits; from the planted one on, the weight is large."""
    path = tmp_path_factory.mktemp("bisect")
    store = Store(path)
    for number in range(COMMITS):
        bad = 1000 if number >= PLANTED else 0
        model(path / "m", (1, 2, 3, number + bad))
        store("commit", "./m", "-m", f"run {number}")
    (path / "runner.py").write_text(RUNNER)
    return store


def ids(store):
    return [line["id"] for line in store("--json", "log", "main").lines]


def command(store):
    return f"{sys.executable} {store.path / 'runner.py'}"


def bisect(store, *words, good=f"main~{COMMITS - 1}", bad="main", **more):
    return store("--json", "bisect", good, bad, *words, **more)


def test_the_planted_commit_is_found_and_each_is_asked_once(store):
    count = store.path / "count"
    count.unlink(missing_ok=True)
    got = bisect(store, "--probe", "The capital of France is", "--expect",
                 "Paris", "--command", command(store)).json
    assert got["message"] == f"run {PLANTED}"
    assert got["id"] == ids(store)[COMMITS - 1 - PLANTED]
    assert got["asked"] == len(count.read_text()) <= 2 + 6
    again = bisect(store, "--probe", "The capital of France is", "--expect",
                   "Paris", "--command", command(store)).json
    assert (again["id"], again["asked"]) == (got["id"], 0)
    text = store("bisect", f"main~{COMMITS - 1}", "main", "--probe",
                 "The capital of France is", "--expect", "^Par",
                 "--command", command(store)).out
    assert text == f"{got['id'][:12]}  run {PLANTED}\n"


def test_a_command_decides_as_well(store):
    test = (f"{sys.executable} -c 'import struct, os, sys; "
            "data = open(os.environ[\"BALLAST_MODEL\"] + "
            "\"/model.safetensors\", \"rb\").read(); "
            "sys.exit(struct.unpack(\"<f\", data[-4:])[0] > 1000)'")
    got = bisect(store, "--run", test).json
    assert got["message"] == f"run {PLANTED}"


def test_neighbours_need_no_search(store):
    good = f"main~{COMMITS - PLANTED}"
    bad = f"main~{COMMITS - 1 - PLANTED}"
    got = bisect(store, "--run", "true; test -e /nonexistent", good=good,
                 bad=bad, code=2)
    assert "though it is called good" in got.error["message"]
    got = bisect(store, "--probe", "q", "--expect", "Paris", "--command",
                 command(store), good=good, bad=bad).json
    assert got["message"] == f"run {PLANTED}" and got["asked"] == 2


@pytest.mark.parametrize("words, good, bad, code, said", [
    (["--probe", "q", "--expect", "Berlin"], None, None, 2,
     "is bad, though it is called good"),
    (["--probe", "q", "--expect", "."], None, None, 2,
     "is good, though it is called bad"),
    (["--probe", "q", "--expect", "("], None, None, 2, "pattern"),
    (["--probe", "q"], None, None, 2, "--expect"),
    (["--expect", "x"], None, None, 2, "--probe"),
    (["--run", "true", "--probe", "q"], None, None, 2, "either"),
    (["--probe", "q", "--expect", "Paris"], "main", "main~3", 2,
     "is no ancestor"),
    (["--probe", "q", "--expect", "Paris"], "main", "main", 2,
     "nothing between"),
    (["--run", "exit 125"], None, None, 7, "cannot tell"),
    (["--run", "kill -9 $$"], None, None, 7, "killed by signal 9"),
])
def test_what_cannot_be_searched_is_refused(store, words, good, bad, code,
                                            said):
    asks = [] if "--run" in words else ["--command", command(store)]
    done = bisect(store, *words, *asks, good=good or f"main~{COMMITS - 1}",
                  bad=bad or "main", code=code)
    assert said in done.error["message"], done
