# SPDX-License-Identifier: GPL-2.0
"""The lab's own judgement: what it refuses, what it lets through, how it counts."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
LAB = TOP / "tests/lab"

sys.dont_write_bytecode = True


def load(name):
    loader = importlib.machinery.SourceFileLoader(f"lab_{name}", str(LAB / name))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


run, suite = load("run"), load("suite")


def call(*argv, **env):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60, env=os.environ | env)


SPLATS = """\
BUG: KASAN: slab-use-after-free in l4lb_conn_put+0x1/0x2
BUG: KFENCE: out-of-bounds read in l4lb_flow_parse+0x1/0x2
BUG: sleeping function called from invalid context at mm/slab.h:1
BUG: unable to handle page fault for address: 0000000000001000
WARNING: CPU: 0 PID: 1 at net/core/dev.c:1 dev_x+0x1/0x2
WARNING: possible circular locking dependency detected
WARNING: possible recursive locking detected
WARNING: suspicious RCU usage
WARNING: inconsistent lock state
UBSAN: shift-out-of-bounds in kernel/state.c:1:2
unreferenced object 0x66b2c800 (size 192):
ref_tracker: net notrefcnt@1 has 1/1 users at
unregister_netdevice: waiting for veth0 to become free. Usage count = 2
INFO: task ip:12 blocked for more than 60 seconds.
rcu: INFO: rcu_preempt detected stalls on CPUs/tasks
Oops: 0000 [#1] PREEMPT SMP
general protection fault, probably for non-canonical address
Kernel panic - not syncing: Fatal exception
Call Trace:""".splitlines()

HARMLESS = """\
l4lb: loading out-of-tree module taints kernel.
IPVS: [rr] scheduler registered.
kfence: initialized - using 2097152 bytes for 255 objects at 0x(____ptrval____)
KernelAddressSanitizer initialized
Kernel command line: console=ttyS1 kasan_multi_shot
debug: BUGs, warnings and oopses are words, too""".splitlines()


@pytest.mark.parametrize("line", SPLATS)
def test_gate_stops(line):
    assert run.gate(f"[    1.000000] before\n[    1.000001] {line}\n") == [f"[    1.000001] {line}"]


@pytest.mark.parametrize("line", HARMLESS)
def test_gate_lets_through(line):
    assert run.gate(f"[    1.000000] {line}\n") == []


def test_splat_overrules_a_passing_command(tmp_path):
    assert run.judge(tmp_path, "BUG: x\n", 0) == 1
    assert run.judge(tmp_path, "BUG: x\n", 7) == 7
    assert run.judge(tmp_path, "all is well\n", 0) == 0


@pytest.mark.parametrize(("argv", "says"), [
    (["true"], "put the command after '--'"),
    (["--vehicle", "boat", "--", "true"], "invalid choice: 'boat'"),
    (["--kernel", "5.4", "--", "true"], "invalid choice: '5.4'"),
    (["--timeout", "soon", "--", "true"], "invalid int value: 'soon'"),
])
def test_run_refuses(argv, says):
    done = call(LAB / "run", *argv)
    assert done.returncode == 2
    assert says in done.stderr.splitlines()[-1]


def test_run_names_what_is_missing(tmp_path):
    """A lab without its python says which command provides it."""
    done = call(LAB / "run", "--vehicle", "qemu", "--", "true", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == run.LAB_FAILED
    assert "run 'make deps'" in done.stderr
    done = call(LAB / "uml-build", "--print-dir", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "run tests/lab/uml-build" in done.stderr


def test_paths_that_a_kernel_command_line_cannot_carry(monkeypatch):
    run.check_paths()
    monkeypatch.setattr(run, "TOP", Path("/srv/my checkout"))
    with pytest.raises(run.LabError, match="my checkout"):
        run.check_paths()


def test_modules_refuse_a_wrong_kernel_directory(tmp_path):
    done = call("make", "-C", TOP, "modules", f"KDIR={tmp_path}")
    assert done.returncode == 2
    assert f"{tmp_path} is not a configured kernel build directory" in done.stderr


def test_modprobe_conf(tmp_path):
    """Clients must not pull in-tree ip_vs in; that much holds with no modules."""
    done = call(LAB / "modprobe-conf", tmp_path)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert lines == ["alias net-pf-16-proto-16-family-IPVS off"]


JUNIT = """<testsuites><testsuite tests="9" failures="2" errors="1" skipped="3"/></testsuites>"""


def test_count(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "RESULTS", tmp_path)
    assert suite.count("uml") is None
    (tmp_path / "uml.xml").write_text(JUNIT, encoding="ascii")
    assert suite.count("uml") == (3, 3, 3)


@pytest.mark.parametrize(("records", "good", "line"), [
    (['{"passed": 5, "failed": 0, "skipped": 1, "seconds": 1, "note": ""}',
      '{"passed": 2, "failed": 0, "skipped": 0, "seconds": 1, "note": ""}'],
     True, "7 passed, 0 failed, 1 skipped"),
    (['{"passed": 5, "failed": 0, "skipped": 0, "seconds": 1, "note": ""}',
      '{"passed": 0, "failed": 1, "skipped": 0, "seconds": 1, "note": "died\\nof this"}'],
     False, "5 passed, 1 failed, 0 skipped"),
    ([], False, "0 passed, 0 failed, 0 skipped"),
], ids=("green", "died", "nothing ran"))
def test_total(tmp_path, monkeypatch, capsys, records, good, line):
    monkeypatch.setattr(suite, "RESULTS", tmp_path)
    for number, record in enumerate(records):
        (tmp_path / f"{number}.json").write_text(record, encoding="ascii")
    assert suite.total() is good
    assert capsys.readouterr().out.splitlines()[-1] == line
