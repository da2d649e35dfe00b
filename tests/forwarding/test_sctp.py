# SPDX-License-Identifier: GPL-2.0
"""SCTP: its own checksum, associations and their states."""

import random
import socket

import pytest
from lab import packet
from lab.farm import pattern
from lab.netns import run, wait_until
from lab.packet import (
    ABORT,
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    ERROR,
    HEARTBEAT,
    INIT,
    INIT_ACK,
    SCTP,
    SHUTDOWN,
    SHUTDOWN_ACK,
    SHUTDOWN_COMPLETE,
)
from lab.raw import Raw, is_error
from lab.sctp import (
    CL,
    CR,
    DRESSED,
    ES,
    FAMILY,
    I1,
    IN,
    SR,
    Walker,
    associate,
    device_computes,
    errors,
    listener,
    received,
)
from lab.settings import setting

WALKS = {
    "client-closes": [("out", INIT_ACK), ("in", COOKIE_ECHO), ("out", COOKIE_ACK), ("in", DATA),
                      ("out", DATA), ("in", SHUTDOWN), ("out", SHUTDOWN_ACK),
                      ("in", SHUTDOWN_COMPLETE), ("in", INIT)],
    "server-closes": [("out", INIT_ACK), ("in", COOKIE_ECHO), ("out", COOKIE_ACK),
                      ("out", SHUTDOWN), ("in", SHUTDOWN_ACK), ("out", SHUTDOWN_COMPLETE)],
    "server-refuses": [("out", ABORT)],
    "client-aborts": [("out", INIT_ACK), ("in", COOKIE_ECHO), ("out", COOKIE_ACK), ("in", ABORT),
                      ("in", INIT), ("out", INIT_ACK)],
    "stale-cookie": [("out", INIT_ACK), ("in", COOKIE_ECHO), ("out", ERROR)],
    "restarts": [("out", INIT_ACK), ("in", COOKIE_ECHO), ("out", COOKIE_ACK), ("in", INIT),
                 ("out", INIT_ACK), ("in", COOKIE_ECHO), ("out", COOKIE_ACK)],
}


@pytest.mark.smoke
@pytest.mark.parametrize("walk", WALKS)
def test_states_nat(nat, family, walk):
    w = Walker(nat, family)
    for direction, event in WALKS[walk]:
        w.step(direction, event)


@pytest.mark.smoke
@pytest.mark.parametrize("shape", ("dr", "tun"))
def test_states_without_replies(topologies, shape, family, request):
    w = Walker(request.getfixturevalue(shape), family)
    for event in (COOKIE_ECHO, DATA, SHUTDOWN, SHUTDOWN_COMPLETE, INIT, COOKIE_ECHO, ABORT):
        w.step("in", event)


@pytest.mark.parametrize(("shape", "states"), (("nat", 13), ("dr", 6)))
def test_every_transition(shape, states, request):
    """One association walks until each chunk has occurred in each state."""
    assert len(Walker(request.getfixturevalue(shape), 4).everywhere()) == states


@pytest.mark.parametrize("event", DRESSED)
def test_the_chunk_that_counts(nat, event):
    """The first one decides; so does an ABORT behind a COOKIE ECHO or COOKIE ACK."""
    for chunks in DRESSED[event]:
        for before in ((), (("out", INIT_ACK),), (("out", INIT_ACK), ("in", COOKIE_ECHO),
                                                  ("out", COOKIE_ACK))):
            w = Walker(nat, 4)
            for direction, first in before:
                w.step(direction, first)
            w.step("in", event, chunks)


# ---- what starts an association


def test_only_init_starts(nat, family, backend):
    """Any other chunk is left to the director's own stack."""
    raw = Raw(nat, SCTP, family)
    for chunk in (DATA, INIT_ACK, COOKIE_ECHO, HEARTBEAT, SHUTDOWN_ACK, ABORT, 0xc1):
        raw.client().send((chunk,)).nothing_arrives()
    assert raw.service.stats["conns"] == 0
    client = raw.client()
    client.send((INIT,), vtag=0)
    assert client.arrive()[1].chunks == [INIT]


def test_sloppy(nat, family):
    """sloppy_sctp: any chunk but ABORT starts one; DATA starts an established one."""
    raw = Raw(nat, SCTP, family)
    with setting(nat, "sloppy_sctp", 1):
        raw.client().send((ABORT,)).nothing_arrives()
        for chunk, state in ((DATA, ES), (INIT, I1), (COOKIE_ECHO, CR), (SHUTDOWN, SR)):
            client = raw.client()
            client.send((chunk,))
            client.arrive()
            assert client.state == state


def test_damaged(nat, family, backend):
    """A packet with a wrong CRC, or without a chunk, starts nothing. On an
    association the former is forwarded with its error, for the receiver to find;
    the latter is dropped."""
    if not backend.is_l4lb:
        pytest.skip("documented: ip_vs forwards it, with a CRC made right; runs with "
                    "--backend l4lb")
    raw = Raw(nat, SCTP, family)
    raw.client().send((INIT,), csum=0x12345678).nothing_arrives()
    client = raw.client()
    empty = packet.ip(client.address, raw.vip, SCTP, packet.sctp(client.sport, raw.port, ()))
    raw.client_tap.send(empty)
    client.nothing_arrives()
    assert raw.service.stats["conns"] == 0
    client.establish()
    raw.client_tap.send(empty)
    client.nothing_arrives()
    whole = client.packet((DATA,), b"some data", vtag=7)
    spoilt = whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:]
    raw.client_tap.send(spoilt)
    (_, got), = wait_until(client.arrivals, 5, what="the damaged packet")
    assert "transport checksum" in got.bad_checksum()


