# SPDX-License-Identifier: GPL-2.0
"""Scheduler options: their description and setting by family L4LB, and their
effect on packets."""

import errno
import socket
import struct
import threading
import time

import pytest
from lab import genl
from lab.backend import Backend
from lab.genl import attr, be16, text, u16, u32
from lab.netns import SLOW, join_all, wait_until
from lab.nobody import as_nobody
from lab.oracle import MARK, Addresses
from lab.packet import TCP, UDP
from lab.raw import Raw
from lab.rows import amount

V4, V6 = "198.51.100.170", "2001:db8:1::170"
DAY, FORTNIGHT = 86400, 14 * 86400
CPUS = 2
DEFAULTS = {"expire": DAY, "entries": 16384, "shrink": DAY}
pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.fixture(autouse=True)
def quiet(log):
    """Nothing a client sends may print more than debug messages."""
    log.seen.clear()
    yield
    loud = [t for level, t in log.refresh() if level < 7 and "l4lb" in t]
    assert not loud, loud


def refused(code, call):
    sentence = genl.is_refused(call, getattr(errno, code))
    assert len(sentence) > 8 and "\n" not in sentence, sentence
    return sentence


# -- the family

@pytest.mark.smoke
def test_family(l4lb):
    a = l4lb.description
    assert a[2] == b"L4LB\0" and a[3] == u32(1)
    ops = {}
    for _, op in genl.attributes(a[6]):
        o = dict(genl.attributes(op))
        ops[int.from_bytes(o[1], "little")] = int.from_bytes(o[2], "little") & 7
    # 1: needs CAP_NET_ADMIN, 2: do, 4: dump
    assert ops == {genl.GET_SCHEDULER: 7, genl.GET_OPTIONS: 3, genl.SET_OPTIONS: 3,
                   genl.GET_POLICY: 7, genl.SET_POLICY: 3, genl.SET_SERVICES: 3,
                   genl.GET_SERVICES: 5, genl.GET_CONNS: 5, genl.GET_SYNC: 7,
                   genl.SET_SYNC: 3, genl.NEW_PEER: 3, genl.DEL_PEER: 3,
                   genl.SYNC_RESYNC: 3, genl.SYNC_VERIFY: 3, genl.GET_EVENT: 3,
                   genl.SET_DRAIN: 3, genl.GET_DRAIN: 5, genl.KILL_CONNS: 3,
                   genl.EXPORT_CONNS: 5, genl.IMPORT_CONNS: 3, genl.LOG_CONNS: 3,
                   genl.TRY_SCHEDULER: 5, genl.GET_SHADOW: 5, genl.GET_LATENCY: 5,
                   genl.SET_SERVER: 3, genl.ZERO_SERVICE: 3}


def test_unprivileged(nat, ipvs):
    ipvs.service(V4, 80, sched="lblc")
    orders = (*range(1, 6), *range(genl.GET_SYNC, genl.GET_DRAIN), genl.KILL_CONNS, genl.IMPORT_CONNS,
              genl.LOG_CONNS, genl.SET_SERVER, genl.ZERO_SERVICE)
    requests = [(c, genl.F_ACK) for c in orders] + [
        (c, genl.F_DUMP)
        for c in (genl.GET_SCHEDULER, genl.GET_POLICY, genl.GET_SYNC, genl.GET_DRAIN,
                  genl.EXPORT_CONNS, genl.TRY_SCHEDULER, genl.GET_SHADOW, genl.GET_LATENCY)]
    for user_namespace in (False, True):
        assert as_nobody(nat, requests, user_namespace, "L4LB") == \
            [errno.EPERM] * len(requests)


@pytest.mark.parametrize("command, flags", [
    (0, genl.F_ACK), (genl.GET_SHADOW + 1, genl.F_ACK), (genl.TRY_SCHEDULER, genl.F_ACK),
    (genl.GET_SHADOW, genl.F_ACK), (255, genl.F_ACK),
    (genl.GET_SERVICES, genl.F_ACK), (genl.GET_CONNS, genl.F_ACK), (genl.GET_DRAIN, genl.F_ACK),
    (genl.EXPORT_CONNS, genl.F_ACK), (genl.IMPORT_CONNS, genl.F_DUMP), (genl.LOG_CONNS, genl.F_DUMP),
    (genl.SET_SERVICES, genl.F_DUMP),
    (genl.GET_OPTIONS, genl.F_DUMP), (genl.SET_OPTIONS, genl.F_DUMP),
    (genl.SET_POLICY, genl.F_DUMP)])
