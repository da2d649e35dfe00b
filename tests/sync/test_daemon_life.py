# SPDX-License-Identifier: GPL-2.0
"""How daemons start and end, while messages come and packets are announced; what they do
meanwhile apart from records."""

import contextlib
import errno
import itertools
import os
import re
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from lab import daemons, faults, genl, sync_wire
from lab.genl import attr
from lab.netns import Namespace, join_all, run, wait_until
from lab.packet import ACK, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import DEVICE, DIRECTOR, GROUP, PEER, Sender, cable, stuck
from lab.sync_wire import DIRECT, NO_OUTPUT, Record

LIFE = "life0"              # the device of a namespace that comes and goes
PORT = 80
ONE = Record("10.0.0.2", 3101, "10.0.0.100", 80, "10.1.0.2", 80, flags=DIRECT | NO_OUTPUT)
# The debug kernel's tracker of references lacks memory itself.
UNTRACKED = "ref_tracker: memory allocation failure"
RMEM_MAX = Path("/proc/sys/net/core/rmem_max")


def threads():
    """The names of the daemons' threads, everywhere."""
    found = []
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            found.append(comm.read_text("ascii").strip())
    return sorted(name for name in found if name.startswith("ipvs-"))


def ended(backend, references):
    """All daemons have: no thread is left, and no reference on the module."""
    wait_until(lambda: not threads() and backend.refcount() == references, 5,
               what=f"no thread and {references} references: {threads()}, "
                    f"{backend.refcount()}")


def sockets(ns, port=sync_wire.PORT):
    """The number of UDP sockets with PORT at either end, both families."""
    return sum(line.split()[column].endswith(f":{port:04X}")
               for name in ("udp", "udp6") for line in
               ns.read(f"/proc/net/{name}").splitlines()[1:] for column in (1, 2))


# -- under load

@contextlib.contextmanager
def pumping(peer, vip):
    """Inside, PEER sends messages to the group, and datagrams of new flows to VIP, as fast as
    it can."""
    stop = threading.Event()
    sender = Sender(peer, device=LIFE)

    def pump():
        for n in itertools.count():
            with contextlib.suppress(OSError):
                with peer.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                    client.sendto(b"x", (vip, PORT))
                sender.records(replace(ONE, cport=n % 50000 + 1))
            if stop.is_set():
                return

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        join_all(thread)
        sender.sock.close()


def counted(ns, *names):
    values = dict(line.split() for line in ns.read("/proc/net/l4lb").splitlines())
    return [int(values[name]) for name in names]


def busy(ns):
    """Both daemons have had something to do since now."""
    names = ("sync_messages_out", "sync_records_in")
    before = counted(ns, *names)
    wait_until(lambda: all(a > b for a, b in zip(counted(ns, *names), before)), 10,
               what="messages in both directions", step=0.005)


def end_by_stop(ns, ipvs):
    for role in daemons.ROLE:
        daemons.stop(ipvs, role)
    assert sockets(ns) == 0


def end_by_restarts(ns, ipvs):
    for _ in range(5):
        for role in daemons.ROLE:
            daemons.stop(ipvs, role)
            daemons.start(ipvs, role, LIFE)
    busy(ns)
    end_by_stop(ns, ipvs)


def end_by_device(ns, ipvs):
    ns.ip(f"link del {LIFE}")
    wait_until(lambda: daemons.listed(ipvs) == [], 5, what="daemons without a device are over")
    assert sockets(ns) == 0


def end_by_namespace(ns, ipvs):
    ipvs.close()
    ns.destroy()


ENDS = (end_by_stop, end_by_device, end_by_namespace, end_by_restarts)


