# SPDX-License-Identifier: GPL-2.0
"""/proc/net/ip_vs*: the formats that exporters parse, to the byte."""

import os
import re
import socket

import pytest
from lab import packet
from lab.genl import ONEPACKET, PERSISTENT
from lab.netns import wait_until
from lab.packet import ACK, SYN, TCP, UDP
from lab.raw import Raw

HEAD = (r"IP Virtual Server version 1\.2\.1 \(size=\d+\)\n"
        r"Prot LocalAddress:Port Scheduler Flags\n"
        r"  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n")


def hex4(address):
    return packet.packed(address).hex().upper()


def services(ns):
    """{service line: [its server lines]}, the header checked and removed."""
    text = ns.read("/proc/net/ip_vs")
    head = re.match(HEAD, text)
    assert head, text
    out, last = {}, None
    for line in text[head.end():].splitlines():
        if line.startswith("  -> "):
            out[last].append(line)
        else:
            last = line
            out[last] = []
    return out


def user_hz_jiffies(seconds):
    """Persistence timeouts are printed in jiffies; HZ is 250 (Debian) or 100 (UML)."""
    return {str(seconds * hz) for hz in (100, 250, 1000)}


@pytest.mark.smoke
def test_services(nat):
    ipvs = nat.ipvs
    vip, vip6 = "198.51.100.130", "2001:db8:1::130"
    s = ipvs.service(vip, 80, sched="rr")
    s.server("192.0.2.20", 0xabcd, weight=65536)
    s.server("192.0.2.21", 80, method=2)
    s.server("192.0.2.22", 80, method=3, weight=7)
    ipvs.service(vip, 53, proto=UDP, flags=ONEPACKET)
    ipvs.service(vip6, 80, sched="wlc").server("2001:db8:2::20", 80, weight=0)
    ipvs.service(fwmark=5, sched="lc")
    ipvs.service(vip, 1, proto=300)
    ipvs.service(vip, 2, proto=packet.ICMP)
    ipvs.service(vip, 3, proto=packet.SCTP)
    got = services(nat.director.ns)
    h = hex4(vip)
    assert got == {
        f"TCP  {h}:0050 rr  ": [
            "  -> C0000216:0050      Route   7      0          0         ",
            "  -> C0000215:0050      Tunnel  1      0          0         ",
            "  -> C0000214:ABCD      Masq    65536  0          0         "],
        f"UDP  {h}:0035 rr ops  ": [],
        "TCP  [2001:0db8:0001:0000:0000:0000:0000:0130]:0050 wlc ": [
            "  -> [2001:0db8:0002:0000:0000:0000:0000:0020]:0050"
            "      Masq    0      0          0         "],
        "FWM  00000005 lc ": [],
        f"IP_300  {h}:0001 rr  ": [],
        f"ICMP  {h}:0002 rr  ": [],
        f"SCTP  {h}:0003 rr  ": []}


@pytest.mark.smoke
def test_persistent_services(nat):
    ipvs = nat.ipvs
    vip, vip6 = "198.51.100.131", "2001:db8:1::131"
    ipvs.service(vip, 80, flags=PERSISTENT, timeout=300, netmask="255.255.255.0")
    ipvs.service(vip6, 80, flags=PERSISTENT, timeout=60)
    ipvs.service(fwmark=18, flags=PERSISTENT, timeout=60)
    ipvs.service(vip, 53, proto=UDP, flags=PERSISTENT | ONEPACKET, timeout=60)
    for line in services(nat.director.ns):
        found = re.match(r"(.*) persistent (\d+) (.*)$", line)
        assert found, line
        name, time, mask = found.groups()
        want = {f"TCP  {hex4(vip)}:0050 rr ": (300, "FFFFFF00"),
                "TCP  [2001:0db8:0001:0000:0000:0000:0000:0131]:0050 rr": (60, "80000000"),
                "FWM  00000012 rr": (60, "FFFFFFFF"),
                f"UDP  {hex4(vip)}:0035 rr ops ": (60, "FFFFFFFF")}
        assert name in want, line
        assert mask == want[name][1]
        assert time in user_hz_jiffies(want[name][0])


def test_mixed_families(tun):
    tun.ipvs.service("2001:db8:1::132", 80).server("203.0.113.20", 80, method=2)
    assert list(services(tun.director.ns).values()) == [
        ["  -> CB007114:0050      Tunnel  1      0          0         "]]


