# SPDX-License-Identifier: GPL-2.0
"""Memory, listings, expiry, configuration, and large numbers of services and servers."""

import ctypes
import os
import socket
import statistics
import subprocess
import time
from pathlib import Path

from bed import Bed, MeasureError, Traffic
from lab.genl import ROUTE, Ipvs
from lab.netns import CLONE_NEWNET, setns
from systems import IP_VS, L4LB, service_lines

MEMORY = ("MemFree", "Slab", "VmallocUsed", "Percpu")
BARRIER, PAUSE = "pktgen", 0.05    # a module with parts for each namespace; seconds
# Groups, with the names of their schedulers and numbers of servers in the specification.
BY_SCHEDULER = {"schedulers": ("schedulers", "servers"),
                "many-servers": ("by_load", "few_and_many")}
IPVSCTL = str(Path(__file__).resolve().parents[2] / "build/ipvsctl")


def memory():
    """Two measures of bytes in use: minus the free bytes, and the allocators' sum, without caches."""
    Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")
    return in_use()


def in_use():
    """The same, as it is."""
    text = Path("/proc/meminfo").read_text("ascii")
    kb = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()}
    return -kb["MemFree"] * 1024, sum(kb[k] for k in MEMORY[1:]) * 1024


def connections(ns):
    """The number of connections of all servers in NS, active and inactive."""
    lines = map(str.split, ns.read("/proc/net/ip_vs").splitlines())
    return sum(int(w[4]) + int(w[5]) for w in lines if w[:1] == ["->"] and w[4].isdigit())


