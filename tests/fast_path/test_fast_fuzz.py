# SPDX-License-Identifier: GPL-2.0
"""Random packets, valid and damaged, with and without the fast path, at ingress and by XDP: the
packets that leave the director, and its connections, must be the same.

The packets are like those of test_packet_fuzz.py, but more of them are sound and of
an open flow, fewer of SCTP, which the fast path leaves alone. Its options --fuzz-seed,
--fuzz-count and --fuzz-replay are for this file, too; each difference is shown with
its token for --fuzz-replay.
"""

import pytest
from lab import duel, fast, xdp
from lab.backend import Backend
from lab.compare import compare_all
from lab.netns import pinned
from lab.packet import SCTP
from lab.rows import amount
from lab.topology import SHAPES
from lab.traffic import STEPS, PlainCase

pytestmark = pytest.mark.usefixtures("only_l4lb")

TAKES = 40
NO_MODULE = True        # the player loads it for each way
SEED = 1
MODES = {"stack": 0, "fast": 1, "new": 2, "xdp": 2}


class Mode(Backend):
    """l4lb, with the fast path in one of MODES."""

    labs = ()
    taken = {}

    def __init__(self, name):
        super().__init__("l4lb")
        self.mode = name

    def load(self, check=True):
        super().load(check)
        for lab in self.labs:
            lab.director.ns.sysctl(fast.SETTING, MODES[self.mode])

    def unload(self):
        counter = "xdp" if self.mode == "xdp" else "fast"
        for lab in self.labs:
            self.taken[self.mode] = self.taken.get(self.mode, 0) + \
                fast.read(lab.director.ns)[counter]
        xdp.detach_all()
        super().unload()


class Player(duel.Player):
    """Waits for the devices' hooks before anything is sent, and compares counters,
    too."""

    def numbers(self, service):
        stats = service.stats
        return {tuple((k, stats[k]) for k in ("conns", "inpkts", "outpkts", "inbytes",
                                              "outbytes"))}

    mode = None

    def play(self, module, plays):
        self.mode = module
        return super().play(module, plays)

    def station(self, lab):
        station = super().station(lab)
        if self.mode == "xdp":
            xdp.attach(lab)
        if int(lab.director.ns.sysctl(fast.SETTING)):
            for tap in station.taps.values():
                source = lab.client_address(4)
                if tap.node is lab.client or lab.shape == "nat":
                    fast.wait_for_hook(lab.director.ns, tap, source, lab.raw_vip(4))
            station.fence(0)
        return station


@pytest.fixture
def player(topologies):
    duel.limits_off()
    Mode.labs, Mode.taken = [topologies[shape] for shape in SHAPES], {}
    for lab in Mode.labs:
        lab.flush()
    with pinned():
        yield Player(topologies, Mode)


def cases(seed, count):
    """As many cases as have COUNT packets in all."""
    number = found = 0
    while found * STEPS < count:
        case = PlainCase(seed, number)
        if case.proto != SCTP or number % 8 == 0:
            found += 1
            yield case
        # Neighbouring lanes are much alike: a stride covers all kinds.
        number += 7


def compared(player, mode, request):
    option = request.config.getoption
    count = option("--fuzz-count") or amount(request.config, few=30, pairs=800)
    match = duel.Duel(player, ("stack", mode), compare_all)
    token = option("--fuzz-replay")
    if token:
        plays = [duel.replayed(player, one, PlainCase) for one in token.split()]
        found = [match.show(*d) for d in match.differing(plays)]
    else:
        found = match.run(list(cases(option("--fuzz-seed") or SEED, count)))
    print(f"{player.sent} packets, taken: {Mode.taken}; {len(match.once)} did not show again")
    assert not found, "\n\n".join(found)
    assert len(match.once) < 5, "\n\n".join(match.once)
    assert Mode.taken["stack"] == 0
    # `sent` counts the packets of both modes.
    assert token or Mode.taken[mode] > player.sent / 40


@pytest.mark.waits
@pytest.mark.smoke
@pytest.mark.parametrize("mode", ("fast", "new"))
def test_same_as_the_stack(player, mode, request):
    compared(player, mode, request)


@pytest.mark.usefixtures("can_xdp")
@pytest.mark.no_xdp("it attaches XDP itself")
def test_xdp_same_as_the_stack(player, request):
    compared(player, "xdp", request)
