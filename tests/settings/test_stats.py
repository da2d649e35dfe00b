# SPDX-License-Identifier: GPL-2.0
"""Counters: exact to the packet and byte, at server, service and total."""

import time

import pytest
from lab.farm import pattern
from lab.genl import STATS
from lab.netns import wait_until
from lab.packet import ACK, PSH, TCP, UDP
from lab.raw import Raw
from lab.settings import setting

COUNTS = STATS[:5]


def proc_stats(ns):
    """The five totals and the five rates of /proc/net/ip_vs_stats."""
    lines = ns.read("/proc/net/ip_vs_stats").splitlines()
    return [int(x, 16) for x in lines[2].split()], [int(x, 16) for x in lines[5].split()]


def counters(stats):
    return {k: stats[k] for k in COUNTS}


@pytest.mark.smoke
def test_exact(lab, family, proto, backend):
    """conns, packets and bytes (IP length) in both directions; replies count if they
    pass the director."""
    raw = Raw(lab, proto, family, (1, 2))
    want = {n: dict.fromkeys(COUNTS, 0) for n in (1, 2)}
    before = wait_for_quiet(lab, backend)
    for i in range(4):
        client = raw.client()
        p = client.packet(payload=pattern(10 * i))
        raw.client_tap.send(p)
        number = client.arrive()[0]
        want[number]["conns"] += 1
        want[number]["inpkts"] += 1
        want[number]["inbytes"] += len(p)
        for size in (0, 1, 500):
            p = client.packet(ACK | PSH, pattern(size))
            raw.client_tap.send(p)
            client.arrive()
            want[number]["inpkts"] += 1
            want[number]["inbytes"] += len(p)
        if lab.shape == "nat":
            p = client.reply_packet(ACK, pattern(i + 7))
            raw.taps[number].send(p)
            client.answered()
            want[number]["outpkts"] += 1
            want[number]["outbytes"] += len(p)
    total = {k: want[1][k] + want[2][k] for k in COUNTS}

    def settled():
        return counters(raw.service.stats) == total and all(
            counters(raw.dest(n)["stats"]) == want[n] for n in want)

    try:
        wait_until(settled, 6, step=0.2)
    except AssertionError:
        raise AssertionError(f"{raw.service.stats}, {raw.service.servers()}; "
                             f"expected {total}, {want}") from None
    wait_until(lambda: [a - b for a, b in zip(proc_stats(lab.director.ns)[0], before)]
               == list(total.values()), 6, what="totals", step=0.2)


def wait_for_quiet(lab, backend):
    """The totals, once they include the previous test's packets."""
    if backend.is_l4lb:
        return proc_stats(lab.director.ns)[0]
    last = []

    def same():
        now = proc_stats(lab.director.ns)[0]
        last.append(now)
        return len(last) > 8 and last[-8] == now and now

    # ip_vs folds its counters every two seconds.
    return wait_until(same, 15, step=0.3)


def test_dropped_packets_do_not_count(nat):
    """Packets that are not forwarded do not count for service and server."""
    raw = Raw(nat, TCP, 4)
    client = raw.client()
    client.establish()
    client.reply().answered()
    wait_until(lambda: raw.service.stats["outpkts"] == 2, 5, step=0.1)
    raw.remove(1)
    client.send(ACK)
    client.nothing_arrives()
    before = counters(raw.service.stats)
    assert before["inpkts"] == 2
    raw.add(1)
    client.send(ACK)
    client.arrive()
    wait_until(lambda: raw.service.stats["inpkts"] == 3, 5, step=0.1)


def test_zero(nat):
    """ZERO of one service leaves the others; ZERO of all takes everything.
    Connection counts are no statistics and stay."""
    one, two = Raw(nat, UDP), Raw(nat, UDP)
    for raw in (one, two):
        raw.client().open()
    for raw in (one, two):
        wait_until(lambda r=raw: r.service.stats["inpkts"] == 1
                   and r.dest(1)["stats"]["inpkts"] == 1, 6, step=0.1)
    one.service.zero()
    assert not any(counters(one.service.stats).values())
    assert not any(counters(one.dest(1)["stats"]).values())
    assert one.dest(1)["inactive"] == 1
    assert two.service.stats["conns"] == 1
    nat.ipvs.zero()
    assert not any(counters(two.service.stats).values())
    assert not any(counters(two.dest(1)["stats"]).values())
    wait_until(lambda: not any(proc_stats(nat.director.ns)[0]), 6, step=0.1)
    two.client().open()
    wait_until(lambda: two.service.stats["inpkts"] == 1, 6, step=0.1)


@pytest.mark.timer
def test_rates_rise_and_decay(nat):
    """Rates follow the traffic and fade when it stops."""
    raw = Raw(nat, UDP)

    def busy():
        for _ in range(20):
            client = raw.client()
            client.open()
            client.reply(payload=b"x" * 50).answered()
        # Each has its own intervals, which begin when it is added.
        return all(s[k] > 0 for s in (raw.service.stats, raw.dest(1)["stats"])
                   for k in ("cps", "inpps", "outpps", "inbps", "outbps"))

    wait_until(busy, 15, step=0.2)
    high = raw.service.stats
    assert raw.dest(1)["stats"]["cps"] > 0
    assert high["inbps"] > high["inpps"] * 20
    wait_until(lambda: raw.service.stats["inpps"] < high["inpps"] * 0.7
               and raw.service.stats["outbps"] < high["outbps"] * 0.7, 20, step=0.3)
    # Only the rates fade.
    assert counters(raw.service.stats) == counters(high)


