# SPDX-License-Identifier: GPL-2.0
"""HTTP requests over a TCP connection each, from wrk to nginx in the lab's network. They
go straight to the server and through the director in turn, so that the cost of client and
server cancels out. Both cases use one server: two processors take longer for four
programs than for one.
"""

import contextlib
import ipaddress
import os
import re

from bed import MeasureError
from lab.nginx import Nginx
from lab.topology import FRONT, Topology
from systems import FLAG

PAGE = 512          # bytes
TOGETHER = 8        # connections that are open at a time
REFERENCE = "reference"


@contextlib.contextmanager
def all_processors():
    """Lets programs use all processors; the generator is bound to the first."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count()))
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def rate(topo, address, seconds):
    """Requests per second."""
    said = topo.client.ns.run(["wrk", "-t1", f"-c{TOGETHER}", f"-d{seconds}s", "--timeout", "8s",
                               "-H", "Connection: close", f"http://{address}/"],
                              timeout=seconds + 60).stdout
    if wrong := re.search(r"Socket errors:.*|Non-2xx.*", said):
        raise MeasureError(wrong[0].strip())
    return float(re.search(r"Requests/sec:\s*([\d.]+)", said)[1])


@contextlib.contextmanager
def cluster(director, method):
    """The lab's network, and a virtual service of that method with the first of its servers."""
    with Topology(method) as topo:
        nginx = Nginx(topo, {"index.html": PAGE}, logs=False)
        try:
            topo.client.ns.sysctl("net/ipv4/ip_local_port_range", "1024 65535")
            if method != "dr":
                # The way straight to a server: the router that its answers take.
                net = ipaddress.ip_network(f"{topo.rip(1)}/24", strict=False)
                topo.client.ns.ip(f"route add {net} via {FRONT[4]}{3 if method == 'tun' else 1}")
            topo.ns = topo.director.ns
            director.configure(topo, [f"-A -t {topo.vip()}:80 -s rr",
                                      f"-a -t {topo.vip()}:80 -r {topo.rip(1)}:80 "
                                      f"{FLAG[method]} -w 1"])
            yield topo
        finally:
            nginx.stop()


def compare(session, topo, method):
    """Measures straight ones before and after: other load of the machine affects both alike."""
    seconds = session.spec["http"]

    def measure():
        before = rate(topo, topo.rip(1), seconds)
        through = rate(topo, topo.vip(), seconds)
        after = rate(topo, topo.rip(1), seconds)
        session.sheet.add("http", method, REFERENCE, (before + after) / 2, "requests/s")
        session.sheet.add("http", method, session.name, through, "requests/s")
        return 2 * through / (before + after)
    session.figure(f"{method}, of straight", measure, "")


def measure(spec, sheet, session, director):
    """Each setting of a fast path begins with a newly loaded module."""
    for method in ("dr",) if spec["quick"] else FLAG:
        for name, value in director.fast_paths:
            with sheet.guard("http", name), director.loaded(), all_processors(), \
                    cluster(director, method) as topo:
                director.set_fast_path(topo, value)
                compare(session(spec, sheet, None, director, name, group="http"), topo, method)
