# SPDX-License-Identifier: GPL-2.0
"""The effect of a service's policy on packets. In-tree ip_vs, which has none, is the
control: it shows the behaviour that users complain about."""

import contextlib
import errno
import itertools
import re
import socket
import time

import pytest
from lab import genl, packet
from lab.backend import Backend, both_modules
from lab.farm import Http, fresh_port
from lab.flows import FORGET, RESET
from lab.lab import emptied
from lab.netns import wait_until
from lab.packet import ABORT, ACK, DATA, FIN, RST, SCTP, SYN, TCP, UDP
from lab.raw import Raw, is_error
from lab.settings import setting
from lab.topology import FRONT, SHAPES

NO_MODULE = True        # `module` below loads both, one after the other


@pytest.fixture(scope="module")
def module(request, topologies):
    with Backend(getattr(request, "param", "l4lb")).alone(("rr",)) as which:
        yield which
        topologies.flush()


@pytest.fixture
def nat(topologies, module):
    return emptied(topologies, "nat")


@pytest.fixture
def dr(topologies, module):
    return emptied(topologies, "dr")


@pytest.fixture(params=SHAPES)
def lab(request, topologies, module):
    return emptied(topologies, request.param)


@pytest.fixture
def policy(module):
    """policy(raw, ...): set RAW's policy, if the module has policies."""
    def set_policy(raw, **values):
        if module.is_l4lb:
            with genl.L4lb(raw.lab.director.ns) as l4lb:
                l4lb.set_policy(raw.service, **values)
    return set_policy


# -- timeouts

def in_state(raw, value):
    """A connection in the state to which the timeout VALUE applies."""
    client = raw.client()
    if raw.proto == UDP:
        client.open()
        return client
    client.establish()
    if value == "tcp_fin":
        if raw.lab.shape == "nat":
            client.reply(FIN | ACK).answered()
        else:
            client.send(FIN | ACK)
            client.arrive()
        assert client.state == "FIN_WAIT"
    return client


PROTO = {"tcp": TCP, "tcp_fin": TCP, "udp": UDP, "sctp": SCTP}
COMMON = {"tcp": 900, "tcp_fin": 120, "udp": 300, "sctp": 900}


@pytest.mark.smoke
@both_modules
@pytest.mark.parametrize("value", COMMON)
def test_each_service_has_its_timeouts(lab, module, policy, value):
    """Services with and without their own timeout exist side by side."""
    for family, seconds in ((4, 40), (6, 2000), (4, 0)):
        raw = Raw(lab, PROTO[value], family)
        policy(raw, **{value: seconds, "udp" if value != "udp" else "tcp": 7})
        expires = in_state(raw, value).row()["expires"]
        want = seconds or COMMON[value]
        if not module.is_l4lb:
            want = COMMON[value]        # complaint: one for all services
        assert want - 4 <= expires <= want, (value, family)


@pytest.mark.parametrize("value", ("tcp", "udp"))
def test_timeouts_apply_from_the_next_packet(nat, policy, value):
    raw = Raw(nat, PROTO[value])
    client = in_state(raw, value)
    for seconds in (50, 0, 5000):
        before = client.row()["expires"]
        policy(raw, **{value: seconds})
        assert before - 4 <= client.row()["expires"] <= before
        client.send(ACK)
        client.arrive()
        want = seconds or COMMON[value]
        assert want - 4 <= client.row()["expires"] <= want


@pytest.mark.timer
@both_modules
def test_a_short_timeout_ends_only_its_flows(nat, module, policy):
    short, long = Raw(nat, UDP), Raw(nat, UDP)
    policy(short, udp=1)
    clients = [raw.client() for raw in (short, long)]
    for client in clients:
        client.open()
    if module.is_l4lb:
        wait_until(lambda: clients[0].row() is None, 6, step=0.1)
    assert clients[1].row()["expires"] > 290
    if not module.is_l4lb:
        assert clients[0].row()["expires"] > 290


# -- when an established connection expires


def tag(p):
    """(verification tag, T bit) of an SCTP packet."""
    return int.from_bytes(p.l4[4:8], "big"), p.l4[13] & 1


