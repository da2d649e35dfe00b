# SPDX-License-Identifier: GPL-2.0
"""What synchronisation takes of the kernel's memory, and gives back."""

import contextlib
import time
from pathlib import Path

import pytest
from lab import daemons
from lab.netns import Namespace, wait_until
from lab.packet import UDP
from lab.peers import Peers
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import cable

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]

PEERS = 8               # at most, in a namespace
OF_A_PEER = 160 << 10   # bytes
OF_ALL = 8 << 20
KEPT = 4 << 20          # messages that may have to be sent again
NOISE = 256 << 10       # of the measurement
# Free pages are no measure: a processor keeps some megabytes of them.
ALLOCATED = ("SUnreclaim", "VmallocUsed", "Percpu", "KernelStack")


def used():
    """Bytes that the kernel has allocated for itself, without those in sockets."""
    kb = {line.split(":")[0]: int(line.split()[1])
          for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines()}
    return sum(kb[name] for name in ALLOCATED) << 10


def nobody(n):
    return f"10.1.1.{n + 1}"


def test_of_a_peer():
    """In eight namespaces, so that the noise is small beside it."""
    with contextlib.ExitStack() as stack:
        peers = []
        for n in range(8):
            ns = Namespace(f"memory{n}")
            stack.callback(ns.destroy)
            one = stack.enter_context(Peers(ns))
            one.add(nobody(PEERS - 1))      # the first one opens a socket, too
            peers.append(one)
        before = used()
        for one in peers:
            for n in range(PEERS - 1):
                one.add(nobody(n))
        each = (used() - before) // (8 * (PEERS - 1))
        for one in peers:
            for n in range(PEERS - 1):
                one.delete(nobody(n))
        print(f"a peer takes {each} bytes")
        wait_until(lambda: used() < before + NOISE, 10, what="the memory of 56 peers")
    assert OF_A_PEER // 4 < each <= OF_A_PEER


def send(lab, bursts):
    """Flows, so many that the director sends BURSTS messages about them."""
    raw = Raw(lab, UDP)
    for _ in range(bursts):
        for _ in range(3):
            raw.client().send()
        time.sleep(0.03)
    raw.fence()
    raw.drain()


def test_of_all(nat):
    """As much as it can be: all peers, both daemons, and all messages that are kept."""
    with cable(nat.director.ns), setting(nat, "sync_threshold", "1 2"), \
            Peers(nat.director.ns) as peers:
        daemons.start_both(nat.ipvs, maxlen=8000)
        for n in range(PEERS):
            peers.add(nobody(n))
        send(nat, 700)
        time.sleep(1)       # a grace period
        kept, most = peers.settings()["kept"], used()
        for n in range(PEERS):
            peers.delete(nobody(n))
        daemons.stop_all(nat.ipvs)
        assert peers.settings()["kept"] == 0
        time.sleep(1)
        taken = most - used()
    print(f"synchronisation takes {taken} bytes, {kept} of them for messages that are kept")
    assert KEPT * 3 // 4 < kept <= KEPT
    assert kept < taken <= OF_ALL
