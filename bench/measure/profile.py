# SPDX-License-Identifier: GPL-2.0
"""Sends one kind of packet between two marks for the QEMU plugin, inside a guest.

    python3 profile.py SPEC FILE

SPEC is JSON: what, a name of instructions.py ("l4lb fast 1: udp4 nat reply"), and host.objects().
Writes {packets, symbols: [[address, name]]} to FILE.
"""

import ctypes
import json
import mmap
import sys
from pathlib import Path

import instructions
import peer
from bed import Bed, MeasureError

MARK = b"\xb8\x4c\x34\x4c\x42"     # see profile.c
BACK = b"\xc3"


def marker(mark=MARK):
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(mark + BACK)
    function = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    function.page = page
    return function


class Profiled(instructions.Counts):
    """Sends only the packets named WHAT, between two marks."""

    def __init__(self, what):
        super().__init__()
        self.what, self.mark, self.packets = what, marker(), 0

    def add(self, name, send, batches=instructions.BATCHES):
        if name != self.what:
            return
        send()
        rounds = [send for _ in range(batches)]
        self.mark()
        self.packets = sum(one().packets for one in rounds)
        self.mark()


def symbols():
    for line in Path("/proc/kallsyms").read_text("ascii").splitlines():
        address, kind, name = line.split()[:3]
        if kind in "tTwW":
            yield address, name


def is_of(what, mode):
    return what.startswith((f"{mode}: ", f"{mode} sync: "))


def one_of(director, what):
    """The director with the mode that WHAT is about, if that says so; None: it lacks that mode."""
    for one in director.modes():
        if is_of(what, one.fast_paths[0][0]):
            return one
    other = any(is_of(what, name) for name, _ in instructions.L4LB.fast_paths)
    return None if other else director


def measure(spec):
    what = spec["what"]
    counts, found = Profiled(what), []
    for kinds in ("ESTABLISHED", "NEW_FLOWS"):
        setattr(instructions, kinds, [kind for kind in getattr(instructions, kinds)
                                      if f": {kind[0]}" in what])
    if ": " not in what:
        bed = Bed()
        with bed.stand():
            instructions.reference(bed, counts)
            found = list(symbols())
    if what.startswith(f"{peer.NAME}: "):
        bed = Bed(servers=peer.SERVERS)
        with bed.stand():
            instructions.of_peer(bed, counts, spec)
            found = list(symbols())
    for director, way in instructions.RUNS:
        one = one_of(director, what)
        if not one or not what.startswith(director.name) or \
           what.startswith("l4lb xdp") != (way is instructions.by_xdp):
            continue
        with director.loaded():
            bed = Bed(servers=4)
            with bed.stand():
                director.standard(bed)
                way(bed, one, counts, spec)
                found = list(symbols())
    if not counts.packets:
        raise MeasureError(f"there is no '{what}'")
    return {"packets": counts.packets, "symbols": found}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(json.loads(
        Path(sys.argv[1]).read_text("utf-8")))), encoding="utf-8")
