# SPDX-License-Identifier: GPL-2.0
"""Schedulers compiled as programs for this machine: commands in, picks out."""

import re
from pathlib import Path

UNIT = Path(__file__).parent.parent / "unit"
ROOT = UNIT.parent.parent
README = ROOT / "schedulers/README.md"
# All of schedulers/Kbuild, so tests for all include new ones; and "mine", the README's example.
SCHEDULERS = tuple(dict.fromkeys(re.search(
    r"^schedulers := (.*)", (ROOT / "schedulers/Kbuild").read_text(), re.M)[1].split() + ["mine"]))
FLAGS = ("-std=gnu11 -g -O1 -Wall -Werror -Wno-pragmas -Wno-address -pthread "
         "-fsanitize=address,undefined -fno-sanitize-recover=all").split()


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
