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
    """Direct routing has no replies here; the file is refused as a whole."""
    dns.ctl("svc add", *DNS[:1], f"{VIP}:54", "server 10.0.0.11 dr")
    said = dns.ctl("svc change", *DNS[:1], f"{VIP}:54", "latency on ramp 5", code=7)
    assert "replies of others do not pass here" in said
    assert "ramp" not in dns.ctl("show", *DNS[:1], f"{VIP}:54")
    before = dns.ctl("save -F json")
    file = json.loads(before)
    file["services"][1]["latency"] = "on"
    dns.ctl("restore", stdin=json.dumps(file), code=7)
    assert dns.ctl("save -F json") == before
