# SPDX-License-Identifier: GPL-2.0
"""Services for a range of addresses and ports: which packets they take, and what becomes of them."""

import ipaddress
import random
import time

import pytest
from lab import fast, genl, packet, ranges
from lab.cost import bounded
from lab.flows import BOTH, counted, reply_is, request_is
from lab.ingress import at_ingress
from lab.packet import ACK, SYN, TCP, UDP
from lab.ranges import PREFIX, Ranged
from lab.raw import Raw
from lab.settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")


def inner(p):
    return p.inner() if p.is_tunnel else p


@pytest.mark.stock
@pytest.mark.smoke
def test_every_address_and_port(lab, family, proto):
    """The first and last address and port, and some between; both directions. Each connection
    keeps the address and port that its client used."""
    with ranges.here(lab, PREFIX[family]):
        raw = Ranged(lab, proto, family)
        for vip, port in ((0, raw.first), (-1, raw.last), (0, raw.last), (9, raw.first + 50)):
            client = raw.at(vip, port).client()
            client.send()
            number, p = client.arrive()
            p = inner(p)
            assert p.dport == port
            assert p.dst == (raw.address(number) if lab.shape == "nat" else raw.vip)
            assert client.row()["dport"] == port
            if lab.shape == "nat":
                client.raw.dport = port
                p = client.reply().answered()
                client.raw.dport = 0
                assert (p.src, p.sport) == (raw.vip, port)


def test_what_is_beside_it(lab, family, proto):
    """The address before and after, the port before and after, and another protocol: the
    director answers itself, or routes."""
    with ranges.here(lab, PREFIX[family]):
        raw = Ranged(lab, proto, family)
        net = ipaddress.ip_network(raw.prefix)
        for vip, port in ((raw.vip, raw.first - 1), (raw.vip, raw.last + 1),
                          (str(net[0] - 1), raw.first), (str(net[-1] + 1), raw.first)):
            raw.at(vip, port).client().send().nothing_arrives()
        raw.at(1, raw.first)
        raw.proto = UDP if proto == TCP else TCP
        raw.client().send().nothing_arrives()
        raw.proto = proto
        assert raw.client().open()      # the control


def test_server_with_a_port(nat, family):
    """All ports of the range go to the one that a NATed real server has; replies come from the
    one that each client used."""
    with ranges.here(nat, PREFIX[family]):
        raw = Ranged(nat, TCP, family, (1,), dport=40009)
        clients = [(vip, port, raw.at(vip, port).client())
                   for vip, port in ((1, raw.first), (2, raw.last), (1, raw.last))]
        for vip, port, client in clients:
            raw.at(vip, port)
            client.send()
            assert client.arrive()[1].dport == 40009
        for vip, port, client in clients:
            raw.at(vip, port)
            p = client.reply().answered()
            assert (p.src, p.sport) == (raw.vip, port)


def test_others_come_first(nat, family):
    """An exact service, one for all ports, the longer prefix, the smaller range of ports."""
    six = family == 6
    net = ipaddress.ip_network(PREFIX[family])
    part = str(next(net.subnets(new_prefix=net.prefixlen + 1)))
    with ranges.here(nat, PREFIX[family]):
        wide = Ranged(nat, TCP, family, (1,), first=1000, last=2000)
        narrow = Ranged(nat, TCP, family, (2,), first=1500, last=1600)
        assert wide.at(9, 1499).client().open() == 1
        wide.taps |= narrow.taps
        assert wide.at(9, 1500).client().open() == 2
        assert wide.at(9, 1600).client().open() == 2
        assert wide.at(9, 1601).client().open() == 1
        narrow.delete()
        assert wide.at(9, 1550).client().open() == 1
        # A longer prefix with more ports.
        longer = Ranged(nat, TCP, family, (2,), prefix=part, first=1, last=65535)
        assert wide.at(1, 1550).client().open() == 2
        assert wide.at(9, 1550).client().open() == 1
        exact = Raw(nat, TCP, family, (1,), vip=str(net[1]), port=1550)
        exact.client().send().arrive()
        number, p = exact.client().send().arrive()
        assert (number, p.dport) == (1, exact.dport)
        any_port = nat.ipvs.service(str(net[2]), 0, proto=TCP, sched="rr",
                                    flags=genl.PERSISTENT, timeout=60)
        any_port.server(nat.phantom(1, family), 0)
        assert wide.at(2, 1550).client().open() == 1
        longer.delete()
        assert six or wide.at(3, 1550).client().open() == 1


