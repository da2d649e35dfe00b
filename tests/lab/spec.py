# SPDX-License-Identifier: GPL-2.0
"""A netlink family as tests/specs describes it, for packing and reading
messages, malformed ones included.

A list of attributes is [[name, value], ...] in wire order. Depending on the
attribute's type a value is a number, a string, another such list, or for binary
an IP address (padded to 16 bytes) or {member: number} of a struct. Malformed
attributes are possible: a number as the name is an attribute that the family
does not know, {"hex": "00ff"} as the value stands for these bytes, and a third
element replaces the type's upper bits (without it, NLA_F_NESTED for a nest and
0 for others). All of it can be written as JSON.
"""

import struct
from pathlib import Path

import yaml

from . import packet

SPECS = Path(__file__).resolve().parents[1] / "specs"
NESTED = 0x8000
SCALAR = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def attr(kind, data):
    """One attribute; DATA is bytes, or a list of packed attributes."""
    if isinstance(data, (list, tuple)):
        data, kind = b"".join(data), kind | NESTED
    length = 4 + len(data)
    return struct.pack("=HH", length, kind) + data + b"\0" * (-length % 4)


def attributes(data):
    """[(type, payload)] in wire order."""
    out = []
    while len(data) >= 4:
        length, kind = struct.unpack("=HH", data[:4])
        if length < 4 or length > len(data):
            raise ValueError(f"attribute length {length} of {len(data)}")
        out.append((kind & 0x3fff, data[4:length]))
        data = data[(length + 3) & ~3:]
    return out


class Attribute:
    """One attribute of a set in the spec."""

    def __init__(self, number, entry, structs, consts):
        self.number, self.name, self.type = number, entry["name"], entry["type"]
        self.nest = entry.get("nested-attributes")
        self.enum = entry.get("enum")
        self.members = structs.get(entry.get("struct"))
        # A limit such as "name-len - 1" is the only arithmetic the format has.
        limit, _, less = str(entry.get("checks", {}).get("max-len", "")).partition(" - ")
        self.max_len = int(consts.get(limit, limit)) - int(less or 0) if limit else None
        order = ">" if entry.get("byte-order") == "big-endian" else "="
        self.format = order + SCALAR[self.type] if self.type in SCALAR else None
        self.size = struct.calcsize(self.format) if self.format else \
            4 * len(self.members) if self.members else None

    def pack(self, value):
        if self.format:
            return struct.pack(self.format, value & (1 << 8 * self.size) - 1)
        if self.type == "string":
            return value.encode() + b"\0"
        if self.members:
            return b"".join(struct.pack("=I", value[m]) for m in self.members)
        return packet.packed(value).ljust(16, b"\0")

    def read(self, data):
        """The readable value of DATA; {"hex": digits} if it does not fit the type."""
        if self.format and len(data) == self.size:
            return struct.unpack(self.format, data)[0]
        if self.type == "string":
            return data.rstrip(b"\0").decode(errors="replace")
        if self.members and len(data) == self.size:
            return dict(zip(self.members, struct.unpack(f"={len(self.members)}I", data)))
        return {"hex": data.hex()}


class Spec:
    """The spec of family NAME in tests/specs."""

    def __init__(self, name):
        with open(SPECS / f"{name}.yaml", encoding="utf-8") as f:
            self.source = yaml.load(f, LOADER)
        defined = {d["name"]: d for d in self.source.get("definitions", ())}
        structs = {n: [m["name"] for m in d["members"]]
                   for n, d in defined.items() if d["type"] == "struct"}
        consts = {n: d["value"] for n, d in defined.items() if d["type"] == "const"}
        self.enums = {n: d["entries"] for n, d in defined.items()
                      if d["type"] in ("enum", "flags")}
        self.family = self.source["name"]
        self.sets = {s["name"]: {a["name"]: Attribute(a.get("value", n), a, structs, consts)
                                 for n, a in enumerate(s["attributes"], 1)}
                     for s in self.source["attribute-sets"]}
        self.commands = {o["name"]: o for o in self.source["operations"]["list"]}

    def modes(self, command):
        """("do", "dump") or one of them."""
        return tuple(m for m in ("do", "dump") if m in self.commands[command])

    def request(self, command):
        """The number of a command's request."""
        return self.commands[command][self.modes(command)[0]]["request"]["value"]

    def reply(self, command):
        """The number of a command's reply, or None if it only returns an errno."""
        mode = self.commands[command][self.modes(command)[0]]
        return mode["reply"]["value"] if "reply" in mode else None

    def numbers(self, name):
        """The numbers of all attributes of set NAME, in its order."""
        return tuple(a.number for a in self.sets[name].values())

    def pack(self, name, attrs):
        """ATTRS as bytes; NAME is their set."""
        known = self.sets[name]
        out = []
        for kind, value, *bits in attrs:
            a = known.get(kind)
            number = a.number if a else kind
            nest = isinstance(value, list)
            if nest:
                data = self.pack(a.nest, value)
            elif isinstance(value, dict) and "hex" in value:
                data = bytes.fromhex(value["hex"])
            else:
                data = a.pack(value)
            out.append(attr(number | (bits[0] if bits else NESTED if nest else 0), data))
        return b"".join(out)

    def read(self, name, data):
        """The opposite of pack(): [[name, value], ...]."""
        by_number = {a.number: a for a in self.sets[name].values()}
        out = []
        for kind, payload in attributes(data):
            a = by_number.get(kind)
            if not a:
                out.append([kind, {"hex": payload.hex()}])
            elif a.type == "nest":
                out.append([a.name, self.read(a.nest, payload)])
            else:
                out.append([a.name, a.read(payload)])
        return out
