# SPDX-License-Identifier: GPL-2.0
"""Full NAT (snat): real servers see an address of the director as their client, so they answer
to it, whatever their routes are."""

import collections
import contextlib
import hashlib
import socket
import threading
import time

import pytest
from lab import fast, genl, packet
from lab.cost import bounded
from lab.counters import counts
from lab.farm import Http, http_get, pattern, udp_ask
from lab.full_nat import FIRST, Full, addresses, attempts, only_ports, pool, set_snat
from lab.genl import NetlinkError
from lab.netns import run, wait_until
from lab.packet import ACK, FIN, RST, SCTP, SYN, TCP, UDP
from lab.raw import Raw, is_error
from lab.sctp import associate
from lab.settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")
UNREACHABLE = {4: (3, 3), 6: (1, 4)}


@pytest.fixture(autouse=True)
def ours(nat):
    """The director has both families' ranges."""
    with addresses(nat, pool(family=4), pool(family=6)):
        yield


def dropped(lab, reason="no_port"):
    return counts(lab)[reason]


# -- packets


@pytest.mark.smoke
def test_both_ways(nat, family, proto):
    """Requests come from an address of the range, replies from the VIP; each passes one hop."""
    raw = Full(nat, proto, family, (1, 2))
    local = set()
    for _ in range(4):
        client = raw.client()
        number = client.open()
        assert int(client.local[1]) >= 1024
        p = client.reply().answered()
        assert (p.src, p.sport, p.ttl, p.bad_checksum()) == (raw.vip, raw.port, 63, None)
        client.send(ACK, b"request")
        p = client.arrive()[1]
        assert (p.dst, p.dport, p.ttl) == (raw.address(number), raw.dport, 63)
        assert p.payload.endswith(b"request") if proto == SCTP else p.payload == b"request"
        p = client.reply(ACK, b"answer").answered()
        assert p.bad_checksum() is None and p.l4.rstrip(b"\0").endswith(b"answer")
        local.add((number, client.local))
    assert len(local) == 4
    stats = raw.dest(1)["stats"]
    assert (stats["conns"], stats["inpkts"], stats["outpkts"]) == (2, 4, 4)


@pytest.mark.smoke
def test_listings(nat, family):
    """Family L4LB tells the local end; ip_vs's file shows plain NAT."""
    raw = Full(nat, TCP, family)
    client = raw.client()
    client.establish()
    row = client.row()
    assert (row["client"], row["server"], row["state"]) == (client.address, raw.address(1), "ESTABLISHED")
    shown, = raw.listed()
    assert (shown["local"], shown["local_port"], shown["fwd_method"]) == (*client.local, genl.MASQ)
    client.reply(RST | ACK).answered()
    assert client.row()["state"] == "CLOSE"
    raw.snat(None)
    other = raw.client()
    Raw.client(raw, sport=other.sport).send()
    assert "local" not in next(c for c in raw.listed() if c["client_port"] == other.sport)


def test_a_client_keeps_its_port_and_others_get_others(nat, family):
    """The same real server and port sees each connection with another local end."""
    raw = Full(nat, UDP, family, ends=(pool(family=family)[0],) * 2)
    seen = collections.Counter()
    for _ in range(50):
        client = raw.client()
        client.open()
        client.send()
        client.arrive()
        seen[client.local] += 1
    assert set(seen.values()) == {1}
    assert {address for address, _ in seen} == {pool(family=family)[0]}


def error(source, about, family):
    return packet.icmp_packet(source, packet.Packet(about).src, *UNREACHABLE[family], 0, payload=about)


@pytest.mark.smoke
def test_errors_about_requests(nat, family, proto):
    """They come to the local end, and are about what the client has sent."""
    raw = Full(nat, proto, family)
    client = raw.client()
    client.send(payload=b"request")
    p = client.arrive()[1]
    raw.taps[1].send(error(raw.address(1), p.raw, family))
    p = client.icmp()
    assert (p.src, p.bad_checksum()) == (raw.vip, None)
    assert p.inner().raw == client.packet(payload=b"request", ttl=63)


