# SPDX-License-Identifier: GPL-2.0
"""The choice of a kernel: this machine's own only for root and if it can load modules."""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab import demonstration as demo

LAB = Path(__file__).resolve().parents[1] / "lab"
RELEASE = "6.12.999-test"

sys.dont_write_bytecode = True


def load(name):
    loader = importlib.machinery.SourceFileLoader(f"vehicle_{name}", str(LAB / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


run = load("run")

MODULES, HEADERS = "proc/modules", f"lib/modules/{RELEASE}/build/Makefile"
OTHER = "6.6.1-test"

# Reasons against a native run.
OBSTACLES = {
    "not root": {"uid": 1000},
    "no modules": {"files": [HEADERS]},
    "no module directory": {"files": [MODULES]},
}
DEMO_ONLY = {
    "unsupported kernel": {"release": OTHER, "files": [MODULES, HEADERS.replace(RELEASE, OTHER)]},
    "no headers": {"files": [MODULES, f"lib/modules/{RELEASE}/kernel/x.ko"]},
    "ip_vs at work": {"files": [MODULES, HEADERS, "sys/module/ip_vs/refcnt"]},
    "l4lb at work": {"files": [MODULES, HEADERS, "sys/module/l4lb/refcnt"]},
}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Makes this machine look like another one."""
    def become(uid=0, release=RELEASE, files=(MODULES, HEADERS)):
        for name in files:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("", encoding="ascii")
        for module in (run, demo):
            monkeypatch.setattr(module, "Path", lambda *parts: tmp_path.joinpath(
                *(str(part).lstrip("/") for part in parts)))
        monkeypatch.setattr(os, "geteuid", lambda: uid)
        monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    return become


def chosen(monkeypatch, *words):
    """The vehicle in which tests/lab/run runs the command."""
    for vehicle in ("qemu", "uml", "native"):
        monkeypatch.setattr(run, f"run_{vehicle}", lambda _, name=vehicle: name)
    monkeypatch.setattr(sys, "argv", ["run", *words, "--", "true"])
    return run.main()


def test_native_where_it_can_be(machine, monkeypatch):
    machine()
    assert run.native_obstacle() is None
    assert chosen(monkeypatch) == chosen(monkeypatch, "--vehicle", "auto") == "native"
    assert demo.choose_vehicle(run) == "native"


@pytest.mark.parametrize("why", OBSTACLES)
def test_never_native_else(machine, monkeypatch, why):
    machine(**OBSTACLES[why])
    assert chosen(monkeypatch) == chosen(monkeypatch, "--vehicle", "auto") == "qemu"
    assert demo.choose_vehicle(run) == "qemu" and demo.choose_vehicle(run, "uml") == "uml"


@pytest.mark.parametrize("why", OBSTACLES)
def test_native_is_refused(machine, monkeypatch, capsys, why):
    """With the reason, before anything is built or loaded."""
    machine(**OBSTACLES[why])
    for name in ("need_modules", "need_python"):
        monkeypatch.setattr(run, name, lambda *_: pytest.fail("it went on"))
    monkeypatch.setattr(sys, "argv", ["run", "--vehicle", "native", "--", "true"])
    assert run.main() == run.LAB_FAILED
    said = capsys.readouterr().err
    assert f"no native run here: {run.native_obstacle()}; use --vehicle qemu" in said


@pytest.mark.parametrize("why", DEMO_ONLY)
def test_the_demo_is_more_careful(machine, why):
    """It must be able to build for this kernel, and must not disturb a load balancer in use."""
    machine(**DEMO_ONLY[why])
    assert run.native_obstacle() is None
    assert demo.choose_vehicle(run) == "qemu" and demo.choose_vehicle(run, "uml") == "uml"


def test_guests_of_uml_do_not_share_a_processor(tmp_path, monkeypatch):
    """If there are enough; each guest is pinned to one processor in any case."""
    mask, chosen_ones = {3, 5}, []
    monkeypatch.setattr(run, "CACHE", tmp_path / "new")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: mask)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: chosen_ones.append(*cpus))
    locks = [run.one_processor() for _ in range(3)]
    assert sorted(chosen_ones[:2]) == [3, 5] and chosen_ones[2] in mask
    locks[1].close()
    run.one_processor()
    assert chosen_ones[3] == chosen_ones[1]
