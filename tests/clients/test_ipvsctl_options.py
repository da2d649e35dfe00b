# SPDX-License-Identifier: GPL-2.0
"""ipvsctl against a kernel: l4lb in all tests, in-tree ip_vs in some.

What the kernel holds afterwards is read back with our own netlink client
(lab.genl), not with ipvsctl. Starting a program is slow on an emulated
machine, so a test starts few of them and the tests without packets share one
namespace.
"""

import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
from lab import genl
from lab.backend import both_modules
from lab.ctl import IPVSCTL, VIP, WEB

TAKES = 250
NO_MODULE = True        # `module` below loads both, one after the other


def values(director, service=None):
    """The options of a service as the kernel has them; of WEB if none is given."""
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as l4lb:
        return l4lb.values(service or ipvs.service(VIP, 80, add=False))


DAY = 86400
DEFAULTS = {"expire": DAY, "entries": 16384, "shrink": DAY}


@pytest.mark.smoke
@pytest.mark.tool
def test_options_are_set_shown_and_kept(director):
    director.ctl("svc add", *WEB, "scheduler lblcr option expire 300 option shrink 60 "
                 "server 10.0.0.11")
    assert values(director) == DEFAULTS | {"expire": 300, "shrink": 60}
    assert "option expire 300 option shrink 60" in director.ctl("show")
    assert "option expire 300 option shrink 60" in director.ctl("service show", *WEB)
    for words in ("show", "show tcp:192.0.2.10:80", "save -F json"):
        assert director.json(words)["services"][0]["options"] == {"expire": 300, "shrink": 60}
    director.ctl("svc change", *WEB, "option expire 400")
    assert values(director) == DEFAULTS | {"expire": 400, "shrink": 60}
    director.ctl("svc change", *WEB, "persistent 60")
    director.ctl("svc change", *WEB, "scheduler lblcr")
    director.ctl("rs change", *WEB, "10.0.0.11 weight 4")
    assert values(director) == DEFAULTS | {"expire": 400, "shrink": 60}
    # A default is not shown, even if it was set explicitly.
    director.ctl("svc change", *WEB, "option shrink", str(DAY), "option entries 7")
    assert director.json("show")["services"][0]["options"] == {"expire": 400, "entries": 7}
    # A new scheduler starts with its own defaults; the options given are its own.
    director.ctl("svc change", *WEB, "scheduler lblc option entries 8")
    assert values(director) == {"expire": DAY, "entries": 8}
    director.ctl("sched set", *WEB, "lblcr")
    assert values(director) == DEFAULTS
    director.ctl("svc change", *WEB, "option entries 9")
    director.ctl("svc replace", *WEB, "scheduler lblcr option expire 5")
    assert values(director) == DEFAULTS | {"expire": 5}
    director.ctl("svc replace", *WEB, "scheduler lblcr")
    assert values(director) == DEFAULTS
    assert "options" not in director.json("show")["services"][0]


def test_only_the_option_is_sent(director):
    """The other settings of the service are not written again: that could undo a
    change which another program makes at the same time."""
    director.ctl("svc add", *WEB, "scheduler lblc")
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "-vv", "svc", "change", *WEB, "option", "expire", "5"],
                              capture_output=True, text=True, check=True)
    _, sent = done.stderr.split("set service tcp 192.0.2.10:80 scheduler lblc option expire 5\n")
    assert sent.count("BEGIN NETLINK MESSAGE") == 3     # get options, set them, get policy
    assert values(director)["expire"] == 5


