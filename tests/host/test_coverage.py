# SPDX-License-Identifier: GPL-2.0
"""make coverage adds up what the guests have counted."""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[1] / "lab"
SOURCE = """\
#include "l4lb.h"
int main(int argc, char **argv)
{
	if (argc > 1)
		return twice(argc);
	return 0;
}
int unused(void)
{
	return 7;
}
"""
HEADER = """\
static inline int twice(int n)
{
	return n + n - 2 * n;
}
"""


@pytest.fixture
def coverage(tmp_path, monkeypatch):
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("lab_coverage", str(LAB / "coverage"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "WORK", tmp_path)
    monkeypatch.setattr(module, "TOP", tmp_path / "tree")
    return module


@pytest.fixture
def guests(tmp_path):
    """Compiles the program in a mirror of the tree; the function that is returned runs it and
    saves its counters like a guest's."""
    tree, mirror, data = tmp_path / "tree/kernel", tmp_path / "obj/kernel", tmp_path / "data"
    for folder in (tree, mirror):
        folder.mkdir(parents=True)
        (folder / "main.c").write_text(SOURCE, encoding="ascii")
        (folder / "l4lb.h").write_text(HEADER, encoding="ascii")
    subprocess.run(["gcc", "--coverage", "-c", "-o", mirror / "main.o", mirror / "main.c"],
                   check=True, timeout=60)
    subprocess.run(["gcc", "--coverage", "-o", mirror / "run", mirror / "main.o"], check=True,
                   timeout=60)

    def guest(number, *words):
        counters = mirror / "main.gcda"
        counters.unlink(missing_ok=True)
        subprocess.run([mirror / "run", *words], check=True, timeout=60)
        there = data / f"guest-{number}/gcov" / mirror.relative_to("/")
        there.mkdir(parents=True)
        shutil.move(counters, there)
    guest.data, guest.notes = data, mirror / "main.gcno"
    return guest


def test_guests_add_up(coverage, guests):
    """A line is executed if it was in any guest; a header's line is one line."""
    guests(1)
    counters = coverage.Counters()
    assert counters.read(guests.data) == 1
    assert counters.share("kernel") == (3, 8)
    guests(2, "argument")
    counters = coverage.Counters()
    assert counters.read(guests.data) == 2
    assert counters.share("kernel") == (6, 8) and counters.share("schedulers") == (0, 0)
    assert counters.files["kernel/main.c"][4][0] == 2
    assert list(counters.uncovered()) == [
        "kernel/main.c: unused", "      8: int unused(void)", "     10: return 7;"]


def test_other_notes_are_an_error(coverage, guests):
    """The modules were built again: their lines are no longer those that were counted."""
    guests(1)
    source = guests.notes.with_name("main.c")
    source.write_text("int main(void)\n{\n\treturn 0;\n}\n", encoding="ascii")
    subprocess.run(["gcc", "--coverage", "-c", "-o", source.with_name("main.o"), source],
                   check=True, timeout=60)
    with pytest.raises(coverage.CoverageError):
        coverage.Counters().read(guests.data)


def test_notes_are_those_of_this_checkout(coverage, tmp_path):
    ours = tmp_path / "tree/build/objects/6.12-gcov/kernel/main.gcno"
    name = "cache/objects-1/6.12-gcov/kernel/main.gcda"
    assert coverage.notes_of(name) == Path("/", name).with_suffix(".gcno")
    ours.parent.mkdir(parents=True)
    ours.touch()
    assert coverage.notes_of(name) == ours


def test_no_counters_are_an_error(coverage, tmp_path):
    with pytest.raises(coverage.CoverageError, match="no counters"):
        coverage.Counters().read(tmp_path)


@pytest.mark.parametrize("stages", ((), ("6.12",), ("uml", "host")))
def test_only_uml_counts(stages, tmp_path):
    done = subprocess.run([LAB / "suite", "--coverage", tmp_path, *stages], capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == 2 and "--coverage is for the stages uml" in done.stderr


def test_reasons(coverage):
    """Functions with lines that nobody executes need a reason; so that none is overlooked, those
    without one are named."""
    known = coverage.explained(
        "# Lines\n\n- `kernel/a.c`: one, two,\n  three\n- `kernel/b.h`: (inlined)\n\ntext `kernel/c.c`: x\n")
    assert known == {("kernel/a.c", "one"), ("kernel/a.c", "two"), ("kernel/a.c", "three"),
                     ("kernel/b.h", "(inlined)")}
    lines = ["kernel/a.c: two", "     12: return;", "kernel/a.c: four", "kernel/b.h: ",
             "kernel/c.c: x"]
    assert coverage.without_reason(lines, known) == ["kernel/a.c: four", "kernel/c.c: x"]
