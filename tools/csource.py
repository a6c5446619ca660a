"""Just enough C to measure it: tokens, function definitions, nesting.

For code laid out by clang-format and without function-like macros that open
braces. Used by tools/metrics, tools/ifdefs and tools/exports.
"""

import pathlib
import re

TREE = pathlib.Path(__file__).resolve().parent.parent
TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|\s+)
      | (?P<pre>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
      | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<mark>.)""",
    re.X | re.S | re.M)
OPEN = {"(": ")", "[": "]", "{": "}"}


def files(*patterns):
    """The tree's files that match, sorted."""
    found = set()
    for pattern in patterns:
        found.update(TREE.glob(pattern))
    return sorted(found)


def tokens(text):
    """(kind, text, line) of all but comments and white space."""
    line = 1
    result = []
    for match in TOKEN.finditer(text):
        if match.lastgroup != "skip":
            result.append((match.lastgroup, match.group(), line))
        line += match.group().count("\n")
    return result


def close_of(code, start):
    """The index of the bracket that closes the one at start."""
    depth = 0
    for i in range(start, len(code)):
        kind, text, _ = code[i]
        if kind == "mark" and text in "([{":
            depth += 1
        elif kind == "mark" and text in ")]}":
            depth -= 1
            if not depth:
                return i
    raise SyntaxError(f"line {code[start][2]}: not closed")


class Function:
    def __init__(self, name, params, body, first, last):
        self.name = name
        self.params = params  # tokens between the parentheses
        self.body = body      # tokens from { to }
        self.first = first    # line of the name
        self.last = last      # line of the }


def functions(code):
    """Every function defined at the top level, preprocessor lines left out."""
    code = [token for token in code if token[0] != "pre"]
    i = 0
    while i < len(code):
        kind, text, line = code[i]
        if kind == "mark" and text in OPEN and i:
            end = close_of(code, i)
            named = text == "(" and code[i - 1][0] == "name"
            brace = end + 1 < len(code) and code[end + 1][1] == "{"
            if named and brace:
                last = close_of(code, end + 1)
                yield Function(code[i - 1][1], code[i + 1:end],
                               code[end + 1:last + 1], code[i - 1][2],
                               code[last][2])
                end = last
            i = end
        i += 1


def count_params(params):
    """How many parameters stand between the parentheses."""
    texts = [token[1] for token in params]
    if texts in ([], ["void"]):
        return 0
    depth, count = 0, 1
    for text in texts:
        depth += text in "([{" and len(text) == 1
        depth -= text in ")]}" and len(text) == 1
        count += text == "," and not depth
    return count


class Nesting:
    """How deep control statements stand in each other, braces or not."""

    def __init__(self, body):
        self.code = body
        self.deepest = 0
        self.statement(0, 0)

    def text(self, i):
        return self.code[i][1] if i < len(self.code) else ""

    def block(self, i, depth):
        while self.text(i) not in ("}", ""):
            i = self.statement(i, depth)
        return i + 1

    def control(self, i, depth):
        self.deepest = max(self.deepest, depth + 1)
        i = self.statement(close_of(self.code, i + 1) + 1, depth + 1)
        if self.text(i) != "else":
            return i
        below = depth if self.text(i + 1) == "if" else depth + 1
        return self.statement(i + 1, below)

    def loop_do(self, i, depth):
        self.deepest = max(self.deepest, depth + 1)
        i = self.statement(i + 1, depth + 1)
        return close_of(self.code, i + 1) + 2

    def plain(self, i):
        while self.text(i) not in (";", ""):
            if self.text(i) in OPEN and self.code[i][0] == "mark":
                i = close_of(self.code, i)
            i += 1
        return i + 1

    def statement(self, i, depth):
        text = self.text(i)
        if text == "{":
            return self.block(i + 1, depth)
        if text in ("if", "for", "while", "switch"):
            return self.control(i, depth)
        if text == "do":
            return self.loop_do(i, depth)
        if text in ("case", "default"):
            while self.text(i) != ":":
                i += 1
            return i + 1
        return self.plain(i)
