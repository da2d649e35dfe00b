# SPDX-License-Identifier: GPL-2.0
"""Scheduler bpf: what programs are told, and what becomes of their answers. The programs are
C functions (tests/unit/sim_bpf.c), two of them those of schedulers/bpf."""

from collections import Counter

import pytest
from simulator import add, picks, table

FIRST, LEAST, RENDEZVOUS, LAST, BEYOND, NONE, SLOW, UNEVEN, AWFUL, LATE = range(1, 11)
SAMPLES, FRESH, PATIENCE, WORST = 64, 100, 100, 20
PLACES = [f"addr {n} 10.1.0.{n} 80;add {n} 1;" for n in range(1, 6)]
FLOWS = "".join(f"flow tcp 10.0.{i}.7 {2000 + i} 10.50.0.1 80;" for i in range(200))


def run(sim, script, program=0):
    return sim("bpf", f"option program {program};" + script)


def counts(answer):
    options = table(answer)
    return options["otherwise"][0], options["stopped"][0]


def test_without_a_program_the_least_loaded(sim):
    answers = run(sim, add(1, 1, 1) + "load 1 5 5; load 3 5 5; pick tcp 2; options")
    assert picks(answers) == [2, 2]
    assert counts(answers[-1]) == (2, 0)


@pytest.mark.parametrize(("program", "chosen"), [(FIRST, 1), (LAST, 3)])
def test_the_programs_choice(sim, program, chosen):
    answers = run(sim, add(1, 1, 1) + "load 1 9 9; load 3 9 9; pick tcp 3; options", program)
    assert picks(answers) == [chosen] * 3
    assert counts(answers[-1]) == (0, 0)


@pytest.mark.parametrize("program", [BEYOND, NONE])
def test_no_answer_means_the_least_loaded(sim, program):
    answers = run(sim, add(1, 1, 1) + "load 1 5 5; load 3 5 5; pick tcp 2; options", program)
    assert picks(answers) == [2, 2]
    assert counts(answers[-1]) == (2, 0)


@pytest.mark.parametrize("setup", ["edit 1 0", "over 1 1"])
def test_a_server_that_may_not_be_chosen(sim, setup):
    answers = run(sim, add(1, 1) + f"{setup}; pick tcp 3; options", FIRST)
    assert picks(answers) == [2] * 3
    assert counts(answers[-1]) == (3, 0)


@pytest.mark.parametrize("loads", [
    "", "load 1 3 3; load 2 4 40; load 3 9 9; load 4 16 16", "load 5 2 2; over 3 1; edit 4 0",
    "load 1 0 512; load 2 1 1; load 3 8 0; load 4 9 9; load 5 1 0",
    "load 1 2147483647 2147483647; load 2 1 1; load 3 8000000 1; load 4 9999999 7; load 5 7 7"])
def test_least_chooses_as_wlc(sim, loads):
    """The example; 300 connections that stay."""
    script = add(1, 2, 4, 8, 1) + f"{loads};pick tcp 200; edit 1 7; over 2 1; pick udp 100"
    assert picks(run(sim, script, LEAST)) == picks(sim("wlc", script))


def test_rendezvous_moves_only_the_clients_of_one_that_goes(sim):
    before = picks(run(sim, "".join(PLACES) + FLOWS, RENDEZVOUS))
    assert set(before) == {1, 2, 3, 4, 5}
    assert max(Counter(before).values()) < 2 * 200 / 5
    for gone in ("del 2", "over 2 1", "edit 2 0"):
        after = picks(run(sim, "".join(PLACES) + f"{gone};" + FLOWS, RENDEZVOUS))
        moved = [a for a, b in zip(before, after, strict=True) if a != b]
        assert moved and set(moved) == {2}


def test_rendezvous_is_the_same_whatever_the_order(sim):
    """Servers are known by address and port, not by place; its secret is option a."""
    one = picks(run(sim, "".join(PLACES) + FLOWS, RENDEZVOUS))
    assert one == picks(run(sim, "".join(reversed(PLACES)) + FLOWS, RENDEZVOUS))
    assert one != picks(run(sim, "option a 7;" + "".join(PLACES) + FLOWS, RENDEZVOUS))


@pytest.mark.parametrize("program, picked", [(SLOW, PATIENCE), (AWFUL, PATIENCE // WORST)])
def test_a_slow_program_is_stopped(sim, program, picked):
    """After 100 choices above the budget, or five far above it; setting any option tries again."""
    load = add(1, 1) + "load 1 9 9;"
    answers = run(sim, load + f"pick tcp {picked - 1}; options; pick tcp 2; options", program)
    assert set(picks(answers[:-2])) == {1}
    assert counts(answers[-3]) == (0, 0)
    assert picks([answers[-2]]) == [1, 2]
    assert counts(answers[-1]) == (1, 1)

    answers = run(sim, load + f"pick tcp {picked}; pick tcp; option c 1; pick tcp; options", program)
    assert picks([answers[-4]]) == [2] and picks([answers[-2]]) == [1]
    assert counts(answers[-1]) == (1, 0)


def test_later_one_choice_in_64_is_timed(sim):
    few, enough = (FRESH + SAMPLES * (PATIENCE + n) for n in (-2, 2))
    for picked, stopped in ((few, 0), (enough, 1)):
        assert counts(run(sim, add(1, 1) + f"pick tcp {picked}; options", LATE)[-1])[1] == stopped


@pytest.mark.parametrize(("program", "budget"), [(SLOW, 51), (UNEVEN, 50)])
def test_one_within_its_budget_now_and_then_is_not(sim, program, budget):
    picked = 4 * SAMPLES * PATIENCE
    answers = run(sim, f"option budget {budget};" + add(1, 1) + f"pick tcp {picked}; options", program)
    assert counts(answers[-1]) == (0, 0)


def test_1024_servers_and_one_more(sim):
    answers = run(sim, add(*[1] * 1024) + "load 1 1 1; pick tcp 2; options; add 1025 1; load 1025 1 1;"
                  "pick tcp 2; options; del 1024; pick tcp 2; options", FIRST)
    assert picks(answers[-9:-8]) == [1, 1]
    assert counts(answers[-8]) == (0, 0)
    assert 1 not in picks(answers[-5:-4])
    assert counts(answers[-4]) == (2, 0)
    assert picks(answers[-2:-1]) == [1, 1]


def test_cost(sim):
    """With 1,024 servers each is looked at once and a half dozen words of it are read; with more,
    as wlc looks at them: a flood of new clients does not choose how much a choice costs."""
    servers = add(*[1] * 1024)
    most = int(run(sim, servers + "pick tcp 3; cost", LAST)[-1])
    assert 1024 < most <= 8 * 1024 + 32
    beyond = run(sim, servers + "add 1025 1; pick tcp 50; reads; pick tcp 50; reads", LAST)[-1]
    assert int(beyond) < 50 * 1024


def test_no_memory_for_what_the_program_reads(sim):
    answers = run(sim, add(1, 1) + "memory 0; add 3 1; memory 1; pick tcp", LAST)
    assert "-12" in answers
    assert picks(answers[-1:]) == [2]


def test_many_at_once(sim):
    """Each processor has a packet of its own for the program to read: as each address alone."""
    def shares(threads):
        words = run(sim, "".join(PLACES) + f"race {threads} 20000", RENDEZVOUS)[-1].split()
        return {number: int(count) // threads for number, count in (word.split("=") for word in words)}
    one = shares(1)
    assert sum(one.values()) == 20000 and min(one.values()) > 2000 and len(one) == 5
    assert shares(8) == one
