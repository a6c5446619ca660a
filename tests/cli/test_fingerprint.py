"""Probes and answers: what a runner may do, what is recorded, what goes.

Runners here are small programs of the test's own, or the stand-in."""

import json
import sqlite3
import subprocess
import sys
import time

import pytest

from support import (BALLAST, Store, environment, f32, in_files, model, run,
                     save)

# An honest runner: answers with the bytes of the model's weights in hex.
HONEST = """
import glob, json, os, sys
folder = os.environ["BALLAST_MODEL"]
files = sorted(glob.glob(folder + "/*.safetensors"))
state = b"".join(open(f, "rb").read() for f in files)[-8:].hex()
for line in sys.stdin:
    probe = json.loads(line)
    asked = probe.get("prompt") or probe["messages"][-1]["content"]
    print(json.dumps({"id": probe["id"], "output": state + " " + asked}))
"""


@pytest.fixture(name="store")
def made_store(tmp_path):
    """Two commits on main whose weights differ by much."""
    store = Store(tmp_path)
    for number in (1, 2):
        model(tmp_path / f"m{number}", (number, 2, 3, 4.5 * number))
        store("commit", f"./m{number}", "-m", f"c{number}")
    (tmp_path / "probes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "honest.py").write_text(HONEST)
    return store


def script(store, text):
    path = store.path / "runner.py"
    path.write_text("import glob, json, os, sys, time\n" + text)
    return f"{sys.executable} {path}"


def honest(store):
    return f"{sys.executable} {store.path / 'honest.py'}"


def ask(store, spec="main", *more, command=None, **options):
    return store("--json", "fingerprint", spec, "--probes", "./probes.txt",
                 "--command", command or honest(store), *more, **options)


def recorded(store):
    return store("--json", "probes").json["probe_sets"]


# ---- process runners --------------------------------------------------------

def test_a_command_answers_each_probe_and_it_is_told(store):
    got = ask(store).json
    assert got["runner"] == "process"
    assert [o["output"].split()[1] for o in got["outputs"]] == ["one", "two",
                                                               "three"]
    text = store("fingerprint", "main", "--probes", "./probes.txt",
                 "--command", honest(store)).out
    assert text == f"probe set {got['probe_set'][:12]}: 3 outputs recorded\n"


def test_a_command_sees_the_folder_that_a_checkout_writes(store):
    store("checkout", "main", "-o", "./out")
    names = sorted(p.name for p in (store.path / "out").iterdir())
    got = ask(store, command=script(store, """
folder = os.environ["BALLAST_MODEL"]
names = " ".join(sorted(os.listdir(folder)))
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "output": names}))
""")).json
    seen = got["outputs"][0]["output"].split()
    assert seen == [n for n in names if n != "ballast.json"]


def test_the_folder_is_gone_when_the_command_is(store):
    ask(store)
    assert not list(store.root.glob("asking.ballast*"))


STREAM = """
import struct
with os.fdopen(int(os.environ["BALLAST_MODEL_FD"]), "rb") as stream:
    data = stream.read()
(length,) = struct.unpack("<Q", data[:8])
names = sorted(n for n in json.loads(data[8:8 + length]) if n[:2] != "__")
files = sorted(os.listdir(os.environ["BALLAST_MODEL"]))
print(json.dumps({"about": {"engine": "mine", "version": "1.5"}}))
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"],
                      "output": f"{names} {data[-4:].hex()} {files}"}))
"""


def test_tensors_come_through_a_descriptor_if_asked_for(store):
    got = ask(store, "main", "--stream", "--repeat", "2",
              command=script(store, STREAM)).json
    last = f32(9.0).hex()
    assert {o["output"] for o in got["outputs"]} == {
        f"['w'] {last} ['config.json']"}
    assert got["about"]["engine"] == "mine" and got["about"]["version"] == "1.5"


def test_a_stream_that_nobody_reads_is_no_failure(store):
    ask(store, "main", "--stream")


@pytest.mark.parametrize("about", ["17", '{"x": [1]}', '{"x": null}'])
def test_what_a_runner_tells_of_itself_is_text(store, about):
    code = f"print('{{\"about\": {about}}}')"
    done = ask(store, command=script(store, code), code=7)
    assert "about" in done.error["message"]


def test_answers_may_come_in_any_order(store):
    got = ask(store, command=script(store, """
probes = [json.loads(line) for line in sys.stdin]
for probe in reversed(probes):
    print(json.dumps({"id": probe["id"], "output": probe["prompt"]}))
""")).json
    assert [o["output"] for o in got["outputs"]] == ["one", "two", "three"]


ECHO = """
probes = [json.loads(line) for line in sys.stdin]
def answer(probe, **more):
    print(json.dumps({"id": probe["id"], "output": probe["prompt"], **more}))
"""
# name, what the runner does, what is said of it
BAD = [
    ("drops a probe", ECHO + "for p in probes[1:]: answer(p)",
     "answered 2 of 3 probes, not"),
    ("answers twice", ECHO + "for p in probes + probes: answer(p)",
     "comes twice"),
    ("answers what was not asked",
     ECHO + "answer({'id': 'nobody', 'prompt': ''})",
     "answered 'nobody', which was not asked"),
    ("prints rubbish", "print('Loading model... \\x1b[2K')",
     "wrote a line that is no JSON object: Loading model... \\x1b[2K"),
    ("prints a number", "print(17)", "wrote a line that is no JSON object: 17"),
    ("has no output", ECHO + "print(json.dumps({'id': probes[0]['id']}))",
     "has no 'output' that is a text"),
    ("has logprobs that are none",
     ECHO + "answer(probes[0], logprobs=[{'token': 'x', 'logprob': 'y'}])",
     "has a logprob that is no number"),
    ("has a top of another shape",
     ECHO + "answer(probes[0], logprobs=[{'token': 'x', 'logprob': -1,"
            " 'top': [1]}])", "has a 'top' that is no object"),
    ("says infinity", ECHO + "answer(probes[0], logprobs=[{'token': 'x',"
     " 'logprob': -float('inf'), 'top': {}}])", "invalid token"),
    ("has a logprob above 0",
     ECHO + "answer(probes[0], logprobs=[{'token': 'x', 'logprob': 0.5,"
            " 'top': {}}])", "has the log-probability 0.5"),
    ("fails", "sys.exit('no memory left')",
     "ended with status 1: no memory left"),
    ("fails after it answered", ECHO + "for p in probes: answer(p)\n"
     "sys.stdout.flush(); os._exit(3)", "ended with status 3"),
    ("is killed", "os.kill(os.getpid(), 9)", "ended with status 137"),
    ("kills its shell", "os.kill(os.getppid(), 9)", "was killed by signal 9"),
    ("writes a line without end",
     "sys.stdout.write('x' * (17 << 20))", "wrote a line of over"),
    ("answers at too great a length", ECHO +
     "answer(dict(probes[0], prompt='x' * 300000))", "answer"),
]


@pytest.mark.parametrize("what, code, said", BAD, ids=[row[0] for row in BAD])
def test_nothing_is_recorded_of_a_runner_that(store, what, code, said):
    done = ask(store, command=script(store, code), code=7)
    assert said in done.error["message"], done
    assert recorded(store) == []
    assert not list(store.root.glob("asking.ballast*"))


def test_a_runner_that_hangs_is_killed_with_its_process_group(store):
    flag = store.path / "alive"
    command = script(store, f"""
import subprocess
subprocess.Popen([sys.executable, "-c",
                  "import time, pathlib\\nwhile True:\\n"
                  " pathlib.Path({str(flag)!r}).touch(); time.sleep(.05)"])
time.sleep(600)
""")
    begun = time.monotonic()
    done = ask(store, "main", "--timeout", "1.5", command=command, code=7)
    assert "took more than 1.5 seconds" in done.error["message"]
    assert time.monotonic() - begun < 60
    flag.unlink()
    time.sleep(0.5)
    assert not flag.exists()


def test_a_last_line_need_not_end_and_what_is_left_running_is_not_waited_for(
        store):
    """A child of the runner's holds its output open, another talks on."""
    begun = time.monotonic()
    got = ask(store, command=script(store, """
import subprocess
subprocess.Popen(["sleep", "60"])
subprocess.Popen("while :; do echo noise >&2; sleep .01; done", shell=True)
probes = [json.loads(line) for line in sys.stdin]
lines = [json.dumps({"id": p["id"], "output": p["prompt"]}) for p in probes]
sys.stdout.write("\\n".join(lines))
""")).json
    assert [o["output"] for o in got["outputs"]] == ["one", "two", "three"]
    assert time.monotonic() - begun < 50


def test_a_runner_that_closes_its_output_and_reads_on_gets_an_end(store):
    done = ask(store, command="exec >&- 2>&-; cat >/dev/null", code=7)
    assert "answered 0 of 3 probes" in done.error["message"]


def test_keys_are_not_handed_on(store):
    told = ask(store, command=script(store, """
keys = [k for k in os.environ if "KEY" in k]
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "output": " ".join(keys)}))
"""), env={"BALLAST_SIGNING_KEY": "secret", "BALLAST_PROBE_API_KEY": "secret",
           "MY_KEY": "mine"}).json
    assert told["outputs"][0]["output"] == "MY_KEY"


def test_a_module_that_lies_here_is_not_taken_for_pythons(store):
    (store.path / "json.py").write_text("raise SystemExit('taken in')\n")
    done = store("fingerprint", "main", "--probes", "./probes.txt", "--runner",
                 "peft", env={"BALLAST_PYTHON": sys.executable}, code=7)
    assert "taken in" not in done.err


def test_a_command_that_is_not_there_is_named(store):
    done = ask(store, command="/no/such/runner", code=7)
    assert "ended with status 127" in done.error["message"]
    assert "/no/such/runner" in done.error["message"]


def test_a_runner_that_reads_nothing_but_ends_well_is_told_apart(store):
    done = ask(store, command="true", code=7)
    assert "answered 0 of 3 probes" in done.error["message"]


def test_partial_answers_are_kept_if_asked_for(store):
    drops = script(store, ECHO + "for p in probes[1:]: answer(p)")
    done = ask(store, "main", "--keep-partial", command=drops, code=4)
    assert [o["output"] for o in done.json["outputs"]] == ["two", "three"]
    assert len(done.json["missing"]) == 1
    assert recorded(store)[0]["fingerprints"] == 1


def test_what_came_in_part_does_not_take_the_place_of_the_whole(store):
    flap = script(store, ECHO + "for p in probes[os.path.exists('f'):]: answer(p)")
    ask(store, command=flap)
    (store.path / "f").write_text("")
    done = ask(store, "main", "--keep-partial", command=flap, code=5)
    assert "3 answers are recorded" in done.error["message"]
    shown = store("--json", "probes", "show", recorded(store)[0]["id"]).json
    assert [f["answers"] for f in shown["fingerprints"]] == [3]


def test_rounds_that_are_missing_are_told(store):
    flap = script(store, """
if os.path.exists("second"):
    sys.exit("enough")
open("second", "w")
""" + ECHO + "for p in probes: answer(p)")
    done = ask(store, "main", "--repeat", "3", "--keep-partial", command=flap,
               code=4).json
    assert "enough" in done["about"]["partial"]
    assert "repeat" not in done["about"]


def test_a_delta_is_asked_with_its_base_under_it(store):
    base = save(store.path / "b" / "model.safetensors",
                {"w": ("F32", (4,), f32(0, 1, 2, 3))})
    save(store.path / "t" / "model.safetensors",
         {"w": ("F32", (4,), f32(0, 1, 2, 7.5))})
    store("delta", "./t", "--base", "./b", "-m", "d", "--ref", "d")
    whole = (store.path / "t" / "model.safetensors").read_bytes()[-8:].hex()
    got = ask(store, "d", "--base", base.parent).json
    assert got["outputs"][0]["output"] == whole + " one"
    assert "--base" in ask(store, "d", code=2).error["message"]


def test_repeat_tells_an_unsteady_runner(store):
    unsteady = script(store, """
import random
for line in sys.stdin:
    probe = json.loads(line)
    said = str(random.random()) if probe["prompt"] == "two" else "same"
    print(json.dumps({"id": probe["id"], "output": said}))
""")
    text = store("fingerprint", "main", "--probes", "./probes.txt",
                 "--command", unsteady, "--repeat", "3").out
    assert "1 answered in several ways when asked again" in text


@pytest.mark.parametrize("words, said", [
    (["--max-tokens", "0"], "--max-tokens"),
    (["--repeat", "0"], "--repeat"),
    (["--repeat", "101"], "repeat"),
    (["--timeout", "0"], "--timeout"),
    (["--runner", "http"], "no server is given"),
    (["--runner", "nobody"], "runner"),
    (["--probe-set", "abcd"], "--probe-set"),
])
def test_what_makes_no_sense_is_refused(store, words, said):
    done = ask(store, "main", *words, code=2)
    assert said in done.error["message"], done


# ---- sets of probes ---------------------------------------------------------

def test_sets_are_listed_shown_and_forgotten(store):
    first = ask(store, "main").json
    ask(store, "main~1")
    sets = recorded(store)
    assert [(s["id"], s["probes"], s["fingerprints"]) for s in sets] == [
        (first["probe_set"], 3, 2)]
    shown = store("--json", "probes", "show", first["probe_set"][:6]).json
    assert [p["prompt"] for p in shown["set"]["probes"]] == ["one", "two",
                                                            "three"]
    assert len(shown["fingerprints"]) == 2
    text = store("probes", "show", first["probe_set"][:6]).out
    assert "  one\n" in text and first["commit"][:12] in text
    gone = store("probes", "forget", first["probe_set"][:6]).out
    assert gone == f"forgot probe set {first['probe_set'][:12]}: 2 fingerprints\n"
    assert recorded(store) == []
    assert run("--root", store.root, "fsck", "--all").out == "consistent\n"


def test_a_commit_shows_what_it_answered(store):
    name = ask(store).json["probe_set"]
    assert f"answers    3 to probe set {name[:12]}  " in store("show",
                                                              "main").out
    assert "answers " not in store("show", "main~1").out


def test_a_recorded_set_can_be_asked_again(store):
    first = ask(store, "main").json
    again = store("--json", "fingerprint", "main~1", "--probe-set",
                  first["probe_set"][:12], "--command", honest(store)).json
    assert again["probe_set"] == first["probe_set"]
    assert len(again["outputs"]) == 3


def test_what_is_recorded_is_not_asked_again_with_reuse(store):
    ask(store)
    count = store.path / "count"
    count.write_text("")
    (store.path / "honest.py").write_text(
        HONEST + f"\nopen({str(count)!r}, 'a').write('x')\n")
    text = store("fingerprint", "main", "--probes", "./probes.txt",
                 "--command", honest(store), "--reuse").out
    assert text.endswith("3 outputs recorded before\n")
    assert count.read_text() == ""
    ask(store)
    assert count.read_text() == "x"


def test_tenants_do_not_see_each_others_probes(store):
    first = ask(store).json
    other = Store(store.path, "other")
    assert recorded(other) == []
    other("probes", "show", first["probe_set"][:12], code=3)
    other("probes", "forget", first["probe_set"][:12], code=3)
    assert len(recorded(store)) == 1


# ---- forgetting -------------------------------------------------------------

def asking(store, seconds=30):
    """A fingerprint at work, once its runner has begun."""
    (store.path / "begun").unlink(missing_ok=True)
    slow = script(store, f"""
open("begun", "w")
time.sleep({seconds})
for line in sys.stdin:
    print(json.dumps({{"id": json.loads(line)["id"], "output": "x"}}))
""")
    at_work = subprocess.Popen(
        [BALLAST, "--root", store.root, "--tenant", store.tenant, "fingerprint",
         "main", "--probes", "./probes.txt", "--command", slow],
        cwd=store.path, env=environment(), stderr=subprocess.DEVNULL)
    while not (store.path / "begun").exists():
        time.sleep(0.01)
    return at_work


def test_nothing_is_forgotten_while_a_model_is_in_somebodys_hands(store):
    """Its weights lie in a folder, which a proof would not speak of."""
    with asking(store) as at_work:
        done = store("--wait", "0.2", "--json", "forget", "main", "--reason",
                     "r", code=8)
        assert "a model is being asked" in done.error["message"]
        at_work.terminate()
    assert not list(store.root.glob("asking.ballast*"))
    store("forget", "main", "--reason", "r")


def test_a_set_that_is_being_asked_is_not_forgotten_meanwhile(store):
    name = ask(store).json["probe_set"]
    with asking(store) as at_work:
        store("--wait", "0.2", "probes", "forget", name[:12], code=8)
        at_work.terminate()
    store("probes", "forget", name[:12])
    assert recorded(store) == []


def edit(store, sql):
    with sqlite3.connect(store.root / "graph.db") as db:
        db.execute(sql)


def test_a_set_that_is_damaged_can_be_forgotten(store):
    name = ask(store).json["probe_set"]
    edit(store, "UPDATE probe_sets SET body = x'00'")
    store("probes", "show", name[:12], code=6)
    store("probes", "forget", name[:12])
    assert recorded(store) == []


def test_what_somebody_wrote_into_terms_is_told_harmlessly(store):
    name = ask(store).json["probe_set"]
    edit(store, "UPDATE fingerprints SET terms = terms || char(27)")
    shown = store("--json", "probes", "show", name[:12])
    assert "\x1b" not in shown.out
    assert "\x1b" in shown.json["fingerprints"][0]["terms"]



SECRET = "Mr Quillfeather of 12 Larkspur Row"
TOLD = "has the account 99-1734-XQ"


def contains(store, word):
    needle = word.encode()
    return [path for path in store.root.rglob("*")
            if path.is_file() and needle in path.read_bytes()]


@pytest.fixture(name="secret")
def made_secret(store):
    """A fingerprint of main with somebody's words, and one of each commit with
    others."""
    (store.path / "probes.txt").write_text(SECRET + "\n")
    tells = script(store, f"""
for line in sys.stdin:
    print(json.dumps({{"id": json.loads(line)["id"], "output": {TOLD!r}}}))
""")
    ask(store, "main", command=tells)
    (store.path / "probes.txt").write_text("one\n")
    ask(store, "main")
    ask(store, "main~1")
    return store


def rows(store, table):
    return sqlite3.connect(store.root / "ballast.db").execute(
        f"SELECT COUNT(*) FROM {table}").fetchone()[0]


@in_files
def test_answers_go_with_their_commit_and_probes_with_the_last_answer(secret):
    store = secret
    assert contains(store, SECRET)
    proof = store("--json", "forget", "main", "--reason", "asked for").json
    told = proof["statement"]["predicate"]
    assert len(told["fingerprints"]) == 2 and len(told["probe_sets"]) == 1
    assert proof["verified"]
    assert not contains(store, SECRET) and not contains(store, TOLD)
    assert len(recorded(store)) == 1
    assert run("--root", store.root, "fsck", "--all").out == "consistent\n"


def test_probes_and_answers_go_with_the_tenant(secret):
    store = secret
    store("forget", "--reason", "left", "--yes")
    assert not contains(store, SECRET) and not contains(store, TOLD)


def test_forgetting_a_set_leaves_no_word_of_it(secret):
    store = secret
    name = next(s["id"] for s in recorded(store) if s["fingerprints"] == 1)
    store("probes", "forget", name[:12])
    assert not contains(store, SECRET) and not contains(store, TOLD)
    assert len(recorded(store)) == 1


def test_a_row_that_something_else_wrote_to_is_told(store):
    ask(store)
    edit(store, "UPDATE fingerprints SET body = x'00'")
    done = run("--root", store.root, "fsck", "--all", code=1)
    assert "fingerprints" in done.out
    store("diff", "main", "main", code=6)


def test_a_fingerprint_without_its_probes_is_damage(store):
    ask(store)
    edit(store, "DELETE FROM probe_sets")
    done = run("--root", store.root, "fsck", "--all", code=1)
    assert "probes" in done.out
    store("diff", "main", "main", code=6)
