# SPDX-License-Identifier: GPL-2.0
"""The fast path's hooks follow devices that come, go, are renamed, move, or become
part of others. Forwarding works in each case, by the device that has the
addresses.

     client eth0 ---- in0 director out0 ---- eth0 server
             198.51.100.2 .1, VIP .100      192.0.2.1 .9
"""

import contextlib
import json
import threading
import time

import pytest
from lab import fast, genl, packet
from lab.backend import Backend
from lab.flows import TERM
from lab.netns import Namespace, join_all, run, wait_until
from lab.packet import UDP
from lab.rows import amount
from lab.tap import Tap

NO_MODULE = True        # the last test unloads it
MACS = {"c": "02:00:00:00:00:02", "in": "02:00:00:00:00:01",
        "out": "02:00:00:00:01:01", "s": "02:00:00:00:01:09"}
ADDRESS = {"in": ("198.51.100.1/24", "198.51.100.100/32", "2001:db8:1::1/64",
                  "2001:db8:1::100/128"),
           "out": ("192.0.2.1/24", "2001:db8:2::1/64")}
CLIENT = {4: "198.51.100.2", 6: "2001:db8:1::2"}
VIP = {4: "198.51.100.100", 6: "2001:db8:1::100"}
SERVER = {4: "192.0.2.9", 6: "2001:db8:2::9"}


@pytest.fixture(scope="module", autouse=True)
def module(backend):
    if not backend.is_l4lb:
        pytest.skip("ip_vs has nothing of the kind; runs with --backend l4lb")
    with Backend("l4lb").alone(("rr",)) as which:
        yield which


class End:
    """A namespace whose eth0 the test itself sends and receives on."""

    def __init__(self, name, mac):
        self.role, self.link, self.macs = name, bytes.fromhex(mac.replace(":", "")), {}
        self.ns = Namespace(name)

    def mac(self, device="eth0"):
        return self.link


