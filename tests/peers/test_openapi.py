"""The HTTP server against requests that schemathesis makes up from its
OpenAPI document: no 500, and answers that are what the document says."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

TREE = pathlib.Path(os.environ["BALLAST_TREE"])
ADAPTER = TREE / "tests" / "data" / "adapters" / "lora_r8_qv"
CHECKS = ("not_a_server_error,status_code_conformance,"
          "content_type_conformance,response_schema_conformance,"
          "unsupported_method,allow_header_conformance")


# Names that are there, so that what is behind them is reached; and none.
NAMES = """[parameters]
t = "acme"
spec = "main"
a = "main"
b = "main"
"""


@pytest.mark.parametrize("config", [NAMES, ""], ids=["there", "made up"])
def test_nothing_that_fits_the_document_is_answered_otherwise(tmp_path, config):
    (tmp_path / "schemathesis.toml").write_text(config)
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("BALLAST_")}
    program = os.environ["BALLAST"]
    store = ["--root", tmp_path / "store", "--tenant", "acme"]
    subprocess.run([program, *store, "commit", ADAPTER, "-m", "m"],
                   env=environment, check=True)
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"s-ecret": {"write": ["*"]}}))
    tokens.chmod(0o600)
    server = subprocess.Popen(
        [program, *store, "serve", "--port", "0", "--tokens", tokens,
         "--access-log", "off"], env=environment, stderr=subprocess.PIPE,
        text=True)
    try:
        line = next(line for line in server.stderr if "listening" in line)
        url = line.split()[-1]
        done = subprocess.run(
            [pathlib.Path(sys.executable).parent / "schemathesis", "run",
             f"{url}/openapi.json", "--checks", CHECKS, "--seed", "1",
             "-H", "Authorization: Bearer s-ecret", "--max-examples", "50"],
            env=environment, cwd=tmp_path, capture_output=True, text=True,
            timeout=900, check=False)
        assert done.returncode == 0, done.stdout[-8000:]
        assert server.poll() is None
    finally:
        server.terminate()
        assert server.wait(60) == 0
