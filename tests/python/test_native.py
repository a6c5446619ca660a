"""The header's types and functions against what a C compiler makes of them."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ballast import _native as native

HEADER = Path(__file__).parents[2] / "include" / "ballast.h"


def structures():
    return [
        value
        for value in vars(native).values()
        if isinstance(value, type)
        and issubclass(value, ctypes.Structure)
        and value is not ctypes.Structure
    ]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_structures_are_laid_out_as_the_compiler_does(tmp_path):
    lines, want = [], []
    for kind in structures():
        name = kind.__name__
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        want.append(ctypes.sizeof(kind))
        for member, _ in kind._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {member}));')
            lines.append(f'printf("%zu\\n", sizeof((({name} *)0)->{member}));')
            place = getattr(kind, member)
            want += [place.offset, place.size]
    source = tmp_path / "layout.c"
    source.write_text(
        f'#include "{HEADER}"\n#include <stdio.h>\nint main(void)\n{{\n'
        + "\n".join(lines)
        + "\nreturn 0;\n}\n"
    )
    program = tmp_path / "layout"
    subprocess.run(["cc", "-o", program, source], check=True)
    got = subprocess.run([program], capture_output=True, text=True, check=True)
    assert [int(line) for line in got.stdout.split()] == want


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_constants_are_those_of_the_header(tmp_path):
    text = HEADER.read_text()
    names = [
        name
        for name in vars(native)
        if re.fullmatch(r"BAL_[A-Z_]+", name) and re.search(rf"\b{name}\b", text)
    ]
    source = tmp_path / "constants.c"
    body = "\n".join(f'printf("%zu\\n", (size_t){name});' for name in names)
    source.write_text(
        f'#include "{HEADER}"\n#include <stdio.h>\nint main(void)\n{{\n{body}\n'
        "return 0;\n}\n"
    )
    program = tmp_path / "constants"
    subprocess.run(["cc", "-o", program, source], check=True)
    got = subprocess.run([program], capture_output=True, text=True, check=True)
    want = [getattr(native, name) % 2**64 for name in names]
    assert [int(line) for line in got.stdout.split()] == want
    assert len(names) > 25


def test_every_function_of_the_header_has_its_signature():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    found = dict(re.findall(r"BAL_API[^;]*?\b(bal_\w+)\s*\(([^)]*)\)\s*;", text))
    assert set(found) == set(native.SIGNATURES)
    for name, parameters in found.items():
        count = 0 if parameters.strip() == "void" else parameters.count(",") + 1
        assert len(native.SIGNATURES[name]) == 1 + count, name
