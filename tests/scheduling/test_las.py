# SPDX-License-Identifier: GPL-2.0
"""Least attained service first: the band of a reply, on every path that replies
take, and queueing disciplines that serve by it."""

import contextlib
import re

import pytest
from lab import fast, genl
from lab.flows import nft, set_policy
from lab.netns import wait_until
from lab.nft import NftError
from lab.packet import ACK, SCTP, TCP, UDP
from lab.raw import Raw

pytestmark = pytest.mark.usefixtures("only_l4lb")
BANDS = 4
USUAL = (16 << 10, 128 << 10, 1 << 20)
PATHS = ("stack", "fast", "new")


@pytest.fixture(params=PATHS)
def path(request, nat):
    """Through the stack, on the fast path, or with connections that begin there."""
    nat.director.ns.sysctl(fast.SETTING, PATHS.index(request.param))
    yield request.param
    nat.director.ns.sysctl(fast.SETTING, 1)


def las(raw, ends=(), on=1):
    set_policy(raw, priority=on, **{
        f"las_bytes_{n}": ends[n] if n < len(ends) else 0 for n in range(BANDS - 1)})


def bands(raw):
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        return l4lb.bands(raw.service)


class Left:
    """How many packets left for clients with each priority, by the firewall's count: only
    those of the watched service, as packets of others may still be under way."""

    def __init__(self, lab):
        self.lab, self.ns = lab, lab.director.ns

    def watch(self, raw):
        nft(self.lab,
            "table netdev p { chain c { type filter hook egress device eth0 priority 0; " +
            " ".join(f"meta l4proto {{ tcp, udp, sctp }} th sport {raw.port} "
                     f"meta priority {n} counter;" for n in range(8)) + " }; }")
        self.before = self._counts()

    def _counts(self):
        return [int(n) for n in re.findall(r"packets (\d+)",
                                           self.ns.nft("list table netdev p"))]

    def since(self):
        now = self._counts()
        grown, self.before = [b - a for a, b in zip(self.before, now)], now
        return {n: count for n, count in enumerate(grown) if count}


@pytest.fixture
def left(nat):
    if not nat.director.ns.takes_rules("table netdev p { chain c { "
                                       "type filter hook egress device eth0 priority 0; }; }"):
        pytest.skip("no egress hook in this kernel: Debian's have it (suite stages 6.12 and 6.1)")
    yield Left(nat)
    with contextlib.suppress(NftError):
        nat.director.ns.nft("delete table netdev p")


def opened(raw, path):
    """(client, bytes of replies that it has had)"""
    client, had = raw.client(), 0
    if path != "stack":
        fast.ready(raw)
    if raw.proto == TCP:
        client.establish()
        had = len(client.reply_packet())
    else:
        client.open()
    return client, had


@pytest.mark.dear
@pytest.mark.smoke
@pytest.mark.parametrize("proto", (TCP, UDP))
def test_by_what_has_passed(nat, family, proto, path, left):
    """A packet's band follows from the bytes before it, headers included."""
    raw = Raw(nat, proto, family)
    left.watch(raw)
    las(raw, (500, 1500, 4000))
    client, had = opened(raw, path)
    left.since()
    before, want = bands(raw), [[0, 0] for _ in range(BANDS)]
    for n in range(12):
        length = len(client.reply_packet(ACK, bytes(100 * n)))
        band = sum(had >= end for end in (500, 1500, 4000))
        client.reply(ACK, bytes(100 * n)).answered()
        assert left.since() == {band: 1}, (n, had)
        want[band][0] += 1
        want[band][1] += length
        had += length
    assert [(p - b[0], size - b[1]) for (p, size), b in zip(bands(raw), before)] == \
        [tuple(w) for w in want]
    # Another connection begins in band 0.
    other, _ = opened(raw, path)
    left.since()
    other.reply(ACK, b"x").answered()
    assert left.since() == {0: 1}


def test_associations(nat, family, left):
    """The same with SCTP, which has no fast path."""
    raw = Raw(nat, SCTP, family)
    left.watch(raw)
    las(raw, (500, 1500, 4000))
    client = raw.client()
    client.establish()
    had = sum(size for _, size in bands(raw))
    assert set(left.since()) == {0} and 0 < had < 500
    for n in range(8):
        length = len(client.reply_packet(ACK, bytes(100 * n)))
        client.reply(ACK, bytes(100 * n)).answered()
        assert left.since() == {sum(had >= end for end in (500, 1500, 4000)): 1}, (n, had)
        had += length
    assert sum(size for _, size in bands(raw)) == had


