# SPDX-License-Identifier: GPL-2.0
"""ICMP errors about the director's own tunnel packets: what the route learns,
what the client is told, and which errors are ignored."""

import contextlib
import hashlib
import struct

import pytest
from lab import packet
from lab.farm import Http, pattern
from lab.genl import ONEPACKET, ROUTE
from lab.netns import run
from lab.packet import ACK, GRE, GUE_PORT, ICMP, ICMP6, IPIP, IPV6, SCTP, TCP, UDP
from lab.raw import Raw, is_error

# Name: ((type, UDP port, flags), bytes of its header)
TYPES = {"ipip": ((0, 0, 0), 0), "gue": ((1, GUE_PORT, 0), 12), "gue-csum": ((1, GUE_PORT, 1), 12),
         "gre": ((2, 0, 0), 4), "gre-csum": ((2, 0, 1), 8)}
HEAD = {4: 20, 6: 40}
PATH = 1400             # MTU of a router on the path
BIG = pattern(1380)     # with any tunnel's headers more than PATH, less than 1,500
# (type, code) of a router's error, by the outer family.
TOO_BIG = {4: (3, 4), 6: (2, 0)}
UNREACHABLE = {4: (3, 1), 6: (1, 3)}
PROHIBITED = {4: (3, 13), 6: (1, 1)}
EXPIRED = {4: (11, 0), 6: (3, 0)}


@pytest.fixture(params=TYPES)
def kind(request):
    return request.param


@pytest.fixture(params=(4, 6), ids=("in4", "in6"))
def outer(request):
    return request.param


@pytest.fixture
def tun(tun):
    yield tun
    for node in (tun.director, tun.client):
        node.ns.forget_paths()


def tunnelled(lab, backend, kind, family, outer, *, proto=UDP, numbers=(1,), **options):
    if not backend.is_l4lb and (family, outer) != (4, 4):
        pytest.skip("ip_vs relays from IPv4 to IPv4 only; runs with --backend l4lb")
    return Raw(lab, proto, family, numbers, server_family=outer,
               server={"tunnel": TYPES[kind][0]}, **options)


def room(kind, family, outer, path=PATH):
    """The MTU inside the tunnel; IPv6 has a minimum."""
    left = path - HEAD[outer] - TYPES[kind][1]
    return max(left, 1280) if family == 6 else left


def df(family):
    return {"ip_args": {"df": True}} if family == 4 else {}


def send_big(client):
    """Send one large packet. Return it as it left in the tunnel."""
    client.send(payload=BIG, **df(client.raw.family))
    return client.arrive()[1]


def report(raw, about, what, rest=0, quote=548, **kwargs):
    """Send a router's ICMP error about the tunnel packet ABOUT."""
    error = packet.icmp_packet(raw.lab.rip(1, about.family), about.src, *what, rest,
                               payload=about.raw[:quote], **kwargs)
    raw.taps[1].send(error)
    return error


def told(raw, client):
    """The ICMP errors that the client has got."""
    raw.fence()
    return raw.client_tap.take(lambda p: p.dst == client.address and is_error(p))


@pytest.mark.smoke
def test_too_big(tun, backend, family, outer, kind):
    """The client gets the MTU inside the tunnel at once, from the VIP; its next
    large packet is not forwarded, but answered with the same error."""
    raw = tunnelled(tun, backend, kind, family, outer)
    client = raw.client()
    error = report(raw, send_big(client), TOO_BIG[outer], PATH)
    left = room(kind, family, outer)
    first = client.icmp()
    assert (first.src, first.type, first.code) == (raw.vip, *TOO_BIG[family])
    if backend.is_l4lb:     # ip_vs quotes the route as it was before
        assert first.rest & 0xffff == left
    assert len(first.raw) <= len(error)
    quoted = first.inner()
    assert (quoted.src, quoted.sport, quoted.dst, quoted.dport) == \
        (client.address, client.sport, raw.vip, raw.port)
    client.send(payload=BIG, **df(family))
    again = client.icmp()
    assert (again.type, again.code, again.rest & 0xffff) == (*TOO_BIG[family], left)
    client.nothing_arrives()
    client.send(payload=pattern(left - HEAD[family] - 8), **df(family))
    client.arrive()


