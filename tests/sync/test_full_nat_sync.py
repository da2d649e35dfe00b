# SPDX-License-Identifier: GPL-2.0
"""Full NAT and other directors: they are not told of such connections, but of templates, and what
they tell gets no port here."""

import time

import pytest
from lab import full_nat, genl
from lab.full_nat import Full
from lab.genl import PERSISTENT
from lab.packet import ACK, TCP
from lab.raw import Raw
from lab.settings import setting
from lab.sync_wire import NAT, Record

pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.fixture(autouse=True)
def ours(nat):
    with full_nat.addresses(nat, full_nat.pool(family=4), full_nat.pool(family=6)):
        yield


@pytest.mark.waits
def test_what_is_told(nat, side_of, family):
    """A plain connection is, the control; of a persistent client of full NAT the template is."""
    side = side_of(nat)
    plain = Raw(nat, TCP, family)
    full = Full(nat, TCP, family, flags=PERSISTENT, timeout=60)
    with setting(nat, "sync_threshold", "3 0"), side.receiver() as receiver, side.master():
        for raw in (plain, full):
            client = raw.client()
            client.establish()
            for _ in range(6):
                client.send(ACK)
                client.arrive()
        time.sleep(4)
        told = receiver.records(count=0)
    assert any(r.vport == plain.port and not r.is_template for r in told)
    of_full = [r for r in told if r.vport == full.port]
    assert of_full and all(r.is_template for r in of_full)


def test_a_record(nat, side_of, family):
    """Its connection has plain NAT: the local end that the other director may have is not known."""
    side = side_of(nat)
    raw = Full(nat, TCP, family)
    client = Raw.client(raw)
    record = Record(client.address, client.sport, raw.vip, raw.port, raw.address(1), raw.dport,
                    proto=TCP, state=1, timeout=500, flags=NAT)
    with side.backup(), side.sender() as sender:
        sender.records(record, version=1)
        side.row(record)
    shown, = raw.listed()
    assert "local" not in shown
    client.send(ACK, b"goes on")
    assert client.arrive()[1].payload == b"goes on"
    other = raw.client()
    other.establish()
    with genl.L4lb(nat.director.ns) as l4lb:
        assert l4lb.kill(vip=raw.vip, vport=raw.port) == 2