def idle(lab, module, policy, proto, family):
    """An established connection that has carried data, about to expire."""
    raw = Raw(lab, proto, family)
    policy(raw, on_idle=RESET, tcp=1, sctp=1)
    client = raw.client()
    if proto == SCTP:
        client.establish()
        client.send((DATA,), b"hello")
        client.arrive()
        return client
    client.send(SYN, seq=0xfffffffd)
    client.arrive()
    if lab.shape == "nat":
        client.reply(SYN | ACK, seq=7000, ack=0xfffffffe).answered()
    for payload, seq in ((b"", 0xfffffffe), (b"hello", 0xfffffffe), (b"", 2)):
        client.send(ACK, payload, seq=seq, ack=7001)    # the last, one byte back, is a keep-alive
        client.arrive()
    return client


@pytest.mark.timer
@both_modules
def test_reset_when_idle(lab, module, policy):
    """Both ends get a RST or ABORT with the numbers that they expect."""
    protos = (TCP, SCTP) if module.is_l4lb else (TCP,)
    if not module.is_l4lb:
        lab.ipvs.timeouts(tcp=1)
    clients = [idle(lab, module, policy, proto, family)
               for proto in protos for family in (4, 6)]
    for client in clients:
        wait_until(lambda c=client: c.row() is None, 6, step=0.1)
    if not module.is_l4lb:
        for client in clients:          # complaint: no end is told
            client.nothing_arrives()
            assert not client.raw.client_tap.take(
                lambda p, c=client: p.dst == c.address and p.dport == c.sport)
        return
    for client in clients:
        raw = client.raw
        p = client.answered()
        assert (p.src, p.sport) == (raw.vip, raw.port)
        _, q = client.arrive()
        q = q.inner() if q.is_tunnel else q
        assert q.dst == (raw.address(1) if lab.shape == "nat" else raw.vip)
        assert q.dport == (raw.dport if lab.shape == "nat" else raw.port)
        if raw.proto == TCP:
            assert (p.flags, p.seq, p.ack) == (RST | ACK, 7001, 3)
            assert (q.flags, q.seq, q.ack) == (RST | ACK, 3, 7001)
        else:
            assert (p.chunks, q.chunks) == ([ABORT], [ABORT])
            assert (tag(p), tag(q)) == ((0x1234567, 1), (0x1234567, 0))


@pytest.mark.timer
def test_nobody_is_reset_unless_established_and_asked(nat, policy):
    """No reset: without the setting; after it is switched off; when it is set after
    the last packet, so that the numbers are unknown; and in another state."""
    plain, off, late, half = (Raw(nat, TCP) for _ in range(4))
    clients = [raw.client() for raw in (plain, off, late, half)]
    for raw in (off, half):
        policy(raw, on_idle=RESET)
    for raw in (plain, off, late):
        policy(raw, tcp=1)
    policy(half, tcp_fin=1)
    for client in clients:
        client.establish()
    clients[3].reply(FIN | ACK).answered()
    policy(off, on_idle=FORGET)
    policy(late, on_idle=RESET)
    for client in clients:
        wait_until(lambda c=client: c.row() is None, 6, step=0.1)
    for client in clients:
        client.nothing_arrives()
        assert not client.raw.client_tap.take(lambda p, c=client: p.dst == c.address)


@pytest.mark.timer
def test_numbers_after_a_new_start(dr, policy):
    """The reset has the numbers of the latest connection from the same port."""
    raw = Raw(dr, TCP)
    policy(raw, on_idle=RESET, tcp=1)
    client = raw.client()
    for start in (1_000_000, 5_000):
        client.send(SYN, seq=start)
        client.arrive()
        client.send(ACK, seq=start + 1, ack=start + 9)
        client.arrive()
    p = client.answered()
    assert (p.seq, p.ack) == (5_009, 5_001)
    assert client.arrive()[1].seq == 5_001


@pytest.mark.timer
@both_modules
def test_an_idle_application_is_told(nat, module, policy, family):
    """Client and server of an idle connection are reset. With ip_vs both keep waiting;
    the client is reset only when it sends."""
    port = nat.http_port()
    service = nat.ipvs.service(nat.vip(family), port, sched="rr")
    service.server(nat.rip(1, family), port)
    if module.is_l4lb:
        with genl.L4lb(nat.director.ns) as l4lb:
            l4lb.set_policy(service, tcp=1, on_idle=RESET)
    else:
        nat.ipvs.timeouts(tcp=1)

    def at_server():
        return nat.servers[0].ns.run(
            f"ss -Htn state established sport = :{port}").stdout

    with Http(nat.client, nat.vip(family), port) as h:
        h.request()
        if module.is_l4lb:
            with pytest.raises(ConnectionResetError):
                h.sock.recv(1)
            wait_until(lambda: not at_server(), 2)
            return
        h.sock.settimeout(3)
        with pytest.raises(TimeoutError):
            h.sock.recv(1)
        assert at_server()
        h.sock.send(b"GET")
        with pytest.raises(ConnectionResetError):
            h.sock.recv(1)


