# SPDX-License-Identifier: GPL-2.0
"""Only frames addressed to the director itself are balanced: with several
directors on one network, a broadcast would reach real servers from each."""

import pytest
from lab.packet import ACK
from lab.raw import Raw


@pytest.mark.parametrize("mac", (b"\xff" * 6, b"\x01\0\x5e\0\0\x01"),
                         ids=("broadcast", "multicast"))
def test_frames_for_many(nat, family, proto, mac):
    raw = Raw(nat, proto, family)
    client = raw.client()
    raw.client_tap.send(client.packet(), mac=mac)
    client.nothing_arrives()
    assert client.row() is None
    client.open()
    raw.client_tap.send(client.packet(ACK, b"known flow"), mac=mac)
    client.nothing_arrives()
