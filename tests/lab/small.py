# SPDX-License-Identifier: GPL-2.0
"""A lab of two namespaces, for tests that need no real server."""

import contextlib

from .netns import Namespace, run
from .tap import Tap


class Small:
    """One end of a two-namespace lab; enough for raw sending."""

    def __init__(self, prefix, role, mac):
        self.role, self.link = role, mac
        self.ns = Namespace(prefix + role, create=False)

    def mac(self, device="eth0"):
        assert device == "eth0"
        return bytes.fromhex(self.link.replace(":", ""))


@contextlib.contextmanager
def small_lab(prefix):
    """A client wired to a director whose servers are behind a dead neighbour."""
    macs = ("02:00:00:00:00:02", "02:00:00:00:00:01")
    run("ip -batch -", text_input=(
        f"netns add {prefix}c\nnetns add {prefix}d\n"
        f"link add eth0 address {macs[0]} netns {prefix}c type veth "
        f"peer name eth0 address {macs[1]} netns {prefix}d\n"))
    client, director = Small(prefix, "c", macs[0]), Small(prefix, "d", macs[1])
    tap = None
    try:
        client.ns.ip("link set eth0 up")
        director.ns.ip("link set lo up", "link set eth0 up",
                       "addr add 198.51.100.1/24 dev eth0",
                       "addr add 2001:db8:1::1/64 dev eth0 nodad",
                       "neigh add 198.51.100.7 lladdr 02:00:00:00:00:07 dev eth0",
                       "neigh add 2001:db8:1::7 lladdr 02:00:00:00:00:07 dev eth0",
                       "route add 192.0.2.0/24 via 198.51.100.7",
                       "route add 2001:db8:2::/64 via 2001:db8:1::7")
        tap = Tap(client)
        tap.peer = director.mac()
        yield tap, director
    finally:
        if tap:
            tap.close()
        for node in (client, director):
            if node.ns.fd >= 0:
                node.ns.destroy()
