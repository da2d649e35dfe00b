# SPDX-License-Identifier: GPL-2.0
"""Network namespaces in which measurements run real programs."""

import contextlib
import subprocess

import bed  # noqa: F401 (finds lab)
from lab.netns import Namespace


class Network:
    """A namespace for each of NAMES, without IPv6. A subclass's _build() connects them and
    adds the programs that it starts to procs. All end with the block."""

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
