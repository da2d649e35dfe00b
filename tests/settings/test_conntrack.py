# SPDX-License-Identifier: GPL-2.0
"""net.ipv4.vs.conntrack: the firewall's view of connections with NAT, by counters
of nft rules for each state of a packet."""

import contextlib
import hashlib
import re

import pytest
from lab import fast
from lab.farm import Http, http_get, pattern, udp_ask
from lab.netns import pinned, wait_until
from lab.packet import ACK, SYN, TCP, UDP, icmp_error
from lab.raw import Raw
from lab.settings import setting

RULES = """
table inet l4lb_ct {{
 {counters}
 chain from_anywhere {{
  type filter hook prerouting priority 10;
  ct state invalid counter name invalid
 }}
 chain to_vip_new {{ counter name in_new ; }}
 chain to_vip_old {{ counter name in_old ; }}
 chain to_vip {{
  type filter hook input priority 0;
  meta l4proto {proto} th dport {port} ct state new goto to_vip_new
  meta l4proto {proto} th dport {port} ct state established goto to_vip_old
 }}
 chain through {{
  type filter hook forward priority 0;
  meta l4proto {proto} ct state established counter name replies
 }}
 chain to_server {{
  type filter hook postrouting priority 50;
  oifname eth1 meta l4proto {proto} ct state untracked counter name untracked
 }}
 {more}
}}
"""
COUNTERS = ("invalid", "in_new", "in_old", "replies", "untracked")
MASQUERADE = """
 chain to_server_nat {{
  type nat hook postrouting priority srcnat;
  oifname eth1 th dport {0} masquerade
 }}
"""


class Firewall:
    """The counters of the director's rules, as attributes."""

    def __init__(self, ns):
        self.ns = ns

    def __getattr__(self, name):
        text = self.ns.nft(f"list counter inet l4lb_ct {name}")
        return int(re.search(r"packets (\d+)", text)[1])


@contextlib.contextmanager
def firewall(lab, port, proto="tcp", more=""):
    ns = lab.director.ns
    ns.nft(RULES.format(
        counters="\n ".join(f"counter {c} {{ }}" for c in COUNTERS),
        port=port, proto=proto, more=more))
    try:
        yield Firewall(ns)
    finally:
        ns.nft("delete table inet l4lb_ct")


def has_entries(lab, client, count):
    """Has conntrack COUNT entries for a client's flow?  True on kernels that do
    not list them; the rules' counters must do there."""
    try:
        text = lab.director.ns.read("/proc/net/nf_conntrack")
    except FileNotFoundError:
        return True
    return count == sum(f"sport={client.sport} dport={client.raw.port} " in line
                        for line in text.splitlines())


def handshake(client):
    """With sequence numbers that conntrack accepts."""
    client.send(SYN, seq=1000)
    number, _ = client.arrive()
    client.reply(SYN | ACK, seq=5000, ack=1001).answered()
    client.send(ACK, seq=1001, ack=5001)
    client.arrive()
    return number


@pytest.mark.stock
@pytest.mark.smoke
@pytest.mark.parametrize("on", (1, 0), ids=("on", "off"))
def test_stateful_rules(nat, family, on):
    """On: one tracked connection, new and then established, in both directions.
    Off: forwarded packets are untracked."""
    raw = Raw(nat, TCP, family)
    with setting(nat, "conntrack", on), fast.off(nat.director.ns), \
            firewall(nat, raw.port) as fw:
        client = raw.client()
        handshake(client)
        client.send(ACK, b"question", seq=1001, ack=5001)
        client.arrive()
        client.reply(ACK, b"answer", seq=5001, ack=1009)
        p = client.answered()
        assert (p.src, p.sport, p.payload) == (raw.vip, raw.port, b"answer")
        if on:
            assert (fw.in_new, fw.in_old, fw.replies) == (1, 2, 2)
            assert (fw.untracked, fw.invalid) == (0, 0)
            assert has_entries(nat, client, 1)
        else:
            assert fw.untracked == 3
            assert has_entries(nat, client, 0)


def test_masquerade(nat, family):
    """For servers that do not route replies by the director: they answer the
    director's own address, and replies are translated twice."""
    port = nat.http_port()
    service = nat.ipvs.service(nat.vip(family), port, sched="rr")
    datagrams = nat.ipvs.service(nat.vip(family), port, sched="rr", proto=UDP)
    for number in (1, 2):
        service.server(nat.rip(number, family), port, method=nat.method)
        datagrams.server(nat.rip(number, family), port, method=nat.method)
    with setting(nat, "conntrack", 1), one_armed(nat, family), \
            firewall(nat, port, more=MASQUERADE.format(port)) as fw:
        seen = [http_get(nat.client, nat.vip(family), port) for _ in range(4)]
        assert sorted(name for name, _ in seen) == ["rs1", "rs1", "rs2", "rs2"]
        assert {body.split()[2].decode() for _, body in seen} == {nat.dip(family)}
        with Http(nat.client, nat.vip(family), port) as h:
            digest = h.request("PUT", "/up", pattern(100000)).decode()
            assert digest == hashlib.sha256(pattern(100000)).hexdigest()
            assert h.request(path="/bulk/100000") == pattern(100000)
        assert {udp_ask(nat.client, nat.vip(family), port)[0] for _ in range(2)} == {"rs1", "rs2"}
        assert fw.invalid == 0


