# SPDX-License-Identifier: GPL-2.0
"""The fast path: changes of servers, services, settings, routes and neighbours apply
to it in time. The counters of /proc/net/l4lb tell which path a packet took.
"""

import json
import socket
import struct
import time

import pytest
from lab import fast, packet
from lab.farm import pattern
from lab.flows import (
    BOTH,
    GATEWAY,
    NEW,
    OFF,
    ON,
    TERM,
    admitted,
    counted,
    host,
    one,
    ready,
    reply_is,
    request_is,
    set_policy,
    side,
)
from lab.netns import run, wait_until
from lab.packet import ACK, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.topology import SERVERS

pytestmark = pytest.mark.usefixtures("only_l4lb")

ECE, CWR = 0x40, 0x80
MOVE = 2        # on-drain


# ---- the director's own settings ----

@pytest.mark.smoke
@BOTH
def test_server_removed(nat, family, proto):
    Raw(nat, proto, family)         # keeps the hooks
    raw = ready(nat, proto, family, (1, 2))
    client = admitted(raw)
    number = client.number
    raw.remove(number)
    request_is(client, arrives=0, slow_server=1)
    raw.add(number)
    request_is(client, fast=1)
    raw.service.delete()
    request_is(client, arrives=0, slow_server=1)
    with counted(raw, slow_server=1):
        client.reply(ACK, b"answer")
    raw.fence()


@BOTH
def test_server_drains(nat, family, proto):
    """Weight 0 keeps present flows, unless they shall move, which datagrams do at once."""
    raw = ready(nat, proto, family, (1, 2))
    client = admitted(raw)
    number = client.number
    raw.edit(number, weight=0)
    request_is(client, fast=1)
    assert client.number == number
    set_policy(raw, on_drain=MOVE)
    # After a change of policy all flows go through the stack once.
    request_is(client, **{"slow_server" if proto == UDP else "slow_admit": 1})
    if proto == UDP:
        number = 3 - number
    request_is(client, fast=1)
    assert client.number == number


@pytest.mark.waits
@BOTH
def test_service_policy(lab, family, proto):
    """A service's setting applies from the next packet, whatever the namespace's is."""
    raw = ready(lab, proto, family)
    client = admitted(raw)
    set_policy(raw, fast_path=OFF)
    for _ in range(2):
        request_is(client, slow_policy=1)
    if lab.shape == "nat":
        reply_is(client, slow_policy=1)
    for mode in (ON, OFF, NEW, OFF, 0):
        set_policy(raw, fast_path=mode)
        # The next packet after a change goes through the stack.
        for want in ("slow_policy",) if mode == OFF else ("slow_admit", "fast"):
            request_is(client, **{want: 1})
    if lab.shape == "nat":
        reply_is(client, slow_admit=1)
        reply_is(client, fast=1)


