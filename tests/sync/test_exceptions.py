# SPDX-License-Identifier: GPL-2.0
"""What of a service other directors are told about: everything, nothing, templates, or the
connections that a director with the same servers would send elsewhere."""

import contextlib
import time

import pytest
from lab import genl
from lab.genl import PERSISTENT
from lab.packet import ACK, TCP, UDP
from lab.peers import Fake, Peers
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import PEER
from lab.sync_wire import Record

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]
ALL, OFF, TEMPLATES, EXCEPTIONS = range(4)
HASHING = ("mh", "sh", "dh")
SWEPT = 4
SERVERS = (1, 2, 3, 4)


def policy(raw, sync):
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        l4lb.set_policy(raw.service, sync=sync)


class Told:
    """What the group hears of a service."""

    def __init__(self, receiver, raw):
        self.receiver, self.raw, self.records = receiver, raw, []

    def listen(self, seconds=SWEPT):
        time.sleep(seconds)
        self.records += [r for r in self.receiver.records(count=0) if r.vport == self.raw.port]
        return {(r.client, r.cport) for r in self.records if not r.is_template}

    def templates(self):
        return {r.client for r in self.records if r.is_template}


@pytest.fixture
def told(side_of):
    """told(raw): what is told of it from now on."""
    with contextlib.ExitStack() as stack:
        def begin(raw):
            side = side_of(raw.lab)
            stack.enter_context(setting(raw.lab, "sync_threshold", "3 0"))
            receiver = stack.enter_context(side.receiver())
            stack.enter_context(side.master())
            return Told(receiver, raw)
        yield begin


def opened(raw, count):
    """{(address, port): number of its server} of COUNT connections."""
    found = {}
    for _ in range(count):
        client = raw.client()
        found[client.address, client.sport] = client.open() if raw.proto == UDP else \
            client.establish()
        for _ in range(3):
            client.send(ACK, b"more")
            client.arrive()
    return found


def client_of(raw, key):
    return raw.client(*key)


@pytest.mark.smoke
@pytest.mark.parametrize("sync", (ALL, OFF, TEMPLATES))
def test_by_kind(nat, told, sync):
    raw = Raw(nat, TCP, flags=PERSISTENT, timeout=300)
    policy(raw, sync)
    heard = told(raw)
    found = opened(raw, 3)
    assert heard.listen() == (set(found) if sync == ALL else set())
    assert heard.templates() == ({address for address, _ in found} if sync != OFF else set())


@pytest.mark.parametrize("sched", HASHING)
def test_what_is_as_chosen_is_not_told(lab, told, family, sched):
    """Not with the third packet, not by the sweep, not when it closes; a service without the
    setting tells all."""
    raw = Raw(lab, TCP, family, SERVERS, sched=sched)
    policy(raw, EXCEPTIONS)
    heard = told(raw)
    other = Told(heard.receiver, Raw(lab, TCP, family, SERVERS, sched=sched))
    assert set(opened(other.raw, 3)) == other.listen()
    found = opened(raw, 20)
    assert heard.listen() == set()
    for key in found:
        client_of(raw, key).send(0x11)          # FIN, ACK
    assert heard.listen() == set()


@pytest.mark.parametrize("proto", (TCP, UDP))
def test_a_change_makes_exceptions(lab, told, family, proto):
    """Of the servers that stay some clients now belong to the new one: these are told, and no
    others."""
    raw = Raw(lab, proto, family, SERVERS[:3], sched="mh")
    policy(raw, EXCEPTIONS)
    heard = told(raw)
    found = opened(raw, 40)
    assert heard.listen() == set()
    raw.add(4)
    exceptions = heard.listen(70)
    # Whoever comes now shows what is chosen: the same addresses, other ports.
    now = {}
    for address, _ in found:
        client = raw.client(address)
        now[address] = client.open() if proto == UDP else client.establish()
    assert exceptions == {key for key, server in found.items() if now[key[0]] != server}
    assert 0 < len(exceptions) < len(found)


def test_weight_0(nat, told):
    """The server's clients would be refused by a director that does not know them."""
    raw = Raw(nat, TCP, 4, SERVERS, sched="mh")
    policy(raw, EXCEPTIONS)
    heard = told(raw)
    found = opened(raw, 40)
    assert heard.listen(65) == set()        # the policy's own change is over
    raw.edit(2, weight=0)
    assert heard.listen(70) == {key for key, server in found.items() if server == 2}


def test_other_schedulers(nat, told):
    """What a scheduler has seen decides: every connection is an exception, even if there is only
    one server to choose."""
    raw = Raw(nat, TCP, 4, (1,), sched="wlc")
    policy(raw, EXCEPTIONS)
    heard = told(raw)
    assert heard.listen(0) == set()
    found = opened(raw, 5)
    assert heard.listen() == set(found)


def test_idle_exception(nat, told):
    """One with few packets, which was opened before its director had all servers."""
    raw = Raw(nat, TCP, 4, (1,), sched="mh")
    policy(raw, EXCEPTIONS)
    heard = told(raw)
    keys = set()
    for _ in range(30):
        client = raw.client()
        client.establish()
        keys.add((client.address, client.sport))
    raw.add(2)
    raw.add(3)
    exceptions = heard.listen(70)
    # Two thirds are expected; hashes of thirty addresses in a row scatter.
    assert exceptions < keys and len(exceptions) > 5


def test_resync(nat, side, told):
    """A peer that asks for all connections gets the exceptions."""
    raw = Raw(nat, TCP, 4, SERVERS[:3], sched="mh")
    policy(raw, EXCEPTIONS)
    heard = told(raw)
    found = opened(raw, 40)
    raw.add(4)
    exceptions = heard.listen(70)
    with Peers(side.ns) as peers:
        peers.set(verify=0)
        peers.add(PEER[4])
        with Fake(side.peer) as fake:
            fake.join()
            fake.ask(7)
            _, got, _ = fake.bulk_in(7)
    sent = {(r.client, r.cport) for r in got if r.vport == raw.port}
    assert exceptions and sent == exceptions < set(found)


def test_a_copy_counts_in_sums(nat, side, told):
    """What was told once is told on, though it is no exception any more."""
    raw = Raw(nat, UDP, 4, SERVERS[:3], sched="mh")
    policy(raw, EXCEPTIONS)
    heard = told(raw)
    opened(raw, 40)
    raw.add(4)
    exceptions = heard.listen(70)
    raw.remove(4)
    heard.records.clear()
    for key in exceptions:
        client = client_of(raw, key)
        client.send(ACK, b"more")
    assert heard.listen(120) == exceptions


def test_record(nat, told):
    """An exception's record is like any other."""
    raw = Raw(nat, TCP, 4, (1, 2), sched="mh")
    heard = told(raw)
    policy(raw, EXCEPTIONS)
    found = opened(raw, 20)
    raw.edit(1, weight=0)
    heard.listen(70)
    assert heard.records
    for r in heard.records:
        assert isinstance(r, Record) and r.server == raw.address(found[r.client, r.cport])
        assert (r.state, r.timeout, r.left) == (1, 900, 0)
