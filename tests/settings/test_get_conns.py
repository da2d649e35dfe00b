# SPDX-License-Identifier: GPL-2.0
"""Connections by netlink: GET_CONNS of family L4LB lists the rows of
/proc/net/ip_vs_conn with more attributes; its filters; and the guarantees of a dump
during changes. Its use by ipvsctl is tested in test_ipvsctl_show.py."""

import contextlib
import errno
import ipaddress
import socket
import time

import pytest
from lab import fast, genl, packet
from lab.flows import rule
from lab.fwmark import Marked, fresh_mark, marking
from lab.genl import (
    CONN,
    F_ACTIVE,
    F_FAST_CLIENT,
    F_FAST_SERVER,
    F_TEMPLATE,
    GET_CONNS,
    L_CONN,
    L_SERVICE,
    PERSISTENT,
    ROUTE,
    TUNNEL,
    Ipvs,
    L4lb,
    attr,
    attributes,
    conn_filter,
    decode_conn,
    text,
    u8,
    u16,
    u32,
)
from lab.netns import SLOW, Namespace, run, wait_until
from lab.nobody import as_nobody
from lab.packet import ACK, SCTP, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from lab.settings import setting
from lab.tables import flood, size

TAKES = 80               # mostly in `many`
NAMES = {TCP: "TCP", UDP: "UDP", SCTP: "SCTP", None: "IP"}
FEW = 500
VIPS = "198.51.100.1", "198.51.100.2"
pytestmark = pytest.mark.usefixtures("only_l4lb", "small_table")


@contextlib.contextmanager
def family_l4lb(lab):
    with L4lb(lab.director.ns) as l4lb:
        yield l4lb


def number(name):
    return CONN[name].number


def as_proc(row):
    """A row of the dump in the form of genl.conns(), without the expiry."""
    vip = row.get("vip")
    if vip is None:     # a template by mark: the file has the mark in place of the VIP
        raw = row["fwmark"].to_bytes(4, "big").ljust(16 if row["af"] == socket.AF_INET6 else 4,
                                                     b"\0")
        vip = socket.inet_ntop(row["af"], raw)
    return {"proto": NAMES[row.get("protocol")], "client": row["client"],
            "cport": row["client_port"], "vip": vip, "vport": row.get("vport", 0),
            "server": row["server"], "dport": row["server_port"], "state": row["state"]}


def of_proc(ns):
    """(rows of the file, their expiry in seconds)"""
    rows = genl.conns(ns)
    return [{k: v for k, v in row.items() if k != "expires"} for row in rows], \
        [row["expires"] for row in rows]