def test_bad_options_change_nothing(director):
    director.ctl("svc add", *WEB, "scheduler lblcr option expire 300")
    director.ctl("svc add udp 192.0.2.20:53 scheduler rr")
    before, had = director.state(), values(director)
    new = "svc add tcp 192.0.2.30:80 server 10.0.0.11 "
    for words, code, why in (
            ("scheduler lblc option expyre 5", 2,
             'unknown option of scheduler lblc "expyre"; known: expire entries'),
            ("scheduler lblc option shrink 5", 2, "known: expire entries"),
            ("scheduler lblc option expire 0", 2,
             'bad expire "0": write a whole number from 1 to 1209600 (seconds idle'),
            ("scheduler lblc option expire 1209601", 2, 'bad expire "1209601"'),
            ("scheduler lblc option expire 5 option entries 65537", 2, 'bad entries "65537"'),
            ("scheduler rr option expire 5", 2, "scheduler rr has no options"),
            ("option expire 5", 2, "scheduler wlc has no options"),
            ("scheduler nosuch option expire 5", 4, 'scheduler "nosuch" not found')):
        add = new.replace(" server", f" {words} server")
        change = f"svc change tcp 192.0.2.10:80 {words}"
        lines = [add, "-n " + add, change] if "scheduler" in words else [add]
        for line in lines:
            assert why in director.ctl(line, code=code), line
            assert (director.state(), values(director)) == (before, had), line
    assert "did you mean: expire" in director.ctl(
        "svc change tcp 192.0.2.10:80 option expyre 5", code=2)
    director.ctl("svc change udp 192.0.2.20:53 option expire 5", code=2)
    director.ctl("svc change tcp 192.0.2.10:81 option expire 5", code=4)
    assert director.ctl("-n svc change tcp 192.0.2.10:80 option entries 5") == \
        "would set service tcp 192.0.2.10:80 scheduler lblcr option expire 300 option entries 5\n"
    assert (director.state(), values(director)) == (before, had)


@pytest.mark.parametrize("form", ["json", "ipvsadm", "show"])
def test_options_are_saved_and_restored(director, form, tmp_path):
    director.build("svc add tcp 192.0.2.10:80 scheduler lblcr option expire 5 option entries 6\n"
                   "svc add fwmark 7 inet6 scheduler lblc option entries 8\n"
                   "svc add tcp 192.0.2.30:80 scheduler lblc\n")

    def saved():
        return director.ctl("-j show" if form == "show" else f"save -F {form}")

    def options():
        return {s["id"]: s.get("options") for s in director.json("show")["services"]}
    before, text = options(), saved()
    assert before == {"tcp:192.0.2.10:80": {"expire": 5, "entries": 6},
                      "fwm6:7": {"entries": 8}, "tcp:192.0.2.30:80": None}
    director.ctl("svc flush --yes")
    assert "services: 3 added" in director.ctl("restore", stdin=text)
    assert options() == before and saved() == text
    assert "0 added, 0 changed, 3 unchanged" in director.ctl("restore", stdin=text)
    # Options that the file omits get their default, the others their value again.
    director.ctl("svc change tcp 192.0.2.30:80 option expire 9")
    director.ctl("svc change fwm6:7 option entries 9")
    assert "0 added, 2 changed, 1 unchanged" in director.ctl("restore", stdin=text)
    assert options() == before
    # A file is read to its end before anything is changed.
    bad = text.replace("192.0.2.10", "192.0.2.44").replace("entries", "enties")
    director.ctl("svc change tcp 192.0.2.30:80 option expire 9")
    assert 'unknown option of scheduler lblcr "enties"' in director.ctl(
        "restore", stdin=bad, code=2)
    assert options() == before | {"tcp:192.0.2.30:80": {"expire": 9}}


def test_ipvsadm_stops_at_saved_options(director):
    """ipvsadm knows neither options nor comments, but they come last, after the rules."""
    director.build("svc add tcp 192.0.2.10:80 scheduler lblc option expire 5\n"
                   "svc add tcp 192.0.2.11:80 scheduler rr server 10.0.0.11\n")
    rules = director.ctl("save")
    known, l4lb = rules.splitlines(True)[:-1], rules.splitlines(True)[-1]
    assert l4lb == "#ipvsctl option tcp 192.0.2.10:80 expire 5\n"
    director.ctl("svc flush --yes")
    assert director.ns.run(["ipvsadm", "-R"], text_input=rules, check=False).returncode
    assert director.ctl("save") == "".join(known)