def one_round(end):
    """The director's is the far end of the cable, so its namespace may go."""
    vip, server = PEER[4], DIRECTOR[4]
    peer, ns = Namespace("life-peer"), Namespace("life")
    try:
        ns.sysctl("net/ipv4/conf/all/rp_filter", 0)
        with cable(peer, ns, LIFE), genl.Ipvs(ns) as ipvs:
            ns.sysctl("net/ipv4/vs/sync_threshold", "1 2")
            ipvs.service(vip, PORT, proto=UDP, sched="rr").server(server, PORT,
                                                                  method=genl.ROUTE)
            for role in daemons.ROLE:
                daemons.start(ipvs, role, LIFE)
            with pumping(peer, vip):
                busy(ns)
                end(ns, ipvs)
    finally:
        ns.destroy()
        peer.destroy()


@pytest.mark.usefixtures("only_l4lb")
@pytest.mark.parametrize("rounds", (
    pytest.param(1, marks=pytest.mark.smoke),
    pytest.param(125, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])))
def test_rounds(backend, module_life, rounds):
    backend.need_scheduler("rr")        # it has a reference
    references = backend.refcount()
    for _ in range(rounds):
        for end in ENDS:
            one_round(end)
            ended(backend, references)


@pytest.mark.smoke
def test_module_is_busy(side, backend):
    references = backend.refcount()
    for role in daemons.ROLE:
        with daemons.running(side.ipvs, role):
            done = run(["rmmod", backend.name], check=False)
            assert done.returncode and "in use" in done.stderr, done.stderr
            assert backend.refcount() == references + 1
        ended(backend, references)


@pytest.mark.usefixtures("only_l4lb")
@pytest.mark.parametrize("role", daemons.ROLE)
def test_device_leaves(side, backend, role):
    """Its daemon ends; that of another device goes on."""
    references = backend.refcount()
    other = Namespace("sync-else")
    side.ns.ip("link add gone0 type dummy", "addr add 10.99.0.1/24 dev gone0",
               "link set gone0 up", "link add stay0 type dummy", "addr add 10.99.1.1/24 dev stay0",
               "link set stay0 up")
    rest = ({*daemons.ROLE} - {role}).pop()
    try:
        for leave in (f"link set gone0 netns {other.name}", "link del stay0"):
            device = leave.split()[2]
            with daemons.running(side.ipvs, role, device), daemons.running(side.ipvs, rest):
                side.ns.ip(leave)
                wait_until(lambda: [d["role"] for d in daemons.listed(side.ipvs)] == [rest], 5,
                           what="one daemon is over")
        ended(backend, references)
    finally:
        other.destroy()


@pytest.mark.usefixtures("only_l4lb")
def test_stops_at_once(side):
    """In 50 ms, with messages coming and going; a busy machine may need several tries."""
    def slow():
        took = []
        for _, role in itertools.product(range(25), daemons.ROLE):
            daemons.start(side.ipvs, role)
            sender.records(ONE)
            began = time.monotonic()
            daemons.stop(side.ipvs, role)
            took.append(time.monotonic() - began)
        return [t for t in took if t > 0.05]

    with side.sender() as sender:
        assert any(not slow() for _ in range(5))


# -- what the threads do

@pytest.mark.usefixtures("only_l4lb")
def test_burst(side):
    """All of 10,000 datagrams are dealt with, though none comes afterwards."""
    before = RMEM_MAX.read_text("ascii")
    RMEM_MAX.write_text(str(32 << 20), encoding="ascii")
    try:
        with setting(side.lab, "sync_sock_size", 32 << 20), side.backup(), \
                side.sender() as sender:
            names = "sync_messages_in", "sync_records_in"
            was = counted(side.ns, *names)
            for _ in range(10_000):
                sender.records(ONE)
            wait_until(lambda: counted(side.ns, *names) == [n + 10_000 for n in was], 10,
                       what="10,000 messages")
    finally:
        RMEM_MAX.write_text(before, encoding="ascii")


