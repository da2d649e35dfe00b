# SPDX-License-Identifier: GPL-2.0
"""The fast path: which flows it admits, when, and for how long. The counters of
/proc/net/l4lb tell which path a packet took.
"""

import socket
import struct
import time

import pytest
from lab import fast, genl, packet
from lab.flows import (
    BOTH,
    NEW,
    ON,
    TERM,
    admitted,
    counted,
    for_a_term,
    nft,
    ready,
    reply_is,
    request_is,
    rule,
    set_policy,
    side,
)
from lab.netns import run
from lab.packet import ACK, TCP, UDP
from lab.raw import Raw
from lab.settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")

ECE, CWR = 0x40, 0x80
MOVE = 2        # on-drain


# ---- admission ----

@pytest.mark.smoke
@BOTH
def test_first_packets(nat, family, proto):
    """Each direction is admitted by itself, after one of its packets."""
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
    with counted(raw, **{"slow_opens" if proto == TCP else "slow_unknown": 1}):
        raw.taps[1].send(packet.l4_packet(proto, raw.address(1), raw.dport + 1, client.address,
                                          client.sport))
        assert client.answered().src == raw.address(1)


def test_only_requests(nat, family):
    """Replies are not fast because requests are: they are judged by themselves."""
    raw = ready(nat, UDP, family)
    client = raw.client()
    for n in range(3):
        request_is(client, **({"fast": 1} if n else {"slow_unknown": 1}))
    # A packet with the VIP as its source is no reply; IPv4 does not even route it.
    raw.taps[1].send(packet.udp_packet(raw.vip, raw.port, client.address, client.sport, b"false"))
    raw.fence()
    raw.client_tap.drain()
    reply_is(client, slow_admit=1)
    reply_is(client, fast=1)


@BOTH
def test_first_packets_too(nat, family, proto):
    """With fast-path new the firewall does not see first packets, either; broken ones
    are left to the stack, which drops them."""
    raw = ready(nat, proto, family)
    set_policy(raw, fast_path=NEW)
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
    set_policy(raw, fast_path=ON)
    with counted(raw, **{"slow_opens" if proto == TCP else "slow_unknown": 1}):
        raw.client().open()


@pytest.mark.timer
def test_a_new_rule_applies_after_a_term(nat):
    """A rule ends its flows after a term at the latest; until then they go on. Flows
    without a rule are judged again, and go on."""
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
        nat.director.ns.nft("delete table inet t")


@pytest.mark.timer
def test_a_term(lab, family):
    """A busy flow goes through the stack once in eight seconds, in each direction.
    So does one after a pause."""
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
    """Requests that alternate between devices are judged each time; that does not
    prolong the term of replies."""
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
    """Packets that a rule drops on their way out do not admit their flow."""
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


def needs_queues(lab):
    if not lab.director.ns.takes_rules("table inet t { chain c { "
                                       "type filter hook input priority 0; queue num 7; }; }"):
        pytest.skip("this kernel has no queue to programs: Debian's have (suite stages 6.12, 6.1)")


@pytest.mark.parametrize("hook", ("output", "postrouting"))
def test_queued(nat, family, hook):
    """Packets that wait for a program's verdict do not admit their flow."""
    needs_queues(nat)
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


@pytest.mark.emulated
@pytest.mark.parametrize("hook", ("forward", "postrouting"))
def test_queued_replies(nat, family, hook):
    """So do replies that wait after the director has translated them. Its connection may be
    gone when the program decides."""
    needs_queues(nat)
    Raw(nat, UDP, family)       # keeps the hooks: without them the kernel drops what waits
    raw = ready(nat, UDP, family)
    client = raw.client()
    client.open()
    with Queue(nat, 7) as queue, \
            rule(nat, hook, f"udp dport {client.sport} udp sport {raw.port} queue num 7", 300):
        for _ in range(3):
            with counted(raw, slow_admit=1):
                client.reply(payload=b"wait")
                queue.accept()
                client.answered()
        client.reply(payload=b"too long")
        raw.service.delete()
        queue.accept()
        client.answered()
    raw = ready(nat, UDP, family)
    client = raw.client()
    client.open()
    reply_is(client, slow_admit=1)
    reply_is(client, fast=1)


class Queue:
    """A program with an nfnetlink queue that accepts every packet after a while."""

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
    """Packets of the flow that come in by another device are judged there."""
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
    """With conntrack=1 all packets go through the stack, because of the firewall."""
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
    """With any IPsec policy in the namespace all packets go through the stack."""
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
