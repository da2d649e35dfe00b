# SPDX-License-Identifier: GPL-2.0
"""Connections expire although one of two processors has no time for anything."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest
from lab.netns import pinned, wait_until
from lab.packet import UDP
from lab.raw import Raw

SECONDS = 12
SHARE = Path("/proc/sys/kernel/sched_rt_runtime_us")
HOG = f"""
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
end = time.monotonic() + {SECONDS}
while time.monotonic() < end:
    pass
"""
pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.emulated,
              pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors; runs on 6.12 and 6.1")]


@contextlib.contextmanager
def nothing_kept_for_others():
    """Real-time programs may have all of a processor; on 6.12 a twentieth is kept nevertheless."""
    before = SHARE.read_text("ascii")
    SHARE.write_text("-1", encoding="ascii")
    try:
        yield
    finally:
        SHARE.write_text(before, encoding="ascii")


@contextlib.contextmanager
def busy(processor):
    with subprocess.Popen(["taskset", "-c", str(processor), "/usr/bin/python3", "-c", HOG]) as hog:
        try:
            yield hog
        finally:
            hog.kill()


@pytest.mark.smoke
def test_expires(nat):
    """The one that is busy is the one whose packets have begun the sweep."""
    raw = Raw(nat, UDP)
    timeouts = nat.ipvs.timeouts()
    every = os.sched_getaffinity(0)
    nat.ipvs.timeouts(udp=2)
    try:
        with nothing_kept_for_others(), pinned():
            clients = [raw.client() for _ in range(50)]
            for client in clients:
                client.send(payload=b"x")
            raw.fence()
            assert len(nat.conns(vip=raw.vip, vport=raw.port)) == 50
            with busy(min(every)) as hog:
                os.sched_setaffinity(0, every - {min(every)})
                wait_until(lambda: not nat.conns(vip=raw.vip, vport=raw.port), SECONDS - 3, what="they expire")
                assert hog.poll() is None
    finally:
        nat.ipvs.timeouts(*timeouts)
