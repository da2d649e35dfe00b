# SPDX-License-Identifier: GPL-2.0
"""Known bugs of net/netfilter/ipvs, one test for each.

COVERED lists every CVE, and every fix without a CVE, with the tests that would
catch the same bug here, or the reason why it cannot occur. This file has the
tests that are in no other file. tests/host/test_cve_table.py checks that all
of them exist.
"""

import contextlib
import ctypes
import errno
import os
import socket
import struct
import threading

import pytest
from lab import faults, genl, packet
from lab.counters import counts
from lab.farm import pattern
from lab.faults import Fault
from lab.genl import attr, text
from lab.kernel_log import scan_for_leaks
from lab.netns import join_all, wait_until
from lab.packet import ACK, DSTOPTS, FRAGMENT, HOPOPTS, ROUTING, SYN, TCP, UDP
from lab.raw import Raw
from lab.ring import Ring
from lab.rows import amount
from lab.small import small_lab
from lab.tap import Tap

CPUS = 2
NO = "does not apply: "
NO_SOCKOPT = NO + "there is no sockopt interface (test_netlink.py::test_no_sockopt_interface)"
NO_SYNC = NO + "there is no state synchronisation"
COVERED = {
    # with a CVE
    "CVE-2012-6540": NO_SOCKOPT,
    "CVE-2013-4588": NO_SOCKOPT,
    "CVE-2024-42322": "test_cve.py::test_cve_2024_42322_persistence_engine",
    "CVE-2024-53680": NO + "no list of protocols is built or printed at load",
    "CVE-2025-37961": "test_forwarding.py::test_tunnel_header",
    "CVE-2025-40018": "test_teardown.py::test_namespace_ends_with_live_connections "
                      "test_namespace_end.py::test_configured_namespaces_end "
                      "test_ftp.py::test_namespace_ends",
    "CVE-2025-68813": "test_cve.py::test_cve_2025_68813_no_route_for_a_local_client",
    "CVE-2026-45850": "test_cve.py::test_cve_2026_45850_checksum_behind_extension_headers",
    "CVE-2026-45917": "test_cve.py::test_cve_2026_45917_device_down_while_routes_are_cached "
                      "test_teardown.py::test_device_goes_away",
    "CVE-2026-53270": "test_distribution.py::test_swap_under_traffic",
    "CVE-2026-68476": "test_cve.py::test_cve_2026_68476_headers_outside_the_head "
                      "test_cve.py::test_cve_2026_68476_shared_packet",
    "CVE-2026-74747": "test_cve.py::test_cve_2026_74747_quote_changes_while_it_is_read",
    "CVE-2026-90141": "test_ftp.py::test_bad_numbers, test_ftp_line.py of the host",
    "CVE-2026-97596": NO_SYNC,
    "CVE-2026-98078": NO_SYNC,
    "CVE-2026-98794": NO_SYNC,
    "CVE-2026-98857": "test_options.py::test_entries_lowered_under_traffic "
                      "test_options.py::test_entries_lowered_are_given_up_at_once",
    # without
    "write beyond the quote in nat_icmp": "test_icmp.py::test_quote_cut_short "
                                          "test_icmp_quote.py::test_quote_cut_before_the_checksum",
    "ICMP mangled for later fragments": "test_cve.py::test_icmp_error_in_fragments "
                                        "test_icmp.py::test_error_quoting_a_later_fragment",
    "inner headers of ICMP not in the head":
        "test_cve.py::test_inner_headers_of_icmp_outside_the_head",
    "path MTU of GUE and GRE errors": "test_tunnel_types.py::test_path_shrinks",
    "IPv4 options when rebasing tunnel errors": "test_cve.py::test_tunnel_error_with_options",
    "MTU of GSO packets in tunnels": "test_http.py::test_bulk",
    "checksum at FORWARD": "test_icmp.py::test_bad_icmp_checksum_is_dropped",
    "overload flag when a server is edited": "test_conn.py::test_thresholds_on_edit",
    "availability mixed with overload": "test_conn.py::test_thresholds_by_count "
                                        "test_conn.py::test_overloaded_server_is_skipped",
    "estimator stopped while it calibrates":
        NO + "rates are a delayed work, which test_teardown.py::test_hundred_rounds cancels",
    "one-packet flag synchronised": NO_SYNC,
    "invisible templates": "test_proc.py::test_templates",
    "missing decrement of a counter in lblc":
        "test_options.py::test_entries_lowered_are_given_up_at_once",
    "NULL in add_service's error path":
        "test_bad_schedulers.py::test_no_memory_for_a_service "
        "test_bad_schedulers.py::test_add_with_a_failing_scheduler",
    "integer overflow in get_ctl": NO_SOCKOPT,
    "ipvs_property kept on scrub": "test_cve.py::test_ipvs_property_ends_with_the_namespace",
    "conn_tab_bits with little memory": NO + "the table grows with what is in it",
    "source address not initialised": "test_forwarding.py::test_tunnel_header",
    "error paths of init": "test_cve.py::test_init_error_paths",
}

