# SPDX-License-Identifier: GPL-2.0
"""The host's side of what is measured in a guest: build, boot, say what is wrong."""

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


def natural(least, most):
    """A type for argparse."""
    def parse(text):
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return int(text)
    return parse


class Parser(argparse.ArgumentParser):
    """Of bench/NAME; bad arguments get one line."""

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
    """JSON of the dictionary RESULTS, with a line for each entry of what it has in it."""
    def lines(name, value):
        if isinstance(value, (list, dict)) and value:
            items = [json.dumps(k) + ": " + json.dumps(v) for k, v in value.items()] \
                if isinstance(value, dict) else [json.dumps(v) for v in value]
            ends = "{}" if isinstance(value, dict) else "[]"
            return f'{name}: {ends[0]}\n  ' + ",\n  ".join(items) + f"\n {ends[1]}"
        return f"{name}: {json.dumps(value)}"
    return "{\n " + ",\n ".join(lines(json.dumps(k), v) for k, v in results.items()) + "\n}\n"


class Record:
    """Of a run of bench/NAME: when it began, and what was to be seen then."""

    def __init__(self, name, kernel):
        self.name, self.kernel = name, kernel
        self.started, self.load = time.monotonic(), os.getloadavg()[0]

    def header(self):
        """How and when results were made."""
        return {"command": shlex.join([f"bench/{self.name}", *sys.argv[1:]]),
                "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
                "kernel": self.kernel.release}

    def conditions(self):
        """What measured times depend on besides."""
        return self.header() | {"processor": processor(), "load": [
            round(n, 1) for n in (self.load, os.getloadavg()[0])]}

    def publish(self, results, out, write, more=()):
        """RESULTS and what WRITE makes of them, in the directory OUT; the table is shown."""
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(row_a_line(results), encoding="utf-8")
        plots = write(results, out)
        say()
        say((out / "table.md").read_text("utf-8"))
        say(f"{(time.monotonic() - self.started) / 60:.1f} min. Results:")
        for path in ("table.md", "results.json", *plots, *more):
            say(f"  {os.path.relpath(out / path)}")


def finish(bench, *errors):
    """Exits with what BENCH returns; BenchError and ERRORS get one line."""
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
    """A kernel to measure on: 6.12 or 6.1 (Debian's, in QEMU), or uml (plain, one processor)."""

    def __init__(self, name):
        self.name = name
        run = lab_run()
        try:
            if name == "uml":
                say("the UML kernel (built once, 5 minutes on two free cores)")
                directory = Path(call("building the UML kernel", [LAB / "uml-build"])
                                 .splitlines()[-1])
                self.release = (directory / "include/config/kernel.release").read_text("ascii")
                self.release = self.release.strip()
                self.make = ["ARCH=um", f"KDIR={directory}"]
            else:
                self.release = run.stock_release(name)
                self.make = [f"KDIR=/lib/modules/{self.release}/build"]
        except run.LabError as e:
            raise BenchError(str(e)) from e

    def build(self):
        call("building the modules", ["make", "bench-modules", *self.make])
        call("building ipvsctl", ["make", "ipvsctl"])

    def measure(self, script, spec, clock, cpus, timeout, *, memory="3G", more=()):
        """Runs bench/measure/SCRIPT in a guest; what it prints, is printed.
        SPEC goes there as JSON text; returns what it leaves. MORE: options of tests/lab/run."""
        (TOP / "build/bench").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="run-", dir=TOP / "build/bench") as directory:
            files = [os.path.join(directory, name) for name in ("spec", "result")]
            Path(files[0]).write_text(spec, encoding="utf-8")
            vehicle = ["--vehicle", "uml"] if self.name == "uml" else \
                ["--vehicle", "qemu", "--kernel", self.name, "--cpus", str(cpus)]
            # The generator first, by a small process: UML has died of it otherwise.
            command = (f"insmod build/{self.release}/bench/l4lb_gen.ko && "
                       f"exec /usr/bin/python3 -B bench/measure/{script} {' '.join(files)}")
            status = subprocess.run(
                [LAB / "run", *vehicle, "--measure", clock, "--memory", memory,
                 "--timeout", str(timeout), *more, "--", "sh", "-c", command],
                stdin=subprocess.DEVNULL, check=False).returncode
            if status:
                raise BenchError(f"measuring failed (exit status {status})")
            return Path(files[1]).read_text("utf-8")
