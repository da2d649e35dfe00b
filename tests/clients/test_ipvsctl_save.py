# SPDX-License-Identifier: GPL-2.0
"""ipvsctl against a kernel: l4lb in all tests, in-tree ip_vs in some.

What the kernel holds afterwards is read back with our own netlink client
(lab.genl), not with ipvsctl. Starting a program is slow on an emulated
machine, so a test starts few of them and the tests without packets share one
namespace.
"""

import pytest
from lab import genl
from lab.backend import both_modules
from lab.ctl import WEB

TAKES = 250
NO_MODULE = True        # `module` below loads both, one after the other


FULL = """\
svc add tcp 192.0.2.10:443 persistent 10m mask 24 server 10.0.0.11 dr weight 7 \
server 10.0.0.12 dr max-conns 70000 min-conns 50
svc add udp 192.0.2.10:53 scheduler rr ops server 10.0.0.11:5353
svc add tcp [2001:db8::10]:0 scheduler wrr persistent 120 mask 64 server [2001:db8::21] tun \
type gue port 6080 remcsum
svc add fwmark 7 scheduler sh flags flag-1,port server 10.0.0.9 weight 0
svc add fwmark 7 inet6"""


@pytest.mark.smoke
@pytest.mark.tool
@pytest.mark.parametrize("form", ["json", "ipvsadm"])
def test_save_and_restore_round_trip(director, form, tmp_path):
    director.build(FULL)
    file = tmp_path / "saved"
    saved = director.ctl("save -F", form)
    director.ctl("save -F", form, "-o", str(file))
    assert file.read_text(encoding="utf-8") == saved
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]
    before = director.state()
    director.ctl("svc flush --yes")
    said = director.ctl("restore", str(file))
    assert "services: 5 added, 0 changed, 0 unchanged" in said
    assert director.state() == before and director.ctl("save -F", form) == saved
    again = director.json("restore", stdin=saved)["restore"]
    assert again == {"dry_run": False,
                     "services": {"added": 0, "changed": 0, "unchanged": 5, "not_in_file": 0},
                     "servers": {"added": 0, "changed": 0, "unchanged": 5, "not_in_file": 0}}


def test_flags_of_another_program(director):
    """What another program could set is restored, though the scheduler does not know it."""
    director.build("svc add tcp 192.0.2.10:80 scheduler sh")
    with genl.Ipvs(director.ns) as ipvs:
        ipvs.service("192.0.2.10", 80, add=False).edit(sched="sh", flags=0x30)
    before, saved = director.state(), director.ctl("save")
    director.ctl("svc flush --yes")
    director.ctl("restore", stdin=saved)
    assert director.state() == before and "flag-3" in saved


@pytest.mark.parametrize("change", ("weight 5", "max-conns 10", "min-conns 4",
                                    "type gue port 6081", "remcsum"))
def test_restore_sees_each_difference(director, change):
    """Each setting of a server is restored when it alone differs."""
    director.ctl("svc add", *WEB, "server 10.0.0.11 tun type gue port 6080 csum weight 2 "
                 "max-conns 9 min-conns 3")
    saved = director.ctl("save")
    director.ctl("rs change tcp:192.0.2.10:80 10.0.0.11", change)
    assert director.ctl("save") != saved
    director.ctl("restore", stdin=saved)
    assert director.ctl("save") == saved


@pytest.mark.smoke
@pytest.mark.tool
@both_modules
def test_restore_reads_what_ipvsadm_wrote(director):
    director.build(FULL)
    # ipvsadm -S leaves the thresholds out.
    director.ctl("rs change tcp:192.0.2.10:443 10.0.0.12 max-conns 0 min-conns 0")
    before, rules = director.state(), director.ns.run(["ipvsadm", "-Sn"]).stdout
    director.ctl("svc flush --yes")
    director.ctl("restore", stdin=rules)
    assert director.state() == before
    assert director.ctl("save") == rules


def test_ipvsadm_reads_what_save_wrote(director):
    director.build(FULL.replace("70000", "60000"))
    before, rules = director.state(), director.ctl("save")
    director.ctl("svc flush --yes")
    director.ns.run(["ipvsadm", "-R"], text_input=rules)
    assert director.state() == before