def test_namespace_setting(nat, family):
    """0 applies at once; then the hooks are removed. A service may still have it on."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    before = fast.read(nat.director.ns)
    with setting(nat, "fast_path", 0):
        for _ in range(3):
            request_is_slow(client)
        source, vip = nat.client_address(family), nat.raw_vip(family)
        fast.wait_for_no_hook(nat.director.ns, raw.client_tap, source, vip)
        after = fast.read(nat.director.ns)
        assert after["fast"] == before["fast"]
        request_is(client)              # not even counted
        set_policy(raw, fast_path=ON)
        fast.ready(raw)
        for want in ("slow_admit", "fast"):
            request_is(client, **{want: 1})
        set_policy(raw, fast_path=0)
        request_is_slow(client)
        fast.wait_for_no_hook(nat.director.ns, raw.client_tap, source, vip)
    fast.ready(raw)
    request_is(client, slow_admit=1)
    request_is(client, fast=1)
    reply_is(client, slow_admit=1)
    reply_is(client, fast=1)
    # Without services there are no hooks.
    raw.service.delete()
    fast.wait_for_no_hook(nat.director.ns, raw.client_tap, source, vip)


def request_is_slow(client):
    before = fast.read(client.raw.lab.director.ns)["fast"]
    client.send(ACK, b"slow").arrive()
    time.sleep(0.02)
    assert fast.read(client.raw.lab.director.ns)["fast"] == before


@pytest.mark.timer
def test_timeouts(nat, family):
    """Fast packets of either direction keep a flow alive; without any it expires."""
    raw = ready(nat, UDP, family)
    set_policy(raw, udp=2)
    asked, told, silent = admitted(raw), admitted(raw), admitted(raw)
    before = fast.read(nat.director.ns)
    for _ in range(12):
        time.sleep(0.4)
        asked.send(ACK, b"?").arrive()
        told.reply(ACK, b"!").answered()
    # A term may end meanwhile.
    grown = fast.grown(nat.director.ns, before)
    assert grown["fast"] + grown.get("slow_admit", 0) == 24 and grown["fast"] >= 20
    assert asked.row()["expires"] <= 2 and told.row()["expires"] <= 2
    assert silent.row() is None
    request_is(silent, slow_unknown=1)
    time.sleep(3)
    assert asked.row() is None
    request_is(asked, slow_unknown=1)


def test_thresholds(nat, family):
    """Thresholds count connections, whichever path their packets take."""
    raw = Raw(nat, UDP, family, (1, 2), server={"upper": 2, "lower": 1})
    fast.ready(raw)
    clients = [admitted(raw) for _ in range(4)]
    for client in clients:
        request_is(client, fast=1)
    for number in (1, 2):
        assert raw.dest(number)["active"] + raw.dest(number)["inactive"] == 2
    late = raw.client()
    late.send()
    assert late.icmp()


# ---- routes and neighbours ----

def test_route_changed(lab, family):
    """The next packet takes the new route to its server."""
    if lab.shape == "tun":
        pytest.skip("all servers are behind one router: see dr and nat")
    raw = ready(lab, UDP, family, (1, 2))
    client = admitted(raw)
    number = client.number
    to, via = host(raw.address(number), family), raw.address(3 - number)
    lab.director.ns.ip(f"route add {to} via {via} dev {lab.back}")
    try:
        client.send(ACK, b"rerouted")
        n, p = client.arrive()
        assert n == 3 - number
        assert p.dst == (raw.address(number) if lab.shape == "nat" else raw.vip)
        before = fast.read(lab.director.ns)["fast"]
        client.send(ACK, b"again")
        assert client.arrive()[0] == 3 - number
        wait_until(lambda: fast.read(lab.director.ns)["fast"] > before, 3)
    finally:
        lab.director.ns.ip(f"route del {to} via {via}")
    client.send(ACK, b"back")
    assert client.arrive()[0] == number


def test_route_to_another_device(lab, family):
    raw = ready(lab, UDP, family)
    client = admitted(raw)
    with side(lab) as tap:
        to = host(raw.address(1), family)
        lab.director.ns.ip(f"route add {to} via {GATEWAY[family]} dev side0")
        try:
            client.send(ACK, b"aside")
            tap.expect(lambda p: b"aside" in p.raw)
        finally:
            lab.director.ns.ip(f"route del {to} dev side0")
        client.send(ACK, b"back").arrive()
        lab.director.ns.ip(f"route add {to} via {GATEWAY[family]} dev side0")
        client.send(ACK, b"aside")
        tap.expect(lambda p: b"aside" in p.raw)
        # The device takes its route along.
        lab.director.ns.ip("link set side0 down")
        client.send(ACK, b"home").arrive()


def test_gateway_of_the_other_family(nat):
    """IPv4 by way of an IPv6 gateway: the frame has the gateway's address, but IPv4's type."""
    raw = ready(nat, UDP, 4, (1, 2))
    client = admitted(raw)
    to, gateway = client.number, 3 - client.number
    via, tap = nat.phantom(gateway, 6), raw.taps[gateway]
    nat.director.ns.ip(f"route add {host(raw.address(to), 4)} via inet6 {via} dev eth1")
    try:
        client.send(ACK, b"rerouted")
        assert client.arrive()[0] == gateway
        for n in range(3):
            with counted(raw, fast=1):
                client.send(ACK, b"type %d" % n)
                assert one(lambda: [f for f, _ in tap.frames() if b"type" in f])[12:14] == \
                    b"\x08\x00"
    finally:
        nat.director.ns.ip(f"route del {host(raw.address(to), 4)} via inet6 {via}")
    client.send(ACK, b"back")
    assert client.arrive()[0] == to


def test_route_with_a_label(nat):
    """Routes with a lightweight tunnel are left to the stack, in both directions."""
    raw = ready(nat, UDP, 4)
    client = admitted(raw)
    ns, server = nat.director.ns, raw.address(1)
    run("modprobe -q mpls_iptunnel", check=False)
    labelled = f"{host(server, 4)} encap mpls 77 via inet {nat.phantom(2, 4)} dev eth1"
    if ns.run(f"ip route add {labelled}", check=False).returncode:
        pytest.skip("this kernel has no MPLS tunnels: Debian's have (suite stages 6.12, 6.1)")
    try:
        for _ in range(2):
            request_is(client, arrives=0, slow_route=1)
    finally:
        ns.ip(f"route del {labelled}")
    request_is(client, fast=1)
    labelled = f"{host(client.address, 4)} encap mpls 77 via inet {nat.cip(4)} dev eth0"
    ns.ip(f"route add {labelled}")
    try:
        for _ in range(2):
            with counted(raw, slow_route=1):
                client.reply(ACK, b"labelled")
    finally:
        ns.ip(f"route del {labelled}")
    raw.fence()
    assert raw.client_tap.take(lambda p: p.dst == client.address) == []
    client.reply(ACK, b"plain").answered()
    reply_is(client, fast=1)


def test_neighbour(nat, family):
    """A neighbour that must be resolved, or that has failed, is left to the stack."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    ns, to = nat.director.ns, raw.address(1)
    mac = ":".join(f"{b:02x}" for b in nat.nodes[SERVERS[0]].mac())
    try:
        ns.ip(f"neigh del {to} dev eth1")
        with counted(raw, slow_route=1):
            client.send(ACK, b"who has")
        ns.ip(f"neigh replace {to} lladdr {mac} dev eth1 nud reachable")
        assert client.arrive()[1].payload == b"who has"
        request_is(client, fast=1)
        ns.ip(f"neigh replace {to} lladdr {mac} dev eth1 nud stale")
        request_is(client, fast=1)
        ns.ip(f"neigh change {to} dev eth1 nud failed")
        with counted(raw, slow_route=1):
            client.send(ACK, b"nobody")
    finally:
        ns.ip(f"neigh replace {to} lladdr {mac} dev eth1 nud permanent")
    client.arrivals()
    other = ":".join(f"{b:02x}" for b in nat.nodes[SERVERS[1]].mac())
    tap = nat.tap(SERVERS[1])
    ns.ip(f"neigh replace {to} lladdr {other} dev eth1 nud permanent")
    try:
        with counted(raw, fast=1):
            client.send(ACK, b"moved")
            tap.expect(lambda p: p.payload == b"moved")
    finally:
        ns.ip(f"neigh replace {to} lladdr {mac} dev eth1 nud permanent")


