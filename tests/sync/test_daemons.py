# SPDX-License-Identifier: GPL-2.0
"""The daemons of synchronisation by netlink: what starts, what is refused and how."""

import errno

import pytest
from lab import daemons, genl
from lab.genl import (
    DEL_DAEMON,
    DM_GROUP,
    DM_GROUP6,
    DM_IFN,
    DM_MAXLEN,
    DM_PORT,
    DM_STATE,
    DM_SYNC_ID,
    DM_TTL,
    NEW_DAEMON,
    attr,
    is_refused,
    text,
    u32,
)
from lab.netns import Namespace
from lab.packet import packed
from lab.sync_group import DEVICE, GROUP

V4, V6 = GROUP[4], GROUP[6]
GOOD = {DM_STATE: u32(1), DM_IFN: text(DEVICE), DM_SYNC_ID: u32(7)}
MIXED = "mixed"
RUNS = "runs"
NOWHERE = {DM_IFN: text("nosuch0")}
BAD_STATE = {DM_STATE: u32(3)}
UNICAST = {DM_GROUP: packed("10.0.0.1")}

# {name: (changed attributes, errno), or (changed attributes, errno, circumstance)}
REFUSED = {
    "no-state": ({DM_STATE: None}, "EINVAL"),
    "no-interface": ({DM_IFN: None}, "EINVAL"),
    "no-id": ({DM_SYNC_ID: None}, "EINVAL"),
    "state-0": ({DM_STATE: u32(0)}, "EINVAL"),
    "state-3": (BAD_STATE, "EINVAL"),
    "state-cut": ({DM_STATE: b"\1\0\0"}, "EINVAL"),
    "state-empty": ({DM_STATE: b""}, "EINVAL"),
    "id-cut": ({DM_SYNC_ID: b"\1\0\0"}, "EINVAL"),
    "maxlen-cut": ({DM_MAXLEN: b"\1"}, "EINVAL"),
    "maxlen-empty": ({DM_MAXLEN: b""}, "EINVAL"),
    "group-cut": ({DM_GROUP: packed(V4)[:3]}, "EINVAL"),
    "group6-cut": ({DM_GROUP6: packed(V6)[:15]}, "EINVAL"),
    "group6-first-4": ({DM_GROUP6: packed(V6)[:4]}, "EINVAL"),
    "port-cut": ({DM_PORT: b"\1"}, "EINVAL"),
    "ttl-empty": ({DM_TTL: b""}, "EINVAL"),
    "interface-16": ({DM_IFN: text("a" * 16)}, "EINVAL"),
    "interface-15": ({DM_IFN: text("a" * 15)}, "ENODEV"),
    "interface-without-nul": ({DM_IFN: DEVICE.encode()}, "EINVAL"),
    "interface-empty": ({DM_IFN: b""}, "EINVAL"),
    "interface-none": ({DM_IFN: b"\0"}, "ENODEV"),
    "interface-unknown": (NOWHERE, "ENODEV"),
    "group-unicast": (UNICAST, "EINVAL"),
    "group-zero": ({DM_GROUP: bytes(4)}, "EINVAL"),
    "group-broadcast": ({DM_GROUP: b"\xff" * 4}, "EINVAL"),
    "group6-unicast": ({DM_GROUP6: packed("2001:db8::1")}, "EINVAL"),
    "group6-zero": ({DM_GROUP6: bytes(16)}, "EINVAL"),
    "both-groups-4-wins": ({DM_GROUP6: packed(V6), **UNICAST}, "EINVAL"),
    "mixed": ({}, "EINVAL", MIXED),
    "runs": ({}, "EEXIST", RUNS),
    # Which comes first
    "group-before-interface": ({**UNICAST, **NOWHERE}, "EINVAL"),
    "group-before-runs": (UNICAST, "EINVAL", RUNS),
    "mixed-before-interface": (NOWHERE, "EINVAL", MIXED),
    "interface-before-runs": (NOWHERE, "ENODEV", RUNS),
    "interface-before-state": ({**BAD_STATE, **NOWHERE}, "ENODEV"),
    "missing-before-interface": ({DM_SYNC_ID: None, **NOWHERE}, "EINVAL"),
}
STOP_REFUSED = {
    "no-state": ({DM_STATE: None}, "EINVAL"), "state-0": ({DM_STATE: u32(0)}, "EINVAL"),
    "state-3": (BAD_STATE, "EINVAL"), "state-cut": ({DM_STATE: b"\1"}, "EINVAL"),
    "not-running": ({DM_STATE: u32(2)}, "ESRCH"),
    "interface-cut": ({DM_IFN: b""}, "EINVAL"),
}


def code(name):
    return getattr(errno, name)


def request(ipvs, command, change):
    values = {**GOOD, **change}
    daemons.request(ipvs, command, *(attr(k, v) for k, v in values.items() if v is not None))


