# SPDX-License-Identifier: GPL-2.0
"""Flows that begin at ingress (fast-path new, or fast_path=2): when they begin in the
stack instead, what follows their first packet, and that limits and defences apply
to them, too.
"""

import contextlib
import threading
import time

import pytest
from lab import fast, packet
from lab.counters import counts
from lab.flows import (
    BOTH,
    NEW,
    OFF,
    ON,
    counted,
    for_a_term,
    host,
    reply_is,
    request_is,
    rule,
    set_policy,
    side,
    watched,
)
from lab.genl import ONEPACKET, PERSISTENT
from lab.ingress import at_ingress, begun, established, ready
from lab.netns import join_all, pinned, run, wait_until
from lab.packet import ACK, RST, SYN, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from lab.settings import setting
from lab.tables import room_for

pytestmark = pytest.mark.usefixtures("only_l4lb")

ECE, CWR = 0x40, 0x80
UNKNOWN = "slow_unknown"


@pytest.mark.smoke
def test_who_stands_by(nat, family):
    """A standby director, without the VIP, routes packets on; with the VIP, on a device
    or as a local route, flows begin."""
    raw = ready(nat, UDP, family)
    ns, to = nat.director.ns, host(raw.vip, family)
    mac = ":".join(f"{b:02x}" for b in nat.client.mac())

    def passes_by():
        client = raw.client()
        with counted(raw, slow_unknown=1):
            client.send(payload=b"on")
            # To the VIP's owner, on the network that it came from.
            p = raw.client_tap.expect(lambda p: p.dst == raw.vip and p.payload == b"on")
        assert p.ttl == 63 and client.row() is None and client.arrivals() == []

    with at_ingress(nat):
        begun(raw)
        ns.ip(f"addr del {to} dev eth0",
              f"neigh replace {raw.vip} lladdr {mac} dev eth0 nud permanent")
        try:
            passes_by()
            ns.ip(f"route add local {to} dev lo", family=family)
            begun(raw)
            ns.ip(f"route del local {to} dev lo", family=family)
            passes_by()
        finally:
            ns.ip(f"neigh del {raw.vip} dev eth0", f"addr add {to} dev eth0" +
                  (" nodad preferred_lft 0" if family == 6 else ""))
        begun(raw)


@contextlib.contextmanager
def marked(lab, family):
    lab.ipvs.service(fwmark=99, af=10 if family == 6 else 2).server(lab.phantom(2, family))
    try:
        yield
    finally:
        lab.ipvs.service(fwmark=99, af=10 if family == 6 else 2, add=False).delete()


@contextlib.contextmanager
def ready_to_drop(lab, _):
    with setting(lab, "amemthresh", 0), setting(lab, "drop_packet", 1):
        yield


@contextlib.contextmanager
def tracking(lab, _):
    run("modprobe nf_conntrack")
    with setting(lab, "conntrack", 1):
        yield


@pytest.mark.waits
@BOTH
@pytest.mark.parametrize("context", (marked, ready_to_drop, tracking), ids=lambda f: f.__name__)
def test_meanwhile_by_the_stack(nat, family, proto, context):
    """Flows begin in the stack while there is a service by mark, a flood or conntrack=1."""
    raw = ready(nat, proto, family)
    with at_ingress(nat):
        begun(raw)
        with context(nat, family), watched(raw, "input") as seen:
            for n in range(2):
                begun(raw, slow_unknown=1)
                assert seen() == [n + 1]
        begun(raw)


def test_mark_of_the_other_family(nat, family):
    """A service by mark keeps flows of the other family from ingress, too."""
    raw = ready(nat, UDP, family)
    with at_ingress(nat):
        with marked(nat, 10 - family):
            begun(raw, slow_unknown=1)
        begun(raw)


def test_one_packet_service(nat, family):
    raw = ready(nat, UDP, family, (1, 2), flags=ONEPACKET)
    with at_ingress(nat):
        client, got = raw.client(), []
        for n in range(4):
            with counted(raw, slow_unknown=1):
                client.send(payload=b"%d" % n)
                got.append(client.arrive()[0])
        assert got in ([1, 2, 1, 2], [2, 1, 2, 1]) and client.row() is None
        raw.service.edit(flags=0)
        begun(raw)


@pytest.mark.emulated
def test_becomes_a_one_packet_service(nat, family, request):
    """The flag changes while flows begin."""
    raw = ready(nat, UDP, family)
    stop = threading.Event()

    def edit():
        with Editor(nat, raw) as service:
            while not stop.is_set():
                service.edit(flags=ONEPACKET)
                service.edit(flags=0)

    with at_ingress(nat):
        before = fast.read(nat.director.ns)["fast"]
        thread = threading.Thread(target=edit)
        thread.start()
        try:
            client = raw.client()
            end = time.monotonic() + amount(request.config, few=1, pairs=3)
            for client.sport in range(1024, 65536):
                client.send(payload=b"new")
                if time.monotonic() > end:
                    break
        finally:
            stop.set()
            join_all(thread)
        raw.drain()
        assert fast.read(nat.director.ns)["fast"] > before
        begun(raw)


