# SPDX-License-Identifier: GPL-2.0
"""Debian's keepalived, unmodified, in front of real servers that die and return."""

import contextlib
import time

import pytest
from lab.farm import Http, http_get
from lab.full_nat import addresses, pool
from lab.genl import MASQ, PERSISTENT, ROUTE, TUNNEL
from lab.keepalived import Keepalived, block, dead
from lab.packet import SCTP, TCP, UDP

TCP_CHECK = block("TCP_CHECK", "connect_timeout 5", "retry 0", "warmup 0")
HTTP_GET = block("HTTP_GET", block("url", "path /", "status_code 200"),
                 "connect_timeout 5", "retry 0", "warmup 0")
OFTEN = ("delay_loop 1", "protocol TCP")


def server(lab, number, port, *lines, check=TCP_CHECK):
    return block(f"real_server {lab.rip(number)} {port}", *(lines or ("weight 1",)), check)


def service(lab, port, *lines, sched="rr"):
    return block(f"virtual_server {lab.vip()} {port}", *OFTEN, f"lb_algo {sched}",
                 "lb_kind NAT", *lines)


@pytest.fixture
def run(nat, tmp_path):
    """run(blocks...): keepalived, started."""
    with contextlib.ExitStack() as stack:
        def start(*blocks, **options):
            return stack.enter_context(Keepalived(nat.director.ns, tmp_path, *blocks, **options))
        yield start


def weights(lab):
    """{(server's address): weight} of the only service; None without it."""
    found = lab.ipvs.services()
    if not found:
        return None
    only = lab.ipvs.service(found[0]["addr"], found[0]["port"], add=False)
    return {d["addr"]: d["weight"] for d in only.servers()}


def is_serving(lab, *numbers, weight=1):
    return lambda: weights(lab) == {lab.rip(n): weight for n in numbers}


def asked(connection):
    """The server that answers on an open connection."""
    connection.request()
    return connection.server


@pytest.mark.timer
@pytest.mark.smoke
@pytest.mark.parametrize("check", (TCP_CHECK, HTTP_GET), ids=("tcp", "http"))
def test_server_dies_and_returns(nat, run, check):
    port = nat.http_port()
    checker = run(service(nat, port, *(server(nat, n, port, check=check) for n in (1, 2))))
    checker.until(is_serving(nat, 1, 2), "both servers")
    with dead(nat.servers[0], port):
        checker.until(is_serving(nat, 2), "the dead server is removed")
        assert {http_get(nat.client, nat.vip(), port)[0] for _ in range(3)} == {"rs2"}
    checker.until(is_serving(nat, 1, 2), "it is back")
    assert {http_get(nat.client, nat.vip(), port)[0] for _ in range(2)} == {"rs1", "rs2"}


@pytest.mark.timer
def test_quorum_and_sorry_server(nat, run, tmp_path):
    """Below the quorum the sorry server takes over, and scripts are run."""
    port, told = nat.http_port(), tmp_path / "told"
    script = tmp_path / "tell"
    script.write_text(f"#!/bin/sh\necho $1 >>{told}\n", encoding="ascii")
    script.chmod(0o755)

    def said():
        return told.read_text(encoding="ascii").split() if told.exists() else []

    checker = run(service(nat, port, "quorum 2", f'quorum_up "{script} up"',
                          f'quorum_down "{script} down"', f"sorry_server {nat.rip(4)} {port}",
                          *(server(nat, n, port) for n in (1, 2, 3))))
    checker.until(is_serving(nat, 1, 2, 3), "three servers")
    checker.until(lambda: said() == ["up"], "quorum_up at the start")
    with dead(nat.servers[0], port):
        checker.until(is_serving(nat, 2, 3), "one less, quorum kept")
        assert said() == ["up"]
        with dead(nat.servers[1], port):
            checker.until(is_serving(nat, 4), "the sorry server")
            assert http_get(nat.client, nat.vip(), port)[0] == "rs4"
            checker.until(lambda: said()[-1:] == ["down"], "quorum_down")
        checker.until(is_serving(nat, 2, 3), "quorum again")
        checker.until(lambda: said()[-1:] == ["up"], "quorum_up")


