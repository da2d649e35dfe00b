# SPDX-License-Identifier: GPL-2.0
"""The mutants (tests/mutants), and how tests/lab/mutants judges a run."""

import ast
import dataclasses
import functools
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
LAB = TOP / "tests/lab"

sys.dont_write_bytecode = True


def load(name):
    loader = importlib.machinery.SourceFileLoader(f"lab_{name}", str(LAB / name))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    # Its dataclasses look their module up there.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


mutants = load("mutants")
PATCHES = sorted((TOP / "tests/mutants").glob("*/*.patch"))
WHAT = {"kernel": ("kernel/", "schedulers/"),
        "ipvsctl": ("tools/", "debian/", "Makefile", "doc/l4lb.7")}


@functools.cache
def names(path):
    """The test functions of a file, those of classes as CLASS::NAME."""
    found = set()
    for node in ast.parse((TOP / path).read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {prefix + n.name for n in inside if isinstance(n, ast.FunctionDef)}
    return found


def misfits(mutant):
    """What is wrong with a heading: it says what the patch breaks and names existing tests;
    the patch fits its folder."""
    if len(mutant.breaks) > 100 or mutant.breaks.endswith("."):
        yield mutant.breaks
    if not mutant.files:
        yield "no files"
    yield from (f for f in mutant.files if not f.startswith(WHAT[mutant.path.parent.name]))
    for test in mutant.tests:
        file, _, name = test.partition("::")
        if not (file.startswith("tests/") and (TOP / file).is_file()) or \
                file.startswith("tests/host/") != (mutant.vehicle == "host") or \
                name and name.partition("[")[0] not in names(file):
            yield test


def refusal(patch, top):
    """Why a patch does not apply to the tree at TOP; "": it does."""
    # Without the ceiling, git would skip the files if TOP were a folder in some repository.
    return subprocess.run(["git", "apply", "--check", "-p1", patch], cwd=top, text=True,
                          capture_output=True, check=False,
                          env=os.environ | {"GIT_CEILING_DIRECTORIES": str(top.parent)}).stderr


# One test for all: a test of its own for each of 600 patches took ten times as long.
def test_headings():
    found = {path.name: list(misfits(mutants.read(path))) for path in PATCHES}
    assert not {name: what for name, what in found.items() if what}


def test_all_apply():
    found = {path.name: refusal(path, TOP) for path in PATCHES}
    assert not {name: what for name, what in found.items() if what}


def test_misfits_and_refusals(tmp_path):
    """The two tests above can fail."""
    good = mutants.read(PATCHES[0])
    assert not list(misfits(good))
    for change in ({"breaks": "x" * 101}, {"breaks": "Ends."}, {"files": ()},
                   {"files": ("README.md",)}, {"tests": ("tests/no.py",)},
                   {"tests": (f"{good.tests[0].partition('::')[0]}::test_no",)},
                   {"vehicle": "debug" if good.vehicle == "host" else "host"}):
        assert list(misfits(dataclasses.replace(good, **change))), change
    for name in good.files:
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((TOP / name).read_bytes())
    assert not refusal(good.path, tmp_path)
    copy.write_bytes(b"")
    assert "patch" in refusal(good.path, tmp_path)


def test_there_are_enough():
    counts = Counter(path.parent.name for path in PATCHES)
    assert counts["kernel"] >= 60 and counts["ipvsctl"] >= 20, counts
    assert sum(mutants.read(path).vehicle == "debug" for path in PATCHES) >= 12


def test_known_mistakes():
    """Mistakes that ip_vs had are imitated, none of them twice with the same words."""
    known = [mutants.read(path).known for path in PATCHES if mutants.read(path).known]
    assert len(known) >= 40 and len({*known}) >= 38
    assert all(len(what) <= 60 for what in known)


def test_every_unit_has_one():
    """Each .c file of kernel/ and schedulers/, so that none is left out unnoticed."""
    hit = {name for path in PATCHES for name in mutants.read(path).files}
    files = {str(path.relative_to(TOP)) for folder in ("kernel", "schedulers")
             for path in (TOP / folder).rglob("*.c")}
    assert not files - hit


BEGUN = f"uml: booting\n{mutants.BEGUN}\n"
FAILED = "F\nFAILED tests/test_a.py::test_b[v4-a b] - assert 1 == 2\n1 failed in 2.0s\n"
ERROR = "ERROR tests/test_a.py::test_b - AssertionError: ...\n"
SPLAT = "lab: the kernel log has 1 line(s)\nlab:   [ 1.0] BUG: KASAN: use-after-free in x\n"
DIED = "lab: the guest died before the command ended; its last words:\n" \
       "lab:   WARNING: a test provoked this\n"
PANIC = DIED + SPLAT.replace("BUG: KASAN: use-after-free in x", "Oops: general protection")
EMULATOR = SPLAT.replace("BUG: KASAN: use-after-free in x", "Oops: int3: 0000")


@pytest.mark.parametrize("status, output, verdict, by", [
    (0, BEGUN + "3 passed\n", mutants.SURVIVED, ""),
    (1, BEGUN + FAILED, mutants.CAUGHT, "tests/test_a.py::test_b[v4-a b]"),
    (1, BEGUN + ERROR, mutants.CAUGHT, "tests/test_a.py::test_b"),
    (123, BEGUN + "3 passed\n" + SPLAT, mutants.CAUGHT,
     "kernel log: [ 1.0] BUG: KASAN: use-after-free in x"),
    (123, BEGUN + FAILED + SPLAT, mutants.CAUGHT, "tests/test_a.py::test_b[v4-a b]"),
    (124, BEGUN + "lab: stopped after 240 s\n", mutants.CAUGHT, mutants.HANGS),
    (124, BEGUN + "lab: stopped after 240 s\n" + SPLAT, mutants.CAUGHT,
     "the guest hangs: [ 1.0] BUG: KASAN: use-after-free in x"),
    (125, BEGUN + PANIC, mutants.CAUGHT, "the guest dies: [ 1.0] Oops: general protection"),
    (0, BEGUN + EMULATOR + f"lab: {mutants.run.ONCE_MORE}\n{BEGUN}3 passed\n",
     mutants.SURVIVED, ""),
    # All passed, but the guest does not shut down.
    (124, BEGUN + "3 passed in 2.0s\nlab: stopped after 240 s\n", mutants.NO_VERDICT, None),
    # A fault of QEMU, twice.
    (125, BEGUN + EMULATOR + f"lab: {mutants.run.ONCE_MORE}\n{BEGUN}{DIED}{EMULATOR}",
     mutants.NO_VERDICT, None),
    # After such a fault, a second start that did not even boot.
    (124, BEGUN + EMULATOR + f"lab: {mutants.run.ONCE_MORE}\nlab: stopped after 240 s\n",
     mutants.NO_VERDICT, None),
    # The lab's own failures, a boot that hangs, a guest that was killed, missing tests.
    (124, "lab: stopped after 240 s\n", mutants.NO_VERDICT, None),
    (125, "lab: python is missing\n", mutants.NO_VERDICT, None),
    (125, PANIC, mutants.NO_VERDICT, None),
    (125, BEGUN + DIED, mutants.NO_VERDICT, None),
    (123, SPLAT, mutants.NO_VERDICT, None),
    (1, BEGUN + "INTERNALERROR> x\n", mutants.NO_VERDICT, None),
    (2, BEGUN + ERROR, mutants.NO_VERDICT, None),
    (4, BEGUN + "ERROR: file or directory not found: x\n", mutants.NO_VERDICT, None),
    (5, BEGUN + "no tests ran\n", mutants.NO_VERDICT, None),
    (1, "", mutants.NO_VERDICT, None),
])
def test_verdict(status, output, verdict, by):
    said, why = mutants.judge(status, output)
    assert said == verdict
    assert by is None or why == by


GOOD = "Breaks it\nTests: tests/test_a.py\n\ndiff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n"


@pytest.mark.parametrize("text, what", [
    (GOOD.replace("Breaks it\n", ""), "a line that says what it breaks"),
    (GOOD.replace("diff --git", "diff"), "then the diff"),
    (GOOD.replace("Tests: tests/test_a.py\n", ""), "come Tests:"),
    (GOOD.replace("Tests: tests/test_a.py\n", "Tests: \n"), "come Tests:"),
    (GOOD.replace("Tests:", "More words\nTests:"), "come Tests:"),
    (GOOD.replace("Tests:", "Color: red\nTests:"), "come Tests:"),
    (GOOD.replace("Tests:", "Vehicle: bus\nTests:"), "no vehicle 'bus'"),
])
def test_bad_heading(tmp_path, text, what):
    path = tmp_path / "x.patch"
    path.write_text(GOOD, encoding="utf-8")
    assert mutants.read(path).files == ("x.c",)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(mutants.MutantError, match=what):
        mutants.read(path)


def mutant(name, vehicle="uml", tests=("tests/test_a.py",), file="kernel/x.c"):
    return mutants.Mutant(mutants.TOP / (name + ".patch"), f"breaks {name}", tests, vehicle, (file,))


def test_chosen():
    some = [mutant("nat-a", "debug"), mutant("nat-b", file="kernel/hook.c"), mutant("las")]
    assert [m.name for m in mutants.chosen(some, [])] == ["las", "nat-b", "nat-a"]
    assert [m.name for m in mutants.chosen(some, ["nat-*"])] == ["nat-b", "nat-a"]
    assert [m.name for m in mutants.chosen(some, ["hook.c", "debug"])] == ["nat-b", "nat-a"]
    with pytest.raises(mutants.MutantError, match="no mutant matches 'nta'"):
        mutants.chosen(some, ["las", "nta"])


class FakeSlot:
    """Pretends that everything works; the result of a test run depends on the test's name."""

    FAILS, PASSES = (1, BEGUN + FAILED), (0, BEGUN + "1 passed\n")
    HANGS = (124, BEGUN + "lab: stopped after 240 s\n")
    STATUS = {"tests/test_good.py": [PASSES], "tests/test_bad.py": [FAILS],
              "tests/test_stuck.py": [HANGS], "tests/test_stood_still.py": [HANGS, PASSES]}
    CONTROL = {"tests/test_broken.py": FAILS}
    runs = []

    def __init__(self, _kernels, tree, _seed):
        self.path, self.clean = Path("slot"), None
        self.turns = {name: list(turns) for name, turns in self.STATUS.items()}
        assert (tree / "Makefile").is_file()

    def reset(self):
        self.clean = None

    def apply(self, mutant):
        if mutant.name == "disk":
            raise OSError("no space left")
        return "x.c: patch does not apply" if mutant.name == "old" else None

    def build(self, _vehicle, _log):
        return None

    def test(self, vehicle, tests, options, _seconds):
        # The control runs without -x, to show all failures.
        if not options:
            self.runs.append((vehicle, tests))
            return self.CONTROL.get(tests[0], self.PASSES)
        assert self.clean is None
        turns = self.turns[tests[0]]
        return turns.pop(0) if len(turns) > 1 else turns[0]


def play(monkeypatch, tmp_path, some, *argv):
    monkeypatch.setattr(mutants, "WORK", tmp_path)
    monkeypatch.setattr(mutants, "Slot", FakeSlot)
    monkeypatch.setattr(FakeSlot, "runs", [])
    monkeypatch.setattr(mutants, "kernel_dirs", lambda vehicles: {})
    monkeypatch.setattr(mutants, "read_all", lambda: some)
    monkeypatch.setattr(sys, "argv", ["mutants", "--jobs", "2", *argv])
    status = mutants.main()
    assert not list(tmp_path.glob("tree-*"))
    return status


def test_control_is_a_run_for_each_company(monkeypatch, tmp_path):
    """A test that passes only after another one would otherwise seem to catch each mutant."""
    one, two = BAD + GOOD_TEST, BAD
    play(monkeypatch, tmp_path, [mutant("a", tests=one), mutant("b", tests=two),
                                 mutant("c", tests=one), mutant("d", "debug", tests=two)])
    assert sorted(FakeSlot.runs) == sorted([("uml", one), ("uml", two), ("debug", two)])


BAD, GOOD_TEST = ("tests/test_bad.py",), ("tests/test_good.py",)


def test_all_caught(monkeypatch, tmp_path, capsys):
    assert play(monkeypatch, tmp_path, [mutant("a", tests=BAD), mutant("b", tests=BAD)]) == 0
    said = capsys.readouterr().out
    assert "2 mutants: 2 caught\n" in said and "[1/1] control (0 min left)" in said
    assert "| a | breaks a | caught | test_a.py::test_b[v4-a b] | uml |" in \
        (tmp_path / "table.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("other, count", [
    (mutant("weak", tests=GOOD_TEST), "2 mutants: 1 caught, 1 survived\n"),
    (mutant("old", tests=BAD), "2 mutants: 1 caught, 1 does not apply\n"),
    (mutant("odd", tests=("tests/test_broken.py",)), "2 mutants: 1 caught, 1 no verdict\n"),
    (mutant("pause", tests=("tests/test_stood_still.py",)), "2 mutants: 1 caught, 1 survived\n"),
    (mutant("disk", tests=BAD), "2 mutants: 1 caught, 1 no verdict\n")])