class Editor:
    """RAW's service, through another netlink socket."""

    def __init__(self, lab, raw):
        from lab import genl
        self.ipvs = genl.Ipvs(lab.director.ns)
        self.service = self.ipvs.service(raw.vip, raw.port, proto=raw.proto, add=False,
                                         **raw.service.options)

    def __enter__(self):
        return self.service

    def __exit__(self, *_):
        self.ipvs.close()


def none_at_all(raw):
    raw.remove(1)


def drained(raw):
    raw.edit(1, weight=0)


def full(raw):
    raw.edit(1, upper=1, lower=0)


@pytest.mark.waits
@BOTH
@pytest.mark.parametrize("what", (none_at_all, drained, full), ids=lambda f: f.__name__)
def test_no_server(nat, family, proto, what):
    """The stack refuses the flow, and counts it once."""
    raw = ready(nat, proto, family)
    with at_ingress(nat):
        begun(raw)
        what(raw)
        client, before = raw.client(), counts(nat)
        with counted(raw, slow_unknown=1):
            client.send(payload=b"x")
            assert client.icmp().type == (3 if family == 4 else 1)
        assert client.row() is None
        assert counts(nat)["no_dest"] == before["no_dest"] + 1
        if what is not none_at_all:
            raw.edit(1)
        else:
            raw.add(1)
        fast.settle()       # none is tried at ingress in the tick of a refusal
        begun(raw)


def test_no_room_for_equal_replies(nat):
    """One client's socket has as many flows with equal replies as there may be. Its next one is
    refused; in the same tick, flows of other clients of that service begin here."""
    first = ready(nat, UDP, 4)
    raws = [first, *(Raw(nat, UDP, 4, dport=first.dport) for _ in range(16))]
    one = first.client()
    same = [one, *(raw.client(one.address, one.sport) for raw in raws[1:])]
    with at_ingress(nat):
        for client in same[:16]:
            client.open()
            client.prove()
        others = [raws[16].client() for _ in range(20)]
        with counted(raws[16], fast=20, slow_unknown=20):
            for other in others:
                same[16].send()
                other.send()
        assert same[16].row() is None and all(other.row() for other in others)


def test_thresholds(nat, family):
    """Flows that begin at ingress count for thresholds as others do."""
    raw = ready(nat, UDP, family, (1, 2), server={"upper": 2, "lower": 1})
    with at_ingress(nat):
        got = [begun(raw).number for _ in range(4)]
        assert sorted(got) == [1, 1, 2, 2]
        late = raw.client()
        late.send()
        assert late.icmp()


@pytest.mark.waits
@BOTH
def test_whose_word_counts(nat, family, proto):
    """The service's setting overrides the namespace's, from the next packet on."""
    raw = ready(nat, proto, family)
    source, vip = nat.client_address(family), nat.raw_vip(family)
    # No service begins connections at ingress: a SYN is not even looked up.
    none = "slow_opens" if proto == TCP else UNKNOWN
    for mode, policy, want in ((2, 0, "fast"), (2, ON, UNKNOWN), (2, OFF, UNKNOWN),
                               (2, NEW, "fast"), (1, 0, none), (1, NEW, "fast"),
                               (1, ON, none), (0, NEW, "fast"), (0, ON, none)):
        with setting(nat, "fast_path", mode):
            set_policy(raw, fast_path=policy)
            fast.wait_for_hook(nat.director.ns, raw.client_tap, source, vip)
            time.sleep(0.03)
            client = begun(raw, **{want: 1})
            if policy == OFF:
                if proto == UDP:
                    request_is(client, slow_policy=1)
            elif proto == UDP:
                request_is(client, fast=1)


def test_another_service_asks_for_it(nat, family):
    """Only flows of the service with fast-path new begin at ingress."""
    raw, other = ready(nat, UDP, family), Raw(nat, UDP, family)
    set_policy(other, fast_path=NEW)
    time.sleep(0.03)
    begun(other)
    begun(raw, slow_unknown=1)


def test_persistent(nat, family):
    """A client's flows get the same server, whichever way they begin."""
    raw = ready(nat, TCP, family, (1, 2), flags=PERSISTENT, timeout=100)
    with at_ingress(nat):
        first, other = begun(raw), begun(raw)
        assert first.number != other.number
        for client in (first, other):
            again = raw.client(client.address)
            with counted(raw, fast=1):
                again.open()
            assert again.number == client.number
            assert [r["cport"] for r in nat.conns(client=client.address, vport=raw.port)
                    if r["cport"] == 0] == [0]
    with setting(nat, "fast_path", 0):
        again = raw.client(first.address)
        again.open()
        assert again.number == first.number


