# SPDX-License-Identifier: GPL-2.0
"""XDP: it sends the same packets as the fast path at ingress and as the stack, before there
is an skb, and leaves everything unusual to them.

On User-Mode Linux without a program, see lab/xdp.py. `slow` tests take seconds only, but emulated
ones; "make test-all" has them.
"""

import contextlib
import ctypes
import hashlib
import itertools
import json
import socket
import struct
import threading
import time

import pytest
from lab import fast, ingress, xdp
from lab.ctl import IPVSCTL
from lab.farm import Http, pattern
from lab.flows import (
    BOTH,
    FORGET,
    RESET,
    TUNNEL,
    admitted,
    counted,
    ready,
    reply_is,
    request_is,
    set_policy,
)
from lab.ingress import Firsts, at_ingress, begun
from lab.netns import Namespace, run, wait_until
from lab.packet import ACK, FIN, TCP, UDP
from lab.settings import setting
from lab.sorts import all_sorts, poke, variety

pytestmark = [pytest.mark.usefixtures("can_xdp"), pytest.mark.no_xdp("it attaches XDP itself")]


def three_ways(lab, proto, family, **kwargs):
    """Each sort of packet by XDP, at ingress, and through the stack."""
    nat = lab.shape == "nat"
    sorts = [k for k in variety(proto, family) for _ in range(1 + nat)]
    client = admitted(ready(lab, proto, family, **kwargs))
    with xdp.attached(lab):
        poke(client)        # a reply looks its route up again
        by_xdp = all_sorts(client, proto, family, {"xdp": 1}, nat)
    at_hook = all_sorts(client, proto, family, {"fast": 1}, nat)
    with setting(lab, "fast_path", 0):
        wait_until(lambda: fast.grown(lab.director.ns, poke(client)) == {}, 5,
                   what="the devices let go of")
        stack = all_sorts(client, proto, family, {}, nat)
    for args, *images in zip(sorts, by_xdp[0], at_hook[0], stack[0]):
        assert images[0] == images[1] == images[2], args
    assert by_xdp[1] == at_hook[1] == stack[1]


@pytest.mark.stock
@pytest.mark.smoke
@BOTH
def test_same_packets(lab, family, proto):
    three_ways(lab, proto, family)


@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
def test_same_tunnels(tun, family, outer):
    three_ways(tun, UDP, family, server_family=outer)


@pytest.mark.parametrize("kind", TUNNEL)
def test_other_tunnels(tun, family, kind):
    client = admitted(ready(tun, UDP, family, server={"tunnel": TUNNEL[kind]}))
    with xdp.attached(tun):
        assert request_is(client, b"wrapped", fast=1).is_tunnel


def test_a_life(lab, family):
    """A TCP connection goes through its states by XDP, too."""
    client = admitted(ready(lab, TCP, family))
    nat = lab.shape == "nat"
    with xdp.attached(lab):
        poke(client)
        assert client.state == "ESTABLISHED"
        request_is(client, b"request", xdp=1)
        if nat:
            reply_is(client, xdp=1)
        with counted(client.raw, xdp=1):
            client.send(FIN | ACK).arrive()
        if nat:
            with counted(client.raw, xdp=1):
                client.reply(FIN | ACK).answered()
        assert client.state != "ESTABLISHED"


@pytest.mark.stock
@pytest.mark.smoke
@BOTH
def test_first_packets(lab, family, proto):
    """Flows of fast-path new begin by XDP as in the stack: the same bytes, states, counters."""
    with setting(lab, "expire_nodest_conn", 1):
        firsts = Firsts(ingress.ready(lab, proto, family))
        with at_ingress(lab), xdp.attached(lab):
            by_xdp = firsts.send(xdp=1)
        firsts.forget()
        with setting(lab, "fast_path", 0):
            firsts.compare(by_xdp, firsts.send())