@pytest.mark.smoke
def test_ports(side):
    """A thread for each port. The number is that of the moment when neither daemon ran."""
    def ids(letter):
        return [int(re.fullmatch(rf"ipvs-{letter}:\d+:(\d+)", name)[1]) for name in threads()
                if name.startswith(f"ipvs-{letter}")]

    with setting(side.lab, "sync_ports", 2):
        with side.master():
            side.lab.director.ns.sysctl("net/ipv4/vs/sync_ports", 4)
            with side.backup(), side.sender(port=sync_wire.PORT + 1) as sender:
                assert ids("m") == ids("b") == [0, 1]
                sender.records(ONE)
                side.row(ONE)
        with side.backup():
            assert ids("b") == [0, 1, 2, 3]


@pytest.mark.smoke
def test_ports_are_used(nat, side):
    """Connections are spread over the ports."""
    raw = Raw(nat, TCP)
    with setting(nat, "sync_ports", 2), setting(nat, "sync_threshold", "2 50"), \
            side.receiver() as first, side.receiver(port=sync_wire.PORT + 1) as second, \
            side.master():
        for _ in range(32):
            raw.client().establish()
        for receiver in (first, second):
            receiver.message()


def buffers(ns):
    """[(receive buffer, send buffer)] of the group's sockets."""
    run(["modprobe", "-q", "udp_diag"], check=False)
    found = ns.run(["ss", "-uamnH"]).stdout.replace("\n\t", " ")
    if "skmem" not in found:
        pytest.skip("this kernel has no udp_diag; runs on stages 6.12 and 6.1")
    return [(int(rb), int(tb)) for rb, tb in re.findall(
        rf":{sync_wire.PORT}\b.*?skmem:\(r\d+,rb(\d+),t\d+,tb(\d+)", found)]


@pytest.mark.smoke
@pytest.mark.stock
def test_socket_size(side):
    """Twice as much, as with SO_SNDBUF and SO_RCVBUF; for the packets of one direction."""
    with setting(side.lab, "sync_sock_size", 100_000):
        with side.master():
            assert [tb for _, tb in buffers(side.ns)] == [200_000]
        with side.backup():
            assert [rb for rb, _ in buffers(side.ns)] == [200_000]
    with side.backup():
        assert buffers(side.ns)[0][0] != 200_000


@pytest.mark.smoke
def test_sync_id_of_more_than_8_bits(side):
    """A master sends its lower 8 bits; a backup with it hears nothing."""
    with side.backup(sync_id=256), side.sender() as sender:
        other = replace(ONE, client="10.0.0.3")
        sender.records(other, sync_id=0).records(other, sync_id=1)
        wait_until(lambda: not side.unread(), 5)
        time.sleep(0.1)
        assert side.rows(client=other.client) == []


@pytest.mark.smoke
def test_backup_only(nat, side, backend):
    """While a backup runs, the clients' packets are left to this host; replies pass."""
    raw = Raw(nat, TCP)
    client = raw.client()
    client.establish()
    with setting(nat, "backup_only", 1):
        client.send(ACK, b"data")
        client.arrive()
        with side.backup():
            client.send(ACK, b"data")
            client.nothing_arrives()
            raw.client().send()
            raw.fence()
            raw.drain()                 # resets of this host
            client.reply(ACK, b"answer")
            client.answered()
            assert [row["cport"] for row in nat.conns(vport=raw.port)] == [client.sport]
        client.send(ACK, b"data")
        client.arrive()
        with side.master():
            client.send(ACK, b"data")
            client.arrive()
        with side.backup():
            client.send(ACK, b"data")
            client.nothing_arrives()
            nat.director.ns.sysctl("net/ipv4/vs/backup_only", 0)
            client.send(ACK, b"data")
            client.arrive()


@pytest.mark.smoke
@pytest.mark.parametrize("given, seen", ((None, 1), (7, 7)), ids=("default", "set"))
def test_way_of_messages(nat, side, family, given, seen):
    """They come from the device's own address, with the TTL asked for."""
    group = GROUP[family]
    with setting(nat, "sync_threshold", "2 50"), side.receiver(group) as receiver, \
            side.master(group=group, ttl=given):
        Raw(nat, TCP, family).client().establish()
        receiver.message()
        assert receiver.ttl == seen
        if family == 4:
            assert receiver.source[0] == DIRECTOR[4]