@pytest.mark.smoke
def test_errors_about_replies(nat, family, proto):
    """They come to the real server from the local end, and are about what it has sent."""
    raw = Full(nat, proto, family)
    client = raw.client()
    client.open()
    client.reply(ACK, b"answer")
    raw.client_tap.send(error(client.address, client.answered().raw, family))
    p = raw.taps[1].expect(is_error, what="ICMP error")
    assert (p.src, p.dst, p.bad_checksum()) == (client.local[0], raw.address(1), None)
    assert p.inner().raw == client.reply_packet(ACK, b"answer", ttl=63)


def test_errors_with_a_bad_checksum(nat, family):
    raw = Full(nat, UDP, family)
    client = raw.client()
    client.open()
    p = client.send().arrive()[1]
    before = dropped(nat, "checksum")
    raw.taps[1].send(packet.icmp_packet(raw.address(1), p.src, *UNREACHABLE[family], 0,
                                        payload=p.raw, csum=0x1234))
    raw.fence()
    assert not raw.client_tap.take(is_error)
    assert dropped(nat, "checksum") - before == 1


def test_fragments(nat, family):
    """Whole at LOCAL_IN in both directions."""
    raw = Full(nat, UDP, family)
    client = raw.client()
    client.open()
    cut = packet.fragment4 if family == 4 else packet.fragment6
    for piece in cut(client.packet(payload=bytes(2000)), 1400):
        raw.client_tap.send(piece)
    pieces = raw.taps[1].expect(lambda p: p.src == client.local[0], 2, what="fragments")
    assert {p.dst for p in pieces} == {raw.address(1)}
    assert sum(len(p.l4) for p in pieces) == 2008
    for piece in cut(client.reply_packet(payload=bytes(2000)), 1400):
        raw.taps[1].send(piece)
    pieces = raw.client_tap.expect(lambda p: p.dst == client.address, 2, what="fragments")
    assert {p.src for p in pieces} == {raw.vip}


def test_too_big_replies(nat, family):
    """The real server is told by the local end's host; the packet that is quoted is its own."""
    nat.director.ns.run(f"ip -{family} route add {'10.9.0.0/16' if family == 4 else '2001:db8:c:9::/64'} "
                        f"via {nat.cip(family)} mtu 1300")
    try:
        raw = Full(nat, UDP, family)
        client = raw.client("10.9.0.7" if family == 4 else "2001:db8:c:9::7")
        client.open()
        before = dropped(nat, "too_big")
        sent = client.reply_packet(payload=bytes(1380), **({"ip_args": {"df": True}} if family == 4 else {}))
        raw.taps[1].send(sent)
        p = raw.taps[1].expect(is_error, what="ICMP error")
        assert (p.type, p.code, p.rest & 0xffff) == ((3, 4, 1300) if family == 4 else (2, 0, 1300))
        assert p.inner().between == packet.Packet(sent).between
        assert dropped(nat, "too_big") - before == 1
    finally:
        nat.director.ns.run(f"ip -{family} route del {'10.9.0.0/16' if family == 4 else '2001:db8:c:9::/64'}")


@pytest.mark.smoke
def test_last_hop(nat, family):
    """TTL 1: the sender gets the error, on either side."""
    raw = Full(nat, TCP, family)
    client = raw.client()
    client.open()
    kind = 11 if family == 4 else 3
    client.send(ACK, ttl=1)
    assert client.icmp().type == kind
    client.reply(ttl=1)
    assert raw.taps[1].expect(is_error, what="ICMP error").type == kind


@pytest.mark.parametrize("how", ("killed", "idle"))
def test_resets(nat, family, how):
    """Both ends of a connection that is ended get a reset with the numbers and addresses they know."""
    raw = Full(nat, TCP, family)
    raw.snat(raw.ends, on_idle=1)       # so that the numbers are noted
    client = raw.client()
    client.establish()
    if how == "killed":
        with genl.L4lb(nat.director.ns) as l4lb:
            assert l4lb.kill(True, vip=raw.vip, vport=raw.port) == 1
    else:
        raw.snat(raw.ends, on_loss=3)
        raw.remove(1)
        client.send(ACK)
    p = raw.taps[1].expect(lambda p: p.src == client.local[0] and p.flags & RST, what="reset")
    assert (p.sport, p.bad_checksum()) == (client.local[1], None)
    p = raw.client_tap.expect(lambda p: p.dst == client.address and p.flags & RST, what="reset")
    assert p.src == raw.vip


