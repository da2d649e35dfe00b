# SPDX-License-Identifier: GPL-2.0
"""Many services in one message: SET_SERVICES of family L4LB applies all or none of
them, and accepts the output of GET_SERVICES. Their use by ipvsctl is tested in
test_batch_ipvsctl.py."""

import errno
import os
import signal
import threading
import time

import pytest
from lab import faults, genl
from lab.farm import Http, http_get
from lab.faults import Fault
from lab.genl import (
    L_DESTS,
    L_ENTRY,
    L_MODE,
    L_OPTIONS,
    L_POLICY,
    L_SERVICE,
    MERGE,
    NESTED,
    REPLACE,
    SET_SERVICES,
    attr,
    attributes,
    batch_entry,
    batch_server,
    text,
    u16,
    u32,
)
from lab.netns import SLOW, Namespace, join_all
from lab.nobody import as_nobody
from lab.packet import SCTP, TCP, UDP

V4, V6 = "198.51.100.190", "2001:db8:1::190"
RIPS, RIPS6 = [f"192.0.2.{20 + n}" for n in range(4)], [f"2001:db8:2::{20 + n}" for n in range(4)]
pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.fixture(autouse=True)
def nothing_left(ipvs):
    yield
    ipvs.flush()


def state(ipvs):
    """[(service, its servers)], in the order in which family IPVS lists them,
    without counters."""
    out = []
    for s in ipvs.services():
        name = {k: s[k] for k in ("addr", "port", "proto", "fwmark", "af") if k in s}
        servers = ipvs.service(**name, add=False).servers()
        for each in (s, *servers):
            del each["stats"]
        out.append((s, servers))
    return out


def everything(family=4):
    """One entry for each kind of service, with all kinds of servers."""
    vip, rips = (V4, RIPS) if family == 4 else (V6, RIPS6)
    other = RIPS6 if family == 4 else RIPS
    af = 2 if family == 4 else 10
    return [
        batch_entry(vip, 80, [batch_server(r, 8080 + n, weight=n) for n, r in enumerate(rips)],
                    sched="wrr"),
        batch_entry(vip, 53, [batch_server(rips[0], 53, method=genl.ROUTE, weight=7, upper=9,
                                           lower=3)], proto=UDP, flags=genl.ONEPACKET),
        batch_entry(vip, 36412, [batch_server(rips[1], 36412)], proto=SCTP, sched="mh",
                    flags=0x18),
        batch_entry(vip, 0, rips, flags=genl.PERSISTENT, timeout=77),
        batch_entry(vip, 443, [batch_server(rips[0], 443, method=genl.TUNNEL, tunnel=(1, 6080, 1)),
                               batch_server(other[0], 443, method=genl.TUNNEL)],
                    sched="lblc", options=[("expire", 99)], policy={"tcp": 5, "on_loss": 2}),
        batch_entry(vip, 444, sched="none", policy={"guard": 2}),
        batch_entry(fwmark=7, af=af, servers=rips[:2], sched="sh", flags=0x8),
    ]


# -- round trips

@pytest.mark.smoke
def test_get_is_what_set_takes(ipvs, l4lb, family):
    l4lb.set_services(everything(family))
    before, entries = state(ipvs), l4lb.get_services()
    assert [len(servers) for _, servers in before] == [4, 1, 1, 4, 2, 0, 2]
    assert len(entries) == 7
    ipvs.flush()
    assert l4lb.get_services() == []
    l4lb.set_services(entries)
    assert state(ipvs) == before and l4lb.get_services() == entries
    # Setting the same again changes nothing, in either mode.
    for mode in (MERGE, REPLACE):
        l4lb.set_services(entries, mode)
        assert state(ipvs) == before and l4lb.get_services() == entries
    lblc = ipvs.service(V4 if family == 4 else V6, 443, add=False)
    assert l4lb.values(lblc)["expire"] == 99
    assert l4lb.policy(lblc)["tcp"] == 5 and l4lb.policy(lblc)["on_loss"] == 2


