"""A server of completions that takes a fixed time for each: what a client adds
is what is left. Prints its port.

    server.py MODEL SECONDS TOKENS TOP
"""

import asyncio
import json
import sys

MODEL, SECONDS = sys.argv[1], float(sys.argv[2])
TOKENS, TOP = int(sys.argv[3]), int(sys.argv[4])

SAID = {
    "tokens": [f"tok{i}" for i in range(TOKENS)],
    "token_logprobs": [-0.1] * TOKENS,
    "top_logprobs": [{f"tok{i}": -0.1, **{f"t{k}": -0.1 - k
                                          for k in range(1, TOP)}}
                     for i in range(TOKENS)]}
MODELS = {"object": "list", "data": [
    {"id": "base", "object": "model", "owned_by": "vllm", "root": "base",
     "parent": None},
    {"id": MODEL, "object": "model", "owned_by": "vllm", "root": "x",
     "parent": "base"}]}


def text(value):
    return json.dumps(value).encode()


def said_by(model):
    return text({"object": "text_completion", "model": model,
                 "choices": [{"index": 0, "text": f"by {model}", "logprobs": SAID,
                              "finish_reason": "length"}]})


# Made once: its own work is to be little.
ANSWERS = {b"/v1/models": text(MODELS), b"/version": text({"version": "0"})}
BY_BASE, BY_MODEL = said_by("base"), said_by(MODEL)


async def answer(line, body):
    path = line.split(b" ")[1]
    if path != b"/v1/completions":
        return ANSWERS.get(path, b"{}")
    await asyncio.sleep(SECONDS)
    return BY_BASE if b'"base"' in body else BY_MODEL


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            body = await reader.readexactly(length)
            out = await answer(head.split(b"\r\n")[0], body)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                         b"content-length: %d\r\n\r\n" % len(out) + out)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
