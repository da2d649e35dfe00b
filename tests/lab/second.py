# SPDX-License-Identifier: GPL-2.0
"""A second director beside that of a topology, with the same VIPs and real servers. The
clients' packets, and with NAT the servers', go through one of the two."""

import contextlib

from . import daemons, genl
from .netns import Namespace, wait_until
from .sync_group import cable, up
from .topology import FRONT, HOST, LENGTH, NETWORK, VIPS, addresses

NUMBER = 5                  # its address in the networks of the first one
# The same each time: others may remember that of the last test.
MAC = "02:00:00:00:05:0"
# A bridge takes the lowest address of its ports, and has to keep its own.
HIGH = "fe:00:00:00:05:00"
# With NAT the client has a cable to each director.
CABLE = {4: "198.51.101.", 6: "2001:db8:9::"}


class Second:
    """Use second() to make one."""

    def __init__(self, lab):
        self.lab = lab
        self.ns = Namespace(f"{lab.director.ns.name}2")
        self.ipvs = None
        # The link address of its eth0.
        self.mac = f"{MAC}0" if lab.shape == "nat" else f"{MAC}1"

    def create(self):
        self.settle()
        if self.lab.shape == "nat":
            self.lab.client.ns.ip(f"link add eth9 type veth peer name eth0 "
                                  f"address {MAC}0 netns {self.ns.name}")
        self._router.ip(f"link add second address {HIGH} type veth peer name {self.lab.back} "
                        f"address {MAC}1 netns {self.ns.name}")
        self.connect_neighbours()
        self.connect()
        self.ipvs = genl.Ipvs(self.ns)
        self.take_over(back=True)

    def settle(self):
        for scope in ("all", "default"):
            self.ns.sysctl(f"net/ipv4/conf/{scope}/rp_filter", 0)
            self.ns.sysctl(f"net/ipv4/conf/{scope}/send_redirects", 0)
        self.ns.sysctl("net/ipv6/conf/default/accept_dad", 0)
        self.ns.sysctl("net/ipv4/ip_forward", 1)
        self.ns.sysctl("net/ipv6/conf/all/forwarding", 1)

    def connect_neighbours(self):
        """Their devices are there."""
        if self.lab.shape == "nat":
            self.lab.client.ns.ip(*addresses("eth9", CABLE, 2))
        self._router.ip(
            f"link set second master {'br1' if self.lab.shape == 'tun' else 'br0'}",
            "link set second up")

    def connect(self):
        """Its devices are there."""
        self.ns.ip("link set lo up", *self._lines())
        wait_until(lambda: up(self.ns, "eth0") and up(self.ns, self.lab.back), 10,
                   what="the second director's devices up")

    @property
    def _router(self):
        return self.lab.topo.nodes["router"].ns

    def _lines(self):
        nat = self.lab.shape == "nat"
        yield from addresses("eth0", *((CABLE, 1) if nat else (FRONT, NUMBER)))
        if nat:
            yield from addresses("eth1", NETWORK["nat"], NUMBER)
        for family in (4, 6):
            for vip in VIPS:
                yield f"addr add {FRONT[family]}{vip}/{HOST[family]} dev " + \
                    ("lo" if family == 4 else "lo nodad preferred_lft 0")
            if nat:
                yield f"route add {FRONT[family]}2 via {CABLE[family]}2"
            if self.lab.shape == "tun":
                net = NETWORK["tun"][family]
                yield f"route add {net}{'0' if family == 4 else ''}/{LENGTH[family]} " \
                    f"via {FRONT[family]}3"

    def take_over(self, back=False, vips=VIPS, servers=None):
        """All packets go through the second director; BACK: through the first one. VIPS: only
        those to these; SERVERS: with NAT, and only those from these."""
        client, nat = self.lab.client.ns, self.lab.shape == "nat"
        mac = self.lab.director.ns.mac("eth0").hex(":") if back else self.mac
        for family in (4, 6):
            found = [f"{FRONT[family]}{v}" for v in vips]
            if not nat:
                client.ip(*(f"neigh replace {vip} lladdr {mac} dev eth0 nud permanent"
                            for vip in found))
            elif back:
                for vip in found:
                    client.run(f"ip -{family} route del {vip}", check=False)
            else:
                client.ip(*(f"route replace {vip} via {CABLE[family]}1 src {FRONT[family]}2"
                            for vip in found))
            hop = f"{NETWORK['nat'][family]}{1 if back else NUMBER}"
            for server in (servers or self.lab.servers) if nat else ():
                server.ns.ip(f"route replace default via {hop}", family=family)

    def destroy(self):
        if self.ipvs:
            self.ipvs.close()
        self.leave()
        self.ns.destroy()

    def leave(self):
        """The neighbours forget it."""
        with contextlib.suppress(RuntimeError):
            self.take_over(back=True)
        if self.lab.shape != "nat":
            for family in (4, 6):
                for vip in VIPS:
                    self.lab.client.ns.run(f"ip neigh del {FRONT[family]}{vip} dev eth0",
                                           check=False)
        self._router.run("ip link del second", check=False)
        self.lab.client.ns.run("ip link del eth9", check=False)


@contextlib.contextmanager
def second(lab):
    one = Second(lab)
    try:
        one.create()
        yield one
    finally:
        one.destroy()


@contextlib.contextmanager
def announcing(lab, announces=True):
    """second(), with a cable between the two, over which each tells the other of its connections,
    if it ANNOUNCES any. The first one has no services afterwards."""
    with second(lab) as other, cable(lab.director.ns, other.ns):
        try:
            for ipvs in (lab.ipvs, other.ipvs) if announces else ():
                daemons.start_both(ipvs)
            yield other
        finally:
            daemons.stop_all(lab.ipvs)
            lab.ipvs.flush()