def test_same_as_one_by_one(ipvs, l4lb, family):
    """A batch has the same effect as one IPVS command per service and server."""
    vip, rips = (V4, RIPS) if family == 4 else (V6, RIPS6)
    s = ipvs.service(vip, 80, sched="wrr")
    for n, rip in enumerate(rips):
        s.server(rip, 8080 + n, weight=n)
    one_by_one = state(ipvs)
    ipvs.flush()
    l4lb.set_services(everything(family)[:1])
    assert state(ipvs) == one_by_one


def test_filters(ipvs, l4lb):
    l4lb.set_services(everything(4) + everything(6))

    def names(*which):
        out = []
        for entry in l4lb.get_services(*which):
            service = dict(attributes(dict(attributes(entry[4:]))[L_SERVICE]))
            out.append((int.from_bytes(service[genl.S_AF], "little"),
                        int.from_bytes(service.get(genl.S_PORT, b"\0\0"), "big"),
                        int.from_bytes(service.get(genl.S_FWMARK, b"\0"), "little")))
        return out

    ports = [80, 53, 36412, 0, 443, 444]
    every = [(af, p, 0) for af in (2, 10) for p in ports]
    marks = [(2, 0, 7), (10, 0, 7)]
    assert sorted(names()) == sorted(every + marks)
    assert sorted(names(attr(genl.S_AF, u16(2)))) == sorted(every[:6] + marks[:1])
    assert names(attr(genl.S_PORT, genl.be16(53))) == [(2, 53, 0), (10, 53, 0)]
    assert names(attr(genl.S_PROTOCOL, u16(SCTP))) == [(2, 36412, 0), (10, 36412, 0)]
    assert names(attr(genl.S_FWMARK, u32(7)), attr(genl.S_AF, u16(10))) == marks[1:]
    assert sorted(names(attr(genl.S_ADDR, genl.address(V6)))) == sorted(every[6:])
    assert names(attr(genl.S_FWMARK, u32(8))) == []
    assert names(*genl.ident(TCP, V4, 80)) == [(2, 80, 0)]
    genl.is_refused(lambda: names(attr(genl.S_SCHED, text("rr"))), errno.EINVAL)
    genl.is_refused(lambda: l4lb.dump(genl.GET_SERVICES, attr(L_MODE, u32(0))), errno.EINVAL)


def test_live(ipvs, l4lb):
    """Counters and numbers of connections are listed only when asked for."""
    l4lb.set_services(everything(4)[:1])
    for live, service_has, dest_has in ((False, {1, 2, 3, 4, 6, 7, 8, 9},
                                         {1, 2, 3, 4, 5, 6, 11, 13, 14, 15}),
                                        (True, {1, 2, 3, 4, 6, 7, 8, 9, 12},
                                         {1, 2, 3, 4, 5, 6, 11, 13, 14, 15, 7, 8, 9, 12})):
        entry = dict(attributes(l4lb.get_services(live=live)[0][4:]))
        assert {k for k, _ in attributes(entry[L_SERVICE])} == service_has
        dests = [dict(attributes(d)) for _, d in attributes(entry[L_DESTS])]
        assert [set(d) for d in dests] == [dest_has] * 4
        assert [d[genl.D_ADDR][:4] for d in dests] == [genl.packet.packed(r) for r in RIPS], \
            "oldest first"


def test_more_servers_than_an_attribute_holds(ipvs, l4lb):
    """Their list is split into several entries in both directions; the order stays."""
    addrs = [f"10.{n >> 8}.{n & 255}.9" for n in range(2000)]
    name = attr(L_SERVICE, genl.ident(TCP, V4, 80))
    entries = [batch_entry(V4, 80, addrs[:500])]
    for n in range(500, 2000, 500):
        entries.append(attr(L_ENTRY, [name, attr(L_DESTS, [batch_server(a)
                                                           for a in addrs[n:n + 500]])]))
    entries.append(batch_entry(V4, 81, addrs[:3]))
    l4lb.set_services(entries)
    s = ipvs.service(V4, 80, add=False)
    assert [d["addr"] for d in s.servers()] == addrs[::-1]
    got = l4lb.get_services()
    assert len(got) > 4
    ipvs.flush()
    l4lb.set_services(got)
    assert [d["addr"] for d in s.servers()] == addrs[::-1]
    assert len(ipvs.service(V4, 81, add=False).servers()) == 3
    assert l4lb.get_services() == got


