# SPDX-License-Identifier: GPL-2.0
"""Real HTTP and UDP through every method and scheduler: shares, order, content."""

import contextlib
import errno
import hashlib

import pytest
from lab import packet
from lab.farm import Http, http_get, pattern, udp_ask
from lab.netns import run

RS = ("rs1", "rs2", "rs3", "rs4")


def balance(lab, family, port, sched, weights=(1, 1, 1, 1), *, proto=packet.TCP):
    service = lab.ipvs.service(lab.vip(family), port, proto=proto, sched=sched)
    for number, weight in enumerate(weights, 1):
        service.server(lab.rip(number, family), port, method=lab.method, weight=weight)
    return service


def rr_order(backend, count):
    """l4lb serves in the order in which servers were added, ip_vs in the reverse order."""
    turn = RS if backend.is_l4lb else RS[::-1]
    return [turn[i % 4] for i in range(count)]


# Weights 3, 2, 1, 0 on rs1..rs4. ip_vs starts at the lowest level because it met
# the servers one by one.
WRR = {"l4lb": "rs1 rs1 rs2 rs1 rs2 rs3".split(),
       "ip_vs": "rs3 rs2 rs1 rs1 rs2 rs1".split()}


def test_rr(lab, family, backend):
    port = lab.http_port()
    balance(lab, family, port, "rr")
    got = [http_get(lab.client, lab.vip(family), port, f"/{i}") for i in range(12)]
    assert [name for name, _ in got] == rr_order(backend, 12)
    for i, (name, body) in enumerate(got):
        assert body.decode() == f"{name} /{i} {lab.cip(family)}\n"


def test_rr_udp(lab, family, backend):
    port = lab.http_port()
    balance(lab, family, port, "rr", proto=packet.UDP)
    got = [udp_ask(lab.client, lab.vip(family), port, b"%d" % i) for i in range(8)]
    assert got == [(name, b"%d" % i) for i, name in enumerate(rr_order(backend, 8))]


def test_wrr(lab, family, backend):
    port = lab.http_port()
    balance(lab, family, port, "wrr", weights=(3, 2, 1, 0))
    got = [http_get(lab.client, lab.vip(family), port)[0] for _ in range(18)]
    assert sorted(got) == sorted(["rs1"] * 9 + ["rs2"] * 6 + ["rs3"] * 3)
    if backend.is_l4lb:
        # As schedulers/wrr.c says for weights A 3, B 2, C 1: A B C A B A.
        assert got == "rs1 rs2 rs3 rs1 rs2 rs1".split() * 3
    else:
        assert got == WRR["ip_vs"] * 3


def least(weights, active):
    """The server that lc and wlc choose: least load per weight; of equals, the newest."""
    order = [n for n in (4, 3, 2, 1) if weights[n - 1] > 0]
    return min(order, key=lambda n: active[n] * 257 / weights[n - 1])


@pytest.mark.parametrize("sched, weights", [
    ("lc", (1, 1, 1, 1)), ("lc", (1, 2, 0, 4)),
    ("wlc", (1, 1, 1, 1)), ("wlc", (1, 2, 3, 4)), ("wlc", (5, 1, 0, 1))])
def test_least_connections(lab, family, sched, weights):
    """Each new connection goes to the server with the fewest open ones, by weight."""
    port = lab.http_port()
    service = balance(lab, family, port, sched, weights)
    active = dict.fromkeys((1, 2, 3, 4), 0)
    model = weights if sched == "wlc" else [min(w, 1) for w in weights]
    with contextlib.ExitStack() as held:
        for i in range(10):
            h = held.enter_context(Http(lab.client, lab.vip(family), port))
            h.request(path=f"/{i}")
            want = least(model, active)
            assert h.server == f"rs{want}", (i, active)
            active[want] += 1
        counts = {d["addr"]: d["active"] for d in service.servers()}
        assert counts == {lab.rip(n, family): active[n] for n in active}


def set_offloads(lab, state, gro):
    for node, device in ((lab.client, "eth0"), (lab.director, "eth0"),
                         (lab.director, lab.back), (lab.nodes["router"], "rs1"),
                         (lab.servers[0], "eth0")):
        node.ns.run(["ethtool", "-K", device, "tso", state, "gso", state, "gro", gro,
                     "tx", state], check=False)


@pytest.mark.stock
@pytest.mark.smoke
@pytest.mark.parametrize("offload", ("on", "off"))
def test_bulk(lab, family, offload):
    """Megabytes both ways, with segmentation and checksums left to the device
    or done by the stack; the content is compared byte by byte."""
    port = lab.http_port()
    set_offloads(lab, offload, gro=offload)
    service = lab.ipvs.service(lab.vip(family), port, sched="rr")
    service.server(lab.rip(1, family), port, method=lab.method)
    size = 3 << 20
    data = pattern(size)
    with Http(lab.client, lab.vip(family), port, timeout=60) as h:
        assert h.request(path=f"/bulk/{size}") == data
        assert h.request("PUT", "/", data).decode() == hashlib.sha256(data).hexdigest()
        assert h.request(path="/after").decode().split()[0] == "rs1"
    set_offloads(lab, "on", gro="off")  # as they are by default


def ask_again(lab, family, port, data):
    """Ask a second time if the first datagram was too large for a tunnel."""
    try:
        return udp_ask(lab.client, lab.vip(family), port, data)
    except OSError as e:
        if lab.shape != "tun" or e.errno != errno.EMSGSIZE:
            raise
    return udp_ask(lab.client, lab.vip(family), port, data)


def test_udp_sizes(lab, family):
    """Datagrams of every awkward size, up to one that needs fragments."""
    port = lab.http_port()
    service = lab.ipvs.service(lab.vip(family), port, proto=packet.UDP, sched="rr")
    service.server(lab.rip(1, family), port, method=lab.method)
    for size in (0, 1, 2, 3, 7, 8, 511, 1400, 1472, 1473, 4000, 9001):
        data = pattern(size)
        assert ask_again(lab, family, port, data) == ("rs1", data), size


@pytest.mark.smoke
def test_curl(lab):
    """The same with curl."""
    port = lab.http_port()
    balance(lab, 4, port, "rr")
    with lab.client.ns.enter():
        got = {run(["curl", "-sS", "-m", "20", f"http://{lab.vip()}:{port}/"]).stdout.split()[0]
               for _ in range(4)}
    assert got == set(RS)
