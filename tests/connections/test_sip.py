# SPDX-License-Identifier: GPL-2.0
"""Persistence engine sip: each call of a client, by its Call-ID, stays with one real server."""

import errno
import random

import pytest
from lab import fast, genl, packet
from lab.counters import counts
from lab.flows import NEW, counted, set_policy
from lab.genl import ONEPACKET, PERSISTENT
from lab.packet import SCTP, SYN, TCP, UDP
from lab.raw import Raw, is_error
from lab.settings import setting
from lab.sip import Sip, message
from lab.sip_cases import CASES, OURS
from lab.tables import room_for

pytestmark = pytest.mark.usefixtures("sip_engine")


def told(client):
    """What the client gets."""
    return client.raw.client_tap.take(lambda p: p.dst == client.address and is_error(p))


@pytest.mark.smoke
def test_calls_of_a_client(lab, family):
    """All messages of a call get to one server, from whatever port; other calls of the same
    client are spread."""
    raw = Sip(lab, family)
    address = lab.client_address(family)
    first = raw.ask("one@host", address)
    assert [raw.ask("one@host", address) for _ in range(4)] == [first] * 4
    others = [raw.ask(f"call-{n}", address) for n in range(4)]
    assert others == [3 - first, first, 3 - first, first]
    assert [raw.ask(f"call-{n}", address, name=b"i:") for n in range(4)] == others
    assert raw.calls(client=address) == {
        "one@host": first, **{f"call-{n}": to for n, to in enumerate(others)}}
    assert raw.dest(1)["persistent"] + raw.dest(2)["persistent"] == 5


def test_known_flow(nat, family):
    """Packets of a known flow follow it, whatever Call-ID they have."""
    raw = Sip(nat, family)
    client = raw.client()
    first = raw.ask("one", client=client)
    assert [raw.ask(f"other-{n}", client=client) for n in range(3)] == [first] * 3
    assert raw.ask(None, client=client) == first
    assert raw.calls(client=client.address) == {"one": first}
    client.reply(payload=message("one")).answered()
    # After the answer ip_vs lists the old template beside a new one.
    assert "ASSURED" in [row["state"] for row in nat.conns(client=client.address, cport=0)]


def test_clients_apart(nat, family):
    """The same Call-ID of another client is another call, unless the netmask covers both."""
    raw = Sip(nat, family)
    one, other = (nat.client_address(family) for _ in range(2))
    assert raw.ask("call", one) == 3 - raw.ask("call", other)
    if family == 4:
        near, far = ("10.83.1.9", "10.83.1.77"), "10.84.1.9"
        raw = Sip(nat, family, netmask="255.255.255.0")
    else:
        near, far = ("2001:db8:c:ff83::9", "2001:db8:c:ff83::77"), "2001:db8:c:ff84::9"
        raw = Sip(nat, family, netmask=64)
    first = raw.ask("call", near[0])
    assert raw.ask("call", near[1]) == first
    assert raw.ask("call", far) == 3 - first
    assert raw.ask("another", near[1]) == first
    assert len(raw.calls()) == 2 and len(nat.conns(vip=raw.vip, cport=0, vport=raw.port)) == 3


def test_without_a_call_id(nat, family, backend):
    """A new flow without a Call-ID is dropped, and its sender is told nothing."""
    raw = Sip(nat, family)
    before = counts(nat) if backend.is_l4lb else None
    payloads = (b"", b"x", b"\r\n\r\n", message(None), message(b"c" * 256))
    for payload in payloads:
        client = raw.client()
        assert raw.ask_raw(payload, client=client) is None
        assert not told(client) and not client.rows()
    assert raw.calls() == {}
    if backend.is_l4lb:
        after = counts(nat)
        assert after["no_call_id"] - before["no_call_id"] == len(payloads)


def test_messages(nat, family, backend):
    """What has a Call-ID, and which one, as with in-tree ip_vs 6.12."""
    raw = Sip(nat, family)
    for name, (payload, theirs) in CASES.items():
        want = OURS.get(name, theirs) if backend.is_l4lb else theirs
        client = raw.client()
        arrived = raw.ask_raw(payload, client=client)
        got = [row["call"].encode() for row in nat.conns(client=client.address, cport=0)]
        assert got == ([] if want is None else [want]), name
        assert (arrived is None) == (want is None), name