def test_too_big_but_may_be_fragmented(tun, backend, outer):
    """Without DF the client gets no error."""
    raw = tunnelled(tun, backend, "ipip", 4, outer)
    client = raw.client()
    client.send(payload=BIG)
    _, p = client.arrive()
    report(raw, p, TOO_BIG[outer], PATH)
    assert told(raw, client) == []


@pytest.mark.smoke
@pytest.mark.parametrize("what", (UNREACHABLE, PROHIBITED, EXPIRED),
                         ids=("unreachable", "prohibited", "expired"))
def test_passed_on(tun, backend, family, outer, what):
    """Type and code stay, or become their equivalent in the client's family; the
    tunnel goes on."""
    for kind, proto in (("ipip", TCP), ("gue", UDP), ("gre", SCTP)):
        raw = tunnelled(tun, backend, kind, family, outer, proto=proto)
        client = raw.client()
        client.open()
        client.send(ACK, b"data")
        _, p = client.arrive()
        want = what[family]
        if what is UNREACHABLE and family == outer == 4:
            want = (3, 9)       # has no equivalent in ICMPv6
        error = report(raw, p, want if family == outer else what[outer])
        got = client.icmp()
        assert (got.src, got.type, got.code, got.rest) == (raw.vip, *want, 0)
        assert len(got.raw) <= len(error)
        quoted = got.inner()
        assert (quoted.src, quoted.sport, quoted.dst, quoted.dport) == \
            (client.address, client.sport, raw.vip, raw.port)
        client.send(ACK, b"more")
        client.arrive()


def test_options_are_not_answered(tun, backend):
    """IP options of the router's error are not copied to the client's. ip_vs does not
    relay such an error."""
    raw = tunnelled(tun, backend, "ipip", 4, 4)
    client = raw.client()
    p = send_big(client)
    record_route = bytes((7, 39, 4)) + bytes(36) + b"\0"
    raw.taps[1].send(packet.ip4(tun.rip(1), p.src, ICMP,
                                packet.icmp(3, 1, 0, p.raw[:548]), options=record_route))
    if not backend.is_l4lb:
        raw.fence()
        assert raw.client_tap.take(lambda q: q.dst == client.address) == []
        return
    got = client.icmp()
    assert (got.src, got.type, got.code, got.hlen) == (raw.vip, 3, 1, 20)
    assert got.inner().sport == client.sport


def inside(p, old, new):
    """The tunnel packet P with its bytes OLD replaced by NEW."""
    assert old in p.raw
    return packet.Packet(p.raw.replace(old, new, 1))


def strangers(raw, client, p):
    """(why, quoted packet, arguments of report()): errors that must be ignored."""
    port = struct.pack("!H", client.sport)
    yield "wrong checksum", p, {"csum": 0x1234}
    yield "flow that nobody has", inside(p, port, struct.pack("!H", 9)), {}
    yield "another server", inside(p, packet.packed(p.dst), packet.packed(raw.address(2))), {}
    if p.family == 4:
        inner = p.inner().raw
        yield "options in our header", packet.Packet(packet.ip4(
            p.src, p.dst, p.proto, p.between + inner, options=b"\1\1\1\0")), {}
        yield "a later fragment", packet.Packet(packet.ip4(
            p.src, p.dst, p.proto, p.l4, offset=800)), {}
        for proto in {IPIP, GRE, UDP, IPV6} - {p.proto, IPIP if p.proto == IPV6 else None}:
            yield f"protocol {proto}", packet.Packet(packet.ip4(p.src, p.dst, proto, p.l4)), {}
    if p.proto == GRE:
        yield "GRE with a key", inside(p, p.between[:4], b"\x20" + p.between[1:4]), {}
        yield "GRE of something else", inside(p, p.between[:4], p.between[:2] + b"\x65\x58"), {}
    if p.proto == UDP:
        yield "another GUE port", inside(p, struct.pack("!H", GUE_PORT), b"\x12\x34"), {}
        yield "GUE control", inside(p, p.between[8:12], b"\x20" + p.between[9:12]), {}
        yield "GUE version 1", inside(p, p.between[8:12], b"\x40" + p.between[9:12]), {}
        yield "long GUE", inside(p, p.between[8:12], b"\x1f" + p.between[9:12]), {}


