# SPDX-License-Identifier: GPL-2.0
"""Connections between two clusters on private addresses, where only front nodes can be
reached from outside. Inside a guest with one processor, whose clock counts instructions.

    a1 10.1.0.2 ---- fa 10.1.0.1 | 198.18.0.1 ---- 198.18.0.2 | 10.2.0.1 fb ---- b1 10.2.0.2
    compute          front                                      front            compute

Every cable has the rate that SPEC gives. NetPIPE sends from a1 to b1.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bed import TOP, MeasureError
from lab.netns import run, wait_until
from network import Network
from still import Awake
from systems import IP_VS, L4LB

REST = 0.01            # seconds, see still.py
PORT = 5002            # NetPIPE's
PUBLIC = {"fa": "198.18.0.1", "fb": "198.18.0.2"}
INSIDE = {"fa": "10.1.0.1", "fb": "10.2.0.1"}
COMPUTE = {"fa": "10.1.0.2", "fb": "10.2.0.2"}
NODE = {"fa": "a1", "fb": "b1"}
NAT = """table ip relay {
	chain out {
		type nat hook postrouting priority srcnat
		oifname "pub" ip saddr %s/24 masquerade
	}
}
"""
HAPROXY = """\
global
	maxconn 1000
defaults
	mode tcp
	timeout connect 10s
	timeout client 1h
	timeout server 1h
listen relay
	bind %s:%d
	server there %s:%d
