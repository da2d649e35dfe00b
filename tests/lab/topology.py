# SPDX-License-Identifier: GPL-2.0
"""The canonical topologies: one client, one director, four real servers.

Each node is a network namespace with both address families. `.N` below means
198.51.100.N and 2001:db8:1::N on the front network.

 nat: two networks; the servers' default route is the director.

     client .2 ---- .1 director 192.0.2.1 ----[ switch ]---- rs1..rs4 192.0.2.11-14
                    VIPs .100-.103   2001:db8:2::1              2001:db8:2::11-14

 dr: one network; servers carry the VIPs on lo, hidden from ARP, and answer the
     client directly.

     client .2 ---+
                  [ switch ]---- rs1..rs4 .11-.14, lo: .100-.101
     director .1 -+
     VIPs .100-.103

 tun: the servers are behind a router, which is also the client's neighbour;
     they carry the VIPs on tunl0 and answer the client directly.

     client .2 ---+
                  [ router .3 ]---- rs1..rs4 203.0.113.11-14, 2001:db8:3::11-14
     director .1 -+                 tunl0 (4in4), sit0 (6in4), tun6 (4in6, 6in6)
     VIPs .100-.103

VIPs .100 and .101 are real: servers own them where the method needs that. VIPs
.102 and .103 (RAW_VIPS) exist on the director only, for tests that play both
ends themselves with raw packets:

 * phantom servers 1..4 sit beside rs1..rs4 at .61-.64 of the servers' network:
   addresses that no machine owns but whose link address is the server's. A
   packet for one reaches the server's interface, where a Tap sees it, and the
   server's own stack stays silent. The way to phantom 4 has an MTU of 1400
   (1420 bytes for the tunnel's outer packet, so 1400 inside IPIP).
 * phantom clients are all of 10.0.0.0/8 and 2001:db8:c::/48, routed to the
   client's interface.

`python3 -m lab.topology nat` (from tests/) builds one and runs a shell in it.
"""

import contextlib
import os
import sys

from .farm import Farm
from .netns import Namespace, run, wait_until
from .tap import Node, Tap

SHAPES = ("nat", "dr", "tun")
SERVERS = ("rs1", "rs2", "rs3", "rs4")
FRONT = {4: "198.51.100.", 6: "2001:db8:1::"}
NETWORK = {"nat": {4: "192.0.2.", 6: "2001:db8:2::"},
           "dr": FRONT,
           "tun": {4: "203.0.113.", 6: "2001:db8:3::"}}
LENGTH = {4: 24, 6: 64}
HOST = {4: 32, 6: 128}
VIPS = (100, 101)
RAW_VIPS = (102, 103)
PHANTOM_CLIENTS = {4: "10.0.0.0/8", 6: "2001:db8:c::/48"}
PHANTOM_MTU = 1400