class Oracle:
    """All ranges, looked through one by one."""

    def __init__(self):
        self.all = {}

    def find(self, addr, port):
        best = None
        for (prefix, first, last), number in self.all.items():
            net = ipaddress.ip_network(prefix)
            if ipaddress.ip_address(addr) in net and first <= port <= last:
                key = (-net.prefixlen, last - first)
                best = min(best or (key, number), (key, number))
        return best and best[1]

    def crosses(self, prefix, first, last):
        same = [(a, b) for p, a, b in self.all if p == prefix]
        return any((a < first <= b < last) or (first < a <= last < b) for a, b in same)

    def depth(self, prefix, first, last):
        """Of the deepest, with this one."""
        same = [(a, b) for p, a, b in self.all if p == prefix] + [(first, last)]
        return max(sum(a <= c and d <= b for a, b in same) for c, d in same)

    def lengths(self, prefix):
        return {p.partition("/")[2] for p, _, _ in self.all} | {prefix.partition("/")[2]}


def test_against_a_linear_search(nat, family, seed):
    """Random ranges come and go, in batches; random packets go where a search through all of them
    says, and a range is refused if it says so."""
    rng = random.Random(seed)
    base = ipaddress.ip_network(PREFIX[family])
    oracle, refused, hits = Oracle(), 0, [0, 0, 0]
    lengths = range(base.prefixlen, base.max_prefixlen + 1)
    numbers = (1, 2)
    with ranges.here(nat, PREFIX[family]), genl.L4lb(nat.director.ns) as l4lb:
        raw = Ranged(nat, UDP, family, numbers, first=1, last=1, prefix=PREFIX[family])
        raw.delete()

        def packed(name, number):
            return ranges.entry(*name, proto=UDP, servers=[
                genl.batch_server(raw.address(number), 0, method=nat.method)])

        for _ in range(60):
            before, entries = dict(oracle.all), []
            for _ in range(rng.randrange(1, 4)):
                if oracle.all and rng.random() < 0.3:
                    name = rng.choice(list(oracle.all))
                    del oracle.all[name]
                    entries.append(("remove", name, 0))
            fine = True
            for _ in range(rng.randrange(1, 4)):
                net = rng.choice(list(base.subnets(new_prefix=rng.choice(lengths))))
                first = rng.randrange(1, 40)
                last = min(first + rng.choice((0, 1, 5, 20, 60)), 65535)
                name = (str(net), first, last)
                single = net.num_addresses == 1 and first == last
                if name in before or name in oracle.all or single:
                    continue
                fine &= not oracle.crosses(*name) and oracle.depth(*name) <= 8
                oracle.all[name] = rng.choice(numbers)
                entries.append(("add", name, oracle.all[name]))
            message = [ranges.removal(*name, proto=UDP) if how == "remove" else
                       packed(name, number) for how, name, number in entries]
            if not message:
                continue
            if fine:
                l4lb.set_services(message)
            else:
                refused += 1
                with pytest.raises(genl.NetlinkError):
                    l4lb.set_services(message)
                oracle.all = before
            assert ranges.listed(nat.director.ns) == sorted((UDP, *name) for name in oracle.all)
            for _ in range(12):
                vip = str(base[rng.randrange(base.num_addresses)])
                client = raw.at(vip, rng.randrange(1, 105)).client()
                client.send()
                want = oracle.find(vip, raw.port)
                hits[want or 0] += 1
                if want:
                    number, p = client.arrive()
                    assert (number, p.dport) == (want, raw.port), (vip, raw.port, oracle.all)
                else:
                    client.nothing_arrives()
    assert refused and min(hits) > 30


