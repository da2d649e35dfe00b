# SPDX-License-Identifier: GPL-2.0
"""The fast path: that it sends what the slow path sends, whose packets it takes,
which ones it leaves alone, and that changes reach it in time. The counters of
/proc/net/l4lb say which path a packet took.
"""

import contextlib
import hashlib
import re
import socket
import struct
import time

import pytest

from lab import fast, genl, packet
from lab.flows import (GATEWAY, NEW, OFF, ON, TERM, TUNNEL, admitted, counted, for_a_term, growth,
                       host, image, nft, numbers_of, one, ready, reply_is, request_is, rule,
                       set_policy, side)
from lab.netns import run, wait_until
from lab.packet import ACK, FIN, PSH, RST, SYN, TCP, UDP, URG
from lab.raw import Raw
from lab.topology import SERVERS, Http, Tap, pattern
from test_settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")

ECE, CWR = 0x40, 0x80
MOVE = 2        # on-drain
BOTH = pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))


@pytest.fixture
def policy():
    """policy(raw, ...): sets that of the service."""
    return set_policy


# ---- the same packets ----

SHAPE_OF = {"nat": "nat", "dr": "dr", "ipip": "tun", "gue": "tun", "gue-csum": "tun",
            "gre": "tun", "gre-csum": "tun"}


def variety(proto, family):
    """Arguments of packets that both paths take."""
    ip_args = [{"tos": 0xb8}, {"tos": 0x28 | 2}, {"tos": 3}]
    ip_args += [{"df": True}, {"ident": 0}] if family == 4 else [{"flow": 0x12345}]
    yield from ({"payload": pattern(n)} for n in (0, 1, 2, 333, 1300))
    yield from ({"payload": b"ip", "ip_args": args} for args in ip_args)
    yield {"payload": b"far", "ttl": 255}
    yield {"payload": b"near", "ttl": 3}
    yield {"payload": b"wrong", "csum": 0x1234}
    if proto == UDP:
        yield {"payload": b"none", "csum": 0}
        yield {"payload": b"the length is wrong", "length": 9}
        yield {"payload": b"and again", "length": 4000}
    else:
        yield from ({"flags": ACK | more} for more in (PSH, URG, ECE, CWR))
        yield {"options": b"\1\1\x08\x0a" + b"time" * 2}
        yield {"payload": b"data that is none", "doff": 15}


def all_sorts(client, proto, family, fast_each, with_replies):
    """Send each; (what left, what was counted)."""
    raw, out = client.raw, []
    before = numbers_of(client)
    for kwargs in variety(proto, family):
        kwargs = {"flags": ACK, **kwargs}
        with counted(raw, **fast_each):
            raw.client_tap.send(client.packet(**kwargs))
            out.append(image(one(client.arrivals)[1]))
        if with_replies:
            with counted(raw, **fast_each):
                raw.taps[1].send(client.reply_packet(**kwargs))
                out.append(image(one(lambda: raw.client_tap.take(
                    lambda p: p.dst == client.address))))
    after = numbers_of(client)
    assert before[2] == after[2]
    assert {**before[3], "expires": 0} == {**after[3], "expires": 0}
    return out, growth(before, after)


def both_ways(lab, proto, family, **kwargs):
    raw = ready(lab, proto, family, **kwargs)
    client = admitted(raw)
    nat = lab.shape == "nat"
    taken = all_sorts(client, proto, family, {"fast": 1}, nat)
    with setting(lab, "fast_path", 0):
        # The device may be looked at for a moment, no more.
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


def poke(client):
    """Both devices have seen a packet by then; the counters before it."""
    before = fast.read(client.raw.lab.director.ns)
    client.send(ACK, b"poke").arrive()
    if client.raw.lab.shape == "nat":
        client.reply(ACK, b"poke").answered()
    time.sleep(0.02)
    return before


@pytest.mark.stock
@pytest.mark.smoke
@BOTH
def test_same_packets(lab, family, proto):
    """Byte for byte, and all counters."""
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
    """What a device has put behind a short packet is not sent on, nor counted."""
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