# -- settings

def test_an_entry_is_the_whole_of_a_service(ipvs, l4lb):
    """Options and policy settings that it omits get their defaults; flags outside
    its mask stay."""
    l4lb.set_services([batch_entry(V4, 80, sched="lblc", options=[("expire", 5)],
                                  policy={"tcp": 5, "guard": 1}, flags=1, timeout=9)])
    s = ipvs.service(V4, 80, add=False)
    assert l4lb.values(s)["expire"] == 5
    l4lb.set_services([batch_entry(V4, 80, sched="lblc", mask=0)])
    assert s.get()["flags"] == 3
    default = l4lb.options(s)["options"]["expire"]
    assert default["value"] == default["default"] and set(l4lb.policy(s).values()) == {0}


# -- connections and traffic

@pytest.mark.smoke
def test_connections_stay(nat, ipvs, l4lb, family):
    """Connections go on while their service and server stay, and again when a
    removed server comes back."""
    port, vip = nat.http_port(), nat.vip(family)

    def whole(servers, **settings):
        return batch_entry(vip, port, [batch_server(nat.rip(n, family), port, weight=n)
                                       for n in servers], **settings)

    l4lb.set_services([whole((1, 2)), batch_entry(V4, 9, RIPS)])
    with Http(nat.client, vip, port) as http:
        name = http.request(path="/1").split()[0]
        number = int(name[2:])
        for mode, entries in ((MERGE, [whole((3, 4), sched="wlc")]),
                              (REPLACE, [whole((number, 4), sched="wrr")]),
                              (REPLACE, [whole((3 - number, 3))]),
                              (REPLACE, [whole((1, 2, 3, 4), sched="mh")]),
                              (REPLACE, [batch_entry(V4, 9, RIPS)]),
                              (MERGE, [whole((1, 2))])):
            l4lb.set_services(entries, mode)
            s = ipvs.service(vip, port, add=False)
            gone = mode == REPLACE and not [d for d in (s.servers() if any(
                x.get("port") == port for x in ipvs.services()) else [])
                if d["addr"] == nat.rip(number, family)]
            if not gone:
                assert http.request(path="/2").split()[0] == name
                assert s.find(nat.rip(number, family))["active"] == 1
    assert [s["port"] for s in ipvs.services()] == [9, port]


def test_traffic_does_not_notice(nat, ipvs, l4lb):
    """Serial requests and one long connection go on while batches replace hundreds
    of services, theirs among them."""
    port = nat.http_port()

    def batch(weight):
        return [batch_entry(V4, 10000 + n, RIPS) for n in range(250)] + [
            batch_entry(nat.vip(), port, [batch_server(nat.rip(n), port, weight=weight)
                                          for n in (1, 2, 3, 4)], sched="wrr")] + [
            batch_entry(V6, 10000 + n, RIPS6) for n in range(250)]

    l4lb.set_services(batch(1))
    stop, got, wrong = threading.Event(), [], []

    def client():
        try:
            while not stop.is_set():
                got.append(http_get(nat.client, nat.vip(), port)[0])
        except Exception as e:  # noqa: BLE001 - whatever it is, the test has failed
            wrong.append(e)

    thread = threading.Thread(target=client)
    with Http(nat.client, nat.vip(), port) as http:
        name = http.request().split()[0]
        thread.start()
        for turn in range(4):
            l4lb.set_services(batch(turn + 2), REPLACE)
            assert http.request().split()[0] == name
            l4lb.set_services(batch(1)[:250] + batch(turn + 3)[250:251], REPLACE)
        bad = [*batch(9), batch_entry(V4, 9, sched="nosuch")]
        genl.is_refused(lambda: l4lb.set_services(bad), errno.ENOENT)
        assert http.request().split()[0] == name
        stop.set()
        join_all(thread)
    assert not wrong, wrong
    assert len(got) > 5 and len(set(got)) == 4
    assert len(ipvs.services()) == 251


# -- all or nothing

GOOD = attr(L_SERVICE, genl.ident(TCP, V4, 9) + genl.service_options(2))
CUT = attr(1, genl.dest_ident(RIPS[1], 1) + genl.dest_options())[:-4]