def test_commands_that_do_not_exist(l4lb, command, flags):
    genl.is_refused(lambda: l4lb.request(command, flags=flags), errno.EOPNOTSUPP)


# -- schedulers

@pytest.mark.smoke
def test_schedulers_describe_themselves(l4lb, backend):
    names = ("rr", "sh", "mh", "lblc", "lblcr")
    for name in names:
        backend.need_scheduler(name)
    found = l4lb.schedulers()
    assert set(names) <= set(found)
    for name in names:
        assert l4lb.scheduler(name) == found[name]
        assert found[name]["flags"] == (0x18 if name in ("sh", "mh") else 0)
    assert found["rr"]["options"] == {}
    assert set(found["sh"]["options"]) == {"order"}
    assert set(found["mh"]["options"]) == {"order", "key"}
    order, key = found["mh"]["options"].values()
    assert (order["min"], order["max"], order["default"]) == (0, 1, 0) and "key" not in order
    assert (key["min"], key["max"], key["default"]) == (0, 0xffffffff, 0) and key["key"]
    for name, options in (("lblc", ("expire", "entries")),
                          ("lblcr", ("expire", "entries", "shrink"))):
        got = found[name]["options"]
        assert tuple(got) == options
        for o, one in got.items():
            assert "value" not in one and one["default"] == DEFAULTS[o]
            assert (one["min"], one["max"]) == (1, 65536 if o == "entries" else FORTNIGHT)
            assert one["what"].startswith("addresses" if o == "entries" else "seconds")


@pytest.mark.smoke
def test_a_scheduler_is_loaded_when_asked_for(l4lb, backend):
    if backend.loaded("l4lb_fo"):
        import subprocess
        subprocess.run(["rmmod", "l4lb_fo"], check=True)
    assert "fo" not in l4lb.schedulers()
    assert l4lb.scheduler("fo") == {"name": "fo", "flags": 0, "options": {}}
    assert "fo" in l4lb.schedulers()
    # The module is not held: it can be unloaded.
    assert Backend("l4lb_fo").refcount() == 0


def test_schedulers_that_do_not_exist(l4lb):
    for name in ("nosuch", "none", "", "../rr", "%s%n", "a" * 15):
        assert "no such scheduler" in refused("ENOENT", lambda n=name: l4lb.scheduler(n))
    refused("EINVAL", lambda: l4lb.scheduler("a" * 16))


# -- options of a service

@pytest.mark.parametrize("vip", (V4, V6, 77))
def test_set_and_get(ipvs, l4lb, vip):
    s = ipvs.service(fwmark=vip, sched="lblcr") if vip == 77 else \
        ipvs.service(vip, 80, proto=UDP, sched="lblcr")
    assert l4lb.values(s) == DEFAULTS
    l4lb.set(s, expire=300)
    assert l4lb.values(s) == DEFAULTS | {"expire": 300}
    l4lb.set(s, shrink=1, entries=65536)
    assert l4lb.values(s) == {"expire": 300, "entries": 65536, "shrink": 1}
    l4lb.set(s, shrink=FORTNIGHT, entries=1, expire=1)
    assert l4lb.values(s) == {"expire": 1, "entries": 1, "shrink": FORTNIGHT}
    # Another service with the same scheduler is not affected.
    other = ipvs.service(V4, 81, sched="lblcr")
    assert l4lb.values(other) == DEFAULTS


