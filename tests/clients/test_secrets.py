# SPDX-License-Identifier: GPL-2.0
"""Keys in messages of family L4LB: the kernel takes them, and leaves none in the message."""

import struct

import pytest
from lab import genl
from lab.genl import attr, batch_entry, be16, option

VIP = "198.51.100.175"
KEY = bytes(range(0x30, 0x40))
KEY_ATTR, PORT_ATTR = (genl.L4LB.sets["sync"][name].number for name in ("key", "port"))
pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.fixture
def service(ipvs):
    yield ipvs.service(VIP, 80, sched="mh")
    ipvs.flush()


def refused(l4lb, command, payload):
    """The kernel's copy of a request that it refuses."""
    message = l4lb.message(command, payload)
    l4lb.sock.send(message)
    answer = l4lb.sock.recv(1 << 16)
    kind, code = struct.unpack_from("=4xH10xi", answer)
    assert kind == 2 and code < 0
    copy = answer[20:20 + len(message)]
    assert len(copy) == len(message) and copy[:20] == message[:20]
    return copy


def test_options(l4lb, service):
    copy = refused(l4lb, genl.SET_OPTIONS, attr(genl.L_SERVICE, service.ident) + attr(
        genl.L_OPTIONS, [option("key", KEY), option("order", 7)]))
    assert b"order\0" in copy and KEY not in copy
    assert l4lb.values(service)["key"] == 0


def test_batch(l4lb, service):
    copy = refused(l4lb, genl.SET_SERVICES, [
        batch_entry(VIP, 80, sched="mh", options=[("key", KEY)]),
        batch_entry(VIP, 81, sched="nosuch")])
    assert b"nosuch\0" in copy and KEY not in copy
    assert l4lb.values(service)["key"] == 0


def test_group(l4lb):
    copy = refused(l4lb, genl.SET_SYNC, attr(genl.L_SYNC, [
        attr(KEY_ATTR, 2 * KEY), attr(PORT_ATTR, be16(0))]))
    assert attr(PORT_ATTR, be16(0)) in copy and KEY not in copy
