# SPDX-License-Identifier: GPL-2.0
"""kube-proxy's requirements for IPVS mode, and its use of ip_vs: its sysctls, its
probe, a service, a graceful removal.

It sends the messages of github.com/moby/ipvs: IPv4 addresses of four bytes,
every attribute of the service in each request, six of a destination.
"""

import socket

import pytest
from lab import genl, packet
from lab.farm import Http, http_get
from lab.genl import attr, be16, text, u16, u32
from lab.packet import TCP

# Written at start-up; one that is missing is fatal. Kernels before 5.9 also get
# conn_reuse_mode 0.
SYSCTLS = {"net/ipv4/vs/conntrack": 1, "net/ipv4/vs/expire_nodest_conn": 1,
           "net/ipv4/vs/expire_quiescent_template": 1, "net/ipv4/ip_forward": 1,
           "net/ipv4/conf/all/arp_ignore": 1, "net/ipv4/conf/all/arp_announce": 2}
PROBE = ("198.51.100.0", 20000)


def svc(address, port, sched="rr", flags=0, timeout=0):
    family = genl.family_of(address)
    mask = 0xffffffff if family == socket.AF_INET else 128
    return attr(genl.SERVICE, [
        attr(genl.S_AF, u16(family)), attr(genl.S_PROTOCOL, u16(TCP)),
        attr(genl.S_ADDR, packet.packed(address)), attr(genl.S_PORT, be16(port)),
        attr(genl.S_SCHED, text(sched)), attr(genl.S_FLAGS, u32(flags) + u32(0xffffffff)),
        attr(genl.S_TIMEOUT, u32(timeout)), attr(genl.S_NETMASK, u32(mask))])


def dest(address, port, weight=1):
    return attr(genl.DEST, [
        attr(genl.D_ADDR, packet.packed(address)), attr(genl.D_PORT, be16(port)),
        attr(genl.D_FWD, u32(genl.MASQ)), attr(genl.D_WEIGHT, u32(weight)),
        attr(genl.D_U, u32(0)), attr(genl.D_L, u32(0))])


def listed(ipvs):
    """A dump as moby asks for it, with an empty SERVICE, and reads it: the
    first attribute of each message."""
    return [genl.decode_service(genl.attributes(payload)[0][1])
            for _, payload in ipvs.dump(genl.GET_SERVICE, attr(genl.SERVICE, b""))]


def servers(ipvs, service):
    return [genl.decode_dest(genl.attributes(payload)[0][1])
            for _, payload in ipvs.dump(genl.GET_DEST, service)]


@pytest.fixture
def node(nat):
    """The director as a Kubernetes node; its sysctls come back afterwards."""
    ns = nat.director.ns
    before = {name: ns.sysctl(name) for name in SYSCTLS}
    for name, value in SYSCTLS.items():
        ns.sysctl(name, value)
        assert ns.sysctl(name) == str(value), name
    yield nat
    for name, value in before.items():
        ns.sysctl(name, value)


@pytest.mark.parametrize("sched", ("rr", "lc", "dh", "sh", "sed", "nq"))
def test_start_up_probe(nat, backend, sched):
    """CanUseIPVSProxier: list, add a dummy service, find it, delete it."""
    backend.need_scheduler(sched)
    assert listed(nat.ipvs) == []
    service = svc(*PROBE, sched)
    nat.ipvs.request(genl.NEW_SERVICE, service)
    found = [s for s in listed(nat.ipvs) if (s["addr"], s["port"]) == PROBE]
    assert [(s["sched"], s["flags"]) for s in found] == [(sched, genl.HASHED)]
    nat.ipvs.request(genl.DEL_SERVICE, service)
    assert listed(nat.ipvs) == []


@pytest.mark.smoke
def test_node(node, family):
    """Sysctls, a ClusterIP, requests from a pod and from the node itself, a server
    removed as kube-proxy does: weight 0, wait, delete."""
    ipvs, port = node.ipvs, node.http_port()
    ipvs.timeouts(0, 0, 0)
    vip = node.vip(family)
    service = svc(vip, port)
    ipvs.request(genl.NEW_SERVICE, service)
    for n in (1, 2):
        ipvs.request(genl.NEW_DEST, service + dest(node.rip(n, family), port))
    assert {http_get(node.client, vip, port)[0] for _ in range(2)} == {"rs1", "rs2"}
    assert {http_get(node.director, vip, port)[0] for _ in range(2)} == {"rs1", "rs2"}
    with Http(node.client, vip, port) as held:
        held.request()
        number = int(held.server[2:])
        ipvs.request(genl.SET_DEST, service + dest(node.rip(number, family), port, 0))
        others = {http_get(node.client, vip, port)[0] for _ in range(2)}
        assert held.server not in others
        held.request()
        busy = [d for d in servers(ipvs, service) if d["weight"] == 0]
        assert busy[0]["active"] == 1
    ipvs.request(genl.DEL_DEST, service + dest(node.rip(number, family), port))
    assert [d["addr"] for d in servers(ipvs, service)] == [node.rip(3 - number, family)]
    ipvs.request(genl.DEL_SERVICE, service)
    assert listed(ipvs) == []
