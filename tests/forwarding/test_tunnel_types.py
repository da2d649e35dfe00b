# SPDX-License-Identifier: GPL-2.0
"""Tunnels of types GUE and GRE: their headers, the sizes that fit, and that
Linux at the other end accepts them."""

import contextlib
import hashlib
import struct

import pytest
from lab import packet
from lab.farm import Http, http_get, pattern
from lab.netns import run, wait_until
from lab.packet import ACK, GRE, GUE_PORT, IPIP, IPV6, TCP, UDP
from lab.raw import Raw
from lab.sctp import associate, device_computes
from lab.topology import PHANTOM_MTU

# Name: ((type, UDP port, flags), bytes of its header)
TYPES = {"gue": ((1, GUE_PORT, 0), 12), "gue-csum": ((1, GUE_PORT, 1), 12),
         "gue-remcsum": ((1, GUE_PORT, 2), 12), "gre": ((2, 0, 0), 4),
         "gre-csum": ((2, 0, 1), 8)}


@pytest.fixture(params=TYPES)
def kind(request):
    return request.param


@pytest.fixture(params=(4, 6), ids=("in4", "in6"))
def outer(request):
    return request.param


def tunnelled(tun, kind, family, outer, proto=TCP, *, numbers=(1,)):
    return Raw(tun, proto, family, numbers, server_family=outer,
               server={"tunnel": TYPES[kind][0]})


@pytest.mark.smoke
def test_headers(tun, family, outer, kind):
    """Every byte of the headers; arrive() checks the checksums."""
    raw = tunnelled(tun, kind, family, outer)
    client = raw.client()
    client.open()
    client.send(ACK, b"data", ip_args={"tos": 0xb8})
    _, p = client.arrive()
    assert (p.src, p.dst, p.tos, p.ttl) == (tun.dip(outer), raw.address(1), 0xb8, 62)
    head, carried = p.between, IPIP if family == 4 else IPV6
    if kind.startswith("gre"):
        assert p.proto == GRE
        ethertype = 0x800 if family == 4 else 0x86dd
        flags = 0x8000 if kind == "gre-csum" else 0
        assert head[:4] == struct.pack("!HH", flags, ethertype)
        assert len(head) == (8 if flags else 4) and head[6:] == bytes(len(head[6:]))
    else:
        assert (p.proto, p.dport) == (UDP, GUE_PORT)
        # The client's checksum was complete: nothing is left to the receiver.
        assert head[8:] == struct.pack("!BBH", 0, carried, 0)
        assert (head[6:8] == b"\0\0") is (kind == "gue")
        assert struct.unpack("!H", head[4:6])[0] == len(p.l4)
    inner = p.inner()
    assert (inner.src, inner.dst, inner.payload) == (client.address, raw.vip, b"data")
    assert (inner.ttl, inner.flags) == (63, ACK)


def test_source_ports(tun, family, outer):
    """A flow keeps its source port, and flows have different ones, by which routers
    and receivers spread the load."""
    raw = tunnelled(tun, "gue", family, outer)
    ports = {}
    for _ in range(20):
        client = raw.client()
        seen = set()
        for _ in range(3):
            client.send()
            seen.add(client.arrive()[1].sport)
        assert len(seen) == 1, seen
        ports[client] = seen.pop()
    assert len(set(ports.values())) > 10
    assert min(ports.values()) >= 1024


def test_too_big(tun, family, outer, kind):
    """The sender is told the size that fits into the tunnel, and that goes through."""
    raw = tunnelled(tun, kind, family, outer, UDP, numbers=(4,))
    client = raw.client()
    room = PHANTOM_MTU + 20 - (20 if outer == 4 else 40) - TYPES[kind][1]
    room = max(room, 1280) if family == 6 else room
    fits = room - (28 if family == 4 else 48)
    args = {"ip_args": {"df": True}} if family == 4 else {}
    client.send(payload=pattern(fits), **args)
    _, p = client.arrive()
    assert p.inner().payload == pattern(fits)
    client.send(payload=pattern(fits + 1), **args)
    p = client.icmp()
    assert (p.type, p.code, p.rest & 0xffff) == ((3, 4, room) if family == 4 else (2, 0, room))
    assert p.inner().dport == raw.port
    client.nothing_arrives()