@pytest.mark.timer
def test_inhibit_on_failure(nat, run):
    """Weight 0 instead of removal: connections stay, and no new ones come."""
    port = nat.http_port()
    checker = run(service(nat, port, *(
        server(nat, n, port, "weight 3", "inhibit_on_failure") for n in (1, 2)), sched="wrr"))
    checker.until(is_serving(nat, 1, 2, weight=3), "both servers")
    with contextlib.ExitStack() as stack:
        pair = [stack.enter_context(Http(nat.client, nat.vip(), port)) for _ in range(2)]
        old = next(h for h in pair if asked(h) == "rs1")
        with dead(nat.servers[0], port):
            checker.until(lambda: weights(nat) == {nat.rip(1): 0, nat.rip(2): 3}, "weight 0")
            assert asked(old) == "rs1"
            assert {http_get(nat.client, nat.vip(), port)[0] for _ in range(3)} == {"rs2"}
        checker.until(is_serving(nat, 1, 2, weight=3), "its weight again")


@pytest.mark.timer
@pytest.mark.usefixtures("only_l4lb")
@pytest.mark.parametrize("ramp", (60, 0), ids=("ramp", "control"))
def test_what_it_does_not_know(nat, run, l4lb, ramp):
    """A server that returns starts slowly, and neither that nor a reload loses a setting that
    keepalived cannot have."""
    port = nat.http_port()
    checker = run(service(nat, port, *(server(nat, n, port) for n in (1, 2)), sched="wlc"))
    checker.until(is_serving(nat, 1, 2), "both servers")
    named = nat.ipvs.service(nat.vip(), port, add=False)
    with addresses(nat, pool()), contextlib.ExitStack() as stack:
        def opened(count):
            """Servers of connections that stay."""
            return [asked(stack.enter_context(Http(nat.client, nat.vip(), port))) for _ in range(count)]
        l4lb.set_policy(named, ramp=ramp, snat=pool(), log=1, limit_conns=1000)
        settings = l4lb.policy(named)
        time.sleep(ramp)            # a service that is new does not ramp
        with dead(nat.servers[0], port):
            checker.until(is_serving(nat, 2), "the dead server is removed")
            assert opened(12) == ["rs2"] * 12
        checker.until(is_serving(nat, 1, 2), "it is back")
        newcomers = opened(8)
        assert newcomers.count("rs1") <= 2 if ramp else newcomers == ["rs1"] * 8, newcomers
        checker.reload(service(nat, port, server(nat, 1, port, "weight 7"), server(nat, 2, port), sched="wrr"))
        checker.until(lambda: weights(nat) == {nat.rip(1): 7, nat.rip(2): 1}, "the new weight")
        assert l4lb.policy(named) == settings and named.get()["sched"] == "wrr"


@pytest.mark.smoke
def test_reload(nat, run):
    """SIGHUP applies only the differences: a client's connection goes on, and no
    counter is lost."""
    port = nat.http_port()
    checker = run(service(nat, port, *(server(nat, n, port) for n in (1, 2))))
    checker.until(is_serving(nat, 1, 2), "both servers")
    named = nat.ipvs.service(nat.vip(), port, add=False)
    with Http(nat.client, nat.vip(), port) as first, Http(nat.client, nat.vip(), port) as second:
        stays, goes = sorted((first, second), key=asked)
        before = checker.until(lambda: named.stats["conns"] == 2 and named.stats, "counters")
        checker.reload(service(nat, port, server(nat, 1, port, "weight 7"),
                               server(nat, 3, port), sched="wrr"))
        checker.until(lambda: weights(nat) == {nat.rip(1): 7, nat.rip(3): 1}, "the new servers")
        assert named.get()["sched"] == "wrr"
        assert asked(stays) == "rs1"
        kept = named.find(nat.rip(1))
        assert kept["active"] == 1
        checker.until(lambda: named.stats["inpkts"] > before["inpkts"], "more packets")
        assert named.stats["conns"] == 2
        assert goes.server == "rs2"