@BOTH
def test_broken_first_packets(nat, family, proto):
    """A checksum is wrong, or missing: no flow begins."""
    raw = ingress.ready(nat, proto, family)
    broken = [{"csum": 0x1234}]
    broken += [{"ip_args": {"csum": 0x1234}}] if family == 4 else [{"csum": 0}] * (proto == UDP)
    with at_ingress(nat), xdp.attached(nat):
        for kwargs in broken:
            client = raw.client()
            with counted(raw, slow_unknown=1):
                client.send(payload=b"x", **kwargs)
            assert client.nothing_arrives() is None and client.state is None
        begun(raw, xdp=1)


@BOTH
def test_unasked_first_packets(nat, family, proto):
    """Flows that begin by themselves, while nobody looks, do so at the ingress that follows: a
    chain there sees them."""
    raw = ingress.ready(nat, proto, family)
    with nat.unwatched(), xdp.attached(nat):
        client = begun(raw, fast=1)
        if proto == UDP:
            request_is(client, b"then", xdp=1)


def test_real_clients_begin(lab, family):
    """No packet of theirs needs the stack, but the first of each real server's with NAT: the way
    back is admitted there."""
    port = lab.http_port()
    service = lab.ipvs.service(lab.vip(family), port, sched="rr")
    service.server(lab.rip(1, family), port, method=lab.method)
    with at_ingress(lab), xdp.attached(lab):
        with Http(lab.client, lab.vip(family), port) as http:
            http.request("GET", "/")        # addresses are resolved
        before = fast.read(lab.director.ns)
        for _ in range(20):
            with Http(lab.client, lab.vip(family), port) as http:
                http.request("GET", "/")
        grown = fast.grown(lab.director.ns, before)
    assert grown["xdp"] > 80 and not grown.get("slow_unknown"), grown
    assert grown.get("slow_opens", 0) == 20 * (lab.shape == "nat"), grown


def transfer(lab, family, size):
    """Both ways through the stacks of client and server; returns what the counters grew by."""
    port = lab.http_port()
    service = lab.ipvs.service(lab.vip(family), port, sched="rr")
    service.server(lab.rip(1, family), port, method=lab.method)
    # What is admitted in the tick of a change must be admitted again in the next one.
    time.sleep(0.02)
    before = fast.read(lab.director.ns)
    with Http(lab.client, lab.vip(family), port) as http:
        assert http.request("PUT", "/", pattern(size)) == \
            hashlib.sha256(pattern(size)).hexdigest().encode()
        assert http.request("GET", f"/bulk/{size}") == pattern(size)
    return fast.grown(lab.director.ns, before)


@pytest.mark.stock
@pytest.mark.smoke
def test_real_traffic(lab, family):
    size = 500_000
    with xdp.attached(lab):
        grown = transfer(lab, family, size)
        assert grown["xdp"] > 0.8 * size / 1460 and grown["xdp"] > 4 * grown.get("fast", 0), grown


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.parametrize("offload", ("tx", "txvlan"))
def test_hidden(nat, family, offload):
    """The sender's stack leaves checksums, or tags, to the device, and XDP does not see them: no
    packet is sent without."""
    with xdp.attached(nat):
        for _, node, port in xdp.cables(nat):
            with node.ns.enter():
                run(["ethtool", "-K", port, offload, "on"])
        grown = transfer(nat, family, 300_000)
    xdp.hide(nat)
    assert "xdp" not in grown and grown["xdp_offload"] >= grown["fast"] > 10, grown


@BOTH
def test_no_frames_taken(nat, family, proto):
    """The other end of the way out does not poll: frames would be lost there."""
    raw = ready(nat, proto, family)
    client = admitted(raw)
    with xdp.attached(nat):
        xdp.set_offloads(nat.nodes["router"], "director", "off", gro="off")
        xdp.off(nat, "eth1")
        request_is(client, fast=1, xdp_exit=1)
        with at_ingress(nat):       # a flow that XDP has begun goes on at ingress
            begun(raw, fast=1, xdp_exit=1)
        xdp.set_offloads(nat.nodes["router"], "director", "off", gro="on")
        request_is(client, xdp=1)