@contextlib.contextmanager
def one_armed(nat, family):
    """Inside, servers have no default route."""
    ip = "ip -6" if family == 6 else "ip"
    via = nat.dip(family)
    for node in nat.servers:
        node.ns.run(f"{ip} route del default")
    try:
        yield
    finally:
        for node in nat.servers:
            node.ns.run(f"{ip} route add default via {via}")


@pytest.mark.smoke
def test_entry_goes_with_the_connection(nat, family):
    """It goes at once, not after conntrack's own timeout of minutes or days."""
    if not nat.director.ns.run("ls /proc/net/nf_conntrack", check=False).stdout:
        pytest.skip("this kernel does not list its entries: Debian's do")
    raw = Raw(nat, TCP, family, (1, 2))
    with setting(nat, "conntrack", 1), setting(nat, "expire_nodest_conn", 1), \
            firewall(nat, raw.port):
        kept, lost = raw.client(), raw.client()
        handshake(kept)
        number = handshake(lost)
        assert has_entries(nat, kept, 1) and has_entries(nat, lost, 1)
        raw.remove(number)
        wait_until(lambda: has_entries(nat, lost, 0), 5, what="the entry is gone")
        assert has_entries(nat, kept, 1)


def reuse(raw, client, server):
    """The client reuses its port: how many packets arrive for its first SYN (0 or 1)?"""
    client.send(SYN, seq=90000)
    raw.fence()
    got = client.arrivals()
    assert all(number == server for number, _ in got)
    return len(got)


def test_reused_port(nat, family, backend):
    """A SYN from the port of an established connection to a draining server gets
    another server and another entry. ip_vs drops the first such SYN."""
    raw = Raw(nat, TCP, family, (1, 2))
    with setting(nat, "conntrack", 1), setting(nat, "expire_nodest_conn", 1), \
            firewall(nat, raw.port) as fw:
        client = raw.client()
        number = handshake(client)
        raw.edit(number, weight=0)
        assert reuse(raw, client, 3 - number) == (1 if backend.is_l4lb else 0)
        if not backend.is_l4lb:
            return
        client.reply(SYN | ACK, seq=70000, ack=90001, number=3 - number).answered()
        client.send(ACK, seq=90001, ack=70001)
        client.arrive()
        assert has_entries(nat, client, 1)
        assert fw.invalid == 0


def test_removed_server(nat, family, backend):
    """The same with a removed server whose connection still exists."""
    raw = Raw(nat, TCP, family, (1, 2))
    with setting(nat, "conntrack", 1), firewall(nat, raw.port) as fw:
        client = raw.client()
        number = handshake(client)
        raw.remove(number)
        got = reuse(raw, client, 3 - number)
        if backend.is_l4lb:
            assert (got, fw.invalid) == (1, 0)
        else:
            assert got == 0


def repeated_syns(node):
    names, values = (line.split()[1:] for line in node.ns.read("/proc/net/netstat").splitlines()
                     if line.startswith("TcpExt:"))
    return int(dict(zip(names, values))["TCPSynRetrans"])


@pytest.mark.smoke
def test_same_port_again_and_again(nat, family):
    """Fifty connections from one port, back to back: every first SYN gets
    through."""
    port = nat.http_port()
    service = nat.ipvs.service(nat.vip(family), port, sched="rr")
    for number in (1, 2, 3, 4):
        service.server(nat.rip(number, family), port, method=nat.method)
    before = repeated_syns(nat.client)
    # On two CPUs a SYN can overtake the reset before it.
    with pinned(), setting(nat, "conntrack", 1), firewall(nat, port) as fw:
        for _ in range(50):
            with Http(nat.client, nat.vip(family), port, sport=2348) as h:
                assert h.request(close=True).split()[1] == b"/"
                # A server that has closed, too, says no more after the reset.
                assert not h.lines.read()
                h.abort()
        # A busy machine may keep an answer waiting for a second: then both count the next SYN.
        assert fw.in_new - 50 == repeated_syns(nat.client) - before


def test_errors_are_related(nat, family):
    """A real server's ICMP error about a tracked flow is related to it, and is
    translated as usual."""
    raw = Raw(nat, UDP, family)
    with setting(nat, "conntrack", 1), firewall(nat, raw.port, "udp") as fw:
        client = raw.client()
        client.send(payload=b"question")
        _, p = client.arrive()
        unreachable = (3, 3) if family == 4 else (1, 4)
        raw.taps[1].send(icmp_error(raw.address(1), p.raw, unreachable))
        got = client.icmp()
        assert (got.src, got.type, got.code) == (raw.vip, *unreachable)
        assert fw.invalid == 0


def test_no_tracking_without_nat(dr, family, backend):
    """With direct routing the director sees only one direction: if tracked, the
    second packet would be invalid (with ip_vs it is)."""
    raw = Raw(dr, TCP, family)
    with setting(dr, "conntrack", 1), firewall(dr, raw.port) as fw:
        client = raw.client()
        client.send(SYN, seq=1000)
        client.arrive()
        client.send(ACK, seq=1001, ack=5001)
        client.arrive()
        assert (fw.invalid == 0) is backend.is_l4lb