@pytest.mark.usefixtures("only_l4lb")
def test_does_not_hear_itself(nat, side, family):
    """The backup of the same director takes no message of its master."""
    group = GROUP[family]
    with setting(nat, "sync_threshold", "2 50"), side.receiver(group) as receiver, \
            side.backup(group=group), side.master(group=group):
        before = counted(side.ns, "sync_messages_in")
        Raw(nat, TCP).client().establish()
        receiver.message()
        time.sleep(0.1)
        assert counted(side.ns, "sync_messages_in") == before


@contextlib.contextmanager
def urgent():
    """No kernel thread runs while this process does."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.usefixtures("only_l4lb")
@pytest.mark.parametrize("scheduled", (contextlib.nullcontext, urgent),
                         ids=("as usual", "before its thread"))
def test_last_records(nat, side, scheduled):
    """What was announced just before a master stops is still sent."""
    raw = Raw(nat, TCP)
    with setting(nat, "sync_threshold", "2 50"), side.receiver() as receiver, scheduled():
        for _ in range(20):
            client = raw.client()
            with side.master():
                client.establish()
            receiver.records(lambda r, c=client: r.client == c.address, deadline=1)


@pytest.mark.usefixtures("only_l4lb")
def test_stuck_master_stops(nat, side):
    """Within 200 ms, though its device sends nothing; the messages that wait are lost."""
    raw = Raw(nat, UDP)
    with setting(nat, "sync_threshold", "1 50"), setting(nat, "sync_sock_size", 1), \
            stuck(side.ns):
        daemons.start(side.ipvs, "master", maxlen=100)
        for _ in range(300):
            raw.client().send()
        raw.fence()
        before = counted(side.ns, "sync_send_errors")
        began = time.monotonic()
        daemons.stop(side.ipvs, "master")
        assert time.monotonic() - began < 0.2
        assert counted(side.ns, "sync_send_errors") > before


# -- without memory

@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
@pytest.mark.usefixtures("only_l4lb")
@pytest.mark.parametrize("group", GROUP.values(), ids=("v4", "v6"))
@pytest.mark.parametrize("role", daemons.ROLE)
def test_allocations_fail(side, backend, log, role, group):
    """One after the other; nothing is left, and then a start succeeds."""
    references = backend.refcount()
    request = attr(genl.DAEMON, [daemons.state(role), *daemons.options(DEVICE, group=group)])
    failed = 0
    with setting(side.lab, "sync_ports", 2), log.provoked(UNTRACKED), faults.injection(), \
            faults.FaultyIpvs(side.ns) as faulty:
        for faulty.nth in itertools.count(1):
            try:
                faulty.request(genl.NEW_DAEMON, request)
            except OSError as error:
                assert error.errno in (errno.ENOMEM, errno.ENOBUFS, errno.EFAULT,
                                       errno.ENFILE), os.strerror(error.errno)
                failed += faulty.hit
                if not daemons.listed(side.ipvs):
                    assert not sockets(side.ns)
                    ended(backend, references)
            daemons.stop_all(side.ipvs)
            if not faulty.hit:
                break
    assert failed >= 10
    ended(backend, references)
    with daemons.running(side.ipvs, role, group=group):
        assert len(threads()) == 1


@pytest.mark.usefixtures("only_l4lb")
def test_counters(side):
    """They are shown from the first daemon on, and stay."""
    ns = Namespace("unsynced")
    try:
        with genl.Ipvs(ns) as ipvs:
            assert "sync_" not in ns.read("/proc/net/l4lb")
            ns.ip("link set lo up")
            daemons.start(ipvs, "master", "lo")
            daemons.stop(ipvs, "master")
            assert counted(ns, "sync_messages_out", "sync_overflow", "sync_short") == [0, 0, 0]
    finally:
        ns.destroy()
