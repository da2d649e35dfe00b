# SPDX-License-Identifier: GPL-2.0
"""Kernel sources compiled as programs for this machine: commands in, answers out."""

import concurrent.futures
import os
import re
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parent.parent / "unit"
ROOT = UNIT.parent.parent
README = ROOT / "schedulers/README.md"
# All of schedulers/Kbuild, so tests for all include new ones; and "mine", the README's example.
SCHEDULERS = tuple(dict.fromkeys(re.search(
    r"^schedulers := (.*)", (ROOT / "schedulers/Kbuild").read_text(), re.M)[1].split() + ["mine"]))
FLAGS = ("-std=gnu11 -g -O1 -Wall -Werror -Wno-pragmas -Wno-address -pthread "
         "-Wno-unused-function -fsanitize=address,undefined -fno-sanitize-recover=all").split()

# A fresh checkout in another folder finds its objects in the compiler's cache.
CACHED = os.environ | {"PATH": f"/usr/lib/ccache:{os.environ['PATH']}", "CCACHE_NOHASHDIR": "1"}


def stubs(name, texts):
    """A folder of empty files for the kernel headers that TEXTS include, relative to ROOT."""
    folder = Path("build/host") / name
    for header in {header for text in texts for header in re.findall(r"#include <(.*)>", text)}:
        stub = ROOT / folder / header
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.touch()
    return folder


def compiled(folder, sources, options):
    """SOURCES as objects in FOLDER, in their order. The tests end if they do not compile: a
    mutant that does not build must not count as caught."""
    def one(source):
        out = folder / f"{source.stem}.o"
        path = source.relative_to(ROOT) if source.is_relative_to(ROOT) else source
        done = subprocess.run(
            ["gcc", *FLAGS, *options, "-iquote", "kernel", "-c", "-o", out, path],
            cwd=ROOT, env=CACHED, capture_output=True, text=True, timeout=120, check=False)
        return out, done
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(one, sources))
    for out, done in outcomes:
        if done.returncode:
            pytest.exit(f"{out.stem}.c does not compile for this machine:\n{done.stderr}", 1)
    return [out for out, _ in outcomes]


def linked(program, objects):
    subprocess.run(["gcc", *FLAGS, "-o", program, *objects], check=True, timeout=120)


def picks(answers):
    """The answers to `pick`, as one list: [1, 2, None, ...]."""
    out = []
    for line in answers:
        if re.fullmatch(r"(\d+|-)( (\d+|-))*", line):
            out += [None if w == "-" else int(w) for w in line.split()]
    return out


def add(*weights):
    """Commands to add servers 1, 2, ... with these weights."""
    return "".join(f"add {i} {w};" for i, w in enumerate(weights, 1))


def table(answer):
    return {name: tuple(map(int, numbers.split(",")))
            for name, numbers in (word.split("=") for word in answer.split())}
