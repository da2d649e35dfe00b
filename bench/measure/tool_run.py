# SPDX-License-Identifier: GPL-2.0
"""Times of ipvsctl with large configurations. Inside a guest.

    python3 tool_run.py SPEC FILE

Writes {name: seconds, or another figure} to FILE (JSON). Of times that are taken again and again
the least counts: what else the machine does makes them longer only.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bed import Bed, MeasureError, Traffic
from lab import genl
from lab.ctl import IPVSCTL, VIP, declared
from lab.monitor import Monitor
from scale import connections
from systems import L4LB, service_lines

MODULES = "modprobe -r l4lb_wrr l4lb_rr l4lb", "modprobe l4lb"
# Connections that are opened together. Half-open ones may be a quarter of all.
TOGETHER = 10_000


class Tool:
    """Runs ipvsctl in the director's namespace, and takes the time."""

    def __init__(self, ns, turns, found):
        self.ns, self.turns, self.found = ns, turns, found

    def run(self, *words, code=0, stdin=None):
        """(seconds, output)"""
        with self.ns.enter():
            began = time.monotonic()
            done = subprocess.run([IPVSCTL, *words], capture_output=True, text=True, check=False,
                                  input=stdin, timeout=900)
            took = time.monotonic() - began
        if done.returncode != code:
            raise MeasureError(f"ipvsctl {' '.join(words)}: {done.returncode}: {done.stderr}")
        return took, done.stdout

    def note(self, name, value):
        self.found[name] = value
        print(f"{name}: {value:.3f}", flush=True)

    def least(self, name, *words, before=None, **more):
        """The least of some times; BEFORE each BEFORE() is done."""
        took = []
        for _ in range(self.turns):
            if before:
                before()
            took.append(self.run(*words, **more)[0])
        self.note(name, min(took))


def configurations(tool, spec, folder):
    small, large, next_one = (folder / name for name in ("small", "large", "next"))
    small.write_text(declared(spec["few"]), encoding="ascii")
    large.write_text(declared(spec["many"]), encoding="ascii")
    next_one.write_text(declared(spec["many"], spec["changed"]), encoding="ascii")

    def flush():
        tool.run("service", "flush", "--yes")

    tool.least("apply few", "apply", str(small), before=flush)
    rules = tool.run("save")[1]
    tool.least("restore few", "restore", before=flush, stdin=rules)
    flush()
    tool.least("apply many", "apply", str(large), before=flush)
    tool.least("apply many again", "apply", str(large))
    tool.least("diff", "diff", str(next_one), code=1)

    def back():
        tool.run("apply", str(large))

    tool.least("apply changed", "apply", str(next_one), before=back)


def reading(tool, spec):
    """top and Prometheus read all services and servers."""
    def top(redraws):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        took, text = tool.run("top", "--batch", "-n", str(redraws), "--watch", "1")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not text:
            raise MeasureError("top has shown nothing")
        return took, sum(after[:2]) - sum(before[:2])

    first, longer = top(1), top(1 + spec["redraws"])
    tool.note("top period", (longer[0] - first[0]) / spec["redraws"])
    tool.note("top processor", (longer[1] - first[1]) / spec["redraws"])
    tool.least("prometheus", "-F", "prometheus", "stats")


def events(tool, spec):
    """Weights change as fast as the kernel takes them; a program reads what the monitor writes."""
    servers = 500
    tool.run("service", "flush", "--yes")

    def change(l4lb, weight):
        l4lb.set_services([genl.batch_entry(VIP, 80, [
            genl.batch_server(f"10.1.{i >> 8}.{i & 255}", weight=weight) for i in range(servers)], sched="rr")])

    with genl.L4lb(tool.ns) as l4lb:
        change(l4lb, 1)
        with Monitor(tool.ns) as monitor:
            while monitor.next(1):
                pass
            began = time.monotonic()
            for turn in range(spec["events"] // servers):
                change(l4lb, 2 + turn)
            seen = lost = 0
            while seen + lost < spec["events"]:
                said = monitor.next(60)
                if not said:
                    raise MeasureError(f"{seen} events of {spec['events']}, {lost} lost")
                seen += said["event"] == "weight"
                lost += said["events"] if said["event"] == "lost" else 0
            took = time.monotonic() - began
    tool.note("events a second", seen / took)
    tool.note("events lost", lost)


def exchange(bed, tool, spec, folder):
    """The module goes and comes back, and the connections through a file."""
    most = 2 * spec["conns"] + 4 * TOGETHER
    tool.run("service", "flush", "--yes")
    bed.ns.sysctl("net/ipv4/vs/conn_max", most)
    bed.ns.run(["ipvsadm", "-R"], text_input="\n".join(service_lines(4, "tcp", 2, "dr", servers=4)) + "\n")
    bed.ns.run("ipvsadm --set 7000 0 0")
    for _ in range(0, spec["conns"], TOGETHER):
        Traffic(bed, proto="tcp", method="dr", flows=TOGETHER, scheduled=True).preload(64)
    file, rules = folder / "conns", folder / "rules"
    rules.write_text(tool.run("save", "--format", "json")[1], encoding="utf-8")
    began = time.monotonic()
    tool.note("export", tool.run("conn", "export", str(file))[0])
    tool.note("flush", tool.run("service", "flush", "--yes")[0])
    unload = time.monotonic()
    for command in MODULES:
        bed.ns.run(command, timeout=120)
    tool.note("unload and load", time.monotonic() - unload)
    bed.ns.sysctl("net/ipv4/vs/conn_max", most)
    tool.run("restore", str(rules))
    tool.note("import", tool.run("conn", "import", str(file))[0])
    tool.note("pause", time.monotonic() - began)
    tool.note("connections that are there again", connections(bed.ns))
    tool.run("service", "flush", "--yes")


def main():
    spec = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    found = {}
    with Bed(servers=4).stand() as bed, L4LB.loaded(), tempfile.TemporaryDirectory() as name:
        tool, folder = Tool(bed.ns, spec["turns"], found), Path(name)
        configurations(tool, spec, folder)
        reading(tool, spec)
        events(tool, spec)
        exchange(bed, tool, spec, folder)
    Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
