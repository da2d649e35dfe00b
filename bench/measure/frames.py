# SPDX-License-Identifier: GPL-2.0
"""Parses a frame that reached a sink and compares it with the expected one."""

import ipaddress
import struct

FCS = 4
OUTER = {4: 20, 6: 40}
UDP, TCP, IPV4, IPV6 = 17, 6, 4, 41


class Frame:
    """The headers of a frame. A transport checksum is verified only in a complete frame; bare: it has
    none."""

    def __init__(self, data):
        self.lladdr = data[:6].hex(":")
        self.tunnelled = False
        self._network(data[14:])
        if self.proto in (IPV4, IPV6):
            self.outer, self.tunnelled = self.dst, True
            self._network(self.payload)
        self.sport, self.dport = struct.unpack("!HH", self.payload[:4])

    def _network(self, data):
        if data[0] >> 4 == 4:
            header = (data[0] & 15) * 4
            length = struct.unpack("!H", data[2:4])[0]
            self.ttl, self.proto = data[8], data[9]
            addresses = data[12:20]
            self.good = not summed(data[:header])
        else:
            header = 40
            length = 40 + struct.unpack("!H", data[4:6])[0]
            self.ttl, self.proto = data[7], data[6]
            addresses = data[8:40]
            self.good = True
        half = len(addresses) // 2
        self.src = ipaddress.ip_address(addresses[:half])
        self.dst = ipaddress.ip_address(addresses[half:])
        self.payload = data[header:length]
        # UDP over IPv4 may do without.
        self.bare = self.proto == UDP and len(addresses) == 8 and self.payload[6:8] == bytes(2)
        if len(data) >= length and self.proto in (UDP, TCP) and not self.bare:
            pseudo = addresses + struct.pack("!II", len(self.payload), self.proto)
            self.good = self.good and not summed(pseudo + self.payload)


def summed(data):
    """The Internet checksum over DATA; 0 if DATA includes a correct one."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def wrong(sample, due):
    """How the frame SAMPLE (bytes) differs from DUE, {field: value, None: any}; "" if it does not."""
    try:
        frame = Frame(sample)
    except (IndexError, struct.error, ValueError):
        return "the sampled frame is none"
    for field, value in ({"good": True, "bare": False} | due).items():
        if value is not None and str(getattr(frame, field, None)) != str(value):
            return f"{field} is {getattr(frame, field, None)} and not {value}"
    return ""
