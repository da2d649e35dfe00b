# SPDX-License-Identifier: GPL-2.0
"""FTP through NAT: module l4lb_ftp, and ip_vs_ftp likewise. The test plays both ends."""

import re
import struct
import time

import pytest
from lab import fast, modules
from lab.flows import set_policy
from lab.ftp import DPORT, PORT, Ftp, commas, told
from lab.genl import PERSISTENT
from lab.ingress import at_ingress
from lab.netns import run, wait_until
from lab.packet import ACK, PSH, SYN, packed, tcp_packet, udp_packet
from lab.rows import amount
from lab.settings import setting

LAZY = 1
pytestmark = pytest.mark.usefixtures("ftp_helper")


def listed(nat, control, name):
    """The lines of a file of conntrack with the client's address, which is written at full
    length."""
    address = control.client.address
    if ":" in address:
        address = ":".join(f"{word:04x}" for word in struct.unpack("!8H", packed(address)))
    return [line for line in nat.director.ns.read(f"/proc/net/{name}").splitlines()
            if f"={address} " in line]


def expected(nat, control):
    """The connections that conntrack expects."""
    return listed(nat, control, "nf_conntrack_expect")


def entries(nat, control):
    return listed(nat, control, "nf_conntrack")


@pytest.mark.stock
@pytest.mark.smoke
@pytest.mark.parametrize("on", (0, 1), ids=("off", "conntrack"))
def test_passive(nat, family, on):
    """The client learns the VIP, gets to its server by it, and all sequence numbers fit."""
    raw = Ftp(nat, family)
    with setting(nat, "conntrack", on):
        for _ in range(2):
            control = raw.control()
            control.talk()
            for port in (50000, 65535):
                control.passive(port)
                assert control.data(port) == (control.number, port)
                control.talk()


def test_passive_extended(nat):
    """EPSV over IPv4."""
    control = Ftp(nat).control()
    control.passive(50001, extended=True)
    assert control.data(50001) == (control.number, 50001)
    control.talk()


@pytest.mark.stock
@pytest.mark.smoke
def test_active(nat, family):
    """The server's connection comes from the VIP, and from the port beside the service's."""
    raw = Ftp(nat, family)
    for extended in ((False, True) if family == 4 else (True,)):
        control = raw.control()
        control.announce(40000, extended=extended)
        assert control.connect(40000) == (raw.vip, 20)
        control.talk()


def test_active_from_any_port(nat, family, backend):
    """Servers without privileges do not have port 20. ip_vs leaves such a connection alone."""
    raw = Ftp(nat, family)
    control = raw.control()
    control.announce(40000)
    assert control.connect(40000, sport=45678) == \
        ((raw.vip, 45678) if backend.is_l4lb else (control.server, 45678))


def test_without_module(nat, family, backend):
    """The control: nothing is rewritten, nothing expected."""
    without_module(backend)
    raw = Ftp(nat, family)
    control = raw.control()
    if family == 4:
        control.say(b"PASV\r\n")
        control.tell(told(control.server, 50000))
    else:
        control.passive(50000)
    assert control.data(50000) == (None, None)
    control.announce(40000)
    assert control.connect(40000) == (control.server, DPORT - 1)
    control.talk()


def without_module(backend):
    """The helper goes."""
    if not backend.is_l4lb:
        pytest.skip("connections of ip_vs hold its module; runs with --backend l4lb")
    backend.remove("ftp")


@pytest.mark.ip_vs_differs("what is sent again does not reach the client as it did first")
def test_sent_again(nat):
    """The answer was lost: it is rewritten again, and shifts once."""
    raw = Ftp(nat)
    control = raw.control()
    control.passive(50000)
    control.tell(told(control.server, 50000), told(raw.vip, 50000), again=True)
    assert control.data(50000) == (control.number, 50000)
    control.talk()


