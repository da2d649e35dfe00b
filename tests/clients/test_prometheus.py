# SPDX-License-Identifier: GPL-2.0
"""ipvsctl's metrics say what netlink and /proc say; tests/host/test_metrics.py has the rest."""

import json
import signal
import subprocess
import time

import pytest
from lab import genl
from lab.backend import both_modules
from lab.ctl import IPVSCTL, VIP, knock
from lab.netns import wait_until
from prometheus_client.parser import text_string_to_metric_families

NO_MODULE = True        # `module` loads it


def metrics(director, *words):
    text = director.ctl("stats -F prometheus", *words)
    return {(s.name, frozenset(s.labels.items())): s.value
            for family in text_string_to_metric_families(text) for s in family.samples}


def labels(**values):
    return frozenset(values.items())


@pytest.mark.stock
@pytest.mark.smoke
@both_modules
def test_metrics_are_those_of_the_kernel(udp, module):
    udp.ctl("svc add sctp 192.0.2.10:5060 scheduler rr server 10.0.0.11:5060 max-conns 9")
    udp.ctl("svc add fwmark 7 scheduler rr server 10.0.0.12")
    knock(udp, 6)
    service = labels(service=f"udp:{VIP}:5353")
    name = ("ipvs_service_connections_total", service)
    # ip_vs adds its numbers up every two seconds.
    found = wait_until(lambda: (got := metrics(udp)) and got[name] == 6 and
                       got["ipvs_connections_total", labels()] == 6 and got, 12, step=0.3)
    with genl.Ipvs(udp.ns) as ipvs:
        stats = ipvs.service(VIP, 5353, proto=17, add=False).stats
    assert stats["conns"] == 6
    for direction in ("in", "out"):
        for what, key in (("packets", "pkts"), ("bytes", "bytes")):
            each = [found[f"ipvs_server_{what}_total", service |
                          labels(server=f"10.0.0.{n}:5353", direction=direction)] for n in (11, 12)]
            assert sum(each) == stats[direction + key] == \
                found[f"ipvs_service_{what}_total", service | labels(direction=direction)]
    # UDP flows count as inactive.
    assert found["ipvs_service_inactive_connections", service] == 6
    sctp = labels(service=f"sctp:{VIP}:5060", server="10.0.0.11:5060")
    assert found["ipvs_server_max_connections", sctp] == 9
    assert found["ipvs_server_weight", labels(service="fwm:7", server="10.0.0.12:0")] == 1
    assert found["ipvs_services", labels()] == 3
    reasons = {dict(key)["reason"]: value for (metric, key), value in found.items()
               if metric.startswith("ipvs_dropped")}
    if not module.is_l4lb:
        assert reasons == {}
        return
    text = udp.ns.run(["cat", "/proc/net/l4lb"]).stdout
    lines = dict(line.split() for line in text.splitlines())
    assert reasons == {k: int(v) for k, v in lines.items() if k in reasons} and "guard" in reasons
    assert found["ipvs_connections_max", labels()] > 0
    # A drop that is made on purpose.
    udp.ctl(f"server change udp:{VIP}:5353 10.0.0.11 weight 0")
    udp.ctl(f"server change udp:{VIP}:5353 10.0.0.12 weight 0")
    try:
        knock(udp, 2)
    except OSError:
        pass
    after = metrics(udp)
    key = "ipvs_dropped_packets_total", labels(reason="no_dest")
    assert after[key] > found[key]
    assert after["ipvs_service_available_servers", service] == 0
    assert set(metrics(udp, "by service")) < set(after)


def test_a_listing_repeats_until_it_is_interrupted(udp):
    with udp.ns.enter():
        proc = subprocess.Popen([IPVSCTL, "-j", "-w", "1", "stats"], stdout=subprocess.PIPE,
                                text=True)
    first = json.loads(proc.stdout.readline())
    knock(udp, 3)
    second = json.loads(proc.stdout.readline())
    proc.send_signal(signal.SIGINT)
    assert proc.wait(10) == 0
    counts = [doc["services"][0]["stats"]["conns"] for doc in (first, second)]
    assert counts == [0, 3] and 0 < second["time"] - first["time"] < 30
    assert time.time() - second["time"] < 60
