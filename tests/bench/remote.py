"""Section remote: blocks in a real S3 server (tests/support/s3-server) beside
curl, the graph in a PostgreSQL of our own, and what latency and size cost.

    remote.py delay PORT SECONDS    stand before a port of this machine; what
                                    goes through takes so long to and fro
"""

import asyncio
import contextlib
import hashlib
import hmac
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time
import urllib.parse
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from postgres import Server, bin_dir  # noqa: E402

S3 = HERE.parent / "support" / "s3-server"
PARALLEL = 24
WRITERS, EACH = 16, 60


# ---- servers -----------------------------------------------------------------

@contextlib.contextmanager
def s3_server(b):
    """Its environment, or None where it is not installed."""
    folder = pathlib.Path(b.path("s3")).absolute()
    subprocess.run([S3, "up", folder], check=True)
    try:
        if not (folder / "env").exists():
            yield None
            return
        lines = (folder / "env").read_text().splitlines()
        yield dict(line.split("=", 1) for line in lines)
    finally:
        subprocess.run([S3, "down", folder], check=True)


@contextlib.contextmanager
def delayed(port, seconds):
    """A port that leads to another one, and is so far away from it."""
    process = subprocess.Popen(
        [sys.executable, __file__, "delay", str(port), str(seconds)],
        stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


async def carry(reader, writer, seconds):
    """Every piece half of the way later, however many are under way."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue()

    async def deliver():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0, due - loop.time()))
            if not data:
                return writer.close()
            writer.write(data)

    task = asyncio.create_task(deliver())
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 18):
            queue.put_nowait((loop.time() + seconds / 2, data))
    queue.put_nowait((loop.time() + seconds / 2, b""))
    with contextlib.suppress(OSError):
        await task


async def stand_before(port, seconds):
    async def connected(reader, writer):
        await asyncio.sleep(seconds)  # as its handshake would
        there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(carry(reader, there[1], seconds),
                             carry(there[0], writer, seconds))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# ---- throughput --------------------------------------------------------------

def timed(command, place):
    """Seconds of one process that talks to the bucket."""
    start = time.monotonic()
    subprocess.run(command, check=True, env={**os.environ, **place},
                   stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def pieces_of(b, megabytes, size=4 << 20):
    """A model without a pattern, and its bytes as files of a block's size."""
    model, pieces = b.path(f"remote-{megabytes}"), b.path(f"pieces-{megabytes}")
    if not os.path.exists(pieces):
        import numpy as np
        shutil.rmtree(model, ignore_errors=True)
        os.makedirs(model)
        os.makedirs(pieces)
        count = (megabytes << 20) // size
        head = ('{"w":{"dtype":"BF16","shape":[%d],"data_offsets":[0,%d]}}'
                % (count * size // 2, count * size)).encode()
        head += b" " * (-len(head) % 8)
        random = np.random.default_rng(41)
        with open(f"{model}/model.safetensors", "wb") as file:
            file.write(len(head).to_bytes(8, "little") + head)
            for i in range(count):
                data = random.bytes(size)
                file.write(data)
                with open(f"{pieces}/{i:04}", "wb") as piece:
                    piece.write(data)
    return model, pieces


def presigned(place, method, path):
    """A URL that anybody may use once: what curl 7.88 signs by itself, Swift
    refuses. Its bodies are not signed, and so not hashed by either side."""
    now, host = time.gmtime(), place["AWS_ENDPOINT_URL"].split("//")[1]
    date = time.strftime("%Y%m%dT%H%M%SZ", now)
    scope = f"{date[:8]}/{place['AWS_REGION']}/s3/aws4_request"
    query = urllib.parse.urlencode({
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{place['AWS_ACCESS_KEY_ID']}/{scope}",
        "X-Amz-Date": date, "X-Amz-Expires": "3600",
        "X-Amz-SignedHeaders": "host"})
    request = (f"{method}\n{path}\n{query}\nhost:{host}\n\nhost\n"
               f"UNSIGNED-PAYLOAD")
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = b"AWS4" + place["AWS_SECRET_ACCESS_KEY"].encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return (f"{place['AWS_ENDPOINT_URL']}{path}?{query}"
            f"&X-Amz-Signature={key.hex()}")


def curl(b, place, prefix, pieces, out=None):
    """One curl for every piece."""
    lines = []
    for name in sorted(os.listdir(pieces)):
        path = f"/{place['BALLAST_TEST_BUCKET']}/{prefix}/{name}"
        url = presigned(place, "GET" if out else "PUT", path)
        lines += [f'url = "{url}"', f'output = "{out}/{name}"' if out else
                  f'upload-file = "{pieces}/{name}"\noutput = "/dev/null"',
                  "fail", "silent", "next"]
    config = b.path("curl.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("\n".join(lines[:-1]) + "\n")
    words = f"curl --parallel --parallel-max {PARALLEL} -K {config} 2>{config}.err"
    return ["sh", "-c", words + (f" && sync -f {out}" if out else "")]


def throughput(b, place, megabytes=512):
    """The same bytes in the same pieces, as many at once."""
    model, pieces = pieces_of(b, megabytes)
    store, out, copy = b.path("store-remote"), b.path("out"), b.path("copy")
    rows = {"commit": [], "checkout": []}
    for i in range(b.runs + 1):
        ours, theirs = uuid.uuid4().hex, uuid.uuid4().hex
        for path in (store, out, copy):
            shutil.rmtree(path, ignore_errors=True)
        os.makedirs(copy)
        where = f"s3://{place['BALLAST_TEST_BUCKET']}/{ours}"
        timed(b.ballast(store, "--backend", where, "init", "--compression",
                        "none"), place)
        calls = {
            "commit": (curl(b, place, theirs, pieces),
                       b.ballast(store, "commit", model, "-m", "m")),
            "checkout": (None, b.ballast(store, "checkout", "main", "-o", out)),
        }
        for name, (command, command_of_ours) in calls.items():
            os.sync()
            one = timed(command or curl(b, place, theirs, pieces, copy), place)
            os.sync()
            rows[name].append((one, timed(command_of_ours, place)))
        timed(b.ballast(store, "forget", "--reason", "r", "--yes"), place)
    for name, pairs in rows.items():
        theirs, ours = (statistics.median(column) for column in zip(*pairs[1:]))
        b.say(f"curl --parallel / {name} of {megabytes} MiB",
              statistics.median(t / o for t, o in pairs[1:]), 0.8,
              f"{theirs:.2f} s / {ours:.2f} s", least=True)


def latency(b, place, count=500, size=64 << 10, seconds=0.02):
    """A commit of so many blocks, near and far."""
    model, _ = pieces_of(b, count * size >> 20)
    port = int(place["AWS_ENDPOINT_URL"].rsplit(":", 1)[1])
    took = {0: [], seconds: []}
    for _ in range(b.runs):
        for far in took:
            store = b.path("store-remote")
            shutil.rmtree(store, ignore_errors=True)
            with delayed(port, far) as near:
                env = {**place, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{near}"}
                where = f"s3://{place['BALLAST_TEST_BUCKET']}/{uuid.uuid4().hex}"
                timed(b.ballast(store, "--backend", where, "init",
                                "--block-size", str(size)), env)
                took[far].append(timed(b.ballast(store, "commit", model, "-m",
                                                 "m"), env))
    near, far = (statistics.median(rows) for rows in took.values())
    b.say(f"20 ms farther, a commit of {count} blocks: seconds more",
          statistics.median(f - n for n, f in zip(*took.values())), 1,
          f"{near:.2f} s / {far:.2f} s")


# ---- PostgreSQL --------------------------------------------------------------

def tool(b, *words):
    return [os.path.join(os.path.dirname(b.program), "tests", "bench-tenants"),
            *map(str, words)]


def syncs_a_second(folder, seconds=1):
    """As pg_test_fsync does: one block of 8 KiB over and over, each synced."""
    path = os.path.join(folder, "sync-probe")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    count, start = 0, time.monotonic()
    while time.monotonic() < start + seconds:
        os.pwrite(fd, bytes(8192), 0)
        os.fdatasync(fd)
        count += 1
    os.close(fd)
    os.unlink(path)
    return count / seconds


def spent(server):
    """CPU seconds of ended children here, and of the server so far."""
    pid = (server.dir / "data" / "postmaster.pid").read_text().split()[0]
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (ours.ru_utime + ours.ru_stime,
            sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK"))


def written(b, server, schema, folder, anchoring):
    """Adapter commits a second of all writers, each of which has a root of its
    own; milliseconds of CPU of a commit, the writer's and the server's."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    url = f"{server.url}?schema={schema}"
    backend = f"file:{folder}/blocks"
    first = f"{folder}/first"
    subprocess.run(b.ballast(first, "--db", url, "--backend", backend, "init"),
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(b.ballast(first, "--db", url, "config", "anchoring",
                             anchoring), check=True)
    before = spent(server)
    running = [subprocess.Popen(
        tool(b, "write", f"{folder}/w{i}", url, backend, f"r{i}", EACH),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(WRITERS)]
    for one in running:
        one.stdout.readline()
    start = time.monotonic()
    for one in running:
        one.stdin.write(b"\n")
        one.stdin.close()
    for one in running:
        if one.wait():
            raise SystemExit("a writer failed")
    seconds = time.monotonic() - start
    # What the server's sessions took is counted when they are gone.
    while server.ask("SELECT count(*) FROM pg_stat_activity "
                     "WHERE backend_type = 'client backend'") != "1":
        time.sleep(0.05)
    cpu = [1000 * (after - then) / (WRITERS * EACH)
           for after, then in zip(spent(server), before)]
    rows = server.ask(f"SELECT count(*), count(DISTINCT id) FROM "
                      f"{schema}.commits").split("|")
    wanted = str(WRITERS * EACH)
    if rows != [wanted, wanted]:
        raise SystemExit(f"{rows} commits of {wanted}")
    shutil.rmtree(folder)
    return WRITERS * EACH / seconds, cpu


def writers(b):
    """Blocks in memory are the database's own part; without anchoring nothing
    is compared with what was committed before."""
    memory = f"/dev/shm/ballast-bench-{os.getpid()}"
    rows = [("memory", memory, "off"), ("memory", memory, "on"),
            ("files", b.path("store-writers"), "on")]
    with Server(["fsync=on"]) as server:
        for i, (name, folder, anchoring) in enumerate(rows):
            rate, cpu = written(b, server, f"w{i}", folder, anchoring)
            syncs = syncs_a_second(b.folder)
            b.say(f"{WRITERS} writers, {name}, anchoring {anchoring}: commits/s",
                  rate, min(300, syncs), f"{syncs:.0f} fdatasync/s; CPU "
                  f"{cpu[0]:.1f} + {cpu[1]:.1f} ms a commit", least=True)


# ---- size --------------------------------------------------------------------

SHAPES = {"small": (10, 10), "10,000 tenants": (10_000, 10),
          "100,000 commits": (1, 100_000)}


def asked(b, root, url, tenants):
    out = subprocess.run(
        tool(b, "ask", root, url, f"t{tenants // 2:06}", 15), check=True,
        stdout=subprocess.PIPE, text=True).stdout
    return {name: float(ms) for name, ms in map(str.split, out.splitlines())}


def size_on(b, name, url_of):
    """The same questions of a small store and of large ones, by turns."""
    places = []
    for i, (shape, (tenants, commits)) in enumerate(SHAPES.items()):
        root = b.path(f"store-size-{i}")
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
        start = time.monotonic()
        subprocess.run(tool(b, "make", root, url_of(i), tenants, commits),
                       check=True)
        print(f"{name}, {shape}: made in {time.monotonic() - start:.0f} s",
              flush=True)
        places.append((root, url_of(i), tenants))
    rounds = [[asked(b, *place) for place in places] for _ in range(b.runs)]
    for i, shape in enumerate(list(SHAPES)[1:], 1):
        for question in rounds[0][0]:
            small, large = ([row[k][question] for row in rounds]
                            for k in (0, i))
            b.say(f"{name}, {shape} / small: {question}",
                  statistics.median(o / s for s, o in zip(small, large)), 2,
                  f"{statistics.median(large):.2f} ms / "
                  f"{statistics.median(small):.2f} ms")
    for root, *_ in places:
        shutil.rmtree(root)


def remote_section(b):
    size_on(b, "SQLite", lambda _: "sqlite:graph.db")
    if bin_dir() is None:
        print("no initdb: PostgreSQL left out")
    else:
        with Server(["fsync=on"]) as server:
            size_on(b, "PostgreSQL", lambda i: f"{server.url}?schema=s{i}")
        writers(b)
    with s3_server(b) as place:
        if place is None:
            return
        throughput(b, place)
        latency(b, place)


if __name__ == "__main__":
    asyncio.run(stand_before(int(sys.argv[2]), float(sys.argv[3])))
