# SPDX-License-Identifier: GPL-2.0
"""The headings of the manual's commands are the usages of the table in the program.
L4LB_WRITE_DOC=1 writes them into ipvsctl.8."""

import os
import re

import pytest
from test_ipvsctl import SOURCES, help_text, verbs

PAGE = SOURCES / "ipvsctl.8"


def usages():
    """(object and verb, usage) of each command, as help prints them."""
    found = []
    for noun, names in verbs().items():
        for verb in names or [""]:
            words = f"{noun} {verb}".strip()
            line = re.search(rf"^  ipvsctl {words}(?: (.*))?$", help_text(*words.split()), re.M)
            found.append((words, line[1] or ""))
    return found


def macros(usage):
    """A usage as words of mdoc(7)."""
    out, last = [], None
    for token in re.findall(r"\[/LEN\]|--[\w-]+|\.\.\.|[][{}|]|[\w-]+", usage):
        named = {"[": "Oo", "]": "Oc", "{": "Bro", "}": "Brc", "|": "|", "...": "...",
                 "[/LEN]": "Ns Oo / Ns Ar LEN Oc"}.get(token)
        kind = "Fl" if token[:2] == "--" else "Cm" if token[0].islower() else "Ar"
        if named:
            out.append(named)
            # Words after these need their macro again.
            last = last if token == "|" else None
            continue
        # One option's name is no value of it.
        if kind != last or kind == "Fl":
            out.append(kind)
        out.append(token[1:] if kind == "Fl" else token)
        last = kind
    return " ".join(out)


def headings(words, usage):
    """One for each, if a usage is a choice."""
    whole = re.fullmatch(r"\{(.*)\}", usage)
    return [f".It Cm {words} {macros(one)}".rstrip().replace(f"Cm {words} Cm", f"Cm {words}")
            for one in (whole[1].split("|") if whole else [usage])]


def start(heading):
    """What tells headings apart: the object, the verb, and a lower-case word after that."""
    return re.match(r"\.It(?: (?!Ar|Op|Oo|Fl|Bro)\S+)+", heading)[0]


@pytest.mark.parametrize("words, usage", usages())
def test_headings_are_the_usages(words, usage):
    page = PAGE.read_text("utf-8")
    there = re.findall(rf"^\.It Cm {words}(?: .*)?$", page, re.M)
    for heading in headings(words, usage):
        if os.environ.get("L4LB_WRITE_DOC") and heading not in there:
            old = [line for line in there if len(headings(words, usage)) == 1 or
                   start(line) == start(heading)]
            assert len(old) == 1, old
            page = page.replace(old[0] + "\n", heading + "\n")
            PAGE.write_text(page, "utf-8")
        else:
            assert heading in there


def test_every_setting_is_in_the_help():
    """And so in the completion, which is made from the same grammar."""
    text = (SOURCES / "policy.h").read_text("utf-8")
    words = re.findall(r'"([\w-]+)"', re.search(r"#define POLICY_WORDS (.*?)\n#define", text, re.S)[1])
    shown = help_text("service", "add")
    assert len(words) > 10
    assert [word for word in words if not re.search(rf"(?<![\w-]){word} ", shown)] == []
