# SPDX-License-Identifier: GPL-2.0
"""Which of four servers real connections reach, under every scheduler.

They are compared with each scheduler's definition, the paper's or the one at
the head of schedulers/NAME.c, repeated here in Python.
"""

import functools
import itertools
import operator
import random
import threading
from collections import Counter
from fractions import Fraction

import pytest
from lab.flows import ask, asked
from lab.fwmark import Marked, fresh_mark, marking
from lab.netns import join_all, wait_until
from lab.packet import ACK, RST, SYN, TCP, packed
from lab.raw import Raw, is_error
from lab.rows import amount

CPUS = 2
FOUR = (1, 2, 3, 4)
HASHING = ("dh", "sh", "mh")
LOCAL = ("lblc", "lblcr")
ALL = ("rr", "wrr", "lc", "wlc", *LOCAL, *HASHING, "sed", "nq", "fo", "ovf", "twos", "ewma", "bpf")
FALLBACK, PORT = 0x8, 0x10
AMPLE = (50,) * 4       # no server is full or saturated


@pytest.fixture(autouse=True)
def known(request, backend):
    if "sched" in request.fixturenames:
        backend.need_scheduler(request.getfixturevalue("sched"))


# ---- definitions ----


class Server:
    def __init__(self, number, weight):
        self.number, self.weight, self.active = number, weight, 0


def least(servers, cost):
    """The server of the lowest cost; of equals the one that was added last."""
    return min(reversed(servers), key=cost, default=None)


def sed(servers):
    return least(servers, lambda s: Fraction(s.active + 1, s.weight))


DEFINITION = {
    "lc": lambda servers: least(servers, lambda s: s.active),
    "wlc": lambda servers: least(servers, lambda s: Fraction(s.active, s.weight)),
    "sed": sed,
    "nq": lambda servers: least([s for s in servers if not s.active],
                                lambda s: 0) or sed(servers),
    "fo": lambda servers: least(servers, lambda s: -s.weight),
    "ovf": lambda servers: least([s for s in servers if s.active <= s.weight],
                                 lambda s: -s.weight),
}


def defined(sched, weights, count):
    """The servers of COUNT connections that all stay."""
    servers = [Server(n, w) for n, w in zip(FOUR, weights)]
    if sched in ("rr", "wrr"):
        # Lap k visits every server with at least k turns.
        turn = [1] * 4 if sched == "rr" else weights
        cycle = [n for lap in range(max(turn)) for n, t in zip(FOUR, turn) if t > lap]
        return list(itertools.islice(itertools.cycle(cycle), count))
    out = []
    for _ in range(count):
        chosen = DEFINITION[sched](servers)
        if chosen:
            chosen.active += 1
        out.append(chosen and chosen.number)
    return out


@pytest.mark.smoke
@pytest.mark.parametrize("weights", ((1, 1, 1, 1), (4, 3, 2, 1), (1, 2, 6, 1)),
                         ids=("equal", "falling", "mixed"))
@pytest.mark.parametrize("sched", ("rr", "wrr", *DEFINITION))
def test_order(dr, backend, sched, weights):
    """Connections that all stay reach the servers in exactly this order."""
    raw = Raw(dr, TCP, 4, FOUR, weights, sched=sched)
    got, want = asked(raw, 20), defined(sched, weights, 20)
    if sched in ("rr", "wrr") and not backend.is_l4lb:
        got, want = sorted(got), sorted(want)       # documented: another order
    assert got == want


def test_twos(dr, backend):
    """Two servers are drawn in proportion to the weights, the less loaded one wins:
    shares are by weight, and an overloaded server wins only if drawn twice."""
    backend.need_scheduler("twos")
    raw = Raw(dr, TCP, 4, FOUR, (4, 3, 2, 1), sched="twos")
    shares = Counter(asked(raw, 100))
    for number, weight in zip(FOUR, (4, 3, 2, 1)):
        assert abs(shares[number] - 10 * weight) <= 10, shares
    raw = Raw(dr, TCP, 4, (1,), sched="twos")
    asked(raw, 60)
    for number in (2, 3, 4):
        raw.add(number)
    # 1 of 16; random choice would give it 1 of 4.
    assert asked(raw, 120).count(1) < 20
    # Server 1 gets 97 of 100 draws; drawn regardless of weight it would get half.
    raw = Raw(dr, TCP, 4, FOUR, (97, 1, 1, 1), sched="twos")
    assert asked(raw, 60).count(1) > 48


# ---- servers that may not be chosen ----


