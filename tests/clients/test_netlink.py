# SPDX-License-Identifier: GPL-2.0
"""Family IPVS, message by message: what is accepted, refused and answered.

The expected errno of every row is in-tree ip_vs's own. l4lb must also send a
sentence (extack) with each refusal, and log nothing.
"""

import contextlib
import errno
import socket
import struct
from pathlib import Path

import pytest
from lab import genl, packet
from lab.genl import attr, be16, text, u8, u16, u32
from lab.messages import (
    NAME,
    OTHER,
    RIP,
    RIP6,
    V4,
    V6,
    changed,
    dest,
    full,
    new_dest,
    refused,
    size,
    svc,
)
from lab.netns import wait_until
from lab.nobody import as_nobody
from lab.packet import SCTP, TCP, UDP

SO_GET_VERSION = 64 + 1024 + 64


@pytest.fixture
def ipvs(nat):
    return nat.ipvs


@pytest.fixture(autouse=True)
def quiet(log):
    """Nothing a client sends may print more than debug messages."""
    log.seen.clear()
    yield
    # "attribute type N has an invalid length" comes from the netlink core.
    loud = [t for level, t in log.refresh() if level < 7 and ("IPVS" in t or "l4lb" in t)]
    if log.backend.is_l4lb:
        assert not loud, loud


@pytest.fixture
def log(log, backend):
    log.backend = backend
    return log


# -- the family

@pytest.mark.smoke
def test_family(ipvs):
    a = ipvs.description
    assert a[2] == b"IPVS\0"
    assert struct.unpack("=III", a[3] + a[4] + a[5]) == (1, 0, 6)
    assert 7 not in a  # multicast groups
    ops = {}
    for _, op in genl.attributes(a[6]):
        o = dict(genl.attributes(op))
        ops[int.from_bytes(o[1], "little")] = int.from_bytes(o[2], "little")
    assert set(ops) == set(range(1, 18)) - {genl.SET_INFO}
    for command, flags in ops.items():
        dump_only = command in (genl.GET_DEST, genl.GET_DAEMON)
        assert flags & 1, "every command needs CAP_NET_ADMIN"
        assert bool(flags & 2) == (not dump_only), command
        assert bool(flags & 4) == (dump_only or command == genl.GET_SERVICE), command


def test_version_of_requests_is_ignored(ipvs):
    for version in (0, 1, 7):
        assert ipvs.request(genl.GET_INFO, version=version)[0][0] == genl.SET_INFO


@pytest.mark.parametrize("command, flags", [
    (0, genl.F_ACK), (14, genl.F_ACK), (18, genl.F_ACK), (255, genl.F_ACK),
    (genl.GET_DEST, genl.F_ACK), (genl.GET_DAEMON, genl.F_ACK),
    (genl.NEW_SERVICE, genl.F_DUMP), (genl.GET_INFO, genl.F_DUMP)])
def test_commands_that_do_not_exist(ipvs, command, flags):
    genl.is_refused(lambda: ipvs.request(command, NAME, flags=flags), errno.EOPNOTSUPP)


@pytest.mark.smoke
def test_info(ipvs):
    command, payload = ipvs.request(genl.GET_INFO)[0]
    assert command == genl.SET_INFO
    a = genl.attributes(payload)
    assert [(k, len(v)) for k, v in a] == [(1, 4), (2, 4)]
    assert int.from_bytes(a[0][1], "little") == 0x010201
    assert int.from_bytes(a[1][1], "little") >= 256


@pytest.mark.smoke
def test_config(ipvs, backend):
    assert ipvs.timeouts() == (900, 120, 300)
    command, payload = ipvs.request(genl.GET_CONFIG)[0]
    assert command == genl.SET_CONFIG
    assert [(k, len(v)) for k, v in genl.attributes(payload)] == [(4, 4), (5, 4), (6, 4)]
    assert ipvs.timeouts(tcp=7) == (7, 120, 300)
    assert ipvs.timeouts(udp=9, fin=8) == (7, 8, 9)
    assert ipvs.timeouts(tcp=0, fin=0, udp=0) == (7, 8, 9)
    ipvs.request(genl.SET_CONFIG)
    # All or nothing.
    for bad in (0xffffffff, 0x80000000, 0x7fffffff):
        refused(backend, "EINVAL", lambda b=bad: ipvs.timeouts(tcp=11, fin=12, udp=b))
        refused(backend, "EINVAL", lambda b=bad: ipvs.timeouts(tcp=b))
    assert ipvs.timeouts() == (7, 8, 9)