def test_path_shrinks(tun, kind):
    """After a router's report about a tunnel packet, the client's next large packet
    is answered with the MTU that is left inside."""
    raw = tunnelled(tun, kind, 4, 4, UDP)
    client = raw.client()
    client.send(payload=b"a" * 1200, ip_args={"df": True})
    _, p = client.arrive()
    raw.taps[1].send(packet.icmp_packet(tun.topo.rip(1), tun.dip(), 3, 4, 900, payload=p.raw[:548]))

    def told():
        client.send(payload=b"a" * 1200, ip_args={"df": True})
        client.arrivals()
        return [q for q in raw.client_tap.take(lambda q: q.dst == client.address)
                if (q.type, q.code) == (3, 4) and q.rest & 0xffff == 880 - TYPES[kind][1]]

    try:
        quoted = wait_until(told, 5, step=0.1)[0].inner()
        assert (quoted.src, quoted.dst, quoted.dport) == (client.address, raw.vip, raw.port)
    finally:
        tun.director.ns.forget_paths()


def test_type_changes(tun, family):
    """Connections of the server go on in the new type of tunnel."""
    raw = tunnelled(tun, "gue", family, 4)
    client = raw.client()
    assert client.open() == 1
    for kind in ("gre", "gue-csum", "gre-csum"):
        raw.edit(1, tunnel=TYPES[kind][0])
        client.send(ACK)
        assert client.arrive()[1].proto == (GRE if kind.startswith("gre") else UDP)
    raw.edit(1)
    client.send(ACK)
    assert client.arrive()[1].proto == (IPIP if family == 4 else IPV6)


# ---- Linux receives it


@contextlib.contextmanager
def receivers(tun, kind, outer):
    """Set up the real servers: GUE passes packets to their IPIP devices; a GRE
    device accepts packets with or without a checksum, not both."""
    if kind.startswith("gre"):
        module, device = ("ip_gre", "gre") if outer == 4 else ("ip6_gre", "ip6gre")
    else:
        module, six = ("fou", "") if outer == 4 else ("fou6", "-6 ")
    if run(["modprobe", module], check=False).returncode:
        pytest.skip(f"this kernel has no {module}: Debian's have it (suite stages 6.12 and 6.1)")
    with contextlib.ExitStack() as undo:
        for number, node in enumerate(tun.servers, 1):
            if kind.startswith("gre"):
                node.ns.ip(f"link add grx type {device} local {tun.rip(number, outer)} "
                           f"remote any {'icsum' if kind == 'gre-csum' else ''}",
                           "link set grx up")
                undo.callback(node.ns.ip, "link del grx")
            else:
                node.ns.run(f"ip {six}fou add port {GUE_PORT} gue")
                undo.callback(node.ns.run, f"ip {six}fou del port {GUE_PORT}")
        yield


# Linux drops UDP over IPv6 without a checksum, unless a program allows it.
RECEIVED = [(o, k) for o in (4, 6) for k in TYPES if (o, k) != (6, "gue")]


@pytest.mark.waits
@pytest.mark.smoke
@pytest.mark.parametrize("outer, kind", RECEIVED, ids=[f"in{o}-{k}" for o, k in RECEIVED])
def test_receivers(tun, outer, kind):
    """HTTP of both families through the tunnel to four servers, small and large
    requests. The client leaves checksums and segmentation to its device, so the
    director gets packets without them."""
    with receivers(tun, kind, outer):
        for family in (4, 6):
            served(tun, family, outer, kind)


def served(tun, family, outer, kind):
    port = tun.http_port()
    service = tun.ipvs.service(tun.vip(family), port, sched="rr")
    for number in range(1, 5):
        service.server(tun.rip(number, outer), port, method=tun.method, tunnel=TYPES[kind][0])
    got = [http_get(tun.client, tun.vip(family), port)[0] for _ in range(8)]
    assert sorted(got) == ["rs1", "rs1", "rs2", "rs2", "rs3", "rs3", "rs4", "rs4"]
    with Http(tun.client, tun.vip(family), port) as h:
        for size in (1, 1000, 40000, 200000):
            digest = h.request("PUT", f"/{size}", pattern(size)).decode()
            assert digest == hashlib.sha256(pattern(size)).hexdigest()


@pytest.mark.waits
@pytest.mark.parametrize("outer, kind", RECEIVED, ids=[f"in{o}-{k}" for o, k in RECEIVED])
@pytest.mark.ip_vs_differs("no SCTP association comes about through these tunnels")
def test_associations(tun, outer, kind):
    """SCTP's CRC is no Internet checksum, and a tunnel must not treat it as one. The
    CRC is left to the device here; test_sctp.py covers both cases."""
    with receivers(tun, kind, outer), device_computes(tun, True):
        associate(tun, outer, lambda number: tun.rip(number, outer), clients=2,
                  tunnel=TYPES[kind][0])
