#!/usr/bin/env python3
"""Check a proof of deletion with nothing of ballast's: a stock Ed25519 library.

usage: verify_proof.py BUNDLE PUBLIC.pem    (`ballast proofs export`, `key show`)
"""
import base64, hashlib, json, sys
from cryptography.hazmat.primitives.serialization import load_pem_public_key

bundle, key = json.load(open(sys.argv[1])), load_pem_public_key(open(sys.argv[2], "rb").read())
envelope, log, sha = bundle["envelope"], bundle["log"], lambda data: hashlib.sha256(data).digest()
payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), pae)  # raises if it is not the key's

node, at, last = sha(b"\0" + payload), log["index"], log["size"] - 1  # RFC 9162, 2.1.3.2
for other in map(bytes.fromhex, log["inclusion"]):
    left = at % 2 or at == last
    node = sha(b"\1" + other + node) if left else sha(b"\1" + node + other)
    while left and at and at % 2 == 0:
        at, last = at // 2, last // 2
    at, last = at // 2, last // 2
head, signature = log["checkpoint"].split("\n\n")  # c2sp.org/tlog-checkpoint
key.verify(base64.b64decode(signature.split()[-1])[4:], (head + "\n").encode())
assert head.split("\n")[1:3] == [str(log["size"]), base64.b64encode(node).decode()], "not in the log"
print("verified:", hashlib.sha256(payload).hexdigest())
