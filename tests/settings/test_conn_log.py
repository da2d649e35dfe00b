# SPDX-License-Identifier: GPL-2.0
"""The log of connections: LOG of a service, the multicast group log, ipvsctl conn log."""

import ctypes
import datetime
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from lab import genl
from lab.cost import bounded
from lab.ctl import IPVSCTL
from lab.fwmark import Marked, fresh_mark, marking
from lab.genl import PERSISTENT, is_refused
from lab.monitor import ConnLog
from lab.netns import SLOW
from lab.packet import ACK, FIN, RST, SCTP, SYN, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from lab.settings import setting
from lab.tables import room_for
from test_get_conns import many

pytestmark = pytest.mark.usefixtures("only_l4lb")
NAMES = {TCP: "tcp", UDP: "udp", SCTP: "sctp"}
FORWARD = {"nat": "nat", "dr": "dr", "tun": "tun"}
ONE_PACKET = 4          # flag of a service
NETLINK_ADD_MEMBERSHIP = 1
SO_RCVBUFFORCE, PIDFD_GETFD = 33, 438
LATE = 1                # seconds until a record comes: a tenth, on a busy machine


@pytest.fixture
def l4lb(nat):
    with genl.without_connections(nat.director.ns) as sock:
        yield sock


def logged(l4lb, raw, **policy):
    """RAW, whose connections are logged from now on."""
    l4lb.set_policy(raw.service, log=1, **policy)
    return raw


def ends(client, why, state=None, copy=False):
    """What the record of CLIENT's connection has beside times."""
    raw = client.raw
    return {"protocol": NAMES[raw.proto], "client": client.address, "client_port": client.sport,
            "vip": raw.vip, "vport": raw.port, "server": raw.address(client.number or 1),
            "server_port": raw.dport or raw.port, "forward": FORWARD[raw.lab.shape], "why": why,
            "copy": copy} | ({"state": state} if state else {})


def told(log, client, why, state=None, **more):
    """The next record is that of CLIENT's connection; returns it. MORE: of ends(), and seconds
    to wait."""
    said = log.next(more.pop("seconds", 10))
    want = ends(client, why, state, **more)
    assert said and {k: said.get(k) for k in want} == want, said
    return said


