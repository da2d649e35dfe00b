# SPDX-License-Identifier: GPL-2.0
"""kernel/ is built in layers: a file includes and calls only what is in its own folder or in
one below it. kernel/main.c may use everything; ftp/ is a module of its own."""

import re
from pathlib import Path

import pytest

KERNEL = Path(__file__).parents[2] / "kernel"
# Lowest first.
LAYERS = ("base", "service", "conn", "forward", "sync", "entry", "config", "api", "ftp")
# For all layers: the interfaces to schedulers and to user space.
PUBLIC = ("sched.h", "l4lb.h", "l4lb_policy.h")


def code(path):
    """The source text without comments and strings."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|(?<!include )"(?:[^"\\\n]|\\.)*"', "", path.read_text(encoding="utf-8"),
                  flags=re.S)


SOURCES = {str(path.relative_to(KERNEL)): code(path) for path in sorted(KERNEL.rglob("*.[ch]"))}


def height(name):
    folder = name.partition("/")[0]
    return LAYERS.index(folder) if folder in LAYERS else len(LAYERS)


def definitions(text):
    """Names of the functions and variables that other files can use."""
    return set(re.findall(r"^(?!static |extern )[a-z][^;{}()=]*?\b(l4lb_\w+)"
                          r"(?:\([^;{}]*\)\n\{|(?:\[[^]\n]*\])?(?: __\w+)?(?: = .*)?;$)", text, re.M)) | \
        set(re.findall(r"^DEFINE_PER_CPU\(.*\b(l4lb_\w+)\);", text, re.M))


DEFINED = {symbol: name for name, text in SOURCES.items() if name.endswith(".c")
           for symbol in definitions(text)}


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_runs_up(name):
    text = SOURCES[name]
    included = [header for header in re.findall(r'#include "(.*)"', text) if header not in PUBLIC]
    assert not set(included) - set(SOURCES), "included by their path from kernel/"
    used = {symbol: DEFINED[symbol] for symbol in re.findall(r"\bl4lb_\w+", text)
            if symbol in DEFINED}
    up = [header for header in included if height(header) > height(name)]
    if name.endswith(".c"):
        up += [f"{symbol} of {where}" for symbol, where in used.items()
               if height(where) > height(name)]
    assert not up


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith(".c")])
def test_a_header_for_each(name):
    """Symbols of X.c that other files use are declared in X.h, or in sched.h."""
    if name.endswith("main.c"):
        return
    header = name[:-2] + ".h"
    assert header in SOURCES
    public = {symbol for symbol, where in DEFINED.items() if where == name}
    declared = set(re.findall(r"\bl4lb_\w+", SOURCES[header]))
    elsewhere = {symbol for symbol in public - declared if symbol not in SOURCES["sched.h"]}
    assert not elsewhere
    exported = set(re.findall(r"^EXPORT_SYMBOL_GPL\((\w+)\)", SOURCES[name], re.M))
    unused = {symbol for symbol in public - exported
              if len(re.findall(rf"\b{symbol}\b", SOURCES[header])) == 1
              and not any(re.search(rf"\b{symbol}\b", text) for other, text in SOURCES.items()
                          if other not in (name, header))}
    assert not unused, "static would do"


def test_headers_stay_short():
    lines = {name: (KERNEL / name).read_text(encoding="utf-8").count("\n")
             for name in SOURCES if name.endswith(".h") and name not in PUBLIC}
    # Used nearly everywhere; the last has a few lines for each kernel that differs.
    objects = {"conn/conn.h", "service/server.h", "base/compat.h"}
    assert not {name: n for name, n in lines.items() if n > (270 if name in objects else 180)}


def test_schedulers_stay_short():
    """A scheduler is read as a whole by whoever writes another one."""
    lines = {path.name: path.read_text(encoding="utf-8").count("\n")
             for path in (KERNEL.parent / "schedulers").glob("*.[ch]")}
    assert len(lines) > 14 and not {name: n for name, n in lines.items() if n > 150}