@both_modules
def test_ip_vs_has_no_options(director, module):
    """ipvsctl says so in one line; it can still set and show schedulers of ip_vs."""
    rules = "-A -t 192.0.2.10:80 -s lblc\n#ipvsctl option tcp:192.0.2.10:80 expire 5\n"
    if module.is_l4lb:
        director.ctl("restore", stdin=rules)
        assert values(director)["expire"] == 5
        return
    for words in ("svc add tcp 192.0.2.10:80 scheduler lblc option expire 5", "restore"):
        said = director.ctl(words, code=7, stdin=rules if words == "restore" else None)
        assert "option expire: the schedulers of ip_vs have no options" in said
    assert not director.json("show")["services"]
    director.ctl("svc add", *WEB, "scheduler rr")
    director.ctl("svc change", *WEB, "option expire 5", code=7)
    assert director.ctl("sched show rr") == "rr: round robin: each server in turn\n"
    assert "not found" in director.ctl("sched show nosuch", code=4)
    # ip_vs accepts and keeps flags that a scheduler does not have.
    director.ctl("svc change", *WEB, "flags port")
    director.ctl("svc change", *WEB, "scheduler lc")
    assert director.json("show")["services"][0]["flags"] == ["flag-2"]


# -- per-service overrides of namespace settings

def policy(director):
    """The kernel's policy settings of WEB that are not the default."""
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as l4lb:
        found = l4lb.policy(ipvs.service(VIP, 80, add=False))
    return {name: value for name, value in found.items() if value}


POLICY = "timeout tcp 7200 udp 30 on-idle reset on-loss move on-drain keep guard drop"


def test_bands_are_set_shown_and_kept(director):
    director.ctl("svc add", *WEB, "priority las 16K,1M server 10.0.0.11")
    assert policy(director) == {"priority": 1, "las_bytes_0": 16384, "las_bytes_1": 1 << 20}
    assert "priority las 16K,1M" in director.ctl("show")
    service = director.json("save -F json")["services"][0]
    assert (service["priority"], service["las_bytes"]) == ("las", [16384, 1 << 20])
    assert director.json("stats")["services"][0]["bands"] == [
        {"below": end, "out_packets": 0, "out_bytes": 0} for end in (16384, 1 << 20, None)]
    rows = [line.split("  ")[0].strip(" ├└─│") for line in director.ctl("stats").splitlines()]
    assert rows[-3:] == ["band 0, below 16K", "band 1, below 1M", "band 2, the rest"]
    for form in ("", "-F json"):
        saved = director.ctl("save", form)
        before = policy(director)
        director.ctl("svc flush --yes")
        director.ctl("restore", stdin=saved)
        assert policy(director) == before
    director.ctl("svc change", *WEB, "priority las")
    assert policy(director) == {"priority": 1}
    ends = [b["below"] for b in director.json("stats")["services"][0]["bands"]]
    assert ends == [16 << 10, 128 << 10, 1 << 20, None]
    director.ctl("svc change", *WEB, "priority off")
    assert policy(director) == {}


NUMBERS = {"ramp": 5, "limit_rate": 5000, "limit_burst": 500, "limit_conns": 200000}


def test_limits_and_ramp_are_set_shown_and_kept(director):
    words = "ramp 5 limit-rate 5000 limit-burst 500 limit-conns 200000 limit-reply reset"
    director.ctl("svc add", *WEB, words, "server 10.0.0.11")
    everything = NUMBERS | {"limit_reply": 1}
    assert policy(director) == everything
    assert words in director.ctl("show")
    for form in ("", "-F json"):
        saved = director.ctl("save", form)
        director.ctl("svc flush --yes")
        director.ctl("restore", stdin=saved)
        assert policy(director) == everything
    shown = director.json("show")["services"][0]
    assert {k: shown[k] for k in NUMBERS} == NUMBERS and shown["limit_reply"] == "reset"
    assert director.json("stats")["services"][0]["limited"] == 0
    assert re.search(r"refused by a limit +0 *\n", director.ctl("stats"))
    assert re.search(r'ipvs_service_limited_total\{[^}]*\} 0\n', director.ctl("-F prometheus stats"))
    time.sleep(5.1)     # a service that is not new
    director.ctl("rs add to", *WEB, "10.0.0.12")
    assert re.search(r"10\.0\.0\.12.* ramping \d+ %", director.ctl("show"))
    server = director.json("show")["services"][0]["servers"][1]
    assert server["state"] == "ramping" and 0 <= server["ramp_percent"] < 100
    shown = director.ctl("-j show")
    director.ctl("restore", stdin=shown)
    director.ctl("svc change", *WEB, "ramp off limit-rate off limit-burst off limit-conns off limit-reply drop")
    assert policy(director) == {}


