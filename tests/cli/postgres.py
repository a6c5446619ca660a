#!/usr/bin/env python3
"""A PostgreSQL server of our own, in a new folder, that can be killed.

As a program, `postgres.py COMMAND…`: runs a command with BALLAST_PG set to one.
"""

import glob
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile


def bin_dir():
    """Where initdb is; Debian keeps it off the path. None: nowhere."""
    found = shutil.which("initdb")
    if found:
        return pathlib.Path(found).parent
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return pathlib.Path(places[-1]) if places else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Started, with no data but the role `postgres`, whom it trusts."""

    def __init__(self, settings=()):
        self.bin = bin_dir()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ballast-pg-"))
        self.port = free_port()
        self.settings = ["fsync=off", *settings]
        # The server refuses to be root's.
        self.user = {}
        if os.geteuid() == 0:
            name = "postgres" if has_user("postgres") else "nobody"
            self.user = {"user": name, "group": pwd.getpwnam(name).pw_gid}
            shutil.chown(self.dir, name)
        self.run("initdb", "-D", self.dir / "data", "-U", "postgres",
                 "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        self.start()

    @property
    def url(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, program, *args):
        subprocess.run([self.bin / program, *args], check=True, cwd="/",
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       **self.user)

    def start(self):
        """A killed one's sessions may live a moment longer than it."""
        settings = " ".join(f"-c {one}" for one in self.settings)
        for left in reversed(range(20)):
            try:
                return self.run("pg_ctl", "-D", self.dir / "data", "-w", "-s",
                                "-l", self.dir / "log", "start", "-o",
                                f"-p {self.port} -k {self.dir} "
                                f"-c listen_addresses=127.0.0.1 {settings}")
            except subprocess.CalledProcessError:
                if not left:
                    raise

    def kill(self):
        """At once, with nothing put in order."""
        self.run("pg_ctl", "-D", self.dir / "data", "-s", "-m", "immediate",
                 "stop")

    def ask(self, sql):
        done = subprocess.run(["psql", "-qAtd", self.url, "-c", sql],
                              check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if (self.dir / "data" / "postmaster.pid").exists():
            self.kill()
        shutil.rmtree(self.dir)


def has_user(name):
    return any(user.pw_name == name for user in pwd.getpwall())


def main(command):
    if bin_dir() is None:
        sys.exit("postgres.py: there is no initdb here")
    with Server() as server:
        env = dict(os.environ, BALLAST_PG=server.url)
        return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
