# SPDX-License-Identifier: GPL-2.0
"""ipvsctl sync: the daemons of connection synchronisation, of l4lb and of in-tree ip_vs."""

import subprocess

import pytest
from lab.backend import both_modules
from lab.ctl import IPVSCTL

TAKES = 20
NO_MODULE = True        # `module` below loads both, one after the other

SEND = {"role": "send", "device": "d0", "id": 7, "maxlen": 1472, "group": "224.0.0.81",
        "port": 8848, "ttl": 1}


def runs(director):
    return director.json("sync show")["sync"]


@pytest.fixture
def quiet(director):
    """A director without daemons, before and afterwards."""
    yield director
    if runs(director):
        director.ctl("sync stop")


@pytest.mark.smoke
@both_modules
def test_start_show_stop(quiet):
    quiet.ctl("sync start send dev d0 id 7")
    assert runs(quiet) == [SEND]
    assert quiet.ctl("sync") == \
        "send dev d0 id 7 group 224.0.0.81 port 8848 ttl 1 maxlen 1472\n"
    quiet.ctl("sync stop send")
    assert not runs(quiet)


@both_modules
def test_every_option_arrives(quiet):
    quiet.ctl("sync start both dev d0 id 255 maxlen 4000 group ff02::81 port 9000 ttl 9")
    want = SEND | {"id": 255, "maxlen": 4000, "group": "ff02::81", "port": 9000, "ttl": 9}
    assert runs(quiet) == [want, want | {"role": "receive"}]
    shown = quiet.ns.run(["ipvsadm", "-L", "--daemon"]).stdout.splitlines()
    assert shown == [f"{role} sync daemon (mcast=d0, syncid=255, maxlen=4000, group=ff02::81, "
                     "port=9000, ttl=9)" for role in ("master", "backup")]


@both_modules
def test_a_role_by_its_other_name(quiet):
    quiet.ctl("sync start backup dev d0")
    assert [one["role"] for one in runs(quiet)] == ["receive"]
    quiet.ctl("sync stop backup")
    assert not runs(quiet)


@both_modules
@pytest.mark.parametrize("line, code, wrong", [
    ("start send dev nix", 4, "there is no interface nix"),
    ("start both dev nix", 4, "there is no interface nix"),
    ("stop", 4, "synchronisation does not run"), ("stop send", 4, "send does not run"),
    ("stop receive", 4, "receive does not run")])
def test_refused(quiet, line, code, wrong):
    assert quiet.ctl("sync", line, code=code).startswith(f"ipvsctl: sync: {wrong}\n")
    assert not runs(quiet)


@both_modules
def test_a_role_runs_once(quiet):
    """The role that did not run before does not run afterwards either."""
    quiet.ctl("sync start receive dev d0 id 3")
    before = runs(quiet)
    for line in ("start receive dev d0", "start both dev d0"):
        assert quiet.ctl("sync", line, code=5).splitlines() == [
            "ipvsctl: sync: receive runs already", "  see: ipvsctl sync show"]
        assert runs(quiet) == before


@both_modules
def test_one_of_two_stops(quiet):
    quiet.ctl("sync start both dev d0")
    quiet.ctl("sync stop receive")
    assert [one["role"] for one in runs(quiet)] == ["send"]
    quiet.ctl("sync stop")
    assert not runs(quiet)


def test_a_device_that_is_down(quiet):
    quiet.ns.ip("link add down0 type dummy")
    got = quiet.ctl("sync start send dev down0", code=3)
    assert got == ("ipvsctl: sync: interface down0 cannot send to the group\n"
                   "  try: ip link set down0 up\n")
    assert not runs(quiet)


def test_dry_run(quiet):
    steps = quiet.ctl("-n sync start both dev d0 id 4 port 9").splitlines()
    assert steps == [f"would start sync {role} dev d0 id 4 port 9"
                     for role in ("send", "receive")]
    assert not runs(quiet)
    quiet.ctl("sync start both dev d0")
    assert quiet.ctl("-n sync stop").splitlines() == [
        "would stop sync send", "would stop sync receive"]
    assert len(runs(quiet)) == 2


def test_nothing_runs(quiet):
    with quiet.ns.enter():
        done = subprocess.run([IPVSCTL, "sync"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == \
        (0, "", "neither send nor receive runs\n")
    assert not runs(quiet)
