# SPDX-License-Identifier: GPL-2.0
"""The canonical topologies: one client, one director, four real servers.

Each node is a network namespace with both address families. `.N` below means
198.51.100.N and 2001:db8:1::N on the front network.

 nat: two networks; the servers' default route is the director.

     client .2 ---- .1 director 192.0.2.1 ----[ switch ]---- rs1..rs4 192.0.2.11-14
                    VIPs .100-.103   2001:db8:2::1              2001:db8:2::11-14

 dr: one network; servers carry the VIPs on lo, hidden from ARP, and answer the
     client directly.

     client .2 ---+
                  [ switch ]---- rs1..rs4 .11-.14, lo: .100-.101
     director .1 -+
     VIPs .100-.103

 tun: the servers are behind a router, which is also the client's neighbour;
     they carry the VIPs on tunl0 and answer the client directly.

     client .2 ---+
                  [ router .3 ]---- rs1..rs4 203.0.113.11-14, 2001:db8:3::11-14
     director .1 -+                 tunl0 (4in4), sit0 (6in4), tun6 (4in6, 6in6)
     VIPs .100-.103

VIPs .100 and .101 are real: servers own them where the method needs that. VIPs
.102 and .103 (RAW_VIPS) exist on the director only, for tests that play both
ends themselves with raw packets:

 * phantom servers 1..4 sit beside rs1..rs4 at .61-.64 of the servers' network:
   addresses that no machine owns but whose link address is the server's. A
   packet for one reaches the server's interface, where a Tap sees it, and the
   server's own stack stays silent. The way to phantom 4 has an MTU of 1400
   (1420 bytes for the tunnel's outer packet, so 1400 inside IPIP).
 * phantom clients are all of 10.0.0.0/8 and 2001:db8:c::/48, routed to the
   client's interface.

`python3 -m lab.topology nat` (from tests/) builds one and runs a shell in it.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import itertools
import os
import signal
import socket
import struct
import sys
import threading

from . import packet
from .netns import SLOW, Namespace, run, wait_until

SHAPES = ("nat", "dr", "tun")
SERVERS = ("rs1", "rs2", "rs3", "rs4")
FRONT = {4: "198.51.100.", 6: "2001:db8:1::"}
NETWORK = {"nat": {4: "192.0.2.", 6: "2001:db8:2::"},
           "dr": FRONT,
           "tun": {4: "203.0.113.", 6: "2001:db8:3::"}}
LENGTH = {4: 24, 6: 64}
HOST = {4: 32, 6: 128}
VIPS = (100, 101)
RAW_VIPS = (102, 103)
PHANTOM_CLIENTS = {4: "10.0.0.0/8", 6: "2001:db8:c::/48"}
PHANTOM_MTU = 1400
# The service ports real servers answer on, TCP and UDP; tests take a fresh one
# each so that connections of an earlier test cannot be mistaken for theirs.
HTTP_PORTS = (80, 443, *range(8000, 8100))

PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, SOL_PACKET = 8, 23, 263
TP_STATUS_CSUMNOTREADY = 8
SO_RCVBUFFORCE = 33
SIOCGIFFLAGS, IFF_RUNNING = 0x8913, 0x40


class Node:
    """A namespace with a role, and its interfaces' link addresses."""

    def __init__(self, topology, role):
        self.role = role
        self.ns = Namespace(topology.prefix + role)
        self.addresses = {}
        self.macs = {}

    def mac(self, device="eth0"):
        if device not in self.macs:
            text = self.ns.run(["ip", "-br", "link", "show", device]).stdout
            self.macs[device] = bytes.fromhex(text.split()[2].replace(":", ""))
        return self.macs[device]

    def is_running(self, device):
        """Is it up, and does its kernel know that its cable is plugged in?"""
        with self.ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            request = struct.pack("16sH22x", device.encode("ascii"), 0)
            flags, = struct.unpack_from("H", fcntl.ioctl(s, SIOCGIFFLAGS, request), 16)
        return bool(flags & IFF_RUNNING)

    def __repr__(self):
        return f"<{self.role}>"