def test_reply(ipvs, l4lb):
    """It names the service, and has each value next to the option's description."""
    s = ipvs.service(V4, 80, sched="lblc")
    (command, payload), = l4lb.request(genl.GET_OPTIONS, attr(genl.L_SERVICE, s.ident))
    assert command == genl.GET_OPTIONS
    top = genl.attributes(payload)
    assert [k for k, _ in top] == [genl.L_SERVICE, genl.L_SCHEDULER]
    assert dict(genl.attributes(top[0][1])) == {
        1: u16(socket.AF_INET), 2: u16(TCP), 3: genl.address(V4), 4: be16(80)}
    l4lb.set(s, entries=5)
    got = l4lb.options(s)
    assert (got["name"], got["flags"]) == ("lblc", 0)
    assert got["options"]["entries"] == l4lb.scheduler("lblc")["options"]["entries"] | {
        "value": 5}
    mark = ipvs.service(fwmark=7, af=socket.AF_INET6, sched="none")
    (_, payload), = l4lb.request(genl.GET_OPTIONS, attr(genl.L_SERVICE, mark.ident))
    assert dict(genl.attributes(genl.attributes(payload)[0][1])) == {
        1: u16(socket.AF_INET6), 5: u32(7)}
    assert l4lb.options(mark) == {"name": "none", "flags": 0, "options": {}}


@pytest.mark.smoke
def test_life_of_a_value(ipvs, l4lb):
    s = ipvs.service(V4, 80, sched="lblcr")
    l4lb.set(s, expire=77)
    s.server("192.0.2.20", 80)
    s.server("192.0.2.21", 80)
    s.edit_server("192.0.2.20", 80, weight=7)
    s.delete_server("192.0.2.21", 80)
    s.edit(sched="lblcr", flags=genl.PERSISTENT, timeout=60)
    assert l4lb.values(s) == DEFAULTS | {"expire": 77}
    s.edit(sched="lblc", flags=0)
    assert l4lb.values(s) == {"expire": DAY, "entries": 16384}
    l4lb.set(s, expire=78)
    s.edit(sched="lblcr")
    assert l4lb.values(s) == DEFAULTS
    l4lb.set(s, expire=79)
    s.edit(sched="none")
    s.edit(sched="lblcr")
    assert l4lb.values(s) == DEFAULTS
    l4lb.set(s, expire=80)
    s.delete()
    assert l4lb.values(s.add()) == DEFAULTS


def test_two_namespaces(topologies, ipvs, l4lb):
    other = topologies["dr"]
    other.flush()
    s = ipvs.service(V4, 80, sched="lblc")
    other.ipvs.service(V4, 80, sched="lblc")
    with genl.L4lb(other.director.ns) as theirs:
        l4lb.set(s, expire=5)
        assert theirs.values(s)["expire"] == DAY
        theirs.set(s, expire=6)
        assert l4lb.values(s)["expire"] == 5


UNKNOWN = "unknown option; lblcr has: expire entries shrink"
REFUSALS = [
    ([("expyre", 5)], "EINVAL", UNKNOWN),
    ([("", 5)], "EINVAL", UNKNOWN),
    ([("expire", 0)], "ERANGE", "option expire must be 1 to 1209600"),
    ([("expire", FORTNIGHT + 1)], "ERANGE", "option expire must be 1 to 1209600"),
    ([("shrink", 0xffffffff)], "ERANGE", "option shrink must be 1 to 1209600"),
    ([("entries", 0)], "ERANGE", "option entries must be 1 to 65536"),
    ([("entries", 65537)], "ERANGE", "option entries must be 1 to 65536"),
    ([("expire", 7), ("entries", 7), ("shrink", 0)], "ERANGE",
     "option shrink must be 1 to 1209600"),
    ([("expire", 7), ("nosuch", 7), ("shrink", 7)], "EINVAL", UNKNOWN),
    ([("expire", 7), ("entries", 7), ("expire", 8)], "EINVAL",
     "option expire is named twice: name it once"),
    ([], "EINVAL", "attribute OPTIONS is missing or empty"),
]


@pytest.mark.smoke
@pytest.mark.parametrize("pairs, code, why", REFUSALS)
def test_whole_or_not_at_all(ipvs, l4lb, pairs, code, why):
    s = ipvs.service(V4, 80, sched="lblcr")
    l4lb.set(s, expire=55)
    assert refused(code, lambda: l4lb.set(s, *pairs)) == why
    assert l4lb.values(s) == DEFAULTS | {"expire": 55}


def test_schedulers_without_options(ipvs, l4lb):
    for sched in ("rr", "fo", "none"):
        s = ipvs.service(V4, 80, sched=sched)
        assert refused("EINVAL", lambda s=s: l4lb.set(s, expire=5)) == \
            f"scheduler {sched} has no options: leave them out"
        assert l4lb.options(s)["options"] == {}
        s.delete()


