# SPDX-License-Identifier: GPL-2.0
"""conn-state lazy: a connection has no entry before something shows that its client is there."""

import ipaddress
import os
import socket
import threading
from pathlib import Path

import pytest
from lab import genl, packet
from lab.counters import counts
from lab.farm import Farm, fresh_port, http_get
from lab.fast import ready
from lab.flows import NEW, set_policy
from lab.genl import PERSISTENT
from lab.packet import (
    ABORT,
    ACK,
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    ERROR,
    FIN,
    HEARTBEAT,
    INIT,
    INIT_ACK,
    PSH,
    RST,
    SCTP,
    SHUTDOWN_COMPLETE,
    SYN,
    TCP,
    UDP,
    icmp_error,
)
from lab.raw import Raw
from lab.rows import large
from lab.settings import setting
from lab.tables import moved, room_for

pytestmark = pytest.mark.usefixtures("only_l4lb")
LAZY = 1
# Flags of mh and sh: another server if the first choice has weight 0; the port decides, too.
FALLBACK, BY_PORT = 0x8, 0x10
PROTOCOLS = pytest.mark.parametrize("proto", (TCP, SCTP), ids=("tcp", "sctp"))
OPENS = {TCP: SYN, SCTP: (INIT,)}
AGREES = {TCP: SYN | ACK, SCTP: (INIT_ACK,)}
CONFIRMS = {TCP: ACK, SCTP: (COOKIE_ECHO,)}         # the client
ACCEPTS = {TCP: ACK, SCTP: (COOKIE_ACK,)}           # the real server
ABORTS = {TCP: RST, SCTP: (ABORT,)}


def lazy(lab, proto=TCP, family=4, numbers=(1, 2, 3), sched="mh", **options):
    raw = Raw(lab, proto, family, numbers, sched=sched, **options)
    set_policy(raw, conn_state=LAZY)
    return raw


def entries(raw):
    return raw.lab.conns(vip=raw.vip, vport=raw.port)


def from_vip(client, flags, payload=b""):
    """The server's packet FLAGS reaches the client as the VIP's, and its payload is right."""
    client.reply(flags, payload)
    p = client.answered()
    assert (p.src, p.sport) == (client.raw.vip, client.raw.port) and p.bad_checksum() is None
    assert payload in p.payload or client.raw.proto == SCTP


def handshake(client):
    """Up to the client's confirmation; the number of the server."""
    number = client.open()
    if client.raw.lab.shape == "nat":
        from_vip(client, AGREES[client.raw.proto])
    client.send(CONFIRMS[client.raw.proto])
    assert client.arrive()[0] == number
    return number


@pytest.mark.smoke
@PROTOCOLS
def test_entry_comes_with_the_proof(lab, proto, family):
    """Not with the first packets, as it does in the control; but the packets go the same way."""
    raw, control = lazy(lab, proto, family), Raw(lab, proto, family, sched="mh")
    eager, client = control.client(), raw.client()
    eager.open()
    assert eager.row()
    number = client.open()
    assert client.send() and client.arrive()[0] == number       # again
    assert client.row() is None
    if lab.shape == "nat":
        from_vip(client, AGREES[proto])
        client.send(CONFIRMS[proto])
        assert client.arrive()[0] == number
        assert client.row() is None and raw.service.stats["conns"] == 0
        from_vip(client, ACCEPTS[proto])
    else:
        client.send(CONFIRMS[proto])
        assert client.arrive()[0] == number
    # As after a SYN: an ACK is easily had.
    assert client.state == ("SYN_RECV" if proto == TCP else "ESTABLISHED")
    found = raw.dest(number)
    assert found["active"] == found["stats"]["conns"] == raw.service.stats["conns"] == 1
    # Each packet was counted, whether or not there was an entry.
    assert raw.service.stats["inpkts"] == 3
    assert raw.service.stats["outpkts"] == (2 if lab.shape == "nat" else 0)
    client.send(ACK, b"question")
    assert client.arrive()[0] == number
    assert client.state == "ESTABLISHED"
    if lab.shape == "nat":
        from_vip(client, ACK, b"answer")


