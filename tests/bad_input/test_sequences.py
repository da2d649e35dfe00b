# SPDX-License-Identifier: GPL-2.0
"""Random sequences of commands, packets, expiry, resizes, namespaces and module loads, while
allocations fail, against a model.

`make fuzz-sequences SEED=7 COUNT=500` tries more. A sequence that fails is shrunk and saved;
`make fuzz-sequences REPLAY=FILE` plays it again. Those in tests/corpus/sequences come first.
"""

import json
import time
from pathlib import Path

import pytest
from lab import faults
from lab.answers import fewest
from lab.kernel_log import scan_for_leaks
from lab.player import Player
from lab.sequences import Generator

CORPUS = sorted(Path(__file__).parents[1].glob("corpus/sequences/*.json"))
FOUND = Path("build/fuzz-sequences.json")
COUNT = 25
SHRINKING = 400         # seconds

pytestmark = [pytest.mark.skipif(not faults.available(), reason=faults.ABSENT),
              pytest.mark.usefixtures("only_l4lb")]


def write(steps):
    FOUND.parent.mkdir(exist_ok=True)
    FOUND.write_text("[\n" + ",\n".join(map(json.dumps, steps)) + "\n]\n", encoding="ascii")


def check(player, steps, origin):
    """Play STEPS; if that fails, shrink them, save them for a replay, and fail the test."""
    write(steps)        # for the case that the guest dies
    found = player.play(steps)
    if not found:
        return
    at, what = found
    steps, until = steps[:at + 1], time.monotonic() + SHRINKING
    write(steps)
    print(f"step {at} fails: {what}; shrinking, {SHRINKING} s at most", flush=True)
    player.log.seen.clear()

    def fails(tries):
        out = []
        for one in tries:
            out.append(time.monotonic() < until and player.play(one) is not None)
            player.log.seen.clear()
        return out
    write(fewest(steps, fails))
    pytest.fail(f"{origin}, step {at}: {json.dumps(steps[at])}\n{what}\n"
                f"replay: make fuzz-sequences REPLAY={FOUND}\n"
                f"{FOUND.read_text(encoding='ascii')}", pytrace=False)


@pytest.mark.smoke
@pytest.mark.timeout(7200)
def test_sequence(nat, backend, log, request):
    """COUNT steps of the run's seed, or those of the options."""
    option = request.config.getoption
    replay, seed = option("--sequence-replay"), option("--sequence-seed")
    player = Player(nat, backend, log)
    try:
        for file in [Path(replay)] if replay else CORPUS:
            check(player, json.loads(file.read_text(encoding="ascii")), file)
        if not replay:
            seed = request.getfixturevalue("seed") if seed is None else seed
            print(f"seed {seed}", flush=True)
            check(player, Generator(seed).steps(option("--sequence-count") or COUNT),
                  f"seed {seed}")
    finally:
        player.end()
        nat.flush()
    backend.unload()
    assert not scan_for_leaks(wait=5.5)
    backend.load()