def test_unasked(nat):
    """An answer that the client has not asked for is text."""
    raw = Ftp(nat)
    control = raw.control()
    control.tell(told(control.server, 50000))
    assert control.data(50000) == (None, None)
    control.say(b"EPSV\r\n")
    control.tell(told(control.server, 50000))
    assert control.data(50000) == (None, None)
    control.passive(50001)
    control.talk()


def test_split(nat):
    """A line that comes in two packets is none, as with ip_vs."""
    raw = Ftp(nat)
    control = raw.control()
    control.say(b"PASV\r\n")
    text = told(control.server, 50000)
    for part in (text[:9], text[9:]):
        control.tell(part)
    assert control.data(50000) == (None, None)
    control.say(b"PORT 10,")
    control.say(b"1,2,3,4,5\r\n")
    control.passive(50001)
    assert control.data(50001) == (control.number, 50001)
    control.talk()


def test_repeated_text(nat, only_l4lb):
    """A client makes its server say what looks like an answer: within a line that another
    packet began it is none, and neither is the port of a system service."""
    raw = Ftp(nat)
    control = raw.control()
    control.say(b"PASV\r\n")
    control.tell(b"500 what is ")
    control.tell(told(control.server, 50000))
    assert control.data(50000) == (None, None)
    for port in (22, 1023):
        control.say(b"PASV\r\n")
        control.tell(told(control.server, port))
        assert control.data(port) == (None, None)
    control.passive(1024)
    assert control.data(1024) == (control.number, 1024)


def test_several_lines(nat, only_l4lb):
    """An answer behind other lines of a packet."""
    raw = Ftp(nat)
    control = raw.control()
    control.say(b"NOOP\r\nPASV\r\n")
    line = b"200 OK\r\n"
    control.tell(line + told(control.server, 50000), line + told(raw.vip, 50000))
    assert control.data(50000) == (control.number, 50000)
    control.talk()


BAD = (b"PORT {},256,1", b"PORT {},0,0", b"PORT {},1", b"PORT {},1,2,3", b"PORT {},99999999999,1",
       b"PORT {}, 1,2", b"XPORT {},1,2", b"PORT", b"PORT ", b"EPRT |1|{.}|0|", b"EPRT |1|{.}|65536|",
       b"EPRT |2|{.}|1026|", b"EPRT |1|{.}|1026", b"EPRT |1|{.}x|1026|", b"EPRT ||{.}|1026|",
       b"EPRT |1|::1|1026|", b"EPRT |1||1026|")


def test_bad_numbers(nat, only_l4lb):
    raw = Ftp(nat)
    control = raw.control()
    address = control.client.address.encode()
    for line in BAD:
        control.say(line.replace(b"{}", address.replace(b".", b",")).replace(b"{.}", address) + b"\r\n")
        assert not expected(nat, control), line
    for text in (b"227 (%s,256,1)", b"227 (%s,0,0)", b"227 (%s,195)", b"227 x", b"227 (%s,99999,1)",
                 b"2270 (%s,195,1)"):
        control.say(b"PASV\r\n")
        control.tell(text.replace(b"%s", control.server.replace(".", ",").encode()) + b"\r\n")
        assert not expected(nat, control), text
    for text in (b"229 (|||0|)", b"229 (|||65536|)", b"229 (||50000|)", b"229 (|||50000)", b"229 |||50000|"):
        control.say(b"EPSV\r\n")
        control.tell(text + b"\r\n")
        assert not expected(nat, control), text
    control.talk()


def test_bounce(nat, family, only_l4lb):
    """A client announces another host: its server's connection there is not translated."""
    raw = Ftp(nat, family)
    control = raw.control()
    other = nat.client_address(family)
    control.announce(40000, address=other)
    assert not expected(nat, control)
    raw.taps[control.number].send(tcp_packet(control.server, DPORT - 1, other, 40000, SYN))
    p = raw.client_tap.expect(lambda p: p.dst == other)
    assert p.src == control.server