def test_one_not_caught_fails(monkeypatch, tmp_path, capsys, other, count):
    assert play(monkeypatch, tmp_path, [mutant("a", tests=BAD), other]) == 1
    assert count in capsys.readouterr().out


def test_control_fails(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(FakeSlot, "CONTROL", {BAD[0]: FakeSlot.FAILS})
    assert play(monkeypatch, tmp_path, [mutant("a", tests=BAD)]) == 1
    said = capsys.readouterr().out
    assert "control: a: FAILS tests/test_a.py::test_b[v4-a b]" in said
    assert "NO VERDICT a: without the patch: tests/test_a.py::test_b[v4-a b]" in said


def test_hangs_twice(monkeypatch, tmp_path, capsys):
    assert play(monkeypatch, tmp_path, [mutant("a", tests=("tests/test_stuck.py",))]) == 0
    assert "caught    a: the guest hangs" in capsys.readouterr().out


@pytest.mark.parametrize("vehicle, seconds", [
    ("uml", 10 + 60 + 90), ("debug", 10 + 240 + 90), ("qemu-6.12", 10 + 240 + 90),
    ("virtual-time", 10 + 90 + 90)])
def test_a_test_may_come_near_its_limit(vehicle, seconds):
    assert mutants.longest(mutant("a", vehicle), 5) == seconds


def test_command_line():
    def call(*argv):
        return subprocess.run([LAB / "mutants", *argv], capture_output=True, text=True,
                              check=False, timeout=60)
    assert len(call("--list").stdout.splitlines()) == len(PATCHES)
    done = call("no-such-thing")
    assert done.returncode == 2 and "no mutant matches 'no-such-thing'" in done.stderr
    assert call("--jobs", "0").returncode == 2


ALL = [mutants.read(path) for path in PATCHES]


@pytest.mark.parametrize("vehicle", sorted({m.vehicle for m in ALL} - {"host"}))
def test_the_tier_runs_what_they_name(vehicle):
    """Every named test runs: one that never runs catches nothing."""
    name = vehicle.removeprefix("qemu-")
    selection = mutants.stages.Selection("smoke" if name == "debug" else "everyday", 1)
    runs = {re.sub(r"\[.*", "", node) for node in mutants.stages.Stage(name, selection).tests()}
    runs |= {node.partition("::")[0] for node in runs}
    lacking = [f"{m.path.stem}: {test}" for m in ALL if m.vehicle == vehicle
               for test in m.tests if re.sub(r"\[.*", "", test) not in runs]
    assert not lacking
