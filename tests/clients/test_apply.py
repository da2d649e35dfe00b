# SPDX-License-Identifier: GPL-2.0
"""ipvsctl apply, diff and export: a file says what the kernel has afterwards, and nothing
else changes. Most tests run on in-tree ip_vs, too."""

import random

import pytest
from lab import genl
from lab.backend import both_modules
from lab.ctl import knock
from lab.guide import screen
from lab.rows import amount

TAKES = 120
NO_MODULE = True        # `module` loads both, one after the other

FILE = """\
version: 1
timeouts: {tcp: 10m}
defaults: {forward: nat, weight: 2}
services:
  - service: tcp 192.0.2.10:80
    scheduler: wrr
    persistent: 10m
    mask: 24
    servers:
      - 10.0.0.11:8080 weight 3
      - {address: 10.0.0.12:8080, max-conns: 20000, min_conns: 100}
  - service: udp [2001:db8::10]:53
    scheduler: rr
    ops: true
    servers: ["[2001:db8::21] tun type gue port 6080 csum"]
  - service: fwmark 7
    servers: [10.0.0.21 dr weight 0]
"""


def without(text, *lines):
    return "".join(line for line in text.splitlines(keepends=True)
                   if not any(part in line for part in lines))


@pytest.mark.smoke
@both_modules
def test_apply(director, module):  # noqa: F811
    """Everything is set; the second run sends nothing; diff knows both."""
    said = director.ctl("diff -", stdin=FILE, code=1, out=True)
    assert "+ service tcp 192.0.2.10:80 scheduler wrr persistent 600 mask 24\n" in said
    assert "+   server 10.0.0.12:8080 nat weight 2 max-conns 20000 min-conns 100\n" in said
    assert "- timeout tcp 900\n+ timeout tcp 600\n" in said and "plan: 7 added, 1 changed" in said
    assert director.state() == []
    said = director.ctl("apply -", stdin=FILE)
    assert "services: 3 added, 0 changed, 0 removed, 0 unchanged\n" in said
    first = director.state()
    assert len(first) == 3 and [len(servers) for _, _, servers in first] == [2, 1, 1]
    assert director.json("timeout show")["timeouts"] == {"tcp": 600, "tcp_fin": 120, "udp": 300}
    assert director.ctl("diff -", stdin=FILE) == ""
    assert director.ctl("-v apply - --prune --detailed-exitcode", stdin=FILE) == \
        "no changes: 3 services, 4 servers\n"
    saved = director.ctl("export")
    assert director.ctl("apply -", stdin=saved).startswith("no changes")
    director.ctl("svc flush --yes")
    director.ctl("apply -", stdin=saved)
    assert director.state() == first and director.ctl("save -F yaml") == saved
    assert director.ctl("-j apply -", stdin=director.ctl("save -F json")).count('"unchanged":3') == 1


@both_modules
def test_only_the_difference(director, module):  # noqa: F811
    """One server changes, one goes, one comes; --prune decides about the rest."""
    director.ctl("apply -", stdin=FILE)
    director.ctl("svc add tcp 198.51.100.1:80 server 10.0.0.9")
    changed = FILE.replace("10.0.0.11:8080 weight 3", "10.0.0.11:8080 weight 5").replace(
        "10.0.0.12:8080", "10.0.0.13:8080").replace("scheduler: rr", "scheduler: wlc")
    said = director.ctl("diff -", stdin=changed, code=1, out=True)
    print(f"doc/configuration.md has to show:\n{said}", end="")
    assert said == screen("configuration", "diff")
    said = director.ctl("diff --prune -", stdin=changed, code=1, out=True)
    assert "-   server 10.0.0.12:8080 nat weight 2 max-conns" in said
    assert "- service tcp 198.51.100.1:80 scheduler wlc\n" in said
    before = director.state()
    assert "would delete" in director.ctl("-n apply --prune -", stdin=changed)
    assert director.state() == before
    said = director.ctl("apply -", stdin=changed)
    assert "left alone, not in the file: 1 services, and 1 servers of the others" in said
    assert len(director.state()) == 4
    said = director.json("apply --prune --detailed-exitcode -", stdin=changed, code=1, out=True)
    assert said["apply"]["services"]["removed"] == said["apply"]["servers"]["removed"] == 1
    assert len(director.state()) == 3 and director.ctl("diff --prune -", stdin=changed) == ""


