# SPDX-License-Identifier: GPL-2.0
"""The messages by which directors announce connections to each other, byte by byte.

Written from a description of the protocol, not from the kernel's code, so that both can
be compared. `message()` writes, `read()` reads as strictly as a director has to: it
returns the records that count and the errors, named as the kernel's counters.
Whatever `message()` does not check is deliberate: hostile messages are made with it.
"""

import dataclasses
import ipaddress
import socket
import struct
import typing

from . import packet
from .packet import AH, ESP, SCTP, TCP, UDP

GROUP, PORT = "224.0.0.81", 8848
MAXLEN = {4: 1472, 6: 1452}     # of a sender that was not told another value
V0_HEAD, V1_HEAD = 4, 8
SIZE = {4: 36, 6: 72}           # of a version-1 record without options
V0_SIZE, SEQUENCE_SIZE = 24, 24
RECORDS_MAX = 255
MOST = 4095                     # a record's length has 12 bits

# Flags of a record
METHOD, NAT, LOCAL, TUNNEL, DIRECT, BYPASS = 7, 0, 1, 2, 3, 4
SYNCED, HASHED, NO_OUTPUT, INACTIVE = 0x20, 0x40, 0x80, 0x100
SEQUENCE, NO_CPORT, TEMPLATE, ONE_PACKET = 0x600, 0x800, 0x1000, 0x2000

# As in /proc/net/ip_vs_conn
STATES = {
    TCP: ("NONE", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT", "TIME_WAIT", "CLOSE",
          "CLOSE_WAIT", "LAST_ACK", "LISTEN", "SYNACK"),
    UDP: ("UDP",),
    SCTP: ("NONE", "INIT1", "INIT", "C-SENT", "C-REPLIED", "C-WAIT", "COOKIE", "C-ECHOED",
           "ESTABLISHED", "S-SENT", "S-RECEIVED", "S-ACK-SENT", "REJECTED", "CLOSED"),
    AH: ("NONE",), ESP: ("NONE",),
}
TEMPLATE_STATES = ("NONE", "ASSURED")

# Options of a record
O_SEQUENCE, O_PE_DATA, O_PE_NAME, O_LEFT, O_GONE, O_OPTIONAL = 1, 2, 3, 4, 5, 0x40
PE_NAME_MAX = 16

ERRORS = ("short", "size", "id", "version", "trailing", "record", "option", "flags", "state",
          "protocol", "unsupported")


class Sequence(typing.NamedTuple):
    """How one direction's sequence numbers are adjusted."""
    first: int = 0
    delta: int = 0
    previous: int = 0


@dataclasses.dataclass(frozen=True)
class Record:
    """A connection or a template."""
    client: str
    cport: int
    vip: str
    vport: int
    server: str
    dport: int
    proto: int = TCP
    state: int = 1
    flags: int = 0
    mark: int = 0
    timeout: int = 900          # seconds; version 0: always 0
    sequence: tuple = ()        # (in, out)
    pe_name: bytes = b""
    pe_data: bytes = b""
    left: int = 0               # seconds; 0: not said
    gone: bool = False          # ended before its time

    @property
    def family(self):
        return 6 if packet.is6(self.client) else 4

    @property
    def is_template(self):
        return bool(self.flags & TEMPLATE)

    @property
    def method(self):
        return self.flags & METHOD

    @property
    def state_name(self):
        names = TEMPLATE_STATES if self.is_template else STATES[self.proto]
        return names[self.state]

    def but(self, **other):
        return dataclasses.replace(self, **other)

    def v0(self):
        """As bytes of version 0."""
        return struct.pack("!BBHHH4s4s4sHH", 0, self.proto, self.cport, self.vport, self.dport,
                           *map(packet.packed, (self.client, self.vip, self.server)),
                           self.flags & 0xffff, self.state) + \
            b"".join(struct.pack("=III", *s) for s in self.sequence)

    def v1(self, more=b"", *, length=None, kind=None, version=0):
        """As bytes of version 1 without padding. MORE: options as bytes, behind its own;
        LENGTH, KIND, VERSION: of its header, if they are to be wrong."""
        options = b""
        if self.left:
            options += option(O_LEFT | O_OPTIONAL, struct.pack("!I", self.left))
        if self.gone:
            options += option(O_GONE, bytes(1))
        if self.sequence:
            options += option(O_SEQUENCE, b"".join(struct.pack("!III", *s)
                                                   for s in self.sequence))
        if self.pe_data:
            options += option(O_PE_DATA, self.pe_data)
        if self.pe_name:
            options += option(O_PE_NAME, self.pe_name)
        body = struct.pack("!IHHHHII", self.flags, self.state, self.cport, self.vport, self.dport,
                           self.mark, self.timeout) + \
            b"".join(map(packet.packed, (self.client, self.vip, self.server))) + options + more
        if length is None:
            length = 4 + len(body)
        if kind is None:
            kind = 1 if self.family == 6 else 0
        return struct.pack("!BBH", kind, self.proto, version << 12 | length & MOST) + body


