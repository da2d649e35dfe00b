# SPDX-License-Identifier: GPL-2.0
"""One round of "make torture". Inside a guest:

    $PYTHON -B -m torture.round SPEC RESULT         (from tests/)

SPEC is {seed, seconds, held, chunk, least: {phase: inputs}, phases: [name]}. RESULT gets
a line of JSON when a phase begins ({"begins": name}) and when it has ended ({"phase",
"seconds", "counts"}, and "error" if it failed), so that a guest's death loses no more
than the running phase. With "phases", only these run.
"""

import contextlib
import json
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from lab import fuzz, kernel_log
from lab.netns import SLOW, run

from . import hostile, phases
from .honest import Honest
from .site import TOP, Held, Module, Sites

sys.path.insert(0, str(TOP / "bench/measure"))

# Bytes that a round may leave in use: the kernel keeps free packets.
LEAK = 24 << 20
# What the debug kernel keeps about others' memory; some of it only grows.
DEBUGGERS = ("kmemleak_object", "kmemleak_scan_area", "debug_objects_cache")
# The kernel's limits of ICMP errors, by address: a namespace keeps 65,664 for each address
# family and frees them when it ends, so that they count only after that. The names of the
# cache on 6.12 and 6.1.
PEERS = ("inet_peer", "inet_peer_cache")
MODPROBE = Path("/proc/sys/kernel/modprobe")
USUAL = MODPROBE.read_text("ascii") if MODPROBE.exists() else ""


class RoundError(Exception):
    """Something is left over or lost."""