@pytest.mark.ip_vs_differs("it does not forward SCTP whose header is in pieces")
def test_header_in_pieces(nat, family):
    """An INIT in fragments of eight bytes: its header is not contiguous, yet its
    CRC is checked and updated. A damaged one starts nothing."""
    raw = Raw(nat, SCTP, family)
    for csum in (None, 0x12345678):
        client = raw.client()
        whole = client.packet((INIT,), b"parameters", csum=csum)
        for part in packet.fragment4(whole, 28) if family == 4 else packet.fragment6(whole, 56):
            raw.client_tap.send(part)
        if csum is None:
            got = []

            def together():
                got.extend(p for _, p in client.arrivals())
                return sum(len(p.l4) for p in got) == len(whole) - (20 if family == 4 else 40)

            wait_until(together, 5, what="all of the INIT")
            body = b"".join(p.l4 for p in sorted(got, key=lambda p: p.offset))
            assert packet.l4_right(client.address, raw.address(1), SCTP, body)
            assert body[:4] == (client.sport << 16 | raw.dport).to_bytes(4, "big")
        else:
            client.nothing_arrives()
    assert raw.service.stats["conns"] == 1


def test_chunk_lengths(nat):
    """Wrong chunk lengths: too small, or beyond the packet."""
    for length in (0, 1, 3, 5, 400, 0xffff):
        for chunk in (INIT, COOKIE_ECHO):
            raw = Raw(nat, SCTP, 4)
            client = raw.client()
            client.open()
            client.send((chunk, ABORT), length=length)
            client.arrive()
            assert client.state in (IN, CL)


# ---- NAT


@pytest.mark.parametrize("size", (0, 1, 3, 4, 31, 32, 700, 1400))
def test_crc_after_nat(nat, family, size):
    """Right in both directions, for every length; arrive() and answered() check it."""
    raw = Raw(nat, SCTP, family)
    client = raw.client()
    client.establish()
    body = random.Random(size).randbytes(size)
    client.send((DATA,), body)
    _, p = client.arrive()
    assert (p.dst, p.dport) == (raw.address(1), raw.dport)
    assert p.payload == body
    client.reply((DATA,), body)
    got = client.answered()
    assert (got.src, got.sport) == (raw.vip, raw.port) and got.payload == body
    assert got.bad_checksum() is None


# ---- as with any protocol


@pytest.mark.smoke
@pytest.mark.parametrize("shape", ("nat", "tun", "dr"))
def test_forwarding(topologies, shape, family):
    lab = topologies[shape]
    lab.flush()
    raw = Raw(lab, SCTP, family, (1, 2, 3), sched="rr")
    clients = [raw.client() for _ in range(6)]
    got = [c.open() for c in clients]
    assert sorted(got) == [1, 1, 2, 2, 3, 3]
    for client, number in zip(clients, got):
        client.send((DATA,), b"more")
        assert client.arrive()[0] == number
    assert {r["proto"] for r in lab.conns(vip=raw.vip, vport=raw.port)} == {"SCTP"}


@pytest.mark.parametrize("mode, anew", ((1, True), (0, False)))
def test_port_used_anew(nat, family, mode, anew):
    """An INIT on a closed association goes where the scheduler says; on an open
    one, or with conn_reuse_mode 0, to the server that has it."""
    with setting(nat, "conn_reuse_mode", mode):
        raw = Raw(nat, SCTP, family, (1, 2))
        client = raw.client()
        first = client.establish()
        client.send((INIT,))
        assert client.arrive()[0] == first
        client.send((ABORT,))
        client.arrive()
        assert client.state == CL
        client.send((INIT,))
        assert (client.arrive()[0] != first) is anew


def test_stray_reply(nat, family):
    """nat_icmp_send: a real server's packet without an association is refused,
    unless it is an ABORT."""
    raw = Raw(nat, SCTP, family)
    client = raw.client()
    with setting(nat, "nat_icmp_send", 1):
        client.reply((ABORT,))
        raw.fence()
        assert raw.taps[1].take(is_error) == []
        client.reply((DATA,))
        wait_until(lambda: raw.taps[1].take(is_error), 5, what="an ICMP error at the server")


# ---- the kernel's own SCTP at both ends


@pytest.mark.timer
@pytest.mark.parametrize("offload", (True, False), ids=("offload", "computed"))
@pytest.mark.parametrize("shape", ("nat", "tun", "dr"))
def test_associations(topologies, shape, family, offload):
    """20 clients one after the other: associations spread by rr, data of many
    lengths both ways, an orderly end, and no checksum error. Hosts leave CRCs
    to their devices; if the director's devices do not compute them, the director
    must do so before they leave."""
    with device_computes(topologies[shape], offload):
        associate(topologies[shape], family)


def test_local_server(nat, family):
    """NAT to a server on the director, on another port: a CRC that the stack has
    not computed yet is left to it."""
    port, dport = nat.fresh_port(), nat.fresh_port() + 20000
    run(["modprobe", "sctp"])
    before = errors(nat)
    service = nat.ipvs.service(nat.vip(family), port, proto=SCTP, sched="rr")
    service.server(nat.dip(family), dport, method=nat.method)
    with listener(nat.director.ns, family, nat.dip(family), dport) as server, \
            nat.client.ns.socket(FAMILY[family], socket.SOCK_STREAM, socket.IPPROTO_SCTP) as client:
        client.settimeout(10)
        client.bind((nat.cip(family), 0))
        client.connect((nat.vip(family), port))
        with server.accept()[0] as at_server:
            for size in (1, 1000, 5000):
                for here, there in ((client, at_server), (at_server, client)):
                    here.sendall(pattern(size))
                    assert received(there, size) == pattern(size)
    assert errors(nat) == before
