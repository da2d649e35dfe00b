# SPDX-License-Identifier: GPL-2.0
"""Removal of namespaces, devices and the module itself, under traffic.

Nothing may be left behind: afterwards the module unloads, and conftest.py finds
no warning in the kernel log.
"""

import contextlib
import errno
import os
import subprocess
import threading

import pytest
from lab import genl, packet
from lab.atwork import traffic
from lab.backend import Backend
from lab.genl import PERSISTENT
from lab.monitor import ConnLog
from lab.netns import join_all, run, wait_until
from lab.packet import SYN, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from lab.small import small_lab

CPUS = 2
NO_MODULE = True  # these tests load and unload it themselves
pytestmark = pytest.mark.usefixtures("unloaded")


def four_services(lab, **kwargs):
    return [Raw(lab, proto, family, (1, 2), **kwargs)
            for family in (4, 6) for proto in (TCP, UDP)]


def rounds_under_traffic(lab, backend, count):
    for turn in range(count):
        backend.load()
        lab._ipvs = None
        raws = four_services(lab, sched=("rr", "wrr", "lc", "wlc")[turn % 4])
        with traffic(raws) as sent:
            mark = sent[0]
            wait_until(lambda m=mark: sent[0] > m + 100, 20)
            lab.flush()
            backend.unload()
            mark = sent[0]
            # Packets keep arriving at the kernel without the module.
            wait_until(lambda m=mark: sent[0] > m + 30, 20)
        assert not backend.loaded()


@pytest.mark.smoke
@pytest.mark.parametrize("shape", (pytest.param("nat", marks=pytest.mark.emulated), "dr", "tun"))
def test_unload_under_traffic(topologies, backend, shape):
    rounds_under_traffic(topologies[shape], backend, 2)


@pytest.mark.smoke
@pytest.mark.usefixtures("only_l4lb")
def test_unload_with_a_log(topologies, backend):
    """Connections that are logged end while the module goes, and somebody listens."""
    lab = topologies["nat"]
    for _ in range(3):
        backend.load()
        lab._ipvs = None
        raws = four_services(lab)
        log = ConnLog(lab.director.ns)
        try:
            with genl.L4lb(lab.director.ns) as l4lb:
                for raw in raws:
                    l4lb.set_policy(raw.service, log=1)
                lab.director.ns.sysctl("net/ipv4/vs/expire_nodest_conn", 1)
                clients = [raws[1].client().send() for _ in range(300)]
                raws[1].fence()
                with traffic(raws):
                    l4lb.kill(client=clients[0].address, client_port=clients[0].sport)
                    assert log.next(60)["why"] == "killed"
                    lab.flush()
                    backend.unload()
                    said = log.process.communicate(timeout=30)[1]
            assert log.process.returncode == 7 and b"the module was unloaded" in said
        finally:
            log.process.kill()
            log.process.communicate(timeout=30)


@pytest.mark.emulated
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_hundred_rounds(topologies, backend):
    rounds_under_traffic(topologies["nat"], backend, 100)


def test_module_is_busy_while_services_exist(topologies, backend):
    """rmmod is refused while there is a service; connections alone do not hold
    the module."""
    lab = topologies["nat"]
    backend.load()
    raw = Raw(lab, UDP)
    raw.client().open()
    for name in (backend.name, backend.prefix + "rr"):
        done = run(["rmmod", name], check=False)
        assert done.returncode != 0 and "in use" in done.stderr, done.stderr
    raw.client().open()
    lab.flush()
    assert lab.conns()
    backend.unload()


@pytest.mark.smoke
def test_scheduler_is_busy_while_used(topologies, backend):
    lab = topologies["nat"]
    backend.load()
    one, two = lab.ipvs.service(lab.vip(), 81, sched="lc"), \
        lab.ipvs.service(lab.vip(), 82, sched="lc")
    name = backend.prefix + "lc"
    for step in (one.delete, lambda: two.edit(sched="rr")):
        assert run(["rmmod", name], check=False).returncode != 0
        step()
    run(["rmmod", name])
    assert not backend.loaded(name)
    two.edit(sched="lc")
    assert backend.loaded(name)


