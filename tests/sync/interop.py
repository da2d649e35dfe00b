# SPDX-License-Identifier: GPL-2.0
"""One of two guests with a cable between them: its director and the other guest's announce
their connections to each other. tests/lab/interop starts both, one with l4lb and one with
ip_vs; this file is not collected otherwise."""

import contextlib
import dataclasses
import time

import pytest
from lab import daemons
from lab.netns import wait_until
from lab.peers import Peers
from lab.settings import setting
from lab.sync_group import GROUP
from lab.sync_matrix import Matrix, differences, rows_of, without_ipv6
from lab.sync_wire import PORT
from lab.two_guests import COUNT, NUMBER, OTHER, ask, cable, find_end, meet, tell

KEY = bytes(range(32))
SILENT = 3          # seconds after which nothing more comes


@dataclasses.dataclass(frozen=True)
class How:
    """Version and family of the group; part of COUNT. PEER: l4lb takes the other director for a
    peer, which ip_vs cannot be: its messages have trailers, and there are control messages. KEY:
    they are signed, too, and l4lb drops those of ip_vs."""
    version: int = 1
    family: int = 4
    part: int = 10
    peer: bool = False
    key: bool = False


HOW = {"v1": How(part=1), "v1-v6-group": How(family=6), "v0": How(version=0),
       "trailer": How(peer=True), "trailer-v6-group": How(family=6, peer=True),
       "trailer-v0": How(version=0, peer=True), "key": How(peer=True, key=True)}


@pytest.fixture(scope="session", autouse=True)
def end():
    find_end()


@contextlib.contextmanager
def modern(ns, backend, how):
    """What an l4lb director does in the group besides ip_vs's protocol; yields its Peers."""
    if not (how.peer and backend.is_l4lb):
        yield None
        return
    with Peers(ns) as peers:
        peers.add(OTHER[how.family])
        if how.key:
            peers.set(key=KEY)
        yield peers


def lost(ns):
    """Datagrams of the group that this director's sockets did not take, or found wrong."""
    found = [line.split() for name in ("udp", "udp6")
             for line in ns.read(f"/proc/net/{name}").splitlines()[1:]]
    return sum(int(f[-1]) for f in found if f[1].endswith(f":{PORT:04X}"))


@pytest.mark.parametrize("name", HOW)
def test_both_ways(lab, backend, log, name):
    """The same server, state and end at both."""
    how = HOW[name]
    ns, at, name = lab.director.ns, list(HOW).index(name), f"{name}-{lab.shape}"
    count = max(COUNT // how.part, 3)
    number = 2 * (3 * at + ("nat", "dr", "tun").index(lab.shape))
    matrix = Matrix(lab, number + NUMBER)
    with cable(ns), setting(lab, "sync_version", how.version), modern(ns, backend, how) as peers, \
            daemons.running(lab.ipvs, "backup", group=GROUP[how.family]), \
            daemons.running(lab.ipvs, "master", group=GROUP[how.family]):
        unsigned = peers and peers.count("mac")
        kinds = {NUMBER: backend.name, 1 - NUMBER: meet(f"{name}-ready", backend.name)}
        try:
            for sender in (0, 1):
                verdict_of(matrix, (ns, number + sender, name), how, count,
                           taken=not (how.key and kinds[sender] == "ip_vs"
                                      and kinds[1 - sender] == "l4lb"))
            assert not lost(ns)
            assert not log.lines(r"(?i)ipvs: .*(error|fail|bogus|drop|invalid|unknown|short)")
            if peers:
                assert how.key == (peers.count("mac") > unsigned)
        finally:
            meet(f"{name}-end")


def verdict_of(matrix, about, how, count, taken):
    """One of the two sends; the other one finds the same, or nothing if it has not TAKEN it."""
    ns, number, name = about
    sender = number % 2
    if sender == NUMBER:
        matrix.play(count)
        tell(f"{name}-sent-{sender}", matrix.rows(count))
        assert ask(f"{name}-verdict-{sender}") == []
        return
    sent = ask(f"{name}-sent-{sender}")
    found = verdict(ns, number, sent, how.version) if taken else nothing(ns, number)
    tell(f"{name}-verdict-{sender}", found[:20])
    assert not found, f"{len(found)} differences: " + "; ".join(found[:10])


def nothing(ns, number):
    time.sleep(SILENT)
    return list(rows_of(ns, number))


def verdict(ns, number, sent, version):
    """What is still wrong after a while."""
    if not version:
        sent = without_ipv6(sent)
    found = []

    def right():
        # A template of version 0 has no time: it gets 180 s.
        found[:] = [text for text in differences(sent, rows_of(ns, number))
                    if version or ": ends " not in text]
        return not found
    with contextlib.suppress(AssertionError):
        wait_until(right, 15, step=0.3)
    return found