@PROTOCOLS
def test_nothing_that_proves_nothing(nat, proto, family):
    """What a real server sends to an address that did not ask makes no entry, and is translated."""
    raw = lazy(nat, proto, family)
    client = raw.client()
    client.open()
    for flags in ((SYN | ACK, SYN, RST, RST | ACK, PSH) if proto == TCP else
                  ((INIT_ACK,), (INIT,), (ABORT,), (ERROR,), (HEARTBEAT,), (SHUTDOWN_COMPLETE,))):
        from_vip(client, flags)
        assert client.row() is None, flags
    # Nor anything that a client sends, with NAT.
    for flags in ((ACK, ACK | PSH, RST, FIN | ACK, SYN | ACK) if proto == TCP else
                  ((COOKIE_ECHO,), (DATA,), (ABORT,))):
        client.send(flags)
        client.arrive()
        assert client.row() is None, flags
    from_vip(client, ACCEPTS[proto])
    assert client.row()


@PROTOCOLS
@pytest.mark.parametrize("shape", ("dr", "tun"))
def test_clients_prove_where_replies_are_not_seen(shape, proto, request):
    """No entry with what opens, aborts or ends, one with what confirms or with data."""
    raw = lazy(request.getfixturevalue(shape), proto)
    for flags in ((SYN, SYN | ACK, RST, RST | ACK, FIN | ACK) if proto == TCP else
                  ((INIT,), (ABORT,), (ERROR,), (SHUTDOWN_COMPLETE,))):
        client = raw.client()
        client.send(flags)
        client.arrive()
        assert client.row() is None, flags
    for flags in ((ACK, ACK | PSH) if proto == TCP else ((COOKIE_ECHO,), (DATA,))):
        client = raw.client()
        client.send(flags)
        client.arrive()
        assert client.state == ("SYN_RECV" if proto == TCP else "ESTABLISHED"), flags
        client.send(flags, b"more")
        client.arrive()
        assert client.state == "ESTABLISHED", flags


@pytest.mark.parametrize("flags, payload, times, state", (
    (ACK | PSH, b"220 ready", 1, "ESTABLISHED"), (FIN | ACK, b"", 1, "TIME_WAIT"), (ACK, b"", 1, "SYN_RECV"),
    (ACK, b"", 5, "ESTABLISHED")), ids=("payload", "fin", "ack", "acks"))
def test_what_a_server_says_first(nat, family, flags, payload, times, state):
    """A payload follows a whole handshake: no full table drives that connection out. Bare ACKs also answer
    forged segments in mid-handshake, however many: their entry gives way, like one that is over."""
    raw, other = lazy(nat, TCP, family), Raw(nat, UDP, family)
    with room_for(nat, 1):
        client = raw.client()
        client.open()
        for _ in range(times):
            from_vip(client, flags, payload)
        assert client.state == state
        before = counts(nat)
        other.client().send()
        raw.fence()
        assert moved(nat, before) == ({"full": 1} if payload else {"evicted": 1})
        assert bool(client.row()) == bool(payload)


def test_short_connections_are_not_half_open(nat):
    """A server's FIN ends that, also as its first word or behind a bare ACK: from a quarter of conn_max on,
    half-open connections replace each other."""
    raw, control = lazy(nat, TCP, 4, (1,)), Raw(nat, TCP)
    with room_for(nat, 400):
        for number in range(100):
            client = raw.client()
            handshake(client)
            if number % 2:
                from_vip(client, ACK)
            from_vip(client, FIN | PSH | ACK, b"the time is")
            assert client.state == "TIME_WAIT"
        before = counts(nat)
        for _ in range(20):
            control.client().open()
        assert moved(nat, before) == {}
        for _ in range(100):
            control.client().open()
        assert moved(nat, before)["evicted"] > 0