@both_modules
def test_prune_keeps_to_its_scope(director, module):  # noqa: F811
    director.build("svc add tcp 192.0.2.9:80\nsvc add tcp 198.51.100.1:80\nsvc add fwmark 9")
    director.ctl("apply --prune -", stdin=FILE.replace(
        "version: 1", "version: 1\nscope: [192.0.2.0/24, '2001:db8::/32']"))
    left = director.ctl("-H -o name show")
    assert "192.0.2.9:80" not in left and "198.51.100.1:80" in left and "fwmark 9" in left
    director.ctl("apply --prune -", stdin="version: 1\nservices: []\n")
    assert director.state() == []


def test_a_refusal_changes_nothing(director, module):  # noqa: F811
    """What only the kernel knows to be wrong: its sentence, the line, and the old state, also
    of the timeouts."""
    director.ctl("apply -", stdin=FILE)
    before = director.state()
    bad = FILE.replace("tcp: 10m", "tcp: 20m").replace("weight 3", "weight 9") + \
        "  - service: udp 192.0.2.10:5060\n    persistent: 60\n    pe: nosuch\n"
    said = director.ctl("apply --prune -", stdin=bad, code=4)
    assert "persistence engine" in said and "standard input:18:5: " in said
    assert "  - service: udp 192.0.2.10:5060\n        |     ^\n" in said
    assert "nothing was changed" in said and director.state() == before
    assert director.json("timeout show")["timeouts"]["tcp"] == 600


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_a_refusal_half_way_on_ip_vs(director, module):  # noqa: F811
    director.ctl("svc add tcp 198.51.100.1:80")
    bad = FILE + "  - service: udp 192.0.2.10:5060\n    persistent: 60\n    pe: none-such\n"
    said = director.ctl("apply --prune -", stdin=bad, code=8)
    assert "they are in effect" in said and "run apply again" in said
    assert len(director.state()) == 4, "removals come last"


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_a_refusal_at_once_on_ip_vs(director, module):  # noqa: F811
    """The timeouts, which go first, are set back; the place in the file is shown."""
    said = director.ctl("apply -", code=4, stdin="version: 1\ntimeouts: {tcp: 20m}\nservices:\n"
                        "- {service: 'udp 192.0.2.10:5060', persistent: 60, pe: none-such}\n")
    assert "standard input:4:3: udp 192.0.2.10:5060: " in said and "\n        |   ^\n" in said
    assert director.json("timeout show")["timeouts"]["tcp"] == 900 and director.state() == []


def test_connections_stay(fresh):
    """Other services and servers come and go; nobody else's connection is touched."""
    text = """\
version: 1
services:
  - service: udp 192.0.2.10:5353
    scheduler: rr
    servers: [10.0.0.11, 10.0.0.12]
"""
    fresh.ctl("apply -", stdin=text)
    knock(fresh, 4)
    before = fresh.json("conn show")["connections"]
    assert len(before) == 4
    more = text.replace("10.0.0.12]", "10.0.0.12, 10.0.0.13 weight 3]") + \
        "  - service: udp 192.0.2.10:54\n    servers: [10.0.0.14]\n"
    fresh.ctl("apply --prune -", stdin=more)
    fresh.ctl("apply --prune -", stdin=text)
    after = fresh.json("conn show")["connections"]
    for conn in (*before, *after):
        conn.pop("expires", None)
    assert sorted(before, key=str) == sorted(after, key=str)


def some_file(rng):
    """A random configuration of few names, so that two of them have much in common."""
    lines = ["version: 1", "services:"]
    for port in rng.sample(range(80, 90), rng.randint(1, 8)):
        lines.append(f"  - service: tcp 192.0.2.10:{port}")
        lines.append(f"    scheduler: {rng.choice(('rr', 'wrr', 'wlc'))}")
        if rng.random() < 0.4:
            lines.append(f"    persistent: {rng.randint(60, 63)}")
        lines.append("    servers:")
        lines += [f"      - {{address: 10.0.0.{n}, weight: {rng.randint(0, 2)}}}"
                  for n in rng.sample(range(11, 19), rng.randint(1, 5))]
    return "\n".join(lines) + "\n"


@both_modules
def test_random_pairs(director, module, request, seed):  # noqa: F811
    """A then B is B from nothing, and nothing is left to do."""
    rng = random.Random(seed)
    for _ in range(amount(request.config, few=8, all=200)):
        a, b = some_file(rng), some_file(rng)
        director.ctl("apply --prune -", stdin=a)
        director.ctl("apply --prune -", stdin=b)
        got = director.state()
        assert director.ctl("diff --prune -", stdin=b) == ""
        with genl.Ipvs(director.ns) as ipvs:
            ipvs.flush()
        director.ctl("apply -", stdin=b)
        assert director.state() == got