@pytest.mark.smoke
@pytest.mark.ip_vs_differs("references to the module stay when a namespace ends")
def test_namespace_ends_with_live_connections(topologies, backend, request):
    """Directors' namespaces come and go with services, connections and traffic."""
    backend.load()
    for turn in range(amount(request.config, few=4, pairs=20)):
        with small_lab(f"gone{turn}-") as (client, director):
            with genl.Ipvs(director.ns) as ipvs:
                for family, vip, rip in ((4, "198.51.100.1", "192.0.2.9"),
                                         (6, "2001:db8:1::1", "2001:db8:2::9")):
                    for proto in (TCP, UDP):
                        s = ipvs.service(vip, 80, proto=proto, sched="wlc",
                                         flags=PERSISTENT * (turn % 2), timeout=300)
                        s.server(rip, 8080)
                    for sport in range(1, 40):
                        source = "198.51.100.2" if family == 4 else "2001:db8:1::2"
                        for proto in (TCP, UDP):
                            client.send(packet.l4_packet(proto, source, sport, vip, 80))
            wait_until(lambda d=director: len(genl.conns(d.ns)) >= 100, 10)
            stop = threading.Event()

            def pump(tap=client, stop=stop):
                n = 0
                while not stop.is_set():
                    n = n % 60000 + 1
                    if not tap.try_send(packet.udp_packet(
                            "198.51.100.2", n, "198.51.100.1", 80, b"x")):
                        return

            thread = threading.Thread(target=pump, daemon=True)
            thread.start()
            director.ns.destroy()
            stop.set()
            join_all(thread)
    # No service holds the module any more.
    wait_until(lambda: backend.refcount() == len(backend.family()) - 1, 20,
               what="references to the module")


@pytest.mark.smoke
def test_device_goes_away(topologies, backend):
    """The servers' device is removed with routes cached and traffic running;
    a cached route must not hold it (unregister_netdevice: waiting)."""
    backend.load()
    with small_lab("dev-") as (client, director), genl.Ipvs(director.ns) as ipvs:
        director.ns.ip("link add out0 type dummy", "link set out0 up",
                       "addr add 192.0.2.1/24 dev out0",
                       "addr add 2001:db8:2::1/64 dev out0 nodad")
        for vip, rip in (("198.51.100.1", "192.0.2.9"), ("2001:db8:1::1", "2001:db8:2::9")):
            ipvs.service(vip, 80, proto=UDP).server(rip, 80)
        for turn in range(3):
            for sport in range(1001, 1030):
                client.send(packet.udp_packet("198.51.100.2", sport, "198.51.100.1", 80))
                client.send(packet.udp_packet("2001:db8:1::2", sport, "2001:db8:1::1", 80))
            wait_until(lambda: len(genl.conns(director.ns)) >= 58, 10,
                       what=f"58 connections in turn {turn}")
            if turn == 0:
                director.ns.ip("link set out0 down", "link set out0 up")
            # `ip link del` returns only when the device is free.
            director.ns.run("ip link del out0", timeout=20)
            client.send(packet.udp_packet("198.51.100.2", 5, "198.51.100.1", 80))
            director.ns.ip("link add out0 type dummy", "link set out0 up",
                           "addr add 192.0.2.1/24 dev out0",
                           "addr add 2001:db8:2::1/64 dev out0 nodad")


@pytest.mark.smoke
def test_refuses_to_share_with_ip_vs(backend, log):
    """The netlink family can have one owner: the second module logs what to unload."""
    if not backend.is_l4lb:
        pytest.skip("a message of l4lb's own; runs with --backend l4lb")
    control = Backend("ip_vs")
    control.load()
    try:
        log.seen.clear()
        done = backend.load(check=False)
        assert done.returncode != 0
        # Not "File exists": modprobe would call that success.
        assert "Device or resource busy" in done.stderr, done.stderr
        said = log.lines("l4lb")
        assert len(said) == 1 and "ip_vs" in said[0], said
        assert not backend.loaded()
    finally:
        control.unload()
    backend.load()