def option(kind, data, length=None):
    return struct.pack("BB", kind, len(data) if length is None else length) + data


def mark_address(mark, family=4):
    """The VIP in the template of a service by firewall mark."""
    raw = struct.pack("!I", mark)
    return socket.inet_ntoa(raw) if family == 4 else \
        socket.inet_ntop(socket.AF_INET6, raw + bytes(12))


def message(records=(), sync_id=0, version=1, *, count=None, size=None, behind=b""):
    """A datagram with RECORDS, each a Record or its bytes. COUNT and SIZE: of its header,
    if they are to be wrong; BEHIND: bytes after the last record."""
    body = b""
    for record in records:
        if version:
            body += bytes(-len(body) % 4)
        body += record if isinstance(record, bytes) else \
            record.v1() if version else record.v0()
    body += behind
    if count is None:
        count = len(records)
    if size is None:
        size = len(body) + (V1_HEAD if version else V0_HEAD)
    if version:
        return struct.pack("!BBHBbH", 0, sync_id & 255, size & 0xffff, count, version, 0) + body
    return struct.pack("!BBH", count, sync_id & 255, size & 0xffff) + body


# ---- reading

class DroppedError(Exception):
    """Ends the reading of a message or of a record; says which counter rises."""

    def __init__(self, counter, rest=True):
        super().__init__(counter)
        self.counter, self.rest = counter, rest


@dataclasses.dataclass
class Message:
    """What was read."""
    version: int = 0
    sync_id: int = 0
    count: int = 0
    records: list = dataclasses.field(default_factory=list)
    errors: list = dataclasses.field(default_factory=list)
    at: int = 0                 # where the reader stopped


def read(data, sync_id=0):
    """Read a datagram as a director with SYNC_ID does (0: it takes all)."""
    found = Message()
    try:
        _header(found, data, sync_id)
        for _ in range(found.count):
            # The padding belongs to no record: it is before the next one.
            found.at = found.at + 3 & ~3
            try:
                found.records.append((_record1 if found.version else _record0)(found, data))
            except DroppedError as why:
                if why.rest:
                    raise
                found.errors.append(why.counter)
        if found.at < len(data):
            raise DroppedError("trailing")
    except DroppedError as why:
        found.errors.append(why.counter)
    return found


def _header(found, data, sync_id):
    if len(data) < V0_HEAD:
        raise DroppedError("short")
    found.count, found.sync_id, size = struct.unpack_from("!BBH", data)
    if size != len(data):
        raise DroppedError("size")
    if sync_id not in (0, found.sync_id):
        raise DroppedError("id")
    found.at = V0_HEAD
    if found.count == 0 and len(data) >= V1_HEAD:
        count, version, zero = struct.unpack_from("!BbH", data, 4)
        if version != 1 or zero:
            raise DroppedError("version")
        found.count, found.version, found.at = count, 1, V1_HEAD


def _record0(found, data):
    left = len(data) - found.at
    if left < V0_SIZE:
        raise DroppedError("record")
    _, proto, cport, vport, dport, client, vip, server, flags, state = \
        struct.unpack_from("!BBHHH4s4s4sHH", data, found.at)
    at = found.at + V0_SIZE
    found.at, sequence = at, ()
    if flags & SEQUENCE:
        if left < V0_SIZE + SEQUENCE_SIZE:
            raise DroppedError("record")
        sequence = _sequence("=III", data[at:at + SEQUENCE_SIZE])
        found.at += SEQUENCE_SIZE
    return valid(Record(*_ends(4, (client, cport), (vip, vport), (server, dport)), proto=proto,
                        state=state, flags=flags, timeout=0, sequence=sequence))


