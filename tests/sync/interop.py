# SPDX-License-Identifier: GPL-2.0
"""One of two guests with a cable between them: its director and the other guest's announce
their connections to each other. tests/lab/interop starts both, one with l4lb and one with
ip_vs; this file is not collected otherwise.

L4LB_INTEROP=DIRECTORY:NUMBER:COUNT: files in DIRECTORY are the guests' talk, NUMBER is this
guest's, COUNT the number of connections of each kind."""

import contextlib
import json
import os
import re
from pathlib import Path

import pytest
from lab import daemons
from lab.netns import run, wait_until
from lab.settings import setting
from lab.sync_group import DEVICE, DIRECTOR, GROUP, PEER, up
from lab.sync_matrix import Matrix, differences, rows_of, without_ipv6

HERE, NUMBER, COUNT = os.environ["L4LB_INTEROP"].split(":")
HERE, NUMBER, COUNT = Path(HERE), int(NUMBER), int(COUNT)
END = "link0"
MAC = f"52:54:00:00:5c:0{NUMBER}"
PATIENCE = 400      # seconds that one guest waits for the other
# {name: (version, family of the group, part of COUNT)}
HOW = {"v1": (1, 4, 1), "v1-v6-group": (1, 6, 10), "v0": (0, 4, 10)}


def tell(what, value=None):
    path = HERE / f"{what}-{NUMBER}"
    path.with_suffix(".new").write_text(json.dumps(value), encoding="utf-8")
    path.with_suffix(".new").rename(path)


def ask(what):
    path = HERE / f"{what}-{1 - NUMBER}"
    wait_until(path.exists, PATIENCE, what=f"the other guest's {path.name}", step=0.2)
    return json.loads(path.read_text(encoding="utf-8"))


def meet(what):
    tell(what)
    ask(what)


@pytest.fixture(scope="session", autouse=True)
def end():
    """The cable's end gets a name that the topologies do not use."""
    run("modprobe virtio_net")
    name = wait_until(lambda: re.search(rf"^\d+: (\w+):.* {MAC} ", run("ip -o link").stdout,
                                        re.M), 10, what="the cable")[1]
    run(f"ip link set {name} down")
    run(f"ip link set {name} name {END}")


@contextlib.contextmanager
def cable(ns):
    """The cable is the director's."""
    run(["ip", "link", "set", END, "netns", ns.name])
    try:
        ns.ip(f"link set {END} name {DEVICE}",
              *(f"addr add {(DIRECTOR, PEER)[NUMBER][family]}/{length} dev {DEVICE}{more}"
                for family, length, more in ((4, 24, ""), (6, 64, " nodad"))),
              f"link set {DEVICE} up")
        wait_until(lambda: up(ns, DEVICE), 10, what=f"{DEVICE} up")
        yield
    finally:
        ns.ip(f"link set {DEVICE} down", f"link set {DEVICE} name {END}",
              f"link set {END} netns 1")


@pytest.mark.parametrize("how", HOW)
def test_both_ways(lab, how):
    """The same server, state and end at both."""
    version, family, part = HOW[how]
    ns, name, at = lab.director.ns, f"{how}-{lab.shape}", list(HOW).index(how)
    count = max(COUNT // part, 3)
    number = 2 * (3 * at + ("nat", "dr", "tun").index(lab.shape))
    matrix = Matrix(lab, number + NUMBER)
    with cable(ns), setting(lab, "sync_version", version), \
            daemons.running(lab.ipvs, "backup", group=GROUP[family]), \
            daemons.running(lab.ipvs, "master", group=GROUP[family]):
        meet(f"{name}-ready")
        try:
            for sender in (0, 1):
                if sender == NUMBER:
                    matrix.play(count)
                    tell(f"{name}-sent", matrix.rows(count))
                    assert ask(f"{name}-verdict") == []
                else:
                    found = verdict(ns, number + sender, ask(f"{name}-sent"), version)
                    tell(f"{name}-verdict", found[:20])
                    assert not found, f"{len(found)} differences: " + "; ".join(found[:10])
        finally:
            meet(f"{name}-end")


def verdict(ns, number, sent, version):
    """What is still wrong after a while."""
    if not version:
        sent = without_ipv6(sent)
    found = []

    def right():
        # A template of version 0 has no time: it gets 180 s.
        found[:] = [text for text in differences(sent, rows_of(ns, number))
                    if version or " later" not in text]
        return not found
    with contextlib.suppress(AssertionError):
        wait_until(right, 15, step=0.3)
    return found