# -- when a server is removed, or drains

DEFAULT, KEEP, MOVE, RESET_LOST = 0, 1, 2, 3


@both_modules
@pytest.mark.parametrize("how", ("removed", "weight 0"))
def test_datagrams_move_on(lab, module, policy, how):
    """200 datagrams of one flow, whose server is removed or drained after the fiftieth."""
    for family in (4, 6):
        raw = Raw(lab, UDP, family, (1, 2))
        policy(raw, **({"on_loss": MOVE} if how == "removed" else {"on_drain": MOVE}))
        client = raw.client()
        first = client.open()
        got = {1: 0, 2: 0}
        for n in range(200):
            if n == 50 and how == "removed":
                raw.remove(first)
            elif n == 50:
                raw.edit(first, weight=0)
            client.send(payload=b"%d" % n)
            if n % 50 == 49:
                raw.fence()
                for number, _ in client.arrivals():
                    got[number] += 1
        if module.is_l4lb:
            assert got == {first: 50, 3 - first: 150}
        else:                           # the complaint
            assert got == {first: 50 if how == "removed" else 200, 3 - first: 0}


def test_datagrams_stay_where_they_must(nat, policy):
    """A draining server keeps its flows if no other can take them; TCP stays in any case."""
    raw = Raw(nat, UDP, 4, (1, 2))
    policy(raw, on_drain=MOVE)
    client = raw.client()
    first = client.open()
    for number in (1, 2):
        raw.edit(number, weight=0)
    client.send()
    assert client.arrive()[0] == first
    raw.edit(3 - first, weight=1)
    client.send()
    assert client.arrive()[0] == 3 - first
    tcp = Raw(nat, TCP, 4, (1, 2))
    policy(tcp, on_drain=MOVE)
    client = tcp.client()
    first = client.establish()
    tcp.edit(first, weight=0)
    client.send(ACK)
    assert client.arrive()[0] == first


@pytest.mark.smoke
@pytest.mark.parametrize(("module", "wanted"), (("l4lb", KEEP), ("l4lb", MOVE),
                                                ("l4lb", RESET_LOST), ("ip_vs", KEEP)),
                         indirect=["module"])
def test_removed_server(lab, module, policy, wanted):
    """The client's next segment is answered by a reset, which the server gets, too; or,
    as with ip_vs, it is dropped, and the connection waits for the server's return."""
    for proto, family in ((TCP, 4), (TCP, 6), (SCTP, 4), (SCTP, 6)):
        raw = Raw(lab, proto, family, (1, 2))
        policy(raw, on_loss=wanted)
        client = raw.client()
        first = client.establish()
        raw.remove(first)
        client.nothing_arrives()
        flags = (DATA,) if proto == SCTP else ACK
        more = {} if proto == SCTP else {"seq": 5_000, "ack": 7_000}
        client.send(flags, b"hello", **more)
        if wanted == KEEP:
            client.nothing_arrives()
            raw.add(first)
            client.send(flags, b"hello", **more)
            assert client.arrive()[0] == first
            continue
        p = client.answered()
        assert (p.src, p.sport) == (raw.vip, raw.port)
        number, q = client.arrive()
        q = q.inner() if q.is_tunnel else q
        assert number == first
        if proto == TCP:
            assert (p.flags, p.seq, p.ack) == (RST | ACK, 7_000, 5_005)
            assert (q.flags, q.seq, q.ack) == (RST | ACK, 5_005, 7_000)
        else:
            assert (p.chunks, tag(p)) == ([ABORT], (0x1234567, 1))
            assert (q.chunks, tag(q)) == ([ABORT], (0x1234567, 0))
        assert client.row() is None
        # A new connection from the same port goes elsewhere.
        client.send()
        assert client.arrive()[0] == 3 - first


def test_removed_server_of_datagrams(nat, policy):
    """With RESET the client first gets an ICMP error, then another server."""
    for family in (4, 6):
        raw = Raw(nat, UDP, family, (1, 2))
        policy(raw, on_loss=RESET_LOST)
        client = raw.client()
        first = client.open()
        raw.remove(first)
        client.send()
        assert client.icmp().code == (3 if family == 4 else 4)
        client.send()
        assert client.arrive()[0] == 3 - first


