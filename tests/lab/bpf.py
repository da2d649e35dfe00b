# SPDX-License-Identifier: GPL-2.0
"""BPF programs of a few instructions, loaded and pinned without a compiler, and those of files.

A Program is a context: it is unloaded at its end, but for those that hold it."""

import contextlib
import ctypes
import os
import platform
import struct
import subprocess
import tempfile
from pathlib import Path

from .netns import run

SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
MAP_CREATE, PROG_LOAD, OBJ_PIN, OBJ_GET, GET_BY_ID = 0, 5, 6, 7, 13
SOCKET_FILTER, XDP = 1, 6
SKB_LOAD_BYTES, RANDOM = 26, 7
ATTR = 120
SOURCES = Path(__file__).resolve().parents[2] / "schedulers/bpf"
_libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, *parts):
    """The system call, with PARTS as its attributes; returns a descriptor or 0."""
    attributes = ctypes.create_string_buffer(b"".join(parts), ATTR)
    got = _libc.syscall(SYSCALL, command, attributes, ATTR)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got


def insn(code, dst=0, src=0, off=0, imm=0):
    return struct.pack("<BBhi", code, dst | src << 4, off, imm)


def mov(dst, imm):
    return insn(0xb7, dst, imm=imm)


def call(function):
    return insn(0x85, imm=function)


EXIT = insn(0x95)


def answer(number):
    """A program that always returns NUMBER."""
    return mov(0, number) + EXIT


def chance(beyond):
    """One that returns a random number below BEYOND, a power of two."""
    return call(RANDOM) + insn(0x57, 0, imm=beyond - 1) + EXIT


def word(at):
    """One that returns the 32 bits at AT of what it reads, or -1."""
    return (insn(0xbf, 3, 10) + insn(0x07, 3, imm=-4) + mov(2, at) + mov(4, 4) +
            call(SKB_LOAD_BYTES) + insn(0x55, 0, off=2) + insn(0x61, 0, 10, -4) + EXIT +
            answer(-1))


class Program:
    """INSTRUCTIONS, loaded as a program of TYPE, by its descriptor .fd."""

    def __init__(self, instructions, kind=SOCKET_FILTER):
        code = ctypes.create_string_buffer(instructions, len(instructions))
        licence = ctypes.create_string_buffer(b"GPL")
        self.fd = bpf(PROG_LOAD, struct.pack("=IIQQ", kind, len(instructions) // 8,
                                             ctypes.addressof(code), ctypes.addressof(licence)))

    @property
    def number(self):
        return int(next(line.split()[1] for line in Path(f"/proc/self/fdinfo/{self.fd}").read_text(
            encoding="ascii").splitlines() if line.startswith("prog_id:")))

    def pin(self, path):
        """At PATH, in place of what is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return pin(self.fd, path)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def pin(fd, path):
    name = ctypes.create_string_buffer(str(path).encode())
    bpf(OBJ_PIN, struct.pack("=QII", ctypes.addressof(name), fd, 0))
    return str(path)


def get(path):
    """The descriptor of what is pinned at PATH."""
    name = ctypes.create_string_buffer(str(path).encode())
    return bpf(OBJ_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))


def alive(number):
    """Does the kernel still have the program of this number?"""
    try:
        os.close(bpf(GET_BY_ID, struct.pack("=I", number)))
    except FileNotFoundError:
        return False
    return True


def array():
    """The descriptor of a map."""
    return bpf(MAP_CREATE, struct.pack("=IIII", 2, 4, 4, 1))


def hash_map():
    return bpf(MAP_CREATE, struct.pack("=IIII", 1, 4, 4, 1))


@contextlib.contextmanager
def pins(path):
    """PATH with a file system for pins."""
    run(["mount", "-t", "bpf", "bpf", str(path)])
    try:
        yield Path(path)
    finally:
        run(["umount", str(path)])


def compiled(name, folder, sources=SOURCES):
    """NAME.c of SOURCES as an object file in FOLDER, as the README of schedulers/bpf says; with
    types, which describe maps."""
    done = subprocess.run(
        ["clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{platform.machine()}-linux-gnu", "-c",
         Path(sources) / f"{name}.c", "-o", Path(folder) / f"{name}.o"],
        capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Path(folder) / f"{name}.o"


def load(file, path):
    """The program of an object FILE, pinned at PATH."""
    run(["bpftool", "prog", "load", str(file), str(path), "type", "socket"])
    return str(path)


@contextlib.contextmanager
def program_of(file):
    """(its descriptor, the path of its pin), as an option's value."""
    with tempfile.TemporaryDirectory() as folder, pins(folder):
        fd = get(path := load(file, f"{folder}/{Path(file).stem}"))
        yield fd, path
        os.close(fd)