class Tap:
    """Raw Ethernet on one interface: what arrives there, and sending from it."""

    def __init__(self, node, device="eth0"):
        self.node, self.device = node, device
        self.sock = node.ns.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                   socket.htons(3))
        self.sock.bind((device, 3))
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        self.sock.setblocking(False)
        self.peer = None
        self.pending = []

    def close(self):
        self.sock.close()

    def send(self, ip_packet, mac=None, ethertype=None):
        """Send an IP packet to the link address MAC (default: self.peer)."""
        # A full device queue is the sender's business: wait for room.
        frame = self.frame(ip_packet, mac, ethertype)
        wait_until(lambda: self._try(frame), what="room in the device queue")

    def try_send(self, ip_packet):
        """Send if that is possible right now, say whether it was."""
        try:
            return self._try(self.frame(ip_packet))
        except OSError:
            return False

    def frame(self, ip_packet, mac=None, ethertype=None):
        if ethertype is None:
            ethertype = packet.ETH_IP6 if ip_packet[:1] and ip_packet[0] >> 4 == 6 \
                else packet.ETH_IP
        return (mac or self.peer) + self.node.mac(self.device) + \
            struct.pack("!H", ethertype) + ip_packet

    def _try(self, frame):
        try:
            self.sock.send(frame)
            return True
        except OSError as e:
            if e.errno in (errno.EAGAIN, errno.ENOBUFS):
                return False
            raise

    def frames(self):
        """Every IP frame that has arrived: (frame, is its sum still to be made)"""
        while True:
            try:
                frame, aux, _, source = self.sock.recvmsg(70000, 128)
            except BlockingIOError:
                return
            # A bridge floods what it has not learned; that is not for us.
            if source[2] == socket.PACKET_OTHERHOST:
                continue
            if frame[12:14] in (b"\x08\x00", b"\x86\xdd"):
                status = struct.unpack("I", aux[0][2][:4])[0] if aux else 0
                yield frame, bool(status & TP_STATUS_CSUMNOTREADY)

    def poll(self):
        """Every IP packet that has arrived and nobody has taken yet."""
        for frame, offloaded in self.frames():
            try:
                p = packet.Packet(frame[14:], mac=frame[:6], offloaded=offloaded)
            except (ValueError, struct.error):
                continue
            p.behind = frame[14 + len(p.raw):]
            self.pending.append(p)
        return self.pending

    def drain(self):
        self.poll()
        self.pending = []

    def take(self, match):
        """Remove and return the waiting packets that MATCH, in order."""
        self.poll()
        found = [p for p in self.pending if match(p)]
        self.pending = [p for p in self.pending if not match(p)]
        return found

    def expect(self, match, count=1, deadline=5.0, what="packets"):
        """Wait for COUNT matching packets; their checksums must be right."""
        got = []

        def arrived():
            got.extend(self.take(match))
            return len(got) >= count

        try:
            wait_until(arrived, deadline)
        except AssertionError:
            raise AssertionError(
                f"{self.node.role}: {len(got)} of {count} {what}; got {got}, "
                f"also waiting: {self.pending[-8:]}") from None
        bad = [b for b in (p.bad_checksum() for p in got) if b]
        assert not bad, bad
        assert len(got) == count, f"{len(got)} {what} instead of {count}: {got}"
        return got[0] if count == 1 else got


