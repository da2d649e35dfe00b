# SPDX-License-Identifier: GPL-2.0
"""First packets begin at ingress by themselves while nobody would look at them in the stack:
there is no hook of another, no rule of routing, no route by source, and no check of the path
back. Then they leave as test_fast_new.py has it.
"""

import contextlib
import ipaddress

import pytest
from lab import packet
from lab.flows import BOTH, NEW, OFF, ON, TUNNEL, counted, rule, set_policy, side, watched
from lab.genl import ONEPACKET
from lab.ingress import Firsts, begun, ready
from lab.packet import ACK, SYN, TCP, UDP
from lab.settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")

# On a first packet's way; the flow may be direct routing's, tunnel's or NAT's.
ON_ITS_WAY = ("prerouting", "input", "output", "postrouting")


def opens(raw):
    """What counts a first packet that a chain may look at."""
    return "slow_opens" if raw.proto == TCP else "slow_unknown"


def passed(raw):
    """A client whose first packet went through the stack."""
    client = raw.client()
    with counted(raw, **{opens(raw): 1}):
        client.open()
    return client


@pytest.mark.smoke
@BOTH
def test_begins(lab, family, proto):
    """Without a chain at input it does not pass the stack, and leaves as the same packet."""
    with setting(lab, "expire_nodest_conn", 1):
        raw = ready(lab, proto, family)
        firsts = Firsts(raw)
        with lab.unwatched():
            taken = firsts.send(fast=1)
        firsts.forget()
        with watched(raw, "input") as seen:
            firsts.compare(taken, firsts.send())
            assert seen() == [len(firsts.clients)]


@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
@pytest.mark.parametrize("kind", [*TUNNEL, "ipip"])
def test_tunnels(tun, family, outer, kind):
    """A tunnel of the other family has other hooks: those are not asked."""
    raw = ready(tun, UDP, family, server_family=outer,
                server={"tunnel": TUNNEL[kind]} if kind in TUNNEL else None)
    with tun.unwatched():
        (begun if outer == family else passed)(raw)


@pytest.mark.smoke
@pytest.mark.parametrize("hook", ON_ITS_WAY)
@BOTH
def test_a_chain(nat, family, proto, hook):
    """On the packet's way it sees the packet, and may drop it."""
    raw = ready(nat, proto, family)
    with nat.unwatched():
        begun(raw)
        with watched(raw, hook) as seen:
            passed(raw)
            assert seen() == [1]
        with rule(nat, hook, "meta l4proto { tcp, udp } "
                             f"th dport {{ {raw.port}, {raw.dport} }} drop"):
            client = raw.client()
            client.send(SYN)
            raw.fence()
            assert client.arrivals() == []
        begun(raw)


def test_a_chain_elsewhere(nat, family):
    """Requests are not forwarded, and a device's ingress comes before ours."""
    raw = ready(nat, UDP, family)
    with nat.unwatched():
        with watched(raw, "forward") as seen:
            begun(raw)
            assert seen() == [0]
        nat.director.ns.nft(
            "table netdev n { chain c { type filter hook ingress device eth0 priority 0; "
            f"udp dport {raw.port} counter; }}; }}")
        try:
            begun(raw)
            assert "packets 1 " in nat.director.ns.nft("list table netdev n")
        finally:
            nat.director.ns.nft("delete table netdev n")


@pytest.mark.parametrize("mode", (1, 2))
@pytest.mark.parametrize("scope", ("all", "eth0"))
def test_the_path_back_is_checked(nat, scope, mode):
    """Strict and loose, for the device or for all: a source without a way back is refused."""
    raw, ns = ready(nat, UDP), nat.director.ns

    def astray():
        client = raw.client()
        tap.send(client.packet(payload=b"astray"))
        raw.fence()
        return len(client.arrivals())

    with nat.unwatched(), side(nat) as tap:
        begun(raw)
        assert astray() == 1
        with _checked(ns, scope, mode):
            passed(raw)
            if mode == 1 and scope == "all":
                assert astray() == 0
        begun(raw)


