# SPDX-License-Identifier: GPL-2.0
"""Each allocation of each command fails once; a command that fails changes nothing. Inside
a guest, from tests/:

    $PYTHON -B -m torture.points SEED SECONDS

prints how many allocations failed.
"""

import errno
import random
import sys
import time

from lab import faults, genl
from lab.faults import FaultyIpvs, FaultyL4lb
from lab.packet import UDP

from .site import SCHEDULERS, own_namespace


def requests(ipvs, l4lb, dice):
    """(client, call) of each command that changes or lists something."""
    service = ipvs.service("198.51.100.160", 80, add=False, sched=dice.choice(SCHEDULERS))
    six = ipvs.service("2001:db8:1::160", 443, UDP, add=False, sched=dice.choice(SCHEDULERS))
    entries = [genl.batch_entry("203.0.113.9", port, ["192.0.2.20", "192.0.2.21"],
                                sched=dice.choice(SCHEDULERS)) for port in (1, 2, 3)]
    yield from ((ipvs, call) for call in (
        service.add, six.add, lambda: service.server("192.0.2.20", 80),
        lambda: service.server("192.0.2.21", 80, weight=3),
        lambda: six.server("2001:db8:2::20", 80),
        lambda: service.edit_server("192.0.2.20", 80, weight=7),
        *[lambda s=sched: service.edit(sched=s) for sched in SCHEDULERS],
        lambda: ipvs.timeouts(900, 120, 300), ipvs.services, service.servers, service.zero))
    yield from ((l4lb, call) for call in (
        lambda: l4lb.set_services(entries, genl.REPLACE), l4lb.get_services, l4lb.schedulers,
        l4lb.conns, lambda: l4lb.set_services(entries[:1], genl.MERGE)))
    yield from ((ipvs, call) for call in (
        service.add, lambda: service.server("192.0.2.20", 80),
        lambda: service.delete_server("192.0.2.20", 80), service.delete, ipvs.flush))


def state(ipvs):
    """The whole configuration, without counters."""
    found = []
    for got in ipvs.services():
        name = {k: got[k] for k in ("addr", "port", "proto", "fwmark", "af") if k in got}
        for each in (got, *(servers := ipvs.service(**name, add=False).servers())):
            each.pop("stats")
        found.append((got, servers))
    return found


def sweep(client, call, observer):
    """CALL with its 1st, 2nd, ... allocation failing; how many did."""
    failures, before = 0, state(observer)
    for client.nth in range(1, 500):
        try:
            call()
            before = state(observer)
        except OSError as e:
            if state(observer) != before:
                raise RuntimeError(f"allocation {client.nth} failed, the command said {e}, and "
                                   "yet something has changed") from e
            # Sweeps repeat a call that may have succeeded: exists, or does not any more.
            if e.errno not in (errno.ENOMEM, errno.EFAULT, errno.ENOBUFS, errno.EEXIST,
                               errno.ENOENT, errno.ESRCH, errno.EINVAL):
                raise
        if not client.hit:
            break
        failures += 1
    client.nth = 0
    return failures


def main(seed, seconds):
    """The number of failures within SECONDS."""
    failures, dice, end = 0, random.Random(seed), time.monotonic() + seconds
    with own_namespace("faulty") as ns, faults.injection(), FaultyIpvs(ns) as ipvs, \
            FaultyL4lb(ns) as l4lb, genl.Ipvs(ns) as observer:
        while time.monotonic() < end or not failures:
            for client, call in requests(ipvs, l4lb, dice):
                failures += sweep(client, call, observer)
            ipvs.flush()
    return failures


if __name__ == "__main__":
    print(main(int(sys.argv[1]), int(sys.argv[2])))