# ---- configuration ----


def test_cve_2024_42322_persistence_engine(nat, family):
    """A service names a persistence engine, whose pointer ip_vs used without RCU.
    Here an unknown one is refused, and no service stays behind."""
    vip, port = nat.raw_vip(family), nat.fresh_port()
    service = nat.ipvs.service(vip, port, add=False)
    body = service.ident + genl.service_options(service.af)
    for name in ("si", "nosuch", "x" * 16):
        wanted = attr(genl.SERVICE, body + [attr(genl.S_PE, text(name))])
        genl.is_refused(lambda w=wanted: nat.ipvs.request(genl.NEW_SERVICE, w), errno.ENOENT)
    assert port not in [s.get("port") for s in nat.ipvs.services()]
    assert Raw(nat, UDP, family, port=port).client().open() == 1


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
@pytest.mark.smoke
@pytest.mark.parametrize("step", (29, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])))
def test_init_error_paths(backend, topologies, log, step):
    """Load the module, which initialises every existing namespace: whichever
    allocation fails, the module is not loaded and leaves nothing behind."""
    topologies.flush()
    backend.unload()
    libc = ctypes.CDLL(None, use_errno=True)
    failed = 0
    image = os.open(backend.modules / "l4lb.ko", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # sysfs and the slab allocator log a failure to create an object, with a stack; so does
        # the kernel's code of trace events, whose own error path counts references wrong.
        with faults.injection(), log.provoked("kobject|kmem_cache|sysfs|cache|trace_events"):
            for n in range(1, 2000, step):
                with Fault(n) as fault:
                    error = libc.syscall(FINIT_MODULE, image, b"", 0) and ctypes.get_errno()
                if not error and not fault.hit:
                    break
                failed += bool(error)
                assert error in (0, errno.ENOMEM, errno.EFAULT, errno.EINVAL), (n, error)
                assert backend.loaded() == (not error), (n, error)
                if not error:
                    backend.unload()
    finally:
        os.close(image)
        if not backend.loaded():
            backend.load()
    assert failed > 100 / step
    assert not scan_for_leaks(wait=5.5)
    assert Raw(topologies["nat"], UDP).client().open() == 1


FINIT_MODULE = 313

# ---- routes and devices ----


def local_socket(lab, family, vip, port):
    """A socket on the director itself that gets every ICMP error (IP_RECVERR)."""
    six = family == 6
    s = lab.director.ns.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(*((socket.IPPROTO_IPV6, 25) if six else (socket.IPPROTO_IP, 11)), 1)
    s.bind((lab.dip(family), 0))
    s.connect((vip, port))
    s.setblocking(False)
    return s


def send_in_vain(s, data):
    """Send DATA and return the socket's error; send() itself may fail, too."""
    with contextlib.suppress(OSError):
        s.send(data)
    return wait_until(lambda: s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 5,
                      what="an error for the socket")


@pytest.mark.smoke
@pytest.mark.ip_vs_differs("it has no /proc/net/l4lb that counts what is dropped")
def test_cve_2025_68813_no_route_for_a_local_client(lab, family):
    """A packet of the director's own has no device yet when no route to the real
    server is found; ip_vs used the device for the ICMP error: a NULL dereference."""
    raw = Raw(lab, UDP, family, numbers=())
    lost = "172.31.0.9" if family == 4 else "2001:db8:dead::9"
    host = f"{lost}/{32 if family == 4 else 128}"
    raw.service.server(lost, raw.dport, method=raw.method)
    before = counts(lab)["no_route"]
    lab.director.ns.ip(f"route add unreachable {host}")
    try:
        with local_socket(lab, family, raw.vip, raw.port) as s:
            for n, data in enumerate((b"first", b"again, with a connection"), 1):
                assert send_in_vain(s, data) == errno.EHOSTUNREACH
                assert counts(lab)["no_route"] == before + n
    finally:
        lab.director.ns.ip(f"route del unreachable {host}")


@pytest.mark.emulated
def test_cve_2026_45917_device_down_while_routes_are_cached(backend, request):
    """The device goes down between the lookup and the caching of a route: the
    cached route then held the device for good (unregister_netdevice: waiting)."""
    with small_lab("flap-") as (client, director), genl.Ipvs(director.ns) as ipvs:
        build = ("link add out0 type dummy", "link set out0 up",
                 "addr add 192.0.2.1/24 dev out0", "addr add 2001:db8:2::1/64 dev out0 nodad")
        director.ns.ip(*build)
        for vip, rip in (("198.51.100.1", "192.0.2.9"), ("2001:db8:1::1", "2001:db8:2::9")):
            ipvs.service(vip, 80, proto=UDP).server(rip, 80)
        stop, sent = threading.Event(), [0]

        def pump():
            while not stop.is_set():
                sent[0] += 1
                for source, vip in (("198.51.100.2", "198.51.100.1"),
                                    ("2001:db8:1::2", "2001:db8:1::1")):
                    client.try_send(packet.udp_packet(source, 1000 + sent[0] % 50, vip, 80))

        thread = threading.Thread(target=pump, daemon=True)
        thread.start()
        try:
            for _ in range(amount(request.config, few=4, pairs=10)):
                director.ns.ip("link set out0 down", "link set out0 up")
                # `ip link del` returns only when the device is free.
                director.ns.run("ip link del out0", timeout=20)
                director.ns.ip(*build)
        finally:
            stop.set()
            join_all(thread)
        assert sent[0] > 10


# ---- headers ----


def option(n=0, kind=DSTOPTS):
    return kind, bytes([n]) + (b"\x01\x04\0\0\0\0" if not n else b"\x01" +
                               bytes([n * 8 + 4]) + bytes(n * 8 + 4))


ROUTE = (ROUTING, b"\0\x02\0" + bytes(4))
WHOLE = (FRAGMENT, struct.pack("!BHI", 0, 0, 4711))
HOP = option(kind=HOPOPTS)
# Chains with an authentication header are IPsec: see test_ipsec.py.
CHAINS = {"hop-by-hop": [HOP], "options": [option()], "long": [option(20)],
          "many": [option()] * 7, "routing": [ROUTE], "atomic fragment": [WHOLE],
          "hop, options": [HOP, option()],
          "hop, routing": [HOP, ROUTE], "hop, fragment, options": [HOP, WHOLE, option()],
          "all": [HOP, option(1), ROUTE, WHOLE, option()]}


def behind(chain, proto, data):
    for kind, body in reversed(chain):
        data, proto = bytes([proto]) + body + data, kind
    return proto, data


@pytest.mark.smoke
@pytest.mark.parametrize("chain", CHAINS, ids=[c.replace(", ", "+").replace(" ", "-")
                                               for c in CHAINS])
@pytest.mark.ip_vs_differs("it has no /proc/net/l4lb that counts what is dropped")
def test_cve_2026_45850_checksum_behind_extension_headers(nat, proto, chain):
    """ip_vs looked for the checksum at the wrong place behind extension headers,
    and so dropped good packets or accepted bad ones."""
    raw = Raw(nat, proto, 6)
    before = counts(nat)["checksum"]
    for damage in (0, 1):
        client = raw.client()
        data = client.packet(payload=b"behind headers")[40:]
        data = data[:-1] + bytes([data[-1] ^ damage])
        raw.client_tap.send(packet.ip6(client.address, raw.vip,
                                       *behind(CHAINS[chain], proto, data)))
        if damage:
            client.nothing_arrives()
            assert client.row() is None
        else:
            assert client.arrive()[1].payload == b"behind headers"
    assert counts(nat)["checksum"] == before + 1


@contextlib.contextmanager
def early_demux(ns, value):
    """Despite its name, the setting is for IPv6, too."""
    before = ns.sysctl("net.ipv4.ip_early_demux")
    ns.sysctl("net.ipv4.ip_early_demux", value)
    try:
        yield
    finally:
        ns.sysctl("net.ipv4.ip_early_demux", before)


@pytest.mark.smoke
def test_cve_2026_68476_headers_outside_the_head(lab, family, proto):
    """The packet's headers are in page fragments: making them writable moves them,
    and ip_vs used an older pointer. Early demultiplexing is off, because it would
    move them before."""
    raw = Raw(lab, proto, family)
    client = raw.client()
    with Ring(raw.client_tap) as ring, early_demux(lab.director.ns, 0):
        for size in (0, 20, 1300):
            ring.send(client.packet(SYN if size == 0 else ACK, pattern(size)))
            number, p = client.arrive()
            p = p.inner() if p.is_tunnel else p
            assert (number, p.ttl, p.payload) == (1, 63, pattern(size))


def test_cve_2026_68476_shared_packet(lab, family, proto):
    """A capture shares the packet's memory: it must still see the packet as it
    came in."""
    raw = Raw(lab, proto, family)
    client = raw.client()
    watch = Tap(lab.director)
    try:
        sent = client.packet(payload=pattern(64))
        raw.client_tap.send(sent)
        client.arrive()
        seen = [p for p in watch.poll() if p.src == client.address]
        assert [p.raw for p in seen] == [sent]
        if lab.shape != "nat":
            return
        back = Tap(lab.director, "eth1")
        try:
            client.reply(payload=pattern(64)).answered()
            seen = [p for p in back.poll() if p.dst == client.address]
            assert [p.raw for p in seen] == [client.reply_packet(payload=pattern(64))]
        finally:
            back.close()
    finally:
        watch.close()


# ---- ICMP errors ----


def error_about(raw, client, data, kind=None):
    """An ICMP error from CLIENT about a packet of the VIP: by default port unreachable."""
    six = raw.family == 6
    return packet.icmp_packet(client.address, raw.vip, *(kind or ((1, 4) if six else (3, 3))),
                              0, payload=data)


def test_inner_headers_of_icmp_outside_the_head(lab, family, proto):
    """The quoted headers are in a page fragment: ip_vs wrote to them as if they
    were in the packet's head, beyond its end."""
    raw = Raw(lab, proto, family)
    client = raw.client()
    client.open()
    reply = packet.l4_packet(proto, raw.vip, raw.port, client.address, client.sport,
                             payload=pattern(1100))
    with Ring(raw.client_tap) as ring:
        for size in (48 if family == 6 else 28, 100, 1100):
            ring.send(error_about(raw, client, reply[:size]))
            p = raw.taps[1].expect(
                lambda p: (p.inner() if p.is_tunnel else p).type == (1 if family == 6 else 3),
                what="ICMP error")
            p = p.inner() if p.is_tunnel else p
            assert p.bad_checksum() is None
            quoted = p.inner()
            assert (quoted.src, quoted.dst) == \
                (raw.address(1) if lab.shape == "nat" else raw.vip, client.address)


@pytest.mark.emulated
def test_cve_2026_74747_quote_changes_while_it_is_read(lab, family, request):
    """ip_vs read the quoted header's length twice from memory that the sender can
    change: once to check it, once to use it."""
    raw = Raw(lab, TCP, family)
    client = raw.client()
    client.open()
    reply = packet.l4_packet(TCP, raw.vip, raw.port, client.address, client.sport, payload=pattern(40))
    about = error_about(raw, client, reply)
    first = len(about) - len(reply)
    telling = 6 if family == 6 else 0       # next header; version and length
    stop = threading.Event()
    with Ring(raw.client_tap) as ring:
        place = []

        def change():
            while not stop.is_set():
                for at in place[-3:]:
                    for value in (0x4f, 0x45, 0x40) if family == 4 else (60, 6, 44, 43):
                        ring.memory[at + first + telling] = value

        thread = threading.Thread(target=change, daemon=True)
        thread.start()
        try:
            for _ in range(amount(request.config, few=100, pairs=400)):
                place.append(ring.send(about))
        finally:
            stop.set()
            join_all(thread)
    raw.fence()
    raw.drain()
    client.send(ACK)
    assert client.arrive()[0] == 1


@pytest.mark.parametrize("order", (1, -1), ids=("in-order", "reversed"))
def test_icmp_error_in_fragments(nat, family, order):
    """Only the first fragment of an error has an ICMP header; ip_vs rewrote the
    bytes at the same place in the later fragments, too."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    request = packet.udp_packet(client.address, client.sport, raw.address(1), raw.dport,
                                pattern(1400))
    six = family == 6
    whole = packet.icmp_packet(raw.address(1), client.address, *((1, 4) if six else (3, 3)), 0,
                               payload=request[:1400])
    pieces = packet.fragment6(whole, 1280) if six else packet.fragment4(whole, 800)
    for piece in pieces[::order]:
        raw.taps[1].send(piece)
    got = []

    def complete():
        got.extend(raw.client_tap.take(lambda p: p.dst == client.address))
        return sum(len(p.l4) for p in got) >= len(whole) - (40 if six else 20)

    wait_until(complete, 5)
    got.sort(key=lambda p: p.offset)
    body = b"".join(p.l4 for p in got)
    head = packet.pseudo(raw.vip, client.address, packet.ICMP6, len(body)) if six else b""
    assert packet.fold(head + body) == 0xffff
    assert {p.src for p in got} == {raw.vip}
    quoted = packet.Packet(body[8:])
    assert (quoted.dst, quoted.dport) == (raw.vip, raw.port)
    assert quoted.l4[8:] == request[48 if six else 28:1400]
    # A later fragment alone goes nowhere.
    raw.taps[1].send(pieces[-1])
    raw.fence()
    assert raw.client_tap.take(lambda p: p.dst == client.address) == []


@pytest.mark.ip_vs_differs("it passes no error on whose quoted header has options")
def test_tunnel_error_with_options(tun):
    """An error about a tunnel packet, with IPv4 options before the ICMP header:
    after taking off the outer header, ip_vs read its options again from the inner
    one. The path MTU is learned all the same."""
    raw = Raw(tun, UDP, 4)
    client = raw.client()
    client.send(payload=b"a" * 1200, ip_args={"df": True})
    _, outer = client.arrive()
    quote = outer.raw[:420]
    report = packet.ip4(tun.topo.rip(1), tun.dip(), packet.ICMP, packet.icmp(3, 4, 900, quote),
                        options=b"\x07\x27\x04" + bytes(36))
    raw.taps[1].send(report)

    def told():
        client.send(payload=b"a" * 1200, ip_args={"df": True})
        client.arrivals()
        return [p for p in raw.client_tap.take(lambda p: p.dst == client.address)
                if (p.type, p.code) == (3, 4) and p.rest & 0xffff == 880]

    try:
        wait_until(told, 5, step=0.1)
    finally:
        tun.director.ns.forget_paths()


# ---- namespaces ----


@pytest.mark.smoke
def test_ipvs_property_ends_with_the_namespace(nat, family):
    """A packet forwarded by one director is new to a director in the next
    namespace, which balances it again."""
    near, far = nat.servers[0].ns, nat.phantom(2, family)
    mac = ":".join(f"{b:02x}" for b in nat.servers[1].mac())
    raw = Raw(nat, UDP, family, numbers=())
    raw.service.server(nat.rip(1, family), raw.dport)
    near.ip(f"neigh replace {far} lladdr {mac} dev eth0 nud permanent")
    try:
        with genl.Ipvs(near) as second:
            second.service(nat.rip(1, family), raw.dport, proto=UDP).server(
                far, raw.dport, method=genl.METHOD["dr"])
            tap = nat.tap("rs2")
            client = raw.client()
            client.send(payload=b"twice")
            p = tap.expect(lambda p: p.src == client.address)
            assert (p.dst, p.dport, p.ttl, p.payload) == \
                (nat.rip(1, family), raw.dport, 62, b"twice")
            second.flush()
    finally:
        near.ip(f"neigh del {far} dev eth0")