def servers_of(raw, clients):
    """{(address, port): number of the server that its first packet goes to}"""
    found = {}
    for n in range(0, len(clients), 200):
        part = clients[n:n + 200]
        for client in part:
            client.send()
        raw.fence()
        found |= {((p.inner() if p.is_tunnel else p).src, (p.inner() if p.is_tunnel else p).sport): number
                  for number, tap in raw.taps.items() for p in tap.take(lambda p: True)
                  if p.proto == raw.proto or p.is_tunnel}
    return found


@pytest.mark.parametrize("sched, flags", (("mh", 0), ("mh", BY_PORT), ("sh", 0), ("sh", BY_PORT),
                                          ("dh", 0)), ids=("mh", "mh-port", "sh", "sh-port", "dh"))
def test_lazy_and_eager_choose_the_same(dr, sched, flags, family):
    """4,000 flows, those of a port of their own among them."""
    raw = Raw(dr, TCP, family, (1, 2, 3), sched=sched, flags=flags)
    clients = [raw.client(address, sport) for address in (dr.client_address(family) for _ in range(100))
               for sport in range(2000, 2040)]
    eager = servers_of(raw, clients)
    assert len(eager) == len(clients) and len(entries(raw)) == len(clients)
    with genl.L4lb(dr.director.ns) as l4lb:
        l4lb.kill(vip=raw.vip)
    set_policy(raw, conn_state=LAZY)
    assert servers_of(raw, clients) == eager
    assert entries(raw) == []
    assert len(set(eager.values())) == (1 if sched == "dh" else 3)


@pytest.mark.smoke
@pytest.mark.parametrize("family", (4, 6), ids=("v4", "v6"))
def test_requests(lab, family):
    """Real clients and real servers, and each connection is counted once."""
    port = lab.http_port()
    service = lab.ipvs.service(lab.vip(family), port, sched="mh", flags=BY_PORT)
    for number in (1, 2, 3, 4):
        service.server(lab.rip(number, family), port, method=lab.method)
    with genl.L4lb(lab.director.ns) as l4lb:
        l4lb.set_policy(service, conn_state=LAZY)
    got = [http_get(lab.client, lab.vip(family), port, f"/{n}") for n in range(40)]
    assert [body.decode() for _, body in got] == \
        [f"{name} /{n} {lab.cip(family)}\n" for n, (name, _) in enumerate(got)]
    assert len({name for name, _ in got}) > 1
    assert service.stats["conns"] == 40


@PROTOCOLS
def test_a_full_table(lab, proto):
    """A new connection works without an entry, from its handshake to its end. The control has
    no place."""
    raw, control, other = lazy(lab, proto), Raw(lab, proto, sched="mh"), Raw(lab, UDP)
    with room_for(lab, 1):
        proven = other.client()
        proven.open()
        for _ in range(9):
            proven.send(payload=b"more")
        proven.arrive(9)
        before = counts(lab)
        eager = control.client().send()
        eager.nothing_arrives()
        assert moved(lab, before)["full"] == 1
        client = raw.client()
        number = handshake(client)
        for _ in range(3):
            client.send(ACK, b"question")
            assert client.arrive()[0] == number
            if lab.shape == "nat":
                from_vip(client, ACK, b"answer")
        client.send(ABORTS[proto])
        assert client.arrive()[0] == number
        assert entries(raw) == [] and proven.row()
    # With room again, the next packet that proves something has an entry.
    client.send(ACK, b"question")
    client.arrive()
    if lab.shape == "nat":
        from_vip(client, ACK, b"answer")
    assert client.row()


def opens_eagerly(raw):
    """Has a new connection its entry with the first packet?"""
    client = raw.client()
    client.open()
    return client.row() is not None


