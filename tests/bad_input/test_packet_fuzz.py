# SPDX-License-Identifier: GPL-2.0
"""Random packets, valid and damaged, through in-tree ip_vs and through l4lb.

The cases in tests/corpus/packets and seed 1 in every run; others on demand: make
fuzz-packets SEED=7 COUNT=20000. An untried seed may show a difference that
lab/compare.py does not list yet.
"""

from pathlib import Path

import pytest
from lab import duel
from lab.backend import Backend
from lab.netns import pinned, run
from lab.rows import amount
from lab.traffic import Case

TAKES = 80
NO_MODULE = True        # the player loads one module after the other
SEED = 1
LANES = 1920            # each lane once
CASES_AT_ONCE = 320     # connections are listed after each case
CORPUS = [Case(*map(int, line.split(":"))) for line in
          (Path(__file__).parents[1] / "corpus/packets").read_text("ascii").splitlines()]


@pytest.fixture
def numbers(request):
    """(seed, packets)"""
    option = request.config.getoption
    return option("--fuzz-seed") or SEED, option("--fuzz-count") or \
        amount(request.config, few=LANES // 32, pairs=LANES // 2, all=LANES)


@pytest.fixture
def player(topologies):
    duel.limits_off()
    with pinned():
        yield duel.Player(topologies, Backend)


@pytest.mark.waits
@pytest.mark.smoke
def test_same_as_ip_vs(player, numbers, request):
    """Both send the same packets, byte for byte, but for listed differences."""
    if run("modprobe -n ip_vs", check=False).returncode:
        pytest.skip("this kernel has no ip_vs; runs on 6.1 and 6.12")
    match = duel.Duel(player)
    token = request.config.getoption("--fuzz-replay")
    if token:
        plays = [duel.replayed(player, one) for one in token.split()]
        found = [match.show(*d) for d in match.differing(plays)]
    else:
        found = match.run(CORPUS + duel.cases(*numbers))
    print(f"{player.sent} packets; listed differences: {match.seen}; "
          f"{len(match.once)} did not show again")
    assert not found, "\n\n".join(found)
    assert len(match.once) < 5, "\n\n".join(match.once)


def test_alone(player, numbers, request):
    """l4lb by itself, for kernels that watch memory: more packets in less time."""
    if request.config.getoption("--fuzz-seed") is None:
        pytest.skip("runs on demand: tests/lab/fuzz-packets --alone")
    everything = CORPUS + duel.cases(*numbers)
    for first in range(0, len(everything), CASES_AT_ONCE):
        player.play("l4lb", [player.fresh(case) for case in everything[first:][:CASES_AT_ONCE]])
    print(f"{player.sent} packets")