def test_replaced_in_one_message(nat):
    """A range gives way to one that crosses it, in the same message; not without its removal, and
    then nothing changes."""
    with ranges.here(nat, PREFIX[4]), genl.L4lb(nat.director.ns) as l4lb:
        raw = Ranged(nat, TCP, 4, (1,), first=100, last=200)
        other = ranges.entry(raw.prefix, 150, 250, servers=[genl.batch_server(raw.address(1), 0)])
        extra = ranges.entry(raw.prefix, 700, 800)
        first_of_its_prefix = ranges.entry("100.64.9.0/28", 700, 800)
        with pytest.raises(genl.NetlinkError) as refused:
            l4lb.set_services([extra, first_of_its_prefix, other])
        assert refused.value.errno == 17
        assert "service 3: " in str(refused.value) or not genl.SAYS_WHY
        assert ranges.listed(nat.director.ns) == [(TCP, raw.prefix, 100, 200)]
        l4lb.set_services([other, ranges.removal(raw.prefix, 100, 200)])
        assert ranges.listed(nat.director.ns) == [(TCP, raw.prefix, 150, 250)]
        raw.at(1, 240).client().open()
        raw.at(1, 120).client().send().nothing_arrives()
        # All at once, by a sender that knows ranges; not by another one.
        with pytest.raises(genl.NetlinkError) as refused:
            l4lb.set_services([extra], genl.REPLACE)
        assert refused.value.errno == 95
        l4lb.set_services([genl.attr(genl.L_RANGES, b""), ranges.entry(raw.prefix, 249, 251)],
                          genl.REPLACE)
        assert ranges.listed(nat.director.ns) == [(TCP, raw.prefix, 249, 251)]


# First and last port, and what else is wrong.
BAD = {
    "host bits": (80, 99, {"addr": genl.address("100.64.7.65")}),
    "no prefix": (80, 99, {"length": 0}), "long prefix": (80, 99, {"length": 33}),
    "last before first": (90, 80, {}), "port 0": (0, 99, {}),
    "short address": (80, 99, {"addr": b"\1\2"}),
}


@pytest.mark.parametrize("how", BAD)
def test_bad_range(nat, how):
    first, last, more = BAD[how]
    with genl.L4lb(nat.director.ns) as l4lb:
        bad = genl.attr(genl.L_ENTRY, [genl.attr(genl.L_SERVICE, [
            genl.attr(genl.S_AF, genl.u16(2)), genl.attr(genl.S_PROTOCOL, genl.u16(TCP)),
            ranges.nest(PREFIX[4], first, last, **more), *genl.service_options(2)])])
        with pytest.raises(genl.NetlinkError) as refused:
            l4lb.set_services([bad])
        assert refused.value.errno in (22, 34)
    assert not ranges.listed(nat.director.ns)


@pytest.mark.parametrize("how", ("single", "mark", "exact", "icmp", "family"))
def test_bad_name(nat, how):
    names = {
        "single": ranges.ident("100.64.7.64/32", 80, 80),
        "mark": [*ranges.ident("100.64.7.64/28", 80), genl.attr(genl.S_FWMARK, genl.u32(7))],
        "exact": [*ranges.ident("100.64.7.64/28", 80), genl.attr(genl.S_PORT, genl.be16(7))],
        "icmp": ranges.ident("100.64.7.64/28", 80, proto=1),
        "family": [genl.attr(genl.S_AF, genl.u16(0x102)),
                   *ranges.ident("100.64.7.64/28", 80)[1:]],
    }
    with genl.L4lb(nat.director.ns) as l4lb, pytest.raises(genl.NetlinkError) as refused:
        l4lb.set_services([genl.attr(genl.L_ENTRY, [genl.attr(
            genl.L_SERVICE, names[how] + genl.service_options(2))])])
    assert refused.value.errno == (97 if how == "family" else 22)
    assert not ranges.listed(nat.director.ns)


