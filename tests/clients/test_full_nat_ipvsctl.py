# SPDX-License-Identifier: GPL-2.0
"""ipvsctl and full NAT: the setting snat in each command that knows settings."""

import json

import pytest
from lab.ctl import Director

pytestmark = pytest.mark.usefixtures("only_l4lb")
ID = "tcp 192.0.2.10:80"
SIX = "udp [2001:db8::10]:53"
RANGE = "10.0.0.250-10.0.0.253"
RANGE6 = "2001:db8::f0-2001:db8::f1"


@pytest.fixture
def director(backend):
    director = Director()
    director.ns.ip(*(f"addr add 10.0.0.{n}/32 dev d0" for n in range(250, 254)),
                   *(f"addr add 2001:db8::{n}/128 dev d0 nodad" for n in ("10", "f0", "f1")))
    yield director
    director.ctl("service flush --yes")
    director.ns.destroy()


def shown(director, name=ID):
    return director.json("service show", name)["services"][0].get("snat")


def test_set_and_show(director):
    """One address, several, another range, none; IPv6; a range of one is shown as one."""
    director.ctl("service add", ID, "scheduler rr snat", RANGE, "server 10.0.0.11 nat")
    assert shown(director) == RANGE
    assert f"snat {RANGE}" in director.ctl("service show", ID)
    director.ctl("service change", ID, "snat 10.0.0.252")
    assert shown(director) == "10.0.0.252"
    director.ctl("service change", ID, "scheduler wrr")
    assert shown(director) == "10.0.0.252"
    director.ctl("service change", ID, "snat 10.0.0.253-10.0.0.253 ramp 5s")
    assert shown(director) == "10.0.0.253"
    director.ctl("service change", ID, "snat off")
    assert shown(director) is None
    director.ctl("service add", SIX, "scheduler rr snat", RANGE6, "server [2001:db8::11] nat")
    assert shown(director, SIX) == RANGE6
    director.ctl("service replace", SIX, "scheduler rr")
    assert shown(director, SIX) is None


@pytest.mark.parametrize(("words", "says", "code"), [
    ("10.0.0.253-10.0.0.250", "before the first", 2),
    ("10.0.0.250-", "bad snat", 2),
    ("10.0.0.250-2001:db8::f0", "bad snat", 2),
    ("10.0.0.0/24", "bad snat", 2),
    ("web", "bad snat", 2),
    ("2001:db8::f0", "other family", 2),
    ("10.0.0.250 snat 10.0.0.251", "given twice", 2),
    ("10.0.0.250 conn-state lazy scheduler mh", "conn-state lazy excludes snat", 2),
    ("10.0.0.0-10.0.1.5", "256 addresses", 3),
    ("10.0.0.249-10.0.0.250", "one of this host", 3),
    ("0.0.0.0", "one of this host", 3),
])
def test_refusals(director, words, says, code):
    """One sentence, and nothing has changed."""
    director.ctl("service add", ID, "scheduler rr snat", RANGE, "server 10.0.0.11 nat")
    before = director.ctl("save")
    said = director.ctl("service change", ID, "snat", words, code=code)
    assert says in said and len(said.splitlines()) <= 2
    assert director.ctl("save") == before


def test_refused_with_other_settings(director):
    for kind, more in (("udp 192.0.2.10:53", "ops"), ("udp 192.0.2.10:5060", "persistent 60 pe sip")):
        said = director.ctl("service add", kind, "scheduler rr", more, "snat", RANGE, code=2)
        assert "snat does not work with" in said
    assert "snat needs a server with nat" in director.ctl("service add", ID, "scheduler rr snat", RANGE,
                                                          "server 10.0.0.11 dr", code=2)
    director.ctl("service add", ID, "scheduler rr server 10.0.0.11 dr")
    assert "needs NAT" in director.ctl("service change", ID, "snat", RANGE, code=7)
    assert shown(director) is None


def test_save_and_restore(director):
    director.ctl("service add", ID, "scheduler rr snat", RANGE, "server 10.0.0.11 nat")
    director.ctl("service add", SIX, "scheduler rr snat", RANGE6, "server [2001:db8::11] nat")
    saved = director.ctl("save")
    director.ctl("service flush --yes")
    director.ctl("restore", stdin=saved)
    assert director.ctl("save") == saved
    assert (shown(director), shown(director, SIX)) == (RANGE, RANGE6)


def test_apply_export_diff_check(director):
    """A file as YAML and as JSON; what it leaves out is off."""
    text = f"version: 1\nservices:\n- service: {ID}\n  scheduler: rr\n  snat: {RANGE}\n  servers:\n  - 10.0.0.11 nat\n"
    director.ctl("check -", stdin=text)
    director.ctl("apply -", stdin=text)
    assert shown(director) == RANGE
    assert "snat" not in director.ctl("diff -", stdin=text)
    other = text.replace(RANGE, "10.0.0.251")
    said = director.ctl("diff -", stdin=other, code=1, out=True)
    assert RANGE in said and "10.0.0.251" in said
    director.ctl("apply -", stdin=other)
    assert shown(director) == "10.0.0.251"
    exported = director.ctl("export")
    assert "snat: 10.0.0.251" in exported
    director.ctl("apply -", stdin=text.replace(f"  snat: {RANGE}\n", ""))
    assert shown(director) is None
    director.ctl("apply -", stdin=exported)
    assert shown(director) == "10.0.0.251"
    found = director.json("service show", ID)
    director.ctl("service flush --yes")
    director.ctl("apply -", stdin=json.dumps({"version": 1, "services": found["services"]}))
    assert shown(director) == "10.0.0.251"
    for bad, says in (("10.0.0.253-10.0.0.250", "before the first"), ("nothing", "bad snat")):
        assert says in director.ctl("check -", stdin=text.replace(RANGE, bad), code=2)