@pytest.mark.smoke
def test_where_it_has_no_effect(lab, family):
    """While the service is persistent, its scheduler does not hash, a real server has a threshold,
    or connections are tracked: by commands that know nothing of it."""
    raw = lazy(lab, TCP, family)
    assert not opens_eagerly(raw)
    for change, back in (
            (lambda: raw.service.edit(sched="rr"), lambda: raw.service.edit(sched="sh")),
            (lambda: raw.service.edit(flags=PERSISTENT, timeout=60), lambda: raw.service.edit(flags=0)),
            (lambda: raw.edit(2, upper=9), lambda: raw.edit(2)),
            (lambda: raw.edit(2, upper=9), lambda: raw.remove(2)),
            (lambda: raw.add(2, upper=9), lambda: raw.edit(2))):
        change()
        assert opens_eagerly(raw)
        back()
        assert not opens_eagerly(raw)
    with setting(lab, "conntrack", 1):
        assert opens_eagerly(raw)
    assert not opens_eagerly(raw)
    set_policy(raw, conn_state=0)
    assert opens_eagerly(raw)


@PROTOCOLS
def test_servers_of_two_services(nat, proto, family):
    """Replies without a connection tell their service by the real server's address and port: in two
    such services, connections have their entries at once."""
    one = lazy(nat, proto, family, (1,))
    client = one.client()
    handshake(client)
    two = Raw(nat, proto, family, (1,), sched="mh", dport=one.dport)
    for state in (0, LAZY):     # an eager service's replies look the same
        set_policy(two, conn_state=state)
        assert opens_eagerly(one) and opens_eagerly(two)
    two.edit(1, method=3)
    assert not opens_eagerly(one)
    two.edit(1)
    assert opens_eagerly(one)
    two.remove(1)
    assert not opens_eagerly(one)
    two.add(1)
    assert opens_eagerly(one)
    two.service.delete()
    assert not opens_eagerly(one)
    from_vip(client, ACCEPTS[proto])
    assert client.row()


@PROTOCOLS
def test_a_server_goes_in_mid_handshake(nat, proto, family):
    """The client tries again and gets another one; what the old one says is no longer the VIP's."""
    raw = lazy(nat, proto, family)
    client = raw.client()
    gone = client.open()
    raw.remove(gone)
    client.reply(AGREES[proto], number=gone)
    assert client.answered().src == raw.address(gone)
    client.send()
    number = client.arrive()[0]
    assert number != gone
    client.reply(AGREES[proto], number=gone)
    assert client.answered().src == raw.address(gone)
    handshake(client)
    from_vip(client, ACCEPTS[proto])
    assert client.row()


@PROTOCOLS
def test_a_reply_of_another_server(nat, proto, family):
    """A client that has an entry is not believed to be another server's, to which the scheduler would send
    it now: that server cannot change the entry, and is not the VIP."""
    raw = lazy(nat, proto, family, flags=FALLBACK)
    client = raw.client()
    number = handshake(client)
    from_vip(client, ACCEPTS[proto])
    client.send(ACK, b"question")
    client.arrive()
    raw.edit(number, weight=0)
    other = raw.client(client.address, client.sport + 1).open()
    assert other != number and client.state == "ESTABLISHED"
    client.reply(FIN | ACK if proto == TCP else (ABORT,), number=other)
    assert client.answered().src == raw.address(other)
    assert client.state == "ESTABLISHED"
    # What belongs to the entry goes on.
    client.send(ACK, b"question")
    assert client.arrive()[0] == number


def test_a_connection_that_is_over(lab, family):
    """Its client is told so by this host, and is not sent to a server that does not know it."""
    raw = lazy(lab, TCP, family)
    client = raw.client()
    number = handshake(client)
    if lab.shape == "nat":
        from_vip(client, ACK)
    client.send(ACK, b"question")
    client.arrive()
    with setting(lab, "expire_nodest_conn", 1):
        raw.remove(number)
        client.send(ACK, b"goes on").nothing_arrives()
        assert raw.client_tap.expect(lambda p: p.dst == client.address and p.flags & RST, what="RST")


def test_a_server_with_weight_0(nat, family):
    """A handshake under way is lost, like one with a server that was removed."""
    raw = lazy(nat, TCP, family, flags=FALLBACK)
    client = raw.client()
    drained = client.open()
    raw.edit(drained, weight=0)
    assert client.send() and client.arrive()[0] != drained