def test_no_such_service(ipvs, l4lb):
    s = ipvs.service(V4, 80, sched="lblc")
    absent = [ipvs.service(V4, 81, add=False), ipvs.service(V4, 80, proto=UDP, add=False),
              ipvs.service(V6, 80, add=False), ipvs.service(fwmark=80, add=False)]
    for a in absent:
        assert "no such service" in refused("ESRCH", lambda a=a: l4lb.values(a))
        refused("ESRCH", lambda a=a: l4lb.set(a, expire=5))
    s.delete()
    refused("ESRCH", lambda: l4lb.set(s, expire=5))


# -- strict parsing

KEY = {1: u16(socket.AF_INET), 2: u16(TCP), 3: genl.address(V4), 4: be16(80)}


def key(change=None, nested=genl.NESTED):
    attrs = {**KEY, **(change or {})}
    return attr(genl.L_SERVICE | nested, b"".join(
        attr(k, v) for k, v in attrs.items() if v is not None))


PAIR = attr(genl.O_NAME, text("expire")) + attr(genl.O_VALUE, u32(9))


def pairs(entry=PAIR, nested=genl.NESTED, outer=genl.NESTED):
    return attr(genl.L_OPTIONS | outer, attr(1 | nested, entry))


STRICT = [
    ("no service", pairs(), "EINVAL"),
    ("no options", key(), "EINVAL"),
    ("options empty", key() + attr(genl.L_OPTIONS | genl.NESTED, b""), "EINVAL"),
    ("service not nested", key(nested=0) + pairs(), "EINVAL"),
    ("options not nested", key() + pairs(outer=0), "EINVAL"),
    ("option not nested", key() + pairs(nested=0), "EINVAL"),
    ("option empty", key() + pairs(b""), "EINVAL"),
    ("no name", key() + pairs(attr(genl.O_VALUE, u32(9))), "EINVAL"),
    ("no value", key() + pairs(attr(genl.O_NAME, text("expire"))), "EINVAL"),
    ("value of 64 bits", key() + pairs(attr(genl.O_NAME, text("expire"))
                                       + attr(genl.O_VALUE, u32(9) * 2)), "EINVAL"),
    ("value cut", key() + pairs(attr(genl.O_NAME, text("expire"))
                                + attr(genl.O_VALUE, u16(9))), "EINVAL"),
    ("name without NUL", key() + pairs(attr(genl.O_NAME, b"expire")
                                       + attr(genl.O_VALUE, u32(9))), "EINVAL"),
    ("name of 16", key() + pairs(attr(genl.O_NAME, text("e" * 16))
                                 + attr(genl.O_VALUE, u32(9))), "EINVAL"),
    ("a minimum", key() + pairs(PAIR + attr(genl.O_MIN, u32(0))), "EINVAL"),
    ("unknown in an option", key() + pairs(PAIR + attr(9, b"")), "EINVAL"),
    ("unknown on top", key() + pairs() + attr(9, b""), "EINVAL"),
    ("scheduler", key() + pairs() + attr(genl.L_SCHEDULER, [attr(1, text("rr"))]), "EINVAL"),
    ("trailing bytes", key() + pairs() + b"\1\2\3", "EINVAL"),
    ("no family", key({1: None}) + pairs(), "EINVAL"),
    ("family 1", key({1: u16(1)}) + pairs(), "EAFNOSUPPORT"),
    ("family of 32 bits", key({1: u32(2)}) + pairs(), "EINVAL"),
    ("no protocol", key({2: None}) + pairs(), "EINVAL"),
    ("no address", key({3: None}) + pairs(), "EINVAL"),
    ("no port", key({4: None}) + pairs(), "EINVAL"),
    ("address of 3", key({3: bytes(3)}) + pairs(), "ERANGE"),
    ("address of 5", key({3: bytes(5)}) + pairs(), "EINVAL"),
    ("address of 17", key({3: bytes(17)}) + pairs(), "ERANGE"),
    ("IPv6 address of 4", key({1: u16(socket.AF_INET6), 3: bytes(4)}) + pairs(), "EINVAL"),
    ("mark 0", key({5: u32(0)}) + pairs(), "ERANGE"),
    ("mark and address", key({5: u32(4)}) + pairs(), "EINVAL"),
    ("scheduler's name", key({6: text("lblc")}) + pairs(), "EINVAL"),
]