class Topology:
    """One of the three shapes; see the drawing at the top of this file."""

    def __init__(self, shape, prefix=None):
        if shape not in SHAPES:
            raise ValueError(f"{shape}: use one of {', '.join(SHAPES)}")
        self.shape = shape
        self.prefix = f"{shape}-" if prefix is None else prefix
        self.nodes = {}
        self.farm = None
        self._taps = {}

    # -- names and addresses

    client = property(lambda self: self.nodes["client"])
    director = property(lambda self: self.nodes["director"])
    servers = property(lambda self: [self.nodes[s] for s in SERVERS])

    def vip(self, family=4, index=0):
        return FRONT[family] + str(VIPS[index])

    def raw_vip(self, family=4, index=0):
        return FRONT[family] + str(RAW_VIPS[index])

    def rip(self, number, family=4):
        """The address of real server NUMBER (1..4)."""
        return NETWORK[self.shape][family] + str(10 + number)

    def phantom(self, number, family=4):
        return NETWORK[self.shape][family] + str(60 + number)

    def cip(self, family=4):
        return FRONT[family] + "2"

    def dip(self, family=4):
        """The director's address on the servers' side."""
        net = FRONT if self.shape == "tun" else NETWORK[self.shape]
        return net[family] + "1"

    @property
    def back(self):
        """The director's interface towards the servers."""
        return "eth1" if self.shape == "nat" else "eth0"

    def tap(self, role):
        """The Tap on a node's only interface; made once, drained each time."""
        if role not in self._taps:
            tap = Tap(self.nodes[role])
            if role == "client":
                tap.peer = self.director.mac("eth0")
            elif role in SERVERS:
                tap.peer = self.nodes["router"].mac("br0") if self.shape == "tun" \
                    else self.director.mac(self.back)
            self._taps[role] = tap
        self._taps[role].drain()
        return self._taps[role]

    # -- life

    def create(self):
        roles = ["client", "director", "router", *SERVERS]
        try:
            run(["ip", "-batch", "-"], text_input="".join(
                f"netns add {self.prefix}{r}\n" for r in roles))
            self.nodes = {r: _existing(self, r) for r in roles}
            for node in self.nodes.values():
                self._set_defaults(node)
            run(["ip", "-batch", "-"], text_input="".join(
                f"link add {a} netns {self.prefix}{x} type veth "
                f"peer name {b} netns {self.prefix}{y}\n"
                for x, a, y, b in self._cables()))
            # A bridge reports its multicast groups a second later: some test's director
            # would count that as its packet.
            self.nodes["router"].ns.run(["nft", "-f", "-"], text_input=(
                "table ip6 quiet { chain out { type filter hook output priority 0; "
                "icmpv6 type mld2-listener-report drop; }; }\n"))
            for role, node in self.nodes.items():
                node.ns.ip(*self._lines(role))
            self._wait_for_links()
            self._phantoms()
        except BaseException:
            self.destroy()
            raise
        return self

    def destroy(self):
        self.stop_http()
        for tap in self._taps.values():
            tap.close()
        self._taps = {}
        for node in self.nodes.values():
            node.ns.close()
        gone = [f"netns del {n.ns.name}\n" for n in self.nodes.values()]
        if gone:
            run(["ip", "-batch", "-"], text_input="".join(gone), check=False)
        self.nodes = {}

    __enter__ = create

    def __exit__(self, *_):
        self.destroy()

    def _cables(self):
        cables = [("client", "eth0", "director", "eth0")] if self.shape == "nat" else \
            [("client", "eth0", "router", "client"),
             ("director", "eth0", "router", "director")]
        if self.shape == "nat":
            cables.append(("director", "eth1", "router", "director"))
        return cables + [(s, "eth0", "router", s) for s in SERVERS]

    def _set_defaults(self, node):
        set_ = node.ns.sysctl
        for scope in ("all", "default"):
            set_(f"net/ipv4/conf/{scope}/rp_filter", 0)
        for name, value in {"accept_dad": 0, "dad_transmits": 0, "router_solicitations": 0,
                            "mldv2_unsolicited_report_interval": 1}.items():
            set_(f"net/ipv6/conf/default/{name}", value)
        if node.role == "director" or (node.role == "router" and self.shape == "tun"):
            set_("net/ipv4/ip_forward", 1)
            set_("net/ipv6/conf/all/forwarding", 1)
        # Tests provoke more ICMP errors than a host may send by default.
        set_("net/ipv4/icmp_ratelimit", 0)
        set_("net/ipv6/icmp/ratelimit", 0)
        with contextlib.suppress(OSError):
            set_("net/ipv4/icmp_msgs_per_sec", 1000000)
            set_("net/ipv4/icmp_msgs_burst", 100000)
        if node.role == "director":
            # Redirects would teach one-armed clients a way round the director.
            for scope in ("all", "default"):
                set_(f"net/ipv4/conf/{scope}/send_redirects", 0)
        if node.role in SERVERS and self.shape == "dr":
            set_("net/ipv4/conf/all/arp_ignore", 1)
            set_("net/ipv4/conf/all/arp_announce", 2)

    def _lines(self, role):
        yield "link set lo up"
        if role == "router":
            yield from self._router_lines()
        elif role == "client":
            yield from _address("eth0", FRONT, 2)
            # Phantoms' packets end here; without it IPv6 answers "no route".
            yield "route add blackhole ::/0"
        elif role == "director":
            yield from self._director_lines()
        else:
            yield from self._server_lines(role)

    def _router_lines(self):
        yield "link add br0 type bridge"
        yield "link set br0 up"
        inside = list(SERVERS) if self.shape == "tun" else [*SERVERS, "director"]
        if self.shape == "dr":
            inside.append("client")
        for port in inside:
            yield f"link set {port} master br0"
            yield f"link set {port} up"
        if self.shape == "tun":
            yield from _address("br0", NETWORK["tun"], 1)
            yield "link add br1 type bridge"
            yield "link set br1 up"
            for port in ("client", "director"):
                yield f"link set {port} master br1"
                yield f"link set {port} up"
            yield from _address("br1", FRONT, 3, up=False)

    def _director_lines(self):
        yield from _address("eth0", FRONT, 1)
        if self.shape == "nat":
            yield from _address("eth1", NETWORK["nat"], 1)
        for host in VIPS + RAW_VIPS:
            for family in (4, 6):
                # Deprecated: never the source of the director's own packets.
                yield f"addr add {FRONT[family]}{host}/{HOST[family]} dev eth0" + \
                    (" nodad preferred_lft 0" if family == 6 else "")
        for family in (4, 6):
            for net in ("default", PHANTOM_CLIENTS[family]):
                yield f"route add {net} via {FRONT[family]}2"
            if self.shape == "tun":
                net = NETWORK["tun"][family]
                yield f"route add {net}{'0' if family == 4 else ''}/" \
                    f"{LENGTH[family]} via {FRONT[family]}3"

    def _server_lines(self, role):
        number = SERVERS.index(role) + 1
        net = NETWORK[self.shape]
        yield from _address("eth0", net, 10 + number)
        if self.shape == "dr":
            yield "route add blackhole ::/0"
        else:
            for family in (4, 6):
                yield f"route add default via {net[family]}1"
        if self.shape == "tun":
            # The fallback devices take any sender; ip6tnl0 refuses IPv4 inside,
            # so IPv6 gets a device of its own.
            yield "link add tun6 type ip6tnl mode any local " \
                f"{net[6]}{10 + number} remote any"
            yield "link set tunl0 up"
            yield "link set sit0 up"
            yield "link set tun6 up"
        carrier = {"dr": "lo", "tun": "tunl0"}.get(self.shape)
        if carrier:
            for host in VIPS:
                yield f"addr add {FRONT[4]}{host}/32 dev {carrier}"
                yield f"addr add {FRONT[6]}{host}/128 dev " \
                    f"{'lo' if carrier == 'lo' else 'tun6'} nodad preferred_lft 0"

    def _wait_for_links(self):
        """Until a thread of the kernel has seen to its carrier, a device drops all. Then
        it reports its multicast groups, which would count as some test's packets."""
        for x, a, y, b in self._cables():
            wait_until(lambda x=x, a=a, y=y, b=b: self.nodes[x].is_running(a) and
                       self.nodes[y].is_running(b), 10, what=f"{x}'s {a}, {y}'s {b} up")

    def _phantoms(self):
        """Teach the servers' last hop the phantoms' link addresses."""
        hop = self.nodes["router"] if self.shape == "tun" else self.director
        device = "br0" if self.shape == "tun" else self.back
        lines, routes = [], []
        for number, server in enumerate(SERVERS, 1):
            mac = ":".join(f"{b:02x}" for b in self.nodes[server].mac())
            for family in (4, 6):
                lines.append(f"neigh add {self.phantom(number, family)} lladdr {mac} "
                             f"dev {device} nud permanent")
        mtu = PHANTOM_MTU
        for family in (4, 6):
            to = f"{self.phantom(4, family)}/{HOST[family]}"
            via = f"via {FRONT[family]}3 " if self.shape == "tun" else ""
            size = mtu + 20 if self.shape == "tun" else mtu
            routes.append(f"route add {to} {via}dev {self.back} mtu {size}")
        hop.ns.ip(*lines)
        self.director.ns.ip(*routes)

    # -- real traffic

    def start_http(self):
        """A small HTTP and UDP echo server in each real server's namespace."""
        if not self.farm:
            self.farm = Farm(self.servers)
        return self.farm

    def stop_http(self):
        if self.farm:
            self.farm.stop()
            self.farm = None