def when(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()


# -- what a record says

@pytest.mark.smoke
@pytest.mark.dear
def test_record(lab, family, proto):
    """Each protocol, forwarding method and family; once, and at once."""
    with genl.without_connections(lab.director.ns) as l4lb, ConnLog(lab.director.ns) as log:
        raw = logged(l4lb, Raw(lab, proto, family, (1, 2)))
        clients = [raw.client() for _ in range(4)]
        for client in clients:
            client.open()
        for client in clients:
            assert l4lb.kill(client=client.address, client_port=client.sport) == 1
            said = told(log, client, "killed", seconds=LATE)
            assert set(said) == set(ends(client, "killed")) | {
                "began", "last_packet", "ended", "seconds", "state"}
            assert when(said["began"]) <= when(said["last_packet"]) <= when(said["ended"])
            assert abs(when(said["ended"]) - time.time()) < 10 * SLOW
        log.quiet(0.3)


def test_tunnel_to_another_family(tun):
    with genl.without_connections(tun.director.ns) as l4lb, ConnLog(tun.director.ns) as log:
        raw = logged(l4lb, Raw(tun, TCP, server_family=6))
        client = raw.client()
        client.open()
        l4lb.kill()
        told(log, client, "killed")


def test_by_mark(nat, l4lb):
    """With the mark, and the address that the client used."""
    mark = fresh_mark()
    raw = logged(l4lb, Marked(nat, mark, proto=UDP))
    with marking(nat, mark, f"udp dport {raw.port}"), ConnLog(nat.director.ns, "service",
                                                              f"fwm:{mark}") as log:
        client = raw.client()
        client.open()
        assert l4lb.kill(fwmark=mark) == 1
        said = log.next()
        assert (said["fwmark"], said["vip"], said["vport"]) == (mark, raw.vip, raw.port)
        assert (said["client"], said["why"]) == (client.address, "killed")


@pytest.mark.waits
def test_times(nat, l4lb):
    """From the first packet to the last one, and the time that it was kept afterwards."""
    raw = logged(l4lb, Raw(nat, TCP))
    nat.ipvs.timeouts(fin=3)
    with ConnLog(nat.director.ns) as log:
        client = raw.client()
        client.establish()
        time.sleep(300)
        client.send(FIN)
        client.arrive()
        client.reply(FIN).answered()
        closed = time.time()
        said = told(log, client, "expired", seconds=300)
        assert said["state"] in ("FIN_WAIT", "TIME_WAIT", "CLOSE_WAIT", "LAST_ACK")
        assert 299 <= said["seconds"] <= 301
        assert abs(when(said["last_packet"]) - closed) < 1
        assert 2 <= when(said["ended"]) - when(said["last_packet"]) <= 125
        assert abs(when(said["last_packet"]) - when(said["began"]) - said["seconds"]) < 0.01


# -- why a connection has ended

@pytest.mark.waits
@pytest.mark.parametrize("proto, state", ((UDP, "UDP"), (TCP, "ESTABLISHED"), (SCTP, "ESTABLISHED")))
def test_expired(nat, l4lb, proto, state):
    raw = logged(l4lb, Raw(nat, proto), tcp=5, udp=5, sctp=5)
    with ConnLog(nat.director.ns) as log:
        client = raw.client()
        client.open() if proto == UDP else client.establish()
        told(log, client, "expired", state, seconds=30)
        log.quiet(0.3)


@pytest.mark.smoke
def test_reused(nat, l4lb):
    """The client's port, after a reset: another connection, which has a record of its own."""
    raw = logged(l4lb, Raw(nat, TCP))
    with ConnLog(nat.director.ns) as log:
        client = raw.client()
        client.establish()
        client.send(RST)
        client.arrive()
        client.open()
        told(log, client, "reused", "CLOSE")
        log.quiet(0.3)
        l4lb.kill()
        told(log, client, "killed")


def test_moved(nat, l4lb):
    """A datagram for a server that drains goes to the other one."""
    raw = logged(l4lb, Raw(nat, UDP, numbers=(1, 2)), on_drain=2)
    with ConnLog(nat.director.ns) as log:
        client = raw.client()
        first = client.open()
        raw.edit(first, weight=0)
        client.send()
        told(log, client, "moved")
        assert client.arrive()[0] == 3 - first


@pytest.mark.parametrize("how", ("a packet", "at once", "a new one"))
def test_lost(nat, l4lb, how):
    """The real server was removed: the next packet tells, or expire_nodest_conn does."""
    raw = logged(l4lb, Raw(nat, TCP, numbers=(1, 2)), on_loss=3 if how == "a packet" else 0)
    with ConnLog(nat.director.ns) as log, \
            setting(nat, "expire_nodest_conn", int(how == "at once")):
        client = raw.client()
        client.establish()
        raw.remove(client.number)
        if how == "a packet":
            client.send(ACK)
        elif how == "a new one":
            client.send(SYN)
        told(log, client, "lost", "ESTABLISHED")
        log.quiet(0.3)


def test_evicted(nat, l4lb):
    """It gave its place to another connection."""
    raw = logged(l4lb, Raw(nat, UDP))
    first, second = raw.client(), raw.client()
    with ConnLog(nat.director.ns) as log, room_for(nat, 1):
        first.open()
        second.open()
        told(log, first, "evicted", "UDP")
        log.quiet(0.3)


def test_copies(nat, l4lb):
    """What came by import says so; tests/sync/test_receive.py has those of directors."""
    raw = logged(l4lb, Raw(nat, UDP))
    client = raw.client()
    client.open()
    message, = (p["message"] for p in l4lb.export())
    with ConnLog(nat.director.ns) as log:
        l4lb.kill()
        told(log, client, "killed")
        l4lb.import_(message)
        l4lb.kill()
        told(log, client, "killed", copy=True)


# -- what has no record

@pytest.mark.smoke
def test_only_those_that_begin_meanwhile(nat, l4lb):
    """Of services with LOG; it counts when a connection begins."""
    raw, other = Raw(nat, TCP), Raw(nat, TCP)
    with ConnLog(nat.director.ns) as log:
        early, stranger = raw.client(), other.client()
        early.open()
        stranger.open()
        l4lb.set_policy(raw.service, log=1)
        client = raw.client()
        client.open()
        l4lb.set_policy(raw.service, log=0)
        late = raw.client()
        late.open()
        assert l4lb.kill() == 4
        told(log, client, "killed")
        log.quiet(0.3)


def test_priority_alone(nat, l4lb):
    """Connections of a service with "priority las" have the larger memory, and no record."""
    raw, both = Raw(nat, TCP), logged(l4lb, Raw(nat, TCP), priority=1)
    l4lb.set_policy(raw.service, priority=1)
    with ConnLog(nat.director.ns) as log:
        raw.client().open()
        client = both.client()
        client.open()
        assert l4lb.kill() == 2
        told(log, client, "killed")
        log.quiet(0.3)


def test_templates_and_single_packets(nat, l4lb):
    raw = logged(l4lb, Raw(nat, UDP, flags=PERSISTENT, timeout=300))
    once = logged(l4lb, Raw(nat, UDP, flags=ONE_PACKET))
    with ConnLog(nat.director.ns) as log:
        client = raw.client()
        client.open()
        once.client().open()
        assert l4lb.kill() == 2
        told(log, client, "killed")
        log.quiet(0.3)


@pytest.mark.smoke
def test_nobody_listens(nat, l4lb):
    """Then there is no record, and none is numbered."""
    raw = logged(l4lb, Raw(nat, UDP))

    def number():
        reply = l4lb.request(genl.LOG_CONNS)[0][1]
        return int.from_bytes(dict(genl.attributes(reply))[genl.L_SEQ], "little")

    before = number()
    for _ in range(20):
        raw.client().open()
    l4lb.kill()
    assert number() == before
    with ConnLog(nat.director.ns) as log:
        client = raw.client()
        client.open()
        l4lb.kill()
        told(log, client, "killed")
    assert number() == before + 1


# -- the command

@pytest.mark.smoke
def test_lines(nat, l4lb):
    """For people, with a filter and a limit, after which it ends."""
    raw = logged(l4lb, Raw(nat, TCP, numbers=(1, 2)))
    clients = [raw.client() for _ in range(4)]
    for client in clients:
        client.open()
    second = [c for c in clients if c.number == 2]
    with nat.director.ns.enter():
        process = subprocess.Popen(
            [IPVSCTL, "conn", "log", "server", f"{raw.address(2)}:{raw.dport}", "limit", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == 'ipvsctl: listening to services with "log on"\n'
    for client in clients:
        l4lb.kill(client=client.address, client_port=client.sport)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    for line, client in zip(out.splitlines(), second, strict=True):
        when_, _, rest = line.partition(" ")
        assert abs(when(when_) - time.time()) < 10 * SLOW
        flow = f"tcp {client.address}:{client.sport} -> {raw.vip}:{raw.port} -> " \
            f"{raw.address(2)}:{raw.dport} nat "
        assert rest.startswith(flow)
        seconds, *words = rest[len(flow):].split()
        assert float(seconds) < 60 and words == ["s", "SYN_RECV", "killed"]


def test_what_is_collected_comes_at_the_end(nat, l4lb):
    """A stopped command prints what had ended before."""
    raw = logged(l4lb, Raw(nat, UDP))
    with nat.director.ns.enter():
        process = subprocess.Popen([IPVSCTL, "conn", "log"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
    process.stderr.readline()
    for _ in range(3):
        raw.client().open()
    process.send_signal(signal.SIGSTOP)
    l4lb.kill()
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    assert len(process.communicate(timeout=60)[0].splitlines()) == 3
    assert process.returncode == 0


@pytest.mark.smoke
def test_refused(nat, l4lb):
    """Nobody without CAP_NET_ADMIN can listen; LOG has two values."""
    raw = Raw(nat, UDP)
    assert is_refused(lambda: l4lb.set_policy(raw.service, log=2), 34) == \
        "policy: LOG must be 0 to 1"
    with nat.director.ns.enter():
        done = subprocess.run(["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin",
                               IPVSCTL, "conn", "log"], capture_output=True, text=True,
                              check=False, timeout=60)
    assert done.returncode == 6 and "not permitted" in done.stderr
    for words, wrong in (("template", "templates have no record"), ("state HALF", "unknown state"),
                         ("limit 0", "limit"), ("everything", "unknown filter")):
        done = subprocess.run([IPVSCTL, "conn", "log", *words.split()], capture_output=True,
                              text=True, check=False, timeout=60)
        assert done.returncode == 2 and wrong in done.stderr


def joins(lab, uid):
    """Does a process with UID join the group?"""
    def attempt():
        os.setuid(uid)
        client.setsockopt(genl.SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)

    with lab.director.ns.enter():
        client = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
    with client, genl.L4lb(lab.director.ns) as l4lb:
        group = l4lb.group("log")
        child = os.fork()
        if not child:
            try:
                attempt()
                os._exit(0)
            except PermissionError:
                os._exit(1)
            finally:
                os._exit(2)
        return {0: True, 1: False}[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]


@pytest.mark.smoke
def test_the_group_needs_a_capability(nat):
    """The log tells of all clients."""
    assert joins(nat, 0)
    assert not joins(nat, 65534)


# -- many

def shrink(process, size):
    """The sockets of PROCESS get room for about SIZE bytes."""
    libc, pid = ctypes.CDLL(None, use_errno=True), os.pidfd_open(process.pid)
    for fd in Path(f"/proc/{process.pid}/fd").iterdir():
        if os.readlink(fd).startswith("socket:"):
            copy = libc.syscall(PIDFD_GETFD, pid, int(fd.name), 0)
            assert copy >= 0, os.strerror(ctypes.get_errno())
            with socket.socket(fileno=copy) as s:
                s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, size)
    os.close(pid)


def read_all(log, number):
    """The number of records that were lost; the others are those of different connections."""
    seen, lost = set(), 0
    while len(seen) + lost < number:
        said = log.next(60)
        lost += said.get("lost", 0)
        if "lost" not in said:
            seen.add((said["vip"], said["vport"]))
    assert len(seen) + lost == number
    log.quiet(0.3)
    return lost


def test_many(backend, request):
    """100,000 end at once: each has a record, and costs about what one of a few does. A
    listener that sleeps loses some, is told how many, and holds nothing up."""
    backend.need_scheduler("rr")
    half = amount(request.config, few=3000 // SLOW, all=50000 // SLOW)

    def seconds(number, asleep):
        with many(number, number, {"log": 1}) as ns, genl.L4lb(ns) as l4lb, ConnLog(ns) as log:
            if asleep:
                log.process.send_signal(signal.SIGSTOP)
                shrink(log.process, 1 << 14)
            start = time.monotonic()
            assert l4lb.kill() == 2 * number + 2, "and two templates"
            took = time.monotonic() - start
            log.process.send_signal(signal.SIGCONT)
            lost = read_all(log, 2 * number)
            print(f"{2 * number} in {took * 1000:.1f} ms, {lost} lost")
            assert 0 < lost < 2 * number if asleep else not lost
            return took / number

    bounded(5, lambda: seconds(half, False), lambda: seconds(500, False))
    bounded(5, lambda: seconds(half, True), lambda: seconds(500, False))


def test_many_services_and_namespaces(backend):
    """A log for each namespace, which ends with it; records are told to its own listeners."""
    backend.need_scheduler("rr")
    with many(20, 20, {"log": 1}) as one, \
            many(30, 30, {"log": 1}, "others") as two, ConnLog(one) as first, ConnLog(two) as second:
        with genl.L4lb(two) as l4lb:
            assert l4lb.kill() == 62
        for _ in range(60):
            assert second.next()["why"] == "killed"
        first.quiet(0.3)
        with genl.L4lb(one) as l4lb:
            assert l4lb.kill() == 42
        for _ in range(40):
            assert first.next()["why"] == "killed"
        second.quiet(0.3)


@pytest.mark.smoke
def test_a_namespace_ends_with_records(backend):
    """What was collected, and what has not ended yet, goes with it."""
    backend.need_scheduler("rr")
    for _ in range(3):
        with many(50, 50, {"log": 1}) as ns, genl.L4lb(ns) as l4lb:
            with ns.enter():
                process = subprocess.Popen([IPVSCTL, "conn", "log"], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE)
            process.stderr.readline()
            l4lb.kill(vip="198.51.100.2")
            process.kill()
            process.communicate(timeout=30)
