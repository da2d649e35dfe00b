# SPDX-License-Identifier: GPL-2.0
"""The schedulers, compiled unchanged as a user-space program (tests/unit).

No kernel and no network: the tests check which server each new connection goes
to.  Servers are named by number; the head of unit/sim.c describes the
program's commands.
"""

import ipaddress
import random
import struct
import sys
from collections import Counter
from pathlib import Path

import pytest
from simulator import add, picks

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lab.siphash import siphash  # noqa: E402

# ---- dh, sh, mh ----


def hash_32(value, bits):
    return (value * 0x61c88647 & 0xffffffff) >> 32 - bits


def fold(address):
    address = ipaddress.ip_address(address)
    value, out = int(address), 0
    for _ in range(address.max_prefixlen // 32):
        out ^= value & 0xffffffff
        value >>= 32
    return out


def addresses(family, n=64):
    chance = random.Random(family)
    return [str(ipaddress.IPv4Address(chance.getrandbits(32)) if family == 4
                else ipaddress.IPv6Address(chance.getrandbits(128))) for _ in range(n)]


@pytest.mark.parametrize("family", (4, 6))
class TestHashing:
    """Compared with a second implementation of the definition."""

    def test_dh(self, sim, family):
        vips = addresses(family)
        script = f"service {family} 0;" + add(1, 9, 0, 1, 4) + "".join(
            f"flow tcp {vips[0]} 1 {vip} 80;" for vip in vips)
        order = [5, 4, 3, 2, 1]
        want = [order[hash_32(fold(v), 8) % 5] for v in vips]
        assert picks(sim("dh", script)) == [None if d == 3 else d for d in want]

    @pytest.mark.parametrize("flags", (0, 8, 16, 24))
    def test_sh(self, sim, family, flags):
        clients_, weights = addresses(family), (1, 9, 0, 200, 4)
        order = [d for d in (5, 4, 3, 2, 1) for _ in range(max(1, weights[d - 1]))]
        table = (order * 256)[:256]
        want = []
        for i, client in enumerate(clients_):
            h = hash_32(fold(client) + (1000 + i if flags & 16 else 0), 8)
            tries = [h] + [(2 * h + o) % 256 for o in range(256)]
            up = [table[t] for t in tries[:None if flags & 8 else 1] if table[t] != 3]
            want.append(up[0] if up else None)
        script = f"service {family} {flags};" + add(*weights) + "".join(
            f"flow udp {c} {1000 + i} {c} 80;" for i, c in enumerate(clients_))
        assert picks(sim("sh", script)) == want

    def test_address_alone_decides(self, sim, family):
        a, b = addresses(family, 2)
        for name, flow in (("sh", f"flow tcp {a} {{}} {b} {{}};"),
                           ("mh", f"flow tcp {a} {{}} {b} {{}};"),
                           ("dh", f"flow tcp {b} {{}} {a} {{}};")):
            flows = "".join(flow.format(1000 + i, 80 + i) for i in range(50))
            got = picks(sim(name, f"service {family} 0;" + add(1, 1, 1, 1) + flows))
            assert len(set(got)) == 1 and got[0]

    def test_port_decides_too(self, sim, family):
        a = addresses(family, 1)[0]
        flows = "".join(f"flow tcp {a} {1000 + i} {a} 80;" for i in range(200))
        for name in ("sh", "mh"):
            got = picks(sim(name, f"service {family} 16;" + named(4) + flows))
            assert set(got) == {1, 2, 3, 4}


def named(n, weight=1):
    """Servers with distinct addresses, which mh hashes."""
    return "".join(f"addr {i} 192.0.2.{i} 80; add {i} {weight};" for i in range(1, n + 1))


MANY = "".join(f"flow tcp {a} 1 192.0.2.1 80;" for a in addresses(4, 4000))


class TestMh:
    def test_shares(self, sim):
        got = Counter(picks(sim("mh", named(4) + MANY)))
        assert all(abs(got[i] - 1000) < 120 for i in (1, 2, 3, 4)), got

    def test_weights(self, sim):
        got = Counter(picks(sim("mh", named(4) + "edit 1 5;" + MANY)))
        assert abs(got[1] - 2500) < 200, got

    def test_removal_moves_few_others(self, sim):
        whole = picks(sim("mh", named(5) + MANY))
        less = picks(sim("mh", named(5) + "del 2;" + MANY))
        kept = [(a, b) for a, b in zip(whole, less) if a != 2]
        assert sum(a != b for a, b in kept) < len(kept) * 0.2

    def test_weight_zero_moves_nobody(self, sim):
        whole = picks(sim("mh", named(5) + MANY))
        quiet = picks(sim("mh", named(5) + "edit 2 0;" + MANY))
        assert quiet == [None if a == 2 else a for a in whole]

    def test_fallback_moves_only_its_own(self, sim):
        whole = picks(sim("mh", "service 4 8;" + named(5) + MANY))
        quiet = picks(sim("mh", "service 4 8;" + named(5) + "over 2 1;" + MANY))
        assert all(b == a for a, b in zip(whole, quiet) if a != 2)
        fell = Counter(b for a, b in zip(whole, quiet) if a == 2)
        assert set(fell) == {1, 3, 4, 5}

    @pytest.mark.parametrize("usable, fewest, most", [
        ("", 0, 1),                                 # a look at the place is enough
        ("1", 1000, 2 * 4093),                      # one place in thousands: all are looked at, once
        (" ".join(map(str, range(1, 33))), 0, 0)])  # nowhere to go: no place is looked at
    def test_cost_of_the_fallback(self, sim, usable, fewest, most):
        """32 servers have most places; a client has no say in how many are looked at in vain."""
        script = "service 4 8;" + add(1, *[1000] * 31)
        over = {"": [], "1": range(2, 33)}.get(usable, range(1, 33))
        answers = sim("mh", script + "".join(f"over {n} 1;" for n in over) + MANY + "cost")
        found = int(answers[-1])
        assert fewest <= found <= most + 4 * 32 + 16        # and all servers, for the least loaded

    def test_fallback_order(self, sim):
        """After h, the place of v, the places of v + (h + i) mod 4093 are tried,
        i = 0, 1, ...  A pool without failures shows which server owns a place."""
        def place(v):
            data, key = struct.pack("<I", v & 0xffffffff), (2654435761, 2654435761)
            return (siphash(data, key, (1, 3)) & 0xffffffff) % 4093

        def flows(values):
            return "".join(f"flow udp {ipaddress.IPv4Address(v)} 1 192.0.2.1 80;"
                           for v in values)

        values = [int(ipaddress.IPv4Address(a)) for a in addresses(4, 100)]
        tries = {v: [(v + (place(v) + i) % 4093) & 0xffffffff for i in range(20)]
                 for v in values}
        asked = sorted({t for v in values for t in (v, *tries[v])})
        owner = dict(zip(asked, picks(sim("mh", named(3) + flows(asked)))))
        want = [next(owner[t] for t in (v, *tries[v]) if owner[t] != 2) for v in values]
        got = picks(sim("mh", "service 4 8;" + named(3) + "over 2 1;" + flows(values)))
        assert got == want

    def test_more_servers_than_places(self, sim):
        script = "".join(f"addr {i} 10.1.{i >> 8}.{i & 255} 80;" for i in range(4095))
        script += "memory 1;" + "".join(f"add {i} 1;" for i in range(3800, 4095))
        got = picks(sim("mh", script + MANY))
        assert None not in got and len(set(got)) > 200

    def test_nobody_up_costs_little(self, sim):
        script = "service 4 8;" + named(5) + "".join(f"over {i} 1;" for i in range(1, 6))
        answers = sim("mh", script + "pick tcp; cost")
        assert answers[-2] == "-" and int(answers[-1]) < 50


# ---- order and key ----

FLAGS_PORT = 16
KEY, OTHER_KEY = "key 0x0706050403020100 0x0f0e0d0c0b0a0908;", "key 1 2;"


def shuffled(family, seed, n=7):
    """Servers of different weights, added in an order that depends on SEED."""
    order = list(range(1, n + 1))
    random.Random(seed).shuffle(order)
    net = "192.0.2." if family == 4 else "2001:db8::"
    return "".join(f"addr {i} {net}{i} {80 + i % 3}; add {i} {i % 3 + 1};" for i in order)


def many(family, n=3000):
    vip = "192.0.2.100" if family == 4 else "2001:db8::100"
    return "".join(f"flow tcp {a} 1 {vip} 80;" for a in addresses(family, n))


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("name", ("mh", "sh"))
class TestOrder:
    def chosen(self, sim, name, family, seed, options=""):
        script = f"service {family} 0;" + options + shuffled(family, seed) + many(family)
        return picks(sim(name, script))

    def test_by_address_all_directors_agree(self, sim, name, family):
        one, *others = [self.chosen(sim, name, family, seed, "option order 1;")
                        for seed in range(4)]
        assert all(other == one for other in others)
        assert len(set(one)) == 7

    def test_by_age_they_do_not(self, sim, name, family):
        """As with ip_vs: it is why the option exists."""
        one, other = (self.chosen(sim, name, family, seed) for seed in (0, 1))
        assert one != other

    def test_set_later_or_unset(self, sim, name, family):
        """The table follows the option at once."""
        head, tail = f"service {family} 0;" + shuffled(family, 1), many(family)
        before = picks(sim(name, head + tail))
        after = picks(sim(name, head + "option order 1;" + tail))
        assert before != after == self.chosen(sim, name, family, 2, "option order 1;")
        assert picks(sim(name, head + "option order 1; option order 0;" + tail)) == before


def test_order_of_ports(sim):
    """Servers of one address, as of several programs of one machine."""
    def chosen(order):
        return picks(sim("sh", "service 4 0; option order 1;" + "".join(
            f"addr {i} 192.0.2.1 {80 + i}; add {i} 1;" for i in order) + many(4, 300)))
    assert chosen((1, 2, 3, 4, 5)) == chosen((4, 2, 5, 1, 3))


@pytest.mark.parametrize("family", (4, 6))
def test_dh_order(sim, family):
    vips = addresses(family, 300)
    flows = "".join(f"flow tcp {vips[0]} 1 {vip} 80;" for vip in vips)
    head = f"service {family} 0;"
    old, one, other = (picks(sim("dh", head + option + shuffled(family, seed) + flows))
                       for option, seed in (("", 0), ("option order 1;", 0), ("option order 1;", 3)))
    assert one == other != old
    by_address = [7, 6, 5, 4, 3, 2, 1]
    assert one == [by_address[hash_32(fold(v), 8) % 7] for v in vips]


class TestKey:
    def test_siphash(self):
        """The vectors of its authors for 0, 1 and 8 bytes."""
        key = struct.unpack("<QQ", bytes(range(16)))
        assert [siphash(bytes(range(n)), key) for n in (0, 1, 8)] == [
            0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x93f5f5799a932462]

    @pytest.mark.parametrize("flags", (0, FLAGS_PORT))
    def test_places(self, sim, flags):
        """Compared with a second implementation, for IPv4: which clients share a place is
        decided by the key, so all clients of one place have one server."""
        key = (0x0706050403020100, 0x0f0e0d0c0b0a0908)
        clients = addresses(4, 3000)
        place = [siphash(struct.pack("<Q", siphash(struct.pack(
            "<IIQQ", 0, int(ipaddress.IPv4Address(c)), 0, 7 if flags else 0), key)), key) % 4093
            for c in clients]
        got = picks(sim("mh", f"service 4 {flags};" + KEY + named(5) + "".join(
            f"flow tcp {c} 7 192.0.2.1 80;" for c in clients)))
        servers = {}
        for at, server in zip(place, got, strict=True):
            assert servers.setdefault(at, server) == server
        assert len(servers) > 1000 and set(servers.values()) == {1, 2, 3, 4, 5}

    @pytest.mark.parametrize("family", (4, 6))
    def test_the_key_decides(self, sim, family):
        head, tail = f"service {family} 0;" + shuffled(family, 0), many(family)
        public, secret, other = (picks(sim("mh", head + k + tail)) for k in ("", KEY, OTHER_KEY))
        for a, b in ((public, secret), (secret, other)):
            assert 0.3 < sum(x != y for x, y in zip(a, b, strict=True)) / len(a) < 0.95
        assert picks(sim("mh", head + KEY + "option key 0;" + tail)) == public
        # Shares are by weight, as without: 2, 3, 1, 2, 3, 1, 2 of 14.
        counts = Counter(secret)
        for server in range(1, 8):
            assert abs(counts[server] - 3000 * (server % 3 + 1) / 14) < 130, counts

    @pytest.mark.parametrize("name, spread", (("", 1), (KEY, 4)))
    def test_aimed_clients(self, sim, name, spread):
        """IPv6 addresses that are equal once they are folded to 32 bits, and IPv4 ones whose
        sum with the port is: with the public hash all get one server."""
        folded = "".join(f"flow tcp 2001:db8::{i:x}:0:{i:x}:5 1 2001:db8::1 80;"
                         for i in range(1, 300))
        got = set(picks(sim("mh", "service 6 0;" + name + shuffled(6, 0) + folded)))
        assert len(got) == 1 if spread == 1 else len(got) >= spread
        summed = "".join(f"flow tcp 198.51.100.{i} {5000 - i} 192.0.2.1 80;" for i in range(250))
        got = set(picks(sim("mh", "service 4 16;" + name + shuffled(4, 0) + summed)))
        assert len(got) == 1 if spread == 1 else len(got) >= spread

    def test_fallback_moves_only_its_own(self, sim):
        head = "service 4 8;" + KEY + named(5)
        whole, quiet = (picks(sim("mh", head + over + MANY)) for over in ("", "over 2 1;"))
        assert all(b == a for a, b in zip(whole, quiet) if a != 2)
        assert set(b for a, b in zip(whole, quiet) if a == 2) == {1, 3, 4, 5}

    def test_removal_moves_few_others(self, sim):
        head = KEY + "option order 1;" + named(10)
        whole, less = (picks(sim("mh", head + gone + MANY)) for gone in ("", "del 4;"))
        kept = [(a, b) for a, b in zip(whole, less) if a != 4]
        assert 0 < sum(a != b for a, b in kept) < len(kept) * 0.04


@pytest.mark.parametrize("name", ("mh", "sh", "dh"))
def test_no_memory_for_the_order(sim, name):
    """The old table stays."""
    script = named(3) + "memory 0;" + "addr 4 192.0.2.4 80; add 4 1;" + "memory 1;" + many(4, 200)
    answers = sim(name, script)
    assert "-12" in answers
    assert set(picks(answers)) <= {1, 2, 3}


# ---- twos ----


class TestTwos:
    def test_shares_of_idle_servers(self, sim):
        """Without load the choice is random, in proportion to the weights."""
        script = add(1, 2, 5) + "pick udp; load 1 0 0; load 2 0 0; load 3 0 0;" * 4000
        got = Counter(picks(sim("twos", script)))
        for i, weight in enumerate((1, 2, 5), 1):
            assert abs(got[i] - 500 * weight) < 150, got

    def test_less_loaded_of_two(self, sim):
        """Of two servers the loaded one is chosen only if drawn twice: a quarter."""
        script = add(1, 1) + "pick udp; load 1 5 5; load 2 0 0;" * 4000
        got = Counter(picks(sim("twos", script)))
        assert abs(got[1] - 1000) < 150, got

    def test_balances_like_wlc(self, sim):
        got = Counter(picks(sim("twos", add(*[1] * 50) + "pick udp 5000")))
        assert max(got.values()) - min(got.values()) < 12

    def test_almost_nobody_usable(self, sim):
        script = add(*[1000] * 200) + "".join(f"over {i} 1;" for i in range(1, 200))
        assert picks(sim("twos", script + "pick udp 50")) == [200] * 50
