# SPDX-License-Identifier: GPL-2.0
"""Topologies that are built once and kept, with the control plane of their director."""

import contextlib

from . import genl, packet
from .backend import Backend
from .farm import HTTP_PORTS
from .topology import Topology

RULES = "rules"


class Topologies:
    """Each shape is built when a test first asks for it, and kept."""

    def __init__(self):
        self.built = {}

    def __getitem__(self, shape):
        if shape in self.built and self.built[shape].director.ns.had_rules:
            # Routes of replies would be left to the stack, as with rules.
            spoiled = self.built.pop(shape)
            spoiled.flush()
            spoiled.topo.destroy()
        if shape not in self.built:
            self.built[shape] = Lab(shape)
        return self.built[shape]

    def with_rules(self, shape):
        """One of its own, for tests whose director has routing rules."""
        if (shape, RULES) not in self.built:
            self.built[shape, RULES] = Lab(shape, f"{shape}-{RULES}-")
        return self.built[shape, RULES]

    def flush(self):
        for lab in self.built.values():
            lab.flush()

    def destroy(self):
        for lab in self.built.values():
            lab.topo.destroy()
        self.built = {}


# While a chain could refuse a flow's first packet, that packet goes through the stack.
CHAIN = "table inet looks { chain in { type filter hook input priority 0; }; }"


class Lab:
    """A topology with its director's control plane, as tests use it. The director has a
    firewall, which lets everything pass."""

    _port = [1000]

    def __init__(self, shape, prefix=None):
        self.topo = Topology(shape, prefix).create()
        Backend.set_fast_path(self.topo.director.ns)
        if Backend.fast_path != Backend.UNWATCHED:
            self.topo.director.ns.nft(CHAIN)
        self.shape = shape
        self.method = genl.METHOD[shape]
        self.is_marking = False     # see lab/oracle.py
        self._ipvs = None
        self._http = []

    def __getattr__(self, name):
        return getattr(self.topo, name)

    @property
    def ipvs(self):
        """A control socket; opened again after flush(): the module may be reloaded."""
        if self._ipvs is None:
            self._ipvs = genl.Ipvs(self.topo.director.ns)
        return self._ipvs

    def flush(self):
        if self._ipvs is not None:
            self._ipvs.close()
            self._ipvs = None
        # An error means that no module is loaded: nothing to flush.
        with contextlib.suppress(genl.NetlinkError), \
                genl.Ipvs(self.topo.director.ns) as ipvs:
            ipvs.flush()
            ipvs.timeouts(900, 120, 300)

    @contextlib.contextmanager
    def unwatched(self):
        """The director has no firewall."""
        if Backend.fast_path == Backend.UNWATCHED:
            yield
            return
        ns = self.topo.director.ns
        ns.nft("delete table inet looks")
        try:
            yield
        finally:
            ns.nft(CHAIN)

    def fresh_port(self):
        """A service port that no other test uses: old connections of the same
        address and port would count for a server that is added again."""
        self._port[0] += 1
        if self._port[0] == packet.GUE_PORT:    # tests would take its packets for a tunnel's
            self._port[0] += 1
        return self._port[0]

    def http_port(self):
        """Such a port on which the real servers listen."""
        self.topo.start_http()
        if not self._http:
            self._http = list(HTTP_PORTS[2:])
        return self._http.pop()

    def conns(self, **want):
        return [c for c in genl.conns(self.topo.director.ns)
                if all(c[k] == v for k, v in want.items())]

    def client_address(self, family=4):
        """A phantom client address that no test has used, as the kernel writes it."""
        Lab._client = getattr(Lab, "_client", 0) + 1
        turn, n = divmod(Lab._client, 1 << 16)
        if family == 4:
            return f"10.{n >> 8}.{n & 255}.{7 + turn}"
        return f"2001:db8:c:{n:x}:{turn:x}::7" if turn else f"2001:db8:c:{n:x}::7"


def emptied(topologies, shape, rules=False):
    lab = topologies.with_rules(shape) if rules else topologies[shape]
    lab.flush()
    return lab
