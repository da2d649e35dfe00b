# SPDX-License-Identifier: GPL-2.0
"""The module is exchanged under traffic as doc/installation.md says, and no connection is lost."""

import contextlib
import os
import threading
import time
from pathlib import Path

import pytest
from lab.ctl import IPVSCTL
from lab.genl import PERSISTENT
from lab.netns import join_all
from lab.packet import ACK, RST, TCP, UDP
from lab.raw import Raw
from lab.rows import amount

NO_MODULE = True    # these tests load and unload it
pytestmark = pytest.mark.usefixtures("only_l4lb", "unloaded")
TOP = Path(__file__).resolve().parents[2]
PATH = f"{Path(TOP, IPVSCTL).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
VIP, NETWORK = "192.0.2.10", "10.0.0.0/24"      # in the document
BEGINS, ENDS = "nft add table", "nft delete table"


def steps():
    """The document's commands."""
    text = (TOP / "doc/installation.md").read_text("utf-8").partition("## Upgrade")[2]
    block = text[text.index("\n    ipvsctl save"):text.index("\n| what |")]
    return [line.partition("  #")[0].strip() for line in block.splitlines() if line.strip()]


def adapted(command, raws):
    """COMMAND for each address of the lab that it is about."""
    v6 = {False: "ip", True: "ip6"}
    if VIP in command:
        places = sorted({raw.vip for raw in raws})
    elif NETWORK in command:
        places = sorted({raw.address(n) for raw in raws for n in raw.numbers})
    else:
        return [command]
    return [command.replace(VIP, a).replace(NETWORK, a).replace(" ip ", f" {v6[':' in a]} ")
            for a in places]


def exchange(lab, raws):
    """Seconds for which packets are held back."""
    begun = ended = 0
    for step in steps():
        for command in adapted(step, raws):
            if command.startswith(BEGINS):
                begun = time.monotonic()
            lab.director.ns.run(["env", f"PATH={PATH}", "sh", "-ec", command], timeout=120)
            if command.startswith(ENDS):
                ended = time.monotonic()
    lab._ipvs = None
    return ended - begun


def services(lab):
    """Of each protocol and family, by rr; and one of persistent clients."""
    raws = [Raw(lab, proto, family, (1, 2)) for family in (4, 6) for proto in (TCP, UDP)]
    return [*raws, Raw(lab, TCP, 4, (1, 2), flags=PERSISTENT, timeout=600)]


def opened(raws, number):
    """NUMBER clients of each service, with a connection each."""
    clients = [raw.client() for raw in raws for _ in range(number)]
    for client in clients:
        client.open() if client.raw.proto == UDP else client.establish()
    return clients


@contextlib.contextmanager
def repeating(clients):
    """Within the block the clients and, with NAT, the real servers send, over and over."""
    packets = [(c.raw.client_tap, c.packet(ACK, b"again")) for c in clients]
    packets += [(c.raw.taps[c.number], c.reply_packet(ACK, b"again")) for c in clients
                if c.raw.lab.shape == "nat"]
    stop = threading.Event()

    def pump():
        while not stop.is_set():
            for tap, data in packets:
                tap.try_send(data)
            for raw in {c.raw for c in clients}:
                for tap in raw.taps.values():
                    tap.drain()
            stop.wait(0.01)
    thread = threading.Thread(target=pump, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        join_all(thread)


def strangers(clients):
    """Packets to the clients that are no answers of their services: resets, errors, and those
    of real servers with their own addresses."""
    vips = {c.raw.vip for c in clients}
    addresses = {c.address for c in clients}
    return [p for raw in {c.raw for c in clients} for p in raw.client_tap.take(
        lambda p: p.dst in addresses and
        (p.src not in vips or (p.proto == TCP and p.flags & RST)))]


def state(clients):
    return [{name: row[name] for name in ("server", "dport", "state")}
            for row in (c.row() for c in clients)]


@pytest.mark.parametrize("shape", (pytest.param("nat", marks=pytest.mark.smoke), "dr", "tun"))
def test_nothing_is_lost(topologies, backend, request, shape):
    """1,000 connections, both ends of which send all the time."""
    lab = topologies[shape]
    backend.load()
    lab._ipvs = None
    lab.director.ns.sysctl("net/ipv4/vs/expire_nodest_conn", 1)
    raws = services(lab)
    clients = opened(raws, amount(request.config, few=10, all=200))
    before = state(clients)
    with repeating(clients):
        seconds = exchange(lab, raws)
    print(f"{shape}: {len(clients)} connections, {seconds * 1000:.0f} ms")
    assert strangers(clients) == []
    assert state(clients) == before
    for raw in raws:
        raw.fence()
        raw.drain()
    for client in clients:
        number = client.number
        client.send(ACK, b"more")
        assert client.arrive()[0] == number
    assert lab.director.ns.sysctl("net/ipv4/vs/expire_nodest_conn") == "1"
    # A persistent client's next connection follows its template.
    last = clients[-1]
    assert raws[-1].client(last.address).open() == last.number