@pytest.mark.parametrize("kind", ("ipip", "gue", "gre"))
def test_not_believed(tun, backend, family, outer, kind):
    """The error is not relayed, and no MTU is learned from it."""
    if not backend.is_l4lb:
        pytest.skip("stricter than ip_vs; runs with --backend l4lb")
    raw = tunnelled(tun, backend, kind, family, outer)
    for other in TYPES:     # the address is known, with every type, and so is server 2's
        tunnelled(tun, backend, other, family, outer, numbers=(1, 2))
    client = raw.client()
    p = send_big(client)
    for why, quoted, kwargs in strangers(raw, client, p):
        # The stack itself learns an MTU from any error about UDP, and about GRE over
        # IPv4 once another test has loaded ip_gre.
        noted = quoted.proto == UDP or (quoted.proto, outer) == (GRE, 4)
        for what in (UNREACHABLE,) if noted else (TOO_BIG, UNREACHABLE):
            report(raw, quoted, what[outer], PATH, **kwargs)
        assert told(raw, client) == [], why
        client.send(payload=BIG, **df(family))
        assert client.arrive(what=f"packets after {why}")
    # These errors are not relayed, although the quote is right.
    report(raw, p, (4, 0) if outer == 4 else (4, 1))
    assert told(raw, client) == []


def test_error_about_icmp(tun, backend, family, outer):
    """An error about a tunnelled ICMP error is not relayed."""
    raw = tunnelled(tun, backend, "ipip", family, outer)
    client = raw.client()
    client.open()
    reply = client.reply_packet(payload=b"answer", number=1)
    raw.client_tap.send(packet.icmp_packet(client.address, raw.vip, *UNREACHABLE[family], 0,
                                           payload=reply))
    p = raw.taps[1].expect(lambda p: p.is_tunnel and p.inner().proto in (ICMP, ICMP6),
                           what="tunnelled ICMP error")
    for what in (TOO_BIG, UNREACHABLE):
        report(raw, p, what[outer], PATH)
        assert told(raw, client) == []


@pytest.mark.parametrize("kind", ("ipip", "gue", "gre"))
def test_quote_cut_short(tun, backend, kind):
    """Routers may quote only eight bytes behind the header. They do not tell the
    client, but the route learns the MTU, and the next packet is answered."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs learns nothing from it; runs with --backend l4lb")
    raw = tunnelled(tun, backend, kind, 4, 4)
    client = raw.client()
    report(raw, send_big(client), TOO_BIG[4], PATH, quote=20 + 8)
    assert told(raw, client) == []
    client.send(payload=BIG, **df(4))
    assert client.icmp().rest & 0xffff == room(kind, 4, 4)


def test_short_quotes_that_are_not_believed(tun, backend):
    """Whoever knows a real server's address can quote that much. The route learns nothing
    unless the quoted packet is from the address that the error is sent to; and never an
    MTU below 1280."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs learns nothing from it; runs with --backend l4lb")
    raw = tunnelled(tun, backend, "ipip", 4, 4)
    client = raw.client()
    p = send_big(client)
    forged = packet.Packet(packet.ip4(tun.raw_vip(4, 1), p.dst, p.proto, p.l4))
    other = packet.Packet(packet.ip4(p.src, raw.address(2), p.proto, p.l4))
    for quoted, mtu in ((forged, PATH), (other, PATH), (p, 1279), (p, 552), (p, 0)):
        raw.taps[1].send(packet.icmp_packet(raw.lab.rip(1, 4), p.src, *TOO_BIG[4], mtu,
                                            payload=quoted.raw[:28]))
        raw.fence()
        client.send(payload=BIG, **df(4))
        assert client.arrive(what=f"packets after {mtu}")