class Topology:
    """One of the three shapes; see the drawing at the top of this file."""

    def __init__(self, shape, prefix=None):
        if shape not in SHAPES:
            raise ValueError(f"{shape}: use one of {', '.join(SHAPES)}")
        self.shape = shape
        self.prefix = f"{shape}-" if prefix is None else prefix
        self.nodes = {}
        self.farm = None
        self._taps = {}

    # -- names and addresses

    client = property(lambda self: self.nodes["client"])
    director = property(lambda self: self.nodes["director"])
    servers = property(lambda self: [self.nodes[s] for s in SERVERS])

    def vip(self, family=4, index=0):
        return FRONT[family] + str(VIPS[index])

    def raw_vip(self, family=4, index=0):
        return FRONT[family] + str(RAW_VIPS[index])

    def rip(self, number, family=4):
        """The address of real server NUMBER (1..4)."""
        return NETWORK[self.shape][family] + str(10 + number)

    def phantom(self, number, family=4):
        return NETWORK[self.shape][family] + str(60 + number)

    def cip(self, family=4):
        return FRONT[family] + "2"

    def dip(self, family=4):
        """The director's address on the servers' side."""
        net = FRONT if self.shape == "tun" else NETWORK[self.shape]
        return net[family] + "1"

    @property
    def back(self):
        """The director's interface towards the servers."""
        return "eth1" if self.shape == "nat" else "eth0"

    def tap(self, role):
        """The Tap on a node's only interface; made once, drained each time."""
        if role not in self._taps:
            tap = Tap(self.nodes[role])
            if role == "client":
                tap.peer = self.director.mac("eth0")
            elif role in SERVERS:
                tap.peer = self.nodes["router"].mac("br0") if self.shape == "tun" \
                    else self.director.mac(self.back)
            self._taps[role] = tap
        self._taps[role].drain()
        return self._taps[role]

    def close_tap(self, role):
        """Frames that nobody takes would fill its queue."""
        if role in self._taps:
            self._taps.pop(role).close()

    # -- life

    def create(self):
        roles = ["client", "director", "router", *SERVERS]
        try:
            run(["ip", "-batch", "-"], text_input="".join(
                f"netns add {self.prefix}{r}\n" for r in roles))
            self.nodes = {r: _existing(self, r) for r in roles}
            for node in self.nodes.values():
                self._set_defaults(node)
            run(["ip", "-batch", "-"], text_input="".join(
                f"link add {a} netns {self.prefix}{x} type veth "
                f"peer name {b} netns {self.prefix}{y}\n"
                for x, a, y, b in self._cables()))
            # Drop bridges' reports of multicast groups, which come a second later: the
            # director would count them among a test's packets.
            self.nodes["router"].ns.nft(
                "table ip6 quiet { chain out { type filter hook output priority 0; "
                "icmpv6 type mld2-listener-report drop; }; }\n")
            for role, node in self.nodes.items():
                node.ns.ip(*self._lines(role))
            self._wait_for_links()
            self._phantoms()
        except BaseException:
            self.destroy()
            raise
        return self

    def destroy(self):
        self.stop_http()
        for tap in self._taps.values():
            tap.close()
        self._taps = {}
        for node in self.nodes.values():
            node.ns.close()
        gone = [f"netns del {n.ns.name}\n" for n in self.nodes.values()]
        if gone:
            run(["ip", "-batch", "-"], text_input="".join(gone), check=False)
        self.nodes = {}

    __enter__ = create

    def __exit__(self, *_):
        self.destroy()

    def _cables(self):
        cables = [("client", "eth0", "director", "eth0")] if self.shape == "nat" else \
            [("client", "eth0", "router", "client"),
             ("director", "eth0", "router", "director")]
        if self.shape == "nat":
            cables.append(("director", "eth1", "router", "director"))
        return cables + [(s, "eth0", "router", s) for s in SERVERS]

    def _set_defaults(self, node):
        set_ = node.ns.sysctl
        for scope in ("all", "default"):
            set_(f"net/ipv4/conf/{scope}/rp_filter", 0)
        for name, value in {"accept_dad": 0, "dad_transmits": 0, "router_solicitations": 0,
                            "mldv2_unsolicited_report_interval": 1}.items():
            set_(f"net/ipv6/conf/default/{name}", value)
        if node.role == "director" or (node.role == "router" and self.shape == "tun"):
            set_("net/ipv4/ip_forward", 1)
            set_("net/ipv6/conf/all/forwarding", 1)
        # Tests provoke more ICMP errors than a host may send by default.
        set_("net/ipv4/icmp_ratelimit", 0)
        set_("net/ipv6/icmp/ratelimit", 0)
        with contextlib.suppress(OSError):
            set_("net/ipv4/icmp_msgs_per_sec", 1000000)
            set_("net/ipv4/icmp_msgs_burst", 100000)
        if node.role == "director":
            # Redirects would teach clients on the servers' network a way around the director.
            for scope in ("all", "default"):
                set_(f"net/ipv4/conf/{scope}/send_redirects", 0)
        if node.role in SERVERS and self.shape == "dr":
            set_("net/ipv4/conf/all/arp_ignore", 1)
            set_("net/ipv4/conf/all/arp_announce", 2)

    def _lines(self, role):
        yield "link set lo up"
        if role == "router":
            yield from self._router_lines()
        elif role == "client":
            yield from addresses("eth0", FRONT, 2)
            # Packets to phantom clients end here; without the route IPv6 answers "no route".
            yield "route add blackhole ::/0"
        elif role == "director":
            yield from self._director_lines()
        else:
            yield from self._server_lines(role)

    def _router_lines(self):
        yield "link add br0 type bridge"
        yield "link set br0 up"
        inside = list(SERVERS) if self.shape == "tun" else [*SERVERS, "director"]
        if self.shape == "dr":
            inside.append("client")
        for port in inside:
            yield f"link set {port} master br0"
            yield f"link set {port} up"
        if self.shape == "tun":
            yield from addresses("br0", NETWORK["tun"], 1)
            yield "link add br1 type bridge"
            yield "link set br1 up"
            for port in ("client", "director"):
                yield f"link set {port} master br1"
                yield f"link set {port} up"
            yield from addresses("br1", FRONT, 3, up=False)

    def _director_lines(self):
        yield from addresses("eth0", FRONT, 1)
        if self.shape == "nat":
            yield from addresses("eth1", NETWORK["nat"], 1)
        for host in VIPS + RAW_VIPS:
            for family in (4, 6):
                # Deprecated: never the source of the director's own packets.
                yield f"addr add {FRONT[family]}{host}/{HOST[family]} dev eth0" + \
                    (" nodad preferred_lft 0" if family == 6 else "")
        for family in (4, 6):
            for net in ("default", PHANTOM_CLIENTS[family]):
                yield f"route add {net} via {FRONT[family]}2"
            if self.shape == "tun":
                net = NETWORK["tun"][family]
                yield f"route add {net}{'0' if family == 4 else ''}/" \
                    f"{LENGTH[family]} via {FRONT[family]}3"

    def _server_lines(self, role):
        number = SERVERS.index(role) + 1
        net = NETWORK[self.shape]
        yield from addresses("eth0", net, 10 + number)
        if self.shape == "dr":
            yield "route add blackhole ::/0"
        else:
            for family in (4, 6):
                yield f"route add default via {net[family]}1"
        if self.shape == "tun":
            # The fallback devices take any sender; ip6tnl0 refuses IPv4 inside,
            # so IPv6 gets a device of its own.
            yield "link add tun6 type ip6tnl mode any local " \
                f"{net[6]}{10 + number} remote any"
            yield "link set tunl0 up"
            yield "link set sit0 up"
            yield "link set tun6 up"
        carrier = {"dr": "lo", "tun": "tunl0"}.get(self.shape)
        if carrier:
            for host in VIPS:
                yield f"addr add {FRONT[4]}{host}/32 dev {carrier}"
                yield f"addr add {FRONT[6]}{host}/128 dev " \
                    f"{'lo' if carrier == 'lo' else 'tun6'} nodad preferred_lft 0"

    def _wait_for_links(self):
        """A device drops all packets until a kernel thread has noticed its carrier. Then it
        reports its multicast groups, which would count among a test's packets."""
        for x, a, y, b in self._cables():
            wait_until(lambda x=x, a=a, y=y, b=b: self.nodes[x].ns.is_running(a) and
                       self.nodes[y].ns.is_running(b), 10, what=f"{x}'s {a}, {y}'s {b} up")

    def _phantoms(self):
        """Teach the servers' last hop the phantoms' link addresses."""
        hop = self.nodes["router"] if self.shape == "tun" else self.director
        device = "br0" if self.shape == "tun" else self.back
        lines, routes = [], []
        for number, server in enumerate(SERVERS, 1):
            mac = ":".join(f"{b:02x}" for b in self.nodes[server].mac())
            for family in (4, 6):
                lines.append(f"neigh add {self.phantom(number, family)} lladdr {mac} "
                             f"dev {device} nud permanent")
        mtu = PHANTOM_MTU
        for family in (4, 6):
            to = f"{self.phantom(4, family)}/{HOST[family]}"
            via = f"via {FRONT[family]}3 " if self.shape == "tun" else ""
            size = mtu + 20 if self.shape == "tun" else mtu
            routes.append(f"route add {to} {via}dev {self.back} mtu {size}")
        hop.ns.ip(*lines)
        self.director.ns.ip(*routes)

    # -- real traffic

    def start_http(self):
        """A small HTTP and UDP echo server in each real server's namespace."""
        if not self.farm:
            self.farm = Farm(self.servers)
        return self.farm

    def stop_http(self):
        if self.farm:
            self.farm.stop()
            self.farm = None


def _existing(topology, role):
    node = Node.__new__(Node)
    node.role, node.addresses, node.macs = role, {}, {}
    node.ns = Namespace(topology.prefix + role, create=False)
    return node


def addresses(device, net, host, up=True):
    """Lines of ip: DEVICE's addresses of both families, number HOST of NET."""
    for family in (4, 6):
        yield f"addr add {net[family]}{host}/{LENGTH[family]} dev {device}" + \
            (" nodad" if family == 6 else "")
    if up:
        yield f"link set {device} up"


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in SHAPES:
        sys.exit(f"usage: python3 -m lab.topology {'|'.join(SHAPES)}")
    with Topology(sys.argv[1]) as topo:
        topo.start_http()
        print(f"{topo.shape}: namespaces {' '.join(n.ns.name for n in topo.nodes.values())};"
              " leave the shell to remove them")
        topo.director.ns.popen([os.environ.get("SHELL", "/bin/sh")]).wait()


if __name__ == "__main__":
    main()