def test_what_cannot_work(nat):
    """One-packet scheduling, conn-state lazy, a guard of a prefix, a real server in it; a ninth
    length of prefixes, a ninth range in one another."""
    raw = Ranged(nat, UDP, 4, (1,))
    before = ranges.listed(nat.director.ns)
    with genl.L4lb(nat.director.ns) as l4lb:
        def refused(code, *entries):
            with pytest.raises(genl.NetlinkError) as error:
                l4lb.set_services(list(entries))
            assert error.value.errno == code, error.value
            assert ranges.listed(nat.director.ns) == before

        def policy(**values):
            return [genl.attr(genl.L_POLICY, [genl.attr(genl.POLICY[k], genl.u32(v))
                                              for k, v in values.items()])]
        refused(95, ranges.entry(raw.prefix, 1, 9, UDP, flags=genl.ONEPACKET))
        refused(95, ranges.entry(raw.prefix, raw.first, raw.last, UDP, flags=genl.ONEPACKET))
        refused(95, ranges.entry(raw.prefix, 1, 9, UDP, flags=genl.PERSISTENT, timeout=60, pe="sip"))
        refused(95, ranges.entry(raw.prefix, 1, 9, TCP, more=policy(conn_state=1), sched="mh"))
        refused(95, ranges.entry(raw.prefix, 1, 9, TCP, more=policy(guard=1)))
        refused(22, ranges.entry(raw.prefix, 1, 9, servers=[genl.batch_server("100.64.7.70", 0)]))
        refused(7, *(ranges.entry(f"100.64.0.0/{n}", 80, proto=UDP) for n in range(16, 25)))
        refused(7, *(ranges.entry(raw.prefix, n, 100 - n) for n in range(1, 10)))
        # The most that there can be.
        l4lb.set_services([ranges.entry(f"100.64.0.0/{n}", 80) for n in range(16, 24)])
        l4lb.set_services([ranges.entry("100.64.0.0/16", n, 99 - n) for n in range(1, 8)])
        l4lb.set_services([ranges.entry("100.64.7.64/32", 80, 90, more=policy(guard=1), proto=UDP)])


def test_family_ipvs_does_not_see_it(nat):
    """Its lists, answers and counters of other services are as without; a flush removes it."""
    exact = Raw(nat, UDP, 4, (1,))

    def answers():
        return ([s["port"] for s in nat.ipvs.services()], exact.service.get()["sched"],
                nat.director.ns.read("/proc/net/ip_vs"))
    without = answers()
    raw = Ranged(nat, UDP, 4, (1,), first=exact.port, last=exact.port + 10)
    assert answers() == without
    named = nat.ipvs.service(raw.prefix.partition("/")[0], raw.first, proto=UDP, add=False)
    for call in (named.get, named.delete, named.servers, named.zero):
        if call == named.servers:
            assert call() == []
            continue
        with pytest.raises(genl.NetlinkError) as refused:
            call()
        assert refused.value.errno == 3
    assert ranges.listed(nat.director.ns)
    with genl.L4lb(nat.director.ns) as l4lb:
        assert len(l4lb.get_services()) == 1      # a program that does not know ranges
    nat.ipvs.flush()
    assert not ranges.listed(nat.director.ns)


def test_persistence(lab, family):
    """A client's connections to a VIP go to one real server, whatever their port in the range.
    An exact service on its first port has clients of its own."""
    with ranges.here(lab, PREFIX[family]):
        raw = Ranged(lab, TCP, family, flags=genl.PERSISTENT, timeout=60)
        exact = Raw(lab, TCP, family, vip=str(ipaddress.ip_network(raw.prefix)[3]),
                    port=raw.first, dport=40123 if lab.shape == "nat" else None,
                    flags=genl.PERSISTENT, timeout=60)
        address = lab.client_address(family)
        got = {raw.at(3, raw.first + n).client(address).open() for n in range(1, 9)}
        assert len(got) == 1
        others = {raw.at(3, raw.first + 1).client().open() for _ in range(4)}
        assert others == {1, 2}
        there = {exact.client(address).open() for _ in range(3)}
        assert len(there) == 1
        with genl.L4lb(lab.director.ns) as l4lb:
            found = [c for c in l4lb.conns(client=address) if c["flags"] & genl.F_TEMPLATE]
        assert sorted((c["client_port"], c["vport"]) for c in found) == [
            (0, raw.first), (raw.last, raw.first)]