def with_servers(*servers):
    return attr(L_ENTRY, [GOOD, attr(L_DESTS, [batch_server(RIPS[0], 1), *servers])])


def damaged_server(change):
    found = dict(attributes(b"".join(genl.dest_ident(RIPS[1], 1) + genl.dest_options())))
    found.update(change)
    return attr(1, [attr(k, v) for k, v in found.items() if v is not None])


def damaged_service(change, **options):
    found = dict(attributes(b"".join(genl.ident(TCP, V4, 9) +
                                     genl.service_options(2, **options))))
    found.update(change)
    return attr(L_ENTRY, [attr(L_SERVICE, [attr(k, v) for k, v in found.items()
                                           if v is not None])])


# Name: (entry, errno, part of the sentence, index of the wrong server or None).
WRONG = {
    "unknown scheduler": (batch_entry(V4, 9, sched="nosuch"), "ENOENT", "no such sched", None),
    "empty scheduler": (batch_entry(V4, 9, sched=""), "ENOENT", "no such scheduler", None),
    "long scheduler": (batch_entry(V4, 9, sched="a" * 16), "EINVAL", "", None),
    "IPv6 mask": (batch_entry(V6, 9, netmask=129), "EINVAL", "1 to 128", None),
    "family": (damaged_service({genl.S_AF: u16(7)}), "EAFNOSUPPORT", "family must be", None),
    "no family": (damaged_service({genl.S_AF: None}), "EINVAL", "AF is missing", None),
    "no port": (damaged_service({genl.S_PORT: None}), "EINVAL", "PORT", None),
    "no scheduler": (damaged_service({genl.S_SCHED: None}), "EINVAL", "SCHED_NAME is missing", None),
    "no flags": (damaged_service({genl.S_FLAGS: None}), "EINVAL", "FLAGS is missing", None),
    "short address": (damaged_service({genl.S_ADDR: b"\1\2"}), "ERANGE", "", None),
    "odd address": (damaged_service({genl.S_ADDR: b"\1\2\3\4\5"}), "EINVAL", "16 bytes, or 4", None),
    "wide port": (damaged_service({genl.S_PORT: u32(9)}), "EINVAL", "", None),
    "short flags": (damaged_service({genl.S_FLAGS: u32(0)}), "ERANGE", "", None),
    "mark and port": (damaged_service({genl.S_FWMARK: u32(3)}), "EINVAL", "name it by", None),
    "unknown attribute of a service": (damaged_service({60: u32(3)}), "EINVAL", "", None),
    "engine": (damaged_service({genl.S_PE: text("nosuch")}), "ENOENT", "persistence engine", None),
    "no service": (attr(L_ENTRY, [attr(L_POLICY, [attr(1, u32(5))])]), "EINVAL", "SERVICE is missing", None),
    "empty": (attr(L_ENTRY, []), "EINVAL", "SERVICE is missing", None),
    "unknown attribute": (attr(L_ENTRY, [GOOD, attr(9, u32(1))]), "EINVAL", "", None),
    "mode in an entry": (attr(L_ENTRY, [GOOD, attr(L_MODE, u32(1))]), "EINVAL", "", None),
    "nest without its bit": (attr(L_ENTRY, [attr(L_SERVICE, b"".join(
                                 genl.ident(TCP, V4, 9)))]),
                             "EINVAL", "", None),
    "unknown option": (batch_entry(V4, 9, sched="lblc", options=[("nosuch", 1)]), "EINVAL",
                       "unknown option", None),
    "option of none": (batch_entry(V4, 9, sched="none", options=[("expire", 1)]), "EINVAL",
                       "no options", None),
    "option's range": (batch_entry(V4, 9, sched="lblc", options=[("expire", 0)]), "ERANGE",
                       "must be", None),
    "option twice": (batch_entry(V4, 9, sched="lblc", options=[("expire", 5)] * 2), "EINVAL",
                     "twice", None),
    "options cut off": (attr(L_ENTRY, [GOOD, attr(L_OPTIONS | NESTED, b"\x09\0\1\0")]),
                        "EINVAL", "cut off", None),
    "policy's range": (batch_entry(V4, 9, policy={"guard": 3}), "ERANGE", "must be", None),
    "unknown policy": (attr(L_ENTRY, [GOOD, attr(L_POLICY, [attr(60, u32(1))])]), "EINVAL",
                       "", None),
    "mark's guard": (batch_entry(fwmark=9, policy={"guard": 1}), "EINVAL", "no address", None),
    "weight": (with_servers(batch_server(RIPS[1], 1, weight=-1)), "ERANGE", "weight", 1),
    "thresholds": (with_servers(batch_server(RIPS[1], 1, lower=5)), "ERANGE", "lower thresh", 1),
    "upper threshold": (with_servers(batch_server(RIPS[1], 1, upper=2**31)), "EINVAL", "upper", 1),
    "server's address": (with_servers(batch_server("192.0.2.255", 1), batch_server(RIPS[2], 1)),
                         "EINVAL", "unicast", 1),
    "multicast": (with_servers(batch_server("224.0.0.1", 1)), "EINVAL", "unicast", 1),
    "server's family": (with_servers(batch_server(RIPS6[0], 1)), "EINVAL", "method tunnel", 1),
    "gue without a port": (with_servers(batch_server(RIPS[1], 1, method=2, tunnel=(1, 0, 0))),
                           "EINVAL", "tunnel port", 1),
    "method": (with_servers(batch_server(RIPS[1], 1, method=5)), "ERANGE", "", 1),
    "tunnel type": (with_servers(batch_server(RIPS[1], 1, tunnel=(3, 0, 0))), "ERANGE", "", 1),
    "duplicate server": (with_servers(batch_server(RIPS[1], 1), batch_server(RIPS[0], 1, weight=4)),
                         "EEXIST", "named twice", 2),
    "no weight": (with_servers(damaged_server({genl.D_WEIGHT: None})), "EINVAL", "WEIGHT is missing", 1),
    "no address": (with_servers(damaged_server({genl.D_ADDR: None})), "EINVAL", "ADDR is missing", 1),
    "odd server address": (with_servers(damaged_server({genl.D_ADDR: b"\1" * 7})), "EINVAL", "16 bytes", 1),
    "wide weight": (with_servers(damaged_server({genl.D_WEIGHT: u32(1) * 2})), "EINVAL", "", 1),
    "counters": (with_servers(damaged_server({genl.D_ACTIVE: u32(1)})), "EINVAL", "", 1),
    "server's nest without its bit": (with_servers(attr(1, b"".join(genl.dest_ident(RIPS[1], 1)))),
                                      "EINVAL", "", 1),
    "servers cut off": (attr(L_ENTRY, [GOOD, attr(L_DESTS | NESTED, batch_server(RIPS[0], 1) +
                                                  CUT)]), "EINVAL", "cut off", None),
    "server cut off": (with_servers(attr(1 | NESTED, b"\x08\0\2\0\0\x50\0\0\x09\0")), "EINVAL", "",
                       1),
}