@pytest.mark.parametrize("sched", ALL)
def test_never_chosen(dr, backend, sched):
    """A server of weight 0, past its upper threshold, or removed: first an idle one,
    then in each case the one that the scheduler would choose next."""
    raw = Raw(dr, TCP, 4, FOUR, (50, 50, 50, 0), sched=sched)
    assert 4 not in asked(raw, 8)
    raw = Raw(dr, TCP, 4, FOUR, AMPLE, sched=sched)
    source = dr.client_address()
    for out in ({"weight": 0}, {"weight": 50, "upper": 1}, None):
        favourite, = asked(raw, 1, source)
        if out:
            raw.edit(favourite, **out)
        else:
            raw.remove(favourite)
        got = asked(raw, 9, source)
        if sched == "lblc" and out and "upper" in out and not backend.is_l4lb:
            continue    # documented: ip_vs's lblc ignores it
        assert favourite not in got
        # Hashing has no second choice until the server is removed from the table; and
        # sh builds its table again when a weight changes.
        if sched not in HASHING or not out:
            assert None not in got
        elif sched != "sh" or "upper" in out:
            assert set(got) == {None}
        if out:
            raw.edit(favourite, weight=50)
    for number in FOUR:
        if number != favourite:
            raw.edit(number, weight=0)
    assert asked(raw, 2, source) == [None, None]


@pytest.mark.parametrize("sched", ALL)
def test_thresholds_fill(dr, backend, sched):
    """Each server gets three connections and no more."""
    # The same dport, because mh places servers by it (direct routing ignores it).
    plain = Raw(dr, TCP, 4, FOUR, AMPLE, sched=sched, dport=9)
    raw = Raw(dr, TCP, 4, FOUR, AMPLE, sched=sched, dport=9, server={"upper": 3})
    sources = [f"10.99.0.{n}" for n in range(1, 17)]
    got = Counter(ask(raw.client(s)) for s in sources)
    want = Counter({n: 3 for n in FOUR})
    if sched in HASHING:
        owners = Counter(ask(plain.client(s)) for s in sources)
        assert owners.total() == 16 and None not in owners
        want = Counter({n: min(3, count) for n, count in owners.items()})
    elif sched == "lblc" and not backend.is_l4lb:
        return
    want[None] = 16 - want.total()
    assert got == want


# ---- by the client's address ----


def addresses(family, count, seed=1):
    """Phantom clients that are the same in every run."""
    chance = random.Random(seed * family)
    if family == 4:
        return [f"10.{chance.randrange(1, 255)}.{chance.randrange(256)}."
                f"{chance.randrange(1, 255)}" for _ in range(count)]
    return [f"2001:db8:c:{chance.randrange(1, 65536):x}::{chance.randrange(1, 65536):x}"
            for _ in range(count)]


# Below, dport=9 gives every run the same table, because mh places servers by
# address and port; direct routing ignores the port.


def sh_owner(source, weights, usable=FOUR, fallback=False):
    """256 places are dealt in turn, beginning with the server added last, to each as
    many as its weight (at least one); the address's hash selects the place.
    Fallback tries all places from twice the hash on."""
    words = [int.from_bytes(packed(source)[i:i + 4], "big")
             for i in range(0, len(packed(source)), 4)]
    place = (functools.reduce(operator.xor, words) * 0x61C88647 & 0xffffffff) >> 24
    round_ = [n for n, w in zip(reversed(FOUR), reversed(weights)) for _ in range(max(w, 1))]
    dealt = list(itertools.islice(itertools.cycle(round_), 256))
    tries = [place] + [(i + 2 * place) % 256 for i in range(256) if fallback]
    return next((dealt[t] for t in tries if dealt[t] in usable), None)


def owners(raw, sources):
    return {s: ask(raw.client(s)) for s in sources}


