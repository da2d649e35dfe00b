# SPDX-License-Identifier: GPL-2.0
"""ipvsctl import: the file it prints makes the same of the kernel as restore of the rules."""

import subprocess

import pytest
from lab.backend import both_modules
from test_json import CONFIG

TAKES = 20
NO_MODULE = True        # `module` loads both, one after the other

RULES = """\
-A -t 192.0.2.10:443 -s wlc -p 600 -M 255.255.255.0
-a -t 192.0.2.10:443 -r 10.0.0.11 -w 0
-a -t 192.0.2.10:443 -r 10.0.0.12 -g -w 7 -x 9 -y 3
-A -f 7 -6 -s wlc -p
-A -u [2001:db8::10]:53 -s rr -o
-a -u [2001:db8::10]:53 -r [2001:db8::21]:53 -m -w 1
-a -u [2001:db8::10]:53 -r 10.0.0.21:53 -i -w 1 --tun-type gue --tun-port 6080 --tun-csum
-A -t 192.0.2.10:0 -s wrr -p 360
-a -t 192.0.2.10:0 -r 10.0.0.1:0 -i
"""


def same_by_both(director, rules):
    """What restore makes of the RULES, import and apply make, too."""
    director.ctl("restore", stdin=rules)
    want, saved = director.state(), director.ctl("save")
    assert want
    file = director.ctl("import", stdin=rules)
    assert "good" in director.ctl("check -", stdin=file)
    assert director.ctl("diff --prune -", stdin=file) == ""
    director.ctl("svc flush --yes")
    director.ctl("apply -", stdin=file)
    assert director.state() == want and director.ctl("save") == saved


@pytest.mark.smoke
@both_modules
def test_rules_of_ipvsadm(director, module):
    same_by_both(director, RULES)
    with director.ns.enter():
        rules = subprocess.run(["ipvsadm", "-Sn"], capture_output=True, text=True, check=True).stdout
    director.ctl("svc flush --yes")
    same_by_both(director, rules)


def test_every_setting(director, module):
    director.build(CONFIG.rpartition("\n")[0])       # without the daemon
    rules = director.ctl("save")
    assert rules.count("#ipvsctl ") > 3
    director.ctl("svc flush --yes")
    same_by_both(director, rules)