def test_changes_while_connections_live(nat, family):
    """They keep their local end, and new ones get one of the new range, or none."""
    first, last = pool(family=family)
    raw = Full(nat, TCP, family, ends=(first, first))
    old = raw.client()
    old.establish()
    raw.ends = (last, last)
    raw.snat(raw.ends)
    new = raw.client()
    new.establish()
    assert (old.local[0], new.local[0]) == (first, last)
    raw.snat(None)
    plain = Raw.client(raw)
    plain.open()
    for client in (old, new):
        client.send(ACK, b"more")
        assert client.arrive()[1].payload == b"more"
        assert client.reply(ACK, b"less").answered().payload == b"less"


def test_removal(nat, family):
    """A real server comes and goes, then the service: connections stay as they are."""
    Raw(nat, TCP, family, (2,))     # without any service nothing is looked at
    raw = Full(nat, TCP, family)
    client = raw.client()
    client.establish()
    raw.remove(1)
    client.send(ACK).nothing_arrives()
    raw.add(1)
    client.send(ACK)
    client.arrive()
    raw.service.delete()
    client.send(ACK).nothing_arrives()
    assert client.reply(ACK, b"late").answered().payload == b"late"
    client.raw = Full(nat, TCP, family, port=raw.port)
    client.send(ACK, b"on")
    assert client.arrive()[1].payload == b"on"


def test_other_methods_keep_theirs(topologies, module_life, family):
    """Of a service with NAT and direct routing only the first is translated."""
    lab = topologies["dr"]
    lab.flush()
    ends = (lab.dip(family),) * 2
    raw = Full(lab, UDP, family, numbers=(1,), ends=ends, method=genl.MASQ)
    raw.add(2, method=genl.ROUTE)
    clients = [Raw.client(raw) for _ in range(2)]
    for client in clients:
        client.send()
    raw.fence()
    assert {p.src for p in raw.taps[2].take(lambda p: p.dport == raw.dport)} <= {c.address for c in clients}
    assert {p.src for p in raw.taps[1].take(lambda p: p.dport == raw.dport)} == {ends[0]}


def test_persistence(nat, family):
    """A client's connections go to one real server, each with a local end of its own."""
    raw = Full(nat, TCP, family, (1, 2, 3), flags=genl.PERSISTENT, timeout=60)
    address = nat.client_address(family)
    clients = [raw.client(address) for _ in range(4)]
    assert len({client.open() for client in clients}) == 1
    assert len({client.local for client in clients}) == 4


def test_fwmark(nat, family):
    ns = nat.director.ns
    raw = Raw(nat, TCP, family)
    raw.service.delete()
    ns.nft(f"add table inet l4lb_mark\nadd chain inet l4lb_mark pre {{ type filter hook prerouting priority "
           f"mangle; }}\nadd rule inet l4lb_mark pre tcp dport {raw.port} meta mark set 7\n")
    try:
        service = nat.ipvs.service(fwmark=7, af=genl.family_of(raw.vip), sched="rr")
        service.server(nat.phantom(1, family), raw.dport)
        set_snat(nat, service, pool(family=family))
        raw.__class__, raw.ends, raw.service = Full, pool(family=family), service
        client = raw.client()
        client.establish()
    finally:
        ns.nft("delete table inet l4lb_mark")


# -- ports


def proven(raw, count):
    """COUNT connections that no other one may evict."""
    clients = []
    while len(clients) < count:
        client = raw.client()
        client.send()
        raw.fence()
        arrived = client.arrivals()
        if not arrived:
            continue        # all tries met ports that are taken
        client.number, p = arrived[0]
        client.local = (p.src, p.sport)
        client.reply().answered()
        client.send(ACK)
        client.arrive()
        client.prove()
        clients.append(client)
    return clients


