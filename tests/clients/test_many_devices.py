# SPDX-License-Identifier: GPL-2.0
"""ipvsctl on a machine with many devices: it lists them once, however many there are."""

import time

from lab.ctl import IPVSCTL
from lab.netns import Namespace, run

FEW, MANY = 300, 2400


def seconds(ns, words, tries=3):
    """The least of TRIES, because another guest may take the processor away."""
    took = []
    with ns.enter():
        for _ in range(tries):
            began = time.monotonic()
            run([IPVSCTL, *words.split()], check=False)
            took.append(time.monotonic() - began)
    return min(took)


WORDS = ("fast-path show", "fast-path no-xdp all", "doctor")


def test_time_grows_as_their_number(module_life, only_l4lb):
    """Eight times the devices take about eight times as long; asked one by one, each with a list of
    all, they would take 64 times."""
    ns = Namespace("many-devices")
    try:
        ns.ip(*(f"link add d{n} type dummy" for n in range(FEW)))
        few = [seconds(ns, words) for words in WORDS]
        ns.ip(*(f"link add d{n} type dummy" for n in range(FEW, MANY)))
        many = [seconds(ns, words) for words in WORDS]
    finally:
        ns.destroy()
    print(few, many)
    assert all(b < 24 * a for a, b in zip(few, many)), (few, many)