def test_lazy(director):
    """conn-state is set, shown and kept, also when another program has changed the scheduler meanwhile; what
    cannot work is refused and changes nothing."""
    director.ctl("svc add", *WEB, "scheduler mh conn-state lazy server 10.0.0.11")
    assert policy(director) == {"conn_state": 1} and "conn-state lazy" in director.ctl("show")
    assert director.json("show")["services"][0]["conn_state"] == "lazy"
    for words in ("latency on", "limit-rate 5", "limit-conns 5"):
        assert "conn-state lazy excludes latency" in director.ctl("svc change", *WEB, words, code=2)
    director.ctl("compat -E -t", WEB[1], "-s rr")
    for form in ("", "-F json"):
        saved = director.ctl("save", form)
        director.ctl("svc flush --yes")
        director.ctl("restore", stdin=saved)
        assert policy(director) == {"conn_state": 1}
    director.ctl("svc change", *WEB, "conn-state eager")
    assert policy(director) == {}
    said = director.ctl("svc change", *WEB, "conn-state lazy", code=7)
    assert "needs a scheduler that hashes: mh, sh or dh" in said
    assert policy(director) == {}


@pytest.mark.smoke
@pytest.mark.tool
def test_policy_is_set_shown_and_kept(director):
    director.ctl("svc add", *WEB, "scheduler rr timeout tcp 2h udp 30s on-idle reset on-loss move "
                 "on-drain keep guard drop server 10.0.0.11")
    everything = {"tcp": 7200, "udp": 30, "on_idle": 1, "on_loss": 2, "on_drain": 1, "guard": 2}
    assert policy(director) == everything
    assert POLICY in director.ctl("show")
    for words in ("show tcp:192.0.2.10:80", "save -F json"):
        assert {k: v for k, v in director.json(words)["services"][0].items()
                if k in ("timeout", "on_idle", "on_loss", "on_drain", "guard")} == {
            "timeout": {"tcp": 7200, "udp": 30}, "on_idle": "reset", "on_loss": "move",
            "on_drain": "keep", "guard": "drop"}
    director.ctl("svc change", *WEB, "persistent 60")
    director.ns.run("ipvsadm -E -t 192.0.2.10:80 -s wlc")
    assert policy(director) == everything
    director.ctl("svc change", *WEB, "timeout udp default tcp-fin 9 guard off scheduler rr")
    assert policy(director) == {"tcp": 7200, "tcp_fin": 9, "on_idle": 1, "on_loss": 2,
                                "on_drain": 1}
    director.ctl("svc replace", *WEB, "on-loss reset")
    assert policy(director) == {"on_loss": 3}
    director.ctl("svc replace", *WEB)
    assert policy(director) == {} and "on_loss" not in director.json("show")["services"][0]


def test_only_the_policy_is_sent(director):
    director.ctl("svc add", *WEB, "scheduler rr")
    with director.ns.enter():
        done = subprocess.run([IPVSCTL, "-vv", "svc", "change", *WEB, "guard", "drop"],
                              capture_output=True, text=True, check=True)
    _, sent = done.stderr.split("set service tcp 192.0.2.10:80 scheduler rr guard drop\n")
    # get options, get policy, set policy
    assert sent.count("BEGIN NETLINK MESSAGE") == 3
    assert policy(director) == {"guard": 2}


POLICY_C = (Path(__file__).resolve().parents[2] / "tools/ipvsctl/policy.c").read_text("utf-8")


def table(name):
    """The rows of a table in policy.c: lists of words, constants and names of other tables."""
    body = re.search(rf"\b{name}\[\] = \{{(.*?)\}};", POLICY_C, re.S)[1]
    return [re.findall(r"\w[\w-]*", row) for row in re.findall(r"\{(.*?)\}", body, re.S) or [body]]


def policy_changes():
    """(words for `service change`, the setting, its value) for each word of the tables; the last
    of each setting is its default."""
    for word, key, _, values in table("choices"):
        *words, _ = table(values)[0]
        yield from ((f"{word} {words[n]}", key, n) for n in [*range(1, len(words)), 0])
    for word, key, *_ in table("numbers"):
        yield from ((f"{word} 7", key, 7), (f"{word} off", key, 0))
    for word, key, _ in table("timeouts"):
        yield from ((f"timeout {word} 7", key, 7), (f"timeout {word} default", key, 0))
    yield from (("snat 10.0.0.1", "snat", ("10.0.0.1", "10.0.0.1")), ("snat off", "snat", 0),
                ("owner web", "owner", "web"), ("owner none", "owner", ""),
                ("shadow wlc", "shadow", "wlc"), ("shadow none", "shadow", ""))


