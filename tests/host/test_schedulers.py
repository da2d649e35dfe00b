# SPDX-License-Identifier: GPL-2.0
"""The schedulers, compiled unchanged as a user-space program (tests/unit).

No kernel and no network: what is tested is which server each new connection
goes to.  Servers are named by number; the program's commands are described at
the head of unit/sim.c.
"""

import ipaddress
import json
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

UNIT = Path(__file__).parent.parent / "unit"
ROOT = UNIT.parent.parent
README = ROOT / "schedulers/README.md"
# A new one gets the tests of all for free, and so does the README's example.
SCHEDULERS = tuple(dict.fromkeys(re.search(
    r"^schedulers := (.*)", (ROOT / "schedulers/Kbuild").read_text(), re.M)[1].split() + ["mine"]))
FLAGS = ("-std=gnu11 -g -O1 -Wall -Werror -Wno-pragmas -Wno-address -pthread "
         "-fsanitize=address,undefined -fno-sanitize-recover=all").split()


@pytest.fixture(scope="session")
def sim(tmp_path_factory):
    """sim("rr", "add 1 1; pick tcp 3") -> the answers, one for each command."""
    build = tmp_path_factory.mktemp("sched")
    core = [ROOT / "kernel" / f for f in ("sched.h", "service/registry.c", "service/affinity.h",
                                      "service/affinity.c")]
    for name in SCHEDULERS:
        source = ROOT / f"schedulers/{name}.c"
        if not source.exists():
            source = build / f"{name}.c"
            source.write_text(re.search(r"^```c\n(.*?)^```$", README.read_text(), re.M | re.S)[1])
        for text in (f.read_text() for f in [*core, source]):
            for header in re.findall(r"#include <(.*)>", text):
                stub = build / "include" / header
                stub.parent.mkdir(parents=True, exist_ok=True)
                stub.touch()
        done = subprocess.run(
            ["gcc", *FLAGS, "-include", UNIT / "shim.h",
             "-I", build / "include", "-iquote", ROOT / "kernel",
             "-o", build / name, UNIT / "sim.c", core[1], core[3], source],
            capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            pytest.exit(f"{name}.c does not compile against unit/shim.h:\n{done.stderr}", 1)

    def run(name, script):
        commands = [c.strip() for c in re.split(r"[;\n]", script) if c.strip()]
        done = subprocess.run([build / name, name], text=True, timeout=120,
                              input="\n".join(commands) + "\n",
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(commands), done.stdout
        return answers
    return run


def picks(answers):
    """The answers to `pick`, as one list: [1, 2, None, ...]."""
    out = []
    for line in answers:
        if re.fullmatch(r"(\d+|-)( (\d+|-))*", line):
            out += [None if w == "-" else int(w) for w in line.split()]
    return out


def add(*weights):
    """Commands to add servers 1, 2, ... with these weights."""
    return "".join(f"add {i} {w};" for i, w in enumerate(weights, 1))


# ---- all of them ----


@pytest.mark.parametrize("name", SCHEDULERS)
class TestEach:
    def test_no_server(self, sim, name):
        assert picks(sim(name, "pick tcp 3")) == [None] * 3

    def test_one_server(self, sim, name):
        assert picks(sim(name, "add 7 5; pick tcp 3; pick udp 3")) == [7] * 6

    def test_all_removed(self, sim, name):
        script = add(1, 1) + "pick tcp 3; del 1; del 2; pick tcp 2; add 1 1; pick tcp"
        assert picks(sim(name, script))[3:] == [None, None, 1]

    def test_weight_zero_gets_nothing(self, sim, name):
        got = clients(sim, name, add(1, 0, 3))
        assert 2 not in got
        assert set(got) & {1, 3}

    def test_all_weights_zero(self, sim, name):
        script = add(0, 0) + "pick tcp 5; edit 2 1;" + FLOWS
        got = picks(sim(name, script))
        assert got[:5] == [None] * 5
        assert set(got[5:]) <= {2, None} and 2 in got

    def test_overloaded_gets_nothing(self, sim, name):
        """All of them until there is one; then the others can be had again."""
        for i in (1, 2, 3):
            script = add(90, 90, 90) + f"over {i} 1;"
            assert i not in clients(sim, name, script)
        script = add(9, 9) + "over 1 1; over 2 1; pick tcp 4; over 1 0; over 2 0; pick tcp"
        got = picks(sim(name, script))
        assert got[:4] == [None] * 4
        assert got[4] in (1, 2)

    def test_removed_gets_nothing(self, sim, name):
        for i in (1, 2, 3):
            assert i not in clients(sim, name, add(90, 90, 90) + f"del {i};")

    def test_race_never_misses_the_only_usable(self, sim, name):
        script = add(*[1] * 16) + "service 4 8;" + \
            "".join(f"over {i} 1;" for i in range(1, 17) if i != 16)
        if name != "dh":
            assert sim(name, script + "race 8 20000")[-1].split() == ["16=160000"]

    def test_a_thousand_servers(self, sim, name):
        got = clients(sim, name, add(*[3] * 1000), FLOWS)
        assert None not in got

    def test_out_of_memory_changes_nothing(self, sim, name):
        script = add(1, 1) + "memory 0; add 3 1; memory 1; "
        answers = sim(name, script + FLOWS)
        if name in WITH_TABLE:
            assert answers[3] == "-12"
            assert 3 not in picks(answers)
        else:
            assert answers[3] == "ok"


WITH_TABLE = ("rr", "wrr", "sh", "mh", "twos")
# New connections of many clients to many destinations.
FLOWS = "".join(f"flow {'tcp' if i % 3 else 'udp'} 10.{i % 7}.{i}.{i * 5 % 251} {2000 + i} "
                f"10.50.{i * 3 % 256}.{i} 80;" for i in range(200))


def clients(sim, name, setup, flows=FLOWS):
    return picks(sim(name, setup + flows))


@pytest.mark.parametrize("name", ("rr", "wrr", "lc", "wlc"))
class TestSpread:
    def test_weight_zero(self, sim, name):
        got = Counter(picks(sim(name, add(1, 0, 3) + "pick udp 40")))
        assert set(got) == {1, 3}

    def test_overloaded(self, sim, name):
        script = add(1, 1, 1) + "over 2 1; pick udp 30; over 2 0; pick udp 30"
        got = picks(sim(name, script))
        assert set(got[:30]) == {1, 3}
        assert set(got[30:]) == {1, 2, 3}

    def test_upper_threshold(self, sim, name):
        got = Counter(picks(sim(name, "add 1 1 3 1; add 2 1; pick tcp 20")))
        assert got == {1: 3, 2: 17}

    def test_a_thousand_servers(self, sim, name):
        got = picks(sim(name, add(*[1] * 1000) + "pick udp 3000"))
        assert Counter(got) == {i: 3 for i in range(1, 1001)}


# ---- rr ----


class TestRr:
    def test_order_of_adding(self, sim):
        assert picks(sim("rr", add(1, 1, 1) + "pick tcp 7")) == [1, 2, 3, 1, 2, 3, 1]

    def test_weight_is_ignored(self, sim):
        assert picks(sim("rr", add(9, 1, 5) + "pick tcp 6")) == [1, 2, 3, 1, 2, 3]

    def test_skipping_gives_nobody_a_double_share(self, sim):
        got = picks(sim("rr", add(1, 0, 1, 1) + "pick tcp 9"))
        assert got == [1, 3, 4] * 3

    def test_add_goes_on(self, sim):
        script = add(1, 1, 1) + "pick tcp 2; add 4 1; pick tcp 4"
        assert picks(sim("rr", script)) == [1, 2, 3, 4, 1, 2]

    @pytest.mark.parametrize("taken", range(1, 8))
    def test_edit_goes_on(self, sim, taken):
        script = add(1, 1, 1) + f"pick tcp {taken}; edit 2 5; pick tcp 3"
        got = picks(sim("rr", script))
        assert got == [1 + i % 3 for i in range(taken + 3)]

    def test_removing_the_last_picked(self, sim):
        script = add(1, 1, 1, 1) + "pick tcp 2; del 2; pick tcp 4"
        assert picks(sim("rr", script)) == [1, 2, 3, 4, 1, 3]

    def test_removing_the_first_when_it_was_picked_last(self, sim):
        script = add(1, 1, 1) + "pick tcp; del 1; pick tcp 3"
        assert picks(sim("rr", script)) == [1, 2, 3, 2]

    def test_removing_the_next(self, sim):
        script = add(1, 1, 1, 1) + "pick tcp 2; del 3; pick tcp 3"
        assert picks(sim("rr", script)) == [1, 2, 4, 1, 2]

    def test_removing_one_before(self, sim):
        script = add(1, 1, 1, 1) + "pick tcp 3; del 1; pick tcp 4"
        assert picks(sim("rr", script)) == [1, 2, 3, 4, 2, 3, 4]

    def test_added_again_is_the_newest(self, sim):
        script = add(1, 1, 1) + "pick tcp 3; del 1; add 1 1; pick tcp 4"
        assert picks(sim("rr", script))[3:] == [1, 2, 3, 1]

    @pytest.mark.parametrize("turns", (2**32 - 4, 2**31 - 4, 2**32 * 3 - 4))
    def test_order_survives_32_bits_of_turns(self, sim, turns):
        got = picks(sim("rr", add(1, 1, 1) + f"turns {turns}; pick tcp 9"))
        assert got == [1 + (turns + i) % 3 for i in range(9)]

    def test_edit_after_32_bits_of_turns(self, sim):
        turns = 2**32 + 1
        script = add(1, 1, 1) + f"turns {turns}; pick tcp; edit 1 1; pick tcp 2"
        assert picks(sim("rr", script)) == [1 + (turns + i) % 3 for i in range(3)]

    def test_counter_overflow_stays_in_range(self, sim):
        got = picks(sim("rr", add(1, 1, 1) + f"turns {2**64 - 2}; pick tcp 6"))
        assert None not in got
        assert picks(sim("rr", add(1, 1, 1) + f"turns {2**63 - 2}; pick tcp 6")) == \
            [1 + (2**63 - 2 + i) % 3 for i in range(6)]

    def test_race_shares_exactly(self, sim):
        answer = sim("rr", add(1, 1, 1) + "race 6 30000")[-1]
        assert answer.split() == ["1=60000", "2=60000", "3=60000"]

    def test_cost(self, sim):
        script = add(*[1] * 100) + "".join(f"over {i} 1;" for i in range(1, 101))
        assert int(sim("rr", script + "pick tcp 5; cost")[-1]) <= 4 * 100


# ---- wrr ----


def ideal(weights):
    """One cycle as the paper has it: lap k visits all whose weight is >= k."""
    return [i for lap in range(1, max(weights) + 1)
            for i, w in enumerate(weights, 1) if w >= lap]


class TestWrr:
    def test_the_papers_order(self, sim):
        assert picks(sim("wrr", add(3, 2, 1) + "pick tcp 12")) == [1, 2, 3, 1, 2, 1] * 2

    @pytest.mark.parametrize("weights", (
        (1, 1, 1), (1, 2, 4), (5,), (7, 11, 13), (1, 0, 3), (10, 1, 1, 1), (3, 3, 2)))
    def test_exact_cycle(self, sim, weights):
        cycle = ideal(weights)
        assert picks(sim("wrr", add(*weights) + f"pick tcp {3 * len(cycle)}")) == cycle * 3

    def test_common_divisor(self, sim):
        assert picks(sim("wrr", add(300, 200, 100) + "pick tcp 12")) == \
            [1, 2, 3, 1, 2, 1] * 2

    def test_longest_exact_cycle(self, sim):
        got = Counter(picks(sim("wrr", add(65533, 2, 1) + "pick udp 65536")))
        assert got == {1: 65533, 2: 2, 3: 1}

    @pytest.mark.parametrize("weights", (
        (2**31 - 1, 1), (2**31 - 1, 2**31 - 2, 1), (1000003, 500009, 3)))
    def test_huge_weights(self, sim, weights):
        n = 65536
        got = Counter(picks(sim("wrr", add(*weights) + f"pick udp {n}")))
        for i, w in enumerate(weights, 1):
            assert got[i] >= 1
            assert abs(got[i] - n * w / sum(weights)) <= n / 500

    def test_cost_does_not_grow_with_weights(self, sim):
        script = add(65535, 65534, 1, 1) + "over 1 1; over 2 1; pick tcp 50; cost"
        answers = sim("wrr", script)
        assert set(picks(answers[:-1])) == {3, 4}
        assert int(answers[-1]) <= 4 * 4

    def test_overloaded_share_falls_to_all_others(self, sim):
        got = picks(sim("wrr", add(6, 2, 1, 3) + "over 1 1; pick tcp 12"))
        assert got == [i + 1 for i in ideal((2, 1, 3))] * 2

    def test_removed_at_pick_time(self, sim):
        """A server that got weight 0 after the cycle was laid out."""
        script = add(1, 1, 1) + "pick tcp 3; edit 2 0; pick tcp 4; edit 2 1; pick tcp 3"
        got = picks(sim("wrr", script))
        assert set(got[3:7]) == {1, 3}
        assert sorted(got[7:]) == [1, 2, 3]

    def test_edit_keeps_the_place(self, sim):
        script = add(1, 1, 1, 1) + "pick tcp 2; edit 1 1; pick tcp 3"
        assert picks(sim("wrr", script)) == [1, 2, 3, 4, 1]

    def test_edit_after_every_pick_starves_nobody(self, sim):
        script = add(2, 1, 1) + "pick tcp; edit 1 2;" * 40
        assert Counter(picks(sim("wrr", script))) == {1: 20, 2: 10, 3: 10}

    def test_edit_scales_the_place(self, sim):
        # half of "1 2 1 1" is over; then half of "1 2 1 1 1 1 1 1" is
        script = add(3, 1) + "pick tcp 2; edit 1 7; pick tcp 6"
        assert picks(sim("wrr", script)) == [1, 2, 1, 1, 1, 1, 1, 2]

    def test_edits_to_and_fro_move_nothing(self, sim):
        script = add(*[1] * 5) + "pick tcp 2;" + "add 6 1; del 6;" * 20 + "pick tcp"
        assert picks(sim("wrr", script)) == [1, 2, 3]

    def test_fresh_service_begins_with_the_first(self, sim):
        assert picks(sim("wrr", add(1, 2) + "edit 1 3; pick tcp")) == [1]

    def test_order_survives_32_bits_of_turns(self, sim):
        turns = 2**32 - 4
        got = picks(sim("wrr", add(1, 1, 1) + f"turns {turns}; pick tcp 9"))
        assert got == [1 + (turns + i) % 3 for i in range(9)]

    def test_race_shares_exactly(self, sim):
        answer = sim("wrr", add(3, 2, 1) + "race 6 30000")[-1]
        assert answer.split() == ["1=90000", "2=60000", "3=30000"]

    def test_a_thousand_servers_of_many_weights(self, sim):
        weights = [1 + i % 10 for i in range(1000)]
        got = Counter(picks(sim("wrr", add(*weights) + f"pick udp {sum(weights)}")))
        assert got == {i: w for i, w in enumerate(weights, 1)}


# ---- recorded from in-tree ip_vs ----


def golden():
    """One JSON object a line: case, sched, flags, steps; a step is add, edit
    or del with server, weight and thresholds, or pkt with a flow and the
    server that ip_vs chose for it."""
    with open(UNIT / "golden_picks.jsonl", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def replay(sim, case):
    """(what was chosen, what ip_vs chose)"""
    names, script, want = [None], [f"service 4 {case['flags']}"], []
    for kind, *rest in case["steps"]:
        if kind == "pkt":
            script.append("flow " + " ".join(map(str, rest[:-1])))
            want.append(names.index(rest[-1]) if rest[-1] else None)
            continue
        server, *numbers = rest
        if server not in names:
            names.append(server)
            script.append(f"addr {names.index(server)} {server}")
        script.append(" ".join([kind, str(names.index(server)), *map(str, numbers)]))
    return picks(sim(case["sched"], "\n".join(script))), want


@pytest.mark.parametrize(
    "case", [c for c in golden() if c["sched"] in SCHEDULERS],
    ids=lambda c: f"{c['case']}-{c['flags']}")
def test_same_choice_as_ip_vs(sim, case):
    """All but the order of rr and wrr, which is the paper's."""
    got, want = replay(sim, case)
    if case["sched"] in ("rr", "wrr"):
        assert got.count(None) == want.count(None)
    else:
        assert got == want


# ---- lc, wlc ----


@pytest.mark.parametrize("name", ("lc", "wlc"))
class TestLeast:
    def test_tie_goes_to_the_newest(self, sim, name):
        assert picks(sim(name, add(1, 1, 1) + "pick udp 6")) == [3, 2, 1, 3, 2, 1]

    def test_active_counts_as_257_inactive(self, sim, name):
        script = add(1, 1) + "load 1 1 1; load 2 0 {}; pick udp"
        assert picks(sim(name, script.format(256))) == [2]
        assert picks(sim(name, script.format(258))) == [1]
        assert picks(sim(name, script.format(257))) == [2]

    def test_newest_unusable(self, sim, name):
        assert picks(sim(name, add(1, 1, 0) + "pick tcp")) == [2]

    def test_added_again_is_the_newest_and_keeps_its_load(self, sim, name):
        script = add(1, 1) + "pick tcp 2; del 1; add 1 1; pick tcp 2; pick udp"
        assert picks(sim(name, script)) == [2, 1, 1, 2, 1]

    def test_loads_of_more_than_31_bits(self, sim, name):
        script = add(1, 1) + "load 1 9000000 9000000; load 2 8000000 8000000; pick tcp"
        assert picks(sim(name, script)) == [2]


class TestLc:
    def test_weight_is_ignored(self, sim):
        """The paper's known flaw: A has 4 of 4, B has 5 of 16; A is chosen."""
        script = add(4, 16) + "load 1 4 4; load 2 5 5; pick tcp"
        assert picks(sim("lc", script)) == [1]


class TestWlc:
    def test_weight_counts(self, sim):
        script = add(4, 16) + "load 1 4 4; load 2 5 5; pick tcp"
        assert picks(sim("wlc", script)) == [2]

    def test_shares(self, sim):
        got = Counter(picks(sim("wlc", add(1, 2, 5) + "pick tcp 800")))
        assert got == {1: 100, 2: 200, 3: 500}

    def test_largest_weights_and_loads(self, sim):
        top = 2**31 - 1
        script = add(top, top) + "load 1 8000000 8000000; load 2 7000000 7000000; pick tcp"
        assert picks(sim("wlc", script)) == [2]
        script = add(top, 1) + "load 1 8000000 8000000; load 2 1 1; pick tcp"
        assert picks(sim("wlc", script)) == [1]


# ---- sed, nq, fo, ovf ----


class TestSed:
    def test_first_connections_go_to_the_fast(self, sim):
        """(0+1)/4 < (0+1)/1; the slow one when the fast has as much to do."""
        assert picks(sim("sed", add(4, 1) + "pick tcp 5")) == [1, 1, 1, 2, 1]

    def test_inactive_connections_do_not_count(self, sim):
        script = add(1, 1) + "load 2 0 1000; load 1 1 1; pick tcp"
        assert picks(sim("sed", script)) == [2]

    def test_largest_values(self, sim):
        top = 2**31 - 1
        script = add(top, top) + f"load 1 {top - 2} {top - 2}; load 2 {top - 3} {top - 3}; pick tcp"
        assert picks(sim("sed", script)) == [2]


class TestNq:
    def test_idle_servers_first(self, sim):
        """Even the slow ones; then by expected delay: 2/9, 2/5, 2/1."""
        assert picks(sim("nq", add(9, 5, 1) + "pick tcp 5")) == [3, 2, 1, 1, 1]

    def test_idle_but_unusable(self, sim):
        script = add(1, 1, 1) + "over 3 1; edit 2 0; pick tcp 2"
        assert picks(sim("nq", script)) == [1, 1]


class TestFo:
    def test_heaviest_until_it_fails(self, sim):
        script = add(1, 7, 5) + ("pick tcp 3; edit 2 0; pick tcp 2; over 3 1; pick tcp;"
                                 "over 3 0; edit 2 7; pick tcp")
        assert picks(sim("fo", script)) == [2] * 3 + [3] * 2 + [1, 2]

    def test_tie_goes_to_the_newest(self, sim):
        assert picks(sim("fo", add(5, 5, 4) + "pick tcp")) == [2]


class TestOvf:
    def test_fills_up_in_order_of_weight(self, sim):
        """A server overflows when it has more connections than its weight."""
        got = picks(sim("ovf", add(1, 3, 2) + "pick tcp 10"))
        assert got == [2] * 4 + [3] * 3 + [1] * 2 + [None]

    def test_takes_again_what_ends(self, sim):
        script = add(1, 3) + "pick tcp 6; load 2 3 3; pick tcp 2"
        assert picks(sim("ovf", script)) == [2] * 4 + [1] * 2 + [2, None]


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
    """Against the definition, written down a second time."""

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
    """Servers with addresses of their own, which mh hashes."""
    return "".join(f"addr {i} 192.0.2.{i} 80; add {i} {weight};" for i in range(1, n + 1))


def siphash13(value, key):
    """SipHash-1-3 of four bytes under KEY twice; the lower 32 bits."""
    mask = 2**64 - 1

    def rotate(x, n):
        return (x << n | x >> 64 - n) & mask

    v = [key ^ c for c in (0x736f6d6570736575, 0x646f72616e646f6d,
                           0x6c7967656e657261, 0x7465646279746573)]

    def round_():
        v[0] = v[0] + v[1] & mask
        v[1] = rotate(v[1], 13) ^ v[0]
        v[0] = rotate(v[0], 32)
        v[2] = v[2] + v[3] & mask
        v[3] = rotate(v[3], 16) ^ v[2]
        v[0] = v[0] + v[3] & mask
        v[3] = rotate(v[3], 21) ^ v[0]
        v[2] = v[2] + v[1] & mask
        v[1] = rotate(v[1], 17) ^ v[2]
        v[2] = rotate(v[2], 32)

    block = 4 << 56 | value
    v[3] ^= block
    round_()
    v[0] ^= block
    v[2] ^= 0xff
    for _ in range(3):
        round_()
    return (v[0] ^ v[1] ^ v[2] ^ v[3]) & 0xffffffff


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

    def test_fallback_order(self, sim):
        """With h the place of v, the place of v + (h + i) mod 4093 is tried next,
        i = 0, 1, ...  Whose place that is, a pool without failures tells."""
        def place(v):
            return siphash13(v & 0xffffffff, 2654435761) % 4093

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


# ---- twos ----


class TestTwos:
    def test_shares_of_idle_servers(self, sim):
        """Without load it is a draw by weight."""
        script = add(1, 2, 5) + "pick udp; load 1 0 0; load 2 0 0; load 3 0 0;" * 4000
        got = Counter(picks(sim("twos", script)))
        for i, weight in enumerate((1, 2, 5), 1):
            assert abs(got[i] - 500 * weight) < 150, got

    def test_less_loaded_of_two(self, sim):
        """The loaded of two equals is chosen only when drawn twice: a quarter."""
        script = add(1, 1) + "pick udp; load 1 5 5; load 2 0 0;" * 4000
        got = Counter(picks(sim("twos", script)))
        assert abs(got[1] - 1000) < 150, got

    def test_balances_like_wlc(self, sim):
        got = Counter(picks(sim("twos", add(*[1] * 50) + "pick udp 5000")))
        assert max(got.values()) - min(got.values()) < 12

    def test_almost_nobody_usable(self, sim):
        script = add(*[1000] * 200) + "".join(f"over {i} 1;" for i in range(1, 200))
        assert picks(sim("twos", script + "pick udp 50")) == [200] * 50


# ---- lblc, lblcr ----


def to(vip, proto="tcp", times=1):
    return f"flow {proto} 10.0.0.1 1000 203.0.113.{vip} 80;" * times


@pytest.mark.parametrize("name", ("lblc", "lblcr"))
class TestLocality:
    def test_address_stays(self, sim, name):
        got = picks(sim(name, add(9, 9, 9) + (to(1) + to(2) + to(3)) * 3))
        assert got == [3, 2, 1] * 3

    def test_moves_when_saturated(self, sim, name):
        """More active connections than its weight, and somebody half idle."""
        script = add(2, 4) + to(1, times=5) + to(1)
        assert picks(sim(name, script)) == [2] * 5 + [1]

    def test_stays_when_nobody_is_half_idle(self, sim, name):
        script = add(4, 2) + "load 1 2 2;" + to(1, times=6)
        assert picks(sim(name, script))[:3] == [2, 2, 2]
        script = add(4, 2) + to(1) + "load 1 2 2; load 2 9 9;" + to(1, times=3)
        assert len(set(picks(sim(name, script)))) == 1

    def test_leaves_unusable_servers(self, sim, name):
        for leave in ("edit 3 0", "over 3 1", "del 3"):
            got = picks(sim(name, add(9, 9, 9) + to(1) + leave + ";" + to(1, times=3)))
            assert got[0] == 3 and 3 not in got[1:]

    def test_removed_and_added_again(self, sim, name):
        script = add(9, 9) + to(1) + "del 2;" + to(2) + "add 2 9;" + to(1)
        assert picks(sim(name, script)) == [2, 1, 2]

    def test_forgets_after_a_day(self, sim, name):
        """An idle address, not one that is asked for; nor one of a removed
        server, whose object it would hold."""
        script = add(9, 9, 9) + to(1) + to(2)
        answers = sim(name, script + "refs 3; refs 2; wait 80000;" + to(1) +
                      "wait 10000; refs 3; refs 2; wait 86500; refs 3; refs 2")
        refs = [a for a in answers if a.startswith("refs")]
        assert refs == ["refs 1", "refs 1", "refs 1", "refs 0", "refs 0", "refs 0"]

    def test_lets_go_of_removed_servers(self, sim, name):
        answers = sim(name, add(9, 9) + to(1) + "refs 2; del 2; wait 130; refs 2")
        assert [a for a in answers if a.startswith("refs")] == ["refs 1", "refs 0"]

    def test_bounded(self, sim, name):
        """16,384 addresses; further ones push out old ones, not each other."""
        script = add(9, 9)
        script += "".join(f"flow udp 10.0.0.1 1 10.{i >> 16}.{i >> 8 & 255}.{i & 255} 80;"
                          for i in range(40000))
        answers = sim(name, script + "refs 1; refs 2;" + to(1, "udp") + "refs 1; refs 2")
        refs = [int(a.split()[1]) for a in answers if a.startswith("refs")]
        assert refs[0] + refs[1] == refs[2] + refs[3] == 16384

    def test_out_of_memory_still_picks(self, sim, name):
        script = add(9, 9) + "memory 0;" + (to(1, "udp") * 2) + "memory 1;" + to(1, "udp", 2)
        got = picks(sim(name, script))
        assert got[:2] == [2, 1]
        assert got[2] == got[3]

    def test_race(self, sim, name):
        """Misses, hits and evictions at once; ASan watches over what is freed."""
        answer = sim(name, add(5, 5, 5) + "race 8 20000")[-1].split()
        assert sum(int(a.split("=")[1]) for a in answer) == 160000


def refs(answers):
    return [int(a.split()[1]) for a in answers if a.startswith("refs")]


def table(answer):
    return {name: tuple(map(int, numbers.split(",")))
            for name, numbers in (word.split("=") for word in answer.split())}


DAY, FORTNIGHT = 86400, 14 * 86400


@pytest.mark.parametrize("name", SCHEDULERS)
def test_tables_of_options(sim, name):
    """{option: (value, min, max, default)}; a few have any."""
    got = table(sim(name, "options")[0])
    affinity = {"expire": (DAY, 1, FORTNIGHT, DAY), "entries": (16384, 1, 65536, 16384)}
    known = {"lblc": affinity, "lblcr": affinity | {"shrink": (DAY, 1, FORTNIGHT, DAY)}}
    assert got == known.get(name, got)
    assert all(value == default and least <= default <= most
               for value, least, most, default in got.values())


@pytest.mark.parametrize("name", ("lblc", "lblcr"))
class TestOptions:
    @pytest.mark.parametrize("expire", (1, 10, 300, FORTNIGHT))
    def test_expire_to_the_second(self, sim, name, expire):
        """The address goes to the least loaded again: 1, since 2 got a load.
        Never early; a second late at most, for use is noted once a second."""
        script = add(9, 9) + f"option expire {expire};" + to(1, "udp") + \
            "load 2 3 3; wait {};" + to(1, "udp")
        assert picks(sim(name, script.format(expire)))[-2:] == [2, 2]
        assert picks(sim(name, script.format(expire + 2)))[-2:] == [2, 1]

    def test_never_early(self, sim, name):
        """Also when the uses that count lie between those that are noted."""
        script = add(9, 9) + "option expire 1;" + to(1, "udp") + "load 2 3 3;" + \
            ("wait 0.9;" + to(1, "udp")) * 9
        assert picks(sim(name, script)) == [2] * 10

    def test_expire_counts_from_the_last_use(self, sim, name):
        script = add(9, 9) + "option expire 3;" + to(1, "udp") + "load 2 3 3;" + \
            ("wait 3;" + to(1, "udp")) * 5 + "wait 5;" + to(1, "udp")
        assert picks(sim(name, script)) == [2] * 6 + [1]

    def test_expire_changes_at_once(self, sim, name):
        """For what is remembered already, down and up."""
        script = add(9, 9) + to(1, "udp") + "load 2 3 3; wait 30; option expire {};" + to(1, "udp")
        assert picks(sim(name, script.format(10))) == [2, 1]
        assert picks(sim(name, script.format(100))) == [2, 2]
        script = add(9, 9) + "option expire 10;" + to(1, "udp") + \
            "load 2 3 3; option expire 100; wait 30;" + to(1, "udp")
        assert picks(sim(name, script)) == [2, 2]

    def test_expire_frees(self, sim, name):
        """Idle entries are swept when it is lowered, not a minute later; and
        from then on once a minute."""
        script = add(9, 9) + to(1) + to(2) + "wait 30; refs 1; refs 2; option expire 9; wait 0;" \
            "refs 1; refs 2;" + to(3, "udp") + "refs 1; refs 2; wait 62; refs 1; refs 2"
        got = refs(sim(name, script))
        assert got[:4] == [1, 1, 0, 0]
        assert sorted(got[4:6]) == [0, 1] and got[6:] == [0, 0]

    FILL = "".join(f"flow udp 10.0.0.1 1 10.9.{i >> 8}.{i & 255} 80;" for i in range(1000))

    @pytest.mark.parametrize("entries", (1, 2, 100, 999))
    def test_entries_bound(self, sim, name, entries):
        script = add(9, 9) + f"option entries {entries};" + self.FILL + "refs 1; refs 2"
        assert sum(refs(sim(name, script))) == entries

    @pytest.mark.parametrize("entries", (1, 100, 999))
    def test_entries_lowered_shrinks_the_cache(self, sim, name, entries):
        script = add(9, 9) + self.FILL + "refs 1; refs 2;" + \
            f"option entries {entries}; wait 0; refs 1; refs 2;" + \
            "flow udp 10.0.0.1 1 10.8.0.1 80; refs 1; refs 2"
        got = refs(sim(name, script))
        assert got[0] + got[1] == 1000
        assert got[2] + got[3] == got[4] + got[5] == entries

    def test_entries_raised(self, sim, name):
        script = add(9, 9) + "option entries 10;" + self.FILL + "option entries 500;" + \
            self.FILL + "refs 1; refs 2"
        assert sum(refs(sim(name, script))) == 500

    def test_values_survive_changes_of_the_pool(self, sim, name):
        script = add(9, 9) + "option expire 7; add 3 1; edit 1 4; del 2; options"
        assert table(sim(name, script)[-1])["expire"][0] == 7


class TestLblcr:
    def test_set_serves_together(self, sim):
        """2 is full, 1 joins; from then on the less loaded of both."""
        script = add(4, 4, 4) + to(1, times=5) + to(1, times=4)
        got = picks(sim("lblcr", script))
        assert got == [3] * 5 + [2] * 4

    def test_set_shrinks(self, sim):
        """A day without a change: the most loaded member leaves."""
        script = add(4, 4) + to(1, times=6) + "refs 1; refs 2; wait 43000;" + to(1, "udp") + \
            "refs 1; refs 2; wait 43500;" + to(1, "udp") + "refs 1; refs 2"
        answers = sim("lblcr", script)
        assert [a for a in answers if a.startswith("refs")] == \
            ["refs 1", "refs 1", "refs 1", "refs 1", "refs 1", "refs 0"]

    @pytest.mark.parametrize("order", ("before", "after"))
    def test_set_shrinks_when_told(self, sim, order):
        """`shrink` counts from the last change, also when it is set later."""
        told = "option shrink 100;"
        script = add(4, 4) + (told if order == "before" else "") + to(1, times=6) + \
            "wait 95;" + (told if order == "after" else "") + to(1, "udp") + \
            "refs 1; refs 2; wait 10;" + to(1, "udp") + "refs 1; refs 2"
        assert refs(sim("lblcr", script)) == [1, 1, 1, 0]

    def test_shrink_and_expire_are_two(self, sim):
        """Neither has to do with the other."""
        fill = add(4, 4) + to(1, times=6)
        script = "option expire 100;" + fill + "wait 101; refs 1; refs 2"
        assert refs(sim("lblcr", script)) == [1, 1]
        script = "option expire 100;" + fill + ("wait 90;" + to(1, "udp")) * 5 + "refs 1; refs 2"
        assert refs(sim("lblcr", script)) == [1, 1]
        script = "option shrink 100;" + fill + "wait 3000; refs 1; refs 2"
        assert refs(sim("lblcr", script)) == [1, 1]

    def test_set_is_bounded(self, sim):
        script = add(*[1] * 100) + to(1, times=400)
        answers = sim("lblcr", script + "".join(f"refs {i};" for i in range(1, 101)))
        assert sum(int(a.split()[1]) for a in answers if a.startswith("refs")) <= 64


# ---- registry ----


def test_registry(sim):
    got = dict(word.rsplit(":", 1) for word in sim("rr", "registry")[0].split())
    assert got.pop("good") == "0"
    assert got.pop("again") == "-17"
    assert got.pop("good-options") == "0"
    for broken in ("owner", "pick", "build", "free", "init", "exit", "long", "none", "empty",
                   "changed", "flags", *("opt-" + word for word in (
                       "name", "long", "noname", "twice", "low", "high", "what", "whatlong",
                       "many", "count", "table"))):
        assert got.pop(broken) == "-22", broken
    assert got.pop("space") == "-22"
    assert got == {
        "get(good)": "good,-",
        "get(absent)": "-,l4lb_absent",
        "get()": "-,-",
        "get(../evil)": "-,-",
        "get(Absent)": "-,-",
        "get(sixteen-letters-)": "-,-",
    }