def test_follows_the_configuration(nat, family):
    """Packets without a connection belong to the service only while it is lazy and has the server."""
    raw = lazy(nat, TCP, family, (1,))
    Raw(nat, TCP, family)       # keeps the hooks
    client = raw.client()
    vip, server = (raw.vip, raw.port), (raw.address(1), raw.dport)

    def source():
        client.reply(SYN | ACK, number=1)
        p = client.answered()
        return p.src, p.sport

    def stray():
        """Does a client's packet that begins nothing reach the server?"""
        client.send(ACK)
        raw.fence()
        raw.client_tap.drain()
        return len(client.arrivals()) == 1
    assert source() == vip and stray()
    for change, back in ((lambda: set_policy(raw, conn_state=0), lambda: set_policy(raw, conn_state=LAZY)),
                         (lambda: raw.remove(1), lambda: raw.add(1)),
                         (lambda: raw.service.edit(sched="wlc"), lambda: raw.service.edit(sched="mh"))):
        change()
        assert source() == server and not stray()
        back()
        assert source() == vip and stray()
    raw.edit(1, method=3)
    assert source() == server
    raw.edit(1)
    assert source() == vip
    raw.service.delete()
    assert source() == server and not stray()


def test_replies_while_a_service_is_added(nat):
    """Its real servers are known a moment before it has a pool to choose from: they may still send for old
    connections when a configuration is restored."""
    raw = Raw(nat, TCP)     # keeps the hooks
    port, over = nat.fresh_port(), threading.Event()
    servers = [genl.batch_server(address, raw.dport + 1) for address in
               (raw.address(1), *(f"10.9.{n >> 8}.{n & 255}" for n in range(600)))]
    stray = packet.tcp_packet(raw.address(1), raw.dport + 1, nat.client_address(), 4000, ACK, payload=b"old")

    def talk():
        """Whenever the command lets other processes run."""
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        while not over.wait(0.001):
            raw.taps[1].send(stray)
    thread = threading.Thread(target=talk)
    thread.start()
    try:
        with genl.L4lb(nat.director.ns) as l4lb:
            for _ in range(200):
                l4lb.set_services([genl.batch_entry(raw.vip, port, servers, sched="mh",
                                                    policy={"conn_state": LAZY})], genl.MERGE)
                nat.ipvs.service(raw.vip, port, add=False).delete()
    finally:
        over.set()
        thread.join()
    assert raw.client().open() == 1


def test_strangers_of_a_real_server(nat, family):
    """Another port, another protocol, and a client that would be sent to another server: unchanged."""
    raw = lazy(nat, TCP, family)
    sctp = Raw(nat, SCTP, family, (1, 2, 3), port=raw.port, dport=raw.dport, sched="mh")
    client = raw.client()
    number = client.open()
    for stranger in (sctp.client(client.address, client.sport),):
        stranger.reply((INIT_ACK,), number=number)
        assert stranger.answered().src == raw.address(number)
    other = 1 + number % 3
    client.reply(SYN | ACK, number=other)
    assert client.answered().src == raw.address(other)
    client.reply(SYN | ACK, number=number)
    assert client.answered().src == raw.vip


@pytest.mark.parametrize("sloppy", (0, 1), ids=("strict", "sloppy"))
def test_sloppy(lab, family, sloppy):
    """A segment in mid-connection goes to the server that its client has, with either setting."""
    raw = lazy(lab, TCP, family)
    client = raw.client()
    number = client.open()
    with setting(lab, "sloppy_tcp", sloppy):
        client.send(ACK, b"goes on")
        assert client.arrive()[0] == number
        assert (client.row() is None) == (lab.shape == "nat")


@PROTOCOLS
def test_broken_packets(lab, proto, family):
    """A wrong checksum, of what begins a connection and of what does not: left to the stack."""
    raw = lazy(lab, proto, family)
    before = counts(lab)
    for flags in (OPENS[proto], CONFIRMS[proto]):
        raw.client().send(flags, csum=0x1234).nothing_arrives()
    assert moved(lab, before) == {"checksum": 2} and entries(raw) == []


