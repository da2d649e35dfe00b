# SPDX-License-Identifier: GPL-2.0
"""The lab's own checks: of kernel logs, of arguments, and of which guest runs which file."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
LAB = TOP / "tests/lab"

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests"))

from lab import demonstration, share  # noqa: E402


def load(name):
    loader = importlib.machinery.SourceFileLoader(f"lab_{name}", str(LAB / name))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


run = load("run")


def call(*argv, cwd=None, **env):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60, env=os.environ | env, cwd=cwd)


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
    assert run.judge(tmp_path, "BUG: x\n", 0) == 123
    assert run.judge(tmp_path, "BUG: x\n", 1) == 123
    assert run.judge(tmp_path, "BUG: x\n", 125) == 125
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
    """Without the lab's Python the message names the command that provides it."""
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


UNMAPPING = "#7  0x000000006002778d in flush_tlb_kernel_range_common ()\n"


@pytest.mark.parametrize("stack, log, again", (
    (UNMAPPING, "all is well\n", True), (None, "all is well\n", False),
    ("#1  0x0000000060034f0f in os_idle_sleep ()\n", "all is well\n", False),
    (UNMAPPING, "BUG: KASAN: use-after-free in f\n", False)))
def test_a_guest_that_unmaps_starts_again(tmp_path, stack, log, again):
    """But one that is stuck elsewhere, or has a report in its log, has failed."""
    if stack:
        (tmp_path / "stack").write_text(stack, encoding="utf-8")
    (tmp_path / "dmesg.log").write_text(log, encoding="utf-8")
    assert run.only_unmaps(tmp_path) == again


@pytest.mark.parametrize("measure, has", ((None, False), ("time", False), ("instructions", True), ("virtual", True)))
def test_emulated_processor(measure, has):
    """Without the instruction of which QEMU gets the flags wrong, but where instructions are
    counted; KVM's is the machine's own."""
    class Nowhere(type(Path())):
        path = Path("/nowhere")
    options = types.SimpleNamespace(measure=measure, stock=False, image=None, cpus=2, memory="1G",
                                    plugin=None, link=None, shift=2, seed=1)
    argv = run.qemu_argv(Nowhere("/nowhere"), "6.12", options, kvm=False)
    assert ("max,-cx16" in argv) == (not has)
    assert "max,-cx16" not in run.qemu_argv(Nowhere("/nowhere"), "6.12", options, kvm=True)


def test_modules_refuse_a_wrong_kernel_directory(tmp_path):
    done = call("make", "-C", TOP, "modules", f"KDIR={tmp_path}")
    assert done.returncode == 2
    assert f"{tmp_path} is not a configured kernel build directory" in done.stderr


def test_modprobe_conf(tmp_path):
    """Clients must not load in-tree ip_vs, even if no modules were built."""
    done = call(LAB / "modprobe-conf", tmp_path)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert lines == ["alias net-pf-16-proto-16-family-IPVS off"]


def test_go_clients_without_a_proxy(tmp_path):
    """It prints the reason, and leaves no file that a test would take for the program."""
    done = call(LAB / "go-clients", XDG_CACHE_HOME=str(tmp_path), GOPROXY="off",
                GOMODCACHE=str(tmp_path / "mod"), GOCACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "go-clients: " in done.stderr
    assert not list(tmp_path.glob("l4lb/go/*"))


def sharing(tmp_path, guest, *argv):
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "lab.share", "-p", "no:cacheprovider",
         f"--rootdir={tmp_path}", f"--share={tmp_path}/taken:{guest}",
         f"--junit-xml={tmp_path}/{guest}.xml", str(tmp_path), *argv],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(TOP / "tests")})


