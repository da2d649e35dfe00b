# SPDX-License-Identifier: GPL-2.0
"""ipvsctl rollback, apply --confirm and confirm: a change is taken back, by an order or
because nobody has confirmed it; never what somebody else has changed since."""

import json
import os
import random
import signal
import subprocess
import time

import pytest
from lab import genl
from lab.backend import both_modules
from lab.ctl import IPVSCTL
from lab.rows import amount
from test_apply import FILE, some_file

TAKES = 60
NO_MODULE = True        # `module` loads both, one after the other


@pytest.fixture
def kept(director, tmp_path, monkeypatch):
    """The director, with a place for what rollback needs."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return director


def files(tmp_path):
    return sorted(path.name for path in (tmp_path / "state").rglob("*") if path.is_file())


@pytest.mark.smoke
@pytest.mark.tool
@both_modules
def test_rollback(kept, module, tmp_path):
    """One apply after the other, newest first; timeouts, too; others' services stay."""
    kept.ctl("svc add tcp 198.51.100.1:80 server 10.0.0.9")
    states, times = [kept.state()], [kept.json("timeout show")["timeouts"]]
    for text in (FILE, FILE.replace("weight 3", "weight 5").replace("tcp: 10m", "tcp: 20m"),
                 FILE.replace("10.0.0.11:8080", "10.0.0.13:8080")):
        kept.ctl("apply -", stdin=text)
        states.append(kept.state())
        times.append(kept.json("timeout show")["timeouts"])
    assert kept.ctl("apply -", stdin=text).startswith("no changes")     # is not kept
    assert files(tmp_path) == ["1.json", "2.json", "3.json"]
    assert all(path.stat().st_mode & 0o77 == 0 for path in (tmp_path / "state").rglob("*"))
    assert "would " in kept.ctl("-n rollback") and kept.state() == states[3]
    said = kept.ctl("rollback")
    assert "servers:  0 added, 1 changed, 1 removed\n" in said or "removed" in said
    assert (kept.state(), kept.json("timeout show")["timeouts"]) == (states[2], times[2])
    kept.ctl("svc add tcp 198.51.100.2:80")     # somebody else's
    said = kept.json("rollback 2")["rollback"]
    assert said["applies"] == 2 and said["services"]["removed"] == 3
    assert kept.json("timeout show")["timeouts"] == times[0]
    kept.ctl("svc del tcp 198.51.100.2:80")
    assert kept.state() == states[0] and files(tmp_path) == []
    assert "no apply is known" in kept.ctl("rollback", code=4)


# Settings, most of them once alone in a service.
KINDS = """\
version: 1
services:
  - {service: "tcp 192.0.2.1:80", servers: [10.0.0.1 weight 0, 10.0.0.2 dr, 10.0.0.3:8080 weight 65535]}
  - {service: "sctp 192.0.2.1:80", scheduler: wrr, servers: [10.0.0.1 max-conns 7]}
  - {service: "udp [2001:db8::1]:53", scheduler: rr, servers: ["[2001:db8::2] max-conns 9 min-conns 3"]}
  - {service: "udp [2001:db8::1]:54", servers: ["[2001:db8::2] dr", "[2001:db8::3] tun"]}
  - {service: fwmark 3, servers: [10.0.0.2, 10.0.0.1]}
  - {service: fwmark 4 inet6, servers: ["[2001:db8::2]"]}
  - {service: "tcp 192.0.2.2:80", scheduler: wlc, flags: [flag-1], servers: [10.0.0.1]}
  - {service: "tcp 192.0.2.3:80", flags: [flag-3], servers: [10.0.0.1]}
  - {service: "tcp 192.0.2.9:80", flags: [flag-2], servers: [10.0.0.1]}
  - {service: "tcp 192.0.2.10:80", servers: [10.0.0.1 tun type gue port 6080 csum]}
  - {service: "udp 192.0.2.4:80", ops: true, servers: [10.0.0.1]}
  - {service: "tcp 192.0.2.5:80", persistent: 300, servers: [10.0.0.1]}
  - {service: "tcp 192.0.2.6:0", persistent: 360}
"""
OURS = """\
  - {service: "tcp 192.0.2.7:80", scheduler: mh, options: {order: 1}, servers: [10.0.0.1]}
  - {service: "tcp 192.0.2.8:80", limit-conns: 100, servers: [10.0.0.1]}
"""


@both_modules
def test_each_kind_comes_back(kept, module):
    """Services whose settings are few are kept in a form of their own. To keep them does not
    change the order of the servers in the kernel, which is the file's."""
    kept.ctl("apply -", stdin=KINDS + (OURS if module.name == "l4lb" else ""))
    with genl.Ipvs(kept.ns) as ipvs:
        assert [one["addr"] for one in ipvs.service(fwmark=3, add=False).servers()] == ["10.0.0.1", "10.0.0.2"]
    state, saved = kept.state(), kept.ctl("save -F json")
    kept.ctl("apply --prune -", stdin="version: 1\nservices: [{service: fwmark 9}]\n")
    kept.ctl("rollback")
    assert (kept.state(), kept.ctl("save -F json")) == (state, saved)


