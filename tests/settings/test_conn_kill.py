# SPDX-License-Identifier: GPL-2.0
"""KILL_CONNS and ipvsctl conn kill: connections are ended by a filter."""

import json
import subprocess
import time

import pytest
from lab import genl
from lab.cost import bounded
from lab.ctl import IPVSCTL
from lab.genl import is_refused
from lab.netns import SLOW
from lab.packet import ACK, RST, SCTP, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from test_get_conns import VIPS, many


@pytest.fixture
def l4lb(only_l4lb, nat):
    with genl.without_connections(nat.director.ns) as sock:
        yield sock


def ctl(nat, *words, code=0):
    with nat.director.ns.enter():
        done = subprocess.run([IPVSCTL, *" ".join(words).split()], capture_output=True, text=True,
                              check=False, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.mark.smoke
def test_by_server(nat, family, proto, l4lb):
    """Those of one server end at once, and its counts follow; others go on."""
    raw = Raw(nat, proto, family, numbers=(1, 2))
    clients = [raw.client() for _ in range(8)]
    for client in clients:
        client.open()
    assert l4lb.kill(server=raw.address(1), server_port=raw.dport) == 4
    assert (raw.dest(1)["active"], raw.dest(1)["inactive"]) == (0, 0)
    assert {bool(client.row()) for client in clients if client.number == 1} == {False}
    assert {bool(client.row()) for client in clients if client.number == 2} == {True}
    assert l4lb.kill(server=raw.address(1), server_port=raw.dport) == 0
    assert l4lb.kill(server=raw.address(2), client="9.9.9.9" if family == 4 else "2001:db8::9") == 0
    assert l4lb.kill(vip=raw.vip, vport=raw.port) == 4


def test_what_a_client_sees(nat, family, l4lb):
    """A segment gets a reset, a datagram goes to the next server."""
    raw = Raw(nat, TCP, family)
    client = raw.client()
    client.establish()
    assert l4lb.kill(client=client.address, client_port=client.sport) == 1
    client.send(ACK)
    assert client.answered().flags & RST
    raw = Raw(nat, UDP, family, numbers=(1, 2))
    client = raw.client()
    first = client.open()
    assert l4lb.kill(client=client.address, client_port=client.sport) == 1
    assert client.open() != first


@pytest.mark.parametrize("kind", (TCP, SCTP))
def test_reset(nat, family, kind, l4lb):
    """With RESET both ends hear of it, where the service notes the numbers."""
    raw = Raw(nat, kind, family)
    l4lb.set_policy(raw.service, on_idle=1)
    client = raw.client()
    client.establish()
    client.send(ACK)
    client.arrive()
    assert l4lb.kill(reset=True, client=client.address, client_port=client.sport) == 1
    client.answered()
    client.arrive()
    assert client.row() is None


def test_templates(nat, l4lb):
    """The connections of a template that is ended go on, without it."""
    raw = Raw(nat, UDP, timeout=600, flags=genl.PERSISTENT, numbers=(1, 2))
    client = raw.client()
    first = client.open()
    assert l4lb.kill(flags=genl.F_TEMPLATE, vip=raw.vip) == 1
    assert l4lb.conns(flags=genl.F_TEMPLATE) == []
    assert client.open() == first
    assert raw.client(client.address).open() != first
    assert l4lb.kill() == 3
    assert l4lb.conns() == []


@pytest.mark.smoke
def test_refused(nat, l4lb):
    """A request that does not say which ends none."""
    Raw(nat, UDP).client().open()
    assert "an empty one means all" in is_refused(lambda: l4lb.request(genl.KILL_CONNS), 22)
    is_refused(lambda: l4lb.kill(state="HALF"), 22)
    assert "no filter: this would end all 1 connections" in ctl(nat, "conn kill", code=2)
    assert "would kill 1 connections" in ctl(nat, "-n conn kill proto udp")
    assert len(l4lb.conns()) == 1
    assert json.loads(ctl(nat, "-j conn kill proto tcp"))["killed"] == 0
    assert ctl(nat, "conn kill --yes") == "killed 1 connections\n"
    assert l4lb.conns() == []


def test_drain_kill(nat, l4lb):
    """What is left of a drained server's connections ends; the others go on."""
    raw = Raw(nat, UDP, numbers=(1, 2))
    for _ in range(4):
        raw.client().open()
    said = ctl(nat, f"server drain udp:{raw.vip}:{raw.port} {raw.address(1)}:{raw.dport} --kill")
    assert said.startswith("killed 2 connections\n")
    assert [c["server"] for c in l4lb.conns()] == [raw.address(2)] * 2


def test_many(only_l4lb, backend, request):
    """100,000 end in one request, each at about the cost of one of a few; a filter that few
    match leaves the others."""
    backend.need_scheduler("rr")
    half = amount(request.config, few=10000 // SLOW, all=50000 // SLOW)

    def seconds(number):
        with many(number, number) as ns, genl.L4lb(ns) as l4lb:
            assert l4lb.kill(vip=VIPS[1], vport=7) == 1
            start = time.monotonic()
            assert l4lb.kill() == 2 * number + 1, "and two templates, without that one"
            took = time.monotonic() - start
            assert l4lb.conns() == []
            print(f"{2 * number + 1} in {took * 1000:.1f} ms")
            return took / number

    bounded(5, lambda: seconds(half), lambda: seconds(500))
