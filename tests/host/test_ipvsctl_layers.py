# SPDX-License-Identifier: GPL-2.0
"""The source files of ipvsctl have no circular calls, a header for every file that others
use, and no public symbol that only its own file uses."""

import re
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/ipvsctl"
# Objects of the command line: main.c finds them by the table that cmd.h declares.
COMMANDS = "cmd.h"


def code(path):
    """The source text without comments, strings and the names of structures."""
    text = re.sub(r'/\*.*?\*/|(?<!include )"(?:[^"\\\n]|\\.)*"', "",
                  path.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"\b(?:struct|enum) \w+", "", text)


SOURCES = {path.name: code(path) for path in sorted(TOOL.glob("*.[ch]"))}
FILES = [name for name in SOURCES if name.endswith(".c")]


def definitions(text):
    """Names of the functions and variables that other files can use."""
    return set(re.findall(r"^(?!static |extern |typedef )[a-z ][^;{}()=\n]*?\b(\w+)"
                          r"(?:\([^;{}]*\)\n\{|(?:\[[^]\n]*\])? = )", text, re.M)) - {"main"}


DEFINED = {symbol: name for name in FILES for symbol in definitions(SOURCES[name])}
USES = {name: {DEFINED[symbol] for symbol in re.findall(r"\b\w+\b", SOURCES[name])
               if symbol in DEFINED} - {name} for name in FILES}


def reached(name):
    found, left = set(), list(USES[name])
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += USES[at]
    return found


@pytest.mark.parametrize("name", FILES)
def test_no_circle(name):
    back = sorted(other for other in reached(name) if name in reached(other))
    assert not back


@pytest.mark.parametrize("name", FILES)
def test_a_header_for_each(name):
    header = name[:-2] + ".h"
    declared = SOURCES.get(header, "") + SOURCES[COMMANDS]
    public = definitions(SOURCES[name])
    assert not {symbol for symbol in public if not re.search(rf"\b{symbol}\b", declared)}
    alone = {symbol for symbol in public if not any(
        re.search(rf"\b{symbol}\b", SOURCES[other]) for other in FILES if other != name)}
    assert not alone, "static would do"