@both_modules
@pytest.mark.parametrize("change, shown", [
    ("server change tcp 192.0.2.10:80 10.0.0.11:8080 weight 9", "weight 3 -> 9"),
    ("server delete tcp 192.0.2.10:80 10.0.0.12:8080", "-   server 10.0.0.12:8080"),
    ("server add fwmark 7 10.0.0.22", "+   server 10.0.0.22"),
    ("service change fwmark 7 scheduler rr", "+   scheduler rr"),
    ("service delete fwmark 7", "- service fwmark 7"),
    ("timeout set tcp 700", "+ timeout tcp 700")])
def test_rollback_is_refused(kept, module, change, shown):
    """What was applied was changed since: the difference is shown, and nothing happens."""
    kept.ctl("apply -", stdin=FILE)
    kept.ctl(change)
    before = kept.state()
    argv = [IPVSCTL, "rollback"]
    with kept.ns.enter():
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1 and shown in done.stdout
    assert "was changed since" in done.stderr and "force" not in done.stderr
    assert kept.state() == before
    said = json.loads(kept.ctl("-j rollback", code=1, out=True))["changed_since"]
    assert any(shown in line for line in said)


def test_two_of_three(kept, module):
    """The first step succeeds, the second is refused: that is said."""
    kept.ctl("apply -", stdin=FILE)
    kept.ctl("server change fwmark 7 10.0.0.21:0 weight 1")
    kept.ctl("apply -", stdin="version: 1\nservices: [{service: 'tcp 192.0.2.11:80'}]\n")
    said = kept.ctl("rollback 2", code=8)
    assert "1 of 2 were taken back before this one" in said
    assert len(kept.state()) == 3


@both_modules
def test_random_histories(kept, module, request, seed):
    """Whatever was applied, with or without --prune: rollback gives what was there."""
    rng = random.Random(seed)
    for _ in range(amount(request.config, few=4, all=60)):
        kept.ctl("apply --prune -", stdin=some_file(rng))
        before = kept.state()
        said = kept.ctl(f"apply -{rng.choice((' --prune', ''))}", stdin=some_file(rng))
        if not said.startswith("no changes"):
            kept.ctl("rollback")
            assert kept.state() == before


def test_no_more_than_sixteen(kept, module, tmp_path):
    text = "version: 1\nservices: [{{service: 'tcp 192.0.2.10:80', servers: [10.0.0.1 weight {}]}}]\n"
    for weight in range(1, 20):
        kept.ctl("apply -", stdin=text.format(weight))
    assert sorted(files(tmp_path), key=lambda name: int(name.split(".")[0])) == \
        [f"{n}.json" for n in range(4, 20)]
    kept.ctl("rollback 16")
    assert kept.state()[0][2][0]["weight"] == 3 and files(tmp_path) == []


def test_keys_are_not_kept(kept, module, tmp_path):
    """A file has the number that the kernel made of a key; the service can be taken back."""
    key = "00112233445566778899aabbccddeeff"
    kept.ctl("apply -", stdin=f"version: 1\nservices: [{{service: 'tcp 192.0.2.10:80', scheduler: mh, "
             f"options: {{key: {key}}}}}]\n")
    assert key not in (next((tmp_path / "state").rglob("1.json"))).read_text(encoding="ascii")
    kept.ctl("rollback")
    assert kept.state() == []


@pytest.mark.parametrize("left", ["before the kernel", "after it"])
def test_a_run_that_was_killed(kept, module, tmp_path, left):
    """Its file has no name yet: the next run sees by the kernel whether it counts."""
    kept.ctl("apply -", stdin=FILE)
    state = kept.state()
    kept.ctl("apply -", stdin=FILE.replace("weight 3", "weight 5"))
    folder = next((tmp_path / "state").rglob("2.json")).parent
    (folder / "2.json").rename(folder / "new")
    if left == "before the kernel":
        kept.ctl("server change tcp 192.0.2.10:80 10.0.0.11:8080 weight 3")
    kept.ctl("rollback")
    assert kept.state() == (state if left == "after it" else [])


def test_half_a_file(kept, module, tmp_path):
    """A run was killed while it wrote: the next one says nothing of it, and its own mistakes."""
    kept.ctl("apply -", stdin=FILE)
    folder = next((tmp_path / "state").rglob("1.json")).parent
    for words, stdin, code in (("apply -", FILE.replace("weight 3", "weight 5"), 0), ("rollback", "", 0),
                               ("rollback", "", 0), ("rollback", "", 4)):
        (folder / "new").write_text('{"ipvsctl": {"sch', encoding="ascii")
        with kept.ns.enter():
            done = subprocess.run([IPVSCTL, *words.split()], input=stdin, capture_output=True, text=True,
                                  check=False, timeout=60)
        assert done.returncode == code and bool(done.stderr) == bool(code), done.stderr
        assert "damaged" not in done.stderr and not (folder / "new").exists()
    assert kept.state() == []


