# SPDX-License-Identifier: GPL-2.0
"""XDP on virtio cards, bonds, and the taps of virtual machines.

     client ---- card ==hub== card director veth ---- veth server
             198.51.100.2    .1, VIP .100  192.0.2.1   .9
"""

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import struct
import threading
from pathlib import Path

import pytest
from lab import fast, packet
from lab.ctl import IPVSCTL
from lab.farm import pattern
from lab.guide import page
from lab.netns import Namespace, run, wait_until
from lab.testmodule import TestModule

pytestmark = [pytest.mark.usefixtures("programs"), pytest.mark.emulated,
              pytest.mark.no_xdp("it attaches XDP itself")]
VIP, CIP, RIP, PORT = "198.51.100.100", "198.51.100.2", "192.0.2.9", 8080
SIZE = 400_000
CARDS = "52:54:00:00:5d:0"


def leave_nothing(ns, port):
    """PORT, the other end of a veth, leaves neither checksums nor tags to it, and polls."""
    with ns.enter():
        run(["ethtool", "-K", port, "tx", "off", "txvlan", "off", "tx-vlan-stag-hw-insert", "off",
             "gro", "on"])


class Rig:
    """The director and its server; what is on the client's side comes later."""

    def __init__(self, stack):
        self.director, self.server = (self.namespace(stack, f"xc-{n}") for n in "ds")
        self.director.ip(
            "link set lo up", f"link add veth type veth peer name eth0 netns {self.server.name}",
            "link set veth up", "addr add 192.0.2.1/24 dev veth", f"addr add {VIP}/32 dev lo")
        self.director.sysctl("net/ipv4/ip_forward", 1)
        self.server.ip("link set eth0 up", f"addr add {RIP}/24 dev eth0",
                       "route add default via 192.0.2.1")
        leave_nothing(self.server, "eth0")

    @staticmethod
    def namespace(stack, name):
        ns = Namespace(name)
        stack.callback(ns.destroy)
        return ns

    def serve(self, proto):
        with self.director.enter():
            run([IPVSCTL, "service", "add", proto, f"{VIP}:{PORT}", "scheduler", "rr", "server", RIP,
                 "nat"])

    def attach(self, *devices):
        with self.director.enter():
            for device in devices:
                run([IPVSCTL, "-q", "fast-path", "xdp", "dev", device])


@pytest.fixture
def rig(module_life):
    with contextlib.ExitStack() as stack:
        yield Rig(stack)


def card(ns, number, name):
    """Moves one of the guest's cards to NS."""
    def found():
        # Not everything there is a device: bonding has a file.
        return [p.parent.name for p in Path("/sys/class/net").glob("*/address")
                if p.read_text("ascii").strip() == f"{CARDS}{number}"]
    wait_until(found, 10, what="the card")
    run(["ip", "link", "set", found()[0], "netns", ns.name, "name", name])


@contextlib.contextmanager
def two_cards(rig):
    """A namespace with one of them, as eth0; the director has the other one, as "card"."""
    run(["modprobe", "virtio_net"])
    with contextlib.ExitStack() as stack:
        outside = rig.namespace(stack, "xc-c")
        # A namespace that ends gives cards back; they keep their names.
        stack.callback(lambda: run(["modprobe", "-r", "virtio_net"]))
        card(outside, 0, "eth0")
        card(rig.director, 1, "card")
        outside.ip("link set eth0 up")
        rig.director.ip("link set card up", "addr add 198.51.100.1/24 dev card")
        yield outside


def talk(server, client, size):
    """SIZE bytes to the server, which sends them back."""
    def echo():
        peer = server.accept()[0]
        with peer:
            while data := peer.recv(1 << 16):
                peer.sendall(data)
    thread = threading.Thread(target=echo)
    thread.start()
    sent = threading.Thread(target=lambda: (client.sendall(pattern(size)),
                                            client.shutdown(socket.SHUT_WR)))
    sent.start()
    got = b"".join(iter(lambda: client.recv(1 << 16), b""))
    thread.join()
    sent.join()
    return got