@pytest.mark.smoke
@pytest.mark.parametrize("body, code", [r[1:] for r in STRICT],
                         ids=[r[0].replace(" ", "-") for r in STRICT])
def test_strict(ipvs, l4lb, body, code):
    s = ipvs.service(V4, 80, sched="lblc")
    refused(code, lambda: l4lb.request(genl.SET_OPTIONS, body))
    assert l4lb.values(s)["expire"] == DAY
    # Undamaged, the message is accepted.
    l4lb.request(genl.SET_OPTIONS, key() + pairs())
    l4lb.request(genl.SET_OPTIONS, key({3: genl.packet.packed(V4)}) + pairs())
    assert l4lb.values(s)["expire"] == 9


def test_strict_reading(ipvs, l4lb):
    ipvs.service(V4, 80, sched="lblc")
    l4lb.request(genl.GET_OPTIONS, key())
    refused("EINVAL", lambda: l4lb.request(genl.GET_OPTIONS, key() + pairs()))
    refused("EINVAL", lambda: l4lb.request(genl.GET_OPTIONS))
    refused("EINVAL", lambda: l4lb.request(genl.GET_SCHEDULER))
    refused("EINVAL", lambda: l4lb.request(genl.GET_SCHEDULER, key()))
    refused("EINVAL", lambda: l4lb.request(genl.GET_SCHEDULER, attr(
        genl.L_SCHEDULER, [attr(genl.SC_NAME, text("rr")), attr(genl.SC_FLAGS, u32(0))])))
    # Linux 6.1 cannot send a sentence when a dump is refused at its start.
    genl.is_refused(lambda: l4lb.dump(genl.GET_SCHEDULER, attr(
        genl.L_SCHEDULER, [attr(genl.SC_NAME, text("rr"))])), errno.EINVAL)
    # Reserved header bytes, which must be 0 in new families.
    message = bytearray(l4lb.message(genl.GET_OPTIONS, key()))
    struct.pack_into("=H", message, 18, 1)
    l4lb.sock.send(message)
    genl.is_refused(l4lb.answers, errno.EINVAL)


# -- a secret

KEYS = bytes(range(16)), bytes(range(1, 17))


def fingerprint(l4lb, service):
    return l4lb.values(service)["key"]


@pytest.mark.smoke
def test_a_key_is_shown_by_its_fingerprint(ipvs, l4lb):
    s = ipvs.service(V4, 80, sched="mh")
    assert l4lb.values(s) == {"order": 0, "key": 0}
    seen = []
    for key in (*KEYS, bytes(16), KEYS[0]):
        l4lb.set(s, key=key)
        seen.append(fingerprint(l4lb, s))
    assert seen[0] == seen[3] and len(set(seen)) == 3 and 0 not in seen
    # The present fingerprint keeps the key, 0 removes it, also along with other options.
    l4lb.set(s, key=seen[0], order=1)
    assert l4lb.values(s) == {"order": 1, "key": seen[0]}
    l4lb.set(s, order=0)
    assert l4lb.values(s) == {"order": 0, "key": seen[0]}
    l4lb.set(s, key=0)
    assert fingerprint(l4lb, s) == 0
    # The key is gone, not only its number.
    assert "fingerprint" in refused("EINVAL", lambda: l4lb.set(s, key=seen[0]))


@pytest.mark.parametrize("value, code, why", [
    (7, "EINVAL", "the service has no key with this fingerprint: give the key itself"),
    (bytes(15), "ERANGE", None), (bytes(17), "ERANGE", None), (b"", "ERANGE", None)])
def test_a_key_that_is_refused(ipvs, l4lb, value, code, why):
    s = ipvs.service(V4, 80, sched="mh")
    l4lb.set(s, key=KEYS[0])
    before = l4lb.values(s)
    for named in ([("key", value)], [("order", 1), ("key", value)]):
        sentence = refused(code, lambda n=named: l4lb.set(s, *n))
        assert why in (None, sentence)
        assert l4lb.values(s) == before