def test_deleted_under_traffic(nat, proto):
    """Connections stay as those of any service, new ones are no longer taken; the range comes
    back, and finds them."""
    with ranges.here(nat, PREFIX[4]):
        raw = Ranged(nat, proto, 4, (1,))
        client = raw.client()
        client.open()
        raw.delete()
        raw.client().send().nothing_arrives()
        raw.set((1,))
        client.send(ACK)
        client.arrive()
        assert raw.client().open() == 1


def test_nonlocal(nat, family):
    """A prefix that is only routed here."""
    ip = "ip -6" if family == 6 else "ip"
    nat.director.ns.run(f"{ip} route add {PREFIX[family]} via {nat.phantom(2, family)} dev eth1")
    try:
        with setting(nat, "nonlocal_vip", 1):
            raw = Ranged(nat, UDP, family, (1,))
            assert raw.client().open() == 1
    finally:
        nat.director.ns.run(f"{ip} route del {PREFIX[family]}")


@pytest.mark.parametrize(("first", "way"), ((1, "slow"), (2, "fast")), ids=("fast", "new"))
@BOTH
def test_ways_of_packets(nat, family, proto, first, way):
    """Packets of known flows take the fast path, both ways; with fast-path new the first, too."""
    slow = {UDP: "slow_unknown", TCP: "slow_opens"}[proto]
    with ranges.here(nat, PREFIX[family]), setting(nat, "fast_path", first):
        raw = fast.ready(Ranged(nat, proto, family, (1,)))
        for vip, port in ((0, raw.first), (5, raw.first + 5), (-1, raw.last)):
            client = raw.at(vip, port).client()
            with counted(raw, **{way if way == "fast" else slow: 1}):
                client.open()
            if proto == TCP:
                client.reply(SYN | ACK).answered()
                client.send(ACK).arrive()
            client.reply(ACK, b"y").answered()      # it looks its route up
            assert request_is(client, b"more", fast=1).dport == port
            p = reply_is(client, b"y", fast=1)
            assert (p.src, p.sport) == (raw.vip, port)


def test_icmp_error_of_the_client(nat, family):
    """It finds the real server of the connection that it quotes."""
    with ranges.here(nat, PREFIX[family]):
        raw = Ranged(nat, UDP, family, (1,))
        client = raw.client()
        client.open()
        raw.dport = raw.port
        answer = client.reply(payload=b"y").answered()
        kind, code = (3, 3) if family == 4 else (1, 4)
        raw.client_tap.send(packet.icmp_packet(client.address, raw.vip, kind, code,
                                               payload=answer.raw))
        raw.taps[1].expect(lambda p: p.dst == raw.address(1) and p.proto in (1, 58) and
                           p.type == kind, what="ICMP error")


def test_only_one_address_is_local(nat, family):
    """At ingress each address of a prefix is looked up: one that is not this host's is routed."""
    net = ipaddress.ip_network(PREFIX[family])
    own, away = str(net[3]), str(net[4])
    full = ranges.EXACT[family]
    ip = "ip -6" if family == 6 else "ip"
    nat.director.ns.run(f"{ip} route add {away} via {nat.phantom(2, family)} dev eth1")
    try:
        with ranges.here(nat, f"{own}/{full}"), at_ingress(nat):
            raw = fast.ready(Ranged(nat, UDP, family, (1,)))
            raw.taps[2] = nat.tap("rs2")
            for vip, number, way in ((own, 1, "fast"), (away, 2, "slow_unknown"), (own, 1, "fast"),
                                     (away, 2, "slow_unknown")):
                client = raw.at(vip, raw.first + 1).client()
                with counted(raw, **{way: 1}):
                    client.send()
                got, p = client.arrive()
                assert (got, p.dst) == (number, raw.address(1) if number == 1 else away)
    finally:
        nat.director.ns.run(f"{ip} route del {away}")


