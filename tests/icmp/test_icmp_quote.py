# SPDX-License-Identifier: GPL-2.0
"""A translated ICMP error quotes the packet exactly as its sender sent it: some
stacks compare more than addresses and ports."""

import pytest
from lab import packet
from lab.packet import ACK, TCP, UDP
from lab.raw import Raw

UNREACHABLE = {4: (3, 3), 6: (1, 4)}


def error(source, about, family):
    """Port unreachable from SOURCE about the packet ABOUT, to its sender."""
    return packet.icmp_packet(source, packet.Packet(about).src, *UNREACHABLE[family], 0, payload=about)


@pytest.mark.smoke
@pytest.mark.ip_vs_differs("the quoted packet's checksum is not that of its new addresses")
def test_request_quoted_to_the_client(nat, family, proto):
    raw = Raw(nat, proto, family)
    client = raw.client()
    client.open()

    def sent(to, port):
        return packet.l4_packet(proto, client.address, client.sport, to, port, payload=b"request", ttl=63)

    raw.taps[1].send(error(raw.address(1), sent(raw.address(1), raw.dport), family))
    assert client.icmp().inner().raw == sent(raw.vip, raw.port)


@pytest.mark.ip_vs_differs("the quoted packet's checksum is not that of its new addresses")
def test_reply_quoted_to_the_server(nat, family, proto):
    raw = Raw(nat, proto, family)
    client = raw.client()
    client.open()
    client.reply(ACK, b"answer")
    raw.client_tap.send(error(client.address, client.answered().raw, family))
    p = raw.taps[1].expect(lambda p: p.type == UNREACHABLE[family][0], what="ICMP error")
    assert p.inner().raw == client.reply_packet(ACK, b"answer", ttl=63)


def test_quoted_udp_without_checksum(nat):
    """A quoted checksum of 0 stays 0."""
    raw = Raw(nat, UDP, 4)
    client = raw.client()
    client.open()
    about = packet.udp_packet(client.address, client.sport, raw.address(1), raw.dport, b"x", csum=0)
    raw.taps[1].send(error(raw.address(1), about, 4))
    assert client.icmp().inner().l4[6:8] == b"\0\0"


def test_quote_cut_before_the_checksum(nat, family):
    """Eight bytes of TCP: the ports are translated, the bytes after them stay."""
    raw = Raw(nat, TCP, family)
    client = raw.client()
    client.open()
    client.reply(ACK)
    head = 20 if family == 4 else 40
    raw.client_tap.send(error(client.address, client.answered().raw[:head + 8], family))
    p = raw.taps[1].expect(lambda p: p.type == UNREACHABLE[family][0], what="ICMP error")
    want = client.reply_packet(ACK, ttl=63)[:head + 8]
    assert p.payload[:head + 8] == want
