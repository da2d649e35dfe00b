# SPDX-License-Identifier: GPL-2.0
"""Schedulers that rank servers choose among many as a scan of all would, and look at few.

`Model` is the scan. `sim` runs the scheduler with the tournament of service/tournament.c.
"""

import random

import pytest
from simulator import picks

RANKED = ("lc", "wlc", "sed", "nq", "fo", "ovf")
LOCAL = ("lblc", "lblcr")
# One match holds 16; 273 = 16 * 16 + 16 + 1 has matches with a single player in each level.
SIZES = (1, 2, 16, 17, 33, 100, 256, 257, 273, 2000)
WEIGHTS = (0, 1, 1, 1, 2, 3, 5, 100, 2**31 - 1)
LOW = (0, 1, 1, 2, 3)       # so that ovf fills its servers
SET_MAX = 64


def load(s):
    return 256 * s["active"] + s["total"]


def capacity(s):
    return 0 if s["over"] else s["weight"]


# (load, weight): the lowest load / weight is chosen; weight 0 never is.
RANKS = {
    "lc": lambda s: (load(s), 1 if capacity(s) else 0),
    "wlc": lambda s: (load(s), capacity(s)),
    "sed": lambda s: (s["active"] + 1, capacity(s)),
    "nq": lambda s: (s["active"] + 1 if s["active"] else 0, capacity(s)),
    "fo": lambda s: (1, capacity(s)),
    "ovf": lambda s: (1, capacity(s) if s["active"] <= s["weight"] else 0),
}


class Model:
    """The servers of a service, oldest first, each scanned for each choice."""

    def __init__(self, name):
        self.name, self.servers, self.known = name, {}, {}

    def lowest(self, ids, rank):
        best, lowest = None, None
        for i in ids:
            new, weight = rank(self.servers[i])
            if weight and (best is None or new * lowest[1] < lowest[0] * weight):
                best, lowest = i, (new, weight)
        return best

    def least(self):
        return self.lowest(reversed(self.servers), RANKS["wlc"])

    def saturated(self, i):
        s = self.servers[i]
        return s["active"] > s["weight"] and any(
            2 * other["active"] < other["weight"] for other in self.servers.values())

    def lblc(self, address):
        i = self.known.get(address)
        if i is not None and capacity(self.servers[i]) and not self.saturated(i):
            return i
        i = self.least()
        if i is not None:
            self.known[address] = i
        return i

    def lblcr(self, address):
        known = self.known.get(address, [])
        i = self.lowest(known, RANKS["wlc"])
        if i is not None and not self.saturated(i):
            return i
        i = self.least()
        if i is not None and i not in known:
            self.known[address] = [i, *known][:SET_MAX]
        return i

    def choose(self, address):
        if self.name in LOCAL:
            return getattr(self, self.name)(address)
        return self.lowest(reversed(self.servers), RANKS[self.name])


class Play:
    """Random commands for `sim`, and the model's answers."""

    def __init__(self, name, seed, size):
        self.chance = random.Random(f"{name} {seed} {size}")
        self.weights = LOW if name == "ovf" else WEIGHTS
        self.model, self.script, self.want = Model(name), [], []
        for i in range(size):
            self.model.servers[i] = {"weight": self.chance.choice(self.weights), "over": False,
                                     "active": 0, "total": 0}
            self.script.append(f"add {i} {self.model.servers[i]['weight']}")

    def pick(self):
        proto = self.chance.choice(("tcp", "tcp", "udp"))
        address = self.chance.randrange(8)
        self.script.append(f"flow {proto} 198.51.100.1 1 192.0.2.{address} 80")
        i = self.model.choose(address)
        self.want.append(i)
        if i is not None:
            self.model.servers[i]["active"] += proto == "tcp"
            self.model.servers[i]["total"] += 1

    def step(self):
        i = self.chance.choice(list(self.model.servers))
        s = self.model.servers[i]
        what = self.chance.choice(("pick",) * 5 + ("over", "weight", "load", "end", "end"))
        if what == "pick":
            self.pick()
        elif what == "over":
            s["over"] = not s["over"]
            self.script.append(f"over {i} {int(s['over'])}")
        elif what == "weight":
            s["weight"], s["over"] = self.chance.choice(self.weights), False
            # Now and then without a new pool.
            self.script += [f"{self.chance.choice(('edit', 'patch'))} {i} {s['weight']}"]
        else:
            s["active"] = max(0, s["active"] - 1) if what == "end" else self.chance.randrange(4)
            s["total"] = max(s["active"], s["total"] - 1 if what == "end"
                             else self.chance.randrange(9))
            self.script.append(f"load {i} {s['active']} {s['total']}")


def same(sim, play):
    got = picks(sim(play.model.name, "\n".join(play.script)))
    wrong = [n for n, (a, b) in enumerate(zip(got, play.want, strict=True)) if a != b]
    assert not wrong, f"{len(wrong)} of {len(got)}: pick {wrong[0]} is " \
        f"{got[wrong[0]]} instead of {play.want[wrong[0]]}"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", RANKED + LOCAL)