def _record1(found, data):
    at, left = found.at, len(data) - found.at
    if left < SIZE[4]:
        raise DroppedError("record")
    kind, proto, word, flags, state, cport, vport, dport, mark, timeout = \
        struct.unpack_from("!BBHIHHHHII", data, at)
    length = word & MOST
    family = 6 if kind & 1 else 4
    if length > left or word >> 12 or kind and family == 4 or length < SIZE[family]:
        raise DroppedError("record")
    found.at += length
    width = 16 if family == 6 else 4
    addresses = [data[at + 24 + n * width:at + 24 + (n + 1) * width] for n in range(3)]
    more = _options(data[at + SIZE[family]:at + length])
    return valid(Record(*_ends(family, *zip(addresses, (cport, vport, dport))), proto=proto,
                        state=state, flags=flags, mark=mark, timeout=timeout, **more))


def _options(data):
    """The options as fields of a Record."""
    known = {}
    while data:
        if len(data) < 2 or not data[1] or data[1] > len(data) - 2:
            raise DroppedError("option")
        kind, value, data = data[0], data[2:2 + data[1]], data[2 + data[1]:]
        name = {O_SEQUENCE: "sequence", O_PE_DATA: "pe_data",
                O_PE_NAME: "pe_name"}.get(kind & ~O_OPTIONAL)
        if kind == O_LEFT | O_OPTIONAL and len(value) == 4:
            known["left"] = int.from_bytes(value, "big")
            continue
        if kind == O_GONE and len(value) == 1:
            known["gone"] = True
            continue
        if name is None:
            if not kind & O_OPTIONAL:
                raise DroppedError("option", rest=False)
            continue
        if name in known or name == "sequence" and len(value) != SEQUENCE_SIZE or \
                name == "pe_name" and len(value) > PE_NAME_MAX:
            raise DroppedError("option")
        known[name] = _sequence("!III", value) if name == "sequence" else value
    return known


def _sequence(how, data):
    return tuple(Sequence(*numbers) for numbers in struct.iter_unpack(how, data))


def _ends(family, *ends):
    af = socket.AF_INET6 if family == 6 else socket.AF_INET
    for raw, port in ends:
        yield socket.inet_ntop(af, raw)
        yield port


def valid(record):
    """RECORD, if it makes sense."""
    if record.flags & ONE_PACKET or \
            record.flags & (TEMPLATE | NO_CPORT) == TEMPLATE | NO_CPORT:
        raise DroppedError("flags", rest=False)
    if not record.is_template and record.proto not in STATES:
        raise DroppedError("protocol", rest=False)
    if record.state >= len(TEMPLATE_STATES if record.is_template else STATES[record.proto]):
        raise DroppedError("state", rest=False)
    if record.pe_data and not record.pe_name:
        raise DroppedError("option", rest=False)
    return record


def unsupported(record):
    """Does l4lb leave this valid record out, because it lacks such connections?"""
    ends = [ipaddress.ip_address(a) for a in (record.client, record.server)]
    return bool(
        record.flags & NO_CPORT or record.method == BYPASS or record.pe_data
        or any(s.delta or s.previous for s in record.sequence)
        or not record.is_template and record.proto not in (TCP, UDP, SCTP)
        or record.is_template and record.vport == record.dport == 0xffff
        or any(a.is_multicast or a.is_unspecified for a in ends))


def strict(data, sync_id=None, version=None):
    """The records of a director's own message, in which nothing may be wrong."""
    found = read(data)
    assert not found.errors, f"{', '.join(found.errors)}: {data.hex()}"
    assert sync_id in (None, found.sync_id), f"sync id {found.sync_id}"
    assert version in (None, found.version), f"version {found.version}"
    again = message(found.records, found.sync_id, found.version)
    assert data == again, f"{data.hex()}\ninstead of\n{again.hex()}"
    return found.records