def test_cards(rig):
    """Both ends compute and check what cards do for each other."""
    with two_cards(rig) as client:
        client.ip(f"addr add {CIP}/24 dev eth0")
        rig.serve("tcp")
        rig.attach("card", "veth")
        with rig.server.socket(socket.AF_INET, socket.SOCK_STREAM) as server, \
                client.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
            server.bind((RIP, PORT))
            server.listen()
            for sock in (server, one):
                sock.settimeout(60)
            before = fast.read(rig.director)
            one.connect((VIP, PORT))
            got = talk(server, one, SIZE)
        grown = fast.grown(rig.director, before)
        assert hashlib.sha256(got).digest() == hashlib.sha256(pattern(SIZE)).digest()
        assert grown["xdp"] > 2 * SIZE / 1460 * 0.8, grown


def frame(ns, device, payload):
    """A client's datagram for the VIP, to DEVICE of NS."""
    link = json.loads(ns.run(f"ip -j link show {device}").stdout)[0]["address"]
    return bytes.fromhex(link.replace(":", "") + "0200000000020800") + \
        packet.udp_packet(CIP, 4000, VIP, PORT, payload)


def wire(ns, device):
    sock = ns.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
    sock.bind((device, 0x800))
    sock.settimeout(10)
    return sock


def test_back_by_the_same_card(rig):
    """Direct routing on one network: XDP_TX."""
    with two_cards(rig) as outside, contextlib.ExitStack() as stack:
        outside.ip("link set eth0 promisc on")
        rig.director.ip("neigh add 198.51.100.9 lladdr 02:00:00:00:00:09 dev card nud permanent",
                        f"neigh add {CIP} lladdr 02:00:00:00:00:02 dev card nud permanent")
        with rig.director.enter():
            run([IPVSCTL, "service", "add", "udp", f"{VIP}:{PORT}", "scheduler", "rr", "server",
                 "198.51.100.9", "dr"])
        rig.attach("card")
        sock = stack.enter_context(wire(outside, "eth0"))
        def sent_back(payload):
            sock.send(frame(rig.director, "card", payload))
            with contextlib.suppress(TimeoutError):
                while True:
                    got = sock.recv(2000)
                    if got[:6] == bytes.fromhex("020000000009"):
                        return got
        sock.settimeout(1)
        # The first frames may be lost while the card begins.
        wait_until(lambda: sent_back(b"first"), 10, what="the first packet")
        for n in range(3):
            before = fast.read(rig.director)
            got = sent_back(b"%d" % n)
            assert got[22] == 63 and got.endswith(b"%d" % n)
            assert got[6:12] == frame(rig.director, "card", b"")[:6]
            assert fast.grown(rig.director, before)["xdp"] == 1


def test_the_doctor_names_a_device_that_takes_tags_off(rig):
    """A veth says so, too, and means nothing by it; a bond without devices does as cards do."""
    rig.serve("udp")
    run(["modprobe", "bonding", "max_bonds=0"])
    rig.director.ip("link add bond9 type bond", "link set bond9 up")

    def said():
        with rig.director.enter():
            found = json.loads(run([IPVSCTL, "-j", "doctor"], check=False).stdout)
        return [(f["severity"], f["object"], f["message"], f["try"])
                for f in found["doctor"]["findings"] if f["check"] == "xdp"]
    rig.attach("veth")
    assert said() == []
    rig.attach("bond9")
    (found,) = said()
    assert found == ("warning", "bond9", "it takes VLAN tags off: no packet is forwarded by XDP",
                     "ethtool -K bond9 rxvlan off")
    lines = f"{found[0]}: xdp: {found[1]}: {found[2]}\n      try: {found[3]}\n"
    assert f"    {lines}" in page("doctor")
    with rig.director.enter():
        run(found[3].split())
    assert said() == []