@pytest.mark.parametrize("sched", ("sh", "mh"))
def test_source_hashing(dr, family, sched):
    """A client keeps its server, whatever its port and the clients in between; 100
    clients spread by weight (sh: exactly as computed). With weight 0, a server's
    clients are refused and the others stay; with the server removed, Maglev
    moves few other clients."""
    sources = addresses(family, 100)
    for weights in (AMPLE, (40, 30, 20, 10)):
        raw = Raw(dr, TCP, family, FOUR, weights, sched=sched, dport=9)
        first = owners(raw, sources)
        if sched == "sh":
            assert first == {s: sh_owner(s, weights) for s in sources}
            continue
        shares = Counter(first.values())
        for number, weight in zip(FOUR, weights):
            assert abs(shares[number] - 100 * weight / sum(weights)) <= 12, shares
    sources = sources[::-4]
    assert owners(raw, sources) == {s: first[s] for s in sources}
    # Weights 1 and 0, because sh gives one place to either.
    raw = Raw(dr, TCP, family, FOUR, sched=sched, dport=9)
    first = owners(raw, sources)
    raw.edit(2, weight=0)
    assert owners(raw, sources) == {s: n if n != 2 else None for s, n in first.items()}
    raw.remove(2)
    after = owners(raw, sources)
    assert not {2, None} & set(after.values())
    if sched == "mh":
        moved = [s for s in sources if first[s] not in (2, after[s])]
        assert len(moved) <= len(sources) // 5, moved


@pytest.mark.parametrize("out", ({"weight": 0}, {"upper": 1}),
                         ids=("weight", "threshold"))
@pytest.mark.parametrize("sched", ("sh", "mh"))
def test_fallback(dr, family, sched, out):
    """With the flag, a client of an unusable server moves to another, always the
    same, and no other client moves. Maglev spreads them; sh, whose servers take
    turns, finds the same neighbour for all."""
    raw = Raw(dr, TCP, family, FOUR, sched=sched, flags=FALLBACK, dport=9)
    sources = addresses(family, 40, seed=2)
    first = owners(raw, sources)
    raw.edit(3, **out)
    after = owners(raw, sources)
    assert {s: n for s, n in after.items() if first[s] != 3} == \
        {s: n for s, n in first.items() if n != 3}
    moved = {s: n for s, n in after.items() if first[s] == 3}
    assert moved and not {3, None} & set(moved.values())
    assert owners(raw, moved) == moved
    if sched == "sh":
        assert after == {s: sh_owner(s, (1,) * 4, (1, 2, 4), True) for s in sources}
    else:
        assert set(moved.values()) == {1, 2, 4}
    for number in (1, 2, 4):
        raw.edit(number, weight=0)
    assert set(owners(raw, sources[:3]).values()) == {None}


@pytest.mark.parametrize("sched", ("sh", "mh"))
def test_port_flag(dr, family, sched):
    """One client's connections share a server; with the flag its ports spread over
    all servers, and each port keeps its server."""
    source = addresses(family, 1, seed=3)[0]
    ports = range(2000, 2030)

    def by_port(raw):
        return [ask(raw.client(source, port)) for port in ports]

    assert len(set(by_port(Raw(dr, TCP, family, FOUR, sched=sched)))) == 1
    raws = [Raw(dr, TCP, family, FOUR, dport=9, sched=sched, flags=PORT) for _ in range(2)]
    got = by_port(raws[0])
    assert set(got) == set(FOUR)
    assert by_port(raws[1]) == got


# ---- by destination address ----


DESTINATIONS = {4: "198.18.0.0/24", 6: "2001:db8:beef::/48"}


@pytest.fixture
def caches(dr, family):
    """caches(sched): a function that makes a service for all DESTINATIONS."""
    mark = fresh_mark()
    port = dr.fresh_port()

    def service(sched, weights=AMPLE):
        raw = Marked(dr, mark, family, FOUR, weights, sched=sched)
        raw.port = port
        return raw

    # Local addresses, so that the director can answer from them.
    route = f"{'-6 ' * (family == 6)}route {{}} local {DESTINATIONS[family]} dev lo table local"
    dr.director.ns.run("ip " + route.format("add"))
    try:
        with marking(dr, mark, f"tcp dport {port}"):
            yield service
    finally:
        dr.director.ns.run("ip " + route.format("del"))


def destination(family, number):
    return f"198.18.0.{number}" if family == 4 else f"2001:db8:beef:{number:x}::1"


def fetch(raw, number):
    """A new client asks for destination NUMBER."""
    raw.vip = destination(raw.family, number)
    client = raw.client()
    client.number = ask(client)
    return client


def fetched(raw, numbers):
    return [fetch(raw, n).number for n in numbers]


def test_dh(caches):
    """A destination keeps its server, for all clients and weights; destinations
    spread evenly; one whose server has weight 0 is refused."""
    raw = caches("dh")
    numbers = range(1, 61)
    first = fetched(raw, numbers)
    shares = Counter(first)
    assert all(7 <= shares[n] <= 23 for n in FOUR), shares
    few = numbers[:20]
    for number, weight in zip(FOUR, (1, 9, 90, 2)):
        raw.edit(number, weight=weight)
    assert fetched(raw, few) == first[:20]
    raw.edit(4, weight=0)
    assert fetched(raw, few) == [n if n != 4 else None for n in first[:20]]
    raw.remove(4)
    assert set(fetched(raw, few)) == {1, 2, 3}