def test_server_names_another(nat, only_l4lb):
    """An answer with an address that is neither its own nor the VIP is left as it is; one with
    the VIP serves."""
    raw = Ftp(nat)
    control = raw.control()
    control.say(b"PASV\r\n")
    control.tell(told("192.0.2.99", 50000))
    assert not expected(nat, control) and control.data(50000) == (None, None)
    control.say(b"PASV\r\n")
    control.tell(told(raw.vip, 50000))
    assert control.data(50000) == (control.number, 50000)
    control.talk()


def test_same_port_of_two_servers(nat, family, only_l4lb):
    """Clients of one address at two servers with one port: the VIP has two."""
    raw = Ftp(nat, family)
    one = raw.control()
    other = raw.control(raw.client(one.client.address))
    assert {one.number, other.number} == {1, 2}
    one.passive(50000)
    if family == 4:
        other.say(b"PASV\r\n")
        other.client.reply(ACK | PSH, told(other.server, 50000), seq=other.theirs, ack=other.mine)
        high, low = re.search(rb"\(198,51,100,102,(\d+),(\d+)\)", other.client.answered().payload).groups()
        port = int(high) << 8 | int(low)
    else:
        other.say(b"EPSV\r\n")
        other.client.reply(ACK | PSH, b"229 (|||50000|)\r\n", seq=other.theirs, ack=other.mine)
        port = int(re.search(rb"\|(\d+)\|", other.client.answered().payload)[1])
    assert port > 50000
    assert other.data(port) == (other.number, 50000)
    assert one.data(50000) == (one.number, 50000)


def test_one_at_a_time(nat, only_l4lb, request):
    """However many a client announces, a control connection has one expectation: the last. Of
    all rows, it announces 100,000."""
    raw = Ftp(nat)
    control = raw.control()
    address, per_packet = control.client.address, 50
    for turn in range(amount(request.config, few=20, pairs=2000)):
        ports = (40000 + (turn * per_packet + n) % 20000 for n in range(per_packet))
        control.say(b"".join(b"PORT %s\r\n" % commas(address, port) for port in ports))
        control.tell(b"200 OK\r\n")
    last = 40000 + (turn * per_packet + per_packet - 1) % 20000
    assert len(expected(nat, control)) == 1
    assert control.connect(last - 1) == (control.server, DPORT - 1)
    assert control.connect(last) == (raw.vip, 20)
    assert not expected(nat, control)


def test_once(nat, only_l4lb):
    """An expectation is for one connection; a new one from the same ports needs another."""
    raw = Ftp(nat)
    control = raw.control()
    control.passive(50000)
    assert control.data(50000, source=33333) == (control.number, 50000)
    assert control.data(50000, source=33334) == (None, None)
    assert control.data(50001) == (None, None)


def test_others_do_not_get_in(nat, family, only_l4lb):
    """Only the client's own address may use what it was told."""
    raw = Ftp(nat, family)
    control = raw.control()
    control.passive(50000)
    stranger = raw.client()
    raw.client_tap.send(tcp_packet(stranger.address, stranger.sport, raw.vip, 50000, SYN))
    stranger.nothing_arrives()
    assert control.data(50000) == (control.number, 50000)


def stays_with_its_control(raw):
    """The service of RAW has all ports: the control connection's server has the data connection,
    even if the client's template has another one by now."""
    raw.port = PORT
    control = raw.control()
    control.passive(50000)
    with setting(raw.lab, "expire_quiescent_template", 1):
        raw.edit(control.number, weight=0)
        other = raw.control(raw.client(control.client.address))
        assert other.number != control.number
        assert control.data(50000) == (control.number, 50000)


@pytest.mark.ip_vs_differs("the answer is dropped while no rule or service on port 21 needs conntrack")
def test_persistent_port_0(nat, family):
    stays_with_its_control(Ftp(nat, family, port=0, dport=0, flags=PERSISTENT, timeout=300))


