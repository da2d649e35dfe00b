# SPDX-License-Identifier: GPL-2.0
"""The host's side of benches in virtual time: the kernel and the programs in it."""

import hashlib
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# Last, because our own directory has a report.py, too.
sys.path.append(str(TOP / "bench/measure"))

from host import (  # noqa: E402
    LAB,
    BenchError,
    Parser,  # noqa: F401
    Record,  # noqa: F401
    build,
    call,
    finish,  # noqa: F401
    natural,  # noqa: F401
    say,  # noqa: F401
)

SOURCES = TOP / "bench/scheduling"
PROGRAMS = {"httpd": ["httpd.c"], "load": ["load.c", "fetch.c"], "surge": ["surge.c", "fetch.c"]}


def compiler(name, output, *flags):
    """The command that makes a program of ours."""
    return ["gcc", *flags, "-Wall", "-Wextra", "-o", output,
            *(SOURCES / source for source in PROGRAMS[name]), "-lm"]


def in_guest(who, bed, directory, *options):
    """Runs bench/scheduling/BED in a guest in virtual time, with DIRECTORY, which gets its log;
    OPTIONS are of tests/lab/run. WHO is what failed, if it does."""
    log = directory / "log"
    with open(log, "wb") as output:
        done = subprocess.run(
            [LAB / "run", "--vehicle", "virtual-time", *options, "--",
             "/usr/bin/python3", f"bench/scheduling/{bed}", directory],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        tail = log.read_text("utf-8", "replace").splitlines()[-4:]
        raise BenchError(f"{who}: the run failed, see {log}:\n"
                         + "\n".join("  " + line for line in tail))


class Kernel:
    """The virtual-time kernel with our modules and the bench's programs."""

    def __init__(self, *programs):
        done = subprocess.run([LAB / "uml-build"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise BenchError("the virtual-time kernel could not be built")
        directory = Path(done.stdout.strip())
        self.release = (directory / "include/config/kernel.release").read_text("ascii").strip()
        build("modules", "ARCH=um", f"KDIR={directory}")
        build("ipvsctl")
        self.programs = TOP / "build/bench/bin"
        self.programs.mkdir(parents=True, exist_ok=True)
        for name in programs:
            call(f"building {name}", compiler(name, self.programs / name, "-O2"))
        self.names = sorted(programs)
        self.modules = TOP / "build" / self.release

    def schedulers(self):
        return sorted(p.stem.removeprefix("l4lb_") for p in self.modules.glob("l4lb_*.ko"))

    def fingerprint(self):
        """A hash of all code on which the figures depend."""
        digest = hashlib.sha256(self.release.encode())
        for path in (*sorted(self.modules.glob("*.ko")),
                     *(self.programs / name for name in self.names),
                     *sorted(SOURCES.glob("*.py"))):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()[:16]