def same_as_proc(lab, l4lb):
    """Both list the same rows in the same order; retried, as one may expire in between."""
    for _ in range(3):
        rows = l4lb.conns()
        shown, seconds = of_proc(lab.director.ns)
        if [as_proc(row) for row in rows] == shown:
            break
    assert [as_proc(row) for row in rows] == shown
    assert all(0 <= row["expires"] // 1000 - s <= 2 for row, s in zip(rows, seconds))
    return rows


def sticky(lab, proto, family, **kwargs):
    return Raw(lab, proto, family, flags=PERSISTENT, timeout=300,
               netmask="255.255.255.0" if family == 4 else 64, **kwargs)


def network(client):
    """The client's network, as the template of a sticky() service shows it."""
    net = ipaddress.ip_network(f"{client.address}/{24 if client.raw.family == 4 else 64}", False)
    return str(net.network_address)


def zoo(lab, family):
    """{name: client}: make connections of each kind, and so their templates."""
    out, tcp = {}, Raw(lab, TCP, family, (1, 2))
    out["half"], out["tcp"] = tcp.client(), tcp.client()
    out["half"].open()
    out["tcp"].establish()
    out["sctp"] = Raw(lab, SCTP, family).client()
    out["sctp"].establish()
    for name, raw in (("udp", Raw(lab, UDP, family)), ("sticky", sticky(lab, UDP, family))):
        out[name] = raw.client()
        out[name].open()
    mark = fresh_mark()
    raw = Marked(lab, mark, family, (2,), proto=UDP, flags=PERSISTENT, timeout=300)
    with marking(lab, mark, f"udp dport {raw.port}"):
        out["mark"] = raw.client()
        out["mark"].open()
    return out


def row_of(l4lb, client):
    """CLIENT's connection, found by all attributes that name it."""
    (row,) = l4lb.conns(protocol=client.raw.proto, client=client.address,
                       client_port=client.sport, vip=client.raw.vip, vport=client.raw.port)
    return row


# ---- what is listed ----

def check_zoo(lab, family):
    animals = zoo(lab, family)
    af = socket.AF_INET6 if family == 6 else socket.AF_INET
    with family_l4lb(lab) as l4lb:
        rows = same_as_proc(lab, l4lb)
        assert len(rows) >= 8
        for name, client in animals.items():
            row = row_of(l4lb, client)
            assert row in rows or row["expires"]
            assert (row["af"], row["fwd_method"]) == (af, client.raw.method)
            assert row["server"] == client.raw.address(client.number)
            assert row.get("fwmark", 0) == getattr(client.raw, "mark", 0)
            assert "server_af" not in row and "holders" not in row
            assert bool(row["flags"] & F_ACTIVE) == (row["state"] in ("ESTABLISHED", "SYN_RECV"))
            assert not row["flags"] & F_TEMPLATE
            assert ("template" in row) == (name in ("sticky", "mark"))
        client = animals["sticky"]
        assert row_of(l4lb, client)["template"] == {"client": network(client),
                                                   "vport": client.raw.port}
        (template,) = l4lb.conns(client=network(client), flags=F_TEMPLATE)
        assert (template["holders"], template["flags"], template["vip"], template["vport"]) == (
            1, F_TEMPLATE, client.raw.vip, client.raw.port)
        assert template["protocol"] == UDP and "fwmark" not in template
        client = animals["mark"]
        assert row_of(l4lb, client)["template"] == {"client": client.address, "vport": 0}
        (template,) = l4lb.conns(fwmark=client.raw.mark, flags=F_TEMPLATE)
        assert (template["client"], template["client_port"]) == (client.address, 0)
        assert not {"vip", "vport", "protocol"} & set(template)


@pytest.mark.smoke
def test_same_rows_as_proc(nat, family):
    check_zoo(nat, family)


@pytest.mark.parametrize("shape", ("dr", "tun"))
def test_other_methods(shape, family, request):
    lab = request.getfixturevalue(shape)
    assert lab.method == {"dr": ROUTE, "tun": TUNNEL}[shape]
    check_zoo(lab, family)


def test_server_of_the_other_family(tun, family):
    raw = Raw(tun, UDP, family, server_family=10 - family)
    client = raw.client()
    client.send()
    wait_until(client.row, 5, what="a connection")
    with family_l4lb(tun) as l4lb:
        same_as_proc(tun, l4lb)
        row = row_of(l4lb, client)
        other = socket.AF_INET if family == 6 else socket.AF_INET6
        assert (row["server_af"], row["server"]) == (other, raw.address(1))
        assert row in l4lb.conns(server=raw.address(1), af=row["af"]) or row["expires"]
        for want, n in (({"server_af": other}, 1), ({"server_af": row["af"]}, 0),
                        ({"server": raw.address(1)}, 1)):
            found = l4lb.conns(vip=raw.vip, vport=raw.port, **want)
            assert len(found) == n, want


def test_milliseconds(nat, l4lb):
    """Expiry is in milliseconds, and may need more than 32 bits."""
    nat.ipvs.timeouts(udp=100)
    client = Raw(nat, UDP).client()
    client.open()
    first = row_of(l4lb, client)["expires"]
    assert 100000 - 5000 * SLOW < first <= 100000
    time.sleep(0.4)
    assert 200 < first - row_of(l4lb, client)["expires"] < 5000 * SLOW
    raw = Raw(nat, UDP, flags=PERSISTENT, timeout=60 * 86400)
    raw.client().open()
    (template,) = l4lb.conns(vip=raw.vip, vport=raw.port, flags=F_TEMPLATE)
    assert 60 * 86400000 - 5000 * SLOW < template["expires"] <= 60 * 86400000


def test_holders(nat, l4lb, family):
    raw = sticky(nat, TCP, family)
    clients = [raw.client(nat.client_address(family))]
    clients += [raw.client(clients[0].address) for _ in range(2)]

    def template():
        (row,) = l4lb.conns(vip=raw.vip, vport=raw.port, flags=F_TEMPLATE)
        return row["holders"], row["state"]

    for n, client in enumerate(clients, 1):
        client.open()
        assert template() == (n, "NONE")
    for client in clients[:2]:
        client.reply().answered()
        client.send(ACK)
        client.arrive()
    assert template() == (3, "ASSURED")
    clients[1].send(packet.RST)
    clients[1].arrive()
    assert template() == (2, "ASSURED")
    assert [len(l4lb.conns(vip=raw.vip, vport=raw.port, state=s))
            for s in ("ASSURED", "ESTABLISHED", "CLOSE", "SYN_RECV")] == [1, 1, 1, 1]


@pytest.mark.timer
def test_on_the_fast_path(nat, l4lb, family):
    """Each direction has a flag as long as its packets take the fast path."""
    raw = fast.ready(Raw(nat, UDP, family))
    both = F_FAST_CLIENT | F_FAST_SERVER

    def flags(client):
        found = row_of(l4lb, client)["flags"] & both
        for flag in (F_FAST_CLIENT, F_FAST_SERVER, both):
            assert len(l4lb.conns(client=client.address, flags=flag)) == (found & flag == flag)
        return found

    run("modprobe nf_conntrack")
    client = raw.client()
    client.open()
    wait_until(lambda: flags(client) == F_FAST_CLIENT, 5, what="the client's flag")
    client.reply(ACK, b"reply").answered()
    wait_until(lambda: flags(client) == both, 5, what="both flags")
    with fast.counted(nat.director.ns, fast=1):
        client.send(ACK, b"x")
        client.arrive()
    with setting(nat, "conntrack", 1), rule(nat, "forward", "ct state invalid accept"):
        tracked = raw.client()
        tracked.open()
        tracked.reply(ACK, b"reply").answered()
        time.sleep(0.1)
        assert flags(tracked) == 0
    with setting(nat, "fast_path", 0):
        assert flags(client) == 0
    l4lb.set_policy(raw.service, fast_path=1)
    assert flags(client) == 0
    l4lb.set_policy(raw.service, fast_path=0)
    assert flags(client) == 0, "a setting begins a new term"
    fast.settle()
    client.send(ACK, b"x")
    client.arrive()
    wait_until(lambda: flags(client) == F_FAST_CLIENT, 5, what="the client's flag")
    time.sleep(8.5)
    assert flags(client) == 0, "its term is over"


# ---- filters ----

def has(row, want):
    """Does ROW match all of WANT?"""
    want = dict(want)
    bits = want.pop("client_len", None)
    if "client" in want:
        net = ipaddress.ip_network((want.pop("client"), bits) if bits is not None
                                   else want.pop("client"), False)
        if ipaddress.ip_address(row["client"]) not in net:
            return False
    flags = want.pop("flags", 0)
    return row["flags"] & flags == flags and all(
        {"server_af": row["af"], **row}.get(k) == v for k, v in want.items())


def wanted(animals):
    """Filters that match some connections but not all."""
    for name in ("half", "tcp", "udp", "sctp", "sticky", "mark"):
        c = animals[name]
        yield {"vip": c.raw.vip, "vport": c.raw.port}
        yield {"vport": c.raw.port}
        yield {"client": c.address}
        yield {"client_port": c.sport}
        yield {"client": c.address, "client_port": c.sport, "protocol": c.raw.proto}
        yield {"server": c.raw.address(c.number)}
        yield {"server": c.raw.address(c.number), "server_port": c.raw.dport or c.raw.port}
        yield {"server_port": c.raw.dport or c.raw.port, "vip": c.raw.vip}
    af = row_af = socket.AF_INET6 if animals["tcp"].raw.family == 6 else socket.AF_INET
    bits = 128 if af == socket.AF_INET6 else 32
    yield {"af": af}
    yield {"server_af": row_af}
    for proto in (TCP, UDP, SCTP):
        yield {"protocol": proto}
        yield {"protocol": proto, "af": af}
    for state in ("ESTABLISHED", "SYN_RECV", "UDP", "NONE"):
        yield {"state": state}
    yield {"flags": F_TEMPLATE}
    yield {"flags": F_ACTIVE}
    yield {"flags": F_TEMPLATE, "vip": animals["sticky"].raw.vip}
    yield {"fwmark": animals["mark"].raw.mark}
    yield {"fwmark": animals["mark"].raw.mark, "flags": F_TEMPLATE}
    yield {"fwmark": animals["mark"].raw.mark, "vport": animals["mark"].raw.port}
    address = animals["tcp"].address
    for less in (0, 1, 7, 8, 15, 16, 24, bits - 8):
        yield {"client": address, "client_len": bits - less}
    yield {"client": address, "client_len": 0}
    yield {"client": address, "client_len": 8, "protocol": UDP,
           "server": animals["udp"].raw.address(1)}
    yield {"af": af, "protocol": TCP, "client": address, "client_port": animals["tcp"].sport,
           "vip": animals["tcp"].raw.vip, "vport": animals["tcp"].raw.port,
           "server": animals["tcp"].raw.address(animals["tcp"].number),
           "server_port": animals["tcp"].raw.dport, "state": "ESTABLISHED", "flags": F_ACTIVE}


@pytest.mark.smoke
def test_filters(nat, l4lb):
    """Each filter lists the rows of the whole list that match all of it."""
    both = [zoo(nat, 4), zoo(nat, 6)]
    hidden = {k: CONN[k] for k in ("expires", "holders")}

    def names(rows):
        return [{k: v for k, v in row.items() if k not in hidden} for row in rows]

    for animals in both:
        for want in wanted(animals):
            for _ in range(3):
                every = l4lb.conns()
                expected = [row for row in every if has(row, want)]
                found = l4lb.conns(**want)
                if names(found) == names(expected):
                    break
            assert names(found) == names(expected), want
            assert 0 < len(found) < len(every), want
    client = both[0]["tcp"]
    for other in ({"vport": client.raw.port + 1}, {"client_port": client.sport + 1},
                  {"protocol": UDP}, {"state": "SYN_RECV"}, {"fwmark": 1},
                  {"server": nat.phantom(3)}, {"vip": nat.raw_vip(4, 1)},
                  {"flags": F_TEMPLATE}, {"server_port": client.raw.dport + 1},
                  {"server_af": socket.AF_INET6}):
        base = {"client": client.address, "client_port": client.sport}
        assert len(l4lb.conns(**base)) == 1
        assert l4lb.conns(**{**base, **other}) == [], other


def test_client_prefixes(nat, l4lb, family):
    """Prefixes of every length, with clients that differ in one bit each."""
    raw = Raw(nat, UDP, family)
    base, size_ = ("10.77.5.6", 32) if family == 4 else ("2001:db8:c:7::6", 128)
    base = ipaddress.ip_address(base)
    differ = (0, 1, 4, 7, 8, 11, 16, 23) if family == 4 else (0, 3, 31, 32, 61, 63, 64, 70, 79)
    clients = [base] + [base + (1 << bit) * (-1 if int(base) >> bit & 1 else 1)
                        for bit in differ]
    for address in clients:
        raw.client(str(address)).send()
    raw.fence()
    for bits in range(size_ + 1):
        net = ipaddress.ip_network((base, bits), strict=False)
        found = l4lb.conns(client=str(base), client_len=bits, vip=raw.vip, vport=raw.port)
        assert sorted(row["client"] for row in found) == \
            sorted(str(a) for a in clients if a in net), bits


def test_padded_addresses(nat, l4lb):
    """IPv4 addresses may have 16 bytes, as in all requests of both families."""
    client = Raw(nat, UDP).client()
    client.open()
    found = l4lb.dump(GET_CONNS, attr(L_CONN, [
        attr(number("af"), u16(socket.AF_INET)),
        attr(number("client"), genl.address(client.address)),
        attr(number("vip"), genl.address(client.raw.vip)),
        attr(number("server"), genl.address(client.raw.address(1)))]))
    assert len(found) == 1


ADDRESS = attr(number("client"), packet.packed("10.0.0.1"))
SIX = attr(number("client"), packet.packed("2001:db8::1"))
AF, AF6 = (attr(number("af"), u16(af)) for af in (socket.AF_INET, socket.AF_INET6))
BAD = {
    "family": (attr(number("af"), u16(3)), "family must be IPv4 (2) or IPv6 (10)"),
    "server's family": (attr(number("server_af"), u16(1)), "family must be IPv4 (2) or IPv6 (10)"),
    "no family": (ADDRESS, "AF is missing"),
    "no family for the VIP": (attr(number("vip"), bytes(4)), "AF is missing"),
    "no family for the server": (attr(number("server"), bytes(16)), "AF is missing"),
    "3 bytes": ([AF, attr(number("client"), bytes(3))], "16 bytes, or 4 for IPv4"),
    "5 bytes": ([AF, attr(number("vip"), bytes(5))], "16 bytes, or 4 for IPv4"),
    "4 bytes of IPv6": ([AF6, ADDRESS], "16 bytes, or 4 for IPv4"),
    "17 bytes": ([AF6, attr(number("server"), bytes(17))], "16 bytes, or 4 for IPv4"),
    "none": ([AF, attr(number("vip"), b"")], "16 bytes, or 4 for IPv4"),
    "32 bits": ([AF, ADDRESS, attr(number("client_len"), u8(33))], "must be 0 to 32"),
    "128 bits": ([AF6, SIX, attr(number("client_len"), u8(129))], "with IPv6 to 128"),
    "bits of nothing": ([AF, attr(number("client_len"), u8(8))], "of no use without CLIENT"),
    "protocol": (attr(number("protocol"), u16(1)), "must be TCP (6), UDP (17) or SCTP (132)"),
    "no protocol": (attr(number("protocol"), u16(0)), "must be TCP (6), UDP (17) or SCTP (132)"),
    "mark": (attr(number("fwmark"), u32(0)), "FWMARK must be 1 or more"),
    "state": (attr(number("state"), text("established")), "unknown state"),
    "no state": (attr(number("state"), text("")), "unknown state"),
    "long state": (attr(number("state"), text("ESTABLISHED" * 3)), "unknown state"),
    "state without end": (attr(number("state"), b"UDP"), ""),
    "flags": (attr(number("flags"), u32(16)), "reserved bit set"),
    "short port": (attr(number("vport"), b"\0"), "invalid attribute length"),
    "only in replies": (attr(number("fwd_method"), u32(0)), ""),
    "expires": (attr(number("expires"), bytes(8)), ""),
    "unknown": (attr(99, u32(0)), ""),
}




def test_bad_filters(nat, l4lb, backend):
    """Each is refused with a sentence that points to the attribute; later dumps work,
    and no reference to the module is left."""
    Raw(nat, UDP).client().open()
    before = backend.refcount()
    for what, (attrs, sentence) in BAD.items():
        said = genl.is_refused(lambda a=attrs: l4lb.dump(GET_CONNS, attr(
            L_CONN, a if isinstance(a, list) else [a])), errno.EINVAL)
        if genl.SAYS_WHY:
            assert said and sentence in said and "\n" not in said, (what, said)
    l4lb.sock.setsockopt(genl.SOL_NETLINK, genl.NETLINK_CAP_ACK, 1)
    with pytest.raises(genl.NetlinkError) as e:
        l4lb.dump(GET_CONNS, attr(L_CONN, [AF, attr(number("state"), text("x"))]))
    if genl.SAYS_WHY:
        assert e.value.offset == 16 + 4 + 4 + 8
    for top in (attr(L_SERVICE, [attr(1, u16(2))]), attr(L_CONN, AF), attr(77, b"")):
        assert genl.is_refused(lambda t=top: l4lb.dump(GET_CONNS, t), errno.EINVAL)
    # The command exists as a dump only.
    genl.is_refused(lambda: l4lb.request(GET_CONNS, conn_filter(protocol=UDP)), errno.EOPNOTSUPP)
    assert backend.refcount() == before
    assert l4lb.conns(protocol=UDP) and l4lb.conns()


# ---- while it changes ----

def pieces(l4lb, bytes_each=4096, payload=b""):
    """A dump, buffer by buffer: lists of (client address, port, VIP's port). With a new
    socket, because the kernel's buffers are as large as the largest recv() of a socket."""
    with l4lb.ns.socket(socket.AF_NETLINK, socket.SOCK_RAW, genl.NETLINK_GENERIC) as sock:
        sock.bind((0, 0))
        sock.settimeout(15)
        sock.send(l4lb.message(GET_CONNS, payload, flags=genl.F_DUMP))
        yield from received(sock, bytes_each)


def received(sock, bytes_each):
    while True:
        data, _, flags, _ = sock.recvmsg(bytes_each)
        assert not flags & socket.MSG_TRUNC
        rows = []
        while data:
            length, kind = int.from_bytes(data[:4], "little"), int.from_bytes(data[4:6], "little")
            if kind == 3:
                assert int.from_bytes(data[16:20], "little") == 0
                yield rows
                return
            row = decode_conn(dict(attributes(data[20:length]))[L_CONN])
            rows.append((row["client"], row["client_port"], row.get("vport")))
            data = data[(length + 3) & ~3:]
        yield rows


@pytest.mark.smoke
def test_listing_while_it_changes(nat, l4lb):
    """Connections that exist all the time are listed once, however many others come and
    go and however the table changes between two buffers."""
    raw, other = Raw(nat, UDP), Raw(nat, UDP)
    steady = {(c.address, c.sport, raw.port) for c in flood(raw, 700)}
    seen, sizes, n = [], {size(nat)}, 0
    with setting(nat, "expire_nodest_conn", 1):
        for n, rows in enumerate(pieces(l4lb, 8192)):
            seen += rows
            if n % 6 == 1:
                flood(other, 2200)      # enough for the table to grow
            elif n % 6 == 4:
                other.remove(1)
                other.add(1)
            sizes.add(size(nat))
    ours = [row for row in seen if row[2] == raw.port]
    assert n > 8 and len(sizes) > 1, (n, sizes)
    assert len(ours) == len(steady) and set(ours) == steady
    assert len(seen) == len(set(seen))


def test_filtered_listing_while_it_changes(nat, l4lb, family):
    """The same when few rows match, so that a buffer's end is between two of them."""
    raw, other = Raw(nat, UDP, family), Raw(nat, UDP, family)
    steady = {(c.address, c.sport, raw.port) for c in flood(raw, 300)}
    flood(other, 1500)
    seen = []
    with setting(nat, "expire_nodest_conn", 1):
        for n, rows in enumerate(pieces(l4lb, 4096, conn_filter(vip=raw.vip, vport=raw.port))):
            seen += rows
            if n == 1:
                other.remove(1)
            elif n == 3:
                other.add(1)
                flood(other, 1500)
    assert len(seen) == len(steady) and set(seen) == steady


# ---- how much ----

@contextlib.contextmanager
def many(count, few=FEW, policy=None, name="conns"):
    """A namespace with COUNT UDP connections of a local client, to as many ports of one
    VIP, a FEW to another, and their templates. POLICY: of both services."""
    with contextlib.ExitStack() as stack:
        ns = Namespace(name)
        stack.callback(ns.destroy)
        ns.ip("link set lo up", "link add d0 type dummy", "link set d0 up",
              "address add 192.0.2.1/24 dev d0",
              *(f"address add {vip}/32 dev d0" for vip in VIPS))
        ipvs = stack.enter_context(Ipvs(ns))
        ns.sysctl("net/ipv4/vs/conn_max", 0)
        s = stack.enter_context(ns.socket(socket.AF_INET, socket.SOCK_DGRAM))
        for vip, n in zip(VIPS, (count, few)):
            service = ipvs.service(vip, 0, proto=UDP, flags=PERSISTENT, timeout=600)
            service.server("192.0.2.9", 0, method=ROUTE)
            if policy:
                with L4lb(ns) as l4lb:
                    l4lb.set_policy(service, **policy)
            for port in range(1, n + 1):
                with contextlib.suppress(OSError):
                    s.sendto(b"x", (vip, port))
        yield ns


@pytest.fixture
def before(backend):
    """References to the module, including that of the scheduler which many() uses."""
    backend.need_scheduler("rr")
    return backend.refcount()


def test_many(before, backend, request):
    """A long dump is complete, with and without filters, also when few rows or none match."""
    count = amount(request.config, few=10000 // SLOW, all=50000 // SLOW)
    with many(count) as ns, L4lb(ns) as l4lb:
        for _ in range(2):
            started = time.monotonic()
            found = l4lb.dump(GET_CONNS)
            took = time.monotonic() - started
            print(f"{len(found)} in {took:.2f} s, "
                  f"{sum(len(p) + 20 for _, p in found) / len(found):.0f} bytes each")
        rows = [dict(attributes(dict(attributes(p))[L_CONN])) for _, p in found]
        ports = sorted((row[number("vip")][3], int.from_bytes(row[number("vport")], "big"))
                       for row in rows)
        assert ports == [(1, n) for n in range(count + 1)] + [(2, n) for n in range(FEW + 1)], \
            "0 is the template's"
        assert l4lb.conns(state="ESTABLISHED") == []
        assert sorted(row["holders"] for row in l4lb.conns(flags=F_TEMPLATE)) == [FEW, count]
        assert len(l4lb.conns(vip=VIPS[0], vport=count // 2)) == 1
        # Most of the table does not match.
        assert sorted(row["vport"] for row in l4lb.conns(vip=VIPS[1])) == list(range(FEW + 1))
        assert len(l4lb.dump(GET_CONNS, conn_filter(protocol=UDP, state="UDP"))) == count + FEW
    wait_until(lambda: backend.refcount() == before, 30, what="references to the module")


def test_is_linear(nat, l4lb):
    """Eight times as many take less than 24 times as long; they would take 64 times as
    long if each message began at the first row."""
    raw = Raw(nat, UDP)

    def seconds():
        times = []
        for _ in range(3):
            start = time.monotonic()
            l4lb.dump(GET_CONNS)
            times.append(time.monotonic() - start)
        return min(times)

    flood(raw, 400)
    few = seconds()
    flood(raw, 2800)
    assert seconds() < 24 * few


# ---- permissions and namespaces ----

def test_unprivileged(nat, l4lb):
    """Not allowed, like every command of the family; only the file in /proc is for all users."""
    Raw(nat, UDP).client().open()
    for user_namespace in (False, True):
        assert as_nobody(nat, [(GET_CONNS, genl.F_DUMP)], user_namespace,
                         family="L4LB") == [errno.EPERM]
    assert l4lb.conns()


def test_other_namespaces_are_not_shown(topologies):
    a, b = topologies["nat"], topologies["dr"]
    a.flush()
    b.flush()
    client = Raw(a, UDP).client()
    client.open()
    with family_l4lb(a) as here, family_l4lb(b) as there:
        assert len(here.conns(client=client.address)) == 1
        assert there.conns(client=client.address) == []
    ns = Namespace("empty")
    try:
        with L4lb(ns) as l4lb:
            assert l4lb.conns() == [], "it has not even a table"
    finally:
        ns.destroy()


def test_left_unread(nat, l4lb, backend):
    """An unfinished dump holds the module until its socket is closed."""
    flood(Raw(nat, UDP), 600)
    before = backend.refcount()
    dump = pieces(l4lb)
    assert next(dump)
    assert backend.refcount() > before
    dump.close()
    wait_until(lambda: backend.refcount() <= before, 10, what="references to the module")


def test_namespace_goes_meanwhile(before, backend):
    """The socket keeps the namespace until the dump has been read."""
    with contextlib.ExitStack() as stack:
        with many(600) as ns:
            l4lb = stack.enter_context(L4lb(ns))
            dump = stack.enter_context(contextlib.closing(pieces(l4lb)))
            seen = next(dump)
        for rows in dump:
            seen += rows
        assert len(seen) == 600 + FEW + 2
    wait_until(lambda: backend.refcount() == before, 30, what="references to the module")