@pytest.mark.smoke
def test_exhaustion(nat, family):
    """With few ports left, and connections that have proven themselves, a new one is dropped and
    counted; one that ends makes room. Other real servers have ports of their own."""
    first = pool(family=family)[0]
    with only_ports(nat, "2000-2007"):
        raw = Full(nat, TCP, family, ends=(first, first))
        clients = proven(raw, 8)
        assert sorted(client.local[1] for client in clients) == [*range(2000, 2008)]
        before, shown = dropped(nat), raw.listed()
        assert attempts(raw, 20) == []
        assert dropped(nat) - before == 20
        assert raw.listed() == shown or len(raw.listed()) == 8
        other = Full(nat, TCP, family, (2,), ends=(first, first))
        assert len(attempts(other, 1)) == 1
        clients[3].send(ACK)
        clients[3].arrive()
        with genl.L4lb(nat.director.ns) as l4lb:
            assert l4lb.kill(client=clients[3].address, vip=raw.vip, vport=raw.port) == 1
        assert set(attempts(raw, 100)) == {clients[3].local}
    with only_ports(nat, "1-1023"):
        before = dropped(nat)
        assert attempts(raw, 1) == []
        assert dropped(nat) - before == 1


def test_forged_packets_take_no_port_for_good(nat, family, proto):
    """With all ports taken by connections that anyone could forge, a new one gets the port of
    one of them, and one that has proven itself keeps its own."""
    first = pool(family=family)[0]
    with only_ports(nat, "2000-2007"):
        raw = Full(nat, proto, family, ends=(first, first))
        honest = proven(raw, 1)[0] if proto == TCP else None
        assert len(set(attempts(raw, 200))) == 8 - bool(honest)
        before, evicted = dropped(nat), dropped(nat, "evicted")
        assert len(attempts(raw, 50)) == 50
        assert dropped(nat) == before
        assert dropped(nat, "evicted") - evicted == 50
        if honest:
            honest.send(ACK)
            honest.arrive()


def test_many(nat):
    """60,000 connections to one real server: each has an end of its own, and the last ones take
    no more time than plain NAT's."""
    raw = Full(nat, UDP, 4, ends=pool())
    plain = Raw(nat, UDP, 4, (2,))

    def flood(service, first, count):
        began = time.perf_counter()
        service.send_all([packet.udp_packet(f"10.77.{n >> 14}.7", 1024 + n % 16384, service.vip, service.port)
                          for n in range(first, first + count)])
        return (time.perf_counter() - began) / count

    before = dropped(nat)
    with setting(nat, "conn_max", 200000):
        flood(raw, 0, 55000)
        at = iter(range(0, 60000, 2500))
        bounded(3, lambda: flood(raw, 55000 + next(at), 2500), lambda: flood(plain, next(at), 2500))
        shown = raw.listed()
    assert len(shown) >= 57500
    assert len({(c["local"], c["local_port"]) for c in shown}) == len(shown)
    assert {c["local"] for c in shown} == {f"192.0.2.{n}" for n in range(FIRST, FIRST + 4)}
    assert dropped(nat) == before


def times(value):
    """TCP options: a timestamp."""
    return b"\x01\x01\x08\x0a" + value.to_bytes(4, "big") + b"\0\0\0\0"


