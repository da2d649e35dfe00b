# SPDX-License-Identifier: GPL-2.0
"""Several directors with one address, which a router reaches by equal-cost routes.

     client .2 --- .1 router .254 ---+--- d1..d4    .1-.4,  VIP on lo, bird
       203.0.113.0/24          [ LAN ]
       2001:db8:3::/64               +--- s1..s4    .11-.14, VIP on lo, tunnels
                                 198.51.100.0/24, 2001:db8:1::/64
     VIP 192.0.2.80, 2001:db8:2::80

The directors announce the VIP to the router with BGP (bird). The router's bird writes what
it learns to a routing table of its own, and Site.follow() makes it a resilient next-hop
group, by the ports of each flow. Servers answer the client through the router, not through
a director: each flow's packets from the client go to one of the directors, those from the
server to none. Directors share nothing but their configuration.
"""

import contextlib
import ipaddress
import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

from . import genl
from .netns import SLOW, Namespace, allow_files, run, wait_until
from .topology import HOST, LENGTH, addresses

BIRD = shutil.which("bird", path="/usr/sbin:" + os.environ.get("PATH", ""))
LAN = {4: "198.51.100.", 6: "2001:db8:1::"}
OUTSIDE = {4: "203.0.113.", 6: "2001:db8:3::"}
VIP = {4: "192.0.2.80", 6: "2001:db8:2::80"}
GROUP = {4: 100, 6: 200}        # identities of next-hop groups; of next hops: 10, 20 + director
BUCKETS = 512
LEARNT = 77                     # the router's table of what bird has learnt
ROUTER = 254
PREFIX = "ecmp-"
# The same methods, one port each.
PORTS = {80: genl.ROUTE, 81: genl.TUNNEL}
BY_PORT = 0x10          # flag of mh and sh: the client's port decides, too

BGP = """
log "{folder}/{name}.log" all;
router id {id};
protocol device {{ scan time 1; }}
template bgp peer {{
	local as {own};
	connect delay time 1; connect retry time 1; error wait time 1, 1;
	hold time 60;
}}
"""
DIRECTOR = """
protocol static vip{family} {{
	ipv{family};
	route {vip}/{host} via "lo";
}}
protocol bgp router{family} from peer {{
	neighbor {router} as 65000;
	ipv{family} {{ import none; export where proto = "vip{family}"; next hop self; }};
}}
"""
LEARNER = """
protocol kernel learnt{family} {{
	ipv{family} {{ export all; }};
	kernel table {table};
	merge paths on;
}}
protocol bgp directors{family} from peer {{
	neighbor range {net} as 65001;
	dynamic name "d{family}_";
	ipv{family} {{ import all; export none; }};
}}
"""


class Flow:
    """A TCP connection through the VIP; the test has both of its ends."""

    def __init__(self, family, port, client):
        self.family, self.port, self.client = family, port, client
        self.name = (family, port, client.getsockname()[1])
        self.server = self.at = None

    def close(self):
        for end in (self.client, self.server):
            if end:
                end.close()