def test_neighbour_ends(nat, family):
    """With its device's address all its neighbours end: the new one is used, with another address
    of the real server."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    request_is(client, fast=1)
    ns, to = nat.director.ns, raw.address(1)
    other, own = (":".join(f"{b:02x}" for b in node.mac(device)) for node, device in (
        (nat.nodes[SERVERS[1]], "eth0"), (nat.director, "eth1")))
    tap = nat.tap(SERVERS[1])
    had = json.loads(run(["ip", "-n", ns.name, "-j", "neigh", "show", "dev", "eth1", "nud", "permanent"]).stdout)
    try:
        ns.ip("link set eth1 address 02:00:00:00:77:01",
              f"neigh replace {to} lladdr {other} dev eth1 nud permanent")
        with counted(raw, fast=1):
            client.send(ACK, b"elsewhere")
            tap.expect(lambda p: p.payload == b"elsewhere")
    finally:
        ns.ip(f"link set eth1 address {own}",
              *(f"neigh replace {e['dst']} lladdr {e['lladdr']} dev eth1 nud permanent" for e in had))


@pytest.mark.waits
def test_neighbour_is_let_go(nat, family):
    """One with a reference cannot make room for others: some 10 s after the last packet it has none."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)

    def references():
        listed = nat.director.ns.run(["ip", "-s", "neigh", "show", raw.address(1)]).stdout
        return listed.count(" ref ")
    request_is(client, fast=1)
    assert references() == 1
    time.sleep(12)
    assert references() == 0
    client.send(ACK).arrive()       # the stack: its term is over
    request_is(client, fast=1)
    assert references() == 1