def test_loss_and_expire_nodest_conn(nat, policy):
    """A service's on_loss overrides the sysctl, even if set after the removal."""
    with setting(nat, "expire_nodest_conn", 1):
        for wanted in (DEFAULT, KEEP, RESET_LOST):
            raw = Raw(nat, TCP, 4, (1, 2))
            policy(raw, on_loss=wanted)
            client = raw.client()
            raw.remove(client.establish())
            assert bool(client.row()) == (wanted != DEFAULT), wanted
    raw = Raw(nat, UDP, 4, (1, 2))
    client = raw.client()
    first = client.open()
    raw.remove(first)
    client.send()
    client.nothing_arrives()
    policy(raw, on_loss=MOVE)
    client.send()
    assert client.arrive()[0] == 3 - first


def test_service_deleted(nat, policy):
    """The policy of a deleted service still applies to its connections."""
    raw = Raw(nat, TCP)
    policy(raw, on_loss=RESET_LOST)
    client = raw.client()
    client.establish()
    other = Raw(nat, TCP)       # keeps the hooks
    raw.service.delete()
    client.send(ACK, seq=5, ack=6)
    assert client.answered().seq == 6
    assert client.arrive()[1].flags & RST
    other.service.delete()


@pytest.mark.smoke
@both_modules
def test_persistent_clients_leave_a_draining_server(nat, module, policy):
    """on_drain decides; without it, the sysctl."""
    for quiescent in (0, 1):
        with setting(nat, "expire_quiescent_template", quiescent):
            for wanted in (DEFAULT, KEEP, MOVE):
                raw = Raw(nat, TCP, 4, (1, 2), flags=genl.PERSISTENT, timeout=300)
                policy(raw, on_drain=wanted)
                address = nat.client_address()
                first = raw.client(address).open()
                raw.edit(first, weight=0)
                stays = not quiescent
                if module.is_l4lb and wanted != DEFAULT:
                    stays = wanted == KEEP
                assert raw.client(address).open() == (first if stays else 3 - first)


# -- how long a template lives

@pytest.mark.timer
@both_modules
def test_a_template_ends_after_the_connection(lab, module):
    """The template expires although its closed connection is still remembered. With
    ip_vs that connection keeps the template for another minute."""
    ways = [(TCP, (FIN | ACK, FIN | ACK)), (TCP, (RST,)), (SCTP, ((ABORT,),))]
    clients = []
    for (proto, ending), family in itertools.product(ways, (4, 6)):
        raw = Raw(lab, proto, family, (1, 2), flags=genl.PERSISTENT, timeout=2)
        client = raw.client()
        client.establish()
        client.send(ending[0])
        client.arrive()
        if lab.shape == "nat" and len(ending) > 1:
            client.reply(ending[1]).answered()
        clients.append((client, raw.port))

    def templates():
        return [c["client"] for c, port in ((lab.conns(client=c.address, cport=0), p)
                                            for c, p in clients) for c in c]

    assert len(templates()) == len(clients)
    if module.is_l4lb:
        wait_until(lambda: not templates(), 6, step=0.1)
        assert all(c.row() for c, _ in clients if c.raw.proto != TCP or lab.shape != "nat")
        return
    time.sleep(3.2)
    # Connections in state CLOSED, CLOSE or TIME_WAIT still exist, and hold it.
    assert len(templates()) == len(clients)


@pytest.mark.timer
@pytest.mark.smoke
def test_a_template_stays_with_a_live_connection(nat):
    """When the last connection closes, the template's timeout begins again."""
    raw = Raw(nat, TCP, 4, (1, 2), flags=genl.PERSISTENT, timeout=2)
    client = raw.client()
    first = client.establish()
    time.sleep(3.2)
    again = raw.client(client.address)
    assert again.establish() == first
    again.send(RST)
    again.arrive()
    time.sleep(3.2)
    assert raw.dest(first)["persistent"] == 1
    client.send(RST)
    client.arrive()
    (row,) = nat.conns(client=client.address, cport=0)
    assert 0 < row["expires"] <= 2
    wait_until(lambda: raw.dest(first)["persistent"] == 0, 6, step=0.1)


# -- guards

OFF, REJECT, DROP = range(3)