@pytest.mark.smoke
@pytest.mark.parametrize("what", WRONG)
def test_one_wrong_entry_and_nothing_changes(ipvs, l4lb, what):
    """The wrong entry is the first, a middle or the last one; the answer says which."""
    entry, code, part, server = WRONG[what]
    l4lb.set_services([batch_entry(V4, 80, RIPS[:2], sched="wrr", policy={"tcp": 3})])
    before, entries = state(ipvs), l4lb.get_services()
    good = [batch_entry(V4, 80, [batch_server(RIPS[0], weight=5), RIPS[3]], policy={"tcp": 8}),
            batch_entry(V4, 11, RIPS), batch_entry(V6, 12, RIPS6),
            batch_entry(V4, 13, RIPS, sched="lblc", policy={"guard": 1})]
    for place in (0, 2, 4):
        for mode in (MERGE, REPLACE):
            batch = [*good[:place], entry, *good[place:]]
            with pytest.raises(genl.NetlinkError) as e:
                l4lb.set_services(batch, mode)
            assert errno.errorcode[e.value.errno] == code, e.value
            assert part in e.value.extack and len(e.value.extack) > 8, e.value.extack
            start = 20 + 8 + sum(map(len, batch[:place]))     # headers, MODE
            assert start <= e.value.offset < start + len(entry), (place, e.value.offset, start)
            if os.uname().release >= "6.12":
                where = f"service {place + 1}" + (f", server {server + 1}: " if server is not None
                                                  else ": ")
                assert e.value.extack.startswith(where), e.value.extack
            assert state(ipvs) == before and l4lb.get_services() == entries
    l4lb.set_services(good)
    assert len(ipvs.services()) == 4