@contextlib.contextmanager
def _checked(ns, scope, mode):
    ns.sysctl(f"net/ipv4/conf/{scope}/rp_filter", mode)
    try:
        yield
    finally:
        ns.sysctl(f"net/ipv4/conf/{scope}/rp_filter", 0)


@pytest.mark.emulated
@pytest.mark.smoke
def test_a_route_by_source(nat):
    """IPv6 has such (the UML kernel does not). Any of them may be the VIP's, for some clients."""
    raw, ns = ready(nat, UDP, 6), nat.director.ns
    with nat.unwatched():
        begun(raw)
        route = "prohibit 2001:db8:77::/48 from 2001:db8:c::/48"
        try:
            ns.ip(f"route add {route}", family=6)
        except RuntimeError as e:
            if "IPV6_SUBTREES" not in str(e):
                raise
            pytest.skip("this kernel has no routes by source (IPV6_SUBTREES): Debian's have "
                        "(suite stages 6.12, 6.1)")
        try:
            passed(raw)
        finally:
            ns.ip(f"route del {route}", family=6)
        begun(raw)


def test_routing_has_rules(nat, family):
    """They are asked by the stack alone; the kernel does not say when the last has gone."""
    raw, ns = ready(nat, UDP, family), nat.director.ns
    with nat.unwatched():
        begun(raw)
        client = raw.client()
        ns.ip("rule add pref 5 lookup local", f"rule add pref 1 from {client.address} prohibit",
              "rule del pref 0", family=family)
        client.send(SYN)
        raw.fence()
        assert client.arrivals() == []
        ns.ip("rule add pref 0 lookup local", "rule del pref 5", "rule del pref 1", family=family)
        passed(raw)


@BOTH
def test_services(nat, family, proto):
    """A service without fast path begins no flow here, nor one with one-packet scheduling."""
    raw = ready(nat, proto, family)

    def unknown(of):
        with counted(of, slow_unknown=1):
            of.client().open()

    with nat.unwatched():
        set_policy(raw, fast_path=OFF)
        unknown(raw)
        set_policy(raw, fast_path=ON)
        with setting(nat, "fast_path", 0):
            begun(raw)
        if proto == UDP:
            unknown(ready(nat, proto, family, flags=ONEPACKET))


@BOTH
def test_beside_one_that_asks(nat, family, proto):
    """While a service asks for it ("new"), the others begin there only unwatched."""
    other, raw = ready(nat, proto, family), ready(nat, proto, family)
    set_policy(other, fast_path=NEW)
    begun(other)
    client = raw.client()
    with counted(raw, slow_unknown=1):
        client.open()
    with nat.unwatched():
        begun(other)
        begun(raw)


@pytest.mark.smoke
@pytest.mark.parametrize("differs", ("client", "port", "vip", "protocol"))
def test_flows_alike(nat, family, differs):
    """What ingress has found out about a packet that it leaves to the stack is used for that
    flow only, however alike another one is."""
    raw = ready(nat, TCP, family)
    client = raw.client()
    source, sport, vip = client.address, client.sport, raw.vip
    if differs == "client":
        source = str(ipaddress.ip_address(source) + 1)
    elif differs == "port":
        sport ^= 32     # the same place among those that are kept
    elif differs == "vip":
        vip = nat.raw_vip(family, 1)
    with counted(raw, slow_unknown=1):
        raw.client_tap.send(
            packet.udp_packet(source, sport, vip, raw.port, b"x") if differs == "protocol" else
            packet.tcp_packet(source, sport, vip, raw.port, ACK))
        raw.fence()
    client.open()
    client.send(ACK).arrive()


def test_a_life(nat, family):
    """Of the packets that open it, the first alone."""
    raw = ready(nat, TCP, family)
    with nat.unwatched():
        client = begun(raw)
        with counted(raw, slow_opens=1):
            client.reply(SYN | ACK).answered()
        client.send(ACK).arrive()
        assert client.state == "ESTABLISHED"
        with counted(raw, fast=1):
            client.send(ACK, b"data").arrive()
        # Another SYN is left to the stack.
        with counted(raw, slow_opens=1):
            client.send(SYN)
            raw.fence()
