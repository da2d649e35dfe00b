# SPDX-License-Identifier: GPL-2.0
"""The network namespace of measurements, and the traffic in it. Inside a guest.

    clients 198.18.0.0/15            real servers 10.1.0.1-
    2001:2::c612:0/111               2001:db8:1::1-
            |                                |
         [gen0] -------- director -------- [srv0]
                  10.64.0.0/14, the VIPs
                  2001:db8:64::/64

Both devices are of kind l4lb_gen: source and sink. All neighbours are permanent.
"""

import contextlib
import ipaddress
import os
import sys
import threading
import time
import typing
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import frames  # noqa: E402
from lab.netns import Namespace  # noqa: E402

GATEWAY_MAC = "02:00:00:00:01:00"
PORT, SERVER_PORT = 80, 8080
SYN, ACK, SYNACK, FINACK = 0x02, 0x10, 0x12, 0x11
ALL = ("nat", "dr", "tun")
PROTO = {"udp": frames.UDP, "tcp": frames.TCP}


class Family:
    """Addresses of one family."""

    def __init__(self, number, clients, vips, servers, far):
        self.number = number
        self.clients = clients
        self._vips, self._servers = ipaddress.ip_address(vips), ipaddress.ip_address(servers)
        self.far = far

    def vip(self, n):
        return str(self._vips + n)

    def server(self, n):
        return str(self._servers + n)

    def bracket(self, address):
        return f"[{address}]" if self.number == 6 else address


FAMILIES = {4: Family(4, "198.18.0.0", "10.64.0.0", "10.1.0.0", "203.0.113.5"),
            6: Family(6, "2001:2::c612:0", "2001:db8:64::", "2001:db8:1::", "2001:db8:f::5")}
NETS = {4: ("198.18.0.0/15", "10.0.0", "10.64.0.0/14", "203.0.113.0/24"),
        6: ("2001:2::/48", "2001:db8::", "2001:db8:64::/64", "2001:db8:f::/64")}


def server_mac(n):
    return f"02:00:00:02:{n >> 8:02x}:{n & 255:02x}"


class MeasureError(Exception):
    """A packet is missing, wrong, or was not sent: the row has no figure."""


class Bed:
    """A new network namespace; the code in stand()'s block runs in it."""

    def __init__(self, servers=1):
        self.ns = Namespace("bench")
        self.servers = servers
        self.first = 1 << 16
        # All namespaces share one neighbour table; the first one sets its limits.
        for number in (3, 2, 1):
            for version in ("ipv4", "ipv6"):
                Path(f"/proc/sys/net/{version}/neigh/default/gc_thresh{number}").write_text(
                    "65536", encoding="ascii")

    @contextlib.contextmanager
    def stand(self):
        try:
            with self.ns.enter():
                self._build()
                self.gen = Generator()
                yield self
                self.gen.close()
        finally:
            self.ns.destroy()

    def _build(self):
        for name, value in (("ipv4/ip_forward", 1), ("ipv6/conf/all/forwarding", 1),
                            ("ipv4/conf/all/rp_filter", 0), ("ipv4/conf/default/rp_filter", 0),
                            ("ipv4/conf/all/send_redirects", 0),
                            ("ipv4/conf/default/send_redirects", 0),
                            ("ipv6/conf/all/accept_dad", 0), ("ipv6/conf/default/accept_dad", 0),
                            ("ipv6/conf/default/router_solicitations", 0),
                            ("ipv6/conf/default/addr_gen_mode", 1)):
            self.ns.sysctl(f"net/{name}", value)
        self.ns.ip("link set lo up",
                   "link add gen0 type l4lb_gen",
                   "link add srv0 mtu 9000 type l4lb_gen",
                   "link set gen0 up", "link set srv0 up",
                   "addr add 10.0.0.1/24 dev gen0", "addr add 10.1.255.254/16 dev srv0",
                   "addr add 2001:db8::1/64 dev gen0 nodad",
                   "addr add 2001:db8:1::ffff/64 dev srv0 nodad")
        for family, (clients, net, vips, far) in NETS.items():
            gateway = "10.0.0.2" if family == 4 else f"{net}2"
            lines = [f"neigh add {gateway} lladdr {GATEWAY_MAC} dev gen0 nud permanent"]
            lines += [f"neigh add {FAMILIES[family].server(n)} lladdr {server_mac(n)} "
                      "dev srv0 nud permanent" for n in range(1, self.servers + 1)]
            lines += [f"route add {clients} via {gateway} dev gen0",
                      f"route add local {vips} dev lo",
                      f"route add {far} via {FAMILIES[family].server(1)} dev srv0"]
            self.ns.ip(*lines, family=family)

    def flows(self, count):
        """Reserves COUNT flow numbers; returns the first."""
        first = self.first
        self.first += count
        return first


class Talk(typing.NamedTuple):
    """The counts of a device that answers; OPENED is indexed by the real server's number."""
    answered: int
    closed: int
    refused: int
    opened: list