def test_bond(rig):
    """A program on the bond gets the frames of its devices, of the spare one as well: those
    would arrive twice, and are dropped as without XDP."""
    with contextlib.ExitStack() as stack:
        outside = rig.namespace(stack, "xc-c")
        run(["modprobe", "bonding", "max_bonds=0"])
        rig.director.ip("link add bond9 type bond mode active-backup miimon 50")
        for n in "01":
            rig.director.ip(f"link add b{n} type veth peer name a{n} netns {outside.name}")
            outside.ip(f"link set a{n} up")
            rig.director.ip(f"link set b{n} master bond9", f"link set b{n} up")
            leave_nothing(outside, f"a{n}")
        rig.director.ip("link set bond9 up", "addr add 198.51.100.1/24 dev bond9",
                        f"neigh add {CIP} lladdr 02:00:00:00:00:02 dev bond9 nud permanent")
        rig.serve("udp")
        rig.attach("bond9")

        def active():
            with rig.director.enter():
                return "b0" in Path("/proc/net/bonding/bond9").read_text("ascii").split(
                    "Currently Active Slave:")[1].split()[0]
        wait_until(active, 10, what="the bond has chosen")
        a0, a1 = (stack.enter_context(wire(outside, f"a{n}")) for n in "01")
        server = stack.enter_context(rig.server.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind((RIP, PORT))
        server.settimeout(10)
        for n, want in enumerate((0, 1, 1)):
            before = fast.read(rig.director)
            a0.send(frame(rig.director, "bond9", b"%d" % n))
            assert server.recv(100) == b"%d" % n
            assert fast.grown(rig.director, before).get("xdp", 0) == want
        before = fast.read(rig.director)
        a1.send(frame(rig.director, "bond9", b"twice"))
        a0.send(frame(rig.director, "bond9", b"once"))
        assert server.recv(100) == b"once"
        assert fast.grown(rig.director, before)["xdp"] == 1


def plug(rig, gone, outside):
    """The director's device to the client ("card") or to the server ("veth"), and its other end."""
    if gone == "card":
        there, address, ns = f"neigh add {CIP} lladdr 02:00:00:00:00:02 dev card nud permanent", \
            "198.51.100.1/24", outside
    else:
        there, address, ns = "link set veth up", "192.0.2.1/24", rig.server
    rig.director.ip(f"link add {gone} type veth peer name eth0 netns {ns.name}",
                    f"link set {gone} up", f"addr add {address} dev {gone}", there)
    ns.ip("link set eth0 up")
    leave_nothing(ns, "eth0")
    if gone == "veth":
        ns.ip(f"addr replace {RIP}/24 dev eth0", "route replace default via 192.0.2.1")


@pytest.mark.parametrize("gone", ("card", "veth"))
def test_vanishes_under_load(rig, backend, gone):
    """The device that packets come in by, or the one that they leave by, is deleted while they
    pass. A new one of that name works as any other."""
    with contextlib.ExitStack() as stack:
        outside = rig.namespace(stack, "xc-c")
        plug(rig, "card", outside)
        rig.serve("udp")
        rig.attach("card", "veth")
        held, stop = backend.refcount(), threading.Event()

        def flood(sock, data):
            while not stop.is_set():
                with contextlib.suppress(OSError):     # the device is gone
                    sock.send(data)
        thread = threading.Thread(target=flood, args=(stack.enter_context(wire(outside, "eth0")),
                                                      frame(rig.director, "card", b"flood")))
        before = fast.read(rig.director)
        thread.start()
        try:
            wait_until(lambda: fast.grown(rig.director, before).get("xdp", 0) > 1000, 60,
                       what="forwarded by XDP")
            rig.director.ip(f"link del {gone}")
            wait_until(lambda: backend.refcount() < held, 10, what="its program's end")
        finally:
            stop.set()
            thread.join()
        plug(rig, gone, outside)
        with rig.server.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
                wire(outside, "eth0") as sock:
            server.bind((RIP, PORT))
            server.settimeout(1)

            def arrives():
                sock.send(frame(rig.director, "card", b"again"))
                with contextlib.suppress(TimeoutError):
                    return server.recv(100) == b"again"
            wait_until(arrives, 20, what="a packet")
            rig.attach(gone)
            before = fast.read(rig.director)
            wait_until(lambda: arrives() and fast.grown(rig.director, before).get("xdp"), 20,
                       what="a packet by XDP")


def test_taps_are_left_alone(rig):
    """What a virtual machine has left to do is known to the tap only."""
    run(["modprobe", "tun"])
    with rig.director.enter():
        tap = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"tap0", 0x1002))
    try:
        rig.director.ip("link set tap0 up", "addr add 198.51.100.1/24 dev tap0",
                        f"neigh add {CIP} lladdr 02:00:00:00:00:02 dev tap0 nud permanent")
        rig.serve("udp")
        rig.attach("tap0")
        with rig.server.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind((RIP, PORT))
            server.settimeout(10)
            for count in ({}, {"fast": 1, "xdp_offload": 1}):
                before = fast.read(rig.director)
                os.write(tap, frame(rig.director, "tap0", b"hello"))
                assert server.recv(100) == b"hello"
                grown = fast.grown(rig.director, before)
                assert all(grown.get(k, 0) == count.get(k, 0)
                           for k in ("fast", "xdp", "xdp_offload")), grown
    finally:
        os.close(tap)


# ---- frames in several buffers ----