def mixed_server(lab):
    """A service with a real server of the other family."""
    lab.ipvs.service(lab.raw_vip(), lab.fresh_port(), sched="rr").server(
        "2001:db8::99", 80, method=genl.TUNNEL)


@pytest.mark.smoke
@pytest.mark.stock
@pytest.mark.parametrize("name", REFUSED)
def test_refused(side, name):
    change, why, *circumstance = REFUSED[name]
    if circumstance == [MIXED]:
        mixed_server(side.lab)
    if circumstance == [RUNS]:
        request(side.ipvs, NEW_DAEMON, {})
    before = daemons.listed(side.ipvs)
    is_refused(lambda: request(side.ipvs, NEW_DAEMON, change), code(why))
    assert daemons.listed(side.ipvs) == before


@pytest.mark.parametrize("name", STOP_REFUSED)
def test_stop_refused(side, name):
    change, why = STOP_REFUSED[name]
    with side.master():
        is_refused(lambda: request(side.ipvs, DEL_DAEMON, change), code(why))
        assert len(daemons.listed(side.ipvs)) == 1


@pytest.mark.parametrize("command", (NEW_DAEMON, DEL_DAEMON))
def test_without_a_description(side, command):
    is_refused(lambda: side.ipvs.request(command), errno.EINVAL)
    is_refused(lambda: side.ipvs.request(command, attr(genl.DAEMON, b"")), errno.EINVAL)


# {name: (role, attributes, what is listed)}; only what differs from the default is listed.
DEFAULT = {"ifname": DEVICE, "sync_id": 7, "maxlen": 1472, "group": V4, "port": 8848, "ttl": 1}
ACCEPTED = {
    "default": ("master", {}, {}),
    "default-backup": ("backup", {}, {}),
    "ipv6": ("master", {"group": V6}, {"maxlen": 1452}),
    "ipv6-backup": ("backup", {"group": V6}, {"maxlen": 1452}),
    "zeros": ("master", {"maxlen": 0, "port": 0, "ttl": 0},
              {"maxlen": 1472, "port": 8848, "ttl": 1}),
    "all": ("master", {"maxlen": 1000, "port": 9000, "ttl": 3, "group": "239.1.2.3"}, {}),
    "all-backup": ("backup", {"maxlen": 1100, "port": 9000, "ttl": 255, "group": "ff05::9"}, {}),
    "tiny": ("master", {"maxlen": 1}, {}),
    "tiny-backup": ("backup", {"maxlen": 16}, {"maxlen": 1024}),
    "huge": ("master", {"maxlen": 65535}, {"maxlen": 65507}),
    "huge-backup": ("backup", {"maxlen": 65535}, {"maxlen": 65507}),
    "huge-ipv6": ("master", {"maxlen": 65535, "group": V6}, {"maxlen": 65487}),
    "port-65535": ("backup", {"port": 65535}, {}),
    "loopback": ("master", {"ifname": "lo"}, {}),
    # Its own MTU of 65,536 is more than a datagram's length can say.
    "loopback-backup": ("backup", {"ifname": "lo"}, {"maxlen": 65507}),
    "id-256": ("master", {"sync_id": 256}, {}),
    "id-largest": ("backup", {"sync_id": 0x7fffffff}, {}),
}


@pytest.mark.smoke
@pytest.mark.stock
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(side, name):
    role, given, listed = ACCEPTED[name]
    given = {"sync_id": 7, **given}
    side.ns.ip("link set lo up")
    with daemons.running(side.ipvs, role, **given):
        assert daemons.listed(side.ipvs) == [{**DEFAULT, **given, **listed, "role": role}]
        group = DM_GROUP6 if ":" in given.get("group", "") else DM_GROUP
        assert daemons.kinds(side.ipvs) == [
            [DM_STATE, DM_IFN, DM_SYNC_ID, DM_MAXLEN, DM_PORT, DM_TTL, group]]
    assert daemons.listed(side.ipvs) == []


def test_longer_attributes(side):
    """Bytes behind a value are ignored, as in family IPVS's other commands."""
    request(side.ipvs, NEW_DAEMON, {DM_STATE: u32(1) + b"xx", DM_SYNC_ID: u32(7) + b"xxxx",
                                    DM_GROUP: packed(V4) + b"xx", DM_PORT: b"\1\0x"})
    assert daemons.listed(side.ipvs) == [{**DEFAULT, "role": "master", "port": 1}]


def test_both_groups(side):
    """The IPv4 group counts; the other one is not looked at."""
    request(side.ipvs, NEW_DAEMON, {DM_GROUP6: packed("2001:db8::1"), DM_GROUP: packed(V4)})
    assert daemons.listed(side.ipvs) == [{**DEFAULT, "role": "master"}]


