"""Answers probes with transformers and PEFT; `ballast fingerprint --runner peft` runs it.

It is given the model without a file: a safetensors stream on the descriptor
BALLAST_MODEL_FD, the side files (configs, tokenizer) in the folder
BALLAST_MODEL. BALLAST_KIND is `adapter` (the base is the folder BALLAST_BASE)
or `weights`. Probes come as JSON Lines on standard input, answers go as JSON
Lines to standard output: greedy, in float32, with the log-probabilities of the
BALLAST_TOP likeliest tokens at each step. The prompt is no part of the answer.
"""
import sys

# Run as -c, the folder that somebody stands in would be looked in first.
sys.path[:] = [place for place in sys.path if place]

import json  # noqa: E402
import os  # noqa: E402
import struct  # noqa: E402

DTYPES = {
    "BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64",
    "I8": "int8", "U8": "uint8", "I16": "int16", "I32": "int32",
    "I64": "int64", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


def fail(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def read_exactly(stream, size):
    data = bytearray(size)
    view = memoryview(data)
    at = 0
    while at < size:
        got = stream.readinto(view[at:])
        if not got:
            fail("the model's stream ends too early")
        at += got
    return data


def tensors(fd):
    """Each (name, tensor) of the stream, one in memory at a time."""
    import torch

    with os.fdopen(fd, "rb", buffering=0) as stream:
        (length,) = struct.unpack("<Q", read_exactly(stream, 8))
        header = json.loads(bytes(read_exactly(stream, length)))
        header.pop("__metadata__", None)
        rows = sorted(header.items(), key=lambda row: row[1]["data_offsets"])
        for name, row in rows:
            begin, end = row["data_offsets"]
            data = read_exactly(stream, end - begin)
            if row["dtype"] not in DTYPES:
                fail(f"torch has no dtype {row['dtype']} (tensor '{name}')")
            dtype = getattr(torch, DTYPES[row["dtype"]])
            flat = torch.frombuffer(data, dtype=dtype) if data else \
                torch.empty(0, dtype=dtype)
            yield name, flat.reshape(row["shape"])


def load_whole(folder, fd):
    """The architecture from config.json, every parameter from the stream."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.tie_weights()
    target = dict(model.state_dict(keep_vars=True))
    filled = set()
    with torch.no_grad():
        for name, tensor in tensors(fd):
            if name not in target:
                fail(f"the model has no parameter '{name}'")
            if target[name].shape != tensor.shape:
                fail(f"'{name}' has another shape than config.json says")
            target[name].copy_(tensor)
            filled.add(target[name].data_ptr())
    for name, parameter in target.items():
        if parameter.numel() and parameter.data_ptr() not in filled:
            fail(f"the commit lacks '{name}'")
    return model


def load_adapter(folder, base, fd):
    import torch
    from peft import PeftConfig, get_peft_model, set_peft_model_state_dict
    from transformers import AutoModelForCausalLM

    config = PeftConfig.from_pretrained(folder)
    config.inference_mode = True
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    model = get_peft_model(model, config, autocast_adapter_dtype=False)
    state = {name: tensor.to(torch.float32) for name, tensor in tensors(fd)}
    result = set_peft_model_state_dict(model, state)
    if result.unexpected_keys:
        fail(f"PEFT does not know '{result.unexpected_keys[0]}'")
    # PEFT reports every parameter of the base as missing; what must not be is
    # a parameter of the adapter, which would stay as it was drawn.
    mine = ("lora_", "modules_to_save")
    missing = [n for n in result.missing_keys if any(m in n for m in mine)]
    if missing:
        fail(f"the adapter lacks '{missing[0]}'")
    return model


def texts(tokenizer, ids):
    """What tokens are called; ids that no text can tell apart by number."""
    names = tokenizer.convert_ids_to_tokens(ids)
    return [name if isinstance(name, str) else f"token_id:{i}"
            for name, i in zip(names, ids)]


class Asker:
    def __init__(self, model, tokenizer, top):
        from transformers import GenerationConfig

        self.model, self.tokenizer, self.top = model.eval(), tokenizer, top
        end = model.config.eos_token_id
        ends = end if isinstance(end, list) else [end]
        ends = [i for i in ends + [tokenizer.eos_token_id] if i is not None]
        pad = tokenizer.pad_token_id
        self.greedy = GenerationConfig(
            do_sample=False, num_beams=1, use_cache=True,
            eos_token_id=sorted(set(ends)) or None,
            pad_token_id=pad if pad is not None else (ends or [0])[0])

    def encode(self, probe):
        if "prompt" in probe:
            return self.tokenizer(probe["prompt"], return_tensors="pt")
        if not self.tokenizer.chat_template:
            fail(f"probe '{probe['id']}' is a chat, the tokenizer has no "
                 "chat template")
        return self.tokenizer.apply_chat_template(
            probe["messages"], add_generation_prompt=True,
            return_tensors="pt", return_dict=True)

    def logprobs(self, ids, steps):
        import torch

        said = []
        for token, logits in zip(ids, steps):
            logs = torch.log_softmax(logits[0].double(), dim=-1)
            values, where = logs.topk(min(self.top, logs.numel()))
            names = texts(self.tokenizer, where.tolist())
            said.append({
                "token": texts(self.tokenizer, [token])[0],
                "logprob": logs[token].item(),
                "top": {n: v for n, v in zip(names, values.tolist())
                        if v != float("-inf")},
            })
        return said

    def answer(self, probe):
        inputs = self.encode(probe)
        start = inputs["input_ids"].shape[1]
        if not start:
            fail(f"probe '{probe['id']}' gives no token")
        self.greedy.max_new_tokens = probe["max_tokens"]
        got = self.model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            generation_config=self.greedy, output_logits=True,
            return_dict_in_generate=True)
        ids = got.sequences[0][start:].tolist()
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        for stop in probe.get("stop", []):
            text = text.split(stop)[0]
        return {"id": probe["id"], "output": text,
                "logprobs": self.logprobs(ids, got.logits)}


def main():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        import torch
        import transformers
        if os.environ["BALLAST_KIND"] == "adapter":
            import peft
    except ImportError as error:
        fail(f"{error}; BALLAST_PYTHON names the python that has torch, "
             "transformers and peft")
    transformers.logging.disable_progress_bar()
    folder, fd = os.environ["BALLAST_MODEL"], int(os.environ["BALLAST_MODEL_FD"])
    adapter = os.environ["BALLAST_KIND"] == "adapter"
    base = os.environ.get("BALLAST_BASE")
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    model = load_adapter(folder, base, fd) if adapter else \
        load_whole(folder, fd)
    place = base if adapter else folder
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    about = {"engine": "transformers", "version": transformers.__version__,
             "torch": torch.__version__}
    if adapter:
        about["peft"] = peft.__version__
    print(json.dumps({"about": about}), file=out, flush=True)
    asker = Asker(model, tokenizer, int(os.environ["BALLAST_TOP"]))
    with torch.inference_mode():
        for line in sys.stdin.buffer:
            answer = asker.answer(json.loads(line))
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
