# SPDX-License-Identifier: GPL-2.0
"""The record of "make torture": runs are carried on, a failure says how to repeat it."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from torture import record

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True

loader = importlib.machinery.SourceFileLoader("lab_torture", str(TOP / "tests/lab/torture"))
torture = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(torture)

ROUND = [{"begins": "held"}, {"phase": "held", "seconds": 9.5, "counts": {"held": 1_000_000}},
         {"phase": "packets", "seconds": 100, "counts": {"packets": 12_000_000}},
         {"phase": "end", "seconds": 1, "counts": {"honest": 30, "honest alive": 30}}]


def rows(table):
    return {cells[1]: cells[2:-1] for cells in
            ([c.strip() for c in line.split("|")] for line in table.splitlines()
             if line.startswith("|"))}


def test_pieces_add_up(tmp_path):
    path = tmp_path / "torture/state.json"
    for kernel in ("6.12", "6.1"):
        with record.State.change(path) as state:
            state.next_seed()
            state.add(kernel, ROUND, True)
    state = record.State(path)
    assert state.next_seed() == 3
    found = rows(state.table())
    assert found[""][1:] == ["reached", "6.12", "6.1", ""]
    # The most that was held at once, the sum of packets.
    assert found["connections held at once"] == ["1,000,000", "1,000,000", "1,000,000",
                                                 "1,000,000", "yes"]
    assert found["hostile packets"] == ["20,000,000", "24,000,000", "12,000,000", "12,000,000",
                                        "yes"]
    assert found["unloads under traffic"] == ["700", "0", "0", "0", "not yet"]
    assert found["honest connections alive at the end"][1] == "60 of 60"
    assert found["rounds"][1] == "2"
    assert (path.parent / "record.md").read_text() == state.table()
    # A fresh checkout carries on from the record in the tree, and does not change it.
    before = path.read_bytes()
    for rounds in ("3", "4"):
        with record.State.change(tmp_path / "fresh/state.json", path) as state:
            state.next_seed()
            state.add("6.12", ROUND, True)
        assert rows(record.State(tmp_path / "fresh/state.json").table())["rounds"][1] == rounds
    assert path.read_bytes() == before


@pytest.mark.parametrize(("lines", "status", "phase", "kind"), [
    ([{"begins": "packets"}], torture.stages.run.LAB_FAILED, "packets", "other"),
    ([{"begins": "packets"}], torture.stages.run.OUT_OF_TIME, "packets", "other"),
    ([{"begins": "links"}, {"phase": "links", "error": "RoundError: the kernel's log: BUG: x"}], 1,
     "links", "report"),
    ([{"begins": "empty"}, {"phase": "empty", "error": "RoundError: leak: 99 bytes more"}], 1,
     "empty", "leak"),
    (ROUND, torture.stages.run.SPLATTED, "the end", "report")])
def test_failures(tmp_path, lines, status, phase, kind):
    found = torture.failure(lines, status)
    assert found[0] == phase
    with record.State.change(tmp_path / "state.json") as state:
        state.add("debug", lines, False)
        state.fail("debug", 7, *found)
    table = record.State(tmp_path / "state.json").table()
    assert rows(table)[record.KINDS[kind]] == ["0", "1", "1", "not yet"]
    assert rows(table)["rounds"][1] == "0"
    # Phases between the real ones are only in a whole round.
    which = f" PHASES={phase}" if phase in record.PHASES else ""
    assert f"`make torture KERNEL=debug SEED=7{which}`" in table


def test_no_failure():
    assert torture.failure(ROUND, 0) is None


def test_short_rounds_send_what_they_can():
    options = torture.argparse.Namespace(kernel="6.12", phases=["packets"], held=None)
    assert torture.specification(options, 1, 60)["least"]["packets"] == 0
    assert torture.specification(options, 1, torture.ROUND)["least"]["packets"] == 1_000_000
    assert torture.specification(options, 1, 60)["held"] == 1_000_000


@pytest.mark.parametrize(("words", "says"), [
    (["--hours", "6"], "'6' is not a number of hours up to 2; another run carries on"),
    (["--hours", "x"], "'x' is not a number of hours up to 2"),
    (["--kernel", "5.10"], "invalid choice: '5.10'"),
    (["--phases", "packets floods"], "no phase 'floods'; there are: packets messages")])
def test_wrong_arguments(words, says):
    done = subprocess.run([TOP / "tests/lab/torture", *words], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2
    assert says in done.stderr
