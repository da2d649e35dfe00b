# SPDX-License-Identifier: GPL-2.0
"""ipvsctl with a kernel that a test plays: each generic netlink message goes to a function of
the test, by tests/unit/fake_netlink.c, and what that returns is the answer. Unlike fake.py's
program this is the one that is installed, with all of its own netlink code."""

import contextlib
import errno
import functools
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests"))

import fake  # noqa: E402
from lab import genl  # noqa: E402
from lab.genl import attr, text, u16, u32  # noqa: E402
from test_ipvsctl import need_shield  # noqa: E402

IPVSCTL = TOP / "build/ipvsctl"
HANGS = 99                              # exit status: it waits without an end
CONTROL, IPVS, L4LB = genl.CONTROLLER, 101, 102     # families
FAMILIES = {"IPVS": IPVS, "L4LB": L4LB}
# The commands of family L4LB, {name: number}, as the header has them.
COMMANDS = {name: number for number, name in enumerate(
    re.findall(r"^\tL4LB_CMD_(\w+),", (TOP / "kernel/l4lb.h").read_text("utf-8"), re.M))}


@functools.cache
def library():
    out = TOP / "build/host-fake"
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"netlink-{os.getpid()}.so"
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-maybe-uninitialized",
                    "-shared", "-fPIC", "-o", target,
                    TOP / "tests/unit/fake_netlink.c", "-ldl"], check=True)
    final = out / "netlink.so"
    target.rename(final)
    return final


class Request:
    """A message of ipvsctl's."""

    def __init__(self, data):
        self.data = data
        _, self.family, self.flags, self.seq, _ = struct.unpack("=IHHII", data[:16])
        self.command, self.version = data[16:18]
        self.payload = data[20:]

    def message(self, kind, body, flags=0):
        return struct.pack("=IHHII", 16 + len(body), kind, flags, self.seq, 0) + body

    def reply(self, *payloads, command=1):
        """One message for each payload, and the end."""
        dump = self.flags & genl.F_DUMP == genl.F_DUMP
        return [self.message(self.family, struct.pack("=BBH", command, 1, 0) + b"".join(payload),
                             2 if dump else 0) for payload in payloads] + [
            self.message(3, u32(0), 2) if dump else self.error(0)[0]]

    def error(self, number, sentence="", offset=None):
        """The request is refused, or done if NUMBER is 0."""
        more = (attr(1, text(sentence)) if sentence else b"") + (attr(2, u32(offset)) if offset else b"")
        flags = genl.F_CAPPED | (genl.F_ACK_TLVS if more else 0)
        return [self.message(2, struct.pack("=i", -number) + self.data[:16] + more, flags)]


def group(number, name):
    return attr(number, attr(1, text(name)) + attr(2, u32(7 + number)))


def kernel(request, families=FAMILIES, groups=("events", "log")):
    """A module with nothing in it: every listing is empty, and everything is done."""
    if request.family != CONTROL:
        return request.reply()
    name = dict(genl.attributes(request.payload))[2].rstrip(b"\0").decode()
    if name not in families:
        return request.error(errno.ENOENT)
    lists = attr(7, b"".join(group(1 + n, one) for n, one in enumerate(groups))) if name == "L4LB" else b""
    return request.reply([attr(1, u16(families[name])), attr(2, text(name)), lists])


class Done:
    """How a run ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.requests, self.waits, self.listens = [], [], False


def serve(listener, answer, done):
    with contextlib.suppress(OSError), contextlib.closing(listener.accept()[0]) as line:
        while data := line.recv(1 << 18):
            if data.startswith(b"wait "):
                done.waits.append(int(data[5:]))
            elif data == b"listens":
                done.listens = True
            else:
                request = Request(data)
                done.requests.append(request)
                for message in answer(request) or []:
                    line.send(message)
                line.send(b".")


def command(words, **env):
    """ipvsctl WORDS where it reaches neither this machine's devices nor its notes in /run."""
    inside = 'ip link set lo up && mount -t tmpfs none /run && exec "$@"'
    return [*need_shield(), "unshare", "-m", "sh", "-c", inside, "sh", "env",
            *(f"{name}={value}" for name, value in env.items()), IPVSCTL, *words]


def run(answer, *words, stdin=""):
    """ipvsctl WORDS; ANSWER(request) returns the messages of the kernel, or None for silence."""
    done = Done(None, None, None)
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener, answer, done))
        thread.start()
        try:
            ran = subprocess.run(command(
                words, LANG="C", LD_PRELOAD=library(), FAKE_ANSWERS=f"{folder}/socket",
                FAKE_PROC=fake.proc(Path(folder, "proc")), STATE_DIRECTORY=f"{folder}/state"),
                capture_output=True, text=True, check=False, timeout=60, input=stdin, cwd=folder)
        finally:
            # If it has not called, the thread waits for that.
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as call:
                with contextlib.suppress(OSError):
                    call.connect(f"{folder}/socket")
            thread.join(10)
    done.code, done.out, done.err = ran.returncode, ran.stdout, ran.stderr
    return done