@pytest.mark.waits
def test_a_port_rests(nat):
    """A real server that closed first takes a SYN from the same end only if its numbers are later
    than those before, which another client's are not. So the port rests for 70 s; then it is used
    again, and the first SYN is answered."""
    port, first = nat.http_port(), pool()[0]
    service = nat.ipvs.service(nat.vip(), port, sched="rr")
    service.server(nat.rip(1), port)
    set_snat(nat, service, (first, first))
    tap = nat.tap("client")

    def segment(address, place, flags, stamp, payload=b""):
        """PLACE: its sequence number, and the one that it acknowledges."""
        tap.send(packet.tcp_packet(address, 30000, nat.vip(), port, flags, seq=place[0], ack=place[1],
                                   payload=payload, options=times(stamp)))

    def answer(address, wanted):
        got = []

        def there():
            got.extend(tap.take(lambda p: p.dst == address and p.flags & wanted == wanted))
            return got
        wait_until(there, what="an answer")
        return got[-1]

    with only_ports(nat, "2000-2000"):
        segment("10.1.0.1", (5_000_000, 0), SYN, 5_000_000)
        p = answer("10.1.0.1", SYN | ACK)
        ours, theirs = 5_000_001, p.seq + 1
        segment("10.1.0.1", (ours, theirs), ACK, 5_000_001, b"GET / HTTP/1.0\r\n\r\n")
        p = answer("10.1.0.1", FIN)
        ours, theirs = ours + 18, p.seq + len(p.payload) + 1
        segment("10.1.0.1", (ours, theirs), ACK | FIN, 5_000_002)
        wait_until(lambda: nat.conns(client="10.1.0.1")[0]["state"] == "TIME_WAIT", what="TIME_WAIT")
        tap.drain()
        before = dropped(nat)
        for seconds in (50, 14, 0):
            segment("10.1.0.2", (1000, 0), SYN, 1000)
            time.sleep(seconds)
        time.sleep(1)
        assert not tap.take(lambda p: p.dst == "10.1.0.2")
        assert dropped(nat) - before == 3
        time.sleep(8)
        segment("10.1.0.2", (1000, 0), SYN, 1000)
        p = answer("10.1.0.2", ACK)
        assert p.flags == SYN | ACK and p.ack == 1001


# -- sockets


@contextlib.contextmanager
def no_way_back(lab):
    """Inside, the first two real servers have no route but to their own network."""
    routes = [(server, family) for server in lab.servers[:2] for family in (4, 6)]
    for server, family in routes:
        server.ns.run(f"ip -{family} route del default")
    try:
        yield
    finally:
        for server, family in routes:
            server.ns.run(f"ip -{family} route add default via {lab.dip(family)}")


def web(lab, family, port, proto=TCP, snat=True):
    service = lab.ipvs.service(lab.vip(family), port, proto=proto, sched="rr")
    for number in (1, 2):
        service.server(lab.rip(number, family), port)
    if snat:
        set_snat(lab, service, pool(family=family))
    return service


@pytest.mark.stock
@pytest.mark.smoke
def test_servers_without_a_route(nat, family):
    """TCP and UDP; the control has none."""
    port, control = nat.http_port(), nat.http_port()
    for proto in (TCP, UDP):
        web(nat, family, port, proto)
        web(nat, family, control, proto, snat=False)
    with no_way_back(nat):
        names = set()
        for _ in range(2):
            name, body = http_get(nat.client, nat.vip(family), port)
            assert body.split()[2].decode() in every_address(family)
            names.add(name)
        assert names == {"rs1", "rs2"}
        assert {udp_ask(nat.client, nat.vip(family), port)[0] for _ in range(2)} == {"rs1", "rs2"}
        with pytest.raises(OSError, match="timed out|unreachable"):
            udp_ask(nat.client, nat.vip(family), control, timeout=0.5)


def every_address(family):
    return {pool(family=family)[0].replace(str(FIRST), str(FIRST + n)) for n in range(4)}


@pytest.mark.smoke
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_hairpin(nat, family, proto):
    """A real server reaches its own VIP, and gets answers of itself and of the other one. The
    control gets none."""
    port, control = nat.http_port(), nat.http_port()
    ask = http_get if proto == TCP else udp_ask
    web(nat, family, port, proto)
    web(nat, family, control, proto, snat=False)
    assert sorted(ask(nat.servers[0], nat.vip(family), port)[0] for _ in range(2)) == ["rs1", "rs2"]
    for _ in range(2):
        with pytest.raises(OSError):
            ask(nat.servers[0], nat.vip(family), control, timeout=0.5)


@pytest.mark.smoke
def test_bulk(nat, family):
    """Segments that a device is to cut and to sum up, in both directions."""
    port = nat.http_port()
    web(nat, family, port)
    with no_way_back(nat), Http(nat.client, nat.vip(family), port) as h:
        assert h.request(path="/bulk/3000000") == pattern(3_000_000)
        assert h.request("PUT", body=pattern(2_000_000)).decode() == hashlib.sha256(pattern(2_000_000)).hexdigest()


def test_sctp_associations(nat, family):
    """Of real sockets, with payload of several segments in both directions."""
    def prepare(service):
        set_snat(nat, service, pool(family=family))
        return every_address(family)
    associate(nat, family, clients=8, prepare=prepare)


