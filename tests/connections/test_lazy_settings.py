# SPDX-License-Identifier: GPL-2.0
"""conn-state lazy as a setting: what is refused, and what is restored all the same."""

import errno

import pytest
from lab import genl
from lab.genl import PERSISTENT
from lab.packet import TCP, UDP

pytestmark = pytest.mark.usefixtures("only_l4lb")
LAZY = 1
REFUSED = (
    ({"proto": UDP}, {}, "TCP and SCTP"), ({"sched": "rr"}, {}, "hashes: mh, sh or dh"),
    ({"sched": "wlc"}, {}, "hashes"), ({"sched": "none"}, {}, "hashes"),
    ({"flags": PERSISTENT, "timeout": 60}, {}, "persistence"), ({}, {"latency": 1}, "LATENCY"),
    ({}, {"limit_rate": 5}, "limits"), ({}, {"limit_conns": 5}, "limits"))


@pytest.mark.parametrize("options, policy, why", REFUSED)
def test_refused(ipvs, l4lb, options, policy, why):
    """What cannot work changes nothing and says why, alone and in a batch."""
    options = {"sched": "mh"} | options
    s = ipvs.service("198.51.100.171", 80, **({"sched": "mh"} | options))
    before = l4lb.policy(s)
    sentence = genl.is_refused(lambda: l4lb.set_policy(s, conn_state=LAZY, tcp=9, **policy),
                               errno.EOPNOTSUPP)
    assert why in sentence and l4lb.policy(s) == before
    flags, timeout = options.get("flags", 0), options.get("timeout", 0)
    entry = genl.batch_entry("198.51.100.171", 80, proto=options.get("proto", TCP), sched=options["sched"],
                             flags=flags, timeout=timeout, policy={"conn_state": LAZY, **policy})
    assert why in genl.is_refused(lambda: l4lb.set_services([entry], genl.CHANGE), errno.EOPNOTSUPP)
    assert l4lb.policy(s) == before


def test_a_firewall_mark(ipvs, l4lb):
    s = ipvs.service(fwmark=77, sched="mh")
    assert "firewall mark" in genl.is_refused(lambda: l4lb.set_policy(s, conn_state=LAZY), errno.EOPNOTSUPP)


def test_what_was_saved_is_restored(ipvs, l4lb):
    """A service that another program gave another scheduler meanwhile."""
    entry = genl.batch_entry("198.51.100.171", 80, sched="rr", policy={"conn_state": LAZY})
    l4lb.set_services([entry], genl.MERGE)
    s = ipvs.service("198.51.100.171", 80, add=False)
    assert l4lb.policy(s)["conn_state"] == LAZY
    # It is on already.
    l4lb.set_policy(s, tcp=9)
    assert l4lb.policy(s)["tcp"] == 9
