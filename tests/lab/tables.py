# SPDX-License-Identifier: GPL-2.0
"""The connection table: its size, filling it and emptying it."""

import re
import time

from .counters import counts
from .netns import wait_until
from .settings import setting


def size(lab):
    """The table's size, from the header of /proc/net/ip_vs."""
    return int(re.search(r"size=(\d+)", lab.director.ns.read("/proc/net/ip_vs"))[1])


def flood(raw, number, address=None):
    """NUMBER clients of one address that have sent a first packet each."""
    address = address or raw.lab.client_address(raw.family)
    clients = [raw.client(address, 2000 + i) for i in range(number)]
    for i, client in enumerate(clients):
        client.send(payload=b"first")
        if i % 100 == 99:
            raw.fence()
            for tap in raw.taps.values():
                tap.drain()
    raw.fence()
    return clients


def forget(lab):
    """Remove all connections that earlier tests have left."""
    with setting(lab, "expire_nodest_conn", 1):
        lab.ipvs.service(fwmark=4321, sched="rr").delete()
    wait_until(lambda: not lab.conns(), 5, what="no connections")
    time.sleep(0.2)     # l4lb lists none at once, and takes them out of the table a moment later


def moved(lab, before):
    after = counts(lab)
    return {k: after[k] - before[k] for k in after if after[k] != before[k]}


def room_for(lab, more):
    """Set conn_max so that MORE connections fit. Those of earlier tests are removed,
    because they might be evicted or expire meanwhile."""
    forget(lab)
    return setting(lab, "conn_max", more)