def everything(director):
    """All that the kernel knows of WEB and of its only server, as another client reads it."""
    (_, svc, (srv,)), = director.state()
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as l4lb:
        web = ipvs.service(VIP, 80, add=False)
        reply = dict(genl.attributes(l4lb.request(
            genl.GET_POLICY, genl.attr(genl.L_SERVICE, web.ident))[0][1]))
        owner, protected = l4lb.claim(web)
        return svc | l4lb.policy(web) | {"server": srv, "tunnels": web.tunnels(), "options": l4lb.values(web),
                                         "owner": owner, "protected": protected,
                                         "shadow": reply.get(genl.L_SHADOW, b"").rstrip(b"\0").decode()}


def changed(before, after):
    return {key: value for key, value in after.items() if value != before.get(key)}


def test_each_policy_word_changes_what_it_names(director):
    """All are set, one after the other, and then set back, so that each is changed beside others. Two
    are set back at once: conn-state excludes some, and a protected service stays for the next test."""
    director.ctl("svc add", *WEB, "scheduler mh flags fallback server 10.0.0.11 nat weight 5 "
                 "max-conns 60 min-conns 20")
    seen = set()
    changes = list(policy_changes())
    for words, key, value in sorted(changes, key=lambda c: c[1] not in ("conn_state", "protected") and
                                    (1 if c[2] else 2)):
        before = everything(director)
        director.ctl("svc change", *WEB, words)
        found = changed(before, everything(director))
        # Its sizes come with it, and go.
        bands = {name for name in found if name.startswith("las_bytes")} if key == "priority" else set()
        assert {name: what for name, what in found.items() if name not in bands} == {key: value}, words
        seen.add(key)
    assert set(genl.POLICY) - seen <= {name for name in genl.POLICY if name.startswith("las_bytes")}


def test_each_tunnel_word_changes_what_it_names(director):
    """Another type starts from its own defaults: another one's port and checksum mean nothing to it."""
    director.ctl("svc add", *WEB, "scheduler rr on-loss move server 10.0.0.11 tun type gue port 6080 csum "
                 "weight 5 max-conns 60 min-conns 20")
    for words, tunnel in (("port 7000", (1, 7000, 1)), ("no-csum", (1, 7000, 0)), ("remcsum", (1, 7000, 2)),
                          ("csum", (1, 7000, 1)), ("type gre", (2, 0, 0)), ("csum", (2, 0, 1)),
                          ("type ipip", (0, 0, 0))):
        before = everything(director)
        director.ctl("rs change", *WEB, "10.0.0.11", words)
        assert changed(before, everything(director)) == {"tunnels": {"10.0.0.11": tunnel}}, words
    director.ctl("rs change", *WEB, "10.0.0.11 type gre csum")
    before = everything(director)
    director.ctl("rs change", *WEB, "10.0.0.11 weight 9")
    assert changed(before, everything(director)) == {"server": before["server"] | {"weight": 9}}


@pytest.mark.parametrize("form", ["save -F json", "save", "-j show"])
def test_policy_is_saved_and_restored(director, form):
    rules = ("-A -t 192.0.2.10:80 -s rr\n-A -f 7 -6 -s rr\n-A -t 192.0.2.30:80 -s rr\n"
             f"#ipvsctl service tcp 192.0.2.10:80 {POLICY}\n"
             "#ipvsctl service fwm6:7 timeout sctp 5\n")
    director.ctl("restore", stdin=rules)
    before, text = policy(director), director.ctl(form)
    assert len(before) == 6
    with genl.Ipvs(director.ns) as ipvs, genl.L4lb(director.ns) as l4lb:
        ipvs.flush()
        assert "services: 3 added" in director.ctl("restore", stdin=text)
        assert policy(director) == before and director.ctl(form) == text
        mark = ipvs.service(fwmark=7, af=socket.AF_INET6, add=False)
        l4lb.set_policy(mark, sctp=6)
        l4lb.set_policy(ipvs.service("192.0.2.30", 80, add=False), guard=2)
        assert "0 added, 2 changed, 1 unchanged" in director.ctl("restore", stdin=text)
        assert l4lb.policy(mark)["sctp"] == 5 and len(l4lb.policies()) == 2