@contextlib.contextmanager
def listening(lab, family):
    """(TCP socket, UDP socket) of the director, on all its addresses."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with lab.director.ns.socket(kind, socket.SOCK_STREAM) as tcp, \
            lab.director.ns.socket(kind, socket.SOCK_DGRAM) as udp:
        for s in (tcp, udp):
            s.bind(("", 0))
        tcp.listen()
        udp.settimeout(0.3)
        yield tcp, udp


def connects(lab, vip, port):
    with lab.client.ns.socket(genl.family_of(vip), socket.SOCK_STREAM) as s:
        s.settimeout(1.5)
        try:
            s.connect((vip, port))
        except ConnectionRefusedError:
            return "refused"
        except TimeoutError:
            return "silence"
        return "open"


def datagram(lab, vip, udp):
    with lab.client.ns.socket(genl.family_of(vip), socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        s.connect((vip, udp.getsockname()[1]))
        s.send(b"?")
        try:
            udp.recv(9)
            return "open"
        except TimeoutError:
            pass
        try:
            s.recv(9)
        except ConnectionRefusedError:
            return "refused"
        except TimeoutError:
            return "silence"
        return "open"


@pytest.mark.timer
@pytest.mark.smoke
@both_modules
def test_guard(nat, module, policy, family):
    """Programs of the director that listen on all addresses are reachable at the VIP,
    unless a guard stops that. The service, ping and the director's own address work."""
    port = nat.http_port()
    vip, host = nat.vip(family), FRONT[family] + "1"
    service = nat.ipvs.service(vip, port, sched="rr")
    service.server(nat.rip(1, family), port)
    with listening(nat, family) as (tcp, udp):
        tcp_port = tcp.getsockname()[1]
        for guard, want in ((OFF, "open"), (REJECT, "refused"), (DROP, "silence"), (OFF, "open")):
            if module.is_l4lb:
                with genl.L4lb(nat.director.ns) as l4lb:
                    l4lb.set_policy(service, guard=guard)
            else:
                want = "open"   # complaint: no guards
            assert connects(nat, vip, tcp_port) == want
            assert datagram(nat, vip, udp) == want
            assert connects(nat, vip, port) == "open"
            assert connects(nat, host, tcp_port) == "open"
            nat.client.ns.run(f"ping -c1 -W2 {vip}")


def stray(raw, proto, **kwargs):
    """Send a packet to port 9 of the VIP, which is closed. Return (source port, match
    for answers)."""
    source, sport = raw.lab.client_address(raw.family), kwargs.pop("sport", fresh_port())
    raw.client_tap.send(packet.l4_packet(proto, source, sport, raw.vip, 9, **kwargs))
    return sport, lambda p: p.dst == source


@pytest.mark.smoke
def test_a_guard_answers_like_a_host(nat, policy, family):
    raw = Raw(nat, UDP, family)
    policy(raw, guard=REJECT)
    for proto in (TCP, UDP, SCTP):
        payload = bytes.fromhex("0badcafe") + bytes(12)
        sport, mine = stray(raw, proto, payload=payload)
        p = raw.client_tap.expect(mine)
        if proto == UDP:
            assert is_error(p) and p.inner().sport == sport
            continue
        assert (p.src, p.sport, p.dport) == (raw.vip, 9, sport)
        if proto == TCP:
            assert (p.flags, p.seq, p.ack) == (RST | ACK, 0, 1000 + 1 + len(payload))
        else:
            assert (p.chunks, tag(p)) == ([ABORT], (0x0badcafe, 0))


def test_what_a_guard_stops(nat, policy):
    """A guard stops packets that could open a connection or probe a port; those of a
    connection, and broken ones, are left to the director's stack."""
    raw = Raw(nat, TCP)
    policy(raw, guard=DROP)
    drops = "/proc/net/l4lb"

    def dropped():
        return int(re.search(r"guard\s+(\d+)", nat.director.ns.read(drops))[1])

    for kwargs, stopped in (({"flags": SYN}, 1), ({"flags": 0}, 1), ({"flags": FIN}, 1),
                            ({"flags": SYN, "sport": 20}, 1), ({"flags": RST}, 0),
                            ({"flags": ACK}, 0), ({"flags": SYN | ACK}, 0),
                            ({"flags": SYN, "csum": 5}, 0)):
        before = dropped()
        _, mine = stray(raw, TCP, **kwargs)
        raw.fence()
        assert dropped() - before == stopped, kwargs
        answers = raw.client_tap.take(mine)
        assert len(answers) == int("flags" in kwargs and bool(kwargs["flags"] & ACK)), kwargs
    before = dropped()
    stray(raw, SCTP, chunks=(DATA,))
    raw.fence()
    assert dropped() == before