def test_a_damaged_file(kept, module, tmp_path):
    kept.ctl("apply -", stdin=FILE)
    state = kept.state()
    file = next((tmp_path / "state").rglob("1.json"))
    for text in "", "{", "[]", file.read_text(encoding="ascii")[:300]:
        file.write_text(text, encoding="ascii")
        assert "1.json" in kept.ctl("rollback", code=2)
        assert kept.state() == state


def test_no_room(director, module, monkeypatch):
    """apply works without history, and says so."""
    monkeypatch.setenv("STATE_DIRECTORY", "/proc/none")
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "apply", "-"], input=FILE, capture_output=True, text=True,
                              check=False, timeout=60)
    assert done.returncode == 0 and "rollback will not know" in done.stderr
    assert len(director.state()) == 3


# ---- --confirm ----

def gone(director, state, secs):
    """Waits until the director has that state again."""
    until = time.monotonic() + secs
    while director.state() != state:
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.smoke
@pytest.mark.tool
@both_modules
def test_confirm(kept, module, tmp_path):
    """Confirmed, the change stays and can be rolled back; meanwhile no other apply."""
    assert "no change waits" in kept.ctl("confirm", code=4)
    assert "to keep this, within 60 s: ipvsctl confirm\n" in kept.ctl("apply - --confirm 60s", stdin=FILE)
    state = kept.state()
    assert len(state) == 3
    for words in "apply -", "rollback", "apply - --confirm 5":
        said = kept.ctl(words, stdin="version: 1\nservices: []\n", code=5)
        assert "a change waits for its confirmation, for " in said and "ipvsctl confirm" in said
    assert kept.ctl("diff -", stdin=FILE) == "" and "s are left" in kept.ctl("-n confirm")
    assert kept.ctl("confirm") == "confirmed: the change stays\n"
    assert "no change waits" in kept.ctl("confirm", code=4)
    assert kept.state() == state and files(tmp_path) == ["1.json"]
    kept.ctl("apply - --confirm 60", stdin=FILE)        # nothing to do, nothing to confirm
    kept.ctl("rollback")
    assert kept.state() == []


@pytest.mark.waits
@both_modules
def test_not_confirmed(kept, module, tmp_path):
    """It is taken back, also if a server was changed meanwhile."""
    kept.ctl("apply -", stdin=FILE)
    state = kept.state()
    kept.json("apply --prune - --confirm 2", stdin="version: 1\nservices: [{service: 'tcp 192.0.2.11:80'}]\n")
    assert len(kept.state()) == 1
    kept.ctl("server add tcp 192.0.2.11:80 10.0.0.1")
    gone(kept, state, 10)
    assert files(tmp_path) == ["1.json"]
    assert "no change waits" in kept.ctl("confirm", code=4)
    kept.ctl("rollback")


@pytest.mark.waits
@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
def test_the_terminal_goes_away(kept, module, how):
    """The process group of the terminal gets a signal, at once or later: it makes no difference."""
    for wait in 0.0, 0.02, 0.05, 0.5:
        with kept.ns.enter():
            run = subprocess.Popen([IPVSCTL, "apply", "-", "--confirm", "1"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0)
        run.stdin.write(FILE.encode())
        run.stdin.close()
        time.sleep(wait)
        try:
            os.killpg(run.pid, how)
        except ProcessLookupError:
            pass
        run.stdout.close()
        run.stderr.close()
        run.wait(timeout=30)
        time.sleep(0.5)
        gone(kept, [], 10)
        assert "no change waits" in kept.ctl("confirm", code=4)


def test_a_refused_change_needs_no_confirmation(kept, module):
    """The exit status and the message come through; nothing waits."""
    bad = FILE + "  - service: udp 192.0.2.10:5060\n    persistent: 60\n    pe: nosuch\n"
    assert "nothing was changed" in kept.ctl("apply - --confirm 60", stdin=bad, code=4)
    assert "no change waits" in kept.ctl("confirm", code=4)
    assert "named twice" in kept.ctl("apply - --confirm 60", stdin="version: 1\nversion: 1\n", code=2)
    kept.ctl("-n apply - --confirm 60", stdin=FILE)
    assert kept.ctl("apply - --confirm 60 --detailed-exitcode", stdin=FILE, code=1, out=True)
    kept.ctl("confirm")


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_half_way_on_ip_vs(kept, module):
    """With --confirm, what was done before the refusal is taken back at once."""
    kept.ctl("svc add tcp 198.51.100.1:80")
    state = kept.state()
    bad = FILE + "  - service: udp 192.0.2.10:5060\n    persistent: 60\n    pe: none-such\n"
    assert "they were taken back" in kept.ctl("apply --prune - --confirm 60", stdin=bad, code=3)
    assert kept.state() == state


def test_namespaces_do_not_wait_for_each_other(kept, fresh, module):
    kept.ctl("apply - --confirm 60", stdin=FILE)
    fresh.ctl("apply - --confirm 60", stdin=FILE)
    fresh.ctl("confirm")
    with genl.Ipvs(kept.ns) as ipvs:
        assert len(ipvs.services()) == 3
    kept.ctl("confirm")