@pytest.mark.parametrize("ends", ((), (1000,), (3000, 20000), (2 * 1428, 10 * 1428)))
def test_where_bands_end(nat, ends):
    """The band after the last given end has all the rest; without any, the ends are the
    defaults. A packet that crosses an end belongs to the lower band."""
    raw, size = Raw(nat, UDP), 1428
    las(raw, ends)
    client = raw.client()
    client.open()
    ends = ends or USUAL
    count = 2 * ends[-1] // size + 2
    for n in range(count):
        client.reply(payload=bytes(size - 28))
        if n % 50 == 49 or n == count - 1:
            client.answered(n % 50 + 1)
    want, had = [0] * BANDS, 0
    for _ in range(count):
        want[sum(had >= end for end in ends)] += 1
        had += size
    assert bands(raw) == [(n, n * size) for n in want]


def test_switched(nat, family, path, left):
    """It is on for connections that begin while it is on; off for all at once."""
    raw = Raw(nat, UDP, family)
    left.watch(raw)
    old, _ = opened(raw, path)
    las(raw, (100,))
    new, _ = opened(raw, path)
    left.since()

    def both(priorities):
        for client, priority in zip((old, new), priorities):
            client.reply(payload=bytes(200)).answered()
            assert left.since() == {priority: 1}
    both((0, 0))
    both((0, 1))
    las(raw, (), on=0)
    counted = bands(raw)
    both((0, 0))
    assert bands(raw) == counted
    las(raw, (100,))
    both((0, 1))
    if family == 4:
        # Connections without a band have a priority by type of service.
        for client, priority in ((old, 6), (new, 1)):
            client.reply(payload=b"z", ip_args={"tos": 0x10}).answered()
            assert left.since() == {priority: 1}
    raw.service.zero()
    assert bands(raw) == [(0, 0)] * BANDS
    new.reply(payload=b"x").answered()
    assert [n for n, _ in bands(raw)] == [0, 1, 0, 0]


@pytest.mark.parametrize("shape", ("dr", "tun"))
def test_only_where_replies_pass(request, shape):
    """With other methods replies do not pass the director: no counts, no errors."""
    lab = request.getfixturevalue(shape)
    raw = Raw(lab, UDP)
    las(raw, (100,))
    client = raw.client()
    client.open()
    client.send(payload=b"more").arrive()
    assert bands(raw) == [(0, 0)] * BANDS


def test_no_bands_without(nat):
    """A service has counters from the first time that priority is las."""
    raw = Raw(nat, UDP)
    assert bands(raw) == []
    set_policy(raw, udp=60)
    assert bands(raw) == []
    las(raw)
    assert bands(raw) == [(0, 0)] * BANDS
    las(raw, on=0)
    assert bands(raw) == [(0, 0)] * BANDS


def test_in_a_batch(nat, family):
    """A batch of services can set it, and unset it by leaving it out."""
    raw = Raw(nat, UDP, family)
    server = genl.batch_server(raw.address(1), raw.dport)
    client = raw.client()
    size = len(client.reply_packet(payload=b"reply"))
    due = [(2, 2 * size), (1, size), (0, 0), (0, 0)]
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_services([genl.batch_entry(raw.vip, raw.port, [server], proto=UDP,
                                           policy={"priority": 1, "las_bytes_0": size + 10})])
        client.open()
        for _ in range(3):
            client.reply(payload=b"reply").answered()
        assert bands(raw) == due
        l4lb.set_services([genl.batch_entry(raw.vip, raw.port, [server], proto=UDP)])
        client.reply(payload=b"reply").answered()
        assert bands(raw) == due


# From the manual.
DISCIPLINES = {"prio": "prio bands 4", "ets": "ets bands 4 strict 1 quanta 12000 6000 3000"}


@pytest.mark.timer
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("path", ("stack", "fast"))
def test_short_answers_pass_long_ones(nat, family, path, discipline):
    """In a bottleneck's queue, replies of a new connection overtake the waiting ones of
    an old one."""
    raw, ns = Raw(nat, UDP, family), nat.director.ns
    las(raw, (2000,))
    if path == "fast":
        fast.ready(raw)
    long, short = raw.client(), raw.client()
    for client in (long, short):
        client.open()
    for _ in range(4):
        long.reply(payload=bytes(1000)).answered()
    short.reply(payload=b"admits").answered()
    try:
        for line in ("root handle 1: tbf rate 50kbit burst 3000 limit 1000000",
                     f"parent 1:1 handle 2: {DISCIPLINES[discipline]} priomap "
                     "0 1 2 3 1 1 1 1 1 1 1 1 1 1 1 1"):
            if ns.run(f"tc qdisc add dev eth0 {line}", check=False).returncode:
                pytest.skip(f"no tbf or {discipline} in this kernel: Debian's have both "
                            "(suite stages 6.12 and 6.1)")
        for _ in range(20):
            long.reply(payload=bytes(1000))
        short.reply(payload=b"short")
        order = []

        def came():
            order.extend(p.dport for p in raw.client_tap.take(
                lambda p: p.proto == UDP and p.sport == raw.port))
            return len(order) >= 21
        wait_until(came, 30, what="21 replies")
    finally:
        ns.run("tc qdisc del dev eth0 root", check=False)
    assert order.count(short.sport) == 1
    assert order.index(short.sport) < 15, order