@pytest.mark.parametrize("drop", (1, 3), ids=("when-short", "always"))
def test_drop_packet(nat, drop):
    """The defence drops SYNs, and nothing of what goes on."""
    raw = lazy(nat, TCP, 4, (1,))
    with setting(nat, "am_droprate", 1), setting(nat, "drop_packet", drop):
        if drop == 3:
            raw.client().send().nothing_arrives()
        else:
            raw.client().open()
        client = raw.client()
        client.send(ACK, b"goes on")
        assert client.arrive()[1].payload == b"goes on"


def test_source_port_20(nat):
    """As ever, only a real server opens data connections of active FTP."""
    raw = lazy(nat, TCP, 4, (1,))
    client = raw.client(sport=20)
    client.send().nothing_arrives()
    client.send(ACK).nothing_arrives()


@pytest.mark.parametrize("schedule", (0, 1))
def test_errors_about_replies(lab, family, schedule):
    """A client's ICMP error reaches the real server, without an entry and without making one."""
    raw = lazy(lab, TCP, family)
    client = raw.client()
    number = client.open()
    if lab.shape == "nat":
        client.reply(SYN | ACK)
        reply = client.answered().raw
    else:
        reply = client.reply_packet(SYN | ACK)
    kind = (3, 1) if family == 4 else (1, 3)
    with setting(lab, "schedule_icmp", schedule):
        raw.client_tap.send(icmp_error(client.address, reply, kind))

        def is_it(p):
            p = p.inner() if p.is_tunnel else p
            return p.type == kind[0] and p.src == client.address
        p = raw.taps[number].expect(is_it, what="ICMP error")
        if lab.shape == "nat":
            quoted = p.inner()
            assert (quoted.src, quoted.sport) == (raw.address(number), raw.dport)
        assert client.row() is None
        # A wrong checksum stays where it is.
        before = counts(lab)
        raw.client_tap.send(icmp_error(client.address, reply, kind, csum=0x1234))
        raw.fence()
        assert raw.taps[number].take(is_it) == []
        assert moved(lab, before).get("checksum") == 1


def test_errors_about_requests(nat, family):
    """A real server's ICMP error comes from the VIP, and quotes what the client sent."""
    raw = lazy(nat, TCP, family)
    client = raw.client()
    client.send()
    number, request = client.arrive()
    kind = (3, 3) if family == 4 else (1, 4)
    raw.taps[number].send(icmp_error(raw.address(number), request.raw, kind))
    p = client.icmp()
    assert (p.src, p.type) == (raw.vip, kind[0])
    quoted = p.inner()
    assert (quoted.dst, quoted.dport) == (raw.vip, raw.port)
    # Of a client that would be sent to another server it is not ours.
    other = 1 + number % 3
    stray = bytearray(request.raw)
    raw.taps[other].send(icmp_error(raw.address(other), bytes(stray).replace(
        bytes_of(raw.address(number)), bytes_of(raw.address(other))), kind))
    assert client.icmp().src == raw.address(other)


def bytes_of(address):
    return ipaddress.ip_address(address).packed


def test_clients_and_checks_of_this_host(nat, family):
    """The director's own connections, to the VIP and to a real server, work: the first has its entry at
    once, the second none."""
    port = nat.http_port()
    service = nat.ipvs.service(nat.vip(family), port, sched="mh")
    for number in (1, 2, 3, 4):
        service.server(nat.rip(number, family), port, method=nat.method)
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_policy(service, conn_state=LAZY)
    for number in (1, 2, 3, 4):
        assert http_get(nat.director, nat.rip(number, family), port)[0] == f"rs{number}"
    assert service.stats["conns"] == 0
    assert http_get(nat.director, nat.vip(family), port)[1]
    assert service.stats["conns"] == 1