def test_watchers(lab, family):
    """Who listens at the director's device gets what came in, not what left."""
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
    """What the sender's stack leaves to devices to cut and to sum up: all of the data
    arrives, most of it by the fast path, in packets larger than any link takes."""
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
    assert stats["inbytes"] / stats["inpkts"] > 2000 or lab.shape != "nat"
    assert grown["fast"] > 10 * sum(v for k, v in grown.items() if k != "fast"), grown
    assert stats["inpkts"] + stats["outpkts"] >= grown["fast"] > \
        0.8 * (stats["inpkts"] + stats["outpkts"])


def test_too_large_with_a_header_more(tun, family):
    """A segment for a device to cut is as large as a packet can be; what an outer header
    would make of it, no length field can say."""
    raw = ready(tun, TCP, family)
    client = admitted(raw)
    headers = 40 if family == 4 else 60
    payload = bytes(65520 - headers)
    total = len(payload) + 20
    p = client.packet(ACK, payload, csum=packet.fold(
        packet.pseudo(client.address, raw.vip, TCP, total)))
    # PACKET_VNET_HDR: the sum is to be made, the segments have 1,000 bytes of data.
    start = 14 + headers - 20
    offload = struct.pack("=BBHHHH", 1, 1 if family == 4 else 4, start + 20, 1000, start, 16)
    with tun.client.ns.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        s.setsockopt(263, 15, 1)
        with counted(raw, slow_route=1):
            s.sendto(offload + raw.client_tap.frame(p), ("eth0", 0))
            got = client.arrive(count=-(-len(payload) // 1000))
    assert b"".join(p.inner().payload for _, p in got) == payload


def test_priority(nat):
    """Replies queue as forwarding has them queue: by their type of service."""
    raw = ready(nat, UDP, 4)
    client = admitted(raw)
    count = " ".join(f"udp dport {client.sport} meta priority {n} counter;" for n in (0, 2, 6))
    nft(nat, "table netdev p { chain c { type filter hook egress device eth0 priority 0; "
             f"{count} }}; }}")
    try:
        def counts():
            return [int(n) for n in re.findall(
                r"packets (\d+)", nat.director.ns.run("nft list table netdev p").stdout)]
        for want in ("fast", "slow_policy"):
            if want == "slow_policy":
                set_policy(raw, fast_path=OFF)
            before = counts()
            for tos in (0, 0x08, 0x08, 0x10):
                with counted(raw, **{want: 1}):
                    client.reply(payload=b"z", ip_args={"tos": tos}).answered()
            assert [b - a for a, b in zip(before, counts())] == [1, 2, 1], want
    finally:
        nat.director.ns.run("nft delete table netdev p")


def test_queued_by_time(nat, family):
    """fq keeps a packet until its time. When it came in is none, though there may be
    a program that wants to know it."""
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
    """VLAN 0: the tag says nothing but a priority, the packet is the device's own."""
    frame = client.raw.client_tap.frame(client.packet(ACK, b"x"))
    client.raw.client_tap._try(frame[:12] + b"\x81\0\xe0\0" + frame[12:])


def broadcast(client, family):
    client.raw.client_tap.send(client.packet(ACK), mac=b"\xff" * 6)


def somebody_elses(client, family):
    client.raw.client_tap.send(client.packet(ACK), mac=b"\2\0\0\0\0\x99")


def stranger(client, family):
    client.sport += 1
    client.send(SYN, b"x")


def stream(client, family):
    client.raw.client_tap.send(packet.sctp_packet(client.address, client.sport, client.raw.vip,
                                                  client.raw.port))


def doff(client, family):
    client.send(ACK, doff=4)


# What: (where; the protocols; the counter; packets that arrive, None: any).
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
    stranger: ((4, 6), (UDP, TCP), {"slow_unknown": 1}, 1),
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
    if what is not stranger:
        request_is(client, fast=1)      # nothing has become of the flow


def test_states(lab, family):
    """A TCP connection gets from state to state as by the stack; but what may ask for
    another one is the stack's."""
    raw = ready(lab, TCP, family)
    nat = lab.shape == "nat"
    client = raw.client()
    with counted(raw, slow_unknown=1):
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
    # The port is used again: another connection, by the stack.
    before = raw.service.stats["conns"]
    with counted(raw, slow_opens=1):
        client.open()
    assert client.state == "SYN_RECV" and raw.service.stats["conns"] == before + 1


def test_too_big(lab, family):
    """What fits is taken; of one more byte the sender is told."""
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
    """Each header needs its room."""
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


# ---- admission ----

@pytest.mark.smoke
@BOTH
def test_first_packets(nat, family, proto):
    """Each direction by itself, after one of its packets."""
    raw = ready(nat, proto, family)
    client = raw.client()
    if proto == TCP:
        client.establish()
    else:
        request_is(client, slow_unknown=1)
        request_is(client, fast=1)
        reply_is(client, slow_admit=1)
    request_is(client, fast=1)
    reply_is(client, fast=1)
    # Not the server's other traffic, nor another client's.
    if proto == UDP:
        request_is(raw.client(sport=client.sport), slow_unknown=1)
    with counted(raw, slow_unknown=1):
        raw.taps[1].send(packet.l4_packet(proto, raw.address(1), raw.dport + 1, client.address,
                                          client.sport))
        assert client.answered().src == raw.address(1)


def test_only_requests(nat, family):
    """A reply is not taken because requests are: its own way is judged."""
    raw = ready(nat, UDP, family)
    client = raw.client()
    for n in range(3):
        request_is(client, **({"fast": 1} if n else {"slow_unknown": 1}))
    # Nor is what somebody says in the service's name a reply; IPv4 does not even route it.
    raw.taps[1].send(packet.udp_packet(raw.vip, raw.port, client.address, client.sport, b"false"))
    raw.fence()
    raw.client_tap.drain()
    reply_is(client, slow_admit=1)
    reply_is(client, fast=1)


@BOTH
def test_first_packets_too(nat, family, proto, policy):
    """Of a service that wants it: the firewall does not see them; what is broken is
    left to the stack, which drops it."""
    raw = ready(nat, proto, family)
    policy(raw, fast_path=NEW)
    with rule(nat, "input", "meta l4proto { tcp, udp } drop"):
        client = raw.client()
        with counted(raw, fast=1):
            client.open()
        assert raw.service.stats["conns"] == raw.dest(1)["stats"]["inpkts"] == 1
        broken = raw.client()
        with counted(raw, slow_unknown=1):
            broken.send(payload=b"broken", csum=0x1234)
        broken.nothing_arrives()
        assert broken.row() is None
    policy(raw, fast_path=ON)
    with counted(raw, slow_unknown=1):
        raw.client().open()


@pytest.mark.timer
def test_a_new_rule_applies_after_a_term(nat):
    """At the latest; until then the flow goes on. All of them end, as those without
    a rule have to be judged again."""
    flows = []
    for family in (4, 6):
        raw = ready(nat, UDP, family)
        flows += [("input", admitted(raw)), ("output", admitted(raw)),
                  ("prerouting", admitted(raw)), (None, admitted(raw))]
    began = time.monotonic()
    rules = "".join(f"chain {hook} {{ type filter hook {hook} priority 0; " + "".join(
        f"udp sport {c.sport} drop; " for h, c in flows if h == hook) + "};"
        for hook in ("input", "output", "prerouting"))
    nft(nat, f"table inet t {{ {rules} }}")
    try:
        for _, client in flows:
            request_is(client, fast=1)
        last = {}
        while time.monotonic() < began + TERM + 2:
            for _, client in flows:
                client.send(ACK, b"on").reply(ACK, b"and on")
            time.sleep(0.25)
            for _, client in flows:
                if client.arrivals():
                    last[client] = time.monotonic() - began
        ended = [last[client] for hook, client in flows if hook]
        assert all(1 < end < TERM + 1 for end in ended), ended
        raw.drain()
        for hook, client in flows:
            client.send(ACK, b"after")
            if hook:
                client.nothing_arrives()
            else:
                client.arrive()
                request_is(client, fast=1)
                client.reply(ACK, b"once").answered()
                reply_is(client, fast=1)
    finally:
        nat.director.ns.run("nft delete table inet t")


@pytest.mark.timer
def test_a_term(lab, family):
    """Taken without a pause, it goes by the stack once in eight seconds, in each
    direction. So does one that has paused."""
    fast.quiet()
    raw = ready(lab, UDP, family)
    busy, idle = admitted(raw), admitted(raw)
    nat, before = lab.shape == "nat", fast.read(lab.director.ns)
    sent = 0
    for _ in for_a_term():
        busy.send(ACK, b"on").arrive()
        if nat:
            busy.reply(ACK, b"and on").answered()
        sent += 1 + nat
    grown = fast.grown(lab.director.ns, before)
    assert grown == {"slow_admit": 1 + nat, "fast": sent - 1 - nat}
    if nat:
        reply_is(idle, slow_admit=1)
        request_is(idle, slow_admit=1)
        reply_is(idle, fast=1)
    else:
        request_is(idle, slow_admit=1)
    request_is(idle, fast=1)


@pytest.mark.timer
def test_requests_do_not_renew_replies(nat, family=4):
    """Whose requests change between devices, and are judged each time, has no longer
    a term for replies."""
    raw = ready(nat, UDP, family)
    with side(nat) as tap:
        fast.wait_for_hook(nat.director.ns, tap, nat.client_address(family),
                           nat.raw_vip(family))
        client = admitted(raw)
        before = fast.read(nat.director.ns)
        for turns in for_a_term():      # noqa: B007 (how many there were)
            tap.send(client.packet(payload=b"side"))
            client.arrive()
            client.send(ACK, b"front").arrive()
            client.reply(ACK, b"reply").answered()
        grown = fast.grown(nat.director.ns, before)
        assert (grown["fast"], grown["slow_admit"]) == (turns - 1, 2 * turns + 1)


@pytest.mark.parametrize("hook", ("output", "postrouting"))
def test_dropped_requests(lab, family, hook):
    """What a rule drops on its way out is never admitted."""
    raw = ready(lab, UDP, family)
    other = raw.client()
    other.open()
    client = raw.client()
    match = f"udp sport {client.sport}" if lab.shape != "tun" else \
        f"{'ip' if family == 4 else 'ip6'} daddr {raw.address(1)}"
    with rule(lab, hook, f"{match} drop", 300):
        with counted(raw, slow_unknown=1, slow_admit=3):
            for _ in range(4):
                client.send(ACK, b"no")
        client.nothing_arrives()
    request_is(client, slow_admit=1)
    request_is(client, fast=1)


@pytest.mark.parametrize("hook", ("prerouting", "forward", "postrouting"))
def test_dropped_replies(nat, family, hook):
    raw = ready(nat, UDP, family)
    client = raw.client()
    client.open()
    sport = raw.port if hook == "postrouting" else raw.dport
    with rule(nat, hook, f"udp dport {client.sport} udp sport {sport} drop", 50):
        with counted(raw, slow_admit=3):
            for _ in range(3):
                client.reply(payload=b"no")
        raw.fence()
        assert raw.client_tap.take(lambda p: p.dst == client.address) == []
        request_is(client, fast=1)
    reply_is(client, slow_admit=1)
    reply_is(client, fast=1)


@pytest.mark.parametrize("hook", ("output", "postrouting"))
def test_queued(nat, family, hook):
    """What waits for a program's verdict is not admitted by it."""
    if nat.director.ns.run(["nft", "-c", "-f", "-"], check=False, text_input="table inet t { "
                           "chain c { type filter hook input priority 0; queue num 7; }; }"
                           ).returncode:
        pytest.skip("this kernel has no queue to programs: Debian's have (suite stages 6.12, 6.1)")
    raw = ready(nat, UDP, family)
    client = raw.client()
    with Queue(nat, 7) as queue, \
            rule(nat, hook, f"udp sport {client.sport} queue num 7", 300):
        for n in range(4):
            with counted(raw, **({"slow_admit": 1} if n else {"slow_unknown": 1})):
                client.send(ACK, b"wait")
                queue.accept()
                client.arrive()
    request_is(client, slow_admit=1)
    request_is(client, fast=1)


class Queue:
    """A program with an nfnetlink queue: everything passes, after a while."""

    def __init__(self, lab, number):
        self.sock = lab.director.ns.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
        self.sock.bind((0, 0))
        self.sock.settimeout(5)
        self.number = number
        # Bind (1); copy the headers (2) of 64 bytes.
        self._send(2, genl.attr(1, struct.pack("!BBH", 1, 0, 0)))
        self._send(2, genl.attr(2, struct.pack("!IB", 64, 2) + bytes(3)))

    def _send(self, kind, payload):
        body = struct.pack("!BBH", 0, 0, self.number) + payload
        self.sock.send(struct.pack("=IHHII", 16 + len(body), 3 << 8 | kind, 1, 0, 0) + body)

    def accept(self):
        while True:
            message = self.sock.recv(65536)
            if message[4:6] == struct.pack("=H", 3 << 8 | 0):
                break
        number = dict(genl.attributes(message[20:]))[1][:4]
        time.sleep(0.05)
        self._send(1, genl.attr(2, struct.pack("!I", 1) + number))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


def test_another_device(nat, family):
    """Packets of the flow that come in elsewhere are judged there."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    with side(nat) as tap:
        fast.wait_for_hook(nat.director.ns, tap, nat.client_address(family),
                           nat.raw_vip(family))
        for want in ("slow_admit", "fast"):
            with counted(raw, **{want: 1}):
                tap.send(client.packet(payload=b"side"))
                client.arrive()
        request_is(client, slow_admit=1)
        request_is(client, fast=1)
        with rule(nat, "prerouting", "iifname side0 drop"), counted(raw, slow_admit=1):
            tap.send(client.packet(payload=b"side"))
            client.nothing_arrives()
        # A client cannot play the server, nor the server the client.
        with counted(raw, slow_admit=1):
            tap.send(client.reply_packet(payload=b"false"))
        raw.fence()


def test_tracked_connections(nat, family):
    """Those of conntrack=1 are the firewall's business."""
    run("modprobe nf_conntrack")
    raw = ready(nat, UDP, family)
    with setting(nat, "conntrack", 1), \
            rule(nat, "forward", "ct state invalid accept"):
        client = admitted(raw)
        for _ in range(3):
            request_is(client, slow_policy=1)
            reply_is(client, slow_policy=1)


@pytest.mark.parametrize("direction", ("out", "in", "fwd"))
def test_ipsec(nat, family, direction):
    """With any policy in the namespace every packet has to be asked about."""
    nets = ("172.31.98.0/24", "172.31.99.0/24") if family == 4 else \
        ("2001:db8:98::/64", "2001:db8:99::/64")
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    done = nat.director.ns.run(f"ip xfrm policy add src {nets[0]} dst {nets[1]} dir {direction}",
                               check=False)
    if done.returncode:
        pytest.skip("this kernel has no IPsec policies: Debian's have (suite stages 6.12, 6.1)")
    try:
        request_is(client, slow_route=1)
        reply_is(client, slow_route=1)
    finally:
        nat.director.ns.run("ip xfrm policy flush")
    request_is(client, fast=1)
    client.reply(ACK, b"by another route").answered()
    reply_is(client, fast=1)


# ---- the director's own settings ----

@pytest.mark.smoke
@BOTH
def test_server_removed(nat, family, proto):
    Raw(nat, proto, family)         # without services nobody would look
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
def test_server_drains(nat, family, proto, policy):
    """Weight 0 keeps who is there; unless they are to move, which datagrams do at once."""
    raw = ready(nat, proto, family, (1, 2))
    client = admitted(raw)
    number = client.number
    raw.edit(number, weight=0)
    request_is(client, fast=1)
    assert client.number == number
    policy(raw, on_drain=MOVE)
    # A policy that has changed has the stack see all flows again.
    request_is(client, **{"slow_server" if proto == UDP else "slow_admit": 1})
    if proto == UDP:
        number = 3 - number
    request_is(client, fast=1)
    assert client.number == number


@BOTH
def test_service_policy(lab, family, proto, policy):
    """Off, and on again, from the next packet; whatever the namespace has."""
    raw = ready(lab, proto, family)
    client = admitted(raw)
    policy(raw, fast_path=OFF)
    for _ in range(2):
        request_is(client, slow_policy=1)
    if lab.shape == "nat":
        reply_is(client, slow_policy=1)
    for mode in (ON, OFF, NEW, OFF, 0):
        policy(raw, fast_path=mode)
        # What is set applies from the next packet, which therefore is the stack's.
        for want in ("slow_policy",) if mode == OFF else ("slow_admit", "fast"):
            request_is(client, **{want: 1})
    if lab.shape == "nat":
        reply_is(client, slow_admit=1)
        reply_is(client, fast=1)


def test_namespace_setting(nat, family, policy):
    """Off at once; then the devices are let go of. A service may have it on."""
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
        policy(raw, fast_path=ON)
        fast.ready(raw)
        for want in ("slow_admit", "fast"):
            request_is(client, **{want: 1})
        policy(raw, fast_path=0)
        request_is_slow(client)
        fast.wait_for_no_hook(nat.director.ns, raw.client_tap, source, vip)
    fast.ready(raw)
    request_is(client, slow_admit=1)
    request_is(client, fast=1)
    reply_is(client, slow_admit=1)
    reply_is(client, fast=1)
    # Without services nobody looks.
    raw.service.delete()
    fast.wait_for_no_hook(nat.director.ns, raw.client_tap, source, vip)


def request_is_slow(client):
    before = fast.read(client.raw.lab.director.ns)["fast"]
    client.send(ACK, b"slow").arrive()
    time.sleep(0.02)
    assert fast.read(client.raw.lab.director.ns)["fast"] == before


@pytest.mark.timer
def test_timeouts(nat, family, policy):
    """Fast packets keep a flow alive, of either direction; without any it ends."""
    raw = ready(nat, UDP, family)
    policy(raw, udp=2)
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
    """The number of connections is what limits, whichever path their packets take."""
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
    """To the server: the next packet takes the new one."""
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
        # With its device goes the route.
        lab.director.ns.ip("link set side0 down")
        client.send(ACK, b"home").arrive()


def test_gateway_of_the_other_family(nat):
    """IPv4 by way of an IPv6 neighbour: its link address, but IPv4's type of frame."""
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
    """What a lightweight tunnel puts in front is the stack's affair, either way."""
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
    """One that has to be asked for, or did not answer, is the stack's affair."""
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


@pytest.mark.smoke
def test_mtu_lowered(nat, family):
    """Of the route, of the device."""
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
    """After the device's MTU was changed those of IPv6 routes have followed."""
    for family in (4, 6):
        lab.director.ns.ip(f"route replace {host(lab.phantom(4, family), family)} dev {lab.back} "
                           "mtu 1400")


@pytest.mark.timer
def test_replies_follow_rules(nat, family):
    """The stack routes replies by their VIP: so they go there at once, also when the
    rule is made, changed or withdrawn while they are taken."""
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
                # The stack keeps routes by a rule that is older; so do we, for a term.
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
    """Within a term replies come by TAP."""
    def came():
        client.reply(ACK, b"reply")
        return tap.take(lambda p: p.dst == client.address)
    wait_until(came, TERM + 1, step=0.3)
    time.sleep(0.1)
    tap.drain()
    client.raw.drain()


def test_way_back_changed(nat, family):
    """The gateway of a client is another one; then it is gone."""
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
    """A real server on the director itself is behind the stack."""
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
    """The director takes a real server's address: the next packet is its stack's."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    ns, address = nat.director.ns, raw.address(1)
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    ns.ip(f"addr add {host(address, family)} dev lo" + (" nodad" if family == 6 else ""))
    try:
        with ns.socket(kind, socket.SOCK_DGRAM) as s:
            s.bind((address, raw.dport))
            s.settimeout(5)
            # From here on the loopback device has a neighbour for it. It is not looked at.
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
    """Nor is the loopback device one whose packets are looked at."""
    raw = ready(nat, UDP, family)
    kind = packet.ETH_IP if family == 4 else packet.ETH_IP6
    stray = packet.udp_packet(nat.cip(family), 7, raw.vip, raw.port)
    with counted(raw), nat.director.ns.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("lo", kind))
        s.send(bytes(12) + struct.pack("!H", kind) + stray)


def test_many_clients(nat, family):
    """One route has one number, however many flows take it."""
    raw = ready(nat, UDP, family)
    clients = [admitted(raw) for _ in range(300)]
    with counted(raw, fast=300):
        for client in clients:
            client.reply(ACK, b"2").answered()


def test_many_ways_back(nat, family=4):
    """More routes than there are numbers: those without one go by the stack. The
    last test here: a number is not used again for a while."""
    raw = ready(nat, UDP, family)
    ns = nat.director.ns
    clients = [raw.client() for _ in range(300)]
    try:
        ns.ip(*(f"route add {host(c.address, family)} via {nat.cip(family)}" for c in clients))
        for client in clients:
            client.open()
            client.reply(ACK, b"1").answered()
        before = fast.read(ns)
        for client in clients:
            client.reply(ACK, b"2")
            assert client.answered().src == raw.vip
        grown = fast.grown(ns, before)
        assert grown["fast"] >= 100 and sum(grown.values()) == 300, grown
    finally:
        ns.ip(*(f"route del {host(c.address, family)}" for c in clients))
    raw.client().open()