def test_nat_icmp_send(nat, family):
    """An unsolicited packet from a real server's service port is refused."""
    raw = ready(nat, UDP, family)
    other = Raw(nat, UDP, family)
    server = raw.taps[1]
    stray = packet.udp_packet(raw.address(1), raw.dport, other.vip, other.port, b"stray")
    with at_ingress(nat):
        fast.wait_for_hook(nat.director.ns, server, raw.address(1), other.vip)
        server.drain()
        with setting(nat, "nat_icmp_send", 1):
            begun(raw)
            with counted(raw, slow_unknown=1):
                server.send(stray)
                assert server.expect(lambda p: p.dst == raw.address(1) and p.proto != UDP).code \
                    in (3, 4)
            assert nat.conns(vip=other.vip, vport=other.port) == []
        with counted(raw, fast=1):
            server.send(stray)
            server.expect(lambda p: p.payload == b"stray")
    assert len(nat.conns(vip=other.vip, vport=other.port)) == 1


# ---- after the first packet ----

@pytest.mark.smoke
@BOTH
def test_replies(nat, family, proto):
    """The first reply goes through the stack and its firewall; later ones are fast."""
    raw = ready(nat, proto, family)
    with at_ingress(nat):
        client = begun(raw)
        if proto == TCP:
            with counted(raw, slow_opens=1):
                client.reply(SYN | ACK).answered()
        with rule(nat, "forward", "meta l4proto { tcp, udp } drop"):
            with counted(raw, **{"fast" if proto == TCP else "slow_admit": 1}):
                client.reply(ACK, b"y")
            raw.fence()
            raw.client_tap.drain()
        if proto == UDP:
            reply_is(client, slow_admit=1)
        reply_is(client, fast=1)
        request_is(client, fast=1)
        assert reply_is(client, fast=1).src == raw.vip


@pytest.mark.timer
def test_a_term(nat):
    """A flow that began at ingress goes through the stack once in eight seconds, in each
    direction, like any other; the firewall may end it then."""
    with at_ingress(nat):
        flows = []
        for family in (4, 6):
            raw = ready(nat, UDP, family)
            flows += [begun(raw), begun(raw)]
        ended = flows[1::2]
        for client in flows:
            client.reply(ACK, b"reply").answered()
        before, sent = fast.read(nat.director.ns), 0
        ports = ", ".join(str(c.sport) for c in ended)
        with rule(nat, "input", f"udp sport {{ {ports} }} drop"):
            for _ in for_a_term():
                for client in flows[::2]:
                    client.send(ACK, b"on").arrive()
                    client.reply(ACK, b"and on").answered()
                    sent += 2
            grown = fast.grown(nat.director.ns, before)
            assert grown == {"slow_admit": 4, "fast": sent - 4}
            for client in ended:
                request_is(client, arrives=0, slow_admit=1)
        for client in ended:
            request_is(client, slow_admit=1)
            request_is(client, fast=1)


def test_a_rule_for_replies(nat, family):
    """Replies are not fast because requests are."""
    raw = ready(nat, UDP, family)
    with at_ingress(nat), rule(nat, "forward", f"udp sport {raw.dport} drop"):
        client = begun(raw)
        for _ in range(3):
            with counted(raw, slow_admit=1):
                client.reply(payload=b"no")
            request_is(client, fast=1)
        raw.fence()
        assert raw.client_tap.take(lambda p: p.dst == client.address) == []


@pytest.mark.waits
def test_repeated(lab, family):
    """A repeated SYN goes to the same server, and opens no new connection."""
    raw = ready(lab, TCP, family, (1, 2))
    with at_ingress(lab):
        client = begun(raw)
        number, conns = client.number, raw.service.stats["conns"]
        for _ in range(3):
            with counted(raw, slow_opens=1):
                client.send(SYN)
                assert client.arrive()[0] == number
        assert raw.service.stats["conns"] == conns
        assert len(client.rows()) == 1 and client.state == "SYN_RECV"
        assert sum(raw.dest(n)["active"] for n in (1, 2)) == 1
        begun(raw)
        assert raw.service.stats["conns"] == conns + 1


def test_port_used_again(lab, family):
    """A SYN on a closed connection is left to the stack; later packets are fast."""
    raw = ready(lab, TCP, family)
    with at_ingress(lab):
        client = established(raw)
        with counted(raw, fast=1):
            client.send(RST)
            client.arrive()
        assert client.state == "CLOSE"
        before = raw.service.stats["conns"]
        with counted(raw, slow_opens=1):
            client.open()
        assert client.state == "SYN_RECV" and raw.service.stats["conns"] == before + 1
        request_is(client, fast=1)
        assert client.state == "ESTABLISHED" and len(client.rows()) == 1