@pytest.mark.smoke
def test_ip_vs_cannot_come_beside(topologies, backend, log):
    """The other order: ip_vs fails to load and l4lb goes on working. ip_vs
    warns about the /proc file it finds there, which we cannot help."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs is not loaded beside itself; runs with --backend l4lb")
    backend.load()
    raw = Raw(topologies["nat"], UDP)
    control = Backend("ip_vs")
    with log.provoked("proc_register"):
        assert control.load(check=False).returncode != 0
    assert not control.loaded()
    assert raw.client().open() == 1


def test_idle_module(backend):
    """Loading and unloading with nothing configured, many times."""
    for _ in range(5):
        backend.load()
        assert backend.refcount() == 0
        backend.unload()


def test_files_go_with_the_module(topologies, backend):
    lab = topologies["nat"]
    backend.load()
    with lab.director.ns.enter():
        assert os.path.exists("/proc/thread-self/net/ip_vs")
    backend.unload()
    with lab.director.ns.enter():
        for name in ("ip_vs", "ip_vs_conn", "ip_vs_stats"):
            assert not os.path.exists("/proc/thread-self/net/" + name)
    genl.is_refused(lambda: genl.Ipvs(lab.director.ns), errno.ENOENT)


def test_open_files_across_unload(topologies, backend):
    """/proc/net/ip_vs_conn is held open while the module is unloaded: rmmod waits
    or the read fails, nothing crashes."""
    lab = topologies["nat"]
    backend.load()
    raw = Raw(lab, UDP)
    raw.client().open()
    with lab.director.ns.enter():
        fd = os.open("/proc/thread-self/net/ip_vs_conn", os.O_RDONLY)
    try:
        assert os.read(fd, 10)
        lab.flush()
        backend.unload()
        with contextlib.suppress(OSError):
            os.read(fd, 1000)
    finally:
        os.close(fd)


def test_dump_across_unload(topologies, backend):
    """A dump whose reader stops half way does not hold the module for ever."""
    lab = topologies["nat"]
    backend.load()
    for port in range(1, 400):
        lab.ipvs.service(lab.vip(), port)
    client = genl.Ipvs(lab.director.ns)
    client.sock.send(client.message(genl.GET_SERVICE, flags=genl.F_DUMP))
    client.sock.recv(4096)
    lab.flush()
    client.close()
    backend.unload()


@pytest.mark.emulated
def test_parallel_service_churn_and_traffic(topologies, backend, request):
    """Servers and services are added, changed and removed under traffic."""
    lab = topologies["nat"]
    backend.load()
    lab.flush()
    raws = four_services(lab, sched="wrr")
    with traffic(raws):
        for turn in range(amount(request.config, few=5, all=15)):
            for raw in raws:
                raw.edit(1, weight=turn % 4)
                raw.remove(2)
                raw.service.edit(sched=("rr", "lc", "wlc", "wrr")[turn % 4])
                raw.add(2, weight=turn % 3)
                if turn % 5 == 4:
                    raw.service.delete()
                    raw.service.add()
                    for n in raw.numbers:
                        raw.add(n)
    for raw in raws:
        raw.edit(1, weight=1)
        raw.edit(2, weight=1)
        raw.drain()
        assert raw.client().open() in (1, 2)


@pytest.mark.emulated
@pytest.mark.parametrize("times", (2, pytest.param(100, marks=[
    pytest.mark.slow, pytest.mark.timeout(1200)])))
def test_cpu_is_taken_away(topologies, backend, times):
    """Per-CPU counters and caches survive a CPU that goes offline."""
    cpu = "/sys/devices/system/cpu/cpu1/online"
    if not os.path.exists(cpu):
        pytest.skip("no second CPU to take offline: runs in QEMU (suite stages 6.12 and 6.1)")
    lab = topologies["nat"]
    backend.load()
    lab.flush()
    raw = Raw(lab, UDP)
    with traffic([raw]):
        for state in "01" * times:
            subprocess.run(["sh", "-c", f"echo {state} >{cpu}"], check=True)
    raw.drain()
    client = raw.client()
    assert client.open() == 1
    client.send(SYN)
    client.arrive()

