# SPDX-License-Identifier: GPL-2.0
"""tools/system/l4lb-reload exchanges the module under traffic, and no connection is lost."""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from lab.ctl import IPVSCTL
from lab.genl import PERSISTENT, Ipvs
from lab.netns import SLOW, Namespace, join_all, wait_until
from lab.packet import ACK, RST, TCP, UDP
from lab.raw import Raw
from lab.rows import amount

NO_MODULE = True    # the tool loads and unloads it
TOP = Path(__file__).resolve().parents[2]
TOOL = TOP / "tools/system/l4lb-reload"
PATH = f"{Path(TOP, IPVSCTL).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"


@pytest.fixture(autouse=True)
def clean(backend, topologies):
    if not backend.is_l4lb:
        pytest.skip("l4lb-reload is for l4lb")
    if backend.loaded():
        backend.unload()
    yield
    topologies.flush()
    if backend.loaded():
        backend.unload()


def reload(lab, *words, code=0):
    """What the tool says; lines of standard error come last."""
    with lab.director.ns.enter():
        done = subprocess.run([TOOL, *words], capture_output=True, text=True, check=False,
                              timeout=120 * SLOW, env=os.environ | {"PATH": PATH})
    assert done.returncode == code, (done.stdout, done.stderr)
    assert not list(Path("/run").glob("l4lb-reload.*"))
    assert "l4lb_reload" not in lab.director.ns.run(["nft", "list", "tables"]).stdout
    return done.stdout + done.stderr


def services(lab):
    """Of each protocol and family, by rr, of which one is protected; and one of persistent
    clients."""
    raws = [Raw(lab, proto, family, (1, 2)) for family in (4, 6) for proto in (TCP, UDP)]
    change_protection(lab, raws[0], "on")
    return [*raws, Raw(lab, TCP, 4, (1, 2), flags=PERSISTENT, timeout=600)]


def change_protection(lab, raw, word):
    lab.director.ns.run([IPVSCTL, "service", "change", "tcp", f"{raw.vip}:{raw.port}",
                         "protected", word])


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


@pytest.mark.smoke
@pytest.mark.parametrize("shape", ("nat", "dr", "tun"))
def test_nothing_is_lost(topologies, backend, request, shape):
    """1,000 connections, both ends of which send all the time."""
    lab = topologies[shape]
    backend.load()
    lab._ipvs = None
    lab.director.ns.sysctl("net/ipv4/vs/expire_nodest_conn", 1)
    lab.ipvs.timeouts(tcp=700, fin=70, udp=170)
    raws = services(lab)
    clients = opened(raws, amount(request.config, few=20, all=200))
    before, started = state(clients), Path("/sys/module/l4lb").stat().st_ino
    with repeating(clients):
        said = reload(lab)
    assert Path("/sys/module/l4lb").stat().st_ino != started, "it is the same module"
    lab._ipvs = None
    waited = int(re.search(r"packets were held back for (\d+) ms", said).group(1))
    print(f"{shape}: {len(clients)} connections, {waited} ms")
    persistent = sum(c.raw is raws[-1] for c in clients)
    assert f"imported {len(clients) + persistent} connections\n" in said
    assert strangers(clients) == []
    assert state(clients) == before
    for raw in raws:
        raw.fence()
        raw.drain()
    for client in clients:
        number = client.number
        client.send(ACK, b"more")
        assert client.arrive()[0] == number
    assert lab.ipvs.timeouts() == (700, 70, 170)
    assert lab.director.ns.sysctl("net/ipv4/vs/expire_nodest_conn") == "1"
    # A persistent client's next connection follows its template.
    last = clients[-1]
    assert raws[-1].client(last.address).open() == last.number
    saved = lab.director.ns.run([IPVSCTL, "save"]).stdout
    assert saved.count("protected on") == 1
    change_protection(lab, raws[0], "off")


def test_a_service_elsewhere_holds_the_module(topologies, backend):
    """Then the module that runs goes on, with services and connections."""
    lab = topologies["nat"]
    backend.load()
    lab._ipvs = None
    clients = opened(services(lab), 3)
    before = state(clients)
    other = Namespace("reload-other")
    try:
        with Ipvs(other) as ipvs:
            ipvs.service("192.0.2.1", 80)
            said = reload(lab, code=1)
            assert "is there a service in another network namespace?" in said
    finally:
        other.destroy()
    lab._ipvs = None
    assert state(clients) == before
    for client in clients:
        number = client.number
        client.send(ACK, b"more")
        assert client.arrive()[0] == number
    change_protection(lab, clients[0].raw, "off")


def test_nobody_interrupts_it(topologies, backend):
    """Signals, and a terminal that is gone, come too late once it has begun."""
    lab = topologies["nat"]
    backend.load()
    lab._ipvs = None
    clients = opened(services(lab), 2)
    before = state(clients)
    with lab.director.ns.enter():
        process = subprocess.Popen([TOOL], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env=os.environ | {"PATH": PATH})
    with process:
        process.stdout.close()
        wait_until(lambda: not backend.loaded(), 60 * SLOW, what="the module leaves", step=0.002)
        while process.poll() is None:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                process.send_signal(number)
            time.sleep(0.01)
    assert "l4lb_reload" not in lab.director.ns.run(["nft", "list", "tables"]).stdout
    lab._ipvs = None
    assert state(clients) == before
    change_protection(lab, clients[0].raw, "off")


def test_what_it_refuses(topologies, backend):
    """Nothing changes then."""
    lab = topologies["nat"]
    assert "l4lb is not loaded" in reload(lab, code=1)
    backend.load()
    lab._ipvs = None
    raw = Raw(lab, TCP)
    client = raw.client()
    client.establish()
    assert "it can be done" in reload(lab, "--check")
    assert "usage:" in reload(lab, "--help") and "usage:" in reload(lab, "now", code=2)
    lab.director.ns.run([IPVSCTL, "sync", "start", "send", "dev", "eth0"])
    assert "let another director take over first" in reload(lab, code=1)
    lab.director.ns.run([IPVSCTL, "sync", "stop"])
    assert client.state == "ESTABLISHED"