def test_key_and_number_are_not_exchangeable(ipvs, l4lb):
    s = ipvs.service(V4, 80, sched="mh")
    assert refused("EINVAL", lambda: l4lb.set(s, order=KEYS[0])) == \
        "option order is no key: give a VALUE"
    both = attr(genl.O_NAME, text("key")) + attr(genl.O_KEY, KEYS[0]) + attr(genl.O_VALUE, u32(0))
    assert refused("EINVAL", lambda: l4lb.request(genl.SET_OPTIONS, key() + pairs(both))) == \
        "option: give one of VALUE, KEY and FD"
    assert "order must be 0 to 1" in refused("ERANGE", lambda: l4lb.set(s, order=2))
    assert l4lb.values(s) == {"order": 0, "key": 0}


def test_a_key_in_a_batch(ipvs, l4lb):
    """A listing can be sent back where its key is known, and nowhere else."""
    entry = genl.batch_entry(V4, 80, ["192.0.2.20"], sched="mh",
                             options=[("key", KEYS[0]), ("order", 1)])
    s = ipvs.service(V4, 80, add=False)
    l4lb.set_services([entry])
    values = l4lb.values(s)
    assert values["order"] == 1 and values["key"]
    listed = l4lb.get_services()
    assert KEYS[0] not in b"".join(listed)
    l4lb.set_services(listed, genl.REPLACE)
    assert l4lb.values(s) == values
    # Refused as a whole: another service of the message is not added.
    more = genl.batch_entry(V4, 81, sched="mh", options=[("key", values["key"])])
    other = genl.batch_entry(V4, 82, sched="mh")
    unlike = genl.batch_entry(V4, 80, sched="mh", options=[("order", 0), ("key", 5)])
    changed = genl.batch_entry(V4, 80, sched="mh", options=[("order", 0), ("key", KEYS[1])])
    for entries in ([other, more], [other, unlike], [changed, more]):
        assert "fingerprint" in refused("EINVAL", lambda e=entries: l4lb.set_services(e))
        assert len(ipvs.services()) == 1 and l4lb.values(s) == values
    # Options that an entry does not name get their default: so does the key.
    l4lb.set_services([genl.batch_entry(V4, 80, ["192.0.2.20"], sched="mh")])
    assert l4lb.values(s) == {"order": 0, "key": 0}
    assert "fingerprint" in refused("EINVAL", lambda: l4lb.set(s, key=values["key"]))


# -- packets

class Clients:
    """Asks which server 60 clients get."""

    def __init__(self, oracle, sched, order=(3, 1, 4, 2)):
        self.oracle, self.port = oracle, 2000
        self.service = oracle.service(sched)
        for n in order:
            oracle.server(self.service, "add", f"10.8.7.{n}")

    def ask(self):
        self.port += 1
        flows = [("udp", f"10.9.7.{n}", self.port, "10.50.7.1", 80) for n in range(1, 61)]
        for flow in flows:
            self.oracle.send(*flow)
        got = self.oracle.chosen()
        return [got[flow] for flow in flows]

    def set(self, **options):
        with genl.L4lb(self.oracle.ns) as l4lb:
            l4lb.set(self.service, **options)
        return self.ask()


@pytest.mark.smoke
def test_order_is_that_of_the_next_packet(oracle):
    c = Clients(oracle, "sh")
    by_age = c.ask()
    by_address = c.set(order=1)
    assert by_age != by_address and set(by_age) == set(by_address)
    oracle.server(c.service, "del", "10.8.7.4")
    oracle.server(c.service, "add", "10.8.7.4")
    assert c.ask() == by_address
    # The servers of `by_age` in the order of their addresses are those of `by_address`.
    turns = {f"10.8.7.{n}": f"10.8.7.{m}" for n, m in zip((3, 1, 4, 2), (1, 2, 3, 4))}
    assert [turns[server] for server in by_age] == by_address


def test_key_is_that_of_the_next_packet(oracle):
    c = Clients(oracle, "mh")
    public, secret, other = c.ask(), c.set(key=KEYS[0]), c.set(key=KEYS[1])
    assert public != secret != other != public
    assert c.set(key=KEYS[0]) == secret
    # The key is still there while another option changes.
    assert c.set(order=1) != public and c.set(order=0) == secret
    assert c.set(key=0, order=0) == public


