"""What tests of sync-vllm share: adapters that both engines take, a fleet of
stand-ins, and a proxy that may do otherwise."""

import http.client
import json
import urllib.parse

import numpy as np

from servers import Fake, Server
from support import Store, save

LOAD = {"vllm": "/v1/load_lora_adapter", "sglang": "/load_lora_adapter"}
UNLOAD = {"vllm": "/v1/unload_lora_adapter", "sglang": "/unload_lora_adapter"}


def adapter(path, scale=1.0, rank=2, width=4):
    """One of q, k and v, which SGLang wants together."""
    tensors = {}
    for k, module in enumerate(("k_proj", "q_proj", "v_proj")):
        name = f"base_model.model.model.layers.0.self_attn.{module}.lora_"
        a = (np.arange(rank * width, dtype="<f4") + k) * np.float32(scale)
        b = np.arange(width * rank, dtype="<f4") * np.float32(0.5)
        tensors[f"{name}A.weight"] = ("F32", (rank, width), a.tobytes())
        tensors[f"{name}B.weight"] = ("F32", (width, rank), b.tobytes())
    save(path / "adapter_model.safetensors", tensors, {"format": "pt"})
    (path / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "base_model_name_or_path": "tiny", "r": rank,
        "lora_alpha": rank, "target_modules": ["k_proj", "q_proj", "v_proj"],
        "lora_dropout": 0.0, "bias": "none", "task_type": "CAUSAL_LM"}))
    return path


class Fleet(Store):
    """A store whose commits are adapters, and where they are exported to."""

    def __init__(self, path, tenant="acme"):
        super().__init__(path, tenant)
        self.dir = self.path / "exports"
        self.made = 0

    def commit(self, ref, **shape):
        """A new adapter on a ref: its name on servers."""
        self.made += 1
        folder = adapter(self.path / f"made-{self.tenant}-{self.made}",
                         1 + self.made / 8, **shape)
        made = self("--json", "commit", folder, "-m", f"number {self.made}",
                    "--ref", ref).json
        return self.name(ref, made["id"])

    def name(self, ref, commit):
        return f"{self.tenant}-{ref}-{commit[:8]}"

    def refs(self):
        return self("--json", "refs").json["refs"]

    def wanted(self):
        return {self.name(ref, commit) for ref, commit in self.refs().items()}

    def arguments(self, *args, urls):
        named = [word for url in urls for word in ("--url", url)]
        return ["sync-vllm", *args, *named, "-o", self.dir]

    def sync(self, *args, to, code=0, **more):
        """Sync with servers; {fate: what}, of the plain text checked too."""
        urls = [at if isinstance(at, str) else at.url
                for at in (to if isinstance(to, list) else [to])]
        done = self("--json", *self.arguments(*args, urls=urls), code=code,
                    **more)
        document = done.json
        assert document.pop("schema") == "ballast/sync-vllm/1"
        return document

    def state(self):
        return json.loads((self.dir / ".ballast-sync.json").read_text())

    def folders(self):
        place = self.dir / self.tenant
        return {path.name for path in place.iterdir()} if place.is_dir() \
            else set()


def loaded(fake):
    """{name: path} of the adapters that a server lists."""
    rows = fake.send("/v1/models")["data"]
    return {row["id"]: row["root"] for row in rows if row["parent"]}


def engines(engine, *args):
    return Fake("--engine", engine, *args)


def emptied(fake, engine="vllm"):
    """A server that was used before, with nothing loaded and no trouble."""
    fake.set(fail=0, max_lora_rank=16)
    for name in loaded(fake):
        fake.send(UNLOAD[engine], {"lora_name": name})
    return fake


class Proxy(Server):
    """Hands on to a server, unless hook(asked) says that it has answered."""

    def __init__(self, url, hook=None):
        self.hook = hook
        self.to = urllib.parse.urlsplit(url)
        super().__init__(self.answer)

    def answer(self, asked):
        if not self.hook or not self.hook(asked):
            asked.say(*self.ask(asked))

    def ask(self, asked):
        """What the server behind says."""
        link = http.client.HTTPConnection(self.to.hostname, self.to.port,
                                          timeout=30)
        headers = {key: value for key, value in asked.headers.items()
                   if key.lower() in ("content-type", "authorization")}
        link.request(asked.method, asked.path, asked.body, headers)
        answer = link.getresponse()
        body = answer.read()
        link.close()
        return answer.status, body, [("Content-Type", "application/json")]