class Rig:
    """The network drawn above, with NAT and one UDP service for each family."""

    sport = 30000

    def __init__(self):
        self.client, self.server = End("fd-c", MACS["c"]), End("fd-s", MACS["s"])
        self.ns = Namespace("fd-d")
        for scope in ("all", "default"):
            self.ns.sysctl(f"net/ipv4/conf/{scope}/rp_filter", 0)
            self.ns.sysctl(f"net/ipv4/conf/{scope}/send_redirects", 0)
        for key in ("dad_transmits", "accept_dad", "router_solicitations"):
            self.ns.sysctl(f"net/ipv6/conf/default/{key}", 0)
        self.ns.sysctl("net/ipv4/ip_forward", 1)
        self.ns.sysctl("net/ipv6/conf/all/forwarding", 1)
        run("ip -batch -", text_input="".join(
            f"link add eth0 netns {end.ns.name} address {MACS[far]} type veth "
            f"peer name {near}0 netns fd-d address {MACS[near]}\n"
            for end, far, near in ((self.client, "c", "in"), (self.server, "s", "out"))))
        for end in (self.client, self.server):
            end.ns.ip("link set eth0 up")
        self.ns.ip("link set lo up", "link set in0 up", "link set out0 up")
        self.front, self.back = Tap(self.client), Tap(self.server)
        self.front.peer = bytes.fromhex(MACS["in"].replace(":", ""))
        self.back.peer = bytes.fromhex(MACS["out"].replace(":", ""))
        self.ipvs = genl.Ipvs(self.ns)
        for family in (4, 6):
            self.ipvs.service(VIP[family], 80, proto=UDP, sched="rr").server(
                SERVER[family], 8080)
        self.address("in", "in0")
        self.address("out", "out0")
        self.flows = []

    def close(self):
        for tap in (self.front, self.back):
            tap.close()
        self.ipvs.close()
        for ns in (self.client.ns, self.ns, self.server.ns):
            ns.destroy()

    def address(self, end, device):
        """Put the director's addresses at END, and its only neighbour there, on DEVICE."""
        mac = MACS["c" if end == "in" else "s"]
        to = CLIENT if end == "in" else SERVER
        lines = [f"addr replace {a} dev {device}" + (" nodad" if ":" in a else "")
                 for a in ADDRESS[end]]
        lines += [f"neigh replace {to[f]} lladdr {mac} dev {device} nud permanent"
                  for f in (4, 6)]
        self.ns.ip(*lines)

    def move(self, end, old, new):
        self.ns.ip(f"addr flush dev {old}")
        self.address(end, new)

    def request(self, family, sport, payload=b"?"):
        return packet.udp_packet(CLIENT[family], sport, VIP[family], 80, payload)

    def reply(self, family, sport, payload=b"!"):
        return packet.udp_packet(SERVER[family], 8080, CLIENT[family], sport, payload)

    def exchange(self, family, sport):
        self.front.send(self.request(family, sport))
        p = self.back.expect(lambda p: p.sport == sport)
        assert (p.dst, p.dport, p.ttl) == (SERVER[family], 8080, 63)
        self.back.send(self.reply(family, sport))
        p = self.front.expect(lambda p: p.dport == sport and p.proto == UDP)
        assert (p.src, p.sport, p.ttl) == (VIP[family], 80, 63)

    def links_are_up(self):
        """A new link is noticed up to a second later; until then packets sent there are
        lost."""
        links = [link for ns in (self.client.ns, self.ns, self.server.ns)
                 for link in json.loads(ns.run("ip -j link show type veth").stdout or "[]")]
        return all(link["operstate"] == "UP" for link in links
                   if "UP" in link.get("flags", ()))

    def works(self, taken=2, within=5):
        """New and old flows work. TAKEN: how many of the two packets of an exchange are
        fast, once hooks are in place."""
        wait_until(self.links_are_up, 5)
        for flow in self.flows:
            self.exchange(*flow)
        for family in (4, 6):
            Rig.sport += 1
            flow = family, Rig.sport

            def settled(flow=flow):
                self.exchange(*flow)
                before = fast.read(self.ns)
                self.exchange(*flow)
                with contextlib.suppress(AssertionError):
                    wait_until(lambda: fast.grown(self.ns, before).get("fast", 0) == taken, 0.2)
                return fast.grown(self.ns, before).get("fast", 0) == taken
            wait_until(settled, within, what=f"{taken} of two packets taken")
            for _ in range(2):
                # The first may be the one per term that goes through the stack.
                assert settled() or settled()
        self.flows = [(f, Rig.sport + f // 2 - 3) for f in (4, 6)]


    def looked_at_once(self):
        """A hook on a second device would count the packets again, as left to the stack.
        Several tries, because packets of the ends' own stacks count now and then."""
        def once():
            before = fast.read(self.ns)
            self.exchange(*self.flows[0])
            time.sleep(0.05)
            return fast.grown(self.ns, before) == {"fast": 2}
        wait_until(once, 5, what="an exchange that is counted as two packets")


@pytest.fixture
def rig():
    rig = Rig()
    try:
        rig.works()
        yield rig
    finally:
        rig.close()


@pytest.mark.smoke
def test_down_and_up(rig):
    for device, end in (("in0", "in"), ("out0", "out")):
        rig.ns.ip(f"link set {device} down", f"link set {device} up")
        rig.address(end, device)
        rig.works()


def test_renamed(rig):
    for old, new in (("in0", "else0"), ("out0", "other0")):
        if rig.ns.run(f"ip link set {old} name {new}", check=False).returncode:
            # Up to Linux 6.1 a device has to be down for that.
            rig.ns.ip(f"link set {old} down", f"link set {old} name {new}", f"link set {new} up")
            rig.address(old[:-1], new)
        rig.works()
        rig.ns.ip(f"link set {new} down", f"link set {new} name {old}", f"link set {old} up")
        rig.address(old[:-1], old)
    rig.works()


def test_to_another_namespace_and_back(rig):
    for device, end in (("in0", "in"), ("out0", "out")):
        elsewhere = Namespace("fd-e")
        try:
            rig.ns.ip(f"link set {device} netns fd-e")
            elsewhere.ip(f"link set {device} up")
            # In that namespace it belongs to no service.
            rig.front.send(rig.request(4, 999))
            elsewhere.ip(f"link set {device} netns fd-d")
            rig.ns.ip(f"link set {device} up")
            rig.address(end, device)
            rig.works()
        finally:
            elsewhere.destroy()


@pytest.mark.smoke
@pytest.mark.parametrize("kind", (
    "bridge", "bond", pytest.param("macvlan", marks=pytest.mark.emulated)))
def test_part_of_another(rig, kind):
    """The upper device has the addresses and the hook; the lower one has no hook. Then
    the upper one is deleted again."""
    make = {"bridge": "type bridge", "bond": "type bond mode active-backup",
            "macvlan": "link {} type macvlan mode private"}[kind]
    for end in ("in", "out"):
        lower = f"{end}0"
        mac = MACS[end]
        done = rig.ns.run(f"ip link add up0 address {mac} {make.format('')}" if kind != "macvlan"
                          else f"ip link add up0 link {lower} address 02:00:00:00:09:09 "
                          "type macvlan mode private", check=False)
        if done.returncode:
            pytest.skip(f"this kernel has no {kind}: Debian's have it (suite stages 6.12 and 6.1)")
        tap = rig.front if end == "in" else rig.back
        peer = tap.peer
        if kind == "macvlan":
            tap.peer = bytes.fromhex("020000000909")
        else:
            if kind == "bond":
                rig.ns.ip(f"link set {lower} down")
            rig.ns.ip(f"link set {lower} master up0", f"link set {lower} up")
        rig.ns.ip("link set up0 up")
        rig.move(end, lower, "up0")
        rig.works()
        rig.looked_at_once()
        tap.peer = peer
        rig.ns.ip("link del up0", f"link set {lower} up")
        rig.address(end, lower)
        rig.works()


@pytest.mark.smoke
def test_vrf(rig):
    """A VRF member's packets are routed by the VRF's table: all go through the stack."""
    done = rig.ns.run("ip link add v0 type vrf table 5", check=False)
    if done.returncode:
        pytest.skip("this kernel has no VRF: Debian's have it (suite stages 6.12 and 6.1)")
    rig.ns.ip("link set v0 up", "link set in0 master v0")
    rig.ns.sysctl("net/ipv4/udp_l3mdev_accept", 1)
    before = fast.read(rig.ns)["fast"]
    for n in range(5):
        rig.front.send(rig.request(4, 777, b"vrf %d" % n))
    with contextlib.suppress(AssertionError):
        wait_until(lambda: len(rig.back.poll()) >= 5, 0.3)
    # Nor do flows begin there. (A new member loses its IPv6 addresses.)
    rig.address("in", "in0")
    rig.ns.sysctl(fast.SETTING, 2)
    time.sleep(0.1)
    for family in (4, 6):
        rig.front.send(rig.request(family, 778, b"new"))
    time.sleep(0.3)
    rig.ns.sysctl(fast.SETTING, 1)
    assert fast.read(rig.ns)["fast"] == before
    rig.ns.ip("link set in0 nomaster")
    rig.address("in", "in0")
    rig.ns.ip("link del v0")
    rig.works()


def test_vlan(rig):
    """On a device with VLANs, untagged packets are handled there, tagged ones on the
    VLAN's device."""
    rig.ns.ip("link add link in0 name v7 type vlan id 7", "link set v7 up")
    rig.works()
    rig.move("in", "in0", "v7")
    frames, plain = rig.front, rig.front.frame

    def tagged(ip_packet, mac=None, ethertype=None):
        frame = plain(ip_packet, mac, ethertype)
        return frame[:12] + b"\x81\0\0\7" + frame[12:]
    frames.frame = tagged
    rig.client.ns.ip("link add link eth0 name v7 type vlan id 7", "link set v7 up")
    here, rig.front = rig.front, Tap(rig.client, "v7")
    rig.front.frame, rig.front._try = here.frame, here._try
    try:
        rig.works()
        rig.ns.ip("link del v7")
    finally:
        rig.front.close()
        rig.front = here
        del here.frame
    here.take(lambda p: True)       # discard the VLAN's packets
    rig.address("in", "in0")
    rig.works()


def test_late_uplink(rig):
    """Devices without requests take no numbers: a device that comes after hundreds of them
    gets its own."""
    rig.ns.ip(*(line for n in range(300) for line in (f"link add d{n} group 7 type dummy",
                                                      f"link set d{n} up")))
    rig.ns.ip("link set in0 down", "link set in0 up")
    rig.address("in", "in0")
    rig.works()
    rig.ns.ip("link del group 7")


@pytest.mark.timer
def test_more_than_there_are_numbers(rig):
    """When requests come in by more devices than there are numbers, those of the others take
    the stack, until some devices have had none for a term."""
    count = 260
    plain = rig.front.frame

    def tagged(n):
        frame = plain(rig.request(4, 20000 + n))
        return frame[:12] + b"\x81\0" + n.to_bytes(2, "big") + frame[12:]
    rig.ns.ip(*(line for n in range(1, count + 1) for line in (
        f"link add link in0 name v{n} type vlan id {n}", f"link set v{n} group 7 up")))

    def taken():
        before = fast.read(rig.ns)
        for n in range(1, count + 1):
            rig.front.sock.send(tagged(n))
            rig.back.expect(lambda p, n=n: p.sport == 20000 + n)
        time.sleep(0.05)
        return fast.grown(rig.ns, before).get("fast", 0)
    # One is the uplink's, to which the VLANs belong. First packets are taken, too: nobody looks.
    assert taken() == 254
    assert taken() == 254
    rig.ns.ip("link set in0 down", "link set in0 up", *(
        f"link set v{n} up" for n in range(1, count + 1)))
    rig.address("in", "in0")
    rig.works(taken=1)
    rig.works(within=3 * TERM)
    rig.ns.ip("link del group 7")


def pump(rig, stop):
    old = [(f(family, 40000 + n), tap) for family in (4, 6) for n in range(8)
           for f, tap in ((rig.request, rig.front), (rig.reply, rig.back))]
    while not stop.is_set():
        for p, tap in old:
            tap.try_send(p)
        with contextlib.suppress(OSError):      # the device may be gone
            rig.front.drain()
            rig.back.drain()


@contextlib.contextmanager
def traffic(rig):
    stop = threading.Event()
    thread = threading.Thread(target=pump, args=(rig, stop), daemon=True)
    before = fast.read(rig.ns)["fast"]
    thread.start()
    try:
        wait_until(lambda: fast.read(rig.ns)["fast"] > before + 50, 10)
        yield
    finally:
        stop.set()
        join_all(thread)


@pytest.mark.emulated
@pytest.mark.smoke
def test_changes_under_traffic(rig, request):
    """Devices come, change and go while their packets take the fast path."""
    with traffic(rig):
        for turn in range(amount(request.config, few=2, each=3, all=6)):
            for end in ("in", "out"):
                rig.ns.ip(f"link set {end}0 down", f"link set {end}0 up")
                rig.address(end, f"{end}0")
            rig.ns.ip("link add br0 type bridge", "link set in0 master br0", "link set br0 up",
                      "link del br0")
            rig.ns.sysctl(fast.SETTING, turn % 2)
        rig.ns.sysctl(fast.SETTING, 1)
    rig.front.drain()
    rig.back.drain()
    rig.works()


@pytest.mark.parametrize("end", ("in", "out"))
def test_deleted_under_traffic(rig, end):
    """Flows, routes and hooks release the device, or `ip link del` would wait for ever."""
    with traffic(rig):
        rig.ns.run(f"ip link del {end}0", timeout=30)


@pytest.mark.smoke
def test_namespace_ends_under_traffic(rig, module):
    with traffic(rig):
        rig.ipvs.close()
        rig.ns.destroy()
    wait_until(lambda: module.refcount() == len(module.family()) - 1, 20)
    rig.ns = Namespace("fd-d")      # for the fixture's end
    rig.ipvs = rig.client.ns.socket(1, 1)     # likewise


def test_unload_under_traffic(rig, module):
    with traffic(rig):
        rig.ipvs.flush()
        rig.ipvs.close()
        module.unload()
        wait_until(lambda: not module.loaded(), 5)
    module.load()
    run("modprobe l4lb_rr")
    rig.ipvs = genl.Ipvs(rig.ns)
    for family in (4, 6):
        rig.ipvs.service(VIP[family], 80, proto=UDP, sched="rr").server(SERVER[family], 8080)
    rig.front.drain()
    rig.back.drain()
    rig.flows = []
    rig.works()
