# SPDX-License-Identifier: GPL-2.0
"""The suite's stages, and which tests each tier runs on them.

A stage is a kind of machine:

  host          this machine, for tests that need no guest (tests/host)
  uml           the plain UML kernel, at native speed
  virtual-time  the same kernel, whose clock jumps over idle time
  uml-6.1, virtual-time-6.1     both, of Linux 6.1
  6.12, 6.1     Debian's kernels, in QEMU with two processors, or natively
  debug         the UML kernel with KASAN, lockdep and kmemleak

A tier is an amount: `everyday` (make test) runs each test on the stage that is
fastest for it; `smoke` a representative few, for slow kernels; `all` every test on every
stage. At native speed and in virtual time of 6.12 that is each row. Elsewhere it is enough rows
for all pairs of values (6.1 in QEMU: each value once), and of those tests that wait only the
smoke tests: virtual time has them, and here they would take a day.
"""

import dataclasses
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from torture.program import program

from . import builds

LAB = Path(__file__).resolve().parent
TOP = LAB.parents[1]
RESULTS = TOP / "build/results"
NAMES = ("host", "uml", "uml-6.1", "virtual-time", "virtual-time-6.1", "6.12", "6.1", "debug")
DEBIAN = ("6.12", "6.1")

SMOKE = "smoke and not timer and not slow"
WHOLE = ("not slow", "pairs")
NO_WAITS = "not timer and (not waits or smoke)"
# {tier: {stage: (-m, --rows)}}; a stage that a tier does not name has WHOLE.
TIERS = {
    "everyday": {
        "uml": ("not timer and not waits and not emulated and not slow", "pairs"),
        "virtual-time": ("(timer or waits) and not emulated and not slow", "pairs"),
        "6.12": ("(stock or emulated) and not slow", "few")},
    # What ipvsctl says is the same on each kernel: once on a slow one is enough.
    "smoke": {name: (SMOKE, "few" if name in DEBIAN else "each") for name in NAMES}
    | {"debug": (f"{SMOKE} and not tool", "each"),
       # UML runs the others, ten times as fast.
       "6.1": (f"{SMOKE} and (stock or emulated or installed)", "few"),
       "uml-6.1": (f"{SMOKE} and not waits and not emulated", "each"),
       "virtual-time-6.1": ("smoke and (timer or waits) and not emulated and not slow", "each")},
    "all": {"uml": ("(slow or not slow) and not timer and not waits", "all"),
            "uml-6.1": ("(slow or not slow) and not timer and not waits", "pairs"),
            "virtual-time-6.1": ("timer or waits", "pairs"),
            "virtual-time": ("timer or waits", "all"),
            "debug": (f"(slow or not slow) and {NO_WAITS}", "pairs")}
    | {name: (f"(emulated or not slow) and {NO_WAITS}", rows)
       for name, rows in zip(DEBIAN, ("pairs", "each"), strict=True)}}
# Limits of one test, in seconds of the guest's clock; a healthy test needs far less.
LIMITS = {"host": 120, "uml": 60, "uml-6.1": 60, "virtual-time": 200_000, "virtual-time-6.1": 200_000,
          "6.12": 240, "6.1": 240, "debug": 240}
# Seconds of the host's clock beyond that limit, for a guest that has become silent.
SILENCE = 90