def test_drained(nat, family):
    """A draining server gets the data connections of its control connections."""
    raw = Ftp(nat, family)
    control = raw.control()
    raw.edit(control.number, weight=0)
    control.passive(50000)
    assert control.data(50000) == (control.number, 50000)


def test_listed(nat, family, only_l4lb):
    """A data connection is listed like any other, and counts for its server."""
    raw = Ftp(nat, family)
    control = raw.control()
    before = raw.dest(control.number)["stats"]["conns"]
    control.passive(50000)
    control.data(50000)
    row, = (row for row in control.rows() if row["vport"] == 50000)
    assert (row["state"], row["server"], row["dport"]) == ("SYN_RECV", control.server, 50000)
    control.announce(40000)
    control.connect(40000)
    row, = (row for row in control.rows() if row["vport"] == 20)
    assert (row["state"], row["cport"], row["dport"]) == ("ESTABLISHED", 40000, DPORT - 1)
    wait_until(lambda: raw.dest(control.number)["stats"]["conns"] == before + 2, 5, what="two more")


def test_other_ports_stay_untracked(nat, family, only_l4lb):
    """Conntrack keeps nothing of services that have no control connections."""
    raw = Ftp(nat, family)
    web = Ftp(nat, family, port=8021)
    control, other = raw.control(), web.control()

    def tracked(client):
        return f"sport={client.sport} " in nat.director.ns.read("/proc/net/nf_conntrack")
    # It passes over an entry if another one goes between two parts of the list.
    wait_until(lambda: tracked(control.client), 5, what="the control connection's entry")
    assert not tracked(other.client)


def test_firewall_sees_related(nat, family, only_l4lb):
    """A stateful firewall need not open a port."""
    ns = nat.director.ns
    ns.nft("""
table inet ftp_related {
 counter related { }
 chain in { type filter hook input priority 0; tcp dport 50000 ct state related counter name related; }
 chain through { type filter hook forward priority 0; tcp dport 40000 ct state related counter name related; }
}""")
    try:
        raw = Ftp(nat, family)
        control = raw.control()
        control.passive(50000)
        control.data(50000)
        control.announce(40000)
        control.connect(40000)
        assert "packets 2 " in ns.nft("list counter inet ftp_related related")
    finally:
        ns.nft("delete table inet ftp_related")


def test_service_before_module(nat, family, backend):
    """A service that is there when the module comes."""
    without_module(backend)
    raw = Ftp(nat, family)
    assert not backend.load_scheduler("ftp")
    control = raw.control()
    control.passive(50000)
    assert control.data(50000) == (control.number, 50000)


def test_module_goes(nat, family, only_l4lb, backend):
    """Control and data connections stay, with the sequence numbers that they have; what was
    expected is not, any more."""
    raw = Ftp(nat, family)
    control = raw.control()
    control.passive(50000)
    control.data(50000, source=33333)
    control.passive(50001)
    without_module(backend)
    control.talk()
    assert control.data(50001) == (None, None)
    raw.client_tap.send(tcp_packet(control.client.address, 33333, raw.vip, 50000, ACK, seq=9001, ack=71))
    raw.taps[control.number].expect(lambda p: p.sport == 33333 and p.dport == 50000)


def test_service_goes(nat, family, only_l4lb):
    """With its service a control connection is over, what it expects, and data connections; so
    are their entries in conntrack."""
    raw = Ftp(nat, family)
    control = raw.control()
    control.announce(40000)
    control.connect(40000)
    control.passive(50000)
    with setting(nat, "expire_nodest_conn", 1):
        raw.service.delete()
        wait_until(lambda: not expected(nat, control), 5, what="nothing expected")
        wait_until(lambda: not entries(nat, control), 5, what="no entry")
    assert control.data(50000) == (None, None)