class Result:
    """What /proc/l4lb_gen says about a job."""

    def __init__(self, text):
        lines = text.splitlines()
        words = lines[0].split()
        counts = dict(zip(words[::2], map(int, words[1::2])))
        self.packets, self.ns = counts["packets"], counts["ns"]
        self.cycles, self.unbuilt = counts["cycles"], counts["unbuilt"]
        self.sinks, self.talks = {}, {}
        for line in lines[1:]:
            head, _, sample = line.partition(" sample")
            w = head.split()
            self.sinks[w[1]] = (int(w[3]), int(w[5]), bytes.fromhex(sample.strip()))
            self.talks[w[1]] = Talk(*map(int, (w[7], w[9], w[11])), list(map(int, w[13:])))

    def check(self, sink, length, due):
        """Raises MeasureError unless all packets reached SINK, LENGTH bytes each, like DUE."""
        if self.unbuilt:
            raise MeasureError(f"{self.unbuilt} of {self.packets} packets could not be built")
        for name, (packets, length_all, sample) in self.sinks.items():
            want = self.packets if name == sink else 0
            if packets != want:
                raise MeasureError(f"{name} got {packets} packets of {want}")
            if want and length_all != want * length:
                raise MeasureError(f"{name} got {length_all} bytes of {want * length}")
            if want and (text := frames.wrong(sample, due)):
                raise MeasureError(f"{name}: {text}")


class Generator:
    """An open /proc/l4lb_gen, with one job at a time."""

    def __init__(self):
        self.fd = os.open("/proc/l4lb_gen", os.O_RDWR)

    def close(self):
        os.close(self.fd)

    def _write(self, text):
        try:
            os.write(self.fd, text.encode("ascii"))
        except OSError as e:
            said = os.pread(self.fd, 4096, 0).decode("ascii")
            raise MeasureError(f"the generator refuses '{text}': {said.strip() or e}") from e

    def zero(self):
        self._write("zero")

    def role(self, device, role):
        """sink, server, client, client-closes: see gen/answer.c."""
        self._write(f"role {device} {role}")

    def send(self, **words):
        self.zero()
        self.start(**words)
        return self.result()

    def start(self, **words):
        self._write(" ".join(f"{k}={v}" for k, v in words.items()))

    def result(self):
        return Result(os.pread(self.fd, 4096, 0).decode("ascii"))


def together(jobs):
    """Runs each job on its own processor, all at once; (results in order, sinks)."""
    generators = [Generator() for _ in jobs]
    results, faults = [None] * len(jobs), []
    generators[0].zero()
    start = time.monotonic_ns() + 100_000_000

    def work(n):
        try:
            os.sched_setaffinity(0, {n})
            generators[n].start(start=start, **jobs[n])
            results[n] = generators[n].result()
        except (OSError, MeasureError) as e:
            faults.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(jobs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if faults:
        raise MeasureError(str(faults[0]))
    sinks = generators[0].result().sinks
    for g in generators:
        g.close()
    return results, sinks


class Traffic:
    """Packets of one kind to one VIP, or as replies from its real server."""

    def __init__(self, bed, family=4, proto="udp", method="dr", vip=None, *, flows=100,
                 services=1, scheduled=False):
        self.bed, self.family, self.proto, self.method = bed, FAMILIES[family], proto, method
        self.vip = vip if vip is not None else 1 + ALL.index(method)
        self.flows, self.services = flows, services
        self.first = bed.flows(flows)
        # Several servers or VIPs: a sample's addresses are not known beforehand.
        self.scheduled = scheduled or services > 1
        self.seed = 12345

    def words(self, size, reply=False, flags=ACK, dev="gen0", fresh=None):
        f = self.family
        words = {"dev": dev if not reply else "srv0", "family": f.number, "proto": self.proto,
                 "size": size, "flows": self.flows, "first": self.first if fresh is None else fresh,
                 "reply": int(reply)}
        if self.proto == "tcp":
            words["tcp_flags"] = flags
        if reply:
            return words | {"src": f.server(1), "sport": SERVER_PORT, "dst": f.clients}
        return words | {"src": f.clients, "dst": f.vip(self.vip), "dport": PORT,
                        "services": self.services}

    def due(self, size, reply=False):
        """(sink, length, fields) of the packets that must leave the director."""
        f, length = self.family, size - frames.FCS
        if reply:
            return "gen0", length, {"lladdr": GATEWAY_MAC, "src": f.vip(self.vip),
                                    "sport": PORT, "ttl": 63, "proto": PROTO[self.proto]}
        due = {"ttl": 63, "proto": PROTO[self.proto], "tunnelled": self.method == "tun"}
        if self.method == "tun":
            length += frames.OUTER[f.number]
            del due["ttl"]      # a sample's TTL is the inner packet's, which is not checked
        if not self.scheduled:
            due["lladdr"] = server_mac(1)
            due["dst"] = f.server(1) if self.method == "nat" else f.vip(self.vip)
            due["dport"] = SERVER_PORT if self.method == "nat" else PORT
            if self.method == "tun":
                due["outer"] = f.server(1)
        return "srv0", length, due

    def each(self, size, reply=False, flags=ACK, check=True, fresh=None):
        """One packet of each flow, in turn."""
        result = self.bed.gen.send(**self.words(size, reply, flags, fresh=fresh))
        if check:
            result.check(*self.due(size, reply))
        return result

    def random(self, size, count, reply=False, flags=ACK):
        """COUNT packets, flows in random order."""
        result = self.bed.gen.send(random=1, count=count, seed=self.seed,
                                   **self.words(size, reply, flags))
        result.check(*self.due(size, reply))
        return result

    def preload(self, size):
        """RFC 9693's first phase: creates the connections that are measured later."""
        if self.proto == "udp":
            self.each(size)
            if self.method == "nat" and not self.scheduled:
                self.each(size, reply=True)
            return
        self.each(size, flags=SYN)
        if self.method == "nat" and not self.scheduled:
            self.each(size, reply=True, flags=SYNACK)
        self.each(size, flags=ACK)


def least(family, proto, size):
    """The frame of SIZE bytes, or the shortest that has room for the headers."""
    return max(size, 14 + (20 if family == 4 else 40) + (8 if proto == "udp" else 20) + frames.FCS)