def test_server_gone(nat, family):
    """A flow of a server that was removed is not taken for a new one."""
    raw = ready(nat, UDP, family, (1, 2))
    with at_ingress(nat):
        client = begun(raw)
        raw.remove(client.number)
        request_is(client, arrives=0, slow_server=1)
        with setting(nat, "expire_nodest_conn", 1):
            number = client.number
            request_is(client, slow_server=1)
            assert client.number == 3 - number
        request_is(client, fast=1)


# ---- limits and floods ----

@pytest.mark.waits
@BOTH
def test_full(lab, family, proto):
    """conn_max: connections that were answered, or are well used, stay; a new one is refused,
    and counted once."""
    raw = ready(lab, proto, family)
    with at_ingress(lab), room_for(lab, 3):
        time.sleep(0.03)
        clients = [established(raw).prove() for _ in range(3)]
        late, before = raw.client(), counts(lab)
        with counted(raw, slow_unknown=1):
            late.send(payload=b"x")
        late.nothing_arrives()
        after = counts(lab)
        assert {k: after[k] - before[k] for k in after if after[k] != before[k]} == {"full": 1}
        assert late.row() is None and all(c.row() for c in clients)
        for client in clients:
            request_is(client, fast=1)
    with at_ingress(lab), counted(raw, fast=1):
        late.send().arrive()


@pytest.mark.waits
def test_flood_of_new_flows(lab, family):
    """Unestablished connections make room for new ones at ingress, too."""
    raw = ready(lab, TCP, family)
    with at_ingress(lab), room_for(lab, 10), pinned():
        time.sleep(0.03)
        good, before = [established(raw) for _ in range(3)], counts(lab)
        flood = [raw.client() for _ in range(100)]
        with counted(raw, fast=100):
            for client in flood:
                client.send()
        raw.fence()
        assert counts(lab)["evicted"] - before["evicted"] == 93
        assert len(lab.conns(vip=raw.vip, vport=raw.port)) == 10
        assert [c.state for c in good] == ["ESTABLISHED"] * 3
        for client in good:
            request_is(client, fast=1)
        assert sum(raw.dest(1)[k] for k in ("active", "inactive")) == 10


@pytest.mark.timer
def test_drop_entry(nat, family):
    """Half-open connections that began at ingress are dropped, established ones stay."""
    raw = ready(nat, TCP, family)
    half_open = 200
    with at_ingress(nat), pinned():
        good = [established(raw) for _ in range(3)]
        with counted(raw, fast=half_open):
            for _ in range(half_open):
                raw.client().send()

        def waiting():
            return sum(r["state"] == "SYN_RECV" for r in nat.conns(vip=raw.vip, vport=raw.port))
        wait_until(lambda: waiting() == half_open, 10)
        before = counts(nat)["drop_entry"]
        with setting(nat, "drop_entry", 3):
            # Flows go on beginning at ingress meanwhile.
            begun(raw)
            wait_until(lambda: waiting() < half_open - 8, 20, step=0.3)
        assert counts(nat)["drop_entry"] - before >= 8
        assert [c.state for c in good] == ["ESTABLISHED"] * 3


@pytest.mark.parametrize("rate", (4, 1))
def test_drop_packet(nat, family, rate):
    """One new flow in am_droprate is dropped, as in the stack."""
    raw = ready(nat, UDP, family)
    with at_ingress(nat):
        old = begun(raw)
        with setting(nat, "am_droprate", rate), setting(nat, "drop_packet", 3):
            clients, before = [raw.client() for _ in range(12)], counts(nat)["drop_packet"]
            with counted(raw, slow_unknown=12):
                for client in clients:
                    client.send(payload=b"new")
            raw.fence()
            got = [len(client.arrivals()) for client in clients]
            assert got.count(0) == 12 // rate
            assert counts(nat)["drop_packet"] - before == got.count(0)
            assert [bool(c.row()) for c in clients] == [bool(n) for n in got]
            request_is(old, fast=1)
        begun(raw)


def test_another_device(nat, family):
    """A flow is admitted only on the device where it began."""
    raw = ready(nat, UDP, family)
    with side(nat) as tap, at_ingress(nat):
        fast.wait_for_hook(nat.director.ns, tap, nat.client_address(family), raw.vip)
        client = begun(raw)
        with counted(raw, slow_admit=1):
            tap.send(client.packet(payload=b"side"))
            client.arrive()
        # On no device may the client send as the server.
        with counted(raw, slow_admit=1):
            raw.client_tap.send(client.reply_packet(payload=b"false"))
        raw.fence()