@pytest.mark.smoke
@pytest.mark.parametrize("sched", LOCAL)
def test_locality(caches, sched):
    """A destination keeps its server until that is saturated, whatever else is
    idle; then lblc moves it for good, and lblcr adds a replica."""
    raw = caches(sched, (4, 4, 4, 4))
    # New destinations: to the least loaded, of equals to the last added.
    assert fetched(raw, (11, 12, 13, 14, 15)) == [4, 3, 2, 1, 4]
    # 11 stays while server 4 is no more than full, others being idler.
    old = [fetch(raw, 11) for _ in range(3)]
    assert [c.number for c in old] == [4, 4, 4]
    # Five active connections, weight 4: 11 moves to the least loaded, and stays.
    assert fetched(raw, (11, 11)) == [3, 3]
    # 15, of the same saturated server, moves by itself.
    assert fetched(raw, (15, 15)) == [2, 2]
    assert fetched(raw, (12, 13, 14)) == [3, 2, 1]
    # Server 4 has less load again: with lblc it has lost 11, with lblcr not.
    raw.vip = destination(raw.family, 11)
    for client in old:
        for flags in (ACK, RST):
            client.send(flags)
            client.arrive()
    assert raw.dest(4)["active"] == 2
    assert fetched(raw, (11,)) == ([3] if sched == "lblc" else [4])


@pytest.mark.parametrize("sched", LOCAL)
def test_nowhere_better(caches, sched):
    """No server has less than half its weight in load: a saturated one keeps its address."""
    raw = caches(sched, (2, 2, 2, 2))
    assert fetched(raw, (1, 2, 3, 4)) == [4, 3, 2, 1]
    assert fetched(raw, [1] * 6) == [4] * 6


# ---- another scheduler for a live service ----


@pytest.mark.smoke
@pytest.mark.parametrize("shape", ("nat", pytest.param("dr", marks=pytest.mark.emulated)))
def test_swap_under_traffic(topologies, backend, shape, request):
    """One scheduler after the other (on slow kernels a few) while packets flow: each
    established connection keeps its server, each new one gets a server, and no packet is
    lost or sent twice."""
    lab = topologies[shape]
    lab.flush()
    order = [s for s in ALL if backend.is_l4lb or s != "twos"]
    order = order[:amount(request.config, few=5, pairs=len(order))]
    for sched in order:
        backend.need_scheduler(sched)
    raw = Raw(lab, TCP, 4, FOUR, (30000,) * 4, sched="rr")
    clients = [raw.client() for _ in range(8)]
    home = {c.address: c.establish() for c in clients}
    assert set(home.values()) == set(FOUR)
    requests, replies, fresh = Counter(), Counter(), []
    rounds, failure = [0], []

    def swap():
        """Use each scheduler for a few rounds of packets."""
        try:
            for sched in order[1:] + order[:1]:
                raw.service.edit(sched=sched)
                seen = rounds[0]
                wait_until(lambda s=seen: rounds[0] > s + 1, 20)
        except BaseException as e:  # noqa: BLE001
            failure.append(e)

    swapper = threading.Thread(target=swap, daemon=True)
    swapper.start()
    while swapper.is_alive():
        fresh.append(raw.client().send(SYN))
        for client in clients:
            client.send(ACK, b"%d" % rounds[0])
            requests[client.address] += 1
            if shape == "nat":
                client.reply(ACK, b"%d" % rounds[0], number=home[client.address])
                replies[client.address] += 1
        rounds[0] += 1
        if rounds[0] % 20 == 0:
            raw.fence()     # the receive queue takes 1,000 packets
    join_all(swapper)
    assert not failure, failure
    for client in clients:
        number = home[client.address]
        got = client.arrive(requests[client.address])
        assert {n for n, _ in got} == {number}
        assert [p.payload for _, p in got] == [b"%d" % r for r in range(rounds[0])]
        if shape == "nat":
            back = client.answered(replies[client.address])
            assert [p.payload for p in back] == [b"%d" % r for r in range(rounds[0])]
    assert None not in [client.arrive()[0] for client in fresh]
    # Others may still get the errors of an earlier test's packets.
    ours = {client.address for client in (*clients, *fresh)}
    assert raw.client_tap.take(lambda p: is_error(p) and p.dst in ours) == []