def test_conntrack_is_given_back(nat, family, only_l4lb):
    """Without rules that need it, conntrack is there as long as an FTP service with NAT is."""
    def tracks(sport):
        raw.client_tap.send(udp_packet(client, sport, nat.raw_vip(family, 1), 9))
        raw.fence()
        return f"sport={sport} dport=9 " in nat.director.ns.read("/proc/net/nf_conntrack")
    raw, client = Ftp(nat, family, numbers=(1,)), nat.client_address(family)
    assert tracks(4444)
    raw.service.delete()
    assert not tracks(4445)


def test_long_transfer(nat, family, only_l4lb):
    """A control connection that is silent during a transfer does not expire before it."""
    raw = Ftp(nat, family)
    control = raw.control()
    control.passive(50000)
    control.data(50000, source=33333)
    nat.ipvs.timeouts(2, 120, 300)
    control.talk()
    left = []

    def outlived():
        raw.client_tap.send(tcp_packet(control.client.address, 33333, raw.vip, 50000, ACK, seq=9001, ack=71))
        raw.fence()
        left.append(time.monotonic())
        return left[-1] - left[0] > 4
    wait_until(outlived, 30, what="twice the timeout")
    control.talk()


def test_namespace_ends(nat, family, only_l4lb, topologies, backend):
    """With control and data connections, and with what is expected."""
    raw = Ftp(nat, family)
    for port in (50000, 50001):
        control = raw.control()
        control.passive(port)
        control.data(port)
        control.announce(40000)
        control.connect(40000)
        control.passive(port)
    nat.ipvs.close()
    topologies.destroy()
    # Its other modules hold it, and no service.
    wait_until(lambda: backend.refcount() == len(backend.family()) - 1, 10, what="no service")


@pytest.mark.parametrize("mode", (1, 2), ids=("on", "new"))
def test_fast_path(nat, family, only_l4lb, mode):
    """Control and data connections keep off the fast path, from their first packets on."""
    raw = Ftp(nat, family)
    fast.ready(raw)
    with setting(nat, "fast_path", mode):
        before = fast.read(nat.director.ns)
        control = raw.control()
        control.passive(50000)
        assert control.data(50000) == (control.number, 50000)
        for _ in range(3):
            control.talk()
        assert not fast.grown(nat.director.ns, before).get("fast")


def test_fast_path_port_0(nat, family, only_l4lb):
    """A data connection does not begin at ingress, where nobody knows its control connection."""
    raw = Ftp(nat, family, port=0, dport=0, flags=PERSISTENT, timeout=300)
    fast.ready(raw)
    with at_ingress(nat):
        stays_with_its_control(raw)


def test_lazy(nat, family, only_l4lb):
    """A service that has control connections has their entries at once."""
    raw = Ftp(nat, family, sched="mh")
    set_policy(raw, conn_state=LAZY)
    control = raw.control()
    control.passive(50000)
    assert control.data(50000) == (control.number, 50000)
    control.talk()


def test_ports(nat, only_l4lb, backend):
    """Other ports than 21, up to eight; none may be 0."""
    without_module(backend)
    ko = backend.modules / "l4lb_ftp.ko"
    assert modules.insert(ko, "ports=0").returncode
    assert modules.insert(ko, "ports=1,2,3,4,5,6,7,8,9").returncode
    assert not modules.insert(ko, "ports=2121,21").returncode
    for port in (21, 2121):
        raw = Ftp(nat, port=port)
        control = raw.control()
        control.announce(40000)
        assert control.connect(40000) == (raw.vip, port - 1)
    control = Ftp(nat, port=990).control()
    control.announce(40000)
    assert control.connect(40000) == (control.server, DPORT - 1)


def test_one_helper(backend, only_l4lb):
    """The module cannot be loaded twice, and holds l4lb."""
    assert run(["rmmod", "l4lb"], check=False).returncode
    assert modules.is_loaded("l4lb_ftp")
