# SPDX-License-Identifier: GPL-2.0
"""The counters of /proc/net/l4lb that say why packets were dropped."""

from . import fast


def counts(lab):
    return {name: int(value) for name, value in read(lab) if name not in fast.COUNTS}


def read(lab):
    return [line.split() for line in lab.director.ns.read("/proc/net/l4lb").splitlines()]