@both_modules
def test_ip_vs_has_no_policy(director, module):
    """ipvsctl says so in one line."""
    rules = "-A -t 192.0.2.10:80 -s rr\n#ipvsctl service tcp:192.0.2.10:80 on-loss move\n"
    if module.is_l4lb:
        director.ctl("restore", stdin=rules)
        assert policy(director) == {"on_loss": 2}
        return
    for words in ("svc add tcp 192.0.2.10:80 scheduler rr on-loss move", "restore"):
        said = director.ctl(words, code=7, stdin=rules if words == "restore" else None)
        assert '"on-loss move": the services of ip_vs have no such setting' in said
    assert not director.json("show")["services"]
    director.ctl("svc add", *WEB, "scheduler rr on-loss default")
    director.ctl("svc change", *WEB, "guard drop", code=7)
    director.ctl("svc change", *WEB, "guard off")


def test_schedulers_are_described(director):
    known = {s["name"]: s for s in director.json("sched list")["schedulers"]}
    assert known["rr"]["options"] == known["rr"]["flags"] == []
    for name in ("lblcr", "mh"):
        one = director.json("scheduler show", name)["scheduler"]
        assert one["loaded"] and one["name"] == name
    assert one["flags"] == ["fallback", "port"]
    assert {o["name"] for o in one["options"]} <= {"order", "key"}
    lblcr = director.json("scheduler show lblcr")["scheduler"]
    assert lblcr["options"][2] == {
        "name": "shrink", "default": DAY, "min": 1, "max": 14 * DAY,
        "what": "seconds without a change until a set loses a server"}
    listed = director.ctl("scheduler list").splitlines()
    (row,) = [line for line in listed if line.startswith("lblcr ")]
    assert "expire entries shrink" in row
    text = director.ctl("scheduler show lblcr").splitlines()
    assert text[0].startswith("lblcr: locality")
    assert text[1].split() == ["OPTION", "DEFAULT", "MIN", "MAX", "WHAT"]
    assert text[2].split()[:4] == ["expire", "86400", "1", "1209600"]
    assert director.ctl("scheduler show sh").splitlines()[1] == "flags: fallback,port"
    assert "not found" in director.ctl("scheduler show nosuch", code=4)
    assert director.ctl("scheduler show") == director.ctl("scheduler list")


def test_flags_go_with_their_scheduler(director):
    director.ctl("svc add", *WEB, "scheduler sh flags fallback,port persistent 60 "
                 "server 10.0.0.11")
    before = director.state()
    for words, why in (("flags flag-3", "scheduler sh does not have flags flag-3; it has: "
                        "fallback,port"),
                       ("scheduler rr flags port", "scheduler rr does not have flags flag-2; "
                        "it has: none")):
        assert why in director.ctl("svc change", *WEB, words, code=2)
        assert director.state() == before
    director.ctl("svc change", *WEB, "scheduler mh")
    assert director.json("show")["services"][0]["flags"] == ["fallback", "port"]
    director.ctl("svc change", *WEB, "scheduler rr")
    got = director.json("show")["services"][0]
    assert (got["scheduler"], got["flags"], got["persistent"]) == ("rr", [], 60)
    director.ctl("svc change", *WEB, "scheduler sh flags port")
    director.ctl("sched set", *WEB, "wlc")
    assert director.json("show")["services"][0]["flags"] == []
    for words in ("svc change tcp 192.0.2.10:80 flags fallback",
                  "svc add tcp 192.0.2.11:80 scheduler rr flags flag-1",
                  "svc replace tcp 192.0.2.11:80 flags flag-1"):
        assert "does not have flags flag-1" in director.ctl(words, code=2)
    # A file may come from another program, which could set them.
    rules = "-A -t 192.0.2.30:80 -s rr\n-A -t 192.0.2.31:80 -s rr -b flag-2\n"
    director.ctl("restore", stdin=rules)
    assert "-s rr -b flag-2" in director.ctl("save -F ipvsadm")
