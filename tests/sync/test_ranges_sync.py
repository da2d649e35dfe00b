# SPDX-License-Identifier: GPL-2.0
"""Connections and templates of services with a range, as another director has told of them."""

import pytest
from lab import genl, ranges
from lab.genl import PERSISTENT
from lab.packet import ACK, TCP
from lab.ranges import PREFIX, Ranged
from lab.sync_wire import NAT, TEMPLATE, Record

pytestmark = pytest.mark.usefixtures("only_l4lb")


def test_connection(nat, side_of, family):
    """It belongs to the range that has its address and port, and goes on here."""
    side = side_of(nat)
    with ranges.here(nat, PREFIX[family]):
        raw = Ranged(nat, TCP, family)
        client = raw.client()
        record = Record(client.address, client.sport, raw.vip, raw.port, raw.address(2),
                        raw.port, proto=TCP, state=1, timeout=500, flags=NAT)
        with side.backup(), side.sender() as sender:
            sender.records(record, version=1)
            assert side.row(record)["server"] == raw.address(2)
        client.send(ACK, b"goes on")
        number, p = client.arrive()
        assert (number, p.dport) == (2, raw.port)


def test_template(nat, side_of, family):
    """A client goes where its template says; that of a range which is not here is refused, and
    an exact service with the range's first port has nothing to do with it."""
    side = side_of(nat)
    with ranges.here(nat, PREFIX[family]):
        raw = Ranged(nat, TCP, family, flags=PERSISTENT, timeout=60)
        exact = nat.ipvs.service(raw.vip, raw.first, proto=TCP, sched="rr")
        exact.server(raw.address(1), 0)
        addresses = [nat.client_address(family) for _ in range(4)]
        template = Record(addresses[0], raw.last, raw.vip, raw.first, raw.address(2), 0,
                          proto=TCP, state=0, timeout=60, flags=NAT | TEMPLATE)
        other = template.but(client=addresses[1], cport=raw.last - 1)
        with side.backup(), side.sender() as sender:
            sender.records(other, version=1)
            sender.records(*(template.but(client=a) for a in (addresses[0], *addresses[2:])),
                           version=1)
            side.row(template)
            assert not side.rows(client=other.client)
        assert {raw.client(a).open() for a in (addresses[0], *addresses[2:])} == {2}
        with genl.L4lb(nat.director.ns) as l4lb:
            found = [c for c in l4lb.conns(client=addresses[0]) if c["flags"] & genl.F_TEMPLATE]
        assert [c["holders"] for c in found] == [1]