@pytest.mark.smoke
def test_frames_of_all_lengths(nat, family):
    """Cut anywhere, a packet is dropped as without XDP; whole, it passes. Those for another
    machine, or with a tag, do not."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    tap = raw.client_tap
    whole = client.packet(payload=b"x" * 20)
    frame = tap.frame(whole)
    with xdp.attached(nat), counted(raw, xdp=1, slow_header=1):
        for length in range(14, len(frame)):
            wait_until(lambda n=length: tap._try(frame[:n]), what="room")
        tap.send(whole, mac=bytes.fromhex("020000000909"))
        wait_until(lambda: tap._try(frame[:12] + bytes.fromhex("81000005") + frame[12:]),
                   what="room")
        client.nothing_arrives()
        tap.send(whole)
        client.arrive()


def test_padding(nat, family):
    """A short frame is filled up on the wire: that is no part of the packet, and stays behind."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    with xdp.attached(nat), counted(raw, xdp=1):
        frame = raw.client_tap.frame(client.packet(payload=b"short"))
        wait_until(lambda: raw.client_tap._try(frame + b"padding" * 8), what="room")
        assert client.arrive()[1].behind == b""


def test_watched(nat, family):
    """Flows whose idle end is to be reset go on to ingress, and replies that have a priority."""
    raw = ready(nat, TCP, family)
    client = admitted(raw)
    with xdp.attached(nat):
        poke(client)
        request_is(client, b"1", xdp=1)
        set_policy(raw, on_idle=RESET)
        request_is(client, b"2", slow_admit=1)
        request_is(client, b"3", fast=1)
        set_policy(raw, on_idle=FORGET, priority=1)
        client = admitted(raw)
        poke(client)
        request_is(client, b"4", xdp=1)
        reply_is(client, fast=1)


def test_switched_under_traffic(nat, family):
    """On and off while packets pass: both ways have some, none is doubled. A veth may lose those
    that wait in it while a program comes or goes."""
    client = admitted(ready(nat, UDP, family))
    sent, stop = itertools.count(), threading.Event()

    def send():
        while not stop.is_set():
            client.send(payload=b"%d" % next(sent))
            time.sleep(0.002)
    before = fast.read(nat.director.ns)
    with xdp.attached(nat):
        thread = threading.Thread(target=send)
        thread.start()
        for n in range(12):
            (xdp.on if n % 2 else xdp.off)(nat, "eth0")
            time.sleep(0.02)
        stop.set()
        thread.join()
        client.raw.fence()
        got = [p.payload for _, p in client.arrivals()]
        grown = fast.grown(nat.director.ns, before)
    assert len(set(got)) == len(got) > 0.9 * next(sent)
    assert min(grown["xdp"], grown["fast"]) > 10, grown


# ---- devices, modules, namespaces ----

@contextlib.contextmanager
def namespace():
    ns = Namespace("xdp-alone")
    try:
        yield ns
    finally:
        ns.destroy()


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
def test_module_stays(nat, backend):
    """A program holds it; without one it goes."""
    nat.ipvs.flush()
    before = backend.refcount()
    with xdp.attached(nat):
        assert backend.refcount() > before
    wait_until(lambda: backend.refcount() == before, 5, what="the programs' end")


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.slow
def test_device_and_namespace_end(backend, nat):
    """They take the program with them."""
    before = backend.refcount()
    with namespace() as ns:
        ns.ip("link set lo up", "link add a0 type veth peer name a1", "link set a0 up",
              "link set a1 up")
        with ns.enter():
            for name in ("a0", "a1"):
                run([IPVSCTL, "-q", "fast-path", "xdp", "dev", name])
        assert backend.refcount() >= before + 2
        ns.ip("link del a0")
        wait_until(lambda: backend.refcount() == before, 5, what="the devices' end")
        ns.ip("link add a0 type veth peer name a1")
        with ns.enter():
            run([IPVSCTL, "-q", "fast-path", "xdp", "dev", "a0"])
    wait_until(lambda: backend.refcount() == before, 10, what="the namespace's end")


# ---- the tool ----