def test_backups_length_follows_the_mtu(side):
    side.ns.ip(f"link set {DEVICE} mtu 9000")
    side.peer.ip(f"link set {DEVICE} mtu 9000")
    try:
        for role, maxlen in (("master", 1472), ("backup", 8972)):
            with daemons.running(side.ipvs, role):
                assert daemons.listed(side.ipvs)[0]["maxlen"] == maxlen
        with side.backup(group=V6):
            assert daemons.listed(side.ipvs)[0]["maxlen"] == 8952
    finally:
        side.ns.ip(f"link set {DEVICE} mtu 1500")
        side.peer.ip(f"link set {DEVICE} mtu 1500")


@pytest.mark.smoke
@pytest.mark.parametrize("first", ("master", "backup"))
def test_both_roles(side, first):
    """Each has its own settings; the master is listed first."""
    roles = {"master": {"sync_id": 1, "group": V6}, "backup": {"sync_id": 2, "port": 9001}}
    for role in sorted(roles, reverse=first == "master"):
        daemons.start(side.ipvs, role, **roles[role])
        is_refused(lambda: daemons.start(side.ipvs, role, **roles[role]), errno.EEXIST)
    assert [(d["role"], d["sync_id"], d["group"], d["port"])
            for d in daemons.listed(side.ipvs)] == [("master", 1, V6, 8848),
                                                    ("backup", 2, V4, 9001)]
    daemons.stop(side.ipvs, "master")
    assert [d["role"] for d in daemons.listed(side.ipvs)] == ["backup"]
    is_refused(lambda: daemons.stop(side.ipvs, "master"), errno.ESRCH)
    daemons.start(side.ipvs, "master")
    assert [d["role"] for d in daemons.listed(side.ipvs)] == ["master", "backup"]


def test_stop_ignores_other_attributes(side):
    """keepalived sends the sync id, too; it may be another one."""
    with side.master(sync_id=7):
        request(side.ipvs, DEL_DAEMON, {DM_SYNC_ID: u32(9), DM_IFN: text("nosuch0"),
                                        DM_GROUP: packed("10.0.0.1")})
        assert daemons.listed(side.ipvs) == []


@pytest.mark.smoke
@pytest.mark.parametrize("role", daemons.ROLE)
def test_no_server_of_the_other_family(side, role):
    """A record has one family for all its addresses."""
    service = side.ipvs.service(side.lab.raw_vip(), side.lab.fresh_port(), sched="rr")
    with daemons.running(side.ipvs, role):
        is_refused(lambda: service.server("2001:db8::99", 80, method=genl.TUNNEL), errno.EINVAL)
        assert service.servers() == []
        service.server("192.0.2.99", 80, method=genl.TUNNEL)
    service.server("2001:db8::99", 80, method=genl.TUNNEL)
    is_refused(lambda: daemons.start(side.ipvs, role), errno.EINVAL)
    service.delete_server("2001:db8::99", 80)
    with daemons.running(side.ipvs, role):
        pass


def test_device_is_down(side):
    """A master needs a way to the group; a backup waits for the device."""
    side.ns.ip("link add down0 type dummy", "addr add 10.99.0.1/24 dev down0")
    try:
        is_refused(lambda: daemons.start(side.ipvs, "master", "down0"), errno.ENETUNREACH)
        assert daemons.listed(side.ipvs) == []
        with side.backup(ifname="down0"):
            assert daemons.listed(side.ipvs)[0]["ifname"] == "down0"
    finally:
        side.ns.ip("link del down0")


def test_device_without_an_address(side):
    """It sends from 0.0.0.0, if the kernel lets it; the daemon runs in any case."""
    side.ns.ip("link add bare0 type dummy", "link set bare0 up")
    try:
        with side.master(ifname="bare0"), side.backup(ifname="bare0"):
            assert len(daemons.listed(side.ipvs)) == 2
    finally:
        side.ns.ip("link del bare0")


def test_start_and_stop_often(side):
    for n in range(50):
        for role in daemons.ROLE:
            with daemons.running(side.ipvs, role, sync_id=n):
                assert [d["sync_id"] for d in daemons.listed(side.ipvs)] == [n]
    assert daemons.listed(side.ipvs) == []


def test_namespaces_are_apart(side):
    """Each has its own daemons, which end with it."""
    other = Namespace("sync-other")
    other.ip("link add sync1 type dummy", "addr add 10.99.0.1/24 dev sync1", "link set sync1 up")
    with side.master(sync_id=3):
        with genl.Ipvs(other) as ipvs:
            assert daemons.listed(ipvs) == []
            for role in daemons.ROLE:
                daemons.start(ipvs, role, "sync1", sync_id=4)
            assert [d["sync_id"] for d in daemons.listed(ipvs)] == [4, 4]
        assert [d["sync_id"] for d in daemons.listed(side.ipvs)] == [3]
        other.destroy()
    assert daemons.listed(side.ipvs) == []


def test_flush_leaves_daemons(side):
    with side.master():
        side.ipvs.flush()
        assert len(daemons.listed(side.ipvs)) == 1
