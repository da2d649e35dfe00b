# SPDX-License-Identifier: GPL-2.0
"""Instructions for each packet, inside a guest whose clock counts them.

    python3 instructions.py FILE

Leaves {name: instructions for a packet} in FILE (JSON). Of a figure the greater
part is the kernel around the director: "redirect" is that part.
"""

import json
import sys
from pathlib import Path

from bed import SYN, Bed, MeasureError, Traffic, least
from systems import DROP, IP_VS, L4LB, REDIRECT, ruleset

FLOWS, WARM, COUNT, NEW = 100, 4000, 20000, 20000
TCP4, UDP4, UDP6 = ("tcp", 4), ("udp", 4), ("udp", 6)
# What is measured of a director: name, protocol and family, method.
ESTABLISHED = (("udp4 nat", UDP4, "nat"), ("udp4 dr", UDP4, "dr"), ("udp4 tun", UDP4, "tun"),
               ("tcp4 nat", TCP4, "nat"), ("tcp4 dr", TCP4, "dr"),
               ("udp6 nat", UDP6, "nat"), ("udp6 dr", UDP6, "dr"), ("udp6 tun", UDP6, "tun"))
REPLIES = ("udp4 nat", "tcp4 nat", "udp6 nat")
NEW_FLOWS = (("udp4 dr", UDP4, "dr"), ("udp4 nat", UDP4, "nat"), ("tcp4 nat", TCP4, "nat"),
             ("udp6 dr", UDP6, "dr"))


class Counts:
    """The figures so far, each said as it comes."""

    def __init__(self):
        self.figures = {}

    def add(self, name, result):
        self.figures[name] = round(result.cycles / result.packets, 1)
        print(f"{name}: {self.figures[name]}", flush=True)


def send(bed, count, sink="srv0", **words):
    result = bed.gen.send(src="198.18.0.0", dst="203.0.113.5", dport=80, flows=FLOWS,
                          random=1, count=count, **words)
    packets = result.sinks[sink][0] if sink else 0
    if packets != (count if sink else 0) or result.unbuilt:
        raise MeasureError(f"{packets} of {count} packets arrived")
    return result


def reference(bed, counts):
    for count in (WARM, COUNT):
        alone = send(bed, count, sink=None)
    counts.add("generator", alone)
    for name, rules in (("drop", DROP), ("redirect", REDIRECT)):
        with ruleset(bed, rules):
            for count in (WARM, COUNT):
                result = send(bed, count, sink=None if rules is DROP else "srv0", dev="gen0")
        counts.add(name, result)
    for count in (WARM, COUNT):
        forward = send(bed, count, dev="gen0")
    counts.add("forward", forward)


def established(bed, counts, name, value, director):
    director.set_fast_path(bed, value)
    for what, (proto, family), method in ESTABLISHED:
        size = least(family, proto, 64)
        traffic = Traffic(bed, family, proto, method, flows=FLOWS)
        traffic.preload(size)
        traffic.random(size, WARM)
        counts.add(f"{name}: {what}", traffic.random(size, COUNT))
        if what in REPLIES:
            traffic.random(size, WARM, reply=True)
            counts.add(f"{name}: {what} reply", traffic.random(size, COUNT, reply=True))


def fresh(bed, counts, name, value, director):
    """A connection for each packet, into a table that has grown before."""
    director.set_fast_path(bed, value)
    for what, (proto, family), method in NEW_FLOWS:
        size = least(family, proto, 64)
        for flows in (WARM, NEW):
            result = Traffic(bed, family, proto, method, flows=flows).each(size, flags=SYN)
        counts.add(f"{name}: {what} new", result)


def measure():
    counts = Counts()
    bed = Bed()
    with bed.stand():
        reference(bed, counts)
    for director in (IP_VS, L4LB):
        with director.loaded():
            bed = Bed()
            with bed.stand():
                director.standard(bed)
                for name, value in director.fast_paths(bed):
                    established(bed, counts, name, value, director)
                for name, value in director.fast_paths(bed):
                    fresh(bed, counts, name, value, director)
    return counts.figures


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