@pytest.mark.ip_vs_differs("tells the client nothing after the edit")
def test_after_an_edit(tun, backend):
    """A server gets another method; its connections still tunnel, and errors about them
    reach the client."""
    raw = tunnelled(tun, backend, "ipip", 4, 4)
    client = raw.client()
    p = send_big(client)
    raw.edit(1, method=ROUTE)
    report(raw, p, UNREACHABLE[4])
    assert client.icmp()


def test_one_packet_scheduling(tun, backend, family, outer):
    """Without a connection no client is known, but the route learns the MTU."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs learns nothing from it; runs with --backend l4lb")
    raw = tunnelled(tun, backend, "gre", family, outer, flags=ONEPACKET)
    client = raw.client()
    report(raw, send_big(client), TOO_BIG[outer], PATH)
    assert told(raw, client) == []
    client.send(payload=BIG, **df(family))
    assert client.icmp().rest & 0xffff == room("gre", family, outer)


# ---- end to end


@contextlib.contextmanager
def receivers(tun, kind, outer):
    """Set up real server 1, which has IPIP devices already."""
    ns = tun.servers[0].ns
    if kind == "ipip":
        yield
        return
    if kind == "gre":
        module, device = ("ip_gre", "gre") if outer == 4 else ("ip6_gre", "ip6gre")
        make = f"ip link add grx type {device} local {tun.rip(1, outer)} remote any"
        undo = "ip link del grx"
    else:
        module, six = ("fou", "") if outer == 4 else ("fou6", "-6 ")
        make, undo = (f"ip {six}fou {verb} port {GUE_PORT}" for verb in ("add", "del"))
        make += " gue"
    if run(["modprobe", module], check=False).returncode:
        pytest.skip(f"this kernel has no {module}: Debian's have it (suite stages 6.12 and 6.1)")
    ns.run(make)
    try:
        if kind == "gre":
            ns.run("ip link set grx up")
        yield
    finally:
        ns.run(undo)


@contextlib.contextmanager
def narrow(tun, mtu):
    """The router's MTU is smaller than that of the director's link."""
    ns = tun.nodes["router"].ns
    ns.run(f"ip link set br0 mtu {mtu}")
    try:
        yield
    finally:
        ns.run("ip link set br0 mtu 1500")


@pytest.mark.dear
@pytest.mark.parametrize("family, outer, kind", [
    (4, 4, "ipip"), (4, 4, "gue-csum"), (4, 4, "gre"), (6, 6, "ipip"), (6, 6, "gue-csum"),
    (6, 6, "gre"), (4, 6, "gre"), (6, 4, "ipip")])
def test_upload(tun, backend, family, outer, kind):
    """A megabyte arrives by a path with a smaller MTU than the tunnel's first link,
    and the client is told only right MTUs."""
    if not backend.is_l4lb and (family, outer) != (4, 4):
        pytest.skip("ip_vs relays from IPv4 to IPv4 only; runs with --backend l4lb")
    port = tun.http_port()
    service = tun.ipvs.service(tun.vip(family), port, sched="rr")
    service.server(tun.rip(1, outer), port, method=tun.method, tunnel=TYPES[kind][0])
    tap, body = tun.tap("client"), pattern(1 << 20)
    with receivers(tun, kind, outer), narrow(tun, PATH), \
            Http(tun.client, tun.vip(family), port, timeout=20) as h:
        assert h.request("PUT", "/upload", body).decode() == hashlib.sha256(body).hexdigest()
    sizes = {p.rest & 0xffff for p in tap.take(
        lambda p: (p.src, p.type, p.code) == (tun.vip(family), *TOO_BIG[family]))}
    wide = room(kind, family, outer, 1500)
    if not backend.is_l4lb:
        assert sizes <= {wide, room(kind, family, outer)}
    elif family == 4 or outer == 6:
        assert sizes == {wide, room(kind, family, outer)}
    else:
        # The outer header has no DF: the router fragments the packets.
        assert sizes == {wide}
