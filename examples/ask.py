"""A process runner: ballast fingerprint SPEC --probes FILE --command 'python3 ask.py'

BALLAST_MODEL is a folder with the model. Probes come one a line as JSON on
standard input; one answer a line goes to standard output, in any order.
"""
import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = os.environ["BALLAST_MODEL"]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

for line in sys.stdin:
    probe = json.loads(line)
    inputs = tokenizer(probe["prompt"], return_tensors="pt")
    got = model.generate(**inputs, do_sample=False, output_logits=True,
                         max_new_tokens=probe["max_tokens"],
                         return_dict_in_generate=True)
    ids = got.sequences[0][inputs["input_ids"].shape[1]:]
    names = tokenizer.convert_ids_to_tokens
    said = []
    for token, logits in zip(ids.tolist(), got.logits):
        values, tops = logits[0].log_softmax(-1).topk(20)
        said.append({"token": names(token),
                     "logprob": logits[0].log_softmax(-1)[token].item(),
                     "top": dict(zip(names(tops.tolist()), values.tolist()))})
    print(json.dumps({"id": probe["id"], "logprobs": said,
                      "output": tokenizer.decode(ids, skip_special_tokens=True)}),
          flush=True)
