# SPDX-License-Identifier: GPL-2.0
"""ipvsctl doctor and nftables: which rules surely drop a client's first packet, or a reply. A
program of the name nft prints them as nft -j does."""

import json

import fake
import pytest

VIP, SERVER = "192.0.2.10", "10.0.0.11"


def match(left, right, op="=="):
    return {"match": {"op": op, "left": left, "right": right}}


def field(header, name, right, op="=="):
    return match({"payload": {"protocol": header, "field": name}}, right, op)


def meta(key, right, op="=="):
    return match({"meta": {"key": key}}, right, op)


def state(*names):
    return match({"ct": {"key": "state"}}, names[0] if len(names) == 1 else list(names), "in")


def of(*items):
    return {"set": list(items)}


def prefix(addr, length):
    return {"prefix": {"addr": addr, "len": length}}


ACCEPT, DROP, RETURN, COUNT = {"accept": None}, {"drop": None}, {"return": None}, {"counter": None}
REJECT = {"reject": {"type": "icmpx", "expr": "port-unreachable"}}
WEB, HERE = field("tcp", "dport", 80), field("ip", "daddr", VIP)
LOCAL, KNOWN = meta("iifname", "lo"), state("established", "related")


def jump(chain, how="jump"):
    return {how: {"target": chain}}


# What doctor finds about tcp 192.0.2.10:80 (d: dropped, -: nothing), and the rules of input,
# whose policy is accept unless the first word is drop, and of the chain "other".
REQUESTS = [
    ("-", [[WEB, ACCEPT], [DROP]]),
    ("d", [[DROP]]), ("d", [[WEB, DROP]]), ("d", [[COUNT, WEB, COUNT, REJECT]]), ("d", ["drop"]),
    ("-", ["drop", [WEB, ACCEPT]]), ("-", []), ("-", [[WEB, COUNT]]),
    # what a new client's packet is not
    ("d", ["drop", [LOCAL, ACCEPT], [KNOWN, ACCEPT], [field("tcp", "dport", 22), ACCEPT]]),
    ("-", [[state("invalid"), DROP], [field("udp", "dport", 80), DROP], [field("ip6", "daddr", "::/0"), DROP]]),
    ("-", ["drop", [state("established", "new"), ACCEPT]]), ("-", ["drop", [state("new"), ACCEPT]]),
    ("d", ["drop", [meta("l4proto", "udp"), ACCEPT], [meta("nfproto", "ipv6"), ACCEPT]]),
    ("-", ["drop", [meta("l4proto", of("tcp", "udp")), ACCEPT]]),
    # what may let it pass, or drop it
    ("-", ["drop", [field("ip", "saddr", prefix("10.0.0.0", 8)), ACCEPT]]),
    ("-", [[field("ip", "saddr", prefix("10.0.0.0", 8)), ACCEPT], [WEB, DROP]]),
    ("-", [[field("ip", "saddr", "10.0.0.9"), DROP]]), ("-", ["drop", [meta("iifname", "eth0"), ACCEPT]]),
    ("-", [[{"limit": {"rate": 5, "per": "second"}}, DROP]]), ("-", [[{"xt": None}, DROP]]),
    ("-", ["drop", [{"xt": None}]]), ("-", ["drop", [HERE, {"queue": None}]]),
    ("-", [[field("ip", "daddr", "@blocked"), DROP]]), ("-", ["drop", [field("ip", "daddr", "@open"), ACCEPT]]),
    # addresses and ports
    ("d", [[HERE, WEB, DROP]]), ("-", [[field("ip", "daddr", "192.0.2.11"), DROP]]),
    ("d", [[field("ip", "daddr", prefix("192.0.2.0", 28)), DROP]]),
    ("-", [[field("ip", "daddr", prefix("192.0.2.0", 29)), DROP]]),
    ("d", [[field("ip", "daddr", {"range": ["192.0.2.9", "192.0.2.10"]}), DROP]]),
    ("d", [[field("tcp", "dport", of(22, {"range": [79, 81]})), DROP]]),
    ("-", [[field("tcp", "dport", {"range": [81, 90]}), DROP]]), ("d", [[field("th", "dport", 80), DROP]]),
    ("d", [[field("tcp", "dport", 22, "!="), DROP]]), ("-", [[field("tcp", "dport", 80, "!="), DROP]]),
    ("-", [[field("tcp", "dport", 80, "<"), DROP]]),
    # other chains
    ("d", [[jump("other")], ["other", WEB, DROP]]), ("-", [["other", WEB, DROP]]),
    ("-", [[jump("other")], [DROP], ["other", WEB, ACCEPT]]), ("d", [[jump("other")], [DROP], ["other", RETURN]]),
    ("-", [[jump("other", "goto")], [DROP], ["other", COUNT]]),
    ("d", ["drop", [jump("other", "goto")], [ACCEPT], ["other", COUNT]]),
    ("-", [[WEB, RETURN], [DROP]]), ("-", [[jump("input")]]),
]