@pytest.mark.smoke
def test_every_kind(nat, run):
    """All forwarding methods, families and marks arrive in the kernel as configured."""
    rip, rip6 = nat.rip(1), nat.rip(1, 6)
    plain = ("delay_loop 9", "protocol TCP", "lb_algo wlc")

    def real(address, port, *lines):
        return block(f"real_server {address} {port}", "weight 1", *lines)

    checker = run(
        block(f"virtual_server {nat.vip()} 1001", *plain, "lb_kind NAT", real(rip, 8080)),
        block(f"virtual_server {nat.vip()} 1002", *plain, "lb_kind DR", real(rip, 1002)),
        block(f"virtual_server {nat.vip()} 1003", *plain, "lb_kind TUN", real(rip, 1003)),
        block(f"virtual_server {nat.vip()} 1004", *plain, "lb_kind TUN type gue port 6080 nocsum",
              real(rip, 1004, "uthreshold 9", "lthreshold 4")),
        block(f"virtual_server {nat.vip()} 1005", "delay_loop 9", "protocol UDP", "ops",
              "lb_algo rr", "lb_kind NAT", real(rip, 53)),
        block(f"virtual_server {nat.vip()} 1006", "delay_loop 9", "protocol SCTP",
              "lb_algo sh", "sh-port", "lb_kind DR", real(rip, 1006)),
        block(f"virtual_server {nat.vip(6)} 1001", *plain, "lb_kind NAT",
              "persistence_timeout 90", "persistence_granularity 64", real(rip6, 8080)),
        block("virtual_server fwmark 7", *plain, "lb_kind DR", "persistence_timeout 60",
              "persistence_granularity 255.255.255.0", real(rip, 0)),
        block("virtual_server fwmark 7", *plain, "ip_family inet6", "lb_kind NAT",
              real(rip6, 0)))
    checker.until(lambda: len(nat.ipvs.services()) == 9, "nine services")
    found = {(s.get("fwmark"), s["af"], s.get("port"), s.get("proto")):
             (s["sched"], s["flags"], s["timeout"], s["netmask"]) for s in nat.ipvs.services()}
    host, host6 = b"\xff" * 4, (128).to_bytes(4, "little")
    assert found == {
        **{(None, 2, port, TCP): ("wlc", 2, 0, host) for port in range(1001, 1005)},
        (None, 2, 1005, UDP): ("rr", 6, 0, host),
        (None, 2, 1006, SCTP): ("sh", 0x12, 0, host),
        (None, 10, 1001, TCP): ("wlc", 2 | PERSISTENT, 90, (64).to_bytes(4, "little")),
        (7, 2, None, None): ("wlc", 2 | PERSISTENT, 60, b"\xff\xff\xff\0"),
        (7, 10, None, None): ("wlc", 2, 0, host6)}

    def only(*name, **options):
        servers = nat.ipvs.service(*name, add=False, **options).servers()
        return [(d["addr"], d["port"], d["method"], d["upper"], d["lower"]) for d in servers]

    checker.until(lambda: only(fwmark=7, af=10), "the last server")
    assert only(nat.vip(), 1001) == [(rip, 8080, MASQ, 0, 0)]
    assert only(nat.vip(), 1002) == [(rip, 1002, ROUTE, 0, 0)]
    assert only(nat.vip(), 1003) == [(rip, 1003, TUNNEL, 0, 0)]
    assert only(nat.vip(), 1004) == [(rip, 1004, TUNNEL, 9, 4)]
    assert only(nat.vip(6), 1001) == [(rip6, 8080, MASQ, 0, 0)]
    assert only(fwmark=7) == [(rip, 0, ROUTE, 0, 0)]
    assert only(fwmark=7, af=10) == [(rip6, 0, MASQ, 0, 0)]
    gue = nat.director.ns.run("ipvsadm -Sn").stdout
    assert f"-a -t {nat.vip()}:1004 -r {rip}:1004 -i -w 1 --tun-type gue --tun-port 6080" in gue


def test_timeouts_and_end(nat, tmp_path):
    """Timeouts are set; at its end keepalived removes its own services only."""
    port = nat.http_port()
    nat.ipvs.service(nat.vip(), 999)
    with Keepalived(nat.director.ns, tmp_path, service(nat, port, server(nat, 1, port)),
                    options=" lvs_timeouts tcp 100 tcpfin 20 udp 30") as checker:
        checker.until(lambda: len(nat.ipvs.services()) == 2, "its service")
        checker.until(lambda: nat.ipvs.timeouts() == (100, 20, 30), "its timeouts")
    assert [s["port"] for s in nat.ipvs.services()] == [999]