def test_restore_of_what_show_prints(director):
    director.build(FULL)
    before, shown = director.state(), director.ctl("-j show")
    director.ctl("svc flush --yes")
    director.ctl("restore", stdin=shown)
    assert director.state() == before


def test_restore_merges_and_keeps_what_the_file_does_not_name(director):
    director.ctl("svc add", *WEB, "scheduler rr server 10.0.0.11 weight 2 server 10.0.0.19")
    director.ctl("svc add udp 192.0.2.20:53")
    rules = ("-A -t 192.0.2.10:80 -s wrr\n-a -t 192.0.2.10:80 -r 10.0.0.11 -m -w 5\n"
             "-a -t 192.0.2.10:80 -r 10.0.0.12 -m\n-A -t 192.0.2.30:80\n")
    before = director.state()
    dry = director.ctl("-n restore", stdin=rules)
    assert "would set service tcp 192.0.2.10:80 scheduler wrr" in dry
    dry = director.json("-n restore", stdin=rules)
    assert dry["restore"]["dry_run"] and len(dry["plan"]) == 4
    assert director.state() == before
    said = director.ctl("restore", stdin=rules)
    assert "services: 1 added, 1 changed, 0 unchanged" in said
    assert "servers:  1 added, 1 changed, 0 unchanged" in said
    assert "1 services, and 1 servers" in said
    assert director.ctl("save") == (
        "-A -t 192.0.2.10:80 -s wrr\n-a -t 192.0.2.10:80 -r 10.0.0.11:80 -m -w 5\n"
        "-a -t 192.0.2.10:80 -r 10.0.0.12:80 -m -w 1\n"
        "-a -t 192.0.2.10:80 -r 10.0.0.19:80 -m -w 1\n"
        "-A -t 192.0.2.30:80 -s wlc\n-A -u 192.0.2.20:53 -s wlc\n")


def test_a_bad_file_changes_nothing(director):
    director.ctl("svc add", *WEB)
    before = director.state()
    good = "-A -t 192.0.2.30:80 -s rr\n"
    for bad, code, why in (("-A -t 192.0.2.31:80 -s wlcc\n", 4, "wlcc"),
                           ("-A -t 192.0.2.31:99999\n", 2, "bad port"),
                           ("-C\n", 2, '"-C" is not')):
        assert why in director.ctl("restore", stdin=good + bad, code=code)
        assert director.state() == before


REFUSED = ("-A -t 192.0.2.30:80 -s rr\n-a -t 192.0.2.30:80 -r 10.0.0.255 -m\n"
           "-A -t 192.0.2.31:80\n")


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_a_refusal_in_the_middle_says_how_far_it_came(director):
    said = director.ctl("restore", stdin=REFUSED, code=8)
    assert "10.0.0.255" in said and "applied 1 of 3 changes" in said
    fixed = REFUSED.replace("10.0.0.255", "10.0.0.12")
    assert "services: 1 added, 0 changed, 1 unchanged" in director.ctl("restore", stdin=fixed)


def test_a_refused_restore_changes_nothing_and_names_the_line(director, tmp_path):
    director.ctl("svc add", *WEB, "server 10.0.0.11")
    before = director.state()
    file = tmp_path / "rules"
    bad = REFUSED.splitlines()
    for place in range(3):
        lines = ["-A -t 192.0.2.10:80 -s rr", "-a -t 192.0.2.10:80 -r 10.0.0.11 -m -w 9",
                 "-A -t 192.0.2.40:80", "-a -t 192.0.2.40:80 -r 10.0.0.12 -m"]
        lines[2 * place:2 * place] = bad
        file.write_text("# a comment\n" + "\n".join(lines) + "\n", encoding="ascii")
        said = director.ctl("restore", str(file), code=3)
        assert said.splitlines()[0] == (
            f"ipvsctl: {file}:{2 * place + 3}: tcp 192.0.2.30:80: server 10.0.0.255: the kernel "
            "refused: the real server's address must be unicast")
        assert said.splitlines()[1:] == ["  nothing was changed"]
        assert director.state() == before
    file.write_text(REFUSED.replace("10.0.0.255", "10.0.0.12"), encoding="ascii")
    assert "services: 2 added, 0 changed, 0 unchanged" in director.ctl("restore", str(file))
