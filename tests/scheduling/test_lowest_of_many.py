# SPDX-License-Identifier: GPL-2.0
"""Services with so many real servers that not each is looked at, see
kernel/service/tournament.c: no change of a server is forgotten, whoever makes it."""

import os

import pytest
from lab import packet
from lab.netns import wait_until
from lab.oracle import Oracle
from lab.packet import ACK, RST, SYN
from lab.rows import amount

TAKES = 120
SIZE = 300
ASKED = 40
LOADS = {"lc": lambda s: (256 * s["active"] + s["active"] + s["inactive"], 1),
         "wlc": lambda s: (256 * s["active"] + s["active"] + s["inactive"], s["weight"]),
         "sed": lambda s: (s["active"] + 1, s["weight"]),
         "nq": lambda s: (s["active"] + 1 if s["active"] else 0, s["weight"])}

pytestmark = pytest.mark.usefixtures("only_l4lb")


def flow(part, i):
    return f"10.9.{part}.{1 + i % 200}", 2000 + i, "10.50.0.1", 80


def traffic(oracle, part, count):
    """On processor PART: connections are established, and every other one ends."""
    os.sched_setaffinity(0, {part})
    for i in range(count):
        for flags in (SYN, ACK):
            oracle.tap.send(packet.tcp_packet(*flow(part, i), flags))
        if i >= 50 and i % 2:
            oracle.tap.send(packet.tcp_packet(*flow(part, i - 50), RST))


def on_both_processors(oracle, count):
    children = []
    for part in range(2):
        child = os.fork()
        if not child:
            try:
                traffic(oracle, part, count)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    return children


def lowest(servers, load):
    """The index of a scan's choice; SERVERS are newest first."""
    best = None
    for i, s in enumerate(servers):
        if s["weight"] and (best is None or load(s)[0] * load(servers[best])[1] <
                            load(servers[best])[0] * load(s)[1]):
            best = i
    return best


def calm(service):
    """The servers, if no connection is about to expire."""
    servers = service.servers()
    return servers if not sum(s["inactive"] for s in servers) else None


@pytest.mark.timer
@pytest.mark.parametrize("gone", (1, 17))
def test_a_connection_ends(dr_with_rules, gone):
    """Each of 20 servers has a connection, until that of one expires: it gets the next."""
    dr = dr_with_rules
    with Oracle(dr) as oracle:
        servers = [f"10.8.{70 + gone}.{n}" for n in range(1, 21)]
        service = oracle.service("wlc")
        for server in servers:
            service.server(server, method=dr.method)
        flows = [("udp", f"10.9.3.{gone}", 3000 + n, "10.50.0.1", 80) for n in range(21)]
        dr.ipvs.timeouts(udp=300)
        try:
            for flow_ in flows[:20]:
                oracle.send(*flow_)
            chosen = oracle.chosen()
            dr.ipvs.timeouts(udp=1)
            oracle.send(*next(f for f in flows if chosen.get(f) == servers[gone]))
            wait_until(lambda: not service.find(servers[gone])["inactive"], 30, "it expires")
            oracle.send(*flows[20])
            assert oracle.chosen()[flows[20]] == servers[gone]
        finally:
            dr.ipvs.timeouts(udp=300)
            service.delete()


@pytest.mark.emulated
@pytest.mark.parametrize("sched", [
    "wlc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("lc", "sed", "nq"))])
def test_two_processors(dr_with_rules, sched, request):
    """Both begin and end connections of one service; then each choice is that of a scan."""
    if os.cpu_count() < 2:
        pytest.skip("one processor; runs in QEMU (suite stages 6.12 and 6.1)")
    dr = dr_with_rules
    with Oracle(dr) as oracle:
        os.sched_setaffinity(0, range(os.cpu_count()))
        service = oracle.service(sched)
        addresses = [f"10.8.{5 + i // 200}.{1 + i % 200}" for i in range(SIZE)]
        for i, address in enumerate(addresses):
            service.server(address, method=dr.method, weight=1 + i % 4)
        children = on_both_processors(oracle, amount(request.config, few=80, all=400))
        for n in range(20):
            service.edit_server(addresses[n], method=dr.method, weight=n % 3)
        assert [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children] == [0, 0]
        oracle.fence()
        servers = wait_until(lambda: calm(service), 60, "closed connections expire", step=1)
        for i in range(ASKED):
            oracle.send("tcp", *flow(7, i))
            servers[lowest(servers, LOADS[sched])]["active"] += 1
        oracle.fence()
        assert [s["active"] + s["inactive"] for s in service.servers()] == \
            [s["active"] for s in servers]
        oracle.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 1)
        service.delete()
        oracle.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 0)
