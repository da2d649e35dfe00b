# SPDX-License-Identifier: GPL-2.0
"""ipvsadm and ipvsctl, with l4lb and with in-tree ip_vs: four ways to the same state.

Each pair of scripts sets up the same services. With either tool, on
either module, `ipvsadm -Sn` and `ipvsadm -Ln` must print the same.
"""

import os

import pytest
from lab.backend import Backend, selected
from lab.netns import Namespace, run

NO_MODULE = True        # the test loads one module after the other
IPVSCTL = os.environ.get("L4LB_IPVSCTL", "build/ipvsctl")

# Name: (commands of ipvsadm, commands of ipvsctl)
SCRIPTS = {
    "four servers": ("""
-A -t 192.0.2.10:80 -s wrr
-a -t 192.0.2.10:80 -r 10.0.0.11:8080 -m -w 3
-a -t 192.0.2.10:80 -r 10.0.0.12:8080 -m -w 2
-a -t 192.0.2.10:80 -r 10.0.0.13:8080 -m
-a -t 192.0.2.10:80 -r 10.0.0.14:8080 -m -w 0
""", """
service add tcp 192.0.2.10:80 scheduler wrr
server add tcp 192.0.2.10:80 10.0.0.11:8080 nat weight 3
server add tcp 192.0.2.10:80 10.0.0.12:8080 nat weight 2
server add tcp 192.0.2.10:80 10.0.0.13:8080 nat
server add tcp 192.0.2.10:80 10.0.0.14:8080 nat weight 0
"""),
    "every method": ("""
-A -t 192.0.2.10:443 -s wlc -p 600 -M 255.255.255.0
-a -t 192.0.2.10:443 -r 10.0.0.11 -g
-a -t 192.0.2.10:443 -r 10.0.0.12 -i
-a -t 192.0.2.10:443 -r 10.0.0.13 -m -x 100 -y 50
-A -u [2001:db8::10]:53 -s rr
-a -u [2001:db8::10]:53 -r [2001:db8::11]:5353 -m
-a -u [2001:db8::10]:53 -r 10.0.0.12:53 -i
-A -f 7 -s lc
-a -f 7 -r 10.0.0.11 -g
-A -f 7 -6
""", """
svc add tcp 192.0.2.10:443 persistent 10m mask 24 server 10.0.0.11 dr \
server 10.0.0.12 tun server 10.0.0.13 nat max-conns 100 min-conns 50
svc add udp [2001:db8::10]:53 scheduler rr server [2001:db8::11]:5353 nat \
server 10.0.0.12 tun
svc add fwmark 7 scheduler lc server 10.0.0.11 dr
svc add fwmark 7 inet6
"""),
    "edited": ("""
-A -t 192.0.2.10:80 -s rr
-a -t 192.0.2.10:80 -r 10.0.0.11 -m -w 5
-a -t 192.0.2.10:80 -r 10.0.0.12 -m -w 5
-a -t 192.0.2.10:80 -r 10.0.0.13 -m -w 5
-E -t 192.0.2.10:80 -s lc -p 90
-e -t 192.0.2.10:80 -r 10.0.0.11 -m -w 8
-e -t 192.0.2.10:80 -r 10.0.0.12 -g -w 5
-d -t 192.0.2.10:80 -r 10.0.0.13
-A -u 192.0.2.10:53
-D -u 192.0.2.10:53
""", """
svc add tcp 192.0.2.10:80 scheduler rr server 10.0.0.11 weight 5 server 10.0.0.12 weight 5 \
server 10.0.0.13 weight 5
svc change tcp 192.0.2.10:80 scheduler lc persistent 90
rs change tcp 192.0.2.10:80 10.0.0.11 weight 8
rs change tcp 192.0.2.10:80 10.0.0.12 dr
rs delete tcp 192.0.2.10:80 10.0.0.13
svc add udp 192.0.2.10:53
svc delete udp 192.0.2.10:53
"""),
}


def lines(script):
    return [line.split() for line in script.splitlines() if line]


def state(ns):
    """(rules, listing), without the listing's first line, which has the table's size."""
    listing = ns.run(["ipvsadm", "-Ln", "--thresholds"]).stdout.splitlines()[1:]
    return ns.run(["ipvsadm", "-Sn"]).stdout, "\n".join(listing)


def outcomes(module, names):
    """{(script, tool): state} on one module."""
    found = {}
    for name in names:
        for tool, script in zip((["ipvsadm"], [IPVSCTL]), SCRIPTS[name]):
            ns = Namespace("same")
            try:
                ns.ip("link set lo up")
                for line in lines(script):
                    ns.run([*tool, *line])
                found[name, os.path.basename(tool[0]), module] = state(ns)
            finally:
                ns.destroy()
    return found


@pytest.fixture(scope="module")
def found(request):
    """{(script, tool, module): state}, of both modules if this kernel has both."""
    out = {}
    for name in ("l4lb", "ip_vs"):
        module, other = Backend(name), Backend("ip_vs" if name == "l4lb" else "l4lb")
        if other.loaded():
            other.unload()
        if module.load(check=module.is_l4lb).returncode:
            continue
        for scheduler in ("rr", "wrr", "lc", "wlc"):
            run(["modprobe", module.prefix + scheduler])
        out |= outcomes(name, selected(request, "script"))
        module.unload()
    return out


@pytest.mark.parametrize("script", SCRIPTS)
def test_both_tools_lead_to_the_same_state(found, script):
    for module in {m for _, _, m in found}:
        rules, listing = found[script, "ipvsadm", module]
        assert rules.count("\n") >= 3
        assert found[script, "ipvsctl", module] == (rules, listing), module


@pytest.mark.parametrize("script", [
    pytest.param(name, marks=[pytest.mark.smoke] if name == "every method" else [])
    for name in SCRIPTS])
def test_both_modules_hold_the_same_state(found, script):
    if not any(module == "ip_vs" for _, _, module in found):
        pytest.skip("this kernel has no ip_vs to compare with: Debian's have it "
                    "(suite stages 6.12 and 6.1)")
    for tool in ("ipvsadm", "ipvsctl"):
        assert found[script, tool, "l4lb"] == found[script, tool, "ip_vs"]
