# SPDX-License-Identifier: GPL-2.0
"""A namespace without services costs its packets nothing, and little memory."""

from pathlib import Path

import pytest
from lab.genl import Ipvs
from lab.netns import Namespace, run

NAMESPACES, TRIES = 60, 4
# What the module has for a namespace: its settings with their files in /proc/sys, its
# counters, the root of its tables.
AT_MOST = 14 << 10


def hooks(ns):
    """The lines of `nft list hooks` that name the module's functions."""
    if run(["modprobe", "nfnetlink_hook"], check=False).returncode:
        pytest.skip("this kernel does not list hooks; runs on 6.12")
    return [line for line in ns.nft("list hooks").splitlines() if "l4lb" in line]


@pytest.mark.stock
@pytest.mark.usefixtures("only_l4lb")
def test_no_hooks(backend):
    backend.need_scheduler("rr")
    ns = Namespace("unused")
    try:
        assert hooks(ns) == []
        with Ipvs(ns) as ipvs:
            ipvs.service("198.51.100.1", 80, sched="rr")
            assert hooks(ns)            # else the list would prove nothing
    finally:
        ns.destroy()


def used():
    """Bytes that the kernel's allocators have given away."""
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    total = sum(int(kb) << 10 for name, kb, *_ in map(str.split, lines)
                if name in ("VmallocUsed:", "Percpu:"))
    for line in Path("/proc/slabinfo").read_text("ascii").splitlines()[2:]:
        _, active, _, size = line.split()[:4]
        total += int(active) * int(size)
    return total


def taken_by_loading(backend):
    """Bytes that the modules take for the namespaces that there are."""
    backend.unload()
    before = used()
    backend.load()
    run(["modprobe", "l4lb_rr"])
    return used() - before


@pytest.mark.usefixtures("only_l4lb")
def test_memory_of_a_namespace(backend):
    """What the rest of the kernel takes or gives back meanwhile passes; what the module has is there
    each time."""
    tries = []
    while not tries or (not 0 < tries[-1] <= AT_MOST and len(tries) < TRIES):
        tries.append(for_a_namespace(backend))
    print(f"{tries} bytes for a namespace")
    assert 0 < tries[-1] <= AT_MOST


def for_a_namespace(backend):
    anyway = taken_by_loading(backend)
    backend.unload()
    spaces = [Namespace(f"unused{n}") for n in range(NAMESPACES)]
    try:
        return round((taken_by_loading(backend) - anyway) / NAMESPACES)
    finally:
        for ns in spaces:
            ns.destroy()
