# SPDX-License-Identifier: GPL-2.0
"""What "make demo" and "make demo-ha" share: a kernel for the show, and its end."""

import argparse
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from lab.netns import wait_until

LAB = Path(__file__).resolve().parent
TOP = LAB.parent.parent


class DemoError(Exception):
    """The demo cannot go on; the text says why."""


def load_run():
    """tests/lab/run as a module: it defines vehicles, kernels and splats."""
    loader = importlib.machinery.SourceFileLoader("lab_run", str(LAB / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("lab_run", loader))
    loader.exec_module(module)
    return module


def say(text=""):
    print(text, flush=True)


class Progress:
    """A line of dots: one for each step, and one after 2 s without a step."""

    def __init__(self, text):
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.started = self.last = time.monotonic()
        print(f"  {text} ", end="", flush=True)
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self):
        while not self.ended.wait(0.5):
            if time.monotonic() - self.last > 2:
                self.dot()

    def dot(self):
        with self.lock:
            if not self.ended.is_set():
                print(".", end="", flush=True)
                self.last = time.monotonic()

    def end(self, text=None):
        with self.lock:
            if not self.ended.is_set():
                self.ended.set()
                say(f" {text or f'{time.monotonic() - self.started:.0f} s'}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.end(None if kind is None else "failed")


# -- inside the vehicle


def load_module():
    done = subprocess.run(["modprobe", "l4lb"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoError(f"modprobe l4lb: {done.stderr.strip()}")


def kernel_log():
    """The kernel log from here on, for splats()."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)
    return log


def splats(log):
    """Lines of the kernel log since LOG was opened that fail a run: there may be none."""
    bad, pattern = [], load_run().SPLAT
    while True:
        try:
            text = os.read(log, 16384).decode(errors="replace").partition(";")[2]
        except BlockingIOError:
            return bad
        except BrokenPipeError:
            continue    # messages were overwritten; go on with those that are left
        if pattern.search(text):
            bad.append(text.split("\n")[0])


def thread_failures():
    """A list that from now on gets a line for each thread that an exception ends: without it a
    demo whose threads do nothing has nothing to complain of."""
    failures, shown = [], threading.excepthook

    def hook(args):
        shown(args)
        failures.append(f"a thread failed: {args.exc_value!r}")
    threading.excepthook = hook
    return failures


def unload():
    """Unloads the schedulers first; fails if a reference remains."""
    def loaded():
        return sorted((p.name for p in Path("/sys/module").iterdir()
                       if re.fullmatch(r"l4lb(_\w+)?", p.name)), reverse=True)

    wait_until(lambda: subprocess.run(["rmmod", *loaded()], capture_output=True,
                                      check=False) and not loaded(),
               30, "the modules can be unloaded", step=0.3)


# -- on the host


def build(run, vehicle, kernel):
    """Modules for the vehicle's kernel, and ipvsctl; KERNEL: 6.12 or 6.1."""
    if vehicle == "native":
        argv = ["make", "--no-print-directory", "-C", str(TOP), "ipvsctl", "modules",
                f"KDIR=/lib/modules/{os.uname().release}/build"]
    else:
        name = kernel if vehicle == "qemu" else "uml" if kernel == "6.12" else f"uml-{kernel}"
        argv = [str(LAB / "suite"), "--build-only", name]
    with Progress("building the kernel modules and ipvsctl" + (
            ", and once a kernel in user space" if vehicle == "uml" else "")):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise run.LabError(f"the build failed:\n{done.stdout.strip()}")


def choose_vehicle(run, guest="qemu"):
    """This machine when that is safe and works, else GUEST."""
    release = os.uname().release
    if run.native_obstacle() or not re.match(r"6\.(1|12)\.", release) or \
            not Path(f"/lib/modules/{release}/build/Makefile").exists():
        return guest
    # A load balancer may be in use: leave it alone.
    busy = any(Path("/sys/module", name).exists() for name in ("ip_vs", "l4lb"))
    return guest if busy else "native"


def follow(run, argv):
    """Runs ARGV, with dots until its first output."""
    progress = Progress("starting the kernel")
    first = threading.Lock()

    def copy(source, sink):
        while data := os.read(source.fileno(), 65536):
            with first:
                progress.end()
                sink.write(data)
                sink.flush()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, bufsize=0) as proc:
        threads = [threading.Thread(target=copy, args=pair, daemon=True)
                   for pair in ((proc.stdout, sys.stdout.buffer),
                                (proc.stderr, sys.stderr.buffer))]
        for thread in threads:
            thread.start()
        try:
            status = proc.wait()
        except KeyboardInterrupt:
            proc.wait()     # it got the signal, too, and ends its guest
            progress.end("stopped")
            return 130
        for thread in threads:
            thread.join()
    progress.end()
    return status


def parser(name, description):
    """The options that all demos have."""
    made = argparse.ArgumentParser(prog=f"tests/lab/{name}", description=description,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--vehicle", choices=("auto", "qemu", "native", "uml"), default="auto",
                      help="auto: this machine's own kernel when possible, else a guest")
    made.add_argument("--kernel", choices=("6.12", "6.1"), default="6.12",
                      help="which Debian kernel in QEMU (6.12)")
    return made


def stage(name, options, guest="qemu"):
    """Builds, and runs tests/lab/NAME again in the vehicle; its exit status. GUEST is the
    vehicle if this machine's own kernel will not do."""
    run = load_run()
    vehicle = choose_vehicle(run, guest) if options.vehicle == "auto" else options.vehicle
    try:
        build(run, vehicle, options.kernel)
    except run.LabError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    status = follow(run, [str(LAB / "run"), "--vehicle", vehicle, "--kernel", options.kernel,
                          "--timeout", "900", "--", str(run.PYTHON), f"tests/lab/{name}"])
    if status:
        print(f"{name}: failed with exit status {status}; kernel log: {TOP}/build/lab/",
              file=sys.stderr)
    return status
