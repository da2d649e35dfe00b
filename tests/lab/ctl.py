# SPDX-License-Identifier: GPL-2.0
"""Runs ipvsctl in a namespace of its own, and reads the kernel's resulting state."""

import itertools
import json
import os
import subprocess
from pathlib import Path

from . import genl
from .netns import Namespace

IPVSCTL = os.environ.get("L4LB_IPVSCTL", "build/ipvsctl")
# Built by "make -C tools/ipvsctl SAN=1"; the name counts, as a checkout may lie below any folder.
SANITIZED = Path(IPVSCTL).name == "ipvsctl-san"
VIP = "192.0.2.10"
WEB = ["tcp", f"{VIP}:80"]


def declared(services, changed=0):
    """A file for apply: SERVICES of four servers, whose weights are others in the first CHANGED."""
    lines = ["version: 1", "services:"]
    for n in range(services):
        lines.append(f"- service: tcp 198.18.{n >> 8}.{n & 255}:80\n  scheduler: wrr\n  servers:")
        lines += [f"  - 10.0.0.{m + 2} weight {m + 1 + (n < changed)}" for m in range(4)]
    return "\n".join(lines) + "\n"


class Director:
    _number = itertools.count()

    def __init__(self):
        self.ns = Namespace(f"ctl{next(self._number)}")
        self.ns.ip("link set lo up", "link add d0 type dummy", "link set d0 up",
                   "addr add 10.0.0.1/24 dev d0", "addr add 192.0.2.10/32 dev lo")

    def ctl(self, *words, stdin=None, code=0, env=None, out=False):
        """Runs ipvsctl with WORDS, split at blanks; returns its output, or what it says if
        CODE is that of a failure. OUT: its output, though CODE is not 0."""
        argv = [IPVSCTL, *" ".join(words).split()]
        with self.ns.enter():
            done = subprocess.run(argv, capture_output=True, text=True, check=False,
                                  timeout=60, input=stdin,
                                  env=os.environ | {"LANG": "C.UTF-8"} | (env or {}))
        assert done.returncode == code, f"{argv}: {done.returncode}\n{done.stderr}"
        if out:
            return done.stdout
        if code and "-j" not in argv:
            assert done.stderr.startswith("ipvsctl: ")
            for line in done.stderr.splitlines()[1:]:
                assert line.startswith("  ")
        return done.stderr if code else done.stdout

    def json(self, *words, **kwargs):
        return json.loads(self.ctl("-j", *words, **kwargs))

    def build(self, lines):
        for line in lines.splitlines():
            self.ctl(line)

    def state(self):
        """The whole configuration, as another client (lab.genl) reads it."""
        out = []
        with genl.Ipvs(self.ns) as ipvs:
            for got in ipvs.services():
                name = {k: got[k] for k in ("addr", "port", "proto", "fwmark", "af") if k in got}
                servers = ipvs.service(**name, add=False).servers()
                del got["stats"]
                for server in servers:
                    del server["stats"]
                out.append((str(name), got, sorted(servers, key=str)))
        return sorted(out, key=str)


def knock(director, count=1, port=5353):
    """COUNT UDP connections from the director itself."""
    director.ns.datagrams((VIP, port), count)