@contextlib.contextmanager
def server_here(lab, family, port):
    """A TCP server on the director; it tells its peer's address."""
    with lab.director.ns.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_STREAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((lab.dip(family), port))
        s.listen(8)
        s.settimeout(20)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    conn, peer = s.accept()
                    with conn:
                        conn.sendall(peer[0].encode())
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        s.shutdown(socket.SHUT_RDWR)
        thread.join(20)


def peer_seen(node, family, address, port):
    with node.ns.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_STREAM) as s:
        s.settimeout(5)
        s.connect((address, port))
        return s.recv(100).decode()


def test_this_host_at_either_end(nat, family):
    """The director as client, as real server, and as both."""
    port = nat.http_port()
    web(nat, family, port)
    name, body = http_get(nat.director, nat.vip(family), port)
    assert name in ("rs1", "rs2") and body.split()[2].decode() in every_address(family)
    own = nat.http_port()
    service = nat.ipvs.service(nat.vip(family), own, sched="rr")
    service.server(nat.dip(family), own)
    set_snat(nat, service, pool(family=family))
    with server_here(nat, family, own):
        assert peer_seen(nat.client, family, nat.vip(family), own) in every_address(family)
        assert peer_seen(nat.director, family, nat.vip(family), own) in every_address(family)


def test_conntrack(nat, family):
    """With it on, the firewall knows replies to the local end as such; the control shows that the
    rule would drop them."""
    port = nat.http_port()
    web(nat, family, port)
    ns = nat.director.ns
    words = {4: "ip", 6: "ip6"}[family]
    ns.nft(f"add table inet l4lb_fw\nadd chain inet l4lb_fw in {{ type filter hook input priority 0; }}\n"
           f"add rule inet l4lb_fw in ct state established accept\n"
           f"add rule inet l4lb_fw in {words} saddr {nat.rip(1, family)} tcp sport {port} drop\n"
           f"add rule inet l4lb_fw in {words} saddr {nat.rip(2, family)} tcp sport {port} drop\n")
    try:
        with setting(nat, "conntrack", 1):
            assert {http_get(nat.client, nat.vip(family), port)[0] for _ in range(2)} == {"rs1", "rs2"}
        with pytest.raises(OSError):
            http_get(nat.client, nat.vip(family), port, timeout=0.5)
    finally:
        ns.nft("delete table inet l4lb_fw")


@pytest.mark.parametrize("mode", (2, 3), ids=("on", "new"))
def test_fast_path(nat, family, mode):
    """Such connections stay in the stack, from their first packet on, both ways; one for all
    ports at the local end's address takes no reply for a new flow."""
    raw = Full(nat, UDP, family)
    every = nat.ipvs.service(raw.ends[0], 0, proto=UDP, sched="rr", flags=genl.PERSISTENT, timeout=60)
    every.server(nat.phantom(2, family), 0)
    raw.ends = (raw.ends[0],) * 2
    for service in (raw.service, every):
        with genl.L4lb(nat.director.ns) as l4lb:
            l4lb.set_policy(service, fast_path=mode)
    raw.snat(raw.ends)
    fast.ready(raw)
    client = raw.client()
    for _ in range(4):
        client.send(payload=b"request")
        assert client.arrive()[1].payload == b"request"
        assert client.reply(payload=b"answer").answered().payload == b"answer"
    shown, = raw.listed()
    assert shown["flags"] & (genl.F_FAST_CLIENT | genl.F_FAST_SERVER) == 0
    assert shown["local"] == raw.ends[0]


# -- settings


BAD = {
    "reversed": (("192.0.2.251", "192.0.2.250"), 34),
    "too many": (("192.0.2.0", "192.0.3.0"), 34),
    "too many of IPv6": (("2001:db8:2::250", "2001:db8:3::250"), 34),
    "reversed IPv6": (("2001:db8:3::", "2001:db8:2::"), 34),
    "of both families": (("192.0.2.250", "2001:db8:2::250"), 22),
    "one end only": (("192.0.2.250",), 22),
    "no address": (("0.0.0.0", "0.0.0.0"), 99),
    "not all are here": (("192.0.2.250", "192.0.2.254"), 99),
    "of another host": (("192.0.2.11", "192.0.2.11"), 99),
    "loopback": (("127.0.0.1", "127.0.0.1"), 99),
    "broadcast": (("192.0.2.255", "192.0.2.255"), 99),
    "link-local": (("fe80::1", "fe80::1"), 99),
}


