"""Section serve: the HTTP server beside nginx and cp, by wrk on loopback."""

import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import threading
import time
import urllib.request

NGINX = """
daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log; worker_processes 2;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  server {{ listen 127.0.0.1:{port}; root {root}; }} }}
"""
TOKEN = "a-token-of-the-benchmark"
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
         "B": 1}


def number(text):
    value, unit = re.fullmatch(r"([\d.]+)([A-Za-z]*)", text).groups()
    return float(value) * UNITS.get(unit, 1)


def wrk(url, connections, seconds=4, threads=1):
    """Requests a second, bytes a second, milliseconds of the 99th percentile."""
    out = subprocess.run(
        ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s",
         "--latency", "-H", f"Authorization: Bearer {TOKEN}", url],
        capture_output=True, text=True, check=True).stdout
    bad = re.search(r"Non-2xx.*", out)
    if bad:
        raise SystemExit(f"{url}: {bad.group()}")
    return (float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)),
            number(re.search(r"Transfer/sec:\s+(\S+)", out).group(1)),
            number(re.search(r"99%\s+(\S+)", out).group(1)))


@contextlib.contextmanager
def served(b, store):
    tokens = b.path("tokens.json")
    with open(tokens, "w") as file:
        json.dump({TOKEN: {"write": ["*"]}}, file)
    os.chmod(tokens, 0o600)
    server = subprocess.Popen(
        [b.program, "--root", store, "serve", "--port", "0", "--tokens", tokens,
         "--access-log", "off"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        found = re.search(r"listening on (\S+)", line)
        if found:
            break
    threading.Thread(target=server.stderr.read, daemon=True).start()
    try:
        yield server.pid, found.group(1)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


@contextlib.contextmanager
def nginx(b, root, port=18980):
    folder = b.path("nginx")
    os.makedirs(folder, exist_ok=True)
    conf = os.path.join(folder, "conf")
    with open(conf, "w") as file:
        file.write(NGINX.format(dir=folder, port=port, root=root))
    server = subprocess.Popen(["nginx", "-c", conf, "-p", folder],
                              stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url + "/adapter_model.safetensors").close()
            break
        time.sleep(0.02)
    try:
        yield url
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def rss(pid, key="VmHWM"):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(key + r":\s+(\d+)", file.read()).group(1)) / 1024


def download(url):
    request = urllib.request.Request(
        url, headers={"Authorization": f"Bearer {TOKEN}"})
    total = 0
    with urllib.request.urlopen(request) as answer:
        while True:
            piece = answer.read(1 << 20)
            if not piece:
                return total
            total += len(piece)


def many_downloads(url, count):
    """So many by one small program: each connection takes what comes."""
    subprocess.run(["wrk", "-t2", f"-c{count}", "-d6s", "--timeout", "60s",
                    "-H", f"Authorization: Bearer {TOKEN}", url],
                   check=True, stdout=subprocess.DEVNULL)


def make_other(path, to, seed):
    """An adapter of the same shape that has nothing to do with it."""
    import numpy as np
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = 8 + int.from_bytes(data[:8], "little")
    values = np.random.default_rng(seed).standard_normal(
        (len(data) - at) // 2, dtype=np.float32) * np.float32(0.02)
    data[at:] = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    with open(to, "wb") as file:
        file.write(data)


def uploads(b, url, path):
    copy = b.path("copy")
    pairs = []
    for i in range(b.runs + 1):
        shutil.rmtree(copy, ignore_errors=True)
        os.sync()
        start = time.monotonic()
        subprocess.run(f"mkdir {copy} && cp {path} {copy} && sync", shell=True,
                       check=True)
        theirs = time.monotonic() - start
        fresh = b.path("fresh.safetensors")
        make_other(path, fresh, i + 1)
        os.sync()
        start = time.monotonic()
        subprocess.run(["curl", "-sSf", "-o", "/dev/null", "-T", fresh, "-X",
                        "POST", "-H", f"Authorization: Bearer {TOKEN}",
                        f"{url}/tenants/acme/commits?message=m{i}&ref=up"],
                       check=True)
        pairs.append((theirs, time.monotonic() - start))
    pairs = pairs[1:]
    return (statistics.median(a / o for a, o in pairs),
            statistics.median(o for _, o in pairs))


def serve_section(b, make, run):
    for tool in ("wrk", "nginx", "curl"):
        if not shutil.which(tool):
            print(f"no {tool}: left out")
            return
    store, folder = b.path("store-serve"), b.path("adapter")
    shutil.rmtree(store, ignore_errors=True)
    if not os.path.exists(folder):
        make("adapter", folder)
    run(b.ballast(store, "commit", folder, "-m", "m", "--ref", "main"))
    path = os.path.join(folder, "adapter_model.safetensors")
    with served(b, store) as (pid, url):
        small = f"{url}/tenants/acme/loras"
        large = f"{url}/tenants/acme/commits/main/adapter"
        download(large)
        rate, _, late = wrk(small, 64)
        b.say("GET /loras, requests a second", rate, 20000,
              f"p99 {late:.1f} ms", least=True)
        with nginx(b, folder) as theirs:
            pairs = []
            for _ in range(b.runs):
                one = wrk(f"{theirs}/adapter_model.safetensors", 8)[1]
                pairs.append((one, wrk(large, 8)[1]))
        b.say("adapter of 84 MB, 8 connections / nginx, sendfile",
              statistics.median(o / t for t, o in pairs), 0.7,
              f"{statistics.median(o for _, o in pairs) / 1e9:.2f} GB/s",
              least=True)
        many_downloads(large, 200)
        b.say("200 downloads at once: peak RSS, MiB", rss(pid), 300)
        busy = subprocess.Popen(["wrk", "-t1", "-c8", "-d8s", "-H",
                                 f"Authorization: Bearer {TOKEN}", large],
                                stdout=subprocess.DEVNULL)
        time.sleep(1)
        late = wrk(small, 8, seconds=4)[2]
        busy.wait()
        b.say("GET /loras beside 8 downloads, p99, ms", late, 10)
        ratio, seconds = uploads(b, url, path)
        b.say("cp + sync / upload of 84 MB", ratio, 0.5, f"{seconds:.3f} s",
              least=True)
    shutil.rmtree(store, ignore_errors=True)
