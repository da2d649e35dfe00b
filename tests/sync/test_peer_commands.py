# SPDX-License-Identifier: GPL-2.0
"""ipvsctl sync peer, set, resync, push, wait and verify, on two directors."""

import json
import re
import secrets
import subprocess

import pytest
from lab import daemons, genl
from lab.ctl import IPVSCTL
from lab.netns import wait_until
from lab.packet import TCP
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import DEVICE, DIRECTOR, PEER

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]


class Ctl:
    """ipvsctl in one director's namespace, whose peer is to have the address OTHER."""

    def __init__(self, ns, other):
        self.ns, self.other = ns, other

    def __call__(self, words, code=0):
        """What it prints; on failure, the message."""
        with self.ns.enter():
            done = subprocess.run([IPVSCTL, *words.split()], capture_output=True, text=True,
                                  check=False, timeout=90)
        assert code in (done.returncode, None), f"{words}: {done.returncode}\n{done.stderr}"
        return done.stderr if code else done.stdout

    def json(self, words="sync show", code=0):
        with self.ns.enter():
            done = subprocess.run([IPVSCTL, "-j", *words.split()], capture_output=True, text=True,
                                  check=False, timeout=90)
        assert code in (done.returncode, None), f"{words}: {done.returncode}\n{done.stderr}"
        return json.loads(done.stdout)

    def join(self):
        self(f"sync peer add {self.other}")


@pytest.fixture
def pair(side, family):
    """Two directors that are not peers yet."""
    both = Ctl(side.ns, PEER[family]), Ctl(side.peer, DIRECTOR[family])
    yield both
    for one in both:
        shown = one.json()
        for peer in shown["peers"]:
            one(f"sync peer delete {peer['address']}")
        if shown["sync"]:
            one("sync stop")
        one("sync set key none rate 20000 multicast on port 8912 verify 60")


def joined(pair):
    for one in pair:
        one.join()
    for one in pair:
        one("sync wait 10")


def in_agreement(one, stale):
    found = one.json("sync verify", code=None)["verify"]
    return found if all(peer["difference"] <= stale for peer in found) else None


@pytest.mark.smoke
def test_from_nothing_to_in_step(side, pair, family):
    here, there = pair
    raw = Raw(side.lab, TCP, family)
    # Copies from earlier tests, whose services have gone: they differ until they expire.
    stale = len(genl.conns(side.peer))
    daemons.start(side.ipvs, "master")
    there(f"sync start receive dev {DEVICE}")
    clients = [raw.client() for _ in range(5)]
    for client in clients:
        client.establish()
    joined(pair)
    # Records of a moment ago may be under way; then it fails with 1, and they come again.
    (found,) = wait_until(lambda: in_agreement(there, stale), 30, what="agreement")
    assert found["address"] == DIRECTOR[family] and found["compared"] >= len(clients)
    (peer,) = there.json()["peers"]
    assert peer["state"] == "in step" and peer["resyncs"] >= 1 and peer["records_in"] >= 5
    said = there("sync verify", code=None)
    assert re.fullmatch(rf"peer {DIRECTOR[family]}: difference \d+ \(of 4096 slices\), "
                        r"\d+ connections compared\n", said), said
    before = peer["resyncs"]
    there(f"sync resync {DIRECTOR[family]}")
    wait_until(lambda: there.json()["peers"][0]["resyncs"] > before, 10, what="another resync")
    line = [one for one in here("sync show").splitlines() if one.startswith("peer ")]
    assert line[0].startswith(f"peer {PEER[family]} port 8912 in step, heard ")


def test_who_waits_alone(pair):
    here, _ = pair
    here.join()
    assert here("sync wait 1", code=9).splitlines() == [
        f"ipvsctl: sync: after 1 s: peer {here.other} is absent: nothing is heard of it",
        "  see: ipvsctl sync show"]
    assert here("sync wait 0 peer 192.0.2.99", code=4).startswith(
        "ipvsctl: sync: there is no peer 192.0.2.99\n")
    assert "is absent" in here("sync verify", code=9)
    assert here.json()["peers"][0]["heard_ms"] is None


def test_refused(pair):
    here, _ = pair
    for words in ("sync wait", "sync verify", "sync resync"):
        assert here(words, code=4) == ("ipvsctl: sync: there are no peers\n"
                                       "  try: ipvsctl sync peer add ADDR\n")
    assert here(f"sync peer delete {here.other}", code=4).startswith(
        f"ipvsctl: sync: there is no peer {here.other}\n")
    here.join()
    assert here(f"sync peer add {here.other}", code=5) == \
        f"ipvsctl: sync: peer {here.other} exists already\n"
    assert "the port changes only while there are no peers" in here("sync set port 9", code=3)
    assert here("sync push", code=4).startswith("ipvsctl: sync: send does not run\n")
    assert [peer["address"] for peer in here.json()["peers"]] == [here.other]


def test_settings(pair, tmp_path):
    here, _ = pair
    file = tmp_path / "key"
    file.write_text(secrets.token_hex(32) + "\n", encoding="ascii")
    file.chmod(0o600)
    here(f"sync set rate 5 multicast off port 9000 verify 0 key {file}")
    got = here.json()["settings"]
    assert got.pop("key") and got == {"rate": 5, "multicast": False, "port": 9000, "verify": 0,
                                      "kept": 0}
    assert here("sync show").startswith("settings rate 5 multicast off port 9000 verify 0 key ")
    here("sync set rate 7")
    assert here.json()["settings"]["rate"] == 7 and here.json()["settings"]["key"]
    here("sync set key none")
    assert here.json()["settings"]["key"] is None


def test_keys_must_be_the_same(side, pair, tmp_path):
    """With another key the peer stays absent; with the same one it joins."""
    here, there = pair
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.write_text(secrets.token_hex(32), encoding="ascii")
        file.chmod(0o600)
    for one, file in zip(pair, files):
        one(f"sync set key {file}")
        one.join()
    assert "is absent" in there("sync wait 2", code=9)
    there(f"sync set key {files[0]}")
    here("sync wait 10")
    there("sync wait 10")


def test_push_reaches_the_group(side, pair):
    """All connections go to the group once, those that it was told of already, too."""
    here, _ = pair
    raw = Raw(side.lab, TCP)
    with setting(side.lab, "sync_threshold", "2 50"), side.receiver() as receiver:
        daemons.start(side.ipvs, "master")
        clients = [raw.client() for _ in range(3)]
        for client in clients:
            client.establish()
        receiver.records(lambda r: r.vport == raw.port, count=3)
        here("sync push")
        again = receiver.records(lambda r: r.vport == raw.port, count=3)
        assert {r.client for r in again} == {c.address for c in clients}


def test_dry_run(pair):
    here, _ = pair
    assert here(f"-n sync peer add {here.other} port 9 hops").splitlines() == [
        f"would add sync peer {here.other} port 9 hops"]
    assert here("-n sync set rate 9 multicast off").splitlines() == [
        "would set sync rate 9 multicast off"]
    assert not here.json()["peers"] and here.json()["settings"]["rate"] == 20000
    here.join()
    assert here(f"-n sync peer delete {here.other}").splitlines() == [
        f"would delete sync peer {here.other}"]
    assert here("-n sync resync").splitlines() == ["would ask sync peer all"]
    assert len(here.json()["peers"]) == 1
