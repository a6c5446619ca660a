"""Keys: made for their owner alone, shown by their public half, refused by
name. openssl is what they are checked with."""

import base64
import hashlib
import os
import shutil
import stat
import subprocess

import pytest

from support import run

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(not OPENSSL, reason="no openssl")


def openssl(*args, **more):
    return subprocess.run([OPENSSL, *map(os.fspath, args)], check=True,
                          capture_output=True, timeout=60, **more).stdout


def made(path):
    done = run("key", "generate", "-o", path)
    return done.out


def der(pem):
    return base64.b64decode("".join(pem.split("\n")[1:-2]))


def test_generate_prints_the_id_and_the_public_half(tmp_path):
    out = made(tmp_path / "k.pem")
    first, pem = out.split("\n", 1)
    assert pem.startswith("-----BEGIN PUBLIC KEY-----\n")
    assert pem.endswith("-----END PUBLIC KEY-----\n")
    assert first == "key " + hashlib.sha256(der(pem)).hexdigest()
    text = (tmp_path / "k.pem").read_text()
    assert text.startswith("-----BEGIN PRIVATE KEY-----\n")
    assert text.split("\n")[1] not in out


def test_generate_writes_for_the_owner_alone(tmp_path):
    path = tmp_path / "k.pem"
    run("key", "generate", "-o", path, umask=0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_generate_makes_another_key_each_time(tmp_path):
    assert made(tmp_path / "a.pem") != made(tmp_path / "b.pem")


def test_generate_writes_over_nothing(tmp_path):
    path = tmp_path / "k.pem"
    made(path)
    before = path.read_bytes()
    done = run("key", "generate", "-o", path, code=5)
    assert str(path) in done.err and not done.out
    assert path.read_bytes() == before
    (tmp_path / "link").symlink_to("nothing")
    run("key", "generate", "-o", tmp_path / "link", code=5)
    assert not (tmp_path / "nothing").exists()


def test_show_says_of_a_pair_and_its_half_the_same(tmp_path):
    out = made(tmp_path / "k.pem")
    assert run("key", "show", tmp_path / "k.pem").out == out
    (tmp_path / "k.pub").write_text(out.split("\n", 1)[1])
    done = run("key", "show", tmp_path / "k.pub")
    assert done.out == out and not done.err


def test_json_has_the_members_of_the_contract(tmp_path):
    path = tmp_path / "k.pem"
    new = run("key", "generate", "-o", path, "--json").json
    assert list(new) == ["schema", "key_id", "algorithm", "public_key", "path"]
    assert new["schema"] == "ballast/key/1"
    assert new["algorithm"] == "ed25519" and new["path"] == str(path)
    seen = run("key", "show", path, "--json").json
    assert list(seen) == list(new)[:-1]
    assert seen == {key: new[key] for key in seen}


@needs_openssl
def test_openssl_reads_the_pair_and_gives_the_same_half(tmp_path):
    out = made(tmp_path / "k.pem")
    half = openssl("pkey", "-in", tmp_path / "k.pem", "-pubout").decode()
    assert half == out.split("\n", 1)[1]
    again = openssl("pkey", "-in", tmp_path / "k.pem").decode()
    assert again == (tmp_path / "k.pem").read_text()


@needs_openssl
def test_a_pair_of_openssl_is_shown(tmp_path):
    path = tmp_path / "k.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-out", path)
    half = openssl("pkey", "-in", path, "-pubout").decode()
    assert run("key", "show", path).out.split("\n", 1)[1] == half


def test_a_pair_that_others_may_read_is_warned_of(tmp_path):
    path = tmp_path / "k.pem"
    out = made(path)
    assert not run("key", "show", path).err
    path.chmod(0o644)
    done = run("key", "show", path)
    assert done.out == out
    assert str(path) in done.err and "0644" in done.err
    assert path.read_text().split("\n")[1] not in done.err


OTHERS = [
    (("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"),
     "an RSA key"),
    (("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
     "a P-256 key"),
    (("ecparam", "-genkey", "-name", "prime256v1"), "a P-256 key"),
    (("genpkey", "-algorithm", "x25519"), "an X25519 key"),
    (("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:x"),
     "is encrypted"),
]


@needs_openssl
@pytest.mark.parametrize("how, what", OTHERS, ids=[row[1] for row in OTHERS])
def test_other_keys_are_refused_by_name(tmp_path, how, what):
    path = tmp_path / "k.pem"
    openssl(*how, "-out", path)
    done = run("key", "show", path, code=2)
    assert what in done.err and str(path) in done.err
    assert "hint: " in done.err


def huge(path):
    with open(path, "wb") as file:
        file.write(b"-----BEGIN PRIVATE KEY-----\n")
        file.truncate(1 << 30)


NO_KEYS = {
    "garbage": lambda path: path.write_bytes(bytes(range(256))),
    "an empty file": lambda path: path.write_bytes(b""),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a gigabyte": huge,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("make", NO_KEYS.values(), ids=NO_KEYS.keys())
def test_what_is_no_key_is_refused_in_one_line(tmp_path, make):
    path = tmp_path / "k"
    make(path)
    done = run("key", "show", path, code=2)
    lines = [line for line in done.err.splitlines()
             if not line.startswith("hint: ")]
    assert len(lines) == 1 and str(path) in lines[0]
    assert not done.out


def test_a_key_behind_a_link_is_loaded_for_secrets_are_mounted_so(tmp_path):
    made(tmp_path / "there")
    (tmp_path / "k").symlink_to("there")
    assert run("key", "show", tmp_path / "k").out == \
        run("key", "show", tmp_path / "there").out


WRONG = [
    (("key",), 2, "usage: ballast key"),
    (("key", "generate"), 2, "'-o FILE' is missing"),
    (("key", "generate", "x", "-o", "y"), 2, "'x' is one argument too many"),
    (("key", "show"), 2, "an argument is missing"),
    (("key", "show", "x", "-o", "y"), 2, "'-o' is for generate alone"),
    (("key", "show", "nothing"), 3, "'nothing'"),
    (("key", "shwo", "x"), 2, "did you mean 'show'?"),
    (("key", "trust", "nothing"), 3, "'nothing'"),
    (("key", "generate", "-o", "no/such/folder"), 3, "'no/such/folder'"),
]


@pytest.mark.parametrize("args, code, says", WRONG)
def test_what_cannot_be_done_is_said(tmp_path, args, code, says):
    done = run(*args, cwd=tmp_path, code=code)
    assert says in done.err
    assert not list(tmp_path.iterdir())
