# SPDX-License-Identifier: GPL-2.0
"""Settings of net.ipv4.vs for as long as a test needs them."""

import contextlib

from . import fast


@contextlib.contextmanager
def setting(lab, name, value):
    path = f"net/ipv4/vs/{name}"
    before = lab.director.ns.sysctl(path)
    lab.director.ns.sysctl(path, value)
    fast.settle()
    try:
        yield
    finally:
        lab.director.ns.sysctl(path, before)
        fast.settle()
