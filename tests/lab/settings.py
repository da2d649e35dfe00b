# SPDX-License-Identifier: GPL-2.0
"""Temporary settings of net.ipv4.vs."""

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