def _existing(topology, role):
    node = Node.__new__(Node)
    node.role, node.addresses, node.macs = role, {}, {}
    node.ns = Namespace(topology.prefix + role, create=False)
    return node


def _address(device, net, host, up=True):
    for family in (4, 6):
        yield f"addr add {net[family]}{host}/{LENGTH[family]} dev {device}" + \
            (" nodad" if family == 6 else "")
    if up:
        yield f"link set {device} up"


class Farm:
    """All real servers' applications in one forked process.

    GET /anything answers "rsN /anything CLIENT-ADDRESS"; GET /bulk/BYTES answers
    that many bytes of pattern(); a PUT answers the SHA-256 of what came. A UDP
    datagram comes back from the address it was sent to, behind "rsN ".
    """

    def __init__(self, nodes, ports=HTTP_PORTS):
        self.listeners, self.datagrams = [], []
        for node in nodes:
            with node.ns.enter():
                for port in ports:
                    self.listeners.append((node.role, _listen(port)))
                    self.datagrams.append((node.role, _datagram(port)))
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                if os.getppid() == parent:
                    self._close_others()
                    self._serve()
                status = 0
            finally:
                os._exit(status)
        for _, s in self.listeners + self.datagrams:
            s.close()

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _close_others(self):
        """An inherited descriptor would keep its namespace alive."""
        keep = {0, 1, 2} | {s.fileno() for _, s in self.listeners + self.datagrams}
        for name in os.listdir("/proc/self/fd"):
            if int(name) not in keep:
                with contextlib.suppress(OSError):
                    os.close(int(name))

    def _serve(self):
        import selectors
        poll = selectors.EpollSelector()
        for name, s in self.listeners:
            poll.register(s, selectors.EVENT_READ, (self._accept, name))
        for name, s in self.datagrams:
            poll.register(s, selectors.EVENT_READ, (self._echo, name))
        while True:
            for key, _ in poll.select():
                handler, name = key.data
                with contextlib.suppress(OSError):
                    handler(name, key.fileobj)

    @staticmethod
    def _accept(name, listener):
        conn, peer = listener.accept()
        conn.setblocking(True)
        threading.Thread(target=_converse, args=(name, conn, peer[0]),
                         daemon=True).start()

    @staticmethod
    def _echo(name, sock):
        data, aux, _, peer = sock.recvmsg(65536, 64)
        aux = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, d[:16] + b"\0\0\0\0")
               for _, _, d in aux]
        sock.sendmsg([name.encode() + b" " + data], aux, 0, peer)


