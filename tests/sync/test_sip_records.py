# SPDX-License-Identifier: GPL-2.0
"""Templates with a Call-ID, sent and taken as by in-tree ip_vs."""

import time

import pytest
from lab import sync_wire
from lab.netns import wait_until
from lab.settings import setting
from lab.sip import Sip
from lab.sync_wire import INACTIVE, TEMPLATE, Record

LATEST = 4          # seconds after which ip_vs has sent everything
UNSUPPORTED = "sync_unsupported"


pytestmark = pytest.mark.usefixtures("sip_engine")


def call_of(raw, address, number, call, **more):
    given = {"flags": TEMPLATE, "state": 1, "timeout": 200, "proto": raw.proto, "pe_name": b"sip",
             "pe_data": call}
    return Record(address, 0, raw.vip, raw.port, raw.address(number), raw.dport, **{**given, **more})


@pytest.mark.waits
@pytest.mark.parametrize("version", (1, 0))
def test_sent(nat, side_of, family, version):
    """With engine and Call-ID; version 0 has neither, so nothing is sent."""
    side, raw = side_of(nat), Sip(nat, family)
    with setting(nat, "sync_version", version), side.receiver() as receiver, side.master(sync_id=77):
        client = raw.client()
        first = raw.ask("one@host", client=client)
        other = raw.ask("x" * 255, client.address)
        time.sleep(LATEST)
        got = [r for data in receiver.drain() for r in sync_wire.strict(data, 77, version)
               if r.client == client.address and r.is_template]
    if not version:
        assert not [r for r in got if r.pe_data or family == 6]
        return
    assert {(r.pe_name, r.pe_data, r.server) for r in got} == {
        (b"sip", b"one@host", raw.address(first)), (b"sip", b"x" * 255, raw.address(other))}
    assert {(r.cport, r.vip, r.vport, r.dport, r.flags & (TEMPLATE | INACTIVE)) for r in got} == {
        (0, raw.vip, raw.port, raw.dport, TEMPLATE | INACTIVE)}


@pytest.mark.smoke
def test_taken(nat, side_of, family):
    """The calls of a client stay with the servers that another director has chosen."""
    side, raw = side_of(nat), Sip(nat, family)
    address = nat.client_address(family)
    calls = {"a@b": 1, "c": 2, "d" * 255: 2, "e": 1}
    with side.backup(), side.sender() as sender:
        sender.records(*(call_of(raw, address, number, call.encode())
                         for call, number in calls.items()))
        wait_until(lambda: raw.calls(client=address) == calls, 5, what="the calls")
        assert {row["origin"] for row in side.rows(client=address)} == {"SYNC"}
        assert {call: raw.ask(call, address) for call in calls} == calls
        assert raw.dest(1)["persistent"] == raw.dest(2)["persistent"] == 2


def test_not_taken(nat, side_of, only_l4lb):
    """Data of another engine, of a service without one, and what could not be listed."""
    side, raw = side_of(nat), Sip(nat)
    plain = Sip(nat, pe="")
    address = nat.client_address(4)

    def count():
        lines = dict(line.split() for line in side.ns.read("/proc/net/l4lb").splitlines())
        return int(lines[UNSUPPORTED])

    bad = [call_of(raw, address, 1, b"x", pe_name=b"odd"), call_of(raw, address, 1, b"x", pe_name=b"si"),
           call_of(raw, address, 1, b"x", pe_name=b"sip2"), call_of(plain, address, 1, b"x"),
           call_of(raw, address, 1, b"x").but(flags=0, cport=7, state=0),
           *(call_of(raw, address, 1, b"x" + bytes([c])) for c in (0, 10, 27, 32, 127, 255))]
    with side.backup(), side.sender() as sender:
        before = count()
        for record in bad:
            sender.records(record)
        wait_until(lambda: count() - before == len(bad), 5, what="all of them counted")
        assert not side.rows(client=address)
        sender.records(call_of(raw, address, 1, b"good"))
        wait_until(lambda: raw.calls(client=address) == {"good": 1}, 5)
