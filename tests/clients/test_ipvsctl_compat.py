# SPDX-License-Identifier: GPL-2.0
"""`ipvsctl compat` leaves the kernel in the state that ipvsadm leaves it in, for every rule
of the scripts in lab/ipvsadm.py."""

import re
import shlex

import pytest
from lab import genl
from lab.ctl import IPVSCTL
from lab.ipvsadm import SCRIPTS, Director

TAKES = 30
# Not here: what only prints; a flag that the scheduler lacks, which ipvsctl refuses; -R with
# lines other than -A and -a.
RULES = ("tcp", "udp", "sctp", "fwmark", "persistent", "one-packet", "sched-flags",
         "edit-service", "delete-service", "methods", "tunnels", "weights", "thresholds",
         "edit-server", "set")


@pytest.fixture(scope="module")
def director(module_life):
    with Director() as director:
        yield director


def play(director, program, name):
    """Which lines of the script PROGRAM refuses, and what ipvsadm then shows."""
    lines = [line.removeprefix("! ") for line in re.split(r"\n\s*", SCRIPTS[name].strip())]
    text = "".join(f"{program} {shlex.join(line.split())} >/dev/null 2>&1\necho $?\n"
                   for line in lines)
    shown = "ipvsadm -Sn; ipvsadm -Ln --thresholds; ipvsadm -L --timeout\n"
    said = director.ns.run(["sh", "-s"], text_input=text + "echo END\n" + shown).stdout
    status, _, state = said.partition("END\n")
    with genl.Ipvs(director.ns) as ipvs:
        ipvs.flush()
        ipvs.timeouts(900, 120, 300)
    return [(line, code != "0") for line, code in zip(lines, status.split(), strict=True)], state


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.smoke] if name == "methods" else [])
    for name in RULES])
def test_the_same_state(director, name):
    refused, state = play(director, "ipvsadm", name)
    again, ours = play(director, f"{IPVSCTL} compat", name)
    assert again == refused and any(not no for _, no in refused)
    assert ours == state


def test_listings_and_exit_codes(director):
    def compat(line, code=0):
        done = director.ns.run([IPVSCTL, "compat", *line.split()], check=False)
        assert done.returncode == code, done.stderr
        return done.stdout
    compat("-A -t 192.0.2.10:80 -s rr")
    compat("-a -t 192.0.2.10:80 -r 10.0.0.11:8080 -m -w 3")
    assert "10.0.0.11:8080" in compat("-Ln") and "-m -w 3" in compat("-Sn")
    assert "900" in compat("-L --timeout") and "IN PKTS" in compat("-L --stats").upper()
    compat("-A -t 192.0.2.10:80", 255)
    compat("-D -t 192.0.2.10:81", 255)
    compat("-A -t 192.0.2.10:80 --nothing", 2)
    compat("-Z")
    compat("-C")
    assert "192.0.2.10" not in compat("-Ln")