@pytest.fixture
def splitting(backend):
    """A device that splits frames wherever the test says, as cards do that put headers apart. It
    does so whatever the program can."""
    module = TestModule(backend, "l4lb_frames")
    module.insmod()
    yield module
    module.rmmod()


def test_frames_in_parts(splitting, rig):
    """One whose headers, or whose end, is elsewhere goes to ingress as it came."""
    rig.director.ip("link add card mtu 9000 type l4lb_frames", "link set card up",
                    "addr add 198.51.100.1/24 dev card",
                    f"neigh add {CIP} lladdr 02:00:00:00:00:02 dev card nud permanent")
    rig.serve("udp")
    with rig.server.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
            wire(rig.director, "card") as sock:
        server.bind((RIP, PORT))
        server.settimeout(10)

        def grown(split, payload, behind=b""):
            splitting["split"] = split
            before = fast.read(rig.director)
            sock.send(frame(rig.director, "card", payload) + behind)
            assert server.recv(10_000) == payload
            grew = fast.grown(rig.director, before)
            # Each flow's packet once in eight seconds is for the stack to admit again.
            return {"fast" if k in ("slow_admit", "slow_route") else k for k in grew}

        def parts():
            """Around the ends of each header, and some between; last, the first buffer has all of
            the packet, and only padding is elsewhere."""
            lengths = sorted({*range(14, 62, 5), *range(33, 36), *range(41, 44), 61})
            return [grown(split, b"%20d" % split) for split in lengths] + \
                [grown(split, b"%20d" % split, b"padding" * 8) for split in (62, 70)]
        grown(0, b"first")
        assert grown(0, b"second") == {"fast"}
        without = parts()
        long = grown(1500, pattern(5000))
        assert set() in without and {"fast"} in without
        rig.attach("card")
        assert "xdp" in {*grown(0, b"whole"), *grown(0, b"then")}
        assert parts() == without
        assert grown(1500, pattern(5000)) == long
        assert "xdp" in {*grown(0, b"whole again"), *grown(0, b"then")}
    rig.director.ip("link del card")


# Can this kernel's virtio_net show frames in parts to a program?
IN_PARTS = not os.uname().release.startswith("6.1.")


def test_long_frames_on_cards(rig):
    """A card may have an MTU above a page, before the program and after: long frames go to ingress,
    short ones are forwarded. Linux 6.1's driver refuses the program there, and takes frames up to a
    page."""
    with two_cards(rig) as outside, rig.server.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        rig.director.ip(f"neigh add {CIP} lladdr 02:00:00:00:00:02 dev card nud permanent")
        rig.serve("udp")
        server.bind((RIP, PORT))
        server.settimeout(1)

        def mtu(size):
            outside.ip(f"link set eth0 mtu {size}")
            rig.director.ip(f"link set card mtu {size}")

        def arrives(size):
            sock.send(frame(rig.director, "card", pattern(size)))
            with contextlib.suppress(TimeoutError):
                return server.recv(10_000) == pattern(size)

        def counted(size):
            """By what two frames have passed: the stack may want to admit one of them."""
            before = fast.read(rig.director)
            for _ in range(2):      # the first ones may be lost while the card begins
                wait_until(lambda: arrives(size), 10, what="a frame")
            return set(fast.grown(rig.director, before))

        def as_it_should(long):
            assert "xdp" in counted(100) and "xdp" not in counted(long) and "xdp" in counted(100)

        def attached():
            with rig.director.enter():
                said = json.loads(run([IPVSCTL, "-j", "fast-path"]).stdout)["fast_path"]["devices"]
            return [d["device"] for d in said if d["xdp"]]
        mtu(9000)
        with wire(outside, "eth0") as sock:
            assert "xdp" not in counted(5000)
            if IN_PARTS:
                rig.attach("card")
                as_it_should(5000)
                with rig.director.enter():
                    run([IPVSCTL, "fast-path", "no-xdp", "dev", "card"])
            else:
                with rig.director.enter():
                    done = run([IPVSCTL, "fast-path", "xdp", "dev", "card"], check=False)
                assert done.returncode == 3 and "card: its driver refuses: " in done.stderr and \
                    "MTU" in done.stderr, done
            assert attached() == []
            mtu(1500)
            rig.attach("card")
            assert attached() == ["card"]
            outside.ip("link set eth0 mtu 9000")
            as_it_should(3000)
            if IN_PARTS:
                mtu(9000)
                as_it_should(5000)
