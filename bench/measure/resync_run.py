# SPDX-License-Identifier: GPL-2.0
"""A director with many connections sends them all to a peer that has none. Inside a guest.

Both directors are namespaces: the first one is the bed, in which a generator's packets are
forwarded on processor 0 all the time; the other one's thread that receives has processor 1.
The thread that sends runs where the kernel lets it.
"""

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

from bed import Bed, MeasureError, Traffic
from lab.netns import Namespace
from lab.peers import Peers
from lab.sync_group import DEVICE, DIRECTOR, PEER, cable
from scale import connections, in_use
from systems import L4LB, announcing_on, service_lines

LONGEST = 600           # seconds until the peer is in step
TOGETHER = 10_000       # connections that are opened together: half-open ones have a limit
STEP = 0.2              # seconds between two looks at memory


class Forwarding(threading.Thread):
    """Sends packets through the director; SAMPLES: when each PACKETS of them began and ended."""

    def __init__(self, traffic, packets):
        super().__init__(daemon=True)
        self.traffic, self.packets = traffic, packets
        self.samples, self.fault, self.ends = [], None, threading.Event()

    def run(self):
        os.sched_setaffinity(0, {0})
        try:
            while not self.ends.is_set():
                began = time.monotonic()
                self.traffic.random(64, self.packets)
                self.samples.append((began, time.monotonic()))
        except (OSError, MeasureError) as e:
            self.fault = e

    def end(self):
        self.ends.set()
        self.join()
        if self.fault:
            raise self.fault

    def rate(self, first, last):
        """Packets a second of the samples from FIRST to LAST."""
        some = [ended - began for began, ended in self.samples if first <= began and ended <= last]
        if not some:
            raise MeasureError("nothing was forwarded meanwhile")
        return self.packets * len(some) / sum(some)


def settle(ns, lines):
    ns.run(["ipvsadm", "-R"], text_input="\n".join(lines) + "\n")
    ns.run("ipvsadm --set 7000 0 0")


def receivers(before):
    """Pins the kernel's threads of peers that are not in BEFORE to the second processor."""
    fresh = threads() - before
    if not fresh:
        raise MeasureError("the peer has no thread that receives")
    for pid in fresh:
        os.sched_setaffinity(pid, {1})


def threads():
    found = set()
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text("ascii").startswith("l4lb-"):
                found.add(int(path.parent.name))
    return found


def watch(until):
    """The most bytes of the allocators until UNTIL() is true."""
    most, end = 0, time.monotonic() + LONGEST
    while not until():
        if time.monotonic() > end:
            raise MeasureError(f"the peer is not in step after {LONGEST} s")
        most = max(most, in_use()[1])
        time.sleep(STEP)
    return max(most, in_use()[1])


def resync(bed, other, spec, count):
    """The row of one transfer of COUNT connections to namespace OTHER."""
    lines = list(service_lines(4, "tcp", 2, "dr", servers=4))
    for ns in (bed.ns, other):
        ns.sysctl("net/ipv4/vs/conn_max", 2 * count + 10_000)
        settle(ns, lines)
    for _ in range(0, count, TOGETHER):
        Traffic(bed, proto="tcp", method="dr", flows=TOGETHER, scheduled=True).preload(64)
    if connections(bed.ns) != count:
        raise MeasureError(f"{connections(bed.ns)} connections, not {count}")
    busy = Traffic(bed, proto="tcp", method="dr", flows=spec["flows"], scheduled=True)
    busy.preload(64)
    with Peers(bed.ns) as one, Peers(other) as two:
        one.set(rate=0, verify=0, multicast=False)
        two.set(verify=0)
        before = threads()
        two.add(DIRECTOR[4])
        receivers(before)
        forwarding = Forwarding(busy, spec["packets"])
        forwarding.start()
        time.sleep(spec["alone"])
        used, began = in_use()[1], time.monotonic()
        one.add(PEER[4])
        most = watch(lambda: two.list()[DIRECTOR[4]]["state"] == "in step")
        ended = time.monotonic()
        time.sleep(spec["alone"])
        forwarding.end()
        progress = two.progress(DIRECTOR[4])
        # A connection that was never announced is compared from then on.
        compared = two.compare(DIRECTOR[4])
        while compared["difference"] and time.monotonic() < ended + LONGEST:
            time.sleep(1)
            compared = two.compare(DIRECTOR[4])
        agreed = time.monotonic() - began
        row = {"count": count, "there": connections(bed.ns), "seconds": ended - began,
               "records": progress["bulk_in"], "copies": connections(other), "agreed": agreed,
               "difference": compared["difference"], "compared": compared["compared"],
               "alone": forwarding.rate(0, began), "meanwhile": forwarding.rate(began, ended),
               "after": forwarding.rate(ended, time.monotonic()),
               "grown": most - used,
               "curve": [(round(at - began, 3), round(spec["packets"] / (till - at)))
                         for at, till in forwarding.samples]}
    return row


def run(spec):
    for count in spec["counts"]:
        print(f"{count:,} connections", flush=True)
        with Bed(servers=4).stand() as bed, L4LB.loaded():
            other = Namespace("peer")
            # The bed has switched off what a cable waits for.
            bed.ns.sysctl("net/ipv6/conf/default/addr_gen_mode", 0)
            try:
                with cable(bed.ns, other), announcing_on(bed, DEVICE):
                    yield resync(bed, other, spec, count)
            finally:
                other.destroy()
                bed.ns.run("ipvsadm -C", timeout=600)


def main():
    spec, result = Path(sys.argv[1]), Path(sys.argv[2])
    result.write_text(json.dumps(list(run(json.loads(spec.read_text("utf-8"))))), encoding="utf-8")


if __name__ == "__main__":
    main()