"""
# How connections get from a1 to b1, see way().
WAYS = ("direct", "two proxies", "NAT and relay", "NAT and ip_vs", "NAT and l4lb")


class Clusters(Network):
    """Two clusters with a front node and a compute node each."""

    def __init__(self, rate):
        super().__init__("relay", ("a1", "fa", "fb", "b1"))
        self.rate, self.files = rate, tempfile.TemporaryDirectory()

    def __exit__(self, *_):
        super().__exit__()
        self.files.cleanup()

    def _build(self):
        for one, name, other, peer in (("fa", "pub", "fb", "pub"), ("fa", "in", "a1", "eth0"),
                                       ("fb", "in", "b1", "eth0")):
            self.ns[one].ip(f"link add {name} type veth peer name {peer} "
                            f"netns {self.ns[other].name}")
            for node, device in ((one, name), (other, peer)):
                # Network cards of the paper's rate do not segment TCP.
                self.ns[node].run(f"ethtool -K {device} tso off gso off gro off")
                self.ns[node].run(f"tc qdisc add dev {device} root netem rate {self.rate}mbit "
                                  "limit 1000")
                self.ns[node].ip(f"link set {device} up")
        for front in ("fa", "fb"):
            ns, node = self.ns[front], self.ns[NODE[front]]
            ns.ip(f"addr add {PUBLIC[front]}/24 dev pub", f"addr add {INSIDE[front]}/24 dev in")
            ns.sysctl("net/ipv4/ip_forward", 1)
            node.ip(f"addr add {COMPUTE[front]}/24 dev eth0",
                    f"route add default via {INSIDE[front]}")

    def route(self):
        """Gives each front node a route to the other's network, impossible outside the lab."""
        self.ns["fa"].ip(f"route add 10.2.0.0/24 via {PUBLIC['fb']}")
        self.ns["fb"].ip(f"route add 10.1.0.0/24 via {PUBLIC['fa']}")
        return COMPUTE["fb"], COMPUTE["fa"]

    def proxy(self, front, address, to):
        conf = Path(self.files.name, f"{front}-{address}.cfg")
        conf.write_text(HAPROXY % (address, PORT, to, PORT), encoding="ascii")
        ns = self.ns[front]
        self.procs.append(ns.popen(["haproxy", "-db", "-f", str(conf)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        wait_until(lambda: f"{address}:{PORT}" in ns.run("ss -Hltn").stdout, 60,
                   f"haproxy on {front} listens")

    def proxies(self):
        """Each front node relays its compute node's connections, and those from outside."""
        for front, other in (("fa", "fb"), ("fb", "fa")):
            self.proxy(front, INSIDE[front], PUBLIC[other])
            self.proxy(front, PUBLIC[front], COMPUTE[front])
        return INSIDE["fa"], INSIDE["fb"]

    def nat(self):
        for front in PUBLIC:
            self.ns[front].run(["nft", "-f", "-"], text_input=NAT % INSIDE[front])
        return PUBLIC["fb"], PUBLIC["fa"]

    def relay(self):
        for front in PUBLIC:
            self.proxy(front, PUBLIC[front], COMPUTE[front])
        return self.nat()

    def direct(self, tool):
        """The manual's recipe: a director on each front node forwards to the compute node."""
        for front in PUBLIC:
            self.ns[front].run([*tool, "service", "add", "tcp", f"{PUBLIC[front]}:{PORT}",
                                "server", COMPUTE[front], "nat"])
        return self.nat()


def exchange(clusters, sender, receiver, to, spec, *, still=contextlib.nullcontext):
    """NetPIPE's lines: [(bytes, Mbit/s, seconds one way)]."""
    out = Path(clusters.files.name, "np.out")
    out.unlink(missing_ok=True)
    # Both ends need the same options, or they get out of step.
    options = ["-p", "0", "-l", str(spec["least"]), "-u", str(spec["most"]),
               "-n", str(spec["times"])]
    server = clusters.ns[receiver].popen(["NPtcp", *options], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: f":{PORT}" in clusters.ns[receiver].run("ss -Hltn").stdout, 60,
                   "NPtcp listens")
        with still():
            done = clusters.ns[sender].run(
                ["NPtcp", "-h", to, *options, "-o", str(out)], check=False,
                timeout=spec["patience"])
    finally:
        server.kill()
        server.wait()
    lines = [tuple(map(float, line.split())) for line in out.read_text("ascii").splitlines()] \
        if out.exists() else []
    if done.returncode or not lines:
        raise MeasureError(f"NPtcp: exit status {done.returncode}: {done.stderr.strip()[-200:]}")
    return lines


@contextlib.contextmanager
def way(name, rate, tool):
    """Yields clusters set up that way, and the addresses to which a1 and b1 connect."""
    director = {"NAT and ip_vs": IP_VS, "NAT and l4lb": L4LB}.get(name)
    with director.loaded() if director else contextlib.nullcontext(), Clusters(rate) as clusters:
        if director:
            yield clusters, clusters.direct(tool)
        else:
            yield clusters, {"direct": clusters.route, "two proxies": clusters.proxies,
                             "NAT and relay": clusters.relay}[name]()


def both(clusters, there, back, spec, awake):
    """Measures from a1 to b1. Before, a short exchange in each direction loads all programs
    into memory, and shows that connections work in both."""
    little = spec | {"most": spec["least"]}
    exchange(clusters, "a1", "b1", there, little)
    exchange(clusters, "b1", "a1", back, little)
    return exchange(clusters, "a1", "b1", there, spec, still=awake.aside)


def measure(spec):
    tool, rows = [spec["ipvsctl"]], []
    for name in WAYS:
        row = {"way": name}
        try:
            with Awake(REST) as awake, way(name, spec["rate"], tool) as (clusters, ends):
                row["lines"] = both(clusters, *ends, spec, awake)
        except (MeasureError, subprocess.TimeoutExpired, RuntimeError) as e:
            row["fault"] = " ".join(str(e).split())
        rows.append(row)
        print(f"  {name}: " + (
            row.get("fault") or f"{row['lines'][0][2] * 1e6:,.0f} us for "
            f"{row['lines'][0][0]:,.0f} bytes, {row['lines'][-1][1]:.1f} Mbit/s for "
            f"{row['lines'][-1][0]:,.0f}"), flush=True)
    return rows


if __name__ == "__main__":
    os.chdir(TOP)
    run(["modprobe", "-q", "sch_netem"], check=False)
    wanted = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(measure(wanted)), encoding="utf-8")