def test_a_service_named_twice(ipvs, l4lb):
    """The answer points to the second one, wherever it is in the batch."""
    batch = [batch_entry(V4, port, RIPS[:1]) for port in (5, 3, 4)]
    for second in (1, 2, 3):
        twice = [*batch[:second], batch_entry(V4, 5, RIPS[1:2]), *batch[second:]]
        with pytest.raises(genl.NetlinkError) as e:
            l4lb.set_services(twice)
        assert e.value.errno == errno.EEXIST and "named twice" in e.value.extack
        start = 20 + sum(map(len, twice[:second]))
        assert start <= e.value.offset < start + len(twice[second])
        assert ipvs.services() == []


def test_continuations_are_only_that(ipvs, l4lb):
    """A continuation must follow its own service directly and have no settings."""
    more = attr(L_ENTRY, [attr(L_SERVICE, genl.ident(TCP, V4, 5)),
                          attr(L_DESTS, [batch_server(RIPS[2])])])
    five, six = batch_entry(V4, 5, RIPS[:1]), batch_entry(V4, 6, RIPS[:1])
    for batch in ([more], [six, more], [five, six, more]):
        sentence = genl.is_refused(lambda b=batch: l4lb.set_services(b), errno.EINVAL)
        assert "SCHED_NAME is missing" in sentence
    policy = attr(L_ENTRY, [attr(L_SERVICE, genl.ident(TCP, V4, 5)),
                            attr(L_POLICY, [attr(1, u32(3))])])
    genl.is_refused(lambda: l4lb.set_services([five, policy]), errno.EINVAL)
    again = attr(L_ENTRY, [attr(L_SERVICE, genl.ident(TCP, V4, 5)),
                           attr(L_DESTS, [batch_server(RIPS[0])])])
    assert "named twice" in genl.is_refused(lambda: l4lb.set_services([five, more, again]),
                                            errno.EEXIST)
    assert ipvs.services() == []
    l4lb.set_services([five, more, six])
    assert [d["addr"] for d in ipvs.service(V4, 5, add=False).servers()] == [RIPS[2], RIPS[0]]


def test_too_many(ipvs, l4lb):
    l4lb.set_services([batch_entry(V4, 80)])
    # These entries are incomplete, but the limit is checked first.
    small = attr(L_ENTRY, [attr(L_SERVICE, [attr(genl.S_AF, u16(2))])])
    sentence = genl.is_refused(lambda: l4lb.set_services([small] * 65537), errno.E2BIG)
    assert "65536 entries" in sentence
    genl.is_refused(lambda: l4lb.set_services([small] * 65536), errno.EINVAL)
    assert len(ipvs.services()) == 1


def test_a_message_that_is_cut_off(ipvs, l4lb):
    whole = b"".join([batch_entry(V4, port, RIPS) for port in (5, 6)])
    for length in (*range(4, 60, 4), len(whole) - 4, len(whole) - 40, len(whole) - 150):
        genl.is_refused(lambda n=length: l4lb.request(SET_SERVICES, whole[:n]), errno.EINVAL)
        assert ipvs.services() == []


# -- permissions and concurrency

@pytest.mark.smoke
def test_unprivileged(nat, ipvs, l4lb):
    l4lb.set_services([batch_entry(V4, 80, RIPS)])
    requests = [(genl.SET_SERVICES, genl.F_ACK), (genl.GET_SERVICES, genl.F_DUMP)]
    for user_namespace in (False, True):
        assert as_nobody(nat, requests, user_namespace, family="L4LB") == [errno.EPERM] * 2
    assert len(ipvs.services()) == 1