def busy():
    """CPU seconds spent so far, without those of this program."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()
    return (sum(map(int, fields[1:])) - int(fields[4]) - int(fields[5])) / 100 - time.process_time()


def filled(session, before):
    """Fills a table with many connections: time and memory for each."""
    bed, count = session.bed, session.spec["many"]
    bed.ns.run("ipvsadm --set 0 0 900")
    traffic = Traffic(bed, method="dr", flows=count)
    session.figure(f"filling, {count} connections", lambda: per_packet(traffic.each(64)))
    after = memory()
    for what, n in (("free pages", 0), ("allocators", 1)):
        session.figure(f"memory by {what}, {count} connections",
                       lambda n=n: (after[n] - before[n]) / count, "bytes")


def listing(session):
    """Reading /proc/net/ip_vs_conn, and counting with ipvsctl (by netlink with l4lb)."""
    count = session.spec["listing"]
    Traffic(session.bed, method="dr", flows=count).each(64)

    def measure():
        started = time.monotonic()
        lines = session.bed.ns.read("/proc/net/ip_vs_conn").count("\n") - 1
        if lines < count:
            raise MeasureError(f"{lines} of {count} connections are listed")
        return time.monotonic() - started
    session.figure(f"{count} connections", measure, "s")

    def ipvsctl():
        started = time.monotonic()
        said = session.bed.ns.run([IPVSCTL, "conn", "count"], timeout=600).stdout
        if int(said) < count:
            raise MeasureError(f"ipvsctl counts {said.strip()} of {count} connections")
        return time.monotonic() - started
    session.figure(f"ipvsctl conn count, {count} connections", ipvsctl, "s")


def expiry(session):
    """Idle connections expire: how late the last one does, and the cost of all."""
    bed, spec = session.bed, session.spec
    idle = spec["idle"]
    bed.ns.run(f"ipvsadm --set 0 0 {idle}")
    traffic = Traffic(bed, method="dr", flows=spec["many"])
    traffic.each(64)
    ended, spent, stall = time.monotonic(), busy(), 0
    while connections(bed.ns):
        slept = time.monotonic()
        time.sleep(0.005)
        stall = max(stall, time.monotonic() - slept - 0.005)
        if time.monotonic() - ended > idle + 120:
            session.sheet.fault(session.group, "late by", session.name,
                                f"{connections(bed.ns)} connections are left after 2 min")
            return
    late = time.monotonic() - ended - idle
    session.figure("late by", lambda: late, "s")
    session.figure("CPU time for each connection",
                   lambda: 1e9 * (busy() - spent) / spec["many"])
    session.figure("longest stall of a process", lambda: 1e3 * stall, "ms")


def configuration(session):
    """Services with four servers each: all at once, and one command each."""
    bed, count = session.bed, session.spec["services"][-1] // 5 or 1
    # VIPs that the standard services do not have.
    lines = [line for n in range(count)
             for line in service_lines(4, "tcp", 1000 + n, "nat", servers=4)]

    def timed(what, action):
        def measure():
            started = time.monotonic()
            action()
            return 1e3 * (time.monotonic() - started)
        session.figure(what, measure, "ms")

    clear(session)
    timed(f"ipvsadm -R, {count} services", lambda: session.director.configure(bed, lines))
    timed(f"ipvsadm -Ln, {count} services", lambda: bed.ns.run("ipvsadm -Ln", timeout=600))
    saved = bed.ns.run([IPVSCTL, "save"], timeout=600).stdout
    clear(session)
    timed(f"ipvsctl restore, {count} services",
          lambda: bed.ns.run([IPVSCTL, "restore"], text_input=saved, timeout=600))
    timed(f"ipvsadm -C, {count} services", lambda: clear(session))
    few = lines[:session.spec["commands"]]
    timed(f"ipvsadm, {len(few)} commands one by one", lambda: [
        bed.ns.run(["ipvsadm", *line.split()]) for line in few])
    clear(session)
    words = [w for n in range(len(few) // 5) for w in ipvsctl_words(1000 + n)]
    timed(f"ipvsctl, {len(words)} commands one by one", lambda: [
        bed.ns.run([IPVSCTL, *w]) for w in words])


def ipvsctl_words(vip):
    """The commands for one service of four servers."""
    lines = [line.split() for line in service_lines(4, "tcp", vip, "nat", servers=4)]
    name = lines[0][2]
    yield ["service", "add", "tcp", name, "scheduler", "rr"]
    for line in lines[1:]:
        yield ["server", "add", "tcp", name, line[4], "nat", "weight", "1"]


def clear(session):
    session.bed.ns.run("ipvsadm -C", timeout=600)


def services(session):
    """Packets to N services in turn."""
    clear(session)
    first = 20_000
    for count in session.spec["services"]:
        session.director.configure(session.bed, [
            line for n in range(count) for line in service_lines(4, "udp", first + n, "dr")])
        traffic = Traffic(session.bed, method="dr", vip=first, flows=max(count, 1000),
                          services=count)
        session.figure(f"new, {count} services", lambda t=traffic: per_packet(t.each(64)), x=count)
        session.figure(f"established, {count} services", lambda t=traffic: session.paced(
            lambda n: t.random(64, n)), x=count)
        clear(session)


def per_packet(result):
    return result.ns / result.packets


def schedulers(session):
    """New connections, by scheduler and number of servers."""
    clear(session)
    for scheduler in session.spec["schedulers"]:
        for count in session.spec["servers"]:
            session.director.configure(session.bed, service_lines(
                4, "udp", 100, "dr", servers=count, scheduler=scheduler))

            def measure(n=count):
                for _ in range(2):
                    traffic = Traffic(session.bed, vip=100, flows=session.spec["new"] // 4,
                                      scheduled=n > 1)
                    result = traffic.each(64)
                return per_packet(result)
            session.figure(f"{scheduler}, {count} servers", measure, x=count)
            clear(session)


def removal(session):
    """Real servers are added and removed one by one, by netlink; with expire_nodest_conn, beside
    few connections and beside many."""
    bed, spec = session.bed, session.spec
    clear(session)
    with Ipvs(bed.ns) as ipvs:
        for services, servers in spec["pools"]:
            session.figure(f"{services} x {servers} servers added one by one",
                           lambda n=services, m=servers: fill(ipvs, n, m), "ms")
            clear(session)
        bed.ns.sysctl("net/ipv4/vs/expire_nodest_conn", 1)
        for count in (0, spec["many"]):
            clear(session)
            session.director.standard(bed)
            if count:
                Traffic(bed, method="dr", flows=count).each(64)
            session.figure(f"a server removed beside {count} connections",
                           lambda: 1e3 * removed(ipvs), "us")
        bed.ns.sysctl("net/ipv4/vs/expire_nodest_conn", 0)
        clear(session)


def fill(ipvs, services, servers):
    """Milliseconds to add SERVERS to each of SERVICES."""
    names = [ipvs.service(f"198.18.0.{n + 1}", 80, sched="wlc") for n in range(services)]
    started = time.monotonic()
    for service in names:
        for n in range(servers):
            service.server(f"10.1.{n >> 8}.{n & 255}", 80, method=ROUTE)
    return 1e3 * (time.monotonic() - started)


def removed(ipvs, rounds=20):
    """Milliseconds to remove a server, the median of some."""
    service, times = ipvs.service("198.18.0.1", 80, sched="wlc"), []
    for n in range(rounds):
        service.server(f"10.1.0.{n + 1}", 80, method=ROUTE)
        started = time.monotonic()
        service.delete_server(f"10.1.0.{n + 1}", 80)
        times.append(1e3 * (time.monotonic() - started))
        time.sleep(0.02)        # ip_vs looks at its connections
    service.delete()
    return statistics.median(times)


def namespaces(session):
    """Namespaces that end together, with a service each and without."""
    count = session.spec["namespaces"]
    for kind, make in (("unused", lambda ipvs: None),
                       ("used", lambda ipvs: ipvs.service("198.18.0.1", 80, sched="rr"))):
        session.figure(f"{count} {kind} namespaces end",
                       lambda make=make: ended(bare(count, make)), "ms")


def bare(count, make):
    """COUNT namespaces; none is left if one cannot be made."""
    many = []
    try:
        for _ in range(count):
            many.append(Bare(make))
    except OSError:
        for each in many:
            os.close(each.fd)
        raise
    return many


def ended(many):
    """Milliseconds until all of MANY have gone. A module with parts for each namespace cannot
    be loaded while the kernel is at work on some."""
    try:
        subprocess.run(["modprobe", "-r", BARRIER], check=True)
    finally:
        started = time.monotonic()
        for each in many:
            os.close(each.fd)
    for action in (["modprobe", BARRIER], ["modprobe", "-r", BARRIER]) * 2:
        time.sleep(PAUSE)       # the kernel begins with those that are left
        subprocess.run(action, check=True)
    return 1e3 * (time.monotonic() - started - 4 * PAUSE)


class Bare:
    """A network namespace that only an open file holds."""

    def __init__(self, make):
        libc = ctypes.CDLL(None, use_errno=True)
        back = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        with Ipvs(self) as ipvs:
            make(ipvs)
        setns(back)
        os.close(back)

    @staticmethod
    def socket(*args):
        return socket.socket(*args)


def many_servers(session):
    """New connections with few servers and with many, by schedulers that choose by load."""
    clear(session)
    for scheduler in session.spec["by_load"]:
        for count in session.spec["few_and_many"]:
            session.director.configure(session.bed, service_lines(
                4, "udp", 100, "dr", servers=count, scheduler=scheduler))

            def once(n=1000):
                return per_packet(Traffic(session.bed, vip=100, flows=n, scheduled=True).each(64))

            def measure(once=once):
                once(session.spec["new"] // 4)
                return session.bracketed(once)
            session.figure(f"{scheduler}, {count} servers", measure, x=count)
            clear(session)


GROUPS = {"memory": filled, "listing": listing, "expiry": expiry,
          "configuration": configuration, "services": services, "schedulers": schedulers,
          "removal": removal, "namespaces": namespaces, "many-servers": many_servers}
PACKETS = ("services", "schedulers")
SLICED = ("many-servers",)
LOADS = 3               # of a module, without which slices make no figure


def measure(spec, sheet, session):
    for number in range(max(spec["again"], LOADS)):
        for group in [g for g in GROUPS if g in spec["groups"] and
                      (number < spec["again"] or g in SLICED)]:
            for director in (IP_VS, L4LB)[::1 if number % 2 == 0 else -1]:
                for part in parts(spec, group):
                    # Other groups do not depend on the fast path.
                    for path in director.fast_paths[:None if group in PACKETS else 1]:
                        with sheet.guard(group, path[0]):
                            one(part, sheet, session, director, path, group=group)


def parts(spec, group):
    """The specifications to measure with a table each: connections from another scheduler's
    turn would disturb."""
    if group not in BY_SCHEDULER:
        return [spec]
    names, _ = BY_SCHEDULER[group]
    return [spec | {names: [name]} for name in spec[names]]


def one(spec, sheet, session, director, path, *, group):
    """Measures GROUP. DIRECTOR is loaded after the bed is built: the memory is its own."""
    bed = Bed(servers=max(spec[BY_SCHEDULER[group][1]]) if group in BY_SCHEDULER else 4)
    name, value = path
    with bed.stand():
        before = memory() if group == "memory" else None
        with director.loaded():
            director.standard(bed)
            director.set_fast_path(bed, value)
            it = session(spec, sheet, bed, director, name, group=group)
            if group == "memory":
                filled(it, before)
            else:
                GROUPS[group](it)
            clear(it)
