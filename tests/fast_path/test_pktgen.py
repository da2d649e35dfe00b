# SPDX-License-Identifier: GPL-2.0
"""pktgen, the kernel's packet generator, keeps a reference to each packet that it sends.
The fast path takes such packets, too, and does not change what is not its own."""

import functools

import pytest
from lab import pktgen
from lab.flows import admitted, counted, ready
from lab.netns import run
from lab.packet import UDP

pytestmark = pytest.mark.usefixtures("only_l4lb")

COUNT = 50


@pytest.fixture(scope="module", autouse=True)
def generator():
    run(["modprobe", "pktgen"])
    yield
    run(["modprobe", "-r", "pktgen"])


def generate(node, client, more):
    """Let pktgen send COUNT packets of CLIENT's flow from NODE's eth0."""
    write = functools.partial(pktgen.write, node.ns)
    raw, six = client.raw, "6" if client.raw.family == 6 else ""
    mac = ":".join(f"{b:02x}" for b in raw.client_tap.peer)
    write("kpktgend_0", "rem_device_all", "add_device eth0")
    try:
        write("eth0", f"count {COUNT}", "delay 0", "pkt_size 100", f"dst_mac {mac}",
              f"dst{six} {raw.vip}", f"src6 {client.address}" if six else
              f"src_min {client.address}", f"udp_src_min {client.sport}",
              f"udp_src_max {client.sport}", f"udp_dst_min {raw.port}",
              f"udp_dst_max {raw.port}", *more)
        write("pgctrl", "start")
    finally:
        write("kpktgend_0", "rem_device_all")


@pytest.mark.smoke
def test_as_its_manual_shows_it(lab, family):
    raw = ready(lab, UDP, family)
    client = admitted(raw)
    with counted(raw, fast=COUNT):
        generate(lab.client, client, ["flag UDPCSUM"] * (family == 6))
        got = client.arrive(COUNT)
    assert {(p.inner() if p.is_tunnel else p).ttl for _, p in got} == {31}


def test_the_same_packet_again(nat):
    """pktgen hands one packet to the stack many times."""
    raw = ready(nat)
    client = admitted(raw)
    with counted(raw, fast=COUNT):
        generate(nat.director, client, ["xmit_mode netif_receive", "burst 10"])
        got = client.arrive(COUNT)
    assert {(p.ttl, p.dst, p.dport) for _, p in got} == {(31, raw.address(1), raw.dport)}
