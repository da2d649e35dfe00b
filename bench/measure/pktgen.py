# SPDX-License-Identifier: GPL-2.0
"""The kernel's own generator, pktgen, as its manual shows it (Documentation/networking/pktgen.rst):
it sends by a veth whose other end is a device of the bed. So ratios are seen not to depend on ours.

    [p0] pktgen ---- [p1] director [srv0]
"""

import contextlib
import json
import re
import time
from types import SimpleNamespace

import frames
from bed import FAMILIES, PORT, SERVER_PORT, MeasureError, server_mac
from lab.netns import Namespace, run
from lab.pktgen import write
from systems import REDIRECT, ruleset

FLOWS, FIRST = 100, 20_000
# What the director must send, by method. pktgen's packets have no UDP checksum; with NAT, ip_vs
# computes one, and l4lb need not.
DUE = {"nat": {"dst": FAMILIES[4].server(1), "dport": SERVER_PORT, "ttl": 31, "bare": None},
       "dr": {"dport": PORT, "ttl": 31, "bare": True}}
AT_INGRESS = REDIRECT.replace("netdev bench", "netdev pktgen").replace("gen0", "p1")


class Pktgen:
    """Packets of FLOWS, by their source ports, in random order, to VIP."""

    def __init__(self, bed, vip):
        self.bed, self.vip = bed, vip

    def __enter__(self):
        run(["modprobe", "pktgen"])
        self.ns = Namespace("bench-pktgen")
        self.ns.ip(f"link add p0 type veth peer name p1 netns {self.bed.ns.name}", "link set p0 up")
        self.bed.ns.ip("link set p1 up")
        mac = json.loads(self.bed.ns.run("ip -j link show p1").stdout)[0]["address"]
        self._write("kpktgend_0", "rem_device_all", "add_device p0")
        self._write("p0", "delay 0", "pkt_size 60", f"dst_mac {mac}", f"dst {self.vip}",
                    f"src_min {FAMILIES[4].clients}", f"src_max {FAMILIES[4].clients}",
                    f"udp_src_min {FIRST}", f"udp_src_max {FIRST + FLOWS}", f"udp_dst_min {PORT}",
                    f"udp_dst_max {PORT}", "flag UDPSRC_RND")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._write("kpktgend_0", "rem_device_all")
        self.ns.destroy()
        run(["modprobe", "-r", "pktgen"], check=False)

    def _write(self, file, *lines):
        write(self.ns, file, *lines)

    def _result(self):
        """"start" does not wait for a thread of pktgen that takes long to begin."""
        end = time.monotonic() + 10
        while True:
            said = self.ns.read("/proc/net/pktgen/p0")
            found = re.search(r"Result: OK: (\d+)\(.*\) usec, (\d+) ", said)
            if found or time.monotonic() > end:
                return found, said
            time.sleep(0.05)

    def send(self, count, due):
        """COUNT packets, of which each must leave by srv0 as DUE says."""
        self.bed.gen.zero()
        self._write("p0", f"count {count}")
        self._write("pgctrl", "start")
        found, said = self._result()
        if not found or int(found[2]) != count:
            raise MeasureError(f"pktgen says: {' '.join(said.split())[-200:]}")
        # Counts are told with a job's answer: that of a packet which goes nowhere.
        self.bed.gen.start(src=FAMILIES[4].clients, dst=self.vip, flows=1, size=64)
        packets, _, sample = self.bed.gen.result().sinks["srv0"]
        text = frames.wrong(sample, due) if packets == count else f"{packets} of {count} packets arrived"
        if text:
            raise MeasureError(f"pktgen: {text}")
        return SimpleNamespace(packets=count, cycles=1000 * int(found[1]))


def floor(bed, add, count):
    """Adds the figure of a redirect at ingress."""
    with Pktgen(bed, FAMILIES[4].far) as generator, ruleset(bed, AT_INGRESS):
        add("pktgen redirect", lambda: generator.send(count, {"ttl": 32, "bare": True}))


def established(bed, add, name, count):
    """Adds those of director NAME, through the VIPs of its standard services."""
    for number, (method, due) in enumerate(DUE.items(), 1):
        with Pktgen(bed, FAMILIES[4].vip(number)) as generator:
            with contextlib.suppress(MeasureError):     # until the director knows the device
                generator.send(count, due)
            add(f"{name}: pktgen udp4 {method}",
                lambda g=generator, d=due: g.send(count, d | {"lladdr": server_mac(1)}))