def pattern(size):
    """SIZE bytes that a swapped, lost or repeated block would change."""
    block = _block()
    return (block * (size // len(block) + 1))[:size]


@functools.cache
def _block():
    return b"".join(struct.pack("!I", i * 2654435761 & 0xffffffff) for i in range(16384))


def _listen(port):
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", port))
    s.listen(256)
    s.setblocking(False)
    return s


def _datagram(port):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    s.bind(("::", port))
    s.setblocking(False)
    return s


def _converse(name, conn, peer):
    with conn, contextlib.suppress(OSError), conn.makefile("rb") as lines:
        while True:
            request = lines.readline().split()
            if len(request) < 2:
                return
            length, keep = 0, request[-1] != b"HTTP/1.0"
            while True:
                header = lines.readline().strip().lower()
                if not header:
                    break
                if header.startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                if header == b"connection: close":
                    keep = False
            path = request[1].decode()
            if request[0] == b"PUT":
                digest = hashlib.sha256()
                while length:
                    part = lines.read(min(length, 1 << 16))
                    if not part:
                        return
                    digest.update(part)
                    length -= len(part)
                body = digest.hexdigest().encode()
            elif path.startswith("/bulk/"):
                body = pattern(int(path[6:]))
            else:
                body = f"{name} {path} {peer.removeprefix('::ffff:')}\n".encode()
            conn.sendall(b"HTTP/1.1 200 OK\r\nServer: %s\r\nContent-Length: %d\r\n\r\n"
                         % (name.encode(), len(body)) + body)
            if not keep:
                return


_client_ports = itertools.cycle(range(20001, 65000))


def fresh_port():
    """A client port that no test of this session has used."""
    return next(_client_ports)


class Http:
    """One client connection, HTTP/1.1; use as a context manager."""

    def __init__(self, node, address, port=80, source=None, sport=None, timeout=8):
        family = socket.AF_INET6 if packet.is6(address) else socket.AF_INET
        self.sock = node.ns.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(timeout * SLOW)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sport = sport or fresh_port()
        try:
            self.sock.bind((source or ("::" if packet.is6(address) else "0.0.0.0"),
                            self.sport))
            self.sock.connect((address, port))
        except BaseException:
            self.sock.close()
            raise
        self.server = None
        self.lines = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """In good order: what an end has to send again counts in another test."""
        with contextlib.suppress(OSError):
            self.sock.settimeout(1)
            self.sock.shutdown(socket.SHUT_WR)
            self.lines.read()
        self.lines.close()
        self.sock.close()

    def abort(self):
        """With a reset: nothing waits at this end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.lines.close()
        self.sock.close()

    def request(self, method="GET", path="/", body=b"", close=False):
        head = f"{method} {path} HTTP/1.1\r\nHost: lab\r\n"
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        if close:
            head += "Connection: close\r\n"
        self.sock.sendall(head.encode() + b"\r\n" + body)
        status = self.lines.readline()
        if b" 200 " not in status:
            raise OSError(f"not an HTTP answer: {status!r}")
        length = 0
        while True:
            header = self.lines.readline().strip()
            if not header:
                break
            key, value = header.split(b": ")
            if key == b"Server":
                self.server = value.decode()
            elif key == b"Content-Length":
                length = int(value)
        return self.lines.read(length)


def http_get(node, address, port=80, path="/", **kwargs):
    """One GET on a connection of its own: (server's name, body)."""
    with Http(node, address, port, **kwargs) as h:
        body = h.request(path=path, close=True)
        return h.server, body


def udp_ask(node, address, port=80, data=b"?", source=None, sport=None, timeout=8):
    """One datagram and its echo: (server's name, data)."""
    family = socket.AF_INET6 if packet.is6(address) else socket.AF_INET
    with node.ns.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(timeout * SLOW)
        s.bind((source or ("::" if packet.is6(address) else "0.0.0.0"),
                sport or fresh_port()))
        s.connect((address, port))
        s.send(data)
        name, _, rest = s.recv(70000).partition(b" ")
        return name.decode(), rest


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in SHAPES:
        sys.exit(f"usage: python3 -m lab.topology {'|'.join(SHAPES)}")
    with Topology(sys.argv[1]) as topo:
        topo.start_http()
        print(f"{topo.shape}: namespaces {' '.join(n.ns.name for n in topo.nodes.values())};"
              " leave the shell to remove them")
        topo.director.ns.popen([os.environ.get("SHELL", "/bin/sh")]).wait()


if __name__ == "__main__":
    main()