def test_chooses_as_a_scan(sim, name, size):
    """The seed is in the name: Play(name, 1, size)."""
    play = Play(name, 1, size)
    for _ in range(300 if size > 300 else 1000):
        play.step()
    assert len(set(play.want)) > 1 or size < 3 or name == "fo"
    same(sim, play)


@pytest.mark.parametrize("name", RANKED + LOCAL)
def test_each_place_can_be_lowest(sim, name):
    """Each of 273 servers in turn is the only usable one, then the only one that is not."""
    play = Play(name, 2, 273)
    for i, s in play.model.servers.items():
        s["weight"], s["over"] = 1, True
        play.script += [f"edit {i} 1", f"over {i} 1"]
    play.pick()
    for i, s in play.model.servers.items():
        s["over"] = False
        play.script.append(f"over {i} 0")
        s["active"] = 0
        play.script.append(f"load {i} 0 {s['total']}")
        play.pick()
        s["over"] = True
        play.script.append(f"over {i} 1")
    assert play.want == [None, *range(273)]
    for i in play.model.servers:
        play.model.servers[i] |= {"over": False, "active": 0, "total": 0}
        play.script += [f"over {i} 0", f"load {i} 0 0"]
    for i, s in reversed(play.model.servers.items()):
        play.pick()
        s["over"] = True
        play.script.append(f"over {i} 1")
    same(sim, play)


@pytest.mark.parametrize("name", RANKED + LOCAL)
def test_add_and_remove(sim, name):
    """A pool passes 16 servers both ways, and a server that left marks nothing."""
    play = Play(name, 3, 14)
    for i in list(range(14, 40)) + list(range(14, 40)):
        if i in play.model.servers:
            del play.model.servers[i]
            play.script.append(f"del {i}")
            play.script.append(f"load {i} 0 0")
        else:
            play.model.servers[i] = {"weight": 3, "over": False, "active": 0, "total": 0}
            play.script.append(f"add {i} 3")
        if name in RANKED:
            for _ in range(3):
                play.pick()
    for _ in range(300):
        if name in RANKED:
            play.step()
    same(sim, play)


@pytest.mark.parametrize("name", ("lc", "wlc", "sed", "nq"))
def test_an_interrupted_mark(sim, name):
    """A processor that stops while it marks a change hides nobody else's."""
    script = [f"add {i} 1" for i in range(40)]
    answers = sim(name, "\n".join([*script, "pick tcp", "halfway 36", "pick tcp 7"]))
    assert picks(answers) == list(range(39, 31, -1))


# ---- cost ----


def reads(sim, name, size):
    """The field reads of picks, among connections that come and go."""
    chance = random.Random(size)
    script = [f"add {i} 2" for i in range(size)] + [f"load {i} 3 3" for i in range(size)]
    script += ["pick tcp 20", "reads"]
    for _ in range(200):
        i = chance.randrange(size)
        script += [f"load {i} {chance.randrange(2, 6)} 6",
                   f"flow tcp 198.51.100.1 1 192.0.2.{chance.randrange(8)} 80"]
    return int(sim(name, "\n".join([*script, "reads"]))[-1])


@pytest.mark.parametrize("name", RANKED + LOCAL)
def test_cost(sim, name):
    """With more servers a pick looks at 16 in each level, of which 2,000 servers have three."""
    few, many = reads(sim, name, 16), reads(sim, name, 2000)
    assert many <= 12 * few, f"{many} reads with 2000 servers, {few} with 16"


@pytest.mark.parametrize("name", RANKED)
def test_cost_when_none_is_usable(sim, name):
    script = [f"add {i} 1" for i in range(2000)] + [f"over {i} 1" for i in range(2000)]
    answers = sim(name, "\n".join([*script, "pick tcp", "reads", "pick tcp 100", "reads"]))
    assert answers[-4] == "-" and set(answers[-2].split()) == {"-"}
    assert int(answers[-1]) <= 5 * 100


@pytest.mark.parametrize("name", RANKED + LOCAL)
def test_without_memory_all_are_scanned(sim, name):
    answers = sim(name, "\n".join(
        [f"add {i} 1" for i in range(40)] +
        ["tournament", "memory 0", "edit 39 0", "tournament", "memory 1", "pick tcp"]))
    assert [answers[40], answers[43], answers[-1]] == ["1", "0", "38"]


# ---- several processors ----


@pytest.mark.parametrize(("name", "size"), (
    ("wlc", 17), ("wlc", 300), ("wlc", 1000), *((name, 40) for name in RANKED + LOCAL)))
def test_no_change_is_forgotten(sim, name, size):
    """Threads pick, end and edit at random in short bursts, during some of which the pool is
    replaced. After each burst a scan's choices are made. (lblc and lblcr, whose choices depend
    on more, must not crash.)"""
    script = [f"add {i} {1 + i % 5}" for i in range(size)]
    answers = sim(name, "\n".join([*script, f"churn {2 + size % 3} 20 300 {size}"]))
    assert answers[-1] == "wrong 0"