def test_guards_of_one_address(nat, policy):
    """The strictest guard applies while it exists; other addresses are not affected."""
    services = [Raw(nat, proto) for proto in (TCP, UDP, TCP)]
    other = Raw(nat, TCP, vip=nat.raw_vip(4, 1))

    def answer(raw):
        _, mine = stray(raw, UDP)
        raw.fence()
        return len(raw.client_tap.take(mine))

    policy(other, guard=DROP)
    assert [answer(services[0]), answer(other)] == [1, 0]     # the stack's own answer
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_policy(services[1].service, guard=DROP)
        l4lb.set_policy(services[0].service, guard=REJECT)
        assert answer(services[2]) == 0
        services[1].service.delete()
        assert answer(services[2]) == 1
        l4lb.set_policy(services[2].service, guard=DROP)
        assert answer(services[2]) == 0
        l4lb.set_policy(services[2].service, guard=OFF)
        services[0].service.delete()
        other.service.delete()
        assert answer(services[2]) == answer(other) == 1
        mark = nat.ipvs.service(fwmark=7, sched="rr")
        assert "no address to guard" in genl.is_refused(
            lambda: l4lb.set_policy(mark, tcp=5, guard=DROP), errno.EINVAL)
        assert l4lb.policy(mark)["tcp"] == 0


def test_a_guard_lets_the_host_work(nat, policy, family):
    """Connections that the director itself opens, from the VIP or to it, work."""
    raw = Raw(nat, TCP, family)
    policy(raw, guard=DROP)
    kind = genl.family_of(raw.vip)
    with nat.client.ns.socket(kind, socket.SOCK_STREAM) as listener, \
            nat.client.ns.socket(kind, socket.SOCK_DGRAM) as echo, \
            nat.director.ns.socket(kind, socket.SOCK_STREAM) as out, \
            nat.director.ns.socket(kind, socket.SOCK_DGRAM) as query, \
            listening(nat, family) as (tcp, _), \
            nat.director.ns.socket(kind, socket.SOCK_STREAM) as inside:
        for s in (listener, echo):
            s.bind((nat.cip(family), 0))
            s.settimeout(5)
        listener.listen()
        for s, peer in ((out, listener), (query, echo)):
            s.bind((raw.vip, 0))
            s.settimeout(5)
            s.connect(peer.getsockname())
        query.send(b"?")
        data, source = echo.recvfrom(9)
        echo.sendto(data, source)
        assert query.recv(9) == b"?"
        inside.settimeout(5)
        inside.connect((raw.vip, tcp.getsockname()[1]))


@pytest.mark.waits
@pytest.mark.parametrize("demux", (1, 0), ids=("early-demux", "late-demux"))
def test_a_guard_lets_answers_in(nat, policy, family, demux):
    """Answers to datagrams that the director sends from the VIP reach a socket that is
    connected or bound to the VIP, whether or not the stack looks for sockets early. A socket
    bound to all addresses, or to the VIP on another device, is guarded."""
    raw = Raw(nat, UDP, family)
    policy(raw, guard=DROP)
    kind, before = genl.family_of(raw.vip), nat.director.ns.sysctl("net/ipv4/ip_early_demux")
    nat.director.ns.sysctl("net/ipv4/ip_early_demux", demux)
    try:
        for connect, address, device, want in (
                (True, raw.vip, None, True), (False, raw.vip, None, True),
                (False, raw.vip, "eth0", True), (False, raw.vip, "eth1", False),
                (False, "", None, False)):
            with nat.client.ns.socket(kind, socket.SOCK_DGRAM) as server, \
                    nat.director.ns.socket(kind, socket.SOCK_DGRAM) as query:
                server.bind((nat.cip(family), 0))
                if device:
                    query.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
                query.bind((address, 0))
                if connect:
                    query.connect(server.getsockname())
                query.settimeout(2 if want else 0.3)
                server.sendto(b"!", (raw.vip, query.getsockname()[1]))
                try:
                    got = query.recv(9) == b"!"
                except TimeoutError:
                    got = False
                assert got == want, (connect, address, device)
    finally:
        nat.director.ns.sysctl("net/ipv4/ip_early_demux", before)