def watched(raw, key, seconds):
    """The successive values of a rate."""
    seen, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        value = raw.service.stats[key]
        if not seen or seen[-1] != value:
            seen.append(value)
        time.sleep(0.1)
    return seen


@pytest.mark.timer
def test_rate_of_one_packet(nat):
    """40 bytes in two seconds are 20 per second; the average gets a quarter of that, and
    loses a quarter every two seconds from then on, even if it is not read."""
    watching, alone = Raw(nat, TCP), Raw(nat, TCP)
    for raw in (alone, watching):
        raw.client().open()
    assert watched(watching, "inbps", 6.3)[:3] == [0, 5, 4]
    # The intervals of the two do not end at the same time.
    wait_until(lambda: alone.service.stats["inbps"] == watching.service.stats["inbps"], 2)


@pytest.mark.timer
def test_rate_of_a_second_packet(nat):
    """It comes in the next interval, right after the service's last one has ended: it counts
    for the next one, though the real server's interval ends a little later."""
    raw = Raw(nat, TCP)
    client = raw.client()
    client.open()
    wait_until(lambda: raw.service.stats["inbps"] == 5, 3, step=0.01)
    client.send()
    assert watched(raw, "inbps", 2.5)[:2] == [5, 9]


@pytest.mark.timer
def test_intervals_end_apart(nat, only_l4lb):
    """The rates of 25 services that had a packet at the same time change at different times."""
    raws = [Raw(nat, UDP) for _ in range(25)]
    for raw in raws:
        raw.client().send(payload=b"at once")
    seen = {}

    def all_seen():
        for raw in raws:
            if raw.port not in seen and raw.service.stats["inbps"]:
                seen[raw.port] = time.monotonic()
        return len(seen) == len(raws)

    wait_until(all_seen, 4, step=0.01)
    times = sorted(seen.values())
    assert sum(b - a > 0.03 for a, b in zip(times, times[1:])) >= 10, times


@pytest.mark.smoke
def test_counters_do_not_lag(nat, backend):
    raw = Raw(nat, UDP)
    raw.client().open()
    if not backend.is_l4lb:
        pytest.skip("ip_vs shows them up to two seconds later; runs with --backend l4lb")
    assert raw.service.stats["inpkts"] == raw.dest(1)["stats"]["inpkts"] == 1


@pytest.mark.timer
def test_rate_of_a_steady_flow(nat):
    """After 20 seconds the rate is within a tenth of the rate sent."""
    raw = Raw(nat, UDP)
    client = raw.client()
    begin = time.monotonic()
    for i in range(20 * 50):
        time.sleep(max(0, begin + i / 50 - time.monotonic()))
        client.send()
    offered = 20 * 50 / (time.monotonic() - begin)
    assert offered > 40
    assert abs(raw.service.stats["inpps"] - offered) < offered / 10


def percpu_packets(ns):
    """The sum of the packets of all CPUs in /proc/net/ip_vs_stats_percpu."""
    rows = [line.split() for line in ns.read("/proc/net/ip_vs_stats_percpu").splitlines()]
    return sum(int(r[2], 16) for r in rows[2:] if len(r) == 6 and r[0] != "~")


@pytest.mark.timer
def test_frozen(nat, family, backend):
    """run_estimation=0: counters and rates stand still, except those per CPU.
    Afterwards the counters are complete, and rates do not jump."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    wait_until(lambda: raw.service.stats["inpkts"] == 1, 6, step=0.1)
    with setting(nat, "run_estimation", 0):
        before, total = raw.service.stats, proc_stats(nat.director.ns)
        cpus = percpu_packets(nat.director.ns)
        for _ in range(50):
            client.send()
        client.arrive(50)
        if backend.is_l4lb:
            late = Raw(nat, UDP, family)
            late.client().open()
            assert not any(late.service.stats.values())
        assert raw.service.stats == before
        assert proc_stats(nat.director.ns) == total
        assert raw.dest(1)["stats"]["inpkts"] == 1
        assert percpu_packets(nat.director.ns) == cpus + 50 + backend.is_l4lb
    wait_until(lambda: raw.service.stats["inpkts"] == 51, 6, step=0.1)
    assert proc_stats(nat.director.ns)[0][1] >= total[0][1] + 50
    if backend.is_l4lb:
        assert raw.dest(1)["stats"]["inpkts"] == 51
        assert late.service.stats["inpkts"] == 1
        time.sleep(2.2)
        assert raw.service.stats["inpps"] <= 1


def test_deleted_server_keeps_its_statistics(nat):
    """Added again, it keeps its counters (and its connections)."""
    raw = Raw(nat, UDP)
    client = raw.client()
    client.open()
    wait_until(lambda: raw.dest(1)["stats"]["inpkts"] == 1, 6, step=0.1)
    raw.remove(1)
    raw.add(1)
    client.send()
    client.arrive()
    wait_until(lambda: raw.dest(1)["inactive"] == 1
               and raw.service.stats["inpkts"] == 2, 6, step=0.1)


def test_two_namespaces_do_not_share(topologies):
    """The same VIP and port in two namespaces: two services, two tables."""
    a, b = topologies["nat"], topologies["dr"]
    for lab in (a, b):
        lab.flush()
    port = a.fresh_port()
    one, two = Raw(a, UDP, port=port), Raw(b, UDP, port=port)
    client = one.client()
    client.open()
    assert client.row()
    assert b.conns(client=client.address) == []
    assert two.dest(1)["inactive"] == 0
    one.service.delete()
    assert len(b.ipvs.services()) == 1
    assert two.client().open() == 1