@pytest.mark.parametrize("why", BAD)
def test_bad_ranges(nat, why):
    """Refused with a sentence, and the range before stays."""
    ends, errno = BAD[why]
    six = ":" in ends[0] and why != "of both families"
    raw = Full(nat, TCP, 6 if six else 4)
    with genl.L4lb(nat.director.ns) as l4lb:
        with pytest.raises(NetlinkError) as e:
            l4lb.set_policy(raw.service, snat=ends, ramp=7)
        assert e.value.errno == errno and "SNAT" in e.value.extack
        assert (l4lb.policy(raw.service)["snat"], l4lb.policy(raw.service)["ramp"]) == (raw.ends, 0)
    raw.client().open()


def test_the_other_family(nat):
    raw = Raw(nat, TCP, 4)
    with genl.L4lb(nat.director.ns) as l4lb, pytest.raises(NetlinkError, match="service's family"):
        l4lb.set_policy(raw.service, snat=pool(family=6))


def test_what_excludes_it(nat, l4lb):
    """One-packet scheduling, persistence engine sip, conn-state lazy, no real server with NAT."""
    ends = pool()
    refused = {
        "one-packet": Raw(nat, UDP, 4, flags=genl.ONEPACKET).service,
        "sip": Raw(nat, UDP, 4, flags=genl.PERSISTENT, timeout=60, pe="sip").service,
        "needs NAT": Raw(nat, TCP, 4, method=genl.ROUTE).service,
    }
    for why, service in refused.items():
        with pytest.raises(NetlinkError, match=why) as e:
            l4lb.set_policy(service, snat=ends)
        assert e.value.errno == 95
        assert l4lb.policy(service)["snat"] == 0
    service = Raw(nat, TCP, 4, sched="mh").service
    l4lb.set_policy(service, snat=ends)
    with pytest.raises(NetlinkError, match="lazy"):
        l4lb.set_policy(service, conn_state=1)
    l4lb.set_policy(service, snat=None, conn_state=1)
    with pytest.raises(NetlinkError, match="lazy"):
        l4lb.set_policy(service, snat=ends)


def test_others_see_nothing_of_it(nat):
    """Family IPVS, ipvsadm's lists and ip_vs's files are byte for byte as without."""
    raw = Raw(nat, TCP, 4)
    client = raw.client()
    client.establish()

    def seen():
        ns = nat.director.ns
        return [ns.run(["ipvsadm", *words.split()]).stdout for words in ("-Ln", "-Sn", "-Ln --stats")] + [
            [p for _, p in nat.ipvs.dump(genl.GET_SERVICE)], ns.read("/proc/net/ip_vs")]

    before = seen()
    set_snat(nat, raw.service, pool())
    assert seen() == before
    nat.director.ns.run(["ipvsadm", "-E", "-t", f"{raw.vip}:{raw.port}", "-s", "wrr"])
    with genl.L4lb(nat.director.ns) as l4lb:
        assert l4lb.policy(raw.service)["snat"] == pool()


def test_address_goes(nat, l4lb):
    """A range whose address has gone stays, and can be set again with other settings; a new one
    with it cannot."""
    raw = Full(nat, UDP, 4)
    run(["ip", "-n", f"{nat.director.ns.name}", "addr", "del", "192.0.2.253/32", "dev", "eth1"])
    try:
        l4lb.set_policy(raw.service, ramp=9)
        l4lb.set_policy(raw.service, snat=raw.ends)
        assert l4lb.policy(raw.service)["snat"] == raw.ends
        with pytest.raises(NetlinkError, match="each address"):
            l4lb.set_policy(raw.service, snat=("192.0.2.252", "192.0.2.253"))
    finally:
        run(["ip", "-n", f"{nat.director.ns.name}", "addr", "add", "192.0.2.253/32", "dev", "eth1"])
