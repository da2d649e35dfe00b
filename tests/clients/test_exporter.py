# SPDX-License-Identifier: GPL-2.0
"""Prometheus' node exporter (Debian's package) reads from our /proc files the
same as netlink says."""

import contextlib
import re
import socket
import subprocess

import pytest
from lab.genl import TUNNEL
from lab.netns import wait_until
from lab.packet import TCP, UDP
from lab.raw import Raw

PORT = 9100
METRIC = re.compile(r"^node_ipvs_(\w+?)(?:\{(.*)\})? (\S+)$", re.M)
TOTALS = {"connections_total": "conns", "incoming_packets_total": "inpkts",
          "outgoing_packets_total": "outpkts", "incoming_bytes_total": "inbytes",
          "outgoing_bytes_total": "outbytes"}


@contextlib.contextmanager
def exporter(ns):
    """scrape(): {metric: {labels: value}} of an exporter in namespace NS."""
    proc = ns.popen(["prometheus-node-exporter", "--collector.disable-defaults",
                     "--collector.ipvs", "--web.disable-exporter-metrics",
                     f"--web.listen-address=127.0.0.1:{PORT}"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE)

    def connected():
        assert proc.poll() is None, proc.stderr.read()
        s = ns.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.settimeout(15)
        try:
            s.connect(("127.0.0.1", PORT))
            return s
        except ConnectionRefusedError:
            s.close()
            return None

    def scrape():
        with wait_until(connected, 20, "the exporter listens", step=0.1) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            text = s.makefile("rb").read().decode()
        assert 'node_scrape_collector_success{collector="ipvs"} 1' in text, text
        out = {}
        for name, labels, value in METRIC.findall(text):
            key = frozenset(re.findall(r'(\w+)="(.*?)"', labels))
            out.setdefault(name, {})[key] = float(value)
        return out

    try:
        yield scrape
    finally:
        proc.kill()
        proc.communicate()


def backends(services):
    """{labels: server} for SERVICES, according to netlink."""
    found = {}
    for service in services:
        named = service.get()
        labels = {"local_address": "", "local_port": "0", "proto": "FWM",
                  "local_mark": f"{named['fwmark']:08X}"} if "fwmark" in named else {
            "local_address": named["addr"], "local_port": str(named["port"]),
            "local_mark": "", "proto": {TCP: "TCP", UDP: "UDP"}[named["proto"]]}
        for d in service.servers():
            found[frozenset({**labels, "remote_address": d["addr"],
                             "remote_port": str(d["port"])}.items())] = d
    return found


@pytest.mark.smoke
@pytest.mark.tool
def test_exports_what_netlink_says(nat):
    """Services of both families and marks, servers of both, with connections."""
    director, ipvs = nat.director.ns, nat.ipvs
    director.ip("link set lo up")
    raws = [Raw(nat, UDP, numbers=(1, 2)), Raw(nat, TCP, 6, numbers=(1, 2))]
    mixed = ipvs.service(nat.vip(6), 7001)
    mixed.server(nat.rip(1), 7001, method=TUNNEL, weight=3)
    mark, mark6 = ipvs.service(fwmark=31), ipvs.service(fwmark=31, af=socket.AF_INET6)
    mark.server(nat.rip(2), 0, weight=65536)
    mark6.server(nat.rip(2, 6), 0, weight=0)
    # Totals outlive services, so they still include earlier tests.
    ipvs.zero()
    for raw in raws:
        for _ in range(3):
            raw.client().open()

    def summed():
        each = [raw.service.stats for raw in raws]
        return {key: sum(s[key] for s in each) for key in TOTALS.values()}

    with exporter(director) as scrape:
        def totals():
            found = scrape()
            return {key: found[metric][frozenset()] for metric, key in TOTALS.items()}

        # ip_vs refreshes its numbers every two seconds, totals and services separately.
        wait_until(lambda: summed()["conns"] == 6 and totals() == summed(), 12, step=0.3)
        got = scrape()
    want = backends([raw.service for raw in raws] + [mixed, mark, mark6])
    assert len(want) == 7
    for metric, key in (("backend_connections_active", "active"),
                        ("backend_connections_inactive", "inactive"),
                        ("backend_weight", "weight")):
        assert got[metric] == {labels: d[key] for labels, d in want.items()}, metric
    assert sum(d["active"] + d["inactive"] for d in want.values()) == 6
