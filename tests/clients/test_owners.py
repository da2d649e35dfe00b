# SPDX-License-Identifier: GPL-2.0
"""Owners and protected services: programs and people who share a director do not delete each
other's services."""

import errno
import re
import subprocess

import pytest
from lab import genl
from lab.ctl import IPVSCTL, Director
from lab.genl import ADD, CHANGE, MERGE, REPLACE, NetlinkError, attr, text, u8
from test_apply import FILE

TAKES = 40
NO_MODULE = True        # `module` loads it
VIP = "192.0.2.10"
OURS = "version: 1\nowner: web\nservices: [{service: 'tcp 192.0.2.10:80', servers: [10.0.0.11]}]\n"


@pytest.fixture
def director(module, monkeypatch, tmp_path):
    """A namespace for each test: flush leaves protected services."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    one = Director()
    yield one
    one.ns.destroy()


@pytest.fixture
def l4lb(director):
    with genl.L4lb(director.ns) as one:
        yield one


@pytest.fixture
def ipvs(director):
    with genl.Ipvs(director.ns) as one:
        yield one


def refused(code, sentence, function, *args, **kwargs):
    with pytest.raises(NetlinkError) as caught:
        function(*args, **kwargs)
    assert caught.value.errno == code and sentence in caught.value.extack, caught.value


# ---- the kernel ----

@pytest.mark.smoke
def test_the_kernel_keeps_them(ipvs, l4lb):
    """Through SET_POLICY and SET_SERVICES; an edit through family IPVS does not change them."""
    one = ipvs.service(VIP, 80)
    assert l4lb.claim(one) == ("", 0) and list(l4lb.policies()) == []
    assert l4lb.claim(one, owner="keepalived") == ("keepalived", 0)
    assert l4lb.claim(one, protected=1) == ("keepalived", 1)
    assert len(l4lb.policies()) == 1
    one.edit(sched="wrr")
    l4lb.set_policy(one, tcp=60)
    assert l4lb.claim(one, owner="a.b-c_d@e") == ("a.b-c_d@e", 1)
    assert l4lb.claim(one, owner="123456789012345", protected=0) == ("123456789012345", 0)
    assert l4lb.policy(one)["tcp"] == 60
    l4lb.set_services([genl.batch_entry(VIP, 80, owner="x", protected=1)], CHANGE)
    assert l4lb.claim(one) == ("x", 1)
    l4lb.set_services([genl.batch_entry(VIP, 80)], MERGE)       # an entry has all settings
    assert l4lb.claim(one) == ("", 0)
    l4lb.set_services([genl.batch_entry(VIP, 81, owner="y")], ADD)
    assert l4lb.claim(ipvs.service(VIP, 81, add=False)) == ("y", 0)


def test_bad_attributes(ipvs, l4lb):
    one = ipvs.service(VIP, 80)
    l4lb.claim(one, owner="good", protected=1)
    name = attr(genl.L_SERVICE, one.ident)
    for bad in (attr(genl.L_OWNER, text("1234567890123456")), attr(genl.L_OWNER, b"x" * 15),
                attr(genl.L_PROTECTED, u8(2)), attr(genl.L_PROTECTED, b"")):
        with pytest.raises(NetlinkError):
            l4lb.request(genl.SET_POLICY, [name, bad])
    for owner in "a b", "a\n", "\x1b[2J", "a/b", "é"[:1]:
        refused(errno.EINVAL, "letters, digits", l4lb.claim, one, owner=owner)
        refused(errno.EINVAL, "letters, digits", l4lb.set_services, [genl.batch_entry(VIP, 80, owner=owner)], MERGE)
    refused(errno.EINVAL, "POLICY is missing", l4lb.request, genl.SET_POLICY, name)
    assert l4lb.claim(one) == ("good", 1)
    for more in attr(genl.L_OWNER, text("x")), attr(genl.L_PROTECTED, u8(0)):
        refused(errno.EINVAL, "can have no settings", l4lb.set_services, [genl.batch_removal(VIP, 80, more)], MERGE)


def test_protected(ipvs, l4lb):
    """It is not removed, whoever asks, and all of the batch is refused; its servers come and go."""
    one, other = ipvs.service(VIP, 80), ipvs.service(VIP, 81)
    l4lb.claim(one, protected=1)
    refused(errno.EBUSY, "the service is protected", one.delete)
    entries = [genl.batch_entry(VIP, 82), genl.batch_removal(VIP, 81)]
    refused(errno.EBUSY, "the service is protected", l4lb.set_services, [*entries, genl.batch_removal(VIP, 80)], MERGE)
    for others in [genl.batch_entry(VIP, 82)], []:
        refused(errno.EBUSY, "a service that is not named is protected", l4lb.set_services, others, REPLACE)
    assert len(ipvs.services()) == 2
    one.server("10.0.0.11", 80)
    one.edit(sched="wrr")
    ipvs.flush()
    assert [s["port"] for s in ipvs.services()] == [80] and len(one.servers()) == 1
    ipvs.flush()
    l4lb.set_services([genl.batch_entry(VIP, 80, servers=["10.0.0.12"])], REPLACE)     # not protected any more
    assert len(one.servers()) == 1
    ipvs.flush()
    assert ipvs.services() == [] and other


def test_the_namespace_ends(director, ipvs, l4lb):
    """A protected service does not hold its namespace, nor the module."""
    l4lb.claim(ipvs.service(VIP, 80), protected=1)


# ---- ipvsctl ----

@pytest.mark.smoke
def test_words(director):
    """Shown, saved in each form, and restored."""
    director.ctl(f"svc add tcp {VIP}:80 owner web protected on server 10.0.0.11")
    (one,) = director.json("show")["services"]
    assert (one["owner"], one["protected"]) == ("web", "on")
    assert "owner web" in director.ctl("show -o name,options")
    saved = {form: director.ctl(f"save -F {form}") for form in ("ipvsadm", "json", "yaml")}
    assert "    owner: web\n" in saved["yaml"] and "protected" in saved["yaml"]
    said = director.ctl(f"svc delete tcp {VIP}:80", code=3)
    assert "the service is protected" in said and "off" not in said and len(said.splitlines()) == 1
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "flush", "--yes"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and done.stderr == "ipvsctl: 1 protected service stays\n"
    for form, text_ in saved.items():
        director.ctl(f"svc change tcp {VIP}:80 owner none protected off")
        director.ctl(f"svc delete tcp {VIP}:80")
        director.ctl("restore", stdin=text_)
        assert director.ctl(f"save -F {form}") == text_
    for bad in "owner", "owner 1234567890123456", "owner a/b", "protected yes", "owner a owner b":
        director.ctl(f"svc change tcp {VIP}:80 {bad}", code=2)


def test_ipvsadm_and_protected(director):
    """ipvsadm -C leaves it and succeeds; -D says why not."""
    director.ctl(f"svc add tcp {VIP}:80 protected on")
    director.ctl(f"svc add tcp {VIP}:81")
    with director.ns.enter():
        subprocess.run(["ipvsadm", "-C"], check=True, timeout=60)
        done = subprocess.run(["ipvsadm", "-D", "-t", f"{VIP}:80"], capture_output=True, text=True, check=False,
                              timeout=60)
    assert done.returncode and "busy" in done.stderr.lower()
    assert len(director.state()) == 1


@pytest.mark.smoke
def test_prune_keeps_to_the_owner(director):
    """Others' services stay, and those of nobody; so do the owner's own protected ones."""
    director.build(f"svc add tcp {VIP}:81 owner web\nsvc add tcp {VIP}:82 owner dns\nsvc add tcp {VIP}:83\n"
                   f"svc add tcp {VIP}:84 owner web protected on")
    assert "- service tcp 192.0.2.10:81" in director.ctl("diff --prune -", stdin=OURS, code=1, out=True)
    said = director.ctl("apply --prune -", stdin=OURS)
    assert "1 added, 0 changed, 1 removed" in said and "left alone, not in the file: 3 services" in said
    owners = {s["port"]: s.get("owner") for s in director.json("show")["services"]}
    assert owners == {80: "web", 82: "dns", 83: None, 84: "web"}
    assert director.ctl("diff --prune -", stdin=OURS) == ""
    # A file without owner prunes those without owner.
    director.ctl("apply --prune -", stdin="version: 1\nservices: []\n")
    assert len(director.state()) == 3
    director.ctl("apply --prune - --owner dns", stdin="version: 1\nservices: []\n")
    assert {s["port"] for s in director.json("show")["services"]} == {80, 84}


def test_nobody_takes_over(director):
    """A file of another owner, or of none, that names the service is refused as a whole."""
    director.ctl("apply -", stdin=OURS)
    state = director.state()
    for words, who in (("apply - --owner dns", "dns"), ("diff - --owner dns", "dns")):
        said = director.ctl(words, stdin=FILE, code=3)
        assert f"belongs to owner web, not to {who}" in said and \
            re.search(r"standard input:5:\d+: tcp 192.0.2.10:80.*\n +5 \| ", said)
    assert "a file without owner" in director.ctl("apply --prune -", stdin=FILE, code=3)
    assert director.state() == state
    director.ctl("apply - --owner web", stdin=FILE)
    assert {s["owner"] for s in director.json("show")["services"]} == {"web"}
    # An owner can take what is nobody's.
    director.ctl("svc change fwmark 7 owner none")
    director.ctl("apply - --owner web", stdin=FILE)
    assert {s["owner"] for s in director.json("show")["services"]} == {"web"}


def test_rollback_of_a_protected_service(director):
    director.ctl("apply -", stdin=OURS.replace("servers:", "protected: on, servers:"))
    director.ctl("rollback")
    assert director.state() == []


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_ip_vs_has_no_owners(director):
    """It cannot keep them: that is said, and nothing is sent."""
    for words, stdin in ((f"svc add tcp {VIP}:80 owner web", None), (f"svc add tcp {VIP}:80 protected on", None),
                         ("apply -", OURS), ("apply - --owner web", FILE)):
        said = director.ctl(words, stdin=stdin, code=7)
        assert "have no such setting" in said and director.state() == []