def test_removal_that_is_refused(nat):
    """The range that a refused message would have removed is there, and in the way, as before."""
    with ranges.here(nat, PREFIX[4]), genl.L4lb(nat.director.ns) as l4lb:
        raw = Ranged(nat, TCP, 4, (1,), first=100, last=200)
        for _ in range(2):
            with pytest.raises(genl.NetlinkError) as refused:
                l4lb.set_services([ranges.removal(raw.prefix, 100, 200),
                                   ranges.entry(raw.prefix, 300, 400, sched="nonesuch")])
            assert refused.value.errno == 2
            with pytest.raises(genl.NetlinkError) as refused:
                l4lb.set_services([ranges.removal(raw.prefix, 100, 200),
                                   ranges.entry(raw.prefix, 300, 400),
                                   ranges.entry(raw.prefix, 350, 450)])
            assert refused.value.errno == 17
            with pytest.raises(genl.NetlinkError) as refused:
                l4lb.set_services([ranges.entry(raw.prefix, 150, 250)])
            assert refused.value.errno == 17
        assert raw.at(1, 150).client().open() == 1
        raw.at(1, 350).client().send().nothing_arrives()


def test_set_server(nat):
    """One real server at a time: added, changed, removed; refused with the errors of family IPVS.
    Counters begin again."""
    with ranges.here(nat, PREFIX[4]), genl.L4lb(nat.director.ns) as l4lb:
        raw = Ranged(nat, UDP, 4, ())
        for n in (1, 2):
            raw.taps[n] = nat.tap(f"rs{n}")

        def do(*servers, mode=None, remove=False):
            l4lb.request(genl.SET_SERVER, b"".join([
                genl.attr(genl.L_SERVICE, raw.ident), genl.attr(genl.L_DESTS, list(servers)),
                *([genl.attr(genl.L_MODE, genl.u32(mode))] if mode is not None else []),
                *([genl.attr(genl.L_REMOVE, b"")] if remove else [])]))

        def refused(code, *servers, **how):
            with pytest.raises(genl.NetlinkError) as error:
                do(*servers, **how)
            assert error.value.errno == code, error.value
        one, two = (genl.batch_server(raw.address(n), 0, method=nat.method) for n in (1, 2))
        refused(2, one, mode=genl.CHANGE)
        do(one, mode=genl.ADD)
        refused(17, one, mode=genl.ADD)
        refused(22, one, two)
        refused(22)
        refused(22, one, mode=genl.REPLACE)
        refused(22, one, mode=genl.ADD, remove=True)
        refused(22, genl.batch_server("100.64.7.70", 0))
        assert raw.client().open() == 1
        do(two)
        do(genl.batch_server(raw.address(1), 0, method=nat.method, weight=0))
        assert raw.client().open() == 2
        do(one, remove=True)
        refused(2, one, remove=True)
        listed = l4lb.dump(genl.GET_SERVICES, genl.attr(genl.L_RANGES, b"") +
                           genl.attr(genl.L_LIVE, b""))
        assert len(listed) == 1
        l4lb.request(genl.ZERO_SERVICE, genl.attr(genl.L_SERVICE, raw.ident))


def test_cost_of_a_lookup(nat, k=20_000):
    """A packet looks at no more ranges than their number's logarithm: with many it takes as long
    as with one."""
    with ranges.here(nat, PREFIX[4]), genl.L4lb(nat.director.ns) as l4lb:
        raw = Ranged(nat, UDP, 4, (1,), first=60000, last=60001)
        packets = [packet.udp_packet(nat.client_address(), 1000 + n % 50000, raw.vip, 50000 + n % 9000)
                   for n in range(2000)]

        def seconds():
            took = []
            for _ in range(3):
                began = time.perf_counter()
                raw.send_all(packets)
                took.append(time.perf_counter() - began)
            return min(took)
        few = seconds()
        l4lb.set_services([ranges.entry(raw.prefix, 2 * n + 1, 2 * n + 2, UDP)
                           for n in range(k)])
        assert len(ranges.listed(nat.director.ns)) == k + 1
        bounded(2, seconds, lambda: few)