def rules(chains, hook="input", kind="filter", family="inet"):
    policy = "drop" if chains and chains[0] == "drop" else "accept"
    base = {"family": family, "table": "t"}
    found = [{"metainfo": {"json_schema_version": 1}},
             {"chain": base | {"name": hook, "type": kind, "hook": hook, "prio": 0, "policy": policy}},
             {"chain": base | {"name": "other"}}]
    for rule in chains:
        if rule != "drop":
            chain = rule[0] if rule[0] == "other" else hook
            found.append({"rule": base | {"chain": chain, "expr": [e for e in rule if e != "other"]}})
    return found


@pytest.fixture
def doctor(tmp_path, monkeypatch):
    fake.proc(tmp_path)
    nft = tmp_path / "nft"
    monkeypatch.setenv("FAKE_SERVICES", "1")

    def run(ruleset, script=None):
        (tmp_path / "rules").write_text(json.dumps({"nftables": ruleset}), "utf-8")
        nft.write_text(script or f"#!/bin/sh\n[ \"$*\" = '-j list ruleset' ] && exec cat {tmp_path}/rules\n", "utf-8")
        nft.chmod(0o755)
        done = fake.run(tmp_path, "-j", "doctor", code=1, out=True, PATH=f"{tmp_path}:/usr/bin:/bin")
        said = json.loads(done)["doctor"]
        return ([f["message"] for f in said["findings"] if f["check"] == "firewall"],
                [u["why"] for u in said["not_checked"] if u["check"] == "firewall"])
    return run


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_requests(number, doctor):
    wanted, chains = REQUESTS[number]
    found, unknown = doctor(rules(chains))
    assert (found, unknown) == \
        (["nftables' chain input drops requests of new clients"] if wanted == "d" else [], [])


@pytest.mark.parametrize("family, hook, kind, found", [
    ("ip", "input", "filter", "nftables' chain input drops requests of new clients"),
    ("ip", "prerouting", "filter", "nftables' chain prerouting drops requests of new clients"),
    ("ip6", "input", "filter", None), ("arp", "input", "filter", None),
    ("inet", "output", "filter", None), ("inet", "postrouting", "nat", None),
    ("inet", "forward", "filter", "nftables' chain forward drops its replies"),
])
def test_which_chains(family, hook, kind, found, doctor):
    assert doctor(rules([[DROP]], hook, kind, family)) == ([found] if found else [], [])


@pytest.mark.parametrize("dropped, chains", [
    (True, [[field("ip", "saddr", SERVER), field("tcp", "sport", 80), DROP]]),
    (False, [[field("ip", "saddr", VIP), DROP]]), (False, [[field("ip", "daddr", "10.0.0.9"), DROP]]),
    (False, ["drop", [KNOWN, ACCEPT]]), (True, ["drop", [field("tcp", "dport", 22), DROP]]),
])
def test_replies(dropped, chains, doctor):
    assert bool(doctor(rules(chains, "forward"))[0]) == dropped


@pytest.mark.parametrize("rewritten, rule", [
    (True, [WEB, {"dnat": {"addr": SERVER}}]), (True, [HERE, {"redirect": {"port": 8080}}]),
    (False, [field("tcp", "dport", 81), {"dnat": {"addr": SERVER}}]),
    (False, [field("ip", "saddr", "10.0.0.9"), {"dnat": {"addr": SERVER}}]),
])
def test_rewritten(rewritten, rule, doctor):
    said = "nftables' chain prerouting changes the address first"
    assert doctor(rules([rule], "prerouting", "nat")) == ([said] if rewritten else [], [])


@pytest.mark.parametrize("script, why", [
    ("#!/bin/sh\nexit 1\n", "nft cannot list its rules"), ("#!/bin/sh\nexit 127\n", "nft is not installed"),
    ("#!/bin/sh\necho '{\n'\n", "nft cannot be run"), ("#!/bin/sh\necho '[]'\n", "nft cannot be run"),
    ("#!/bin/sh\nkill -9 $$\n", "nft cannot list its rules"),
])
def test_not_checked(script, why, doctor):
    assert doctor([], script) == ([], [why])