def load_run():
    """tests/lab/run as a module: it finds kernels and Python."""
    loader = importlib.machinery.SourceFileLoader("lab_run", str(LAB / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("lab_run", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


run = load_run()


class StageError(builds.BuildError):
    """A stage cannot run; the text says why."""


@dataclasses.dataclass
class Selection:
    """Which tests to run; the same for all guests of a run."""
    tier: str
    seed: int
    pattern: str = ""           # make test TESTS=
    more: tuple = ()            # arguments for pytest


@dataclasses.dataclass
class Stage:
    name: str
    selection: Selection
    native: bool = False        # for Debian's kernels: this machine's own one
    label: str = ""             # of its results; default: the name
    coverage: str = ""          # UML: the directory for its guests' counters of executed lines

    def __post_init__(self):
        self.label = self.label or self.name

    def series(self):
        """Of its kernel; host has none."""
        return "6.1" if self.name.endswith("6.1") else "6.12"

    def vehicle(self):
        """That of tests/lab/run."""
        return "native" if self.native else "qemu" if self.name in DEBIAN else \
            self.name.removesuffix("-6.1")

    def kernel(self):
        """The release that it runs on, or for UML its kind."""
        if self.name == "host" or self.native:
            return os.uname().release
        return run.stock_release(self.name) if self.name in DEBIAN else f"{self.name} kernel"

    def file(self, ending):
        return RESULTS / f"{self.label}{ending}"

    def pytest(self, files=()):
        """The command, without arguments that differ between guests. FILES: those with selected
        tests; importing the others would cost an emulated processor half a minute."""
        marks, rows = TIERS[self.selection.tier].get(self.name, WHOLE)
        if self.selection.pattern:
            rows = "all"
        argv = [str(run.PYTHON), "-m", "pytest", "-q", "--tb=short",
                f"--timeout={LIMITS[self.name]}"]
        if self.name == "host":
            argv += [*(files or ["tests/host"]), "--confcutdir=tests/host", "-p", "lab.events"]
        else:
            argv += [*(files or ["tests", "--ignore=tests/host"]), "-m", marks,
                     f"--rows={rows}", f"--seed={self.selection.seed}"]
        if self.selection.pattern:
            argv += ["-k", self.selection.pattern]
        return argv + list(self.selection.more)

    def environment(self):
        """Variables for pytest on this machine: for collecting tests, or for running host's."""
        return {"PYTHONPATH": str(LAB.parent)} if self.name == "host" else \
            {"L4LB_VEHICLE": self.vehicle()}

    def tests(self):
        """The node ids of all tests that are to run, collected by pytest on this machine. The
        suite and its own tests ask for the same ones: they are collected once."""
        known = TOP / "build/collected" / self.fingerprint()
        if not known.exists():
            nodes = self.collect()
            known.parent.mkdir(parents=True, exist_ok=True)
            unfinished = known.with_suffix(f".{os.getpid()}")
            unfinished.write_text("\n".join(nodes), encoding="utf-8")
            unfinished.rename(known)
        return known.read_text(encoding="utf-8").splitlines()

    def fingerprint(self):
        """A name for what pytest collects: other tests or options have another one."""
        # No test's name depends on the seed.
        about = [[str(word) for word in self.pytest() if not str(word).startswith("--seed=")],
                 sorted(self.environment().items()),
                 self.kernel(), os.environ.get("PYTEST_ADDOPTS")]
        about += sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size)
                        for path in (TOP / "tests").rglob("*")
                        if path.suffix not in (".pyc", ".patch") and path.is_file())
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

    def collect(self):
        done = subprocess.run([*self.pytest(), "--collect-only"], cwd=TOP, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              env=os.environ | self.environment())
        nodes = [line for line in done.stdout.splitlines() if re.match(r"tests/\S+\.py::", line)]
        # Otherwise the tests of a file that cannot be imported would be missing unnoticed.
        if done.returncode not in (0, NO_TESTS):
            raise StageError(f"the tests cannot be collected:\n{done.stdout}{done.stderr}")
        return nodes

    def command(self, argv, cpus, seconds):
        """The command that runs ARGV in a guest of this stage, for at most SECONDS."""
        if self.name == "host":
            # It runs beside guests, in the time that they leave (see the suite).
            return ["nice", "-n", "10", "timeout", "-k", "5", str(seconds), *argv]
        vehicle = [self.vehicle(), *([] if self.native else ["--kernel", self.series()])]
        if self.selection.tier == "all":
            vehicle.append("--stock")
        if self.coverage:
            vehicle += ["--coverage", self.coverage]
        return [str(LAB / "run"), "--timeout", str(seconds), "--cpus", str(cpus),
                "--vehicle", *vehicle, "--", *argv]

    def build(self):
        """Brings ipvsctl and the stage's modules up to date."""
        builds.make("ipvsctl")
        if self.name == "host":
            return
        if self.name in DEBIAN:
            builds.make("test-modules", f"KDIR=/lib/modules/{run.stock_release(self.name)}/build")
        else:
            flavour = "debug" if self.name == "debug" else "gcov" if self.coverage else \
                "plain-6.1" if self.name.endswith("-6.1") else "plain"
            done = subprocess.run([LAB / "uml-build", flavour], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise StageError(f"the {flavour} UML kernel could not be built")
            builds.make("test-modules", "ARCH=um", f"KDIR={done.stdout.strip()}",
                        *(["L4LB_GCOV=y"] if self.coverage else []))
        program()
        # If they cannot be compiled, one test is skipped.
        subprocess.run([LAB / "go-clients"], stdin=subprocess.DEVNULL, check=False)


# pytest's status if no test ran: no error for a guest that found no file left.
NO_TESTS = 5
TESTS_FAILED = 1        # pytest's status if tests failed
