# SPDX-License-Identifier: GPL-2.0
"""Times of ipvsctl with large configurations. Inside a guest.

    python3 tool_run.py SPEC FILE

Writes {name: seconds, or another figure} to FILE (JSON). Of times that are taken again and again
the least counts: what else the machine does makes them longer only.
"""

import fcntl
import json
import os
import pty
import re
import resource
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from bed import Bed, MeasureError, Traffic
from lab import genl
from lab.ctl import IPVSCTL, VIP, declared
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
    tool.least("check", "check", str(next_one))
    tool.least("apply many again", "apply", str(large))
    tool.least("diff", "diff", str(next_one), code=1)

    def back():
        tool.run("apply", str(large))

    tool.least("apply changed", "apply", str(next_one), before=back)


def screens(tool, size, seconds):
    """Seconds from one screen of top to the next, and of a processor for each, on a terminal
    of SIZE (lines, columns). Each screen reads /proc/net/l4lb once."""
    with tempfile.NamedTemporaryFile("r") as trace:
        words = ["strace", "-f", "--seccomp-bpf", "-ttt", "-e", "trace=openat", "-o", trace.name,
                 IPVSCTL, "top", "--watch", "1"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        with tool.ns.enter(), subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal,
                                               env=os.environ | {"TERM": "xterm"}) as process:
            os.close(terminal)
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0:
                if select.select([master], [], [], left)[0]:
                    os.read(master, 65536)
            os.write(master, b"q")
            process.wait(60)
        os.close(master)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times = [float(line.split()[1]) for line in trace if "/net/l4lb" in line]
    if len(times) < 3:
        raise MeasureError(f"top has drawn {len(times)} screens")
    return ((times[-1] - times[0]) / (len(times) - 1),
            (sum(after[:2]) - sum(before[:2])) / len(times))


def reading(tool, spec):
    """top, lists and Prometheus read all services and servers."""
    for name, size in (("top", (24, 80)), ("large top", (60, 200))):
        period, worked = screens(tool, size, spec["screens"])
        tool.note(f"{name} period", period)
        tool.note(f"{name} processor", worked)
    tool.least("top in lines", "top", "--batch", "-n", "1")
    tool.least("list", "service", "list")
    tool.least("prometheus", "-F", "prometheus", "stats")


def wait_for_lines(path, lines):
    """Until the file has so many, or has not grown for five seconds. Returns the time of the end."""
    seen, grown = 0, time.monotonic()
    with path.open("rb") as file:
        while seen < lines and time.monotonic() < grown + 5:
            more = file.read()
            if more:
                seen, grown = seen + more.count(b"\n"), time.monotonic()
            else:
                time.sleep(0.01)
    return grown


def events(tool, spec, folder):
    """Weights change as fast as the kernel takes them; the monitor writes to a file."""
    servers, path = 500, folder / "events"
    tool.run("service", "flush", "--yes")
    turns = [[genl.batch_entry(VIP, 80, [genl.batch_server(f"10.1.{i >> 8}.{i & 255}", weight=1 + turn)
                                         for i in range(servers)], sched="rr")]
             for turn in range(1 + spec["events"] // servers)]
    with genl.L4lb(tool.ns) as l4lb:
        l4lb.set_services(turns.pop(0))
        with path.open("wb") as out, tool.ns.enter(), \
                subprocess.Popen([IPVSCTL, "-j", "monitor", "server"], stdout=out) as monitor:
            wait_for_lines(path, 1)
            began = time.monotonic()
            for turn in turns:
                l4lb.set_services(turn)
            told = time.monotonic()
            ended = wait_for_lines(path, 1 + spec["events"])
            monitor.terminate()
    said = [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:]]
    seen = sum(e["event"] == "weight" for e in said)
    lost = sum(e["events"] for e in said if e["event"] == "lost")
    if seen + lost != spec["events"]:
        raise MeasureError(f"{seen} events of {spec['events']}, {lost} lost")
    tool.note("events sent a second", spec["events"] / (told - began))
    tool.note("events a second", seen / (ended - began))
    tool.note("events lost", lost)


def peak(process):
    """MiB that the process has taken at most; 0 when it has ended. (What wait4() says of a child
    counts this program, too, of which it is a copy at first.)"""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text("ascii"), re.M)
    return int(found[1]) / 1024 if found else 0


def shown(ns, *words):
    """(seconds, MiB, lines) of an ipvsctl whose output is read."""
    lines, most, began = 0, 0, time.monotonic()
    with ns.enter(), subprocess.Popen([IPVSCTL, *words], stdout=subprocess.PIPE) as process:
        while part := os.read(process.stdout.fileno(), 1 << 16):
            lines += part.count(b"\n")
            most = max(most, peak(process))
    if process.returncode:
        raise MeasureError(f"ipvsctl {' '.join(words)}: {process.returncode}")
    return time.monotonic() - began, most, lines


def listing(tool, spec):
    """All connections, printed."""
    times = [shown(tool.ns, "--no-header", "conn", "show") for _ in range(tool.turns)]
    if min(lines for _, _, lines in times) < spec["conns"]:
        raise MeasureError(f"conn show has printed {times[0][2]} of {spec['conns']} connections")
    tool.note("conn show", min(took for took, _, _ in times))
    tool.note("conn show memory", max(most for _, most, _ in times))


def exchange(bed, tool, spec, folder):
    """The module goes and comes back, and the connections through a file."""
    most = 2 * spec["conns"] + 4 * TOGETHER
    tool.run("service", "flush", "--yes")
    bed.ns.sysctl("net/ipv4/vs/conn_max", most)
    bed.ns.run(["ipvsadm", "-R"], text_input="\n".join(service_lines(4, "tcp", 2, "dr", servers=4)) + "\n")
    bed.ns.run("ipvsadm --set 7000 0 0")
    for _ in range(0, spec["conns"], TOGETHER):
        Traffic(bed, proto="tcp", method="dr", flows=TOGETHER, scheduled=True).preload(64)
    listing(tool, spec)
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
        events(tool, spec, folder)
        exchange(bed, tool, spec, folder)
    Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
