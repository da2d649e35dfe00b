# SPDX-License-Identifier: GPL-2.0
"""The fast path: it sends the same packets as the slow path, leaves unusual ones to
the stack, and changes apply to it in time. The counters of /proc/net/l4lb tell
which path a packet took.
"""

import contextlib
import hashlib
import re
import socket
import struct

import pytest
from lab import fast, packet, xdp
from lab.farm import Http, pattern
from lab.flows import (
    BOTH,
    OFF,
    RESET,
    TUNNEL,
    admitted,
    counted,
    nft,
    numbers_of,
    ready,
    reply_is,
    request_is,
    set_policy,
)
from lab.netns import wait_until
from lab.packet import ACK, FIN, PSH, RST, SYN, TCP, UDP
from lab.settings import setting
from lab.sorts import all_sorts, poke, variety
from lab.tap import Tap

pytestmark = pytest.mark.usefixtures("only_l4lb")

ECE, CWR = 0x40, 0x80
MOVE = 2        # on-drain
RESET_LOST = 3  # on-loss


# ---- the same packets ----

def both_ways(lab, proto, family, **kwargs):
    raw = ready(lab, proto, family, **kwargs)
    client = admitted(raw)
    nat = lab.shape == "nat"
    taken = all_sorts(client, proto, family, {"fast": 1}, nat)
    with setting(lab, "fast_path", 0):
        # A device's hook may still be there for a moment.
        before = fast.read(lab.director.ns)["fast"]
        wait_until(lambda: fast.grown(lab.director.ns, poke(client)) == {}, 5,
                   what="the devices let go of")
        left = all_sorts(client, proto, family, {}, nat)
        assert fast.read(lab.director.ns)["fast"] == before
    for kwargs, a, b in zip([k for k in variety(proto, family) for _ in range(1 + nat)],
                            taken[0], left[0]):
        assert a == b, (kwargs, a, b)
    assert taken[1] == left[1]
    sent = len(taken[0])
    assert taken[1][0]["inpkts"] == taken[1][1]["inpkts"] == (sent // 2 if nat else sent)
    assert taken[1][0]["outpkts"] == (sent // 2 if nat else 0)


@pytest.mark.stock
@pytest.mark.smoke
@BOTH
def test_same_packets(lab, family, proto):
    """Packets are the same, byte for byte, and so are all counters."""
    both_ways(lab, proto, family)


@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
@pytest.mark.parametrize("kind", [*TUNNEL, "ipip"])
def test_same_tunnels(tun, family, outer, kind):
    for proto in (UDP, TCP):
        both_ways(tun, proto, family, server_family=outer,
                  server={"tunnel": TUNNEL[kind]} if kind in TUNNEL else None)


def test_udp_sum_that_folds_to_zero(nat, family):
    """A rewritten UDP checksum of 0 is sent as 0xffff, both ways."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    fixed = packet.pseudo(client.address, raw.address(1), UDP, 10) + \
        struct.pack("!HHHH", client.sport, raw.dport, 10, 0)
    p = request_is(client, struct.pack("!H", packet.checksum(fixed)), fast=1)
    assert p.l4[6:8] == b"\xff\xff"
    back = packet.pseudo(raw.vip, client.address, UDP, 10) + \
        struct.pack("!HHHH", raw.port, client.sport, 10, 0)
    assert reply_is(client, struct.pack("!H", packet.checksum(back)),
                    fast=1).l4[6:8] == b"\xff\xff"


def test_padding(lab, family):
    """Padding behind a short packet is neither forwarded nor counted."""
    raw = ready(lab, UDP, family)
    client = admitted(raw)
    before = numbers_of(client)[1]
    with counted(raw, fast=1):
        raw.client_tap.send(client.packet(payload=b"x") + b"PADDING" * 2)
        p = client.arrive()[1]
    assert p.behind == b"" and b"PAD" not in p.raw
    assert numbers_of(client)[1]["inbytes"] - before["inbytes"] == (29 if family == 4 else 49)
    if lab.shape == "nat":
        with counted(raw, fast=1):
            raw.taps[1].send(client.reply_packet(payload=b"y") + b"PADDING" * 2)
            assert client.answered().behind == b""


def test_padding_is_no_data(lab, family):
    """A reset has the numbers that follow the data of a padded packet, not its padding."""
    raw = ready(lab, TCP, family)
    set_policy(raw, on_idle=RESET, on_loss=RESET_LOST)
    client = admitted(raw)
    segment = client.packet(ACK, b"!", seq=5000, ack=7000)
    for _ in range(2):
        with counted(raw, fast=1):
            raw.client_tap.send(segment + b"PAD" * 2)
            client.arrive()
    raw.remove(1)
    raw.client_tap.send(segment)
    p = client.answered()
    assert (p.flags, p.seq, p.ack) == (RST | ACK, 7000, 5001)
    _, q = client.arrive()
    q = q.inner() if q.is_tunnel else q
    assert (q.flags, q.seq, q.ack) == (RST | ACK, 5001, 7000)


@pytest.mark.no_xdp("packet sockets see no frame")
def test_watchers(lab, family):
    """Packet sockets on the director's device see what came in, not what left."""
    raw = ready(lab, UDP, family)
    client = admitted(raw)
    tap = Tap(lab.director, "eth0")
    try:
        for n in range(3):
            request_is(client, b"seen %d" % n, fast=1)
        seen = tap.expect(lambda p: p.src == client.address and not p.is_tunnel and
                          p.dst == raw.vip, 3)
        assert [p.payload for p in seen] == [b"seen 0", b"seen 1", b"seen 2"]
        assert {(p.ttl, p.dport) for p in seen} == {(64, raw.port)}
    finally:
        tap.close()
    with tcpdump(lab):
        assert request_is(client, b"dumped", fast=1).raw


@contextlib.contextmanager
def tcpdump(lab):
    import subprocess
    with lab.director.ns.popen("tcpdump -i any -w /dev/null --immediate-mode",
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            while b"listening" not in process.stderr.readline():
                assert process.poll() is None
            yield
        finally:
            process.terminate()


@pytest.mark.smoke
def test_large_segments(lab, family):
    """The sender's stack leaves segmentation and checksums to devices: all data arrives,
    most of it by the fast path, in packets larger than any link's MTU."""
    port, size = lab.http_port(), 3_000_000
    service = lab.ipvs.service(lab.vip(family), port, sched="rr")
    service.server(lab.rip(1, family), port, method=lab.method)
    fast.wait_for_hook(lab.director.ns, lab.tap("client"), lab.client_address(family),
                       lab.raw_vip(family))
    before = fast.read(lab.director.ns)
    with Http(lab.client, lab.vip(family), port) as http:
        got = http.request("PUT", "/", pattern(size))
        assert got == hashlib.sha256(pattern(size)).hexdigest().encode()
        assert http.request("GET", f"/bulk/{size}") == pattern(size)
    grown, stats = fast.grown(lab.director.ns, before), service.stats
    assert stats["inbytes"] > size and (stats["outbytes"] > size or lab.shape != "nat")
    # With --xdp the other ends leave nothing to devices.
    assert xdp.everywhere or stats["inbytes"] / stats["inpkts"] > 2000 or lab.shape != "nat"
    assert grown["fast"] > 10 * sum(v for k, v in grown.items() if k != "fast"), grown
    assert stats["inpkts"] + stats["outpkts"] >= grown["fast"] > \
        0.8 * (stats["inpkts"] + stats["outpkts"])


@pytest.mark.no_xdp("a device with XDP gets no segments to cut")
def test_too_large_with_a_header_more(tun, family):
    """A packet that a device shall segment is as large as possible: with an outer header
    its length would exceed the header's length field."""
    raw = ready(tun, TCP, family)
    client = admitted(raw)
    headers = 40 if family == 4 else 60
    payload = bytes(65520 - headers)
    total = len(payload) + 20
    p = client.packet(ACK, payload, csum=packet.fold(
        packet.pseudo(client.address, raw.vip, TCP, total)))
    # PACKET_VNET_HDR: compute the checksum, cut segments with 1,000 bytes of data.
    start = 14 + headers - 20
    offload = struct.pack("=BBHHHH", 1, 1 if family == 4 else 4, start + 20, 1000, start, 16)
    with tun.client.ns.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        s.setsockopt(263, 15, 1)
        with counted(raw, slow_route=1):
            s.sendto(offload + raw.client_tap.frame(p), ("eth0", 0))
            got = client.arrive(count=-(-len(payload) // 1000))
    assert b"".join(p.inner().payload for _, p in got) == payload


@pytest.mark.no_xdp("a frame has no priority")
def test_priority(nat):
    """Replies get the priority of forwarded packets, which is by type of service."""
    raw = ready(nat, UDP, 4)
    client = admitted(raw)
    count = " ".join(f"udp dport {client.sport} meta priority {n} counter;" for n in (0, 2, 6))
    nft(nat, "table netdev p { chain c { type filter hook egress device eth0 priority 0; "
             f"{count} }}; }}")
    try:
        def counts():
            return [int(n) for n in re.findall(
                r"packets (\d+)", nat.director.ns.nft("list table netdev p"))]
        for want in ("fast", "slow_policy"):
            if want == "slow_policy":
                set_policy(raw, fast_path=OFF)
            before = counts()
            for tos in (0, 0x08, 0x08, 0x10):
                with counted(raw, **{want: 1}):
                    client.reply(payload=b"z", ip_args={"tos": tos}).answered()
            assert [b - a for a, b in zip(before, counts())] == [1, 2, 1], want
    finally:
        nat.director.ns.nft("delete table netdev p")


@pytest.mark.no_xdp("frames do not wait in a queue")
def test_queued_by_time(nat, family):
    """fq keeps a packet until its departure time. The time of arrival, which a program
    may have asked for, must not be taken for that."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    ns = nat.director.ns
    for device in ("eth0", "eth1"):
        if ns.run(f"tc qdisc add dev {device} root fq", check=False).returncode:
            pytest.skip("this kernel has no fq: Debian's have (suite stages 6.12, 6.1)")
    try:
        with ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.SOL_SOCKET, 35, 1)      # SO_TIMESTAMPNS
            for _ in range(3):
                request_is(client, fast=1)
                reply_is(client, fast=1)
    finally:
        for device in ("eth0", "eth1"):
            ns.run(f"tc qdisc del dev {device} root", check=False)


# ---- what is left to the stack ----

def options(client, family):
    if family == 4:
        client.send(ACK, b"x", ip_args={"options": b"\x01\x01\x01\x00"})
    else:
        whole = client.packet(ACK, b"x")
        client.raw.client_tap.send(
            whole[:4] + struct.pack("!HBB", len(whole) - 32, packet.DSTOPTS, whole[7]) +
            whole[8:40] + bytes([whole[6], 0, 1, 4, 0, 0, 0, 0]) + whole[40:])


def fragments(client, family):
    whole = client.packet(ACK, pattern(1400))
    for piece in packet.fragment4(whole, 800) if family == 4 else packet.fragment6(whole, 1280):
        client.raw.client_tap.send(piece)


def ends_here(client, family):
    client.send(ACK, ttl=1)
    p = client.icmp()
    assert (p.type, p.code) == ((11, 0) if family == 4 else (3, 0))


def is_zero(client, family):
    client.send(ACK, ttl=0)


def bad_header_sum(client, family):
    client.send(ACK, ip_args={"csum": 0x1234})


def longer_than_it_is(client, family):
    whole = client.packet(ACK, b"x" * 20)
    client.raw.client_tap.send(whole[:-1])


def cut_short(client, family):
    whole = client.packet(ACK)
    args = client.address, client.raw.vip, client.raw.proto, whole[20 if family == 4 else 40:][:7]
    client.raw.client_tap.send(packet.ip(*args))


def hidden_header(client, family):
    """Enough bytes in the frame, but not in the packet."""
    whole = client.packet(ACK)
    l4 = whole[20 if family == 4 else 40:]
    client.raw.client_tap.send(packet.ip(client.address, client.raw.vip, client.raw.proto,
                                         l4[:4]) + l4[4:])


def version(client, family):
    whole = bytearray(client.packet(ACK))
    whole[0] = 0x55 if family == 4 else 0x70
    if family == 4:
        whole[10:12] = b"\0\0"
        whole[10:12] = struct.pack("!H", packet.checksum(bytes(whole[:20])))
    client.raw.client_tap.send(bytes(whole),
                               ethertype=packet.ETH_IP if family == 4 else packet.ETH_IP6)


def short_header_length(client, family):
    client.send(ACK, ip_args={"ihl": 4})


def vlan(client, family):
    frame = client.raw.client_tap.frame(client.packet(ACK))
    client.raw.client_tap._try(frame[:12] + b"\x81\0\0\7" + frame[12:])


def priority(client, family):
    """VLAN 0: the tag has only a priority, the packet belongs to the device itself."""
    frame = client.raw.client_tap.frame(client.packet(ACK, b"x"))
    client.raw.client_tap._try(frame[:12] + b"\x81\0\xe0\0" + frame[12:])


def broadcast(client, family):
    client.raw.client_tap.send(client.packet(ACK), mac=b"\xff" * 6)


def somebody_elses(client, family):
    client.raw.client_tap.send(client.packet(ACK), mac=b"\2\0\0\0\0\x99")


def first(client, family):
    client.sport += 1
    client.send(SYN, b"x")


def opening(client, family):
    first(client, family)


def unknown(client, family):
    client.sport += 1
    client.send(ACK)


def stream(client, family):
    client.raw.client_tap.send(packet.sctp_packet(client.address, client.sport, client.raw.vip,
                                                  client.raw.port))


def doff(client, family):
    client.send(ACK, doff=4)


# What: (families, protocols, counters, packets that arrive; None: any number).
LEFT = {
    options: ((4, 6), (UDP, TCP), {4: {"slow_header": 1}, 6: {"slow_protocol": 1}}, 1),
    fragments: ((4, 6), (UDP, TCP), {4: {"slow_header": 2}, 6: {"slow_protocol": 2}}, None),
    ends_here: ((4, 6), (UDP, TCP), {"slow_header": 1}, 0),
    is_zero: ((4, 6), (UDP,), {"slow_header": 1}, 0),
    bad_header_sum: ((4,), (UDP, TCP), {"slow_header": 1}, 0),
    longer_than_it_is: ((4, 6), (UDP, TCP), {"slow_header": 1}, 0),
    cut_short: ((4, 6), (UDP, TCP), {"slow_header": 1}, 0),
    hidden_header: ((4, 6), (UDP, TCP), {"slow_header": 1}, 0),
    version: ((4, 6), (UDP,), {"slow_header": 1}, 0),
    short_header_length: ((4,), (UDP,), {"slow_header": 1}, 0),
    vlan: ((4, 6), (UDP,), {"slow_header": 1}, 0),
    priority: ((4, 6), (UDP,), {"slow_header": 1}, 1),
    broadcast: ((4, 6), (UDP, TCP), {"slow_header": 1}, 0),
    somebody_elses: ((4, 6), (UDP,), {"slow_header": 1}, 0),
    first: ((4, 6), (UDP,), {"slow_unknown": 1}, 1),
    opening: ((4, 6), (TCP,), {"slow_opens": 1}, 1),
    unknown: ((4, 6), (TCP,), {"slow_unknown": 1}, 0),
    stream: ((4, 6), (UDP,), {"slow_protocol": 1}, 0),
    doff: ((4, 6), (TCP,), {"slow_header": 1}, 0),
}


@BOTH
@pytest.mark.parametrize("what", LEFT, ids=lambda f: f.__name__)
def test_left_to_the_stack(nat, family, proto, what):
    families, protos, want, arrives = LEFT[what]
    if family not in families or proto not in protos:
        pytest.skip(f"{what.__name__} is not for this family and protocol: see LEFT")
    raw = ready(nat, proto, family)
    client = admitted(raw)
    want = want.get(family, want)
    with counted(raw, **want):
        what(client, family)
        if arrives:
            client.arrive(arrives)
    if not arrives:
        raw.fence()
        assert bool(client.arrivals()) == (arrives is None)
    if what not in (first, opening, unknown):
        request_is(client, fast=1)      # the flow is unaffected


def test_states(lab, family):
    """A TCP connection changes its state as in the stack; packets that may open another
    connection are left to the stack."""
    raw = ready(lab, TCP, family)
    nat = lab.shape == "nat"
    client = raw.client()
    with counted(raw, slow_opens=1):
        client.open()
    assert client.state == "SYN_RECV"
    if nat:
        with counted(raw, slow_opens=1):
            client.reply(SYN | ACK).answered()
    request_is(client, fast=1)
    assert client.state == "ESTABLISHED"
    assert raw.dest(1)["active"] == 1
    for flags, want in ((PSH | ACK, "fast"), (SYN, "slow_opens"), (SYN | ACK, "slow_opens")):
        with counted(raw, **{want: 1}):
            client.send(flags)
            client.arrive()
    assert client.state == "ESTABLISHED"
    if nat:
        client.reply(ACK).answered()
        with counted(raw, fast=1):
            client.reply(FIN | ACK).answered()
        assert client.state == "FIN_WAIT"
        reply_is(client, fast=1)
    with counted(raw, fast=1):
        client.send(FIN | ACK)
        client.arrive()
    assert client.state == ("TIME_WAIT" if nat else "FIN_WAIT")
    assert raw.dest(1)["active"] == 0 and raw.dest(1)["inactive"] == 1
    assert client.row()["expires"] in range(100, 121)
    with counted(raw, fast=1):
        client.send(RST)
        client.arrive()
    assert client.state == "CLOSE" and client.row()["expires"] <= 10
    request_is(client, fast=1)
    # The port is reused: the stack opens another connection.
    before = raw.service.stats["conns"]
    with counted(raw, slow_opens=1):
        client.open()
    assert client.state == "SYN_RECV" and raw.service.stats["conns"] == before + 1


def test_too_big(lab, family):
    """A packet that just fits is fast; with one more byte the sender gets an error."""
    raw = ready(lab, UDP, family, (4,))
    client = raw.client()
    client.open()
    room = 1400
    if lab.shape == "tun":
        room = 1420 - (20 if family == 4 else 40)
    payload = pattern(room - (28 if family == 4 else 48) + 1)
    df = {"df": True} if family == 4 else {}
    with counted(raw, fast=1):
        client.send(payload=payload[:-1], ip_args=df)
        client.arrive()
    with counted(raw, slow_route=1):
        client.send(payload=payload, ip_args=df)
        p = client.icmp()
    assert p.rest & 0xffff == room
    client.nothing_arrives()
    if family == 4 and lab.shape != "tun":
        with counted(raw, slow_route=1):
            client.send(payload=payload)
            pieces = client.arrive(2)
        assert all(len(p.raw) <= 1400 for _, p in pieces)


@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
@pytest.mark.parametrize("kind", [*TUNNEL, "ipip"])
def test_what_a_tunnel_takes(tun, family, outer, kind):
    """The limit leaves room for each kind of tunnel header."""
    raw = ready(tun, UDP, family, (4,), server_family=outer,
                server={"tunnel": TUNNEL[kind]} if kind in TUNNEL else None)
    client = raw.client()
    client.open()
    header = {"ipip": 0, "gue": 12, "gue-csum": 12, "gre": 4, "gre-csum": 8}[kind]
    room = 1420 - (20 if outer == 4 else 40) - header
    payload = pattern(room - (28 if family == 4 else 48) + 1)
    df = {"df": True} if family == 4 else {}
    for size, want in ((-1, {"fast": 1}), (None, {"slow_route": 1})):
        with counted(raw, **want):
            client.send(payload=payload[:size], ip_args=df)
            if size:
                client.arrive()
            else:
                assert client.icmp().rest & 0xffff == room


def test_reply_too_big(nat, family):
    raw = ready(nat, UDP, family)
    client = raw.client()
    host = f"{client.address}/{32 if family == 4 else 128}"
    nat.director.ns.ip(f"route add {host} via {nat.cip(family)} mtu 1400")
    try:
        client.open()
        client.reply(payload=b"y").answered()
        payload = pattern(1400 - (28 if family == 4 else 48) + 1)
        df = {"df": True} if family == 4 else {}
        with counted(raw, fast=1):
            client.reply(payload=payload[:-1], ip_args=df).answered()
        with counted(raw, slow_route=1):
            client.reply(payload=payload, ip_args=df)
            p = raw.taps[1].expect(lambda p: p.type in ((3,) if family == 4 else (2,)))
        assert p.rest & 0xffff == 1400
    finally:
        nat.director.ns.ip(f"route del {host}")


@pytest.mark.parametrize("what", (options, ends_here, bad_header_sum, fragments),
                         ids=lambda f: f.__name__)
def test_odd_replies(nat, family, what):
    """As test_left_to_the_stack(), from the server."""
    if what is bad_header_sum and family == 6:
        pytest.skip("IPv6 headers have no checksum")
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    args = {ends_here: {"ttl": 1}, bad_header_sum: {"ip_args": {"csum": 1}}}.get(what, {})
    whole = client.reply_packet(payload=pattern(1400), **args)
    pieces = [whole]
    if what is fragments:
        pieces = packet.fragment4(whole, 800) if family == 4 else \
            packet.fragment6(whole, 1280)
    elif what is options and family == 4:
        pieces = [client.reply_packet(payload=b"y", ip_args={"options": b"\1\1\1\0"})]
    elif what is options:
        pieces = [whole[:4] + struct.pack("!HBB", len(whole) - 32, packet.DSTOPTS, whole[7]) +
                  whole[8:40] + bytes([whole[6], 0, 1, 4, 0, 0, 0, 0]) + whole[40:]]
    name = "slow_protocol" if family == 6 and what in (options, fragments) else "slow_header"
    with counted(raw, **{name: len(pieces)}):
        for piece in pieces:
            raw.taps[1].send(piece)
    raw.fence()
    got = raw.client_tap.take(lambda p: p.dst == client.address)
    assert bool(got) == (what in (options, fragments))
    assert {p.src for p in got} <= {raw.vip}