class Site:
    """See the drawing; `with Site(directors=4, servers=4) as site`."""

    def __init__(self, directors=4, servers=4):
        self.numbers = range(1, directors + 1)
        self.rs = range(1, servers + 1)
        self.nodes, self.birds, self.ipvs, self.listeners = {}, {}, {}, {}
        self.members = {4: None, 6: None}
        self.folder, self.next_port = None, 2000

    # -- life

    def __enter__(self):
        allow_files(1 << 16)
        self.folder = Path(tempfile.mkdtemp(prefix="l4lb-ecmp-"))
        names = ["client", "router", *(f"d{n}" for n in self.numbers), *(f"s{n}" for n in self.rs)]
        try:
            for name in names:
                self.nodes[name] = Namespace(PREFIX + name)
            self._defaults()
            self._links()
            for n in self.numbers:
                self.ipvs[n] = genl.Ipvs(self.nodes[f"d{n}"])
            self._start_bird("router")
            for n in self.numbers:
                self._start_bird(f"d{n}")
            self._listen()
            self.wait_for(self.numbers)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for listener in self.listeners.values():
            listener.close()
        for name in list(self.birds):
            self._stop_bird(name)
        for ipvs in self.ipvs.values():
            ipvs.close()
        for node in self.nodes.values():
            node.destroy()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _defaults(self):
        for name, ns in self.nodes.items():
            for scope in ("all", "default"):
                ns.sysctl(f"net/ipv4/conf/{scope}/rp_filter", 0)
                ns.sysctl(f"net/ipv4/conf/{scope}/send_redirects", 0)
            ns.sysctl("net/ipv6/conf/default/accept_dad", 0)
            ns.sysctl("net/ipv6/conf/default/router_solicitations", 0)
            if name == "router" or name[0] == "d":
                ns.sysctl("net/ipv4/ip_forward", 1)
                ns.sysctl("net/ipv6/conf/all/forwarding", 1)
        router = self.nodes["router"]
        # By addresses and ports: all flows come from one address.
        router.sysctl("net/ipv4/fib_multipath_hash_policy", 1)
        router.sysctl("net/ipv6/fib_multipath_hash_policy", 1)

    def _links(self):
        router, inside = self.nodes["router"], [n for n in self.nodes if n[0] in "ds"]
        router.ip(f"link add out type veth peer name eth0 netns {PREFIX}client",
                  *(f"link add {n} type veth peer name eth0 netns {PREFIX}{n}" for n in inside),
                  "link add br0 type bridge", *(f"link set {n} master br0 up" for n in inside),
                  "link set lo up", *addresses("out", OUTSIDE, 1),
                  *addresses("br0", LAN, ROUTER))
        self.nodes["client"].ip("link set lo up", *addresses("eth0", OUTSIDE, 2),
                                *self._default(OUTSIDE, 1))
        for name in inside:
            number = int(name[1:]) + (10 if name[0] == "s" else 0)
            self.nodes[name].ip("link set lo up", *addresses("eth0", LAN, number),
                                *self._default(LAN, ROUTER), *(
                f"addr add {VIP[f]}/{HOST[f]} dev lo" + " nodad" * (f == 6) for f in (4, 6)),
                *self._tunnels(number if name[0] == "s" else None))
        # The kernel takes no next hop on a device whose carrier it has not noticed yet.
        wait_until(lambda: router.is_running("br0"), 10, what="the router's br0 up")
        router.ip(*(f"nexthop add id {10 * (f // 2 - 1) + n} via {LAN[f]}{n} dev br0"
                    for f in (4, 6) for n in self.numbers))

    @staticmethod
    def _default(net, host):
        return [f"route add default via {net[f]}{host}" for f in (4, 6)]

    @staticmethod
    def _tunnels(number):
        if number is None:
            return []
        return ["link set tunl0 up", "link add tun6 type ip6tnl mode any "
                f"local {LAN[6]}{number} remote any", "link set tun6 up"]

    # -- routing

    def _config(self, name):
        number = ROUTER if name == "router" else int(name[1:])
        text = BGP.format(folder=self.folder, name=name, id=f"{LAN[4]}{number}",
                          own=65000 if name == "router" else 65001)
        for family in (4, 6):
            words = {"family": family, "vip": VIP[family], "host": HOST[family], "table": LEARNT,
                     "router": f"{LAN[family]}{ROUTER}",
                     "net": ipaddress.ip_network(f"{LAN[family]}{0}/{LENGTH[family]}")}
            text += (LEARNER if name == "router" else DIRECTOR).format(**words)
        path = self.folder / f"{name}.conf"
        path.write_text(text, encoding="ascii")
        return path

    def _start_bird(self, name):
        self.birds[name] = self.nodes[name].popen(
            [BIRD, "-f", "-c", str(self._config(name)), "-s", str(self.folder / f"{name}.ctl"),
             "-P", str(self.folder / f"{name}.pid")])

    def _stop_bird(self, name):
        bird = self.birds.pop(name)
        bird.send_signal(signal.SIGKILL)
        bird.wait()

    def learnt(self, family):
        """The directors that announce the VIP, as the router's bird knows them."""
        shown = self.nodes["router"].run(
            f"ip -j -{family} route show table {LEARNT}", check=False)
        # As long as nothing was learnt there is no table.
        routes = [] if shown.returncode else json.loads(shown.stdout)
        hops = [hop.get("gateway") for route in routes for hop in route.get("nexthops", [route])]
        return sorted(n for n in self.numbers if f"{LAN[family]}{n}" in hops)

    def follow(self):
        """Makes the next-hop groups what the router has learnt, as the loop in
        doc/scale-out.md does; returns the members of both."""
        router = self.nodes["router"]
        for family in (4, 6):
            now = self.learnt(family)
            if now == self.members[family]:
                continue
            hops = "/".join(str(10 * (family // 2 - 1) + n) for n in now)
            if not now:
                router.run(f"ip -{family} route del {VIP[family]}", check=False)
                router.run(f"ip nexthop del id {GROUP[family]}", check=False)
            else:
                router.ip(f"nexthop replace id {GROUP[family]} group {hops} type resilient "
                          f"buckets {BUCKETS} idle_timer 0",
                          f"route replace {VIP[family]}/{HOST[family]} nhid {GROUP[family]}")
            self.members[family] = now
        return self.members

    def wait_for(self, numbers):
        wanted = sorted(numbers)
        wait_until(lambda: all(m == wanted for m in self.follow().values()), 30,
                   what=f"directors {wanted} in the router's groups, now {self.members}")

    def leave(self, number):
        """A director dies: its session ends, then its link."""
        self._stop_bird(f"d{number}")
        self.wait_for(set(self.members[4]) - {number})
        self.nodes["router"].ip(f"link set d{number} down")

    def join(self, number):
        self.nodes["router"].ip(f"link set d{number} up")
        self._start_bird(f"d{number}")
        self.wait_for({*self.members[4], number})

    # -- services

    def rip(self, number, family):
        return f"{LAN[family]}{10 + number}"

    def configure(self, sched, adding=None, **options):
        """The same services on each director, with every server. ADDING: a function that
        gives the order in which director N adds the servers."""
        for n in self.numbers:
            ns, ipvs = self.nodes[f"d{n}"], self.ipvs[n]
            ipvs.flush()
            ns.sysctl("net.ipv4.vs.sloppy_tcp", 1)
            for port, method in PORTS.items():
                for family in (4, 6):
                    service = ipvs.service(VIP[family], port, sched=sched,
                                           flags=BY_PORT if sched in ("mh", "sh") else 0)
                    self._options(ns, service, n, options)
                    for server in adding(n, list(self.rs)) if adding else self.rs:
                        service.server(self.rip(server, family), port, method=method)

    @staticmethod
    def _options(ns, service, n, options):
        wanted = [(k, v(n) if callable(v) else v) for k, v in options.items()]
        if wanted:
            with genl.L4lb(ns) as l4lb:
                l4lb.set(service, *wanted)

    def remove_server(self, number):
        for ipvs in self.ipvs.values():
            for port in PORTS:
                for family in (4, 6):
                    ipvs.service(VIP[family], port, add=False).delete_server(
                        self.rip(number, family), port)

    # -- flows

    def _listen(self):
        for number in self.rs:
            for family in (4, 6):
                for port in PORTS:
                    kind = socket.AF_INET if family == 4 else socket.AF_INET6
                    listener = self.nodes[f"s{number}"].socket(kind, socket.SOCK_STREAM)
                    listener.bind((VIP[family], port))
                    listener.listen(4096)
                    listener.setblocking(False)
                    self.listeners[number, family, port] = listener

    def open(self, count):
        """COUNT flows, as many of each method and family."""
        flows, client = {}, self.nodes["client"]
        with client.enter():
            kinds = [(family, port) for family in (4, 6) for port in PORTS]
            for i in range(count):
                family, port = kinds[i % len(kinds)]
                end = socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6,
                                    socket.SOCK_STREAM)
                end.settimeout(10 * SLOW)
                # A port is used once: directors may still know flows of the test before.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == 6:
                    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                end.bind(("", self.next_port))
                self.next_port += i % len(kinds) == len(kinds) - 1
                end.connect((VIP[family], port))
                flow = Flow(family, port, end)
                flows[flow.name] = flow
        wait_until(lambda: self._accept(flows) == count, 20, what="flows accepted")
        return list(flows.values())

    def _accept(self, flows):
        for (number, family, port), listener in self.listeners.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    end, peer = listener.accept()
                    flow = flows.get((family, port, peer[1]))
                    if flow:
                        flow.server, flow.at = end, number
        return sum(flow.server is not None for flow in flows.values())

    @staticmethod
    def broken(flows, deadline=20):
        """Sends a byte in each flow; returns those whose server does not get it."""
        poll, waiting = select.poll(), {}
        for flow in flows:
            flow.client.setblocking(False)
            with contextlib.suppress(OSError):
                flow.client.send(b"x")
            for end in (flow.client, flow.server):
                poll.register(end, select.POLLIN)
                waiting[end.fileno()] = (flow, end)
        left, dead, end = {id(f) for f in flows}, [], time.monotonic() + deadline * SLOW
        while left and time.monotonic() < end:
            for fd, _ in poll.poll(1000):
                flow, at = waiting[fd]
                poll.unregister(fd)
                if id(flow) not in left:
                    continue
                alive = at is flow.server
                with contextlib.suppress(OSError):
                    alive = alive and at.recv(64) == b"x"
                left.discard(id(flow))
                if not alive:
                    dead.append(flow)
        return dead + [f for f in flows if id(f) in left]

    def held(self, number):
        """The names of the flows that director NUMBER knows."""
        return {(6 if ":" in r["vip"] else 4, r["vport"], r["cport"])
                for r in genl.conns(self.nodes[f"d{number}"]) if r["cport"]}


def close(flows):
    """Ends FLOWS at once, so that no server waits for their last packets."""
    for flow in flows:
        for end in (flow.client, flow.server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        flow.close()


def modules():
    """Loads what the site needs of the stock kernel."""
    for name in ("ipip", "ip6_tunnel", "veth", "bridge"):
        run(["modprobe", "-q", name], check=False)
