# SPDX-License-Identifier: GPL-2.0
"""The schedulers, compiled unchanged as a user-space program (tests/unit).

No kernel and no network: the tests check which server each new connection goes
to.  Servers are named by number; the head of unit/sim.c describes the
program's commands.
"""


import pytest
from simulator import SCHEDULERS, add, picks, table

# ---- lblc, lblcr ----


def to(vip, proto="tcp", times=1):
    return f"flow {proto} 10.0.0.1 1000 203.0.113.{vip} 80;" * times


@pytest.mark.parametrize("name", ("lblc", "lblcr"))
class TestLocality:
    def test_address_stays(self, sim, name):
        got = picks(sim(name, add(9, 9, 9) + (to(1) + to(2) + to(3)) * 3))
        assert got == [3, 2, 1] * 3

    def test_moves_when_saturated(self, sim, name):
        """Its server has more active connections than its weight; another one is half idle."""
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
        """An idle address is forgotten, one that is in use is not."""
        script = add(9, 9, 9) + to(1) + to(2)
        answers = sim(name, script + "refs 3; refs 2; wait 80000;" + to(1) +
                      "wait 10000; refs 3; refs 2; wait 86500; refs 3; refs 2")
        refs = [a for a in answers if a.startswith("refs")]
        assert refs == ["refs 1", "refs 1", "refs 1", "refs 0", "refs 0", "refs 0"]

    def test_lets_go_of_removed_servers(self, sim, name):
        answers = sim(name, add(9, 9) + to(1) + "refs 2; del 2; wait 130; refs 2")
        assert [a for a in answers if a.startswith("refs")] == ["refs 1", "refs 0"]

    def test_bounded(self, sim, name):
        """At most 16,384 addresses are remembered; each further one evicts another."""
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
        """Concurrent misses, hits and evictions; ASan detects uses after free."""
        answer = sim(name, add(5, 5, 5) + "race 8 20000")[-1].split()
        assert sum(int(a.split("=")[1]) for a in answer) == 160000


def refs(answers):
    return [int(a.split()[1]) for a in answers if a.startswith("refs")]


DAY, FORTNIGHT = 86400, 14 * 86400


@pytest.mark.parametrize("name", SCHEDULERS)
def test_tables_of_options(sim, name):
    """{option: (value, min, max, default)}; only lblc and lblcr are known to have any."""
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
        """After that the address goes to the least loaded server: 1, since 2 has a load.
        Never early; at most a second late, since uses are recorded once a second."""
        script = add(9, 9) + f"option expire {expire};" + to(1, "udp") + \
            "load 2 3 3; wait {};" + to(1, "udp")
        assert picks(sim(name, script.format(expire)))[-2:] == [2, 2]
        assert picks(sim(name, script.format(expire + 2)))[-2:] == [2, 1]

    def test_never_early(self, sim, name):
        """Even if the last use falls between two recorded ones."""
        script = add(9, 9) + "option expire 1;" + to(1, "udp") + "load 2 3 3;" + \
            ("wait 0.9;" + to(1, "udp")) * 9
        assert picks(sim(name, script)) == [2] * 10

    def test_expire_counts_from_the_last_use(self, sim, name):
        script = add(9, 9) + "option expire 3;" + to(1, "udp") + "load 2 3 3;" + \
            ("wait 3;" + to(1, "udp")) * 5 + "wait 5;" + to(1, "udp")
        assert picks(sim(name, script)) == [2] * 6 + [1]

    def test_expire_changes_at_once(self, sim, name):
        """Also for addresses that are already remembered, both lowered and raised."""
        script = add(9, 9) + to(1, "udp") + "load 2 3 3; wait 30; option expire {};" + to(1, "udp")
        assert picks(sim(name, script.format(10))) == [2, 1]
        assert picks(sim(name, script.format(100))) == [2, 2]
        script = add(9, 9) + "option expire 10;" + to(1, "udp") + \
            "load 2 3 3; option expire 100; wait 30;" + to(1, "udp")
        assert picks(sim(name, script)) == [2, 2]

    def test_expire_frees(self, sim, name):
        """Lowering it sweeps idle entries at once, not a minute later; after that
        they are swept once a minute."""
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
        """3 is full, so 2 joins; from then on the less loaded of the two is picked."""
        script = add(4, 4, 4) + to(1, times=5) + to(1, times=4)
        got = picks(sim("lblcr", script))
        assert got == [3] * 5 + [2] * 4

    def test_set_shrinks(self, sim):
        """After a day without a change of the set the most loaded member leaves."""
        script = add(4, 4) + to(1, times=6) + "refs 1; refs 2; wait 43000;" + to(1, "udp") + \
            "refs 1; refs 2; wait 43500;" + to(1, "udp") + "refs 1; refs 2"
        answers = sim("lblcr", script)
        assert [a for a in answers if a.startswith("refs")] == \
            ["refs 1", "refs 1", "refs 1", "refs 1", "refs 1", "refs 0"]

    @pytest.mark.parametrize("order", ("before", "after"))
    def test_set_shrinks_when_told(self, sim, order):
        """`shrink` counts from the set's last change, even if the option is set later."""
        told = "option shrink 100;"
        script = add(4, 4) + (told if order == "before" else "") + to(1, times=6) + \
            "wait 95;" + (told if order == "after" else "") + to(1, "udp") + \
            "refs 1; refs 2; wait 10;" + to(1, "udp") + "refs 1; refs 2"
        assert refs(sim("lblcr", script)) == [1, 1, 1, 0]

    def test_shrink_and_expire_are_two(self, sim):
        """The two options are independent."""
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
