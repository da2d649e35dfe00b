# SPDX-License-Identifier: GPL-2.0
"""The schedulers, compiled unchanged as a user-space program (tests/unit).

No kernel and no network: the tests check which server each new connection goes
to.  Servers are named by number; the head of unit/sim.c describes the
program's commands.
"""

import json
from collections import Counter

import pytest
from simulator import SCHEDULERS, UNIT, add, picks

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
        """Not even if all are overloaded; afterwards they can be picked again."""
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
        # mh's table of 65,537 places is made again for each.
        got = clients(sim, name, add(*[3] * (250 if name == "mh" else 1000)), FLOWS)
        assert None not in got

    def test_out_of_memory_changes_nothing(self, sim, name):
        script = add(1, 1) + "memory 0; add 3 1; memory 1; "
        answers = sim(name, script + FLOWS)
        if name in WITH_TABLE:
            assert answers[3] == "-12"
            assert 3 not in picks(answers)
        else:
            assert answers[3] == "ok"


WITH_TABLE = ("rr", "wrr", "dh", "sh", "mh", "twos")
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
    """One cycle of the paper: lap k visits all servers of weight >= k."""
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
        # after half of "1 2 1 1" it continues after half of "1 2 1 1 1 1 1 1"
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
    """(chosen servers, those that ip_vs chose)"""
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
    """Except in rr and wrr, whose order is the paper's."""
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

    def test_loads_of_more_than_32_bits(self, sim, name):
        script = add(1, 1) + "load 1 17000000 17000000; load 2 8000000 8000000; pick tcp"
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
        """(0+1)/4 < (0+1)/1; the slow server is picked when both delays are equal."""
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


# ---- registry ----


def test_registry(sim):
    got = dict(word.rsplit(":", 1) for word in sim("rr", "registry")[0].split())
    assert got.pop("good") == "0"
    assert got.pop("again") == "-17"
    assert got.pop("good-options") == "0"
    assert got.pop("good-key") == got.pop("good-file") == got.pop("good-count") == "0"
    for broken in (*("file-" + word for word in (
                       "closed", "open-only", "none", "late", "min", "max", "def", "two")),
                   *("count-" + word for word in (
                       "none", "no-init", "no-option", "rebuild", "sysctl")),
                   "owner", "pick", "build", "free", "init", "exit", "long", "none", "empty", "changed",
                   "flags", *("key-" + word for word in (
                       "late", "min", "max", "def", "named", "number")), *("opt-" + word for word in (
                       "name", "long", "noname", "twice", "low", "high", "what", "whatlong",
                       "rebuild", "rebuild-sysctl", "many", "count", "table"))):
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