@pytest.mark.smoke
def test_connections(nat):
    """Rows as ipvsadm -c parses them, v4 66 bytes with the newline."""
    raw = Raw(nat, TCP, 4)
    client = raw.client()
    client.establish()
    text = nat.director.ns.read("/proc/net/ip_vs_conn")
    assert text.splitlines()[0] == \
        "Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData"
    row = [r for r in text.splitlines(keepends=True) if hex4(client.address) in r]
    assert len(row) == 1
    assert re.fullmatch(
        f"TCP {hex4(client.address)} {client.sport:04X} {hex4(raw.vip)} {raw.port:04X} "
        f"{hex4(raw.address(1))} {raw.dport:04X} ESTABLISHED     (900|89[0-9])\n", row[0]), row
    assert len(row[0]) == 66
    six = Raw(nat, UDP, 6)
    client = six.client()
    client.open()
    row = [r for r in nat.director.ns.read("/proc/net/ip_vs_conn").splitlines(keepends=True)
           if f"{client.sport:04X} " in r and r.startswith("UDP") and ":" in r]
    assert len(row) == 1

    def long6(a):
        raw_bytes = socket.inet_pton(socket.AF_INET6, a).hex()
        return ":".join(raw_bytes[i:i + 4] for i in range(0, 32, 4))

    assert re.fullmatch(
        rf"UDP {long6(client.address)} {client.sport:04X} {long6(six.vip)} {six.port:04X} "
        rf"{long6(six.address(1))} {six.dport:04X} UDP             (300|29[0-9])\n", row[0]), row


def test_templates(nat):
    raw = Raw(nat, UDP, 4, flags=PERSISTENT, timeout=300, netmask="255.255.255.0")
    raw.client("10.66.3.9").open()
    rows = [r for r in nat.director.ns.read("/proc/net/ip_vs_conn").splitlines()
            if "0A420300 0000" in r]
    assert len(rows) == 1
    assert re.fullmatch(
        f"UDP 0A420300 0000 {hex4(raw.vip)} {raw.port:04X} {hex4(raw.address(1))} "
        f"{raw.dport:04X} NONE            (300|29[0-9])", rows[0]), rows


@pytest.mark.smoke
def test_stats(nat):
    raw = Raw(nat, UDP)
    raw.client().open()
    wait_until(lambda: nat.director.ns.read("/proc/net/ip_vs_stats").splitlines()[2].split()[0]
               != "0", 5, step=0.1)
    text = nat.director.ns.read("/proc/net/ip_vs_stats")
    lines = text.splitlines()
    assert lines[0] == "   Total Incoming Outgoing         Incoming         Outgoing"
    assert lines[1] == "   Conns  Packets  Packets            Bytes            Bytes"
    assert re.fullmatch(r"( *[0-9A-F]+){5}", lines[2])
    assert [len(lines[i]) for i in (0, 1, 2)] == [60, 60, 60]
    assert lines[3] == ""
    assert lines[4] == " Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s"
    assert re.fullmatch(r"( *[0-9A-F]+){5}", lines[5])
    assert len(lines[5]) == 60


def test_who_may_read(nat):
    """Exporters run unprivileged: every file is readable by all."""
    with nat.director.ns.enter():
        base = "/proc/thread-self/net/"
        for name in ("ip_vs", "ip_vs_conn", "ip_vs_stats"):
            assert os.stat(base + name).st_mode & 0o777 == 0o444, name


def test_reading_in_small_pieces(nat):
    """Readers with small buffers see every row once."""
    raw = Raw(nat, UDP)
    source = nat.client_address()
    for sport in range(30000, 30150):
        raw.client_tap.send(packet.udp_packet(source, sport, raw.vip, raw.port, b"x"))
    wait_until(lambda: len(nat.conns(client=source)) == 150, 10)
    with nat.director.ns.enter():
        fd = os.open("/proc/thread-self/net/ip_vs_conn", os.O_RDONLY)
    with os.fdopen(fd, "rb", buffering=0) as f:
        data = b""
        while True:
            part = f.read(97)
            if not part:
                break
            data += part
    ports = [int(r.split()[2], 16) for r in data.decode().splitlines()[1:]
             if r.split()[1] == hex4(source)]
    assert sorted(ports) == list(range(30000, 30150))


def test_other_namespaces_are_not_shown(topologies):
    a, b = topologies["nat"], topologies["dr"]
    a.flush()
    b.flush()
    raw = Raw(a, TCP)
    client = raw.client()
    client.send(SYN)
    client.arrive()
    client.send(ACK)
    client.arrive()
    assert hex4(client.address) not in b.director.ns.read("/proc/net/ip_vs_conn")
    assert services(b.director.ns) == {}