def somebody_elses(name):
    """Attaches a program that passes all frames; returns its library, to detach it."""
    bpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    code = struct.pack("<BBhi", 0xb7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    fd = bpf.bpf_prog_load(6, b"other", b"GPL", code, ctypes.c_size_t(2), None)
    assert fd >= 0, ctypes.get_errno()
    assert bpf.bpf_xdp_attach(socket.if_nametoindex(name), fd, 1 << 2, None) == 0
    return lambda: bpf.bpf_xdp_detach(socket.if_nametoindex(name), 1 << 2, None)


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.slow
def test_somebody_elses_program(nat):
    with nat.director.ns.enter():
        end = somebody_elses("eth0")
        try:
            done = run([IPVSCTL, "fast-path", "xdp", "dev", "eth0"], check=False)
            assert done.returncode == 5 and "another XDP program" in done.stderr
            assert run([IPVSCTL, "fast-path", "no-xdp", "dev", "eth0"]).stdout == ""
            run([IPVSCTL, "fast-path", "no-xdp", "all"])
            assert "other" in run([IPVSCTL, "fast-path"]).stdout
        finally:
            assert end() == 0
        assert "other" not in run([IPVSCTL, "fast-path"]).stdout


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.smoke
def test_tool(nat):
    """What it lists, what it refuses, and that a second time changes nothing."""
    def tool(*words):
        return run([IPVSCTL, *words], check=False)
    with nat.director.ns.enter():
        assert tool("fast-path", "xdp", "dev", "eth0").returncode == 0
        assert tool("fast-path", "xdp", "dev", "eth0").returncode == 0
        said = json.loads(tool("-j", "fast-path").stdout)["fast_path"]
        devices = {d["device"]: d["xdp"] for d in said["devices"]}
        assert devices.pop("eth0") == "l4lb" and "eth1" in devices
        assert not any(devices.values()) and "lo" not in devices
        assert set(fast.COUNTS) == set(said["packets"])
        assert "l4lb" in tool("fast-path", "show").stdout
        assert "l4lb_xdp" in run(["ip", "-d", "link", "show", "eth0"]).stdout
        assert tool("fast-path", "no-xdp", "dev", "eth0").returncode == 0
        assert tool("fast-path", "no-xdp", "dev", "eth0").returncode == 0
        assert "l4lb" not in tool("fast-path", "show").stdout
        for words, code, why in (
                ("xdp dev nosuch", 4, "no such device"), ("xdp dev lo", 3, "driver"),
                ("xdp", 2, "which device?"), ("xdp dev", 2, "needs a value"),
                ("xdp dev eth0 eth1", 2, "unexpected"), ("no-xdp", 2, "which device?"),
                ("no-xdp dev nosuch", 4, "no such device")):
            done = tool("fast-path", *words.split())
            assert (done.returncode, why in done.stderr) == (code, True), (words, done.stderr)
        drop = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
        done = run([*drop, IPVSCTL, "fast-path", "xdp", "dev", "eth0"], check=False)
        assert done.returncode == 6, done.stderr


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.slow
def test_doctor(nat, family):
    """It counts what went on without XDP, as notes; nothing if there is no XDP."""
    def notes():
        with nat.director.ns.enter():
            said = json.loads(run([IPVSCTL, "-j", "doctor"], check=False).stdout)["doctor"]
        return [f["message"] for f in said["findings"] if f["check"] == "xdp"]
    client = admitted(ready(nat, UDP, family))
    with xdp.attached(nat):
        xdp.set_offloads(nat.client, "eth0", "on", gro="on")
        request_is(client, fast=1, xdp_offload=1)
        assert any("checksum or a tag may be hidden" in text for text in notes())
    xdp.hide(nat)
    assert notes() == []


@contextlib.contextmanager
def mtu(lab, size):
    """Of all devices between the client and the real servers."""
    def change(to):
        for node in lab.nodes.values():
            names = [d["ifname"] for d in json.loads(node.ns.run("ip -j link show").stdout)]
            node.ns.ip(*(f"link set {name} mtu {to}" for name in names if name != "lo"))
    change(size)
    try:
        yield
    finally:
        change(1500)


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.slow
def test_long_frames(nat, family):
    """Frames above a page go to ingress, short ones between them are forwarded by XDP: also if the
    program was there before the MTU."""
    def both_lengths():
        for length, way in ((5000, "fast"), (100, "xdp"), (8000, "fast"), (100, "xdp")):
            assert len(request_is(client, b"x" * length, **{way: 1}).payload) == length
            assert len(reply_is(client, b"y" * length, **{way: 1}).payload) == length
    program = xdp.attached(nat)
    with contextlib.ExitStack() as stack:
        if family == 4:
            stack.enter_context(program)
        stack.enter_context(mtu(nat, 9000))
        if family == 6:
            stack.enter_context(program)
        client = admitted(ready(nat, UDP, family))
        both_lengths()


def devices(nat):
    """Of the director, those to which l4lb's program is attached."""
    with nat.director.ns.enter():
        said = json.loads(run([IPVSCTL, "-j", "fast-path"]).stdout)["fast_path"]["devices"]
    return {d["device"] for d in said if d["xdp"] == "l4lb"}


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.slow
def test_apply(nat, tmp_path, monkeypatch):
    """A file says which devices have it: all or nothing, and rollback knows what was before."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))

    def tool(words, names=None, more="services: []"):
        text = None if names is None else f"version: 1\nxdp: [{names}]\n{more}\n"
        with nat.director.ns.enter():
            return run([IPVSCTL, *words.split()], check=False, text_input=text)
    web = "services: [{service: 'tcp 192.0.2.77:80'}]"
    try:
        assert "1 devices attached, 0 detached" in tool("apply -", "eth0").stdout
        assert devices(nat) == {"eth0"} and tool("apply -", "eth0").stdout.startswith("no changes")
        assert tool("diff -", "eth1").stdout.splitlines()[:2] == ["- xdp dev eth0", "+ xdp dev eth1"]
        assert tool("-n apply -", "eth1").returncode == 0 and devices(nat) == {"eth0"}
        for names, code in (("eth1, lo", 3), ("eth1, nosuch", 4)):
            done = tool("apply -", names, web)
            assert done.returncode == code and devices(nat) == {"eth0"}, done.stderr
            assert tool("service show tcp 192.0.2.77:80").returncode == 4
        assert json.loads(tool("-j apply -", "eth1", web).stdout)["apply"]["xdp"] == \
            {"attached": 1, "detached": 1}
        assert devices(nat) == {"eth1"}
        tool("fast-path no-xdp dev eth1")       # keeps no service from going back
        assert "1 devices attached, 1 detached" in tool("rollback").stdout
        assert devices(nat) == {"eth0"}
        assert tool("service show tcp 192.0.2.77:80").returncode == 4
        nat.director.ns.ip("link property add dev eth0 altname another")
        assert tool("apply -", "another").stdout.startswith("no changes")
        nat.director.ns.ip("link property del dev eth0 altname another")
        with nat.director.ns.enter():
            done = run(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", IPVSCTL, "diff", "-"],
                       check=False, text_input="version: 1\nxdp: []\nservices: []\n")
        assert done.returncode == 6 and "may not be looked at" in done.stderr, done
        assert tool("apply -", "").returncode == 0 and devices(nat) == set()
    finally:
        xdp.ipvsctl(nat, "no-xdp", "all")


@pytest.mark.usefixtures("programs")
@pytest.mark.emulated
@pytest.mark.slow
def test_not_confirmed(nat, tmp_path, monkeypatch):
    """Nobody confirms: the devices have again what they had, and so do the services."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    web = "service: 'tcp 192.0.2.77:80'"

    def tool(*words, text=None):
        with nat.director.ns.enter():
            return run([IPVSCTL, *words], check=False, text_input=text)
    try:
        assert tool("fast-path", "xdp", "dev", "eth1").returncode == 0
        done = tool("apply", "-", "--confirm", "2", text=f"version: 1\nxdp: [eth0]\nservices: [{{{web}}}]\n")
        assert done.returncode == 0 and "to keep this" in done.stdout, done
        assert devices(nat) == {"eth0"}
        assert tool("service", "show", "tcp", "192.0.2.77:80").returncode == 0
        wait_until(lambda: devices(nat) == {"eth1"}, 30, what="it is taken back")
        assert tool("service", "show", "tcp", "192.0.2.77:80").returncode == 4
        assert "no change waits" in tool("confirm").stderr
    finally:
        xdp.ipvsctl(nat, "no-xdp", "all")
