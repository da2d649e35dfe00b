# SPDX-License-Identifier: GPL-2.0
"""The module and namespaces go while packets use what a service's settings keep: sets of ranges,
ports of full NAT, histograms, calls. As in test_teardown.py, nothing may be left behind."""

import pytest
from lab import atwork, kernel_log
from lab.lab import Lab
from lab.netns import wait_until

CPUS = 2
NO_MODULE = True  # these tests load and unload it themselves
pytestmark = [pytest.mark.smoke, pytest.mark.usefixtures("only_l4lb", "no_leaks", "unloaded")]
TWO_AT_ONCE = "ranges", "snat"      # packets of another processor search in what is freed


@pytest.fixture(scope="module")
def no_leaks(request):
    kernel_log.begins(request.module.__name__)
    yield
    leaks = kernel_log.scan_for_leaks(wait=5.5)
    assert not leaks, leaks


@pytest.mark.parametrize("feature", [
    pytest.param(name, marks=pytest.mark.emulated if name in TWO_AT_ONCE else ())
    for name in atwork.FEATURES])
def test_unload(topologies, backend, feature):
    lab = topologies["nat"]
    atwork.surroundings(lab, "add")
    try:
        for _ in range(2):
            backend.load()
            lab._ipvs = None
            with atwork.FEATURES[feature](lab).traffic() as sent:
                lab.flush()
                backend.unload()
                # Packets keep arriving at the kernel without the module.
                wait_until(lambda m=sent[0]: sent[0] > m + 30, 20)
    finally:
        atwork.surroundings(lab, "del")


@pytest.mark.parametrize("feature", atwork.FEATURES)
def test_namespace_ends(backend, feature):
    backend.load()
    lab = Lab("nat", "gone-")
    try:
        atwork.surroundings(lab, "add")
        with atwork.FEATURES[feature](lab).traffic():
            lab.ipvs.close()
            lab.topo.nodes.pop("director").ns.destroy()
    finally:
        lab.topo.destroy()
    # No service holds the module any more.
    wait_until(lambda: backend.refcount() == len(backend.family()) - 1, 20,
               what="references to the module")
