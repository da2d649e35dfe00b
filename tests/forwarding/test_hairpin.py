# SPDX-License-Identifier: GPL-2.0
"""A real server that asks its own virtual service, by NAT: the recipe of doc/nat.md. In-tree
ip_vs needs the same."""

import contextlib

import pytest
from lab import packet
from lab.farm import http_get, udp_ask
from lab.settings import setting

WORD = {4: "ip", 6: "ip6"}


@contextlib.contextmanager
def masquerade(lab, family):
    ns = lab.director.ns
    word = WORD[family]
    net = network(lab, family)
    ns.nft(
        f"table {word} l4lb_hairpin {{\n chain post {{\n  type nat hook postrouting priority srcnat;\n"
        f"  {word} saddr {net} {word} daddr {net} masquerade\n }}\n}}\n")
    try:
        yield
    finally:
        ns.nft(f"delete table {word} l4lb_hairpin")


def network(lab, family):
    first = lab.rip(1, family)
    return first.rsplit("." if family == 4 else ":", 1)[0] + (".0/24" if family == 4 else ":/112")


def service(lab, family, port, proto):
    out = lab.ipvs.service(lab.vip(family), port, proto=proto, sched="rr")
    for number in (1, 2):
        out.server(lab.rip(number, family), port, method=lab.method)
    return out


def asked(lab, family, port, proto, timeout=8):
    """What two requests of the first real server get: the names of the servers."""
    ask = http_get if proto == packet.TCP else udp_ask
    out = []
    for _ in range(2):
        try:
            out.append(ask(lab.servers[0], lab.vip(family), port, timeout=timeout)[0])
        except OSError:
            out.append(None)
    return out


@pytest.mark.stock
@pytest.mark.smoke
@pytest.mark.parametrize("proto", (packet.TCP, packet.UDP), ids=("tcp", "udp"))
def test_recipe(nat, family, backend, proto):
    """Each request is answered, by itself and by the other one; a client elsewhere, too."""
    port = nat.http_port()
    service(nat, family, port, proto)
    with setting(nat, "conntrack", 1), masquerade(nat, family):
        assert sorted(asked(nat, family, port, proto)) == ["rs1", "rs2"]
        ask = http_get if proto == packet.TCP else udp_ask
        assert {ask(nat.client, nat.vip(family), port)[0] for _ in range(2)} == {"rs1", "rs2"}


@pytest.mark.stock
def test_control(nat, backend):
    """Without the rule there is no answer: the server's own goes another way."""
    port = nat.http_port()
    service(nat, 4, port, packet.UDP)
    with setting(nat, "conntrack", 1):
        assert asked(nat, 4, port, packet.UDP, timeout=1) == [None, None]
