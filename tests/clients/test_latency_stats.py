# SPDX-License-Identifier: GPL-2.0
"""ipvsctl service ... latency on, and stats latency: settings, files, figures, and what is refused."""

import json

import pytest
from lab import genl, latencies
from lab.ctl import VIP
from lab.netns import wait_until

TAKES = 15
NO_MODULE = True        # `module` loads it
DNS = ["udp", f"{VIP}:53"]
ID = f"udp:{VIP}:53"


@pytest.fixture
def dns(fresh):
    fresh.ctl("svc add", *DNS, "scheduler rr latency on timeout udp 1 server 10.0.0.11 server 10.0.0.12")
    return fresh


def measured(director):
    """{real server: (handshakes, answers)} as the kernel says."""
    with genl.L4lb(director.ns) as l4lb:
        return latencies.read(l4lb)


@pytest.mark.smoke
@pytest.mark.tool
def test_as_the_kernel_says(dns):
    """Nobody is there to answer."""
    dns.ns.datagrams((VIP, 53), 7)
    wait_until(lambda: sum(answers.unanswered for _, answers in measured(dns).values()) == 7, 10)
    said = measured(dns)
    service = dns.json("stats latency")["services"][0]
    assert service["id"] == ID and service["answer"]["unanswered"] == 7
    assert {s["id"].split(":")[0]: s["answer"]["unanswered"] for s in service["servers"]} == {
        address: answers.unanswered for address, (_, answers) in said.items()}
    assert dns.ctl("stats latency -H").splitlines()[0].split() == [
        "udp", f"{VIP}:53", "0", "-", "-", "0", "0", "-", "-", "7"]
    assert 'ipvs_server_answer_failed_total{service="' + ID in dns.ctl("-F prometheus stats")
    dns.ctl("stats zero")
    assert dns.json("stats", *DNS, "latency")["services"][0]["answer"]["unanswered"] == 0


def test_is_shown_and_kept(dns):
    assert "latency on" in dns.ctl("show")
    assert dns.json("show")["services"][0]["latency"] == "on"
    for form in ("", "-F json", "-F yaml"):
        saved = dns.ctl("save", form)
        dns.ctl("svc flush --yes")
        dns.ctl("restore", stdin=saved)
        assert "latency on" in dns.ctl("show")
    dns.ctl("svc change", *DNS, "latency off")
    assert "latency" not in dns.ctl("show")
    said = dns.ctl("stats latency", *DNS, code=4)
    assert "its latency is not measured" in said and f"try: ipvsctl service change udp {VIP}:53 latency on" in said


def test_refused(dns):
    """Direct routing has no replies here. What was saved is restored all the same."""
    dns.ctl("svc add", *DNS[:1], f"{VIP}:54", "server 10.0.0.11 dr")
    said = dns.ctl("svc change", *DNS[:1], f"{VIP}:54", "latency on ramp 5", code=7)
    assert "replies of others do not pass here" in said
    assert "ramp" not in dns.ctl("show", *DNS[:1], f"{VIP}:54")
    file = json.loads(dns.ctl("save -F json"))
    file["services"][1]["latency"] = "on"
    dns.ctl("restore", stdin=json.dumps(file))
    dns.ctl("svc change", *DNS[:1], f"{VIP}:54", "scheduler wrr")
    assert json.loads(dns.ctl("save -F json"))["services"][1] == file["services"][1] | {"scheduler": "wrr"}
    assert both_rows(dns, f"{VIP}:54") == [["0", "0"], ["0", "0"]]


def both_rows(director, vip):
    """[[handshakes, answers]] of a service and its real server."""
    rows = [line.split() for line in director.ctl("stats latency -H", *DNS[:1], vip).splitlines()]
    return [[row[-8], row[-4]] for row in rows]


def test_with_a_filter_and_a_drain(dns):
    """A server that drains is looked for by its service's name, which has another place when others
    are left out."""
    dns.ctl("svc add tcp", f"{VIP}:80", "scheduler rr server 10.0.0.11")
    dns.ctl("server drain tcp", f"{VIP}:80", "10.0.0.11")
    dns.ctl("svc add udp", f"{VIP}:54", "scheduler rr latency on timeout udp 1 server 10.0.0.12 dr weight 0 "
            "server 10.0.0.13")
    dns.ns.datagrams((VIP, 53), 3)
    dns.ns.datagrams((VIP, 54), 2)
    wait_until(lambda: sum(a.unanswered for _, a in measured(dns).values()) == 5, 10)
    for words in ("proto udp", "proto udp sort active", ""):
        found = {s["id"]: s["answer"]["unanswered"] for s in dns.json("stats latency", words)["services"]}
        assert found == {ID: 3, f"udp:{VIP}:54": 2}, words
    of_each = next(s for s in dns.json("stats latency")["services"] if s["id"] != ID)["servers"]
    assert [s["answer"]["unanswered"] for s in of_each] == [0, 2]