def test_longest_timeout(ipvs, backend):
    """As many seconds as fit into an int as ticks; one more is refused."""
    longest = 0
    for bit in reversed(range(32)):
        with contextlib.suppress(genl.NetlinkError):
            ipvs.timeouts(udp=longest | 1 << bit)
            longest |= 1 << bit
    assert longest in [0x7fffffff // hz for hz in (100, 250, 300, 1000)]
    assert ipvs.timeouts()[2] == longest
    refused(backend, "EINVAL", lambda: ipvs.timeouts(udp=longest + 1))


# -- services

SERVICE_ROWS = [
    ("no AF", {1: None}, "EINVAL"), ("no protocol", {2: None}, "EINVAL"),
    ("no address", {3: None}, "EINVAL"), ("no port", {4: None}, "EINVAL"),
    ("no scheduler", {6: None}, "EINVAL"), ("no flags", {7: None}, "EINVAL"),
    ("no timeout", {8: None}, "EINVAL"), ("no netmask", {9: None}, "EINVAL"),
    ("AF 0", {1: u16(0)}, "EAFNOSUPPORT"), ("AF 1", {1: u16(1)}, "EAFNOSUPPORT"),
    ("AF 255", {1: u16(255)}, "EAFNOSUPPORT"), ("AF 2+65536", {1: u32(65538)}, None),
    ("scheduler unknown", {6: text("nosuch")}, "ENOENT"),
    ("scheduler empty", {6: text("")}, "ENOENT"),
    ("scheduler of 15", {6: text("a" * 15)}, "ENOENT"),
    ("scheduler of 16", {6: text("a" * 16)}, "EINVAL"),
    ("scheduler of 64K", {6: text("a" * 60000)}, "EINVAL"),
    ("scheduler with formats", {6: text("%s%n%x")}, "ENOENT"),
    ("scheduler with slashes", {6: text("../../rr")}, "ENOENT"),
    ("scheduler not UTF-8", {6: b"\xff\xfe\x80\0"}, "ENOENT"),
    ("scheduler none", {6: text("none")}, None),
    ("PE unknown", {11: text("nosuch")}, "ENOENT"),
    ("PE of 17", {11: text("a" * 17)}, "EINVAL"),
    ("PE without its end", {11: b"sip"}, "EINVAL"),
    ("PE empty", {11: text("")}, None),
    ("address of 17", {3: b"\1" * 17}, "EINVAL"),
    ("address of 3", {3: b"\1" * 3}, None),
    ("address of 4", {3: packet.packed(V4)}, None),
    ("address with a tail", {3: packet.packed(V4) + b"\xff" * 12}, None),
    ("protocol 0", {2: u16(0)}, None), ("protocol 1", {2: u16(1)}, None),
    ("protocol 50", {2: u16(50)}, None), ("protocol 300", {2: u16(300)}, None),
    ("protocol UDP", {2: u16(UDP)}, None), ("protocol SCTP", {2: u16(SCTP)}, None),
    ("port 0", {4: be16(0)}, None),
    ("address 0", {3: bytes(16)}, None),
    ("multicast", {3: genl.address("224.0.0.9")}, None),
    ("not local", {3: genl.address("203.0.113.9")}, None),
    ("netmask 0", {9: u32(0)}, None), ("netmask with a hole", {9: b"\xff\0\xff\0"}, None),
    ("timeout 0", {8: u32(0), 7: u32(1) + u32(0xffffffff)}, None),
    ("timeout -1", {8: u32(0xffffffff), 7: u32(1) + u32(0xffffffff)}, None),
    ("one packet on TCP", {7: u32(4) + u32(0xffffffff)}, None),
    ("flags without mask", {7: u32(1)}, None),
    ("AF cut", {1: u8(2)}, "EINVAL"), ("port cut", {4: u8(80)}, "EINVAL"),
    ("timeout cut", {8: u16(80)}, "EINVAL"), ("netmask cut", {9: u16(80)}, "EINVAL"),
    ("AF empty", {1: b""}, "EINVAL"),
    ("unknown attributes", {40: b"junk", 99: b"", 0x3ff0: bytes(100)}, None),
]


@pytest.mark.smoke
@pytest.mark.parametrize("change, code", [r[1:] for r in SERVICE_ROWS],
                         ids=[r[0].replace(" ", "-") for r in SERVICE_ROWS])
def test_new_service(ipvs, backend, change, code):
    if code:
        refused(backend, code, lambda: ipvs.request(genl.NEW_SERVICE, changed(change)))
        assert ipvs.services() == []
    else:
        ipvs.request(genl.NEW_SERVICE, changed(change))
        assert len(ipvs.services()) == 1
        refused(backend, "EEXIST",
                lambda: ipvs.request(genl.NEW_SERVICE, changed(change)))


@pytest.mark.parametrize("prefix, code", [(0, "EINVAL"), (129, "EINVAL"),
                                          (0xffffffff, "EINVAL"), (1, None), (64, None),
                                          (128, None)])
def test_ipv6_prefix(ipvs, backend, prefix, code):
    def new():
        ipvs.service(V6, 80, netmask=prefix)
    if code:
        refused(backend, code, new)
    else:
        new()
        assert int.from_bytes(ipvs.services()[0]["netmask"], "little") == prefix


def test_ipv6_services(ipvs):
    for vip in (V6, "fe80::1", "ff02::1", "::", "::1"):
        ipvs.service(vip, 80)
    assert len(ipvs.services()) == 5


def test_service_attribute_missing(ipvs, backend):
    for command in (genl.NEW_SERVICE, genl.SET_SERVICE, genl.DEL_SERVICE,
                    genl.GET_SERVICE, genl.NEW_DEST, genl.SET_DEST, genl.DEL_DEST):
        for payload in (b"", attr(genl.SERVICE, b"")):
            said = refused(backend, "EINVAL", lambda c=command, p=payload: ipvs.request(c, p))
            assert "missing" in said or not backend.is_l4lb


@pytest.mark.parametrize("kind, name", (
    (genl.S_PROTOCOL, "PROTOCOL (or FWMARK)"), (genl.S_ADDR, "ADDR (or FWMARK)"),
    (genl.S_PORT, "PORT (or FWMARK)"), (genl.S_SCHED, "SCHED_NAME"), (genl.S_FLAGS, "FLAGS"),
    (genl.S_TIMEOUT, "TIMEOUT"), (genl.S_NETMASK, "NETMASK")))
def test_missing_attribute_of_a_service(ipvs, only_l4lb, kind, name):
    said = genl.is_refused(lambda: ipvs.request(genl.NEW_SERVICE, changed({kind: None})),
                           errno.EINVAL)
    assert said == f"service: attribute {name} is missing"


@pytest.mark.parametrize("kind, name", (
    (genl.D_ADDR, "ADDR"), (genl.D_PORT, "PORT"), (genl.D_FWD, "FWD_METHOD"),
    (genl.D_WEIGHT, "WEIGHT"), (genl.D_U, "U_THRESH"), (genl.D_L, "L_THRESH")))
def test_missing_attribute_of_a_server(ipvs, only_l4lb, kind, name):
    ipvs.service(V4, 80)
    said = genl.is_refused(lambda: ipvs.request(genl.NEW_DEST, NAME + dest({kind: None})),
                           errno.EINVAL)
    assert said == f"real server: attribute {name} is missing"


def test_missing_service(ipvs, backend):
    ipvs.service(OTHER, 80)
    for command in (genl.SET_SERVICE, genl.DEL_SERVICE, genl.GET_SERVICE, genl.ZERO):
        refused(backend, "ESRCH", lambda c=command: ipvs.request(c, changed({})))
    # The service is looked up before its scheduler.
    refused(backend, "ESRCH", lambda: ipvs.request(
        genl.SET_SERVICE, changed({genl.S_SCHED: text("nosuch")})))
    for command in (genl.NEW_DEST, genl.SET_DEST, genl.DEL_DEST):
        refused(backend, "ESRCH", lambda c=command: ipvs.request(c, NAME + dest()))
        # The service is looked up before the destination is parsed.
        refused(backend, "ESRCH", lambda c=command: ipvs.request(c, NAME))
    for command in (genl.DEL_SERVICE, genl.GET_SERVICE, genl.ZERO):
        refused(backend, "EAFNOSUPPORT",
                lambda c=command: ipvs.request(c, changed({genl.S_AF: u16(77)})))


def test_set_service(ipvs, backend):
    s = ipvs.service(V4, 80, sched="rr", flags=genl.PERSISTENT, timeout=10)
    refused(backend, "ENOENT", lambda: s.edit(sched="nosuch"))
    refused(backend, "EINVAL", lambda: ipvs.request(
        genl.SET_SERVICE, changed({genl.S_TIMEOUT: None})))
    refused(backend, "ENOENT", lambda: ipvs.request(
        genl.SET_SERVICE, changed({genl.S_PE: text("nosuch")})))
    assert s.get()["timeout"] == 10
    s.edit(sched="rr", flags=0, timeout=20, netmask="255.255.0.0")
    got = s.get()
    assert (got["sched"], got["flags"], got["timeout"], got["netmask"]) == \
        ("rr", 2, 20, b"\xff\xff\0\0")


def test_flags_merge(ipvs):
    """new = (old AND NOT mask) OR (flags AND mask); 0x2 is the kernel's own
    and always there; unknown bits are kept."""
    s = ipvs.service(V4, 80, sched="sh", flags=0xff, mask=0)
    assert s.get()["flags"] == 2
    s.edit(flags=genl.PERSISTENT, mask=1)
    assert s.get()["flags"] == 3
    s.edit(flags=0x38, mask=0x10)
    assert s.get()["flags"] == 0x13
    s.edit(flags=0, mask=1)
    assert s.get()["flags"] == 0x12
    s.edit(flags=0x40000000, mask=0xfffffffd)
    assert s.get()["flags"] == 0x40000002
    a = dict(genl.attributes(dict(genl.attributes(
        ipvs.request(genl.GET_SERVICE, NAME)[0][1]))[genl.SERVICE]))
    assert a[genl.S_FLAGS][4:] == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("sched", ("none", "rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh",
                                   "mh", "sed", "nq", "fo", "ovf", "twos", "ewma", "bpf"))
def test_flags_a_scheduler_does_not_have(ipvs, backend, sched):
    """They are stored, shown, and have no effect: keepalived would lose the whole virtual
    server otherwise."""
    if sched != "none":
        backend.need_scheduler(sched)
    for flag in (8, 16, 32):
        s = ipvs.service(V4, 80, sched=sched, flags=flag)
        assert s.get()["flags"] == flag | 2
        s.edit(flags=flag | 1, timeout=9)
        assert (s.get()["flags"], s.get()["timeout"]) == (flag | 3, 9)
        s.delete()


def test_a_refused_edit_keeps_no_scheduler(ipvs, backend):
    backend.need_scheduler("rr")
    users = Path("/sys/module", f"{backend.prefix}rr", "refcnt")
    before = users.read_text("ascii")
    with pytest.raises(genl.NetlinkError):
        ipvs.service(V4, 81, sched="rr", add=False).edit(sched="rr")
    assert users.read_text("ascii") == before


def test_scheduler_change_with_flags(ipvs, backend):
    """A program reads a service, sets another scheduler and writes it back: the flags stay,
    and work again with a scheduler that has them. ipvsadm and keepalived send all flags."""
    s = ipvs.service(V4, 80, sched="sh", flags=0x18)
    s.server(RIP, 80)
    for sched in ("rr", "none", "sh"):
        s.edit(sched=sched, flags=0, mask=0)
        assert (s.get()["sched"], s.get()["flags"]) == (sched, 0x1a)
        assert [d["addr"] for d in s.servers()] == [RIP]
    s.edit(sched="rr", flags=0, mask=0xffffffff)
    assert (s.get()["sched"], s.get()["flags"]) == ("rr", 2)


def test_fwmark_services(ipvs, backend):
    ipvs.service(fwmark=5)
    ipvs.service(fwmark=5, af=socket.AF_INET6)
    refused(backend, "EEXIST", lambda: ipvs.service(fwmark=5))
    # A mark beats protocol, address and port.
    refused(backend, "EEXIST", lambda: ipvs.request(
        genl.NEW_SERVICE, changed({genl.S_FWMARK: u32(5)})))
    assert sorted((s["af"], s["fwmark"]) for s in ipvs.services()) == \
        [(socket.AF_INET, 5), (socket.AF_INET6, 5)]
    # Mark 0 alone is accepted and is TCP 0.0.0.0:0.
    ipvs.request(genl.NEW_SERVICE, svc({
        1: u16(socket.AF_INET), genl.S_FWMARK: u32(0),
        **{k: v for k, v in full().items() if k > 5}}))
    zero = [s for s in ipvs.services() if "fwmark" not in s]
    assert [(s["proto"], s["addr"], s["port"]) for s in zero] == [(TCP, "0.0.0.0", 0)]


@pytest.mark.smoke
def test_service_reply(ipvs):
    """Attribute order and sizes, as clients see them on the wire."""
    ipvs.service(V4, 80, sched="rr", flags=1, timeout=300, netmask="255.255.255.0")
    replies = ipvs.request(genl.GET_SERVICE, NAME)
    assert [c for c, _ in replies] == [genl.NEW_SERVICE]
    top = genl.attributes(replies[0][1])
    assert [k for k, _ in top] == [genl.SERVICE]
    a = genl.attributes(top[0][1])
    assert [(k, size(k, v, genl.S_STATS, genl.S_STATS64)) for k, v in a] == [
        (1, 2), (2, 2), (3, 16), (4, 2), (6, 3), (7, 8), (8, 4), (9, 4), (10, 88), (12, 120)]
    a = dict(a)
    assert a[3] == packet.packed(V4) + bytes(12)
    assert (a[4], a[6], a[7], a[9]) == (be16(80), b"rr\0", u32(3) + u32(0xffffffff),
                                        b"\xff\xff\xff\0")
    stats = genl.attributes(a[10])
    assert [(k, len(v)) for k, v in stats if k != 11] == [
        (1, 4), (2, 4), (3, 4), (4, 8), (5, 8), (6, 4), (7, 4), (8, 4), (9, 4), (10, 4)]
    stats = genl.attributes(a[12])
    assert [(k, len(v)) for k, v in stats if k != 11] == [(k, 8) for k in range(1, 11)]
    ipvs.service(fwmark=9)
    marked = [genl.attributes(dict(genl.attributes(p))[1])
              for _, p in ipvs.dump(genl.GET_SERVICE)]
    marked = [m for m in marked if dict(m).get(genl.S_FWMARK)]
    assert [k for k, _ in marked[0]] == [1, 5, 6, 7, 8, 9, 10, 12]


def test_service_dump_ignores_its_attribute(ipvs):
    ipvs.service(V4, 80)
    ipvs.service(V4, 81)
    for junk in (b"", attr(genl.SERVICE, b""), changed({}), attr(genl.SERVICE, b"\xff" * 7),
                 attr(77, b"junk")):
        assert len(ipvs.dump(genl.GET_SERVICE, junk)) == 2


# -- destinations


DEST_ROWS = [
    ("no address", {1: None}, "EINVAL"), ("no port", {2: None}, "EINVAL"),
    ("no method", {3: None}, "EINVAL"), ("no weight", {4: None}, "EINVAL"),
    ("no upper", {5: None}, "EINVAL"), ("no lower", {6: None}, "EINVAL"),
    ("family 1", {11: u16(1)}, "EAFNOSUPPORT"), ("family 99", {11: u16(99)}, "EAFNOSUPPORT"),
    ("family 0", {11: u16(0)}, None), ("family 2", {11: u16(2)}, None),
    ("family other, NAT", {11: u16(10), 1: genl.address(RIP6)}, "EINVAL"),
    ("family other, DR", {11: u16(10), 1: genl.address(RIP6), 3: u32(3)}, "EINVAL"),
    ("family other, tunnel", {11: u16(10), 1: genl.address(RIP6), 3: u32(2)}, None),
    ("weight -1", {4: u32(-1)}, "ERANGE"), ("weight 2^31", {4: u32(1 << 31)}, "ERANGE"),
    ("weight 2^31-1", {4: u32((1 << 31) - 1)}, None), ("weight 0", {4: u32(0)}, None),
    ("lower over upper", {5: u32(3), 6: u32(4)}, "ERANGE"),
    ("lower alone", {6: u32(1)}, "ERANGE"),
    ("upper 2^31", {5: u32(1 << 31)}, "EINVAL"), ("upper 2^31-1", {5: u32((1 << 31) - 1)}, None),
    ("equal thresholds", {5: u32(9), 6: u32(9)}, None),
    ("gue without port", {13: u8(1)}, "EINVAL"),
    ("gue with port", {13: u8(1), 14: be16(6080), 3: u32(2)}, None),
    ("tunnel type 255", {13: u8(255)}, None), ("tunnel flags", {15: u16(0xffff)}, None),
    ("method 4", {3: u32(4)}, None), ("method 7", {3: u32(7)}, None),
    ("method 2^32-1", {3: u32(-1)}, None),
    ("address 0", {1: bytes(16)}, "EINVAL"),
    ("broadcast", {1: genl.address("255.255.255.255")}, "EINVAL"),
    ("multicast", {1: genl.address("224.0.0.5")}, "EINVAL"),
    ("subnet broadcast", {1: genl.address("192.0.2.255")}, "EINVAL"),
    ("network address", {1: genl.address("192.0.2.0")}, None),
    ("loopback", {1: genl.address("127.0.0.1")}, None),
    ("class E", {1: genl.address("240.0.0.1")}, None),
    ("far away", {1: genl.address("203.0.113.77")}, None),
    ("own address", {1: genl.address("192.0.2.1")}, None),
    ("address of 4", {1: packet.packed(RIP)}, None),
    ("address of 17", {1: b"\1" * 17}, "EINVAL"),
    ("port 0", {2: be16(0)}, None),
    ("port cut", {2: u8(1)}, "EINVAL"), ("weight cut", {4: u16(1)}, "EINVAL"),
    ("unknown attributes", {60: b"junk", 0x2fff: bytes(64)}, None),
    # The first check that fails wins.
    ("weight before thresholds", {4: u32(-1), 6: u32(1), 5: u32(0)}, "ERANGE"),
    ("family before weight", {4: u32(-1), 11: u16(10), 1: genl.address(RIP6)}, "EINVAL"),
    ("thresholds before address", {6: u32(1), 1: bytes(16)}, "ERANGE"),
    ("gue before address", {13: u8(1), 1: genl.address("224.0.0.5")}, "EINVAL"),
]


@pytest.mark.smoke
@pytest.mark.parametrize("change, code", [r[1:] for r in DEST_ROWS],
                         ids=[r[0].replace(" ", "-") for r in DEST_ROWS])
def test_new_dest(ipvs, backend, change, code):
    s = ipvs.service(V4, 80)
    if code:
        refused(backend, code, lambda: new_dest(ipvs, dest(change)))
        assert s.servers() == []
    else:
        new_dest(ipvs, dest(change))
        assert len(s.servers()) == 1
        refused(backend, "EEXIST", lambda: new_dest(ipvs, dest(change)))


@pytest.mark.parametrize("addr, code", [
    ("fe80::1", "EINVAL"), ("ff02::1", "EINVAL"), ("::", "EINVAL"),
    ("::ffff:192.0.2.1", "EINVAL"), ("::1", None), ("fec0::1", None), (RIP6, None),
    ("2001:db8:ffff::1", None)])
def test_ipv6_dest_address(ipvs, backend, addr, code):
    s = ipvs.service(V6, 80)
    if code:
        refused(backend, code, lambda: s.server(addr, 80))
    else:
        s.server(addr, 80)


def test_dest_commands_on_missing_and_existing(ipvs, backend):
    s = ipvs.service(V4, 80)
    refused(backend, "EINVAL", lambda: ipvs.request(genl.NEW_DEST, NAME))
    for command in (genl.SET_DEST, genl.DEL_DEST):
        refused(backend, "ENOENT", lambda c=command: new_dest(ipvs, dest(), c))
        refused(backend, "EINVAL", lambda c=command: new_dest(ipvs, dest({1: None}), c))
    s.server(RIP, 8080, weight=5)
    refused(backend, "EEXIST", lambda: s.server(RIP, 8080))
    s.server(RIP, 8081)
    refused(backend, "EINVAL", lambda: new_dest(ipvs, dest({4: None}), genl.SET_DEST))
    refused(backend, "ERANGE", lambda: new_dest(ipvs, dest({4: u32(-5)}), genl.SET_DEST))
    refused(backend, "ERANGE", lambda: new_dest(ipvs, dest({6: u32(5)}), genl.SET_DEST))
    assert s.find(RIP, 8080)["weight"] == 5
    s.edit_server(RIP, 8080, method=genl.TUNNEL, weight=0, upper=9, lower=3)
    d = s.find(RIP, 8080)
    assert (d["method"], d["weight"], d["upper"], d["lower"]) == (2, 0, 9, 3)
    # DEL needs the name only, and ignores families that do not fit.
    ipvs.request(genl.DEL_DEST, NAME + attr(genl.DEST, genl.dest_ident(RIP, 8080, af=False)))
    assert [d["port"] for d in s.servers()] == [8081]
    s.delete_server(RIP, 8081)
    refused(backend, "ENOENT", lambda: s.delete_server(RIP, 8081))


@pytest.mark.smoke
def test_dest_reply(ipvs):
    """Attribute order and sizes; the method is cut to three bits."""
    ipvs.service(V4, 80)
    new_dest(ipvs, dest({3: u32(0xfffffffb), 4: u32(7), 5: u32(100), 6: u32(20),
                         13: u8(2), 14: be16(99), 15: u16(3)}))
    replies = ipvs.dump(genl.GET_DEST, NAME)
    assert [c for c, _ in replies] == [genl.NEW_DEST]
    top = genl.attributes(replies[0][1])
    assert [k for k, _ in top] == [genl.DEST]
    a = genl.attributes(top[0][1])
    assert [(k, size(k, v, genl.D_STATS, genl.D_STATS64)) for k, v in a] == [
        (1, 16), (2, 2), (3, 4), (4, 4), (13, 1), (14, 2), (15, 2), (5, 4), (6, 4),
        (7, 4), (8, 4), (9, 4), (11, 2), (10, 88), (12, 120)]
    a = dict(a)
    assert (a[2], a[3], a[4]) == (be16(8080), u32(3), u32(7))
    assert (a[13], a[14], a[15], a[5], a[6]) == (u8(2), be16(99), u16(3), u32(100), u32(20))
    assert a[11] == u16(socket.AF_INET)
    assert a[1] == packet.packed(RIP) + bytes(12)


@pytest.mark.smoke
def test_dest_order(ipvs):
    """Newest first; an edit keeps the place; a server deleted and added is first."""
    s = ipvs.service(V4, 80)
    for last in (1, 2, 3, 4):
        s.server(f"192.0.2.{last + 20}", 80)

    def order():
        return [int(d["addr"].split(".")[3]) - 20 for d in s.servers()]

    assert order() == [4, 3, 2, 1]
    s.edit_server("192.0.2.22", 80, weight=9)
    assert order() == [4, 3, 2, 1]
    s.delete_server("192.0.2.22", 80)
    s.server("192.0.2.22", 80)
    assert order() == [2, 4, 3, 1]


def test_dumps_of_what_is_not_there(ipvs):
    """They are empty, but no errors."""
    assert ipvs.dump(genl.GET_SERVICE) == []
    assert ipvs.dump(genl.GET_DEST, NAME) == []
    assert ipvs.dump(genl.GET_DEST) == []
    assert ipvs.dump(genl.GET_DEST, attr(genl.SERVICE, b"")) == []
    assert ipvs.dump(genl.GET_DEST, changed({genl.S_AF: u16(77)})) == []
    assert ipvs.dump(genl.GET_DAEMON) == []
    ipvs.service(V4, 80)
    assert ipvs.dump(genl.GET_DEST, NAME) == []


def test_large_dumps(ipvs):
    """More than one message's worth of services and of servers."""
    for port in range(1, 301):
        ipvs.service(V4, port)
    assert sorted(s["port"] for s in ipvs.services()) == list(range(1, 301))
    s = ipvs.service(OTHER, 80)
    for n in range(300):
        s.server(f"10.9.{n >> 8}.{n & 255}", 80)
    got = [d["addr"] for d in s.servers()]
    assert got == [f"10.9.{n >> 8}.{n & 255}" for n in reversed(range(300))]
    ipvs.flush()
    assert ipvs.services() == []
    ipvs.flush()


# -- lenient parsing

def test_lenient(ipvs):
    """NLA_F_NESTED or not, attributes too long, repeated, out of order."""
    attrs = [attr(k, v) for k, v in full().items()]
    flat = b"".join(attrs)
    ipvs.request(genl.NEW_SERVICE, attr(genl.SERVICE, flat))
    ipvs.request(genl.DEL_SERVICE, attr(genl.SERVICE | genl.NESTED, flat))
    ipvs.request(genl.NEW_SERVICE, attr(genl.SERVICE, b"".join(reversed(attrs))))
    ipvs.request(genl.DEL_SERVICE, attr(genl.SERVICE, flat))
    # The last of a repeated attribute counts.
    ipvs.request(genl.NEW_SERVICE, attr(genl.SERVICE, attr(genl.S_PORT, be16(9)) + flat))
    assert [s["port"] for s in ipvs.services()] == [80]
    ipvs.request(genl.DEL_SERVICE, attr(genl.SERVICE, flat))
    # Wider than needed: the first bytes count.
    ipvs.request(genl.NEW_SERVICE, changed({
        genl.S_AF: u32(2), genl.S_PROTOCOL: u32(6), genl.S_PORT: be16(80) + b"\xff\xff",
        genl.S_TIMEOUT: u32(5) + u32(99)}))
    assert (ipvs.services()[0]["port"], ipvs.services()[0]["timeout"]) == (80, 5)
    ipvs.request(genl.DEL_SERVICE, attr(genl.SERVICE, flat) + attr(200, b"unknown"))


@pytest.mark.smoke
def test_moby_style(ipvs):
    """4-byte addresses and only the six mandatory attributes."""
    ipvs.request(genl.NEW_SERVICE, changed({genl.S_ADDR: packet.packed(V4)}))
    new_dest(ipvs, dest({genl.D_ADDR: packet.packed(RIP)}))
    assert [d["addr"] for d in ipvs.service(V4, 80, add=False).servers()] == [RIP]
    ipvs.request(genl.DEL_DEST, NAME + dest({genl.D_ADDR: packet.packed(RIP)}))


# -- permissions

def test_unprivileged(nat, ipvs):
    """CAP_NET_ADMIN in the initial user namespace, for reading as well."""
    ipvs.service(V4, 80)
    requests = [(c, genl.F_ACK) for c in range(1, 18)
                if c not in (genl.GET_DEST, genl.GET_DAEMON, genl.SET_INFO)]
    requests += [(c, genl.F_DUMP) for c in (genl.GET_SERVICE, genl.GET_DEST, genl.GET_DAEMON)]
    for user_namespace in (False, True):
        codes = as_nobody(nat, requests, user_namespace)
        assert codes == [errno.EPERM] * len(requests), codes
    assert len(ipvs.services()) == 1


def test_no_sockopt_interface(nat, backend):
    """With the old setsockopt interface, root of any user namespace may configure."""
    with nat.director.ns.socket(socket.AF_INET, socket.SOCK_RAW, 255) as s:
        if backend.is_l4lb:
            with pytest.raises(OSError) as e:
                s.getsockopt(0, SO_GET_VERSION, 64)
            assert e.value.errno == errno.ENOPROTOOPT
        else:
            assert b"IP Virtual Server" in s.getsockopt(0, SO_GET_VERSION, 64)


@pytest.mark.smoke
def test_same_service_in_two_namespaces(topologies, ipvs):
    other = topologies["dr"]
    other.flush()
    ipvs.service(V4, 80)
    other.ipvs.service(V4, 80)
    ipvs.flush()
    assert len(other.ipvs.services()) == 1
    other.ipvs.timeouts(tcp=33)
    assert ipvs.timeouts()[0] == 900


def test_scheduler_is_autoloaded(ipvs, backend):
    """Adding a service loads its scheduler's module."""
    name = backend.prefix + "wlc"
    if backend.loaded(name):
        import subprocess
        subprocess.run(["rmmod", name], check=True)
    ipvs.service(V4, 80, sched="wlc")
    assert backend.loaded(name)


def test_scheduler_swap(ipvs):
    """One scheduler after the other, with servers present."""
    s = ipvs.service(V4, 80, sched="rr")
    for n in range(3):
        s.server(f"192.0.2.{20 + n}", 80)
    for sched in ("wrr", "lc", "wlc", "rr", "rr", "wlc", "wrr", "none", "lc"):
        s.edit(sched=sched)
        assert s.get()["sched"] == sched
        assert len(s.servers()) == 3


def test_acknowledged_only_when_asked(ipvs):
    """Without NLM_F_ACK success is silent and a refusal is not."""
    message = ipvs.message(genl.NEW_SERVICE, changed({}), flags=0)
    ipvs.sock.send(message)
    wait_until(lambda: len(ipvs.services()) == 1, 5)
    ipvs.sock.send(ipvs.message(genl.NEW_SERVICE, changed({}), flags=0))
    genl.is_refused(ipvs.answers, errno.EEXIST)