def test_fragments(nat, family):
    """A message that comes in fragments is read as a whole."""
    raw = Sip(nat, family)
    address = nat.client_address(family)
    first = raw.ask("whole", address)
    client = raw.client(address)
    long = message("whole").replace(b"Call-ID", b"X: " + b"y" * 2000 + b"\r\nCall-ID")
    cut = packet.fragment4 if family == 4 else packet.fragment6
    for part in cut(client.packet(payload=long), 800):
        raw.client_tap.send(part)
    raw.fence()
    assert client.arrivals()[0][0] == first
    assert raw.calls(client=address) == {"whole": first}


def test_far_behind(nat, backend):
    """l4lb reads the first 4096 bytes of a message."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs reads all of it; runs with --backend l4lb")
    raw = Sip(nat)
    start = len(message("x").partition(b"Call-ID")[0])
    for size, found in ((4096, True), (4097, False)):
        padding = b"X: " + b"y" * (size - start - len(b"X: \r\nCall-ID: x\r")) + b"\r\n"
        payload = message("x").replace(b"Call-ID", padding + b"Call-ID")
        client = raw.client()
        for part in packet.fragment4(client.packet(payload=payload), 1000):
            raw.client_tap.send(part)
        raw.fence()
        assert bool(client.rows()) == found, size


def test_engine_comes_and_goes(nat, family):
    """Without the engine a client has one template; those of its calls are found again when
    the engine is back."""
    raw = Sip(nat, family)
    address = nat.client_address(family)
    before = [raw.ask(f"call-{n}", address) for n in range(4)]
    assert before in ([1, 2, 1, 2], [2, 1, 2, 1])
    assert raw.service.get()["pe"] == "sip"
    raw.service.edit(pe=None)
    assert "pe" not in raw.service.get()
    plain = [raw.ask(f"call-{n}", address) for n in range(4)]
    assert len(set(plain)) == 1 and raw.ask(None, address) == plain[0]
    raw.service.edit(pe="sip")
    assert [raw.ask(f"call-{n}", address) for n in range(4)] == before
    assert raw.calls(client=address) == {
        None: plain[0], **{f"call-{n}": to for n, to in enumerate(before)}}
    raw.service.edit(pe="")
    assert "pe" not in raw.service.get()


def test_servers_come_and_go(nat, family):
    """A drained server keeps its calls; a removed one loses them."""
    raw = Sip(nat, family)
    address = nat.client_address(family)
    first = raw.ask("call", address)
    raw.edit(first, weight=0)
    assert raw.ask("call", address) == first
    assert [raw.ask(f"new-{n}", address) for n in range(2)] == [3 - first] * 2
    raw.remove(first)
    assert raw.ask("call", address) == 3 - first
    raw.remove(3 - first)
    client = raw.client(address)
    assert raw.ask("none", client=client) is None and told(client)


def test_one_packet(nat, family, backend):
    """With one-packet scheduling the messages of one port are spread by their Call-IDs."""
    raw = Sip(nat, family, flags=ONEPACKET)
    client = raw.client()
    first = [raw.ask(f"call-{n}", client=client) for n in range(6)]
    assert first in ([1, 2] * 3, [2, 1] * 3)
    assert [raw.ask(f"call-{n}", client=client) for n in range(6)] == first
    assert raw.ask(None, client=client) is None
    assert not client.rows() and len(raw.calls()) == 6
    client.reply(payload=message("call-0"), number=first[0])
    p = client.answered()
    assert (p.src, p.sport) == (raw.vip, raw.port) and p.bad_checksum() is None
    client.reply(payload=message("new"), number=1)
    assert client.answered().src == raw.vip
    assert raw.ask("new", client=client) == 1
    states = {row["call"]: row["state"] for row in nat.conns(client=client.address, cport=0)}
    assert states.pop("call-0") == states.pop("new") == "ASSURED"
    assert set(states.values()) == {"NONE"} and not client.rows()
    client.reply(payload=message(None), number=1)
    # ip_vs leaves it as it is.
    assert client.answered().src == (raw.vip if backend.is_l4lb else raw.address(1))


def test_server_begins(nat, family):
    """What a real server sends first comes from the VIP, and its answer gets to that server."""
    raw = Sip(nat, family)
    client = raw.client()
    client.reply(payload=message("call"), number=2)
    p = client.answered()
    assert (p.src, p.sport) == (raw.vip, raw.port) and p.bad_checksum() is None
    assert [(row["state"], row["call"]) for row in
            nat.conns(client=client.address, cport=0)] == [("ASSURED", "call")]
    assert raw.ask("call", client=client) == 2
    assert raw.ask("call", client.address) == 2
    stranger = raw.client()
    stranger.reply(payload=message(None), number=2)
    assert stranger.answered().src == raw.address(2) and not stranger.rows()


def test_server_takes_a_call(nat, family):
    """A call goes to the real server that speaks last; a drained server may begin one, too."""
    raw = Sip(nat, family)
    one = raw.client()
    first = raw.ask("call", client=one)
    other = raw.client(one.address)
    other.reply(payload=message("call"), number=3 - first)
    assert other.answered().src == raw.vip
    assert raw.ask("call", client=other) == raw.ask("call", one.address) == 3 - first
    assert raw.ask("call", client=one) == first
    raw.edit(1, weight=0)
    client = raw.client()
    client.reply(payload=message("late"), number=1)
    assert client.answered().src == raw.vip
    assert raw.ask("late", client=client) == raw.ask("late", client.address) == 1


def test_engine_of_servers(nat, family):
    """A real server may begin calls as soon as its service has the engine."""
    raw = Sip(nat, family, pe="")
    raw.service.edit(pe="sip")
    client = raw.client()
    client.reply(payload=message("call"), number=2)
    assert client.answered().src == raw.vip
    raw.service.edit(pe="")
    client = raw.client()
    client.reply(payload=message("call"), number=2)
    assert client.answered().src == raw.address(2)


def test_any_port(nat, family):
    """Port 0: one call spans all ports."""
    raw = Sip(nat, family, port=0, dport=0, vip=nat.raw_vip(family))
    address = nat.client_address(family)
    try:
        raw.port = nat.fresh_port()
        first = raw.ask("call", address)
        raw.port = nat.fresh_port()
        assert raw.ask("call", address) == first
        assert raw.ask("other", address) == 3 - first
        assert {row["vport"] for row in nat.conns(client=address, cport=0)} == {0}
    finally:
        raw.service.delete()


def test_what_can_have_it(nat):
    """ip_vs takes it for any service; only persistent ones for UDP have a use for it."""
    address = nat.raw_vip(4)
    for options in ({"proto": TCP}, {"proto": SCTP}, {"proto": UDP}, {"proto": UDP, "port": 0},
                    {"proto": UDP, "flags": PERSISTENT | ONEPACKET},
                    {"addr": None, "fwmark": 77, "port": 0}):
        service = nat.ipvs.service(**{"addr": address, "port": 5060, "flags": PERSISTENT, "timeout": 60,
                                      "pe": "sip", **options})
        assert service.get()["pe"] == "sip"
        service.delete()
    for name in ("SIP", "nosuch", "p" * 15, "si", "sipp"):
        genl.is_refused(lambda name=name: nat.ipvs.service(
            address, 5060, proto=UDP, flags=PERSISTENT, timeout=60, pe=name), errno.ENOENT)
    genl.is_refused(lambda: nat.ipvs.service(address, 5060, proto=UDP, flags=PERSISTENT, pe="p" * 17),
                    errno.EINVAL)


def test_useless(nat, family):
    """TCP has no Call-ID: its packets are dropped. Without persistence the engine does nothing."""
    raw = Raw(nat, TCP, family, (1, 2), flags=PERSISTENT, timeout=300, pe="sip")
    client = raw.client()
    client.send(SYN)
    client.nothing_arrives()
    raw = Raw(nat, UDP, family, (1, 2), pe="sip")
    assert [raw.client().open() for _ in range(4)] in ([1, 2, 1, 2], [2, 1, 2, 1])


# ---- what only l4lb has


def ready_for_sip(lab, family):
    raw = fast.ready(Sip(lab, family))
    set_policy(raw, fast_path=NEW)
    return raw


@pytest.fixture
def ours(backend):
    if not backend.is_l4lb:
        pytest.skip("ip_vs has nothing of the kind; runs with --backend l4lb")


def test_listed(nat, family, ours, l4lb):
    raw = Sip(nat, family)
    client = raw.client()
    raw.ask("a@b", client=client)
    listed = [c for c in l4lb.conns(vip=raw.vip, vport=raw.port, protocol=UDP) if c.get("call_id")]
    assert [c["call_id"] for c in listed] == ["a@b"]


def test_fast_path(nat, family, ours):
    """New flows go through the stack even if the service wants them on the fast path; the
    packets that follow take it, whatever Call-ID they have."""
    raw = ready_for_sip(nat, family)
    address = nat.client_address(family)
    client, other = raw.client(address), raw.client(address)
    with counted(raw, slow_unknown=2):
        first = client.send(payload=message("call")).arrive()[0]
        assert other.send(payload=message("another")).arrive()[0] == 3 - first
    with counted(raw, fast=3):
        for call in ("call", "another", None):
            assert client.send(payload=message(call)).arrive()[0] == first


def test_health_check(nat, family, ours):
    """What a real server sends to the director itself is no call."""
    raw = Sip(nat, family)
    client = raw.client(nat.topo.dip(family))
    client.reply(payload=message("check"), number=1)
    raw.fence()
    assert not nat.conns(client=client.address) and not raw.calls()


def test_flood_of_calls(nat, family, ours):
    """A client with any number of Call-IDs gets no more templates than there may be."""
    raw = Sip(nat, family)
    client = raw.client()
    with room_for(nat, 1000):
        packets = [raw.client(client.address, 2000 + n).packet(payload=message(f"flood-{n}"))
                   for n in range(3000)]
        raw.send_all(packets)
        assert 200 <= raw.dest(1)["persistent"] + raw.dest(2)["persistent"] <= 250
        assert raw.ask("honest") in (1, 2)


def test_changes_under_traffic(nat, family, ours, seed):
    """Engine, one-packet scheduling and real servers come and go while both sides send."""
    chance = random.Random(seed)
    raw = Sip(nat, family)
    clients = [raw.client() for _ in range(4)]
    for turn in range(60):
        for _ in range(20):
            client = chance.choice(clients + [raw.client(clients[0].address)])
            payload = message(chance.choice((None, f"call-{chance.randrange(50)}")))
            if chance.random() < 0.7:
                client.send(payload=payload)
            else:
                client.reply(payload=payload, number=chance.choice((1, 2)))
        what = turn % 6
        if what < 4:
            raw.service.edit(pe=("", "sip")[what % 2], flags=PERSISTENT | (0, ONEPACKET)[what // 2])
        elif what == 4:
            raw.remove(2)
        else:
            raw.add(2)
    raw.drain()
    raw.service.edit(pe="sip", flags=PERSISTENT)
    assert raw.ask("last", clients[0].address) in (1, 2)
    raw.service.delete()


def test_limits(nat, family, ours):
    """A limit of the service counts its calls; what has no Call-ID uses up none of it."""
    raw = Sip(nat, family)
    set_policy(raw, limit_conns=3)
    for _ in range(5):
        assert raw.ask(None) is None
    assert None not in [raw.ask(f"call-{n}") for n in range(3)]
    assert raw.ask("one more") is None


def test_icmp_begins_no_call(nat, ours):
    """An ICMP error has no Call-ID."""
    raw = Sip(nat)
    client = raw.client()
    with setting(nat, "schedule_icmp", 1):
        reply = packet.udp_packet(raw.vip, raw.port, client.address, client.sport, b"x")
        raw.client_tap.send(packet.icmp_error(client.address, reply, (3, 3)))
        raw.fence()
    assert not client.rows() and not raw.calls()