@pytest.mark.smoke
def test_mtu_lowered(nat, family):
    """A lower MTU of a route or of a device applies to the next packet."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    df = {"ip_args": {"df": True}} if family == 4 else {}
    big = pattern(1350)
    ns = nat.director.ns

    def fits():
        with counted(raw, fast=1):
            client.send(ACK, big, **df)
            client.arrive()
    fits()
    for change, back in ((f"route add {host(raw.address(1), family)} dev eth1 mtu 1300",
                          f"route del {host(raw.address(1), family)} dev eth1 mtu 1300"),
                         ("link set eth1 mtu 1300", "link set eth1 mtu 1500")):
        ns.ip(change)
        try:
            with counted(raw, slow_route=1):
                client.send(ACK, big, **df)
                assert client.icmp().rest & 0xffff == 1300
        finally:
            ns.ip(back)
        client.nothing_arrives()
        ns.forget_paths()
        # A device's old MTU may stay in IPv6 routes.
        if "link" not in change:
            fits()
    repair_routes(nat)


def repair_routes(lab):
    """Set the MTU of the routes again: IPv6 routes have followed the device's."""
    for family in (4, 6):
        lab.director.ns.ip(f"route replace {host(lab.phantom(4, family), family)} dev {lab.back} "
                           "mtu 1400")


@pytest.mark.timer
def test_replies_follow_rules(nat, family):
    """The stack routes replies by their source, the VIP. Rules for it apply to fast replies
    at once when they are added, changed or removed."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    with side(nat) as tap:
        ns = nat.director.ns

        def reply(tap, **want):
            with counted(raw, **want):
                client.reply(ACK, b"reply")
                p = tap.expect(lambda p: p.dst == client.address)
            assert p.src == raw.vip
        ns.ip(f"route add default via {GATEWAY[family]} dev side0 table 77", family=family)
        ns.ip(f"rule add from {raw.vip} lookup 77", family=family)
        try:
            if family == 6:
                # A new rule does not end the stack's cached routes, nor ours, until a term is over.
                follows(client, tap)
                ns.ip("route del default table 77", family=family)
                reply(raw.client_tap, slow_route=1)
                ns.ip(f"route add default via {GATEWAY[family]} dev side0 table 77",
                      family=family)
                follows(client, tap)
                return
            reply(tap, slow_route=1)
            reply(tap, fast=1)
            ns.ip("route del default table 77", family=family)
            reply(raw.client_tap, slow_route=1)
            reply(raw.client_tap, fast=1)
            ns.ip(f"route add default via {GATEWAY[family]} dev side0 table 77", family=family)
            reply(tap, slow_route=1)
            reply(tap, fast=1)
        finally:
            ns.ip(f"rule del from {raw.vip} lookup 77", "route flush table 77", family=family)
        reply(raw.client_tap, slow_route=1)
        reply(raw.client_tap, fast=1)


def follows(client, tap):
    """Wait, a term at most, until replies come by TAP."""
    def came():
        client.reply(ACK, b"reply")
        return tap.take(lambda p: p.dst == client.address)
    wait_until(came, TERM + 1, step=0.3)
    time.sleep(0.1)
    tap.drain()
    client.raw.drain()


def test_way_back_changed(nat, family):
    """A client gets another gateway, whose device then goes down."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    with side(nat) as tap:
        ns, to = nat.director.ns, host(client.address, family)
        ns.ip(f"route add {to} via {GATEWAY[family]} dev side0")
        for want in ("slow_route", "fast"):
            with counted(raw, **{want: 1}):
                client.reply(ACK, b"aside")
                tap.expect(lambda p: p.dst == client.address)
        ns.ip("link set side0 down")
        reply_is(client, slow_route=1)
        reply_is(client, fast=1)


