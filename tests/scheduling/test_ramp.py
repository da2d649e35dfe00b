# SPDX-License-Identifier: GPL-2.0
"""Slow start: how fast a new real server gets its share. Connections are long, because short
ones show nothing: nobody has many of them. The clock stands while packets are sent."""

import itertools
import time
from collections import Counter

import pytest
from lab import bpf, genl
from lab.flows import ask, set_policy
from lab.fwmark import Marked, fresh_mark, marking
from lab.packet import TCP, UDP
from lab.raw import Raw

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.timer]
RAMP = 10
RATE = 100      # new connections a second
PROPORTIONAL = ("rr", "wrr", "twos")


def load(raw, numbers=None):
    return {n: raw.dest(n)["active"] + raw.dest(n)["inactive"] for n in numbers or raw.numbers}


def second(raw, rate=RATE):
    """A second's new connections: {server: how many}."""
    before = {n: raw.dest(n)["stats"]["conns"] for n in raw.numbers}
    for _ in range(5):
        raw.send_all([raw.client().packet() for _ in range(rate // 5)])
        time.sleep(0.2)
    return {n: raw.dest(n)["stats"]["conns"] - before[n] for n in raw.numbers}


def busy(lab, sched, numbers=(1, 2, 3), each=200, **options):
    """A service, older than the ramp, whose servers have connections."""
    raw = Raw(lab, UDP, numbers=numbers, sched=sched, **options)
    with genl.L4lb(lab.director.ns) as l4lb:
        l4lb.set_policy(raw.service, ramp=RAMP, udp=3600)
    time.sleep(RAMP + 1)
    raw.send_all([raw.client().packet() for _ in range(each * len(numbers))])
    return raw


def join(raw, number=4, **options):
    raw.add(number, **options)
    raw.numbers = (*raw.numbers, number)


def ramped(begin, fair=0.25):
    """What a newcomer may get in the second that begins BEGIN seconds after it came."""
    return fair * RATE * (begin + 0.5) / RAMP


@pytest.mark.smoke
@pytest.mark.parametrize("sched", ("wlc", "lc"))
def test_joins_three_busy_ones(dr, sched):
    """Never more than a quarter above its ramped share, to a connection; 0.9 of its fair load
    in five times the ramp."""
    raw = busy(dr, sched)
    join(raw)
    for begin in range(RAMP):
        got = second(raw)[4]
        assert ramped(begin) / 1.25 - 1 <= got <= 1.25 * ramped(begin) + 1, begin
    for _ in range(RAMP, 5 * RAMP):
        got = second(raw)
        assert got[4] <= 2.2 * RATE / 4
        others = load(raw, (1, 2, 3))
        if load(raw)[4] >= 0.9 * sum(others.values()) / 3:
            break
    else:
        pytest.fail(f"not caught up: {load(raw)}")
    time.sleep(2)       # somebody has to notice it
    for _ in range(5):
        got = second(raw)
    assert max(load(raw).values()) - min(load(raw).values()) <= 0.1 * load(raw)[1]


def give_program(lab, raw, instructions):
    with genl.L4lb(lab.director.ns) as l4lb, bpf.Program(instructions) as program:
        l4lb.set(raw.service, program=(program.fd, "/a/pin"))


@pytest.mark.parametrize("greedy", (True, False))
def test_joins_under_a_program(dr, greedy, backend):
    """One that always chooses the newcomer, or one by chance: in no second much more than its
    ramped share, and not less than two thirds of it. When its time is up, what the program says."""
    backend.need_scheduler("bpf")
    raw = busy(dr, "bpf")
    join(raw)
    give_program(dr, raw, bpf.answer(3) if greedy else bpf.chance(4))
    low, high = ramped(0) * 0.66 - 1, 0
    for begin in range(RAMP):
        got = second(raw)[4]
        high += got
        assert ramped(begin) * 0.5 - 4 <= got <= 1.25 * ramped(begin) + 2 + 8, begin
    assert low < high <= 1.1 * sum(map(ramped, range(RAMP))) + 8
    time.sleep(5 * RAMP)
    got = second(raw)[4]
    assert got == RATE if greedy else RATE * 0.1 < got < RATE * 0.45


def test_control_without(dr):
    """Without a ramp a newcomer gets nearly all: this is what users complain about."""
    raw = busy(dr, "wlc", each=600)
    set_policy(raw, ramp=0)
    join(raw)
    assert sum(second(raw)[4] for _ in range(4)) >= 0.9 * 4 * RATE


def test_control_weights(dr):
    """Nor does a weight that grows help: the newcomer is empty, whatever its weight."""
    raw = busy(dr, "wlc", each=600, weights=(100, 100, 100))
    set_policy(raw, ramp=0)
    join(raw, weight=10)
    got = 0
    for begin in range(4):
        raw.edit(4, weight=10 * (begin + 1))
        got += second(raw)[4]
    assert got >= 0.6 * 4 * RATE and got > 5 * sum(ramped(begin) for begin in range(4))


@pytest.mark.parametrize("sched", ("lc", "wlc", "nq", *PROPORTIONAL, "mh"))
def test_share_grows(dr, sched):
    """In each scheduler's way; weights 1 and 3, of which the newcomer has 3."""
    raw = busy(dr, sched, weights=(1, 1, 1))
    join(raw, weight=3)
    first, middle, last = (sum(second(raw)[4] for _ in range(3)) for _ in range(3))
    fair = 0.25 if sched in ("rr", "lc") else 0.5
    if sched in ("mh", "twos"):
        assert first < middle < last + 30
        assert first <= 0.25 * 3 * RATE and last <= 1.3 * 2 * fair * 3 * RATE
        return
    for got, begin in ((first, 0), (middle, 3), (last, 6)):
        want = sum(ramped(begin + n, fair) for n in range(3))
        assert abs(got - want) <= 0.15 * want + 3, (first, middle, last)


@pytest.mark.parametrize("sched", ("mh", "sh"))
def test_each_client_moves_once(dr, sched):
    """To the newcomer, and then it stays; in the end it is where it would be without a ramp."""
    raw = busy(dr, sched, each=1)
    addresses = [dr.client_address() for _ in range(60)]

    def choices():
        out = {}
        for address in addresses:
            client = raw.client(address)
            client.open()
            out[address] = client.number
        return out

    rounds = [choices()]
    join(raw)
    for _ in range(RAMP + 2):
        rounds.append(choices())
        time.sleep(1)
    moves = Counter()
    for before, after in itertools.pairwise(rounds):
        for address in addresses:
            if before[address] != after[address]:
                assert after[address] == 4 or rounds[-1][address] == after[address]
                moves[address] += 1
    assert set(moves.values()) == {1}
    raw.remove(4)
    set_policy(raw, ramp=0)
    join(raw)
    assert choices() == rounds[-1]


@pytest.mark.parametrize("sched", ("dh", "lblc", "lblcr"))
def test_destinations(dr, sched):
    """The newcomer gets destinations little by little, and each stays where it went. With lblc
    only new ones, which others do not have: a quarter of them at most while it rises."""
    mark, port = fresh_mark(), dr.fresh_port()
    route = "ip route {} local 198.18.0.0/24 dev lo table local"
    dr.director.ns.run(route.format("add"))
    try:
        with marking(dr, mark, f"tcp dport {port}"):
            raw = Marked(dr, mark, 4, (1, 2, 3), (5000,) * 3, proto=TCP, sched=sched)
            raw.port = port
            set_policy(raw, ramp=RAMP)
            time.sleep(RAMP + 1)
            home = [fetch(raw, n) for n in range(1, 31)]
            join(raw, weight=5000)
            first = None
            for begin in range(RAMP):
                home.extend(fetch(raw, n) for n in range(31 + 5 * begin, 36 + 5 * begin))
                if sched != "dh":
                    assert [fetch(raw, n) for n in range(1, len(home) + 1)] == home
                first = first if first is not None or 4 not in home else begin
                time.sleep(1)
            assert first is not None and first > 0
            if sched == "dh":
                moved = [n for n in range(30) if fetch(raw, n + 1) == 4]
                assert moved and all(fetch(raw, n + 1) == 4 for n in moved)
            else:
                assert 3 <= home.count(4) <= 13
    finally:
        dr.director.ns.run(route.format("del"))


def fetch(raw, number):
    """The server of a new connection to destination NUMBER."""
    raw.vip = f"198.18.0.{number}"
    client = raw.client()
    return ask(client)


@pytest.mark.parametrize("way", ("weight", "keepalived", "batch"))
def test_recovery(dr, way):
    """A server that had weight 0, or was away, starts slowly, too."""
    raw = busy(dr, "wlc", (1, 2, 3, 4))
    address = f"{raw.address(4)}:{raw.dport}"
    service = f"{raw.vip}:{raw.port}"
    if way == "keepalived":     # as it does without and with inhibit_on_failure
        raw.remove(4)
    else:
        raw.edit(4, weight=0)
    for _ in range(3):
        raw.send_all([raw.client().packet() for _ in range(RATE)])
    with genl.L4lb(dr.director.ns) as l4lb:
        l4lb.kill(server=raw.address(4))
        if way == "batch":
            l4lb.set_services([genl.batch_entry(raw.vip, raw.port, proto=UDP, sched="wlc", policy={"ramp": RAMP},
                                                 servers=[
                genl.batch_server(raw.address(4), raw.dport, method=dr.method, weight=1)])],
                genl.MERGE)
    if way == "weight":
        raw.edit(4, weight=1)
    elif way == "keepalived":
        dr.director.ns.run(["ipvsadm", "-a", "-u", service, "-r", address, "-g", "-w", "1"])
    got = [second(raw)[4] for _ in range(3)]
    assert got[0] <= 3 and got[2] <= 1.25 * ramped(2) + 1 and sum(got) >= 3


@pytest.mark.parametrize("sched", ("wlc", "lc"))
def test_comes_back_with_its_connections(dr, sched):
    """One that still has more connections than the others gets none, as without a ramp."""
    raw = Raw(dr, TCP, numbers=(1, 2, 3, 4), sched=sched)
    set_policy(raw, ramp=RAMP)
    time.sleep(RAMP + 1)
    for n in (1, 2, 3):
        raw.edit(n, weight=0)
    raw.send_all([raw.client().packet() for _ in range(400)])
    for n in (1, 2, 3):
        raw.edit(n, weight=1)
    raw.edit(4, weight=0)
    raw.send_all([raw.client().packet() for _ in range(30)])
    raw.edit(4, weight=1)
    assert sum(second(raw)[4] for _ in range(RAMP - 1)) == 0
    assert all(load(raw, (n,))[n] > 250 for n in (1, 2, 3))


def test_not_while_the_service_is_new(dr):
    """Servers that are added one after another to a new service are equal from the start."""
    raw = Raw(dr, UDP, numbers=(1,), sched="wlc")
    set_policy(raw, ramp=RAMP)
    join(raw, 2)
    got = second(raw)
    assert abs(got[1] - got[2]) <= 2


def test_all_others_are_gone(dr):
    """Nothing is refused: the newcomer takes what nobody else can."""
    for sched in ("wlc", "rr", "mh", "lblc"):
        raw = busy(dr, sched, each=5)
        join(raw)
        for n in (1, 2, 3):
            raw.edit(n, weight=0) if n < 3 else raw.remove(n)
        raw.numbers = (1, 2, 4)
        assert second(raw)[4] == RATE if sched not in ("mh", "sh") else second(raw)[4] > 0


@pytest.mark.parametrize("sched", ("wlc", "rr"))
def test_all_others_are_full(dr, sched):
    raw = busy(dr, sched, each=5)
    join(raw)
    for n in (1, 2, 3):
        raw.edit(n, weight=1, upper=2)
    assert second(raw)[4] == RATE


@pytest.mark.parametrize("sched", ("wlc", "rr"))
def test_all_come_back_one_by_one(dr, sched):
    """After an outage of all the first one must not carry the service alone: all are new."""
    raw = busy(dr, sched, (1, 2, 3, 4), each=5)
    for n in raw.numbers:
        raw.edit(n, weight=0)
    for n in raw.numbers:
        time.sleep(0.3)
        raw.edit(n, weight=1)
    got = second(raw)
    assert max(got.values()) - min(got.values()) <= 3, got


def test_the_other_one_is_new_itself(dr):
    """Of two servers one has just come, and the other one goes and comes: the first one has
    the load, and the second one starts slowly."""
    raw = busy(dr, "wlc", (1, 2))
    raw.edit(2, weight=0)
    second(raw)
    raw.edit(2, weight=1)
    second(raw)
    raw.edit(1, weight=0)
    assert second(raw)[2] == RATE
    with genl.L4lb(dr.director.ns) as l4lb:
        l4lb.kill(server=raw.address(1))
    raw.edit(1, weight=1)
    got = [second(raw)[1] for _ in range(3)]
    assert got[0] <= 4 and sum(got) <= 1.25 * sum(ramped(n, 0.5) for n in range(3)) + 3, got


def test_two_newcomers(dr):
    """The second one has its own time: it does not get the share of the first."""
    raw = busy(dr, "wlc", (1, 2))
    join(raw, 3)
    for _ in range(RAMP - 2):
        second(raw)
    join(raw, 4)
    got = second(raw)
    assert got[4] <= 3 and 0.8 * ramped(RAMP - 2, 0.25) - 2 <= got[3] <= 26


def test_shown(dr):
    """GET_DRAIN tells how far it is, and for how long it is listed."""
    raw = busy(dr, "wlc")
    join(raw)
    seen = []
    with genl.L4lb(dr.director.ns) as l4lb:
        for _ in range(5 * RAMP + 2):
            mine = [d for d in l4lb.drains() if d["server"] == raw.address(4)]
            seen.append(mine[0]["ramp"] if mine else None)
            second(raw, 20)
    assert seen[:RAMP:3] == [pytest.approx(10 * n, abs=2) for n in range(0, RAMP, 3)]
    assert 100 in seen and seen[-1] is None
    assert sorted(seen, key=lambda x: 1000 if x is None else x) == seen


def test_the_ramp_is_taken_away(dr):
    """Also by a drain, a removal, a swap of the scheduler, the end of the service."""
    raw = busy(dr, "wlc")
    for end in ("policy", "weight", "swap", "remove", "service"):
        join(raw)
        second(raw)
        if end == "policy":
            set_policy(raw, ramp=0)
            time.sleep(1.5)
            assert second(raw)[4] > 0.9 * RATE
            set_policy(raw, ramp=RAMP)
        elif end == "weight":
            raw.edit(4, weight=0)
            assert second(raw)[4] == 0
        elif end == "swap":
            raw.service.edit(sched="rr")
            assert second(raw)[4] <= 1.25 * ramped(1) + 1
            raw.service.edit(sched="wlc")
        if end == "service":
            raw.service.delete()
            break
        raw.remove(4)
        raw.numbers = raw.numbers[:3]
        with genl.L4lb(dr.director.ns) as l4lb:
            l4lb.kill(server=raw.address(4))
    with genl.L4lb(dr.director.ns) as l4lb:
        assert l4lb.drains() == []