@pytest.mark.emulated
def test_single_commands_meanwhile(nat, ipvs, l4lb):
    """Batches and single commands take turns; a reader sees a whole batch or
    nothing of it."""
    entries = [[batch_entry(V4, port, [batch_server(r, weight=w) for r in RIPS])
                for port in range(100, 140)] for w in (3, 4)]
    stop, wrong = threading.Event(), []

    def batches():
        with genl.L4lb(nat.director.ns) as mine:
            while not stop.is_set():
                for batch in entries:
                    mine.set_services(batch)

    def singles():
        with genl.Ipvs(nat.director.ns) as mine:
            s = mine.service(V4, 99, sched="rr")
            while not stop.is_set():
                for rip in RIPS:
                    s.server(rip, 80)
                s.edit(sched="wlc")
                for rip in RIPS:
                    s.delete_server(rip, 80)
                s.edit(sched="rr")
            s.delete()

    def record(call):
        try:
            call()
        except Exception as e:  # noqa: BLE001 - whatever it is, the test has failed
            wrong.append(e)

    threads = [threading.Thread(target=record, args=(call,)) for call in (batches, singles)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 4
    s = ipvs.service(V4, 120, add=False)
    while time.monotonic() < end and not wrong:
        weights = {d["weight"] for d in s.servers()}
        assert weights in (set(), {3}, {4}), weights
    stop.set()
    join_all(*threads)
    assert not wrong
    assert len(ipvs.services()) == 40


def test_a_dump_says_that_there_was_a_change(nat, ipvs, l4lb):
    """NLM_F_DUMP_INTR is set after a change, and only then."""
    l4lb.set_services([batch_entry(V4, port, RIPS) for port in range(1, 400)])

    def interrupted(meanwhile):
        l4lb.sock.send(l4lb.message(genl.GET_SERVICES, flags=genl.F_DUMP))
        seen, done = False, False
        meanwhile()
        while not done:
            data = l4lb.sock.recv(1 << 16)
            while data:
                length, kind, flags = (int.from_bytes(data[a:b], "little")
                                       for a, b in ((0, 4), (4, 6), (6, 8)))
                seen |= bool(flags & 0x10)
                done |= kind == 3
                data = data[(length + 3) & ~3:]
        return seen

    s = ipvs.service(V4, 300, add=False)
    assert not interrupted(lambda: None)
    with genl.L4lb(nat.director.ns) as other:
        for change in (lambda: s.edit_server(RIPS[0], 80, weight=9), lambda: s.edit(sched="wlc"),
                       lambda: other.set_policy(s, tcp=4), s.delete,
                       lambda: other.set_services([batch_entry(V4, 300, RIPS)])):
            assert interrupted(change)


def test_namespace_goes_meanwhile(backend):
    """A batch that is under way keeps its deleted namespace alive until it is
    done."""
    services = 2000
    for n in range(6):
        batch = [batch_entry(V4, port, RIPS) for port in range(1, services + 1)]
        ns = Namespace(f"batch{n}")
        ns.ip("link set lo up", "link add d0 type dummy", "link set d0 up",
              "addr add 192.0.2.1/24 dev d0")
        with genl.L4lb(ns) as l4lb:
            thread = threading.Thread(target=l4lb.set_services, args=(batch,))
            thread.start()
            ns.destroy()
            overlap = thread.is_alive()
            join_all(thread)
        if overlap:
            return
        services *= 2       # the batch was done before the namespace was deleted
    pytest.fail("no batch was under way when its namespace went")


def killed_after(nat, batch, seconds):
    """Kill a process SECONDS after it begins to send BATCH. Return whether that killed
    it, instead of its being done before."""
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        try:
            with genl.L4lb(nat.director.ns) as l4lb:
                os.write(go, b"x")
                l4lb.set_services(batch)
        finally:
            os._exit(0)
    try:
        assert os.read(ready, 1)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    finally:
        os.close(ready)
        os.close(go)


def test_killed_meanwhile(nat, ipvs, l4lb):
    """All or nothing of a batch is applied, whenever its sender is killed."""
    batch = [batch_entry(V4, port, RIPS) for port in range(1, 2001)]
    began = time.monotonic()
    l4lb.set_services(batch)
    whole = time.monotonic() - began
    ipvs.flush()
    seen, died = set(), 0
    for part in (0, 0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.5):
        died += killed_after(nat, batch, part * whole)
        seen.add(len(ipvs.services()))
        ipvs.flush()
    assert seen <= {0, 2000}
    assert died > 2, "most had sent the batch before they were killed"


# -- no memory

class FaultyL4lb(genl.L4lb):
    nth, hit = 0, False

    def request(self, command, payload=b"", flags=genl.F_ACK, version=1):
        if not self.nth:
            return super().request(command, payload, flags, version)
        message = self.message(command, payload, flags, version)
        with Fault(self.nth) as fault:
            self.sock.send(message)
        self.hit = fault.hit
        return self.answers()


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
@pytest.mark.parametrize("mode", (MERGE, REPLACE))
def test_no_memory(nat, ipvs, l4lb, mode):
    """Each allocation in turn fails. The batch changes a server, revives one from
    the trash, changes a scheduler and sets a guard."""
    first = [batch_entry(V4, 80, RIPS[:2], sched="wrr"), batch_entry(V6, 81, RIPS6[:2], sched="mh")]
    second = [batch_entry(V4, 80, [batch_server(RIPS[0], weight=5), *RIPS[2:3]], sched="wrr",
                          policy={"guard": 1}),
              batch_entry(V6, 81, RIPS6[1:], sched="lblc", options=[("expire", 7)]),
              batch_entry(V4, 82, RIPS[:2], sched="mh")]

    def reset():
        l4lb.set_services([], REPLACE)       # for the same order of services
        l4lb.set_services([batch_entry(V4, 80, RIPS[:3], sched="wrr"),
                          batch_entry(V6, 81, RIPS6[:3], sched="mh")], REPLACE)
        l4lb.set_services(first, REPLACE)

    reset()
    before = state(ipvs), l4lb.get_services()
    l4lb.set_services(second, mode)
    wanted = state(ipvs), l4lb.get_services()
    with faults.injection(), FaultyL4lb(nat.director.ns) as faulty:
        for nth in range(1, 600):
            reset()
            assert (state(ipvs), l4lb.get_services()) == before
            faulty.nth, error = nth, None
            try:
                faulty.set_services(second, mode)
            except OSError as e:
                error = e.errno
            finally:
                faulty.nth = 0
            now = state(ipvs), l4lb.get_services()
            assert error in (None, errno.ENOMEM, errno.EFAULT, errno.ENOBUFS), error
            if error is None or (error == errno.ENOBUFS and now != before):
                assert now == wanted, (nth, error)
            else:
                assert now == before, (nth, error)
            if not faulty.hit:
                assert error is None
                break
        else:
            raise AssertionError("no end of allocations")
    assert nth > 20


# -- many

def services_in(entries):
    return sum(genl.S_SCHED in dict(attributes(dict(attributes(e[4:]))[L_SERVICE]))
               for e in entries)


@pytest.mark.slow
def test_ten_thousand_services(ipvs, l4lb):
    """Ten servers each, set and read in seconds."""
    entries = [batch_entry(f"198.18.{n >> 8}.{n & 255}", 80,
                           [f"192.0.2.{2 + m}" for m in range(10)]) for n in range(10000)]
    began = time.monotonic()
    l4lb.set_services(entries)
    took = time.monotonic() - began
    began = time.monotonic()
    got = l4lb.get_services()
    read = time.monotonic() - began
    print(f"10,000 x 10: set in {took:.2f} s, read in {read:.2f} s")
    # A service at the end of a buffer is continued in another entry.
    assert services_in(got) == 10000
    began = time.monotonic()
    l4lb.set_services(entries, REPLACE)
    print(f"the same again: {time.monotonic() - began:.2f} s")
    began = time.monotonic()
    l4lb.set_services([], REPLACE)
    print(f"removed: {time.monotonic() - began:.2f} s")
    began = time.monotonic()
    l4lb.set_services(entries)
    print(f"revived: {time.monotonic() - began:.2f} s")
    assert services_in(l4lb.get_services(attr(genl.S_PORT, genl.be16(80)))) == 10000
    assert took < 20 * SLOW and read < 20 * SLOW
    began = time.monotonic()
    ipvs.flush()
    print(f"flushed: {time.monotonic() - began:.2f} s")