class Report:
    """Writes RESULT, and says how far the round is."""

    def __init__(self, path, spec, log):
        self.file = open(path, "w", encoding="utf-8")
        self.spec, self.log, self.spent = spec, log, 0

    def line(self, **words):
        self.file.write(json.dumps(words) + "\n")
        self.file.flush()

    def phase(self, name, call, *args):
        """Runs CALL(*ARGS) as the phase NAME; it has failed if the kernel logged a report.
        If CALL returns a dictionary, that is the phase's counts."""
        started = time.monotonic()
        self.line(begins=name)
        timed = name in phases.BEFORE | phases.AFTER
        left = max(0, self.spec["seconds"] - self.spent)
        print(f"torture: {name} begins, about {left / 60:.0f} min left for this round's phases",
              flush=True)
        kernel_log.mark_log(f"l4lb torture: {name}, seed {self.spec['seed']}")
        counts, error = {}, None
        try:
            value = call(*args)
            counts = value if isinstance(value, dict) else {}
            self.clean()
        except BaseException as e:
            error = f"{type(e).__name__}: {e}"
            traceback.print_exc()
            raise
        finally:
            seconds = round(time.monotonic() - started, 1)
            self.spent += seconds * timed
            self.line(phase=name, seconds=seconds, counts=counts, error=error)
            print(f"torture: {name} {'failed' if error else 'done'} after {seconds:.0f} s: "
                  + ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
        return value

    def clean(self):
        bad = [text for _, text in self.log.refresh() if kernel_log.SPLAT.search(text)]
        if bad:
            raise RoundError("the kernel's log: " + " | ".join(bad[:5]))
        self.log.seen.clear()


class Memory:
    """Bytes that the kernel's allocators have given away."""

    def __init__(self):
        from scale import memory
        self.total = memory()[1]
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        self.parts = {name: int(kb) << 10 for name, kb, *_ in map(str.split, lines)
                      if name in ("VmallocUsed:", "Percpu:")}
        for line in Path("/proc/slabinfo").read_text("ascii").splitlines()[2:]:
            name, _, number, size = line.split()[:4]
            self.parts[name] = int(number) * int(size)
        self.total -= sum(self.parts.get(name, 0) for name in DEBUGGERS)

    def above(self, before, *without):
        """Bytes in use that were not in use BEFORE, WITHOUT these caches."""
        return self.total - before.total - sum(
            self.parts.get(name, 0) - before.parts.get(name, 0) for name in without)

    def more(self, before):
        """What has grown most since BEFORE, as text."""
        grown = {name: size - before.parts.get(name, 0) for name, size in self.parts.items()}
        return ", ".join(f"{name} {size}" for name, size in
                         sorted(grown.items(), key=lambda item: -item[1])[:6])


def used(sites, session):
    """Loads, uses and unloads the module once, for the memory that is allocated only once."""
    session.backend.load()
    for site in sites:
        site.open(session.dice("first"))
        hostile.Run(site.lab.client.ns, "packets", session.bases(site, "client"), "eth0",
                    seed=1, count=5000, progress=False).result()
        site.close()
    session.backend.unload()
    time.sleep(1)
    return Memory()


def begun(sites, session):
    """The module loaded and configured; the honest connections."""
    session.backend.load()
    for name in fuzz.SCHEDULERS:
        run(["modprobe", session.backend.prefix + name])
    run(["modprobe", "dummy"], check=False)     # of later namespaces; UML has it built in
    # Otherwise each unknown name of a scheduler starts a process.
    MODPROBE.write_text("\n", encoding="ascii")
    for site in sites:
        site.open(session.dice("first"))
    return Honest([site.lab for site in sites], {site.lab.shape: site.port for site in sites})


def emptied(session, before):
    """Everything is removed: nothing may be left."""
    MODPROBE.write_text(USUAL, encoding="ascii")
    for site in session.sites:
        site.close()
    session.backend.unload()
    if "l4lb" in Path("/proc/slabinfo").read_text("ascii"):
        raise RoundError("/proc/slabinfo still has caches of the module")
    leaks = kernel_log.scan_for_leaks(wait=5.5)
    if leaks:
        raise RoundError(leaks)
    return {"bytes left": no_more(before, *PEERS)}


def no_more(before, *without):
    """Bytes that are still in use and were not BEFORE; raises if they are too many."""
    end = time.monotonic() + 60 * SLOW
    while (more := (now := Memory()).above(before, *without)) > LEAK:
        if time.monotonic() > end:
            raise RoundError(f"leak: {more} bytes more are in use than before: {now.more(before)}")
        time.sleep(1)
    print(f"torture: {more} bytes left: {now.more(before)}", flush=True)
    return max(0, more)


def destroyed(built, before):
    """The namespaces are gone, too."""
    built.destroy()
    return {"bytes left": no_more(before)}


def deadline(spec, share):
    """The end of a phase that has SHARE parts of the round's time."""
    chosen = (phases.BEFORE | phases.AFTER)
    total = sum(s for name, (_, s) in chosen.items() if name in spec["phases"])
    return time.monotonic() + spec["seconds"] * share / total


def with_connections(spec, session, report):
    """The phases in which honest and held connections are open."""
    honest = report.phase("begin", begun, session.sites, session)
    honest.start()
    with contextlib.ExitStack() as stack, told(honest, report):
        held = report.phase("fill", stack.enter_context, Held(spec["held"]))
        report.phase("held", lambda: {"held": held.there()})
        for name, (call, share) in phases.BEFORE.items():
            if name not in spec["phases"]:
                continue

            def whole(call=call, share=share):
                counts = call(session, deadline(spec, share))
                honest.pulse()
                held.touch()
                return counts
            report.phase(name, whole)

        def end():
            honest.pulse()
            there = held.there()
            if there < spec["held"]:
                raise RoundError(f"{there} of {spec['held']} held connections are left")
            return {"held": there}
        report.phase("end", end)

        def expiry():
            counts = held.expire()
            honest.pulse()
            return counts
        report.phase("expiry", expiry)


@contextlib.contextmanager
def told(honest, report):
    """Afterwards the record has how many connections were alive, however the phases ended."""
    try:
        yield
    finally:
        counts = honest.end()
        report.line(phase="honest", seconds=0, counts=counts, error=None)
    if honest.faults:
        raise RoundError(f"honest connections failed at the end: {honest.faults}")


def one_round(spec, result):
    log = kernel_log.Log(kernel_log.KernelLog())
    kernel_log.begins("torture")
    report = Report(result, spec, log)
    random.seed(spec["seed"])
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        built = report.phase("build", Sites)
        session = phases.Session(spec, Module(), built, Path(folder))
        session.log = log
        before = report.phase("first", used, built, session)
        if set(spec["phases"]) & set(phases.BEFORE):
            with_connections(spec, session, report)
            report.phase("empty", emptied, session, before)
        for name, (call, share) in phases.AFTER.items():
            if name in spec["phases"]:
                report.phase(name, call, session, deadline(spec, share))
                report.phase(f"empty after {name}", emptied, session, before)
        report.phase("destroyed", destroyed, built, before)


if __name__ == "__main__":
    one_round(json.loads(Path(sys.argv[1]).read_text("utf-8")), sys.argv[2])