def test_a_server_on_this_host(lab, family):
    """It serves clients, each with one connection, and answers health checks of this host as itself."""
    port = lab.http_port()
    service = lab.ipvs.service(lab.vip(family), port, sched="mh", flags=BY_PORT)
    service.server(lab.dip(family), port, method=lab.method)
    with genl.L4lb(lab.director.ns) as l4lb:
        l4lb.set_policy(service, conn_state=LAZY)
    farm = Farm([lab.director], [port])
    try:
        for _ in range(5):
            assert http_get(lab.client, lab.vip(family), port)[0] == "director"
        assert service.stats["conns"] == 5
        for _ in range(5):
            assert http_get(lab.director, lab.dip(family), port)[0] == "director"
        assert service.stats["conns"] == 5
    finally:
        farm.stop()


def test_a_stray_segment_of_this_host(lab, family):
    """It is this host's, as it is without lazy, and goes to no real server."""
    raw = lazy(lab, TCP, family)
    af, source, port = (socket.AF_INET if family == 4 else socket.AF_INET6), lab.dip(family), fresh_port()
    client = raw.client(source, port)
    segment = client.packet(ACK, b"goes on")[20 if family == 4 else 40:]
    with lab.director.ns.enter(), socket.socket(af, socket.SOCK_RAW, TCP) as s:
        s.bind((source, 0))
        s.sendto(segment, (raw.vip, 0))
    client.nothing_arrives()
    assert client.row() is None


@pytest.mark.smoke
def test_fast_path(lab, family):
    """First packets take the stack, whatever fast-path says; the entry's packets do not."""
    raw = ready(Raw(lab, TCP, family, (1, 2, 3), sched="mh"))
    set_policy(raw, conn_state=LAZY, fast_path=NEW)
    client = raw.client()
    number = client.open()
    assert client.row() is None
    if lab.shape == "nat":
        from_vip(client, SYN | ACK)
    client.send(ACK)
    client.arrive()
    if lab.shape == "nat":
        from_vip(client, ACK, b"greeting")
    for n in range(5):
        client.send(ACK, b"question %d" % n)
        assert client.arrive()[0] == number
        if lab.shape == "nat":
            from_vip(client, ACK, b"answer %d" % n)
    with genl.L4lb(lab.director.ns) as l4lb:
        found = [c for c in l4lb.conns() if c["vport"] == raw.port]
    assert len(found) == 1 and found[0]["flags"] & genl.F_FAST_CLIENT
    assert bool(found[0]["flags"] & genl.F_FAST_SERVER) == (lab.shape == "nat")


@pytest.mark.parametrize("shape, sched, flags, many", (
    ("nat", "mh", SYN, 100_000), ("nat", "mh", ACK, 5_000), ("nat", "mh", SYN | ACK, 5_000),
    ("dr", "sh", SYN, 5_000), ("tun", "dh", SYN, 5_000), large("nat", "mh", SYN, 1_000_000)))
def test_floods(shape, sched, flags, many, request):
    """So many packets from as many addresses leave no entry and no memory."""
    lab = request.getfixturevalue(shape)
    raw = lazy(lab, TCP, sched=sched)
    raw.send_all(strangers(raw, flags, 1000))
    before = memory()
    raw.send_all(strangers(raw, flags, many))
    assert entries(raw) == [] and raw.service.stats["conns"] == 0
    assert raw.service.stats["inpkts"] == many + 1000
    after = memory()
    assert after - before < 1 << 20
    # The control keeps no more of them. What earlier tests have left may be freed meanwhile.
    set_policy(raw, conn_state=0)
    raw.send_all(strangers(raw, SYN, 20_000))
    assert len(entries(raw)) == 20_000 and memory() - after > 1 << 20


def strangers(raw, flags, count):
    """Packets of clients that do not exist; generated one by one."""
    for n in range(count):
        yield raw.client(f"100.{64 + (n >> 16)}.{n >> 8 & 255}.{n & 255}", 1024 + n % 60000).packet(flags)


def memory():
    """Bytes that the kernel's allocators have given away and cannot take back."""
    lines = [line.split() for line in Path("/proc/meminfo").read_text("ascii").splitlines()]
    return next(int(words[1]) << 10 for words in lines if words[0] == "SUnreclaim:")
