# SPDX-License-Identifier: GPL-2.0
"""Shows which server a scheduler of a loaded module chooses, so that modules can
be compared with each other, or with a recording.

The director balances, by firewall mark, every TCP or UDP packet for port 80 from
the client's side, whatever its addresses; its real servers are behind a device
that discards everything.  Choices are read from the connection table.
"""

import socket

from . import genl, packet
from .netns import pinned, wait_until
from .packet import ACK, RST, SYN

MARK = 9
PORT = 80
PINGER = "10.255.255.7"
FENCE_EVERY = 300       # packets; the director's receive queue takes 1,000
SERVERS = {4: "10.8.0.0/16", 6: "2001:db8:8::/48"}
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


class Oracle:
    """A direct-routing topology LAB with rules (Topologies.with_rules), which is set up like
    that by its first oracle, and stays so."""

    def __init__(self, lab):
        self.lab, self.ns = lab, lab.director.ns
        self.tap = lab.tap("client")
        # The order of packets decides which server gets each.
        self._pinned = pinned()
        self._sent = 0

    def __enter__(self):
        if not self.lab.is_marking:
            self._mark()
            self.lab.is_marking = True
        self._pinned.__enter__()
        return self

    def _mark(self):
        self.ns.ip("link add sink0 type dummy", "link set sink0 up")
        for family, network in SERVERS.items():
            self.ns.ip(f"route add {network} dev sink0",
                       f"rule add fwmark {MARK} lookup 100",
                       "route add local default dev lo table 100", family=family)
        self.ns.nft(f"""
table inet l4lb_oracle {{
 chain pre {{ type filter hook prerouting priority mangle;
  iifname eth0 meta l4proto {{ tcp, udp }} th dport {PORT} meta mark set {MARK} ; }}
}}
""")

    def __exit__(self, *error):
        self._pinned.__exit__(*error)

    def service(self, sched, family=4, flags=0):
        return self.lab.ipvs.service(fwmark=MARK, af=FAMILY[family], sched=sched,
                                     flags=flags)

    def server(self, service, kind, address, weight=1, *thresholds):
        """KIND: add, edit or del; THRESHOLDS: upper, lower."""
        self.fence()
        if kind == "del":
            return service.delete_server(address)
        upper, lower = (*thresholds, 0, 0)[:2]
        call = service.server if kind == "add" else service.edit_server
        return call(address, method=self.lab.method, weight=weight, upper=upper,
                    lower=lower)

    def send(self, proto, source, sport, to, dport, *, flags=SYN):
        flow = (source, sport, to, dport)
        self.tap.send(packet.tcp_packet(*flow, flags) if proto == "tcp"
                      else packet.udp_packet(*flow, b"x"))
        self._sent += 1
        if self._sent % FENCE_EVERY == 0:
            self.fence()

    def fence(self):
        """Return when the director has processed everything sent so far."""
        for n in (1, 2):
            self.tap.send(packet.icmp_packet(PINGER, self.lab.raw_vip(), 8, 0, n))
            self.tap.expect(lambda p: p.dst == PINGER and p.type == 0, what="echo reply")
        self.tap.drain()

    def chosen(self):
        """{(protocol, client, its port, destination, its port): server}"""
        self.fence()
        return {(c["proto"].lower(), c["client"], c["cport"], c["vip"], c["vport"]):
                c["server"] for c in genl.conns(self.ns)}

    def replay(self, case):
        """The servers chosen in CASE, which has the form of the recordings
        (tests/unit/golden_picks.jsonl); a step may also be "ack" or "rst" with
        a flow."""
        service, flows = self.service(case["sched"], flags=case["flags"]), []
        for kind, *rest in case["steps"]:
            if kind == "pkt":
                flows.append(tuple(rest[:5]))
                self.send(*rest[:5])
            elif kind in ("ack", "rst"):
                self.send(*rest, flags=ACK if kind == "ack" else RST)
            else:
                self.server(service, kind, *rest)
        got = self.chosen()
        # Its connections expire with it: see forget().
        self.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 1)
        service.delete()
        self.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 0)
        return [got.get(flow) for flow in flows]

    def forget(self):
        """Return when the last case's connections are gone: the next one may
        use the same flows."""
        wait_until(lambda: not genl.conns(self.ns), 70, what="connections gone")


class Addresses:
    """Asks which server a service by firewall mark chooses for an address."""

    def __init__(self, oracle, sched, weight=9, **options):
        self.oracle, self.port = oracle, 2000
        self.service = oracle.service(sched)
        with genl.L4lb(oracle.ns) as l4lb:
            if options:
                l4lb.set(self.service, **options)
        for server in ("10.8.7.1", "10.8.7.2"):
            oracle.server(self.service, "add", server, weight)

    def ask(self, *hosts):
        """Sends one UDP flow to each; returns the last number of each chosen server."""
        asked = []
        for host in hosts:
            self.port += 1
            flow = ("10.9.7.7", self.port, f"10.50.7.{host}", 80)
            self.oracle.send("udp", *flow)
            asked.append(("udp", *flow))
        got = self.oracle.chosen()
        return [int(got[flow].split(".")[3]) for flow in asked]
