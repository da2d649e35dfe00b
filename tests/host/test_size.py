# SPDX-License-Identifier: GPL-2.0
"""Limits of size: no file of more than 700 lines, no function of more than 60 lines or
five parameters. Keyword-only parameters do not count."""

import ast
import os
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
LINES, BODY, PARAMETERS = 700, 60, 5
# A function: its head and the braces of its body are at the beginning of a line.
C_FUNCTION = re.compile(r"^(?!typedef|struct \w+ \{|enum|union)\w[^;={}()]*?(\w+)\(([^;{}]*?)\)[^;{}()]*"
                        r"\n\{\n(.*?)^\}", re.M | re.S)
SHELL_FUNCTION = re.compile(r"^(\w+)\(\)\n?\s*[{(]\n(.*?)^[})]", re.M | re.S)


def kind(path):
    """The language: c, py, sh, or None if the file is not a program."""
    if path.suffix in (".c", ".h"):
        return "c"
    if path.suffix == ".py":
        return "py"
    with open(path, "rb") as file:
        first = file.readline(80)
    if first.startswith(b"#!"):
        return "py" if b"python" in first else "sh"
    return None


def programs():
    for top, directories, files in os.walk(TOP):
        directories[:] = sorted(d for d in directories
                                if d not in ("build", "__pycache__") and not d.startswith("."))
        for path in (Path(top, name) for name in sorted(files)):
            if path.is_file() and (what := kind(path)):
                yield pytest.param(path, what, id=str(path.relative_to(TOP)))


def c_functions(text):
    text = re.sub(r'"(\\.|[^"\\\n])*"|/\*.*?\*/', lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    for name, parameters, body in C_FUNCTION.findall(text):
        yield name, body.count("\n"), 1 + depth_0_commas(parameters)


def depth_0_commas(text):
    """Commas between parameters, without those in a function pointer's own parameters."""
    depth, found = 0, 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        found += letter == "," and not depth
    return found


def py_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = [a.arg for a in node.args.posonlyargs + node.args.args
                     if a.arg not in ("self", "cls")]
            yield node.name, node.end_lineno - node.lineno + 1, \
                0 if fixtures(node) else len(given)


def fixtures(node):
    """Whether pytest passes the parameters, by name: tests and fixtures."""
    return node.name.startswith("test_") or any(
        "fixture" in ast.unparse(decorator) for decorator in node.decorator_list)


def sh_functions(text):
    for name, body in SHELL_FUNCTION.findall(text):
        yield name, body.count("\n"), 0


FUNCTIONS = {"c": c_functions, "py": py_functions, "sh": sh_functions}


def too_much(text, what):
    found = [f"{text.count(chr(10))} lines"] if text.count("\n") > LINES else []
    for name, lines, parameters in FUNCTIONS[what](text):
        found += [f"{name}(): {lines} lines"] if lines > BODY else []
        found += [f"{name}(): {parameters} parameters"] if parameters > PARAMETERS else []
    return found


@pytest.mark.parametrize(("path", "what"), programs())
def test_size(path, what):
    assert not too_much(path.read_text(encoding="utf-8"), what)


C = "static int f(int a, void (*b)(int, int), int c,\n\t     int d, int e{})\n{{\n{}}}\n"
PY = "def f(a, b, c, d, e{}):\n{}"
SH = "f()\n{{\n{}}}\n"


@pytest.mark.parametrize(("text", "what", "found"), [
    (C.format("", "\tx();\n" * 60), "c", []), (C.format("", "\tx();\n" * 61), "c", ["f(): 61 lines"]),
    (C.format(", int g", "\tx();\n"), "c", ["f(): 6 parameters"]),
    (PY.format(", *, g", "    x()\n" * 59), "py", []),
    (PY.format("", "    x()\n" * 60), "py", ["f(): 61 lines"]),
    (PY.format(", g", "    x()\n"), "py", ["f(): 6 parameters"]),
    (SH.format("\tx\n" * 60), "sh", []), (SH.format("\tx\n" * 61), "sh", ["f(): 61 lines"]),
    ("x\n" * 701, "sh", ["701 lines"])], ids=range(9))
def test_what_is_too_much(text, what, found):
    assert too_much(text, what) == found