@pytest.mark.smoke
def test_local_server(lab, family):
    """Packets for a real server on the director itself are left to the stack."""
    raw = ready(lab, UDP, family)
    raw.remove(1)
    port = raw.port if lab.shape != "nat" else raw.dport
    raw.service.server(lab.dip(family), raw.dport, method=raw.method)
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with lab.director.ns.socket(kind, socket.SOCK_DGRAM) as s:
        s.bind(("", port))
        s.settimeout(5)
        client = raw.client()
        for n in range(3):
            before = fast.read(lab.director.ns)["fast"]
            client.send(payload=b"local %d" % n)
            assert s.recv(99) == b"local %d" % n
            time.sleep(0.02)
            assert fast.read(lab.director.ns)["fast"] == before


def test_server_becomes_local(nat, family):
    """If the director gets a real server's address, the next packet is left to its stack."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    ns, address = nat.director.ns, raw.address(1)
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    ns.ip(f"addr add {host(address, family)} dev lo" + (" nodad" if family == 6 else ""))
    try:
        with ns.socket(kind, socket.SOCK_DGRAM) as s:
            s.bind((address, raw.dport))
            s.settimeout(5)
            # Gives the loopback device a neighbour for the address; that device has no hook.
            with counted(raw):
                s.sendto(b"own", (address, raw.dport))
                assert s.recv(99) == b"own"
            for n in range(3):
                with counted(raw, slow_route=1):
                    client.send(ACK, b"local %d" % n)
                    assert s.recv(99) == b"local %d" % n
    finally:
        ns.ip(f"addr del {host(address, family)} dev lo")
    client.send(ACK, b"away").arrive()


def test_loopback(nat, family):
    """The director's own clients: their packets come in by no device."""
    raw = ready(nat, UDP, family)
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with nat.director.ns.socket(kind, socket.SOCK_DGRAM) as s:
        s.bind((nat.dip(family), 0))
        sport = s.getsockname()[1]
        with counted(raw):
            for n in range(3):
                s.sendto(b"own %d" % n, (raw.vip, raw.port))
            raw.taps[1].expect(lambda p: p.sport == sport, 3)


def test_device_lo(nat, family):
    """The loopback device has no hook."""
    raw = ready(nat, UDP, family)
    kind = packet.ETH_IP if family == 4 else packet.ETH_IP6
    stray = packet.udp_packet(nat.cip(family), 7, raw.vip, raw.port)
    with counted(raw), nat.director.ns.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("lo", kind))
        s.send(bytes(12) + struct.pack("!H", kind) + stray)


def test_many_clients(nat, family):
    """A route has only one number, however many flows take it."""
    raw = ready(nat, UDP, family)
    clients = [admitted(raw) for _ in range(300)]
    with counted(raw, fast=300):
        for client in clients:
            client.reply(ACK, b"2").answered()
