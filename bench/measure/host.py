# SPDX-License-Identifier: GPL-2.0
"""The host's side of measurements in a guest: building, booting, reporting errors."""

import argparse
import datetime
import importlib.machinery
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LAB = TOP / "tests/lab"
sys.path.insert(0, str(TOP / "tests"))

from lab import bpf, builds  # noqa: E402

UML = ("uml", "virtual-time")


class BenchError(Exception):
    """The bench cannot run; the text says what to do."""


def say(text=""):
    print(text, flush=True)


def call(what, argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, cwd=TOP)
    if done.returncode:
        raise BenchError(f"{what} failed:\n" + "\n".join(done.stdout.splitlines()[-20:]))
    return done.stdout


def build(target, *variables):
    """Makes TARGET as the tests do, so that what they have built is there."""
    try:
        builds.make(target, *variables)
    except builds.BuildError as e:
        raise BenchError(str(e)) from e


def objects():
    """The BPF programs that instructions.py measures, compiled: {name: object file}."""
    folder = TOP / "build/bench/bpf"
    folder.mkdir(parents=True, exist_ok=True)
    return {"program": str(bpf.compiled("least", folder)),
            "peer": str(bpf.compiled("ipip", folder, TOP / "bench/peer"))}


def natural(least, most):
    """A type for argparse: a whole number from LEAST to MOST."""
    def parse(text):
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return int(text)
    return parse


class Parser(argparse.ArgumentParser):
    """The parser of bench/NAME; it answers bad arguments with one line."""

    def __init__(self, name, description):
        super().__init__(prog=f"bench/{name}", description=description,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.name = name

    def quick_and_out(self, what="under three minutes"):
        self.add_argument("--quick", action="store_true", help=what)
        self.add_argument("--out", type=Path, metavar="DIR",
                          help=f"where results go (build/bench/{self.name})")

    def options(self, argv=None):
        options = self.parse_args(argv)
        options.out = (options.out or TOP / "build/bench" / self.name / (
            "quick" if options.quick else "")).absolute()
        return options

    def error(self, message):
        self.exit(2, f"bench: {message} (see {self.prog} --help)\n")


def row_a_line(results):
    """The dictionary RESULTS as JSON, with a line for each entry of its lists and dicts."""
    def lines(name, value):
        if isinstance(value, (list, dict)) and value:
            items = [json.dumps(k) + ": " + json.dumps(v) for k, v in value.items()] \
                if isinstance(value, dict) else [json.dumps(v) for v in value]
            ends = "{}" if isinstance(value, dict) else "[]"
            return f'{name}: {ends[0]}\n  ' + ",\n  ".join(items) + f"\n {ends[1]}"
        return f"{name}: {json.dumps(value)}"
    return "{\n " + ",\n ".join(lines(json.dumps(k), v) for k, v in results.items()) + "\n}\n"


class Record:
    """The circumstances of a run of bench/NAME, taken when it begins."""

    def __init__(self, name, kernel):
        self.name, self.kernel = name, kernel
        self.started, self.load = time.monotonic(), os.getloadavg()[0]

    def header(self):
        """How and when results were made."""
        return {"command": shlex.join([f"bench/{self.name}", *sys.argv[1:]]),
                "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
                "kernel": self.kernel.release}

    def conditions(self):
        """header(), and the processor and load on which measured times depend, too."""
        return self.header() | {"processor": processor(), "load": [
            round(n, 1) for n in (self.load, os.getloadavg()[0])]}

    def publish(self, results, out, write, more=()):
        """Writes RESULTS, and with WRITE table and plots, into OUT; prints the table."""
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(row_a_line(results), encoding="utf-8")
        plots = write(results, out)
        say()
        say((out / "table.md").read_text("utf-8"))
        say(f"{(time.monotonic() - self.started) / 60:.1f} min. Results:")
        for path in ("table.md", "results.json", *plots, *more):
            say(f"  {os.path.relpath(out / path)}")


def finish(bench, *errors):
    """Exits with BENCH's return value; BenchError and ERRORS are reported in one line."""
    try:
        sys.exit(bench())
    except (BenchError, *errors) as e:
        print(f"bench: {e}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("bench: interrupted, nothing was written", file=sys.stderr)
        sys.exit(130)


def processor():
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "unknown processor"


def lab_run():
    """tests/lab/run as a module: it knows kernels and vehicles."""
    loader = importlib.machinery.SourceFileLoader("lab_run", str(LAB / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("lab_run", loader))
    loader.exec_module(module)
    return module


class Kernel:
    """A kernel to measure on: 6.12 or 6.1 (Debian's, in QEMU), uml (quick, one processor), or
    virtual-time (plain, with a clock that no computing moves)."""

    def __init__(self, name):
        self.name = name
        run = lab_run()
        try:
            if name in UML:
                say("the UML kernel (built once, 5 minutes on two free cores)")
                flavour = "quick" if name == "uml" else "plain"
                done = call("building the UML kernel", [LAB / "uml-build", flavour])
                directory = Path(done.splitlines()[-1])
                self.release = (directory / "include/config/kernel.release").read_text("ascii")
                self.release = self.release.strip()
                self.make = ["ARCH=um", f"KDIR={directory}"]
            else:
                self.release = run.stock_release(name)
                self.make = [f"KDIR=/lib/modules/{self.release}/build"]
        except run.LabError as e:
            raise BenchError(str(e)) from e

    def build(self):
        build("bench-modules", *self.make)
        build("ipvsctl")

    def measure(self, script, spec, clock, cpus, timeout, *, memory="3G", more=()):
        """Runs bench/measure/SCRIPT in a guest and prints its output. SPEC is its JSON input;
        returns the text that it writes. MORE: options of tests/lab/run."""
        (TOP / "build/bench").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="run-", dir=TOP / "build/bench") as directory:
            files = [os.path.join(directory, name) for name in ("spec", "result")]
            Path(files[0]).write_text(spec, encoding="utf-8")
            vehicle = ["--vehicle", self.name] if self.name in UML else \
                ["--vehicle", "qemu", "--kernel", self.name, "--cpus", str(cpus)]
            # A small process loads the generator first: UML has crashed otherwise.
            command = (f"insmod build/{self.release}/bench/l4lb_gen.ko && "
                       f"exec /usr/bin/python3 -B bench/measure/{script} {' '.join(files)}")
            status = subprocess.run(
                [LAB / "run", *vehicle, "--measure", clock, "--memory", memory,
                 "--timeout", str(timeout), *more, "--", "sh", "-c", command],
                stdin=subprocess.DEVNULL, check=False).returncode
            if status:
                raise BenchError(f"measuring failed (exit status {status})")
            return Path(files[1]).read_text("utf-8")
