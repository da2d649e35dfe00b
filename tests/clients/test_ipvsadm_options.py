# SPDX-License-Identifier: GPL-2.0
"""Every option of Debian's ipvsadm prints the same, byte for byte, with in-tree
ip_vs and with l4lb, except for the differences listed in lab/ipvsadm.py."""

import re

import pytest
from lab.backend import Backend, selected
from lab.ipvsadm import DIFFERENT, SCRIPTS, SIP, Director
from lab.netns import run

TAKES = 200             # mostly in `said`
NO_MODULE = True        # `said` loads one module after the other
EVERYTHING = "all of it"
# The scripts that slow kernels run, too.
SMOKE = {"methods", "tunnels", "sched-flags", "edit-server", "set", "list"}


def services(rules):
    """{service's rule: [its servers' rules]} from the output of -S."""
    found = {}
    for line in rules.splitlines():
        if line.startswith("-A"):
            servers = found[line] = []
        else:
            servers.append(line)
    return found


def restored(director, rules):
    """[(command, answer)] of restoring RULES, twice."""
    feed = "-R <<< " + rules.replace("\n", "; ")
    steps = (feed, "-Sn", "-C", feed, "-Sn", "-C")
    return director.ask(*steps)


@pytest.fixture(scope="module")
def said(request):
    """{module: {script: [(line, answer)]}}"""
    out, wanted = {}, selected(request, "script")
    scripts = [s for s in SCRIPTS if s in wanted or EVERYTHING in wanted]
    rules = ""
    for name in ("ip_vs", "l4lb"):
        other = Backend("l4lb" if name == "ip_vs" else "ip_vs")
        if other.loaded():
            other.unload()
        backend = Backend(name)
        backend.load()
        try:
            with Director() as director:
                out[name] = {key: director.play(SCRIPTS[key]) for key in scripts}
                if len(scripts) == len(SCRIPTS):
                    rules = rules or everything(out[name])
                    out[name][EVERYTHING] = restored(director, rules)
        finally:
            backend.unload()
    return out


def differs(answers):
    return any(line in DIFFERENT for line, _ in answers)


def everything(answers):
    """One set of rules with the services that the scripts left, each address once."""
    found = {}
    for answer in (dict(a)["-Sn"] for a in answers.values() if not differs(a)):
        for service, servers in services(answer.removeprefix("0 ")).items():
            found.setdefault(service.partition(" -s ")[0], [service, *servers])
    return "\n".join(line for lines in found.values() for line in lines)


@pytest.mark.parametrize("script", [
    pytest.param(script, marks=[pytest.mark.smoke] if script in SMOKE else [])
    for script in [*SCRIPTS, EVERYTHING]])
def test_says_the_same(said, script):
    if script == SIP and run("modprobe -n -q ip_vs_pe_sip", check=False).returncode:
        pytest.skip("this kernel has no ip_vs_pe_sip: Debian's have it (suite stages 6.12 and 6.1)")
    theirs, ours = said["ip_vs"][script], said["l4lb"][script]
    for (line, got), (_, control) in zip(ours, theirs, strict=True):
        if line in DIFFERENT:
            why, right = DIFFERENT[line]
            assert got != control, f"no difference any more ({why}): take it off the list"
            assert re.search(right, got), (line, got)
        elif line == "-Sn" and differs(ours):
            assert got in (control, "0 "), "what was refused has changed something"
        else:
            assert got == control, line
            assert got.startswith("0 ") != line.startswith("!"), (line, got)


@pytest.mark.parametrize("script", [EVERYTHING])
def test_restores_what_it_saved(said, script):
    (_, fed), (_, saved), (_, cleared), *again = said["l4lb"][script]
    assert fed == cleared == "0 "
    assert [answer for _, answer in again] == [fed, saved, cleared]
    assert len(saved.splitlines()) > 35, saved
