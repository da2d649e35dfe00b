# SPDX-License-Identifier: GPL-2.0
"""Random sequences of configuration commands, put to in-tree ip_vs and to l4lb:
the same return codes and the same dumps, but for lab.answers.VALUES; and the same from
l4lb whose services use what ip_vs does not have.

`make fuzz-config SEED=7 COUNT=100000` tries more. A difference is shrunk to
the commands that show it; `make fuzz-config REPLAY=FILE` runs them again. The commands in
tests/corpus/config come first.
"""

import contextlib
import json
import re
from pathlib import Path

import pytest
from lab import answers, fuzz
from lab.answers import Player
from lab.backend import Backend
from lab.extras import Extras
from lab.netns import Namespace, run
from lab.rows import amount

NO_MODULE = True        # one module after the other
SEEDS = (1, 2, 3, 4, 5)
COUNT = 2000
# Each daemon that starts or ends has a line, and so has the kernel at the first load.
EXPECTED = re.compile(r"sync thread|has no address|taint")
FOUND = Path("build/fuzz-config.json")
CORPUS = sorted(Path(__file__).parents[1].glob("corpus/config/*.json"))


@pytest.fixture(scope="module")
def ns():
    space = Namespace("fuzz")
    space.ip(*fuzz.SETUP)
    yield space
    space.destroy()


class Duel:
    """Both modules, one after the other, in namespace NS."""

    def __init__(self, ns):
        self.ns, self.given = ns, 0
        self.schedulers = [s for s in fuzz.SCHEDULERS     # of both modules
                           if not run(["modinfo", f"ip_vs_{s}"], check=False).returncode]

    def ask(self, name, sequences, question):
        """Return QUESTION(player), with module NAME loaded."""
        named = json.dumps(sequences)
        backend = Backend(name)
        backend.load()
        try:
            with backend.preloaded([s for s in self.schedulers if f'"{s}' in named]), \
                    Player(self.ns) as player:
                return question(player)
        finally:
            backend.unload()

    def play(self, sequences, every):
        """[(commands, recording of ip_vs, of l4lb, of l4lb without the commands
        that it refused, of l4lb with extras)]"""
        packed = [[fuzz.pack(c) for c in commands] for commands in sequences]

        def twice(player):
            for requests in packed:
                all_ = player.play(requests, every)
                with contextlib.closing(Extras(self.ns, len(requests))) as extras:
                    yield all_, player.play(answers.without_refused(requests, all_), every), \
                        player.play(requests, every, extras=extras)
                    self.given += extras.given
        ours = self.ask("l4lb", sequences, lambda player: list(twice(player)))
        theirs = self.ask("ip_vs", sequences, lambda player: [
            player.play(requests, every, forget=all_)
            for requests, (all_, *_) in zip(packed, ours)])
        return [(c, t, *o) for c, t, o in zip(sequences, theirs, ours)]


def fault(commands, theirs, ours, bare, rich):
    """(index of the first wrong command, description) or None."""
    found = answers.first_difference(commands, theirs, ours) or \
        answers.first_silence(commands, ours)
    if found:
        return found
    for i, state in ours.states.items():
        if state != bare.states[i]:
            return i, "a command that was refused has changed something"
    for i, answer in ours.answers.items():
        if answer != rich.answers[i]:
            return i, f"{answers.readable(answer)}\nwith extras: {answers.readable(rich.answers[i])}"
    return next(((i, "extras have changed the state") for i, state in ours.states.items()
                 if state != rich.states[i]), None)


def write(commands):
    FOUND.parent.mkdir(exist_ok=True)
    FOUND.write_text("[\n" + ",\n".join(map(json.dumps, commands)) + "\n]\n", encoding="ascii")


def report(duel, commands, found, origin):
    """Shrink the sequence, save it for a replay, and fail the test."""
    at, what = found
    write(commands[:at + 1])

    def fails(sequences):
        return [bool(fault(*played)) for played in duel.play(sequences, len(commands))]
    write(answers.shrink(commands[:at + 1], fails))
    pytest.fail(f"{origin}, command {at}: {json.dumps(commands[at])}\n{what}\n"
                f"least sequence, in {FOUND}:\n{FOUND.read_text(encoding='ascii')}",
                pytrace=False)


def check(duel, sequences, origins, every=40):
    played = duel.play(sequences, every)
    for (commands, *recordings), origin in zip(played, origins):
        found = fault(commands, *recordings)
        if found:
            report(duel, commands, found, origin)
    return played


@pytest.mark.smoke
def test_same_answers(ns, request, log):
    """COUNT commands for each of SEEDS, or the seeds and count given as options."""
    option = request.config.getoption
    replay, first = option("--config-replay"), option("--config-seed")
    duel = Duel(ns)
    if replay:
        commands = json.loads(Path(replay).read_text(encoding="ascii"))
        check(duel, [commands], [replay], every=1)
        return
    seeds = SEEDS[:amount(request.config, few=1, all=5)] if first is None else \
        range(first, first + option("--config-seeds"))
    count = option("--config-count") or amount(request.config, few=COUNT // 2, pairs=COUNT)
    sequences = [json.loads(file.read_text(encoding="ascii")) for file in CORPUS]
    sequences += [fuzz.Generator(seed).commands(count) for seed in seeds]
    played = check(duel, sequences, [*CORPUS, *(f"seed {seed}" for seed in seeds)])
    # The sequences must be worth comparing: many commands name existing objects.
    ours = [a for _, _, ours, *_ in played[len(CORPUS):] for a in ours.answers.values()]
    assert duel.given > count / 10
    assert 0.3 < sum(not a.errno for a in ours) / len(ours) < 0.8
    # No command that is refused leaves a line in the log, or a client could fill it.
    logged = [line for line in log.lines("l4lb: ") if not EXPECTED.search(line)]
    assert not logged, logged[:5]