@pytest.mark.smoke
@pytest.mark.parametrize("sched", ("lblc", "lblcr"))
def test_entries_lowered_under_traffic(oracle, sched):
    """The address stays with server 2, which has the higher load, until another
    address takes the only entry."""
    a = Addresses(oracle, sched)
    assert a.ask(1, 1, 1) == [2, 2, 2]
    with genl.L4lb(oracle.ns) as l4lb:
        l4lb.set(a.service, entries=1)
    assert a.ask(1) == [2]
    assert a.ask(9, 1, 1) == [1, 1, 1]


@pytest.mark.parametrize("sched", ("lblc", "lblcr"))
def test_entries_lowered_are_given_up_at_once(oracle, sched):
    """Not only when others need the entries: of three addresses of the busier
    server, two move to the other one as soon as there is one entry only."""
    a = Addresses(oracle, sched, weight=1000)
    assert a.ask(1, 2, 3, 4, 5, 6) == [2, 1] * 3
    assert set(a.ask(*[1] * 10)) == {2}
    assert a.ask(1, 3, 5) == [2, 2, 2]
    with genl.L4lb(oracle.ns) as l4lb:
        l4lb.set(a.service, entries=1)
    wait_until(lambda: a.ask(1, 3, 5).count(1) >= 2, 5, what="addresses forgotten")


@pytest.mark.timer
@pytest.mark.parametrize("sched", ("lblc", "lblcr"))
def test_expire_lowered_under_traffic(oracle, sched):
    a = Addresses(oracle, sched)
    assert a.ask(1, 1) == [2, 2]
    time.sleep(2.5)
    assert a.ask(1) == [2]
    with genl.L4lb(oracle.ns) as l4lb:
        l4lb.set(a.service, expire=1)
    time.sleep(2.5)
    assert a.ask(1) == [1]


def test_a_new_scheduler_begins_with_its_defaults(oracle):
    """Also for packets: the limit of one entry that the old lblc had is gone."""
    a = Addresses(oracle, "lblc", entries=1)
    assert a.ask(1, 2, 1) == [2, 1, 2]
    a.service.edit(sched="lblcr")
    assert a.ask(3, 4, 3, 4) == [1, 2, 1, 2]


@pytest.mark.smoke
def test_foreign_flags_leave_the_traffic_alone(nat):
    """A flag that sh does not have is stored; a client keeps its server, whatever its port."""
    raw = Raw(nat, TCP, numbers=(1, 2, 3), sched="sh")
    clients = [nat.client_address() for _ in range(8)]

    def servers():
        return [raw.client(c).open() for c in clients]
    before = servers()
    raw.service.edit(flags=0x20)
    assert (raw.service.get()["sched"], raw.service.get()["flags"]) == ("sh", 0x22)
    assert servers() == before and len(set(before)) > 1


@pytest.mark.emulated
def test_options_change_while_packets_flow(oracle, request):
    """Options are set and schedulers changed while up to 3,000 addresses are scheduled:
    a test for KASAN, lockdep and the leak check of this kernel."""
    a = Addresses(oracle, "lblcr")
    stop, wrong = threading.Event(), []

    def change(number):
        try:
            with genl.Ipvs(oracle.ns) as ipvs, genl.L4lb(oracle.ns) as l4lb:
                s = ipvs.service(fwmark=MARK, sched="lblcr", add=False)
                turn = 0
                while not stop.is_set():
                    turn += 1
                    if number == 0:
                        s.edit(sched=("lblcr", "lblc", "lblcr", "rr")[turn % 4])
                        continue
                    try:
                        l4lb.set(s, entries=1 + turn * 37 % 500, expire=1 + turn % 3)
                    except genl.NetlinkError as e:
                        assert e.errno == errno.EINVAL and "rr has no options" in e.extack
        except Exception as e:  # noqa: BLE001 - any failure is the finding
            wrong.append(e)
    threads = [threading.Thread(target=change, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    try:
        for i in range(amount(request.config, few=200, each=500, all=3000 if SLOW == 1 else 500)):
            oracle.send("udp", "10.9.7.8", 3000 + i, f"10.51.{i >> 8}.{i & 255}", 80)
    finally:
        stop.set()
        join_all(*threads, seconds=60)
    assert not wrong, wrong
    got = oracle.chosen()
    assert set(got.values()) == {"10.8.7.1", "10.8.7.2"}
    assert a.service.get()["sched"] in ("lblcr", "lblc", "rr")