def test_every_file_is_taken_once(tmp_path):
    """By the next free guest: one long file does not delay the others."""
    (tmp_path / "taken").mkdir()
    body = "import time, pathlib, pytest\n{takes}" \
        "@pytest.mark.parametrize('n', range(3))\n" \
        "def test_it(n): time.sleep({sleep}); open('{log}', 'a').write('{name} ')\n"
    log = tmp_path / "log"
    for n in range(8):
        (tmp_path / f"test_{n}.py").write_text(body.format(
            takes="TAKES = 9\n" if n == 5 else "", sleep=0.7 if n == 5 else 0.05,
            log=log, name=n), encoding="ascii")
    guests = [sharing(tmp_path, guest) for guest in (1, 2)]
    outs = [guest.communicate(timeout=60)[0] for guest in guests]
    assert [guest.returncode for guest in guests] == [0, 0], outs
    assert sorted(log.read_text(encoding="ascii").split()) == sorted("01234567" * 3)
    # The longest file was begun first, and its guest had time for few others.
    marks = (tmp_path / "taken/test_5.py").iterdir()
    owner = next(mark.name for mark in marks if mark.name != share.FINISHED)
    assert len(list(tmp_path.glob(f"taken/*/{owner}"))) < 5
    # A restarted guest runs the file that it had taken and not finished, and no others.
    log.unlink()
    (tmp_path / "taken/test_5.py" / share.FINISHED).rmdir()
    again = sharing(tmp_path, owner)
    assert again.communicate(timeout=60) and again.returncode == 0
    assert log.read_text(encoding="ascii").split() == ["5"] * 3


def test_sharing_stops_when_told(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "test_a.py").write_text("def test_1(): assert 0\ndef test_2(): pass\n")
    guest = sharing(tmp_path, 1, "-x")
    assert "stopping after 1 failures" in guest.communicate(timeout=60)[0]
    assert guest.returncode == 1


STALE = ["Oops: int3: 0000 [#1] PREEMPT SMP NOPTI", "Call Trace:", "Kernel panic - not syncing"]
STUCK = ["rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "Call Trace:"]
ANSWER = ["Kernel panic - not syncing: NMI: Not continuing", "Call Trace:", " asm_exc_int3+0x35/0x40"]


@pytest.mark.parametrize(("lines", "status", "so"), [
    (STALE, None, True), (STALE, "0", False), (["BUG: KASAN: x", *STALE], None, False),
    (["Oops: 0000 [#1] PREEMPT SMP", *STALE], None, False), ([], None, False),
    ([*STUCK, *ANSWER], None, True), (ANSWER, None, True), (STUCK, None, False),
    ([*STUCK, *ANSWER[:2]], None, False), (["BUG: KASAN: x", *STUCK, *ANSWER], None, False),
    ([ANSWER[-1]], None, False), ([*ANSWER[:2], " ? asm_exc_int3+0x35/0x40"], None, False),
], ids=("stale", "ended", "after-another", "other-oops", "silent", "spins", "spins-at-once",
        "not-asked", "waits", "spins-after-another", "did-not-spin", "spun-before"))
def test_died_of_emulator(tmp_path, lines, status, so):
    """Only a fault of QEMU itself is a reason to restart the guest."""
    (tmp_path / "dmesg.log").write_text("\n".join(lines), encoding="ascii")
    if status is not None:
        (tmp_path / "status").write_text(status, encoding="ascii")
    assert run.died_of_emulator(tmp_path) is so


@pytest.mark.parametrize("name", ["demo", "demo-ha"])
@pytest.mark.parametrize("failed", [False, True])
def test_a_thread_of_a_demo(monkeypatch, capsys, name, failed):
    """An exception in one fails the demo, even if nothing else is wrong."""
    demo = load(name)
    monkeypatch.setenv("L4LB_IPVSCTL", "ipvsctl")
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    for function in ("load_module", "unload", "kernel_log"):
        monkeypatch.setattr(demonstration, function, lambda: None)
    monkeypatch.setattr(demonstration, "splats", lambda log: [])
    monkeypatch.setattr(demo, "introduce", lambda: None)

    def play(show, *_):
        show.visitors = types.SimpleNamespace(counts={})
        thread = threading.Thread(target=lambda: 1 / (not failed))
        thread.start()
        thread.join()
    monkeypatch.setattr(demo, "show_method" if name == "demo" else "stage", play)
    assert demo.perform() == failed
    assert ("a thread failed: ZeroDivisionError" in capsys.readouterr().out) == failed
