# SPDX-License-Identifier: GPL-2.0
"""Namespaces with real hosts' programs in them, for as long as they are measured."""

import contextlib
import subprocess

import bed  # noqa: F401 (finds lab)
from lab.netns import Namespace


class Network:
    """A namespace for each of NAMES, IPv4 alone; _build() cables them, and what programs it
    starts are in procs. All is gone when it is left."""

    def __init__(self, prefix, names):
        self.ns = {n: Namespace(f"{prefix}-{n}") for n in names}
        self.procs = []

    def __enter__(self):
        try:
            for ns in self.ns.values():
                ns.ip("link set lo up")
                ns.sysctl("net/ipv6/conf/all/disable_ipv6", 1)
                ns.sysctl("net/ipv4/conf/all/rp_filter", 0)
                ns.sysctl("net/ipv4/conf/default/rp_filter", 0)
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for proc in self.procs:
            proc.terminate()
        for proc in self.procs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                proc.wait(10)
        for ns in self.ns.values():
            ns.destroy()
