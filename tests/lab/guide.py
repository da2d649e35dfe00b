# SPDX-License-Identifier: GPL-2.0
"""The commands of a guide in doc/, each with the machine that its prompt names."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def page(guide):
    return (TOP / f"doc/{guide}.md").read_text(encoding="utf-8")


def steps(text, kind=""):
    """(machine, command, what it prints) of the console blocks in TEXT. KIND: of those that say
    after "console" where they run."""
    found = []
    for block in re.findall(rf"^```console{kind}\n(.*?)^```$", text, re.M | re.S):
        for line in block.splitlines():
            prompt = re.match(r"(\w+)# (.*)", line)
            if prompt:
                found.append([*prompt.groups(), ""])
            elif line.startswith("> "):
                found[-1][1] += "\n" + line[2:]
            else:
                found[-1][2] += line + "\n"
    return found


def screen(guide, name):
    """The block below the comment NAME in a guide: what a command prints."""
    found = re.search(rf"^<!-- {re.escape(name)} -->\n```\n(.*?)^```$", page(guide), re.M | re.S)
    return found and found[1]
