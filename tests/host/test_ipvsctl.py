# SPDX-License-Identifier: GPL-2.0
"""ipvsctl without a kernel module: words, numbers, files, help, manual.

Everything refused here must be refused before a message is sent, which is
what exit status 2 promises. The runs are nevertheless in an empty network
namespace, so that a mistake cannot reach this machine's own services.
L4LB_IPVSCTL names another build, such as the one with sanitizers.
"""

import functools
import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
import sync_words

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "tools/ipvsctl"
IPVSCTL = os.environ.get("L4LB_IPVSCTL") or str(TOP / "build/ipvsctl")
needs_preload = pytest.mark.skipif(
    Path(IPVSCTL).name == "ipvsctl-san",
    reason="a sanitizer wants to be loaded first; runs with build/ipvsctl")


@functools.cache
def shield():
    """A command prefix that protects the machine's services; root may not run without it."""
    for argv in (["unshare", "-n"], ["unshare", "-rn"]):
        if subprocess.run([*argv, "true"], capture_output=True, check=False).returncode == 0:
            return argv
    return []


def need_shield():
    """Also where a kernel is played. Skips only where user namespaces are forbidden."""
    if not shield():
        pytest.skip("no network namespace to be had: run it as root")
    return shield()


def ipvsctl(*words, stdin="", env=None):
    if os.geteuid() == 0:
        need_shield()
    return subprocess.run([*shield(), IPVSCTL, *words], capture_output=True, text=True,
                          check=False, timeout=30, input=stdin,
                          env=os.environ | {"LANG": "C"} | (env or {}))


def has_backend():
    return subprocess.run(["modinfo", "ip_vs"], capture_output=True,
                          check=False).returncode == 0 or \
        Path("/sys/module/ip_vs").exists() or Path("/sys/module/l4lb").exists()


SVC = "service add tcp 192.0.2.10:80 "
RS = "server add tcp 192.0.2.10:80 "
BAD = [
    *sync_words.BAD,
    # unknown or missing names
    ("shw", 'unknown object "shw"', "did you mean: show"),
    ("service ad", 'unknown verb "ad"', "did you mean: add"),
    ("service add", "no service named", "try: tcp 192.0.2.10:80"),
    ("service add tpc 192.0.2.10:80", '"tpc" does not name', "did you mean: tcp"),
    ("service add tcp", "the address is missing", "try: tcp"),
    ("server add tcp 192.0.2.10:80", "no real server named", "try: ADDR"),
    ("scheduler set tcp 192.0.2.10:80", "needs a value", None),
    # addresses
    ("service add tcp 192.0.2.256:80", 'bad address "192.0.2.256"', "try:"),
    ("service add tcp 192.0.2:80", 'bad address "192.0.2"', "try:"),
    ("service add tcp 010.0.2.1:80", 'bad address "010.0.2.1"', "try:"),
    ("service add tcp www.example.com:80", "bad address", "try:"),
    ("service add tcp 2001:db8::10:443", "bad address", "in brackets"),
    ("service add tcp [2001:db8::10:443", "bad address", "try:"),
    ("service add tcp [2001:db8::g]:443", "bad address", "try:"),
    ("service add tcp [192.0.2.10]:443", "bad address", "try:"),
    ("service add tcp 0.0.0.0:80", "not an address that clients can connect to", None),
    ("service add tcp 224.0.0.1:80", "not an address that clients can connect to", None),
    ("service add tcp [ff02::1]:80", "not an address that clients can connect to", None),
    ("service add tcp 192.0.2.10", "the port is missing", "try: tcp 192.0.2.10:80"),
    (RS + "0.0.0.0:80", "not a unicast address", None),
    (RS + "255.255.255.255:80", "not a unicast address", None),
    (RS + "[fe80::1]:80 tun", "not a unicast address", None),
    # ports
    ("service add tcp 192.0.2.10:8O", 'bad port "8O"', None),
    ("service add tcp 192.0.2.10:65536", 'bad port "65536"', None),
    ("service add tcp 192.0.2.10:-1", 'bad port "-1"', None),
    ("service add tcp 192.0.2.10:080", 'bad port "080"', None),
    ("service add tcp 192.0.2.10:", 'bad port ""', None),
    ("service add tcp 192.0.2.10:0x50", 'bad port "0x50"', None),
    ("service add tcp 192.0.2.10:4294967376", "bad port", None),
    ("service add tcp 192.0.2.10:0", "port 0 (any port) needs persistence",
     "persistent 300"),
    (RS + "10.0.0.11:0", "port 0 (any port) is for services with port 0", None),
    # marks
    ("service add fwmark 0", 'bad fwmark "0"', None),
    ("service add fwmark 4294967296", "bad fwmark", None),
    ("service add fwm:x", 'bad fwmark "x"', None),
    # numbers
    (RS + "10.0.0.11 weight -1", 'bad weight "-1"', None),
    (RS + "10.0.0.11 weight 2147483648", "bad weight", None),
    (RS + "10.0.0.11 weight 99999999999999999999", "bad weight", None),
    (RS + "10.0.0.11 weight 3x", 'bad weight "3x"', None),
    (RS + "10.0.0.11 weight 1e3", 'bad weight "1e3"', None),
    (RS + "10.0.0.11 weight", '"weight" needs a value', None),
    (RS + "10.0.0.11 weight 1 weight 2", '"weight" is given twice', None),
    (RS + "10.0.0.11 max-conns 100 min-conns 200", "min-conns 200 is above max-conns 100",
     None),
    (RS + "10.0.0.11 min-conns 5", "min-conns 5 needs a max-conns above it", None),
    ("timeout set tcp 0", 'bad time "0"', None),
    ("timeout set tcp -5", 'bad time "-5"', None),
    ("timeout set tcp 32d", 'bad time "32d"', None),
    ("timeout set tcp 745h", 'bad time "745h"', None),
    (SVC + "persistent 32d", 'bad time "32d" for persistent: write 1 second to 31 days, '
     "such as 90, 90s, 15m, 2h or 1d", None),
    ("timeout set tpc 5", 'unknown kind of timeout "tpc"', "did you mean: tcp"),
    ("timeout set tcp 5 tcp 6", '"tcp" is given twice', None),
    ("timeout set", "nothing to set", "try:"),
    # schedulers, flags, persistence
    (SVC + "scheduler", '"scheduler" needs a value', None),
    (SVC + "scheduler RR", 'bad scheduler name "RR"', "scheduler list"),
    (SVC + "scheduler a-name-of-sixteen", "bad scheduler name", None),
    (SVC + "scheduler ../rr", "bad scheduler name", None),
    (SVC + "scheduler none", "bad scheduler name", None),
    (SVC + "shceduler rr", 'unknown service option "shceduler"', "did you mean: scheduler"),
    (SVC + "flags falback", 'unknown flag "falback"', "did you mean: fallback"),
    (SVC + "persistent 0", 'bad time "0"', None),
    (SVC + "persistent -5", 'bad time "-5"', None),
    (SVC + "mask 24", "the service is not persistent", "persistent 300"),
    (SVC + "persistent mask 33", 'bad mask "33"', None),
    (SVC + "persistent mask 255.0.255.0", "must be contiguous", None),
    ("service add tcp [2001:db8::10]:80 persistent mask 0", 'bad mask "0"', None),
    ("service add tcp [2001:db8::10]:80 persistent mask 129", 'bad mask "129"', None),
    (SVC + "pe sip", "needs persistence", "persistent 300"),
    (SVC + "ops", "is for udp and fwmark services", None),
    (SVC + "option", '"option" needs a value', None),
    (SVC + "option expire", '"expire" needs a value', None),
    (SVC + "option expire 5m", 'bad expire "5m"', None),
    (SVC + "option expire -1", 'bad expire "-1"', None),
    (SVC + "option expire 4294967296", "bad expire", None),
    (SVC + "option Expire 5", 'bad option name "Expire"', "scheduler list"),
    (SVC + "option a-name-of-16-let 5", "bad option name", None),
    (SVC + "option expire 5 option expire 6", '"expire" is given twice', None),
    (SVC + "optoin expire 5", 'unknown service option "optoin"', "did you mean: option"),
    (SVC + " ".join(f"option o{n} 1" for n in range(17)), "more than 16 options", None),
    # options that only l4lb has
    (SVC + "timeout", '"timeout" needs a value', None),
    (SVC + "timeout 5m", 'unknown kind of timeout "5m"; known: tcp tcp-fin udp sctp', None),
    (SVC + "timeout tpc 5", 'unknown kind of timeout "tpc"', "did you mean: tcp"),
    (SVC + "timeout tcp", '"tcp" needs a value', None),
    (SVC + "timeout tcp 0", 'bad time "0"', None),
    (SVC + "timeout tcp -5", 'bad time "-5"', None),
    (SVC + "timeout udp 337h", 'bad time "337h" for udp: write 1 second to 14 days', None),
    (SVC + "timeout tcp 5 udp 6 tcp 7", '"tcp" is given twice', None),
    (SVC + "timeout tcp 5 timeout tcp default", '"tcp" is given twice', None),
    (SVC + "timeout tcp 5 7", 'unknown service option "7"', None),
    (SVC + "on-idle", '"on-idle" needs a value', None),
    (SVC + "on-idle rst", 'unknown on-idle "rst"; known: forget reset', "did you mean: reset"),
    (SVC + "on-loss mov", 'unknown on-loss "mov"', "did you mean: move"),
    (SVC + "on-drain reset", 'unknown on-drain "reset"; known: default keep move', None),
    (SVC + "guard on", 'unknown guard "on"; known: off reject drop', None),
    (SVC + "fast-path fast", 'unknown fast-path "fast"; known: default off on new', None),
    (SVC + "log", '"log" needs a value', None),
    (SVC + "log yes", 'unknown log "yes"; known: off on', None),
    (SVC + "log on log off", '"log" is given twice', None),
    (SVC + "ramp", '"ramp" needs a value', None),
    (SVC + "ramp 2x", 'bad time "2x" for ramp', None),
    (SVC + "ramp 25h", "ramp", None),
    (SVC + "ramp 0", "ramp", None),
    (SVC + "ramp 5 ramp off", '"ramp" is given twice', None),
    (SVC + "limit-rate", '"limit-rate" needs a value', None),
    (SVC + "limit-rate 0", "limit-rate", None),
    (SVC + "limit-rate 10000001", "limit-rate", None),
    (SVC + "limit-burst none", "limit-burst", None),
    (SVC + "limit-conns 2147483648", "limit-conns", None),
    (SVC + "limit-conns 5k", "limit-conns", None),
    (SVC + "limit-reply rst", 'unknown limit-reply "rst"; known: drop reset', None),
    (SVC + "latency", '"latency" needs a value', None),
    (SVC + "latency yes", 'unknown latency "yes"; known: off on', None),
    (SVC + "latency on latency on", '"latency" is given twice', None),
    (SVC + "conn-state", '"conn-state" needs a value', None),
    (SVC + "conn-state off", 'unknown conn-state "off"; known: eager lazy', None),
    (SVC + "conn-state lazy conn-state lazy", '"conn-state" is given twice', None),
    (SVC + "conn-state lazy limit-rate 5", "excludes latency, limit-rate and limit-conns", None),
    (SVC + "snat 10.0.0.1 snat 10.0.0.2", '"snat" is given twice', None),
    (SVC + "snat 10.0.0.5-10.0.0.1", "the last address comes before the first", None),
    (SVC + "snat 10.0.0.1-2001:db8::1", 'bad snat "10.0.0.1-2001:db8::1": write one address', None),
    (SVC + "snat 2001:db8::1", "the service has the other family", None),
    ("svc add udp 192.0.2.10:53 conn-state lazy", "is for tcp and sctp services by address", None),
    ("svc add fwm:7 conn-state lazy", "is for tcp and sctp services by address", None),
    (SVC + "latency on server 10.0.0.1 dr server 10.0.0.2 tun", "latency needs a server with nat", "nat"),
    (SVC + "limit-rat 5", "limit-rat", "did you mean: limit-rate"),
    (SVC + "shadow", '"shadow" needs a value', None),
    (SVC + "shadow Mh", 'bad name of a shadow "Mh"', "or none"),
    (SVC + "shadow 1234567890123456", "bad name of a shadow", "or none"),
    (SVC + "shadow mh shadow none", '"shadow" is given twice', None),
    (SVC + "priority", '"priority" needs a value', None),
    (SVC + "priority lass", 'unknown priority "lass"; known: off las', "did you mean: las"),
    (SVC + "priority las 16k", 'bad size "16k": write bytes, or 16K, 2M, 1G; less than 4G', None),
    (SVC + "priority las 4G", 'bad size "4G": write bytes, or 16K, 2M, 1G; less than 4G', None),
    (SVC + "priority las 0", 'bad size "0"', None),
    (SVC + "priority las 1K,", 'bad size ""', None),
    (SVC + "priority las 2K,1K", "each size must be more than the one before it", None),
    (SVC + "priority las 1K,1024", "each size must be more than the one before it", None),
    (SVC + "priority las 1,2,3,4", "priority las takes 3 sizes at most", None),
    (SVC + "priority off 16K", 'unknown service option "16K"', None),
    (SVC + "priority las priority off", '"priority" is given twice', None),
    (SVC + "sync some", 'unknown sync "some"; known: on off templates exceptions', None),
    (SVC + "guard drop guard off", '"guard" is given twice', None),
    (SVC + "gaurd drop", 'unknown service option "gaurd"', "did you mean: guard"),
    ("service add fwmark 7 guard drop", "guard is for services by address", None),
    ("scheduler show ../rr", "bad scheduler name", None),
    ("scheduler show rr wrr", 'unexpected word "wrr"', None),
    # methods
    (RS + "10.0.0.11 natt", 'unknown server option "natt"', "did you mean: nat"),
    (RS + "10.0.0.11 nat dr", "two forwarding methods", None),
    (RS + "10.0.0.11:8080 dr", "direct routing cannot change the port "
     "(service 80, server 8080)", "nat, or leave"),
    (RS + "10.0.0.11:8080 tun", "a tunnel cannot change the port", "nat, or leave"),
    (RS + "[2001:db8::11]:80 dr", "is IPv6 but the service is IPv4: only tun", "try:"),
    ("server add tcp [2001:db8::1]:80 10.0.0.11:80 nat", "only tun can cross families",
     "try:"),
    (RS + "10.0.0.11 tun type gue", "needs its UDP port", "port 6080"),
    (RS + "10.0.0.11 tun type ipp", 'unknown tunnel type "ipp"', "did you mean: ipip"),
    (RS + "10.0.0.11 tun csum", "an ipip tunnel has no checksum", None),
    (RS + "10.0.0.11 tun type gre port 7", "only a gue tunnel has a port", None),
    (RS + "10.0.0.11 nat type gre", "are for tun", None),
    (SVC + "server 10.0.0.11 server 10.0.0.11:80", "named twice", None),
    (SVC + "server 10.0.0.11 server 10.0.0.12:99999", "bad port", None),
    (SVC + "server", "no real server named", None),
    # too few or too many words for a verb
    ("service change tcp 192.0.2.10:80", "nothing to change", "scheduler wrr"),
    ("server change tcp 192.0.2.10:80 10.0.0.11", "nothing to change", "weight 5"),
    ("service delete tcp 192.0.2.10:80 now", 'unexpected word "now"', None),
    ("service flush tcp 192.0.2.10:80", "unexpected word", None),
    ("conn kill state ESTABLISHED limit 3", "limit belongs to conn show", None),
    ("conn log template", "templates have no record", None),
    ("conn log --ipfix nowhere", 'bad address "nowhere"', None),
    ("conn log --ipfix 192.0.2.1:0", "bad port 0: write 1 to 65535", None),
    ("conn log --ipfix 192.0.2.1:65536", "bad", None),
    ("conn show --ipfix 192.0.2.1", "option --ipfix does not belong to", None),
    ("conn log limit 0", 'bad limit "0"', None),
    ("conn log servce tcp:192.0.2.10:80", "unknown filter", "did you mean: service"),
    ("conn kill sate ESTABLISHED", 'unknown filter "sate"', "did you mean: state"),
    ("server drain tcp 192.0.2.10:80 10.0.0.11 --then kill",
     'unknown end of a drain "kill"; known: stay delete reset move', None),
    ("server drain tcp 192.0.2.10:80 10.0.0.11 --deadline 0", 'bad deadline "0"', None),
    ("server undrain tcp 192.0.2.10:80 10.0.0.11 weight 0", 'bad weight "0"', None),
    ("conn show servce tcp:192.0.2.10:80", "unknown filter", "did you mean: service"),
    ("conn show state ESTABLISH", "unknown state", "did you mean: ESTABLISHED"),
    ("conn show limit 0", 'bad limit "0"', None),
    ("conn show client 10.0.0.0/33", "bad prefix length", None),
    ("conn show service fwmark 7", "does not say which mark", "conn show server"),
    ("conn count by colour", "unknown grouping", None),
    ("conn end client 10.0.0.1", 'unknown verb "end"', None),
    ("stats -F xml", 'unknown format "xml"', None),
    ("stats zero all", '"all" does not name a service', None),
    ("save -F ymal", 'unknown format "ymal"', "did you mean: yaml"),
    ("show sort size", "unknown sort key", None),
    ("show vip 10.0.0.0/x", "bad prefix length", None),
    ("fetch -f lb.yaml", 'unknown object "fetch"', None),
    ("doctor tcp 192.0.2.10:80 now", 'unexpected word "now"', None),
    ("doctor --yes", "does not belong", None),
    ("monitor servers", 'unknown class of events "servers"', "did you mean: server"),
    # options
    ("show --jsn", 'unknown option "--jsn"', "did you mean: --json"),
    ("show --js", 'unknown option "--js"', None),
    ("show -x", 'unknown option "-x"', "see: ipvsctl help show"),
    ("show --json=yes", "takes no value", None),
    ("show -o", "option --columns needs a value", None),
    ("show -C sometimes", 'bad color "sometimes"', None),
    ("show --timeout 0", 'bad timeout "0"', None),
    ("show --yes", 'option --yes does not belong to "show"', None),
    ("service show --wait", 'option --wait does not belong to "service show"', None),
    ("show -N no-such-namespace", 'no network namespace "no-such-namespace"',
     "ip netns list"),
    ("service show -F json", 'option --format does not belong to "service show"', None),
    ("help me", 'unknown object "me"', None),
    ("help service ad", 'unknown verb "ad"', None),
]


@pytest.mark.parametrize("words, why, hint", BAD, ids=[b[0] for b in BAD])
def test_bad_words_are_one_line_with_the_reason_and_exit_2(words, why, hint):
    done = ipvsctl(*words.split())
    assert done.returncode == 2, done.stderr
    assert not done.stdout
    first, *rest = done.stderr.splitlines()
    assert first.startswith("ipvsctl: ") and why in first
    assert all(line.startswith("  ") for line in rest)
    if hint:
        assert any(hint in line for line in rest), done.stderr


@pytest.mark.parametrize("words, why, hint", BAD[::7], ids=[b[0] for b in BAD[::7]])
def test_the_same_errors_as_json(words, why, hint):
    done = ipvsctl("-j", *words.split())
    error = json.loads(done.stderr)["error"]
    assert (done.returncode, error["code"]) == (2, 2)
    assert why in f"{error.get('object', '')} {error['message']}"
    assert (hint or "") in error.get("hint", "")


def test_json_error_names_the_object_in_one_word():
    error = json.loads(ipvsctl("-j", "service", "add", "tcp", "192.0.2.10").stderr)
    assert error == {"error": {
        "code": 2, "object": "tcp:192.0.2.10", "message": "the port is missing",
        "hint": "try: tcp 192.0.2.10:80"}}


GOOD = [
    *sync_words.GOOD,
    SVC + "scheduler wrr server 10.0.0.11:8080 nat weight 3 server 10.0.0.12:8080",
    SVC + "sched wlc persistent 10m mask 24", SVC + "persistent 1d", "timeout set tcp 31d",
    SVC + "persistent mask 255.255.255.0 flags flag-1,flag-3",
    "service add tcp:192.0.2.10:0 persistent server 10.0.0.11",
    "svc add fwmark 7 inet6 scheduler sh flags fallback,port",
    "svc add fwm6:7 server [2001:db8::1]:80 dr",
    "svc add udp 192.0.2.53:53 scheduler rr ops",
    "svc add fwmark 7 scheduler lblcr option expire 300 option shrink 0 server 10.0.0.1",
    "svc change fwm:7 option entries 4294967295", "sched show lblc", "sched show",
    "svc replace fwm:7 option " + " option ".join(f"o{n} 1" for n in range(16)),
    "svc add udp [fe80::10]:53",
    SVC + "timeout tcp 336h tcp-fin 30s udp 1 sctp default server 10.0.0.1",
    "svc change fwm:7 timeout udp 30 scheduler rr timeout tcp default",
    SVC + "on-idle reset on-loss move on-drain keep guard reject",
    SVC + "fast-path new guard drop", "svc change fwm:7 fast-path off",
    SVC + "sync exceptions", "svc change fwm:7 sync off sched sh",
    SVC + "log on guard drop", "svc change fwm:7 log off",
    SVC + "ramp 30s limit-rate 5000 limit-burst 500 limit-conns 200000 limit-reply reset server 10.0.0.1",
    SVC + "ramp 1d limit-rate 10000000 limit-burst 10000000 limit-conns 2147483647",
    "svc change fwm:7 ramp off limit-rate off limit-burst off limit-conns off limit-reply drop",
    SVC + "latency on server 10.0.0.1", "svc change fwm:7 latency off", "stats latency",
    "stats tcp 192.0.2.10:80 latency", "stats latency fwm:7 by service", "stats sort rate latency",
    SVC + "conn-state lazy server 10.0.0.1", "svc change fwm:7 conn-state eager",
    SVC + "latency on server 10.0.0.1 dr server 10.0.0.2",
    SVC + "shadow mh server 10.0.0.1", "svc change fwm:7 shadow none scheduler rr",
    SVC + "priority las server 10.0.0.1", SVC + "priority las 16K,1M,3G guard drop",
    "svc change fwm:7 priority off", SVC + "priority las 4294967295 timeout udp 9",
    SVC + "guard off on-idle forget on-loss default on-drain default server 10.0.0.1",
    "svc change fwm:7 on-loss reset",
    "rs add to tcp:[2001:db8::10]:443 10.0.0.21 tun type gue port 6080 csum",
    RS + "10.0.0.11 max-conns 2147483647 min-conns 2147483647 weight 2147483647",
    RS + "240.0.0.1 weight 0",
    "rs drain tcp 192.0.2.10:80 10.0.0.11 --wait 120",
    "rs drain --wait tcp 192.0.2.10:80 10.0.0.11",
    "rs drain tcp 192.0.2.10:80 10.0.0.11 --wait=2m",
    "timeout set tcp 744h tcp-fin 2m udp 90s",
    "-jp show", "-j -p show", "show -H -o name,state", "svc ls tcp:192.0.2.10:80",
    "svc rm udp:192.0.2.53:53 --if-exists", "svc set udp:192.0.2.53:53 scheduler lc",
    "-4 show", "-6 svc add fwmark 9", "", "stats", "stats show tcp:1.2.3.4:5 rate",
    "stats sort rate", "sched list", "info", "save", "save -F json", "svc flush --yes",
]


@pytest.mark.skipif(has_backend(), reason="this kernel has an ip_vs, which answers; runs where it has none, as in CI")
@pytest.mark.parametrize("words", GOOD)
def test_good_words_get_as_far_as_the_missing_module(words):
    done = ipvsctl(*words.split())
    assert done.returncode == 7, done.stderr
    assert "no IPVS backend: " in done.stderr and "try: " in done.stderr
    assert not done.stdout


@pytest.mark.skipif(has_backend(), reason="this kernel has an ip_vs, which answers; runs where it has none, as in CI")
def test_connections_without_a_module():
    done = ipvsctl("conn", "show", "-j")
    assert (done.returncode, done.stdout) == (7, "")
    assert json.loads(done.stderr)["error"]["code"] == 7


RULES = [
    ("-A -t 192.0.2.10:80 -s rr\n-A -t 192.0.2.10:80 -s rr\n", 2, "named twice"),
    ("# empty\n\n", 0, "names no service"),
    ("-A -t 192.0.2.10:80\n-a -t 192.0.2.10:80 -r 10.0.0.1:80 -m -w -1\n", 2, 'bad -w "-1"'),
    ("-A -t 192.0.2.10:80\n-a -t 192.0.2.10:81 -r 10.0.0.1\n", 2, "adds the service"),
    ("-A -t 192.0.2.10:80\n-a -t 192.0.2.10:80 -r 10.0.0.1:8080 -g\n", 2,
     "direct routing cannot change the port"),
    ("-A -t 192.0.2.10:80\n-a -t 192.0.2.10:80\n", 2, "names no server"),
    ("-A -t www:80\n", 1, "bad address"),
    ("-A -t 192.0.2.10:http\n", 1, 'bad port "http"'),
    ("\n-E -t 192.0.2.10:80\n", 2, '"-E" is not an ipvsadm option that can be restored'),
    ("-A -t 192.0.2.10:80 -p x\n", 1, 'bad -p "x"'),
    ("-A -t 192.0.2.10:80 -b sh-prot\n", 1, 'unknown flag "sh-prot": write flag-1'),
    ("-A -t 192.0.2.10:80 -f 7\n", 1, "two services"),
    ("-A -s rr\n", 1, "no service"),
    ("-t 192.0.2.10:80\n", 1, "neither -A nor -a"),
    ("-A -t\n", 1, '"-t" needs a value'),
    ("-A -t 192.0.2.10:80 " + "-g " * 100 + "\n", 1, "too long"),
    ("#ipvsctl option tcp 192.0.2.10:80 expire 5\n", 1, "no line before this one"),
    ("#ipvsctl service tcp 192.0.2.10:80 timeout udp 5\n", 1, "no line before this one"),
    ("-A -t 192.0.2.10:80\n#ipvsctl service\n", 2, "no service named"),
    ("-A -t 192.0.2.10:80\n#ipvsctl service tcp:192.0.2.10:80\n", 2, "needs a value"),
    ("-A -t 192.0.2.10:80\n#ipvsctl service tcp:192.0.2.10:80 mask 24\n", 2,
     'unknown service option "mask"'),
    ("-A -t 192.0.2.10:80\n#ipvsctl service tcp:192.0.2.10:80 timeout udp x\n", 2, 'bad time "x"'),
    ("-A -t 192.0.2.10:80\n#ipvsctl option\n", 2, "no service named"),
    ("-A -t 192.0.2.10:80\n#ipvsctl option tcp 192.0.2.10:80\n", 2, '"option" needs a value'),
    ("-A -t 192.0.2.10:80\n#ipvsctl option tcp 192.0.2.10:80 expire\n", 2,
     '"expire" needs a value'),
    ("-A -t 192.0.2.10:80\n#ipvsctl option tcp:192.0.2.10:80 expire x\n", 2, 'bad expire "x"'),
    ("-A -t 192.0.2.10:80\n#ipvsctl option tcp:192.0.2.10:80 a 1 a 2\n", 2, "given twice"),
    ("-A -t 192.0.2.10:80\n#ipvsctl optoin tcp:192.0.2.10:80 a 1\n", 2,
     'unknown word after #ipvsctl "optoin"'),
]


@pytest.mark.parametrize("text, line, why", RULES)
def test_bad_rules_name_file_and_line(text, line, why, tmp_path):
    rules = tmp_path / "lvs.rules"
    rules.write_text(text, encoding="ascii")
    done = ipvsctl("restore", str(rules))
    assert done.returncode == 2, done.stderr
    where = f"{rules}:{line}: " if line else str(rules)
    first = done.stderr.splitlines()[0]
    assert first.startswith("ipvsctl: " + where) and why in first


def document(**changes):
    server = {"address": "10.0.0.11", "port": 8080, "forward": "nat", "weight": 3}
    service = {"protocol": "tcp", "address": "192.0.2.10", "port": 80, "scheduler": "wrr",
               "servers": [server | changes.pop("server", {})]}
    return {"ipvsctl": {"schema": 1}, "services": [service | changes.pop("service", {})],
            **changes}


JSON_RULES = [
    (document(service={"shceduler": "rr"}), 'unknown key "shceduler"'),
    (document(server={"wieght": 1}), 'unknown key "wieght"'),
    (document(server={"weight": "3"}), '"weight" must be a whole number'),
    (document(server={"weight": -3}), '"weight" must be a whole number'),
    (document(server={"weight": 2.5}), '"weight" must be a whole number'),
    (document(server={"weight": 2**31}), '"weight" must be a whole number'),
    (document(server={"forward": "masq"}), 'unknown forwarding method "masq"'),
    (document(server={"forward": 5}), '"forward" must be a string'),
    (document(server={"forward": "dr"}), "direct routing cannot change the port"),
    (document(server={"forward": "tun", "port": 80, "tunnel": {"type": "gue"}}),
     "needs its UDP port"),
    (document(server={"id": "10.0.0.12:8080"}), '"id" says'),
    (document(service={"id": "tcp:192.0.2.10:81"}), '"id" says'),
    (document(service={"port": 65536}), '"port" must be a whole number'),
    (document(service={"port": 0}), "port 0 (any port) needs persistence"),
    (document(service={"address": 7}), '"address" must be a string'),
    (document(service={"address": "host"}), "bad address"),
    (document(service={"persistent": 0}), '"persistent" must be seconds'),
    (document(service={"mask": 24}), "the service is not persistent"),
    (document(service={"persistent": 9, "mask": 40}), 'bad mask "40"'),
    (document(service={"flags": ["x"]}), 'unknown flag "x"'),
    (document(service={"flags": "x"}), '"flags" must be a list'),
    (document(service={"servers": {}}), '"servers" must be a list'),
    (document(service={"servers": [7]}), "a server must be an object"),
    (document(service={"ops": 1}), '"ops" must be true or false'),
    (document(service={"options": [1]}), '"options" must be an object'),
    (document(service={"options": {"expire": "5"}}), 'option "expire" must be a whole number'),
    (document(service={"options": {"expire": -5}}), 'bad expire "-5"'),
    (document(service={"options": {"expire": 2**32}}), "bad expire"),
    (document(service={"options": {"": 5}}), 'bad option name ""'),
    (document(service={"timeout": 5}), '"timeout" must be an object'),
    (document(service={"timeout": {"tpc": 5}}), 'unknown kind of timeout "tpc"'),
    (document(service={"timeout": {"tcp": 0}}), 'timeout "tcp" must be seconds from 1'),
    (document(service={"timeout": {"tcp": "5m"}}), 'timeout "tcp" must be seconds from 1'),
    (document(service={"timeout": {"tcp_fin": 1209601}}), "must be seconds from 1 to 1209600"),
    (document(service={"on_idle": 1}), '"on_idle" must be a string'),
    (document(service={"on_loss": "mvoe"}), 'unknown on_loss "mvoe"'),
    (document(service={"guard": "on"}), 'unknown guard "on"'),
    (document(service={"on-drain": "keep"}), 'unknown key "on-drain"'),
    (document(service={"protocol": None}), '"protocol" must be a string'),
    (document(services={}), '"services" must be a list'),
    (document(services=[]), "names no service"),
    (document(services=[7]), "a service must be an object"),
    (document(services=[{}]), "a service needs"),
    (document(extra=1), 'unknown key "extra"'),
    (document(ipvsctl={"schema": 2}), "schema 1 only"),
]


@pytest.mark.parametrize("doc, why", JSON_RULES, ids=[why for _, why in JSON_RULES])
def test_bad_json_is_refused_before_anything_is_sent(doc, why):
    done = ipvsctl("restore", stdin=json.dumps(doc))
    assert done.returncode == 2, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("ipvsctl: standard input") and why in first


def test_json_twice_in_one_file():
    one = document()["services"][0]
    done = ipvsctl("restore", "-", stdin=json.dumps({"services": [one, one]}))
    assert done.returncode == 2 and "named twice" in done.stderr


def test_json_syntax_error_names_the_line(tmp_path):
    file = tmp_path / "lb.json"
    file.write_text('{\n "services": [\n  {"id" 7}\n ]\n}\n', encoding="ascii")
    done = ipvsctl("restore", str(file))
    assert done.returncode == 2 and f"{file}:3: not JSON" in done.stderr


def test_unreadable_and_binary_files(tmp_path):
    done = ipvsctl("restore", str(tmp_path / "none"))
    assert done.returncode == 2 and "No such file" in done.stderr
    binary = tmp_path / "bin"
    binary.write_bytes(b"-A -t 192.0.2.10:80\0-s rr\n")
    done = ipvsctl("restore", str(binary))
    assert done.returncode == 2 and "not a text file" in done.stderr


@pytest.mark.skipif(has_backend(), reason="this kernel has an ip_vs, which answers; runs where it has none, as in CI")
@pytest.mark.parametrize("text", [
    json.dumps(document()),
    json.dumps({"services": [{"id": "fwm6:7", "scheduler": "sh", "flags": ["port"]}]}),
    json.dumps({"services": [{"id": "fwm:7", "scheduler": "lblc", "options": {"expire": 5}}]}),
    json.dumps(document(service={"timeout": {"tcp": 5, "tcp_fin": 1209600}, "guard": "drop",
                                 "on_idle": "reset", "on_loss": "keep", "on_drain": "move",
                                 "fast_path": "on"})),
    json.dumps(document(service={"priority": "las", "las_bytes": [1, 16384, 4294967295]})),
    json.dumps(document(service={"priority": "off", "las_bytes": []})),
    "-A -f 7\n#ipvsctl service fwm:7 timeout tcp 5 udp 6 on-idle reset on-loss move\n",
    "# ipvsctl\n#ipvsctlx option\n-A -f 7 -s lblc #ipvsctl\n#ipvsctl option fwmark 7 expire 5 "
    "entries 6\n  #ipvsctl option fwm:7 shrink 7\n",
    "-A -t 192.0.2.10:443 -s wlc -p 600 -M 255.255.255.0\n"
    "-a -t 192.0.2.10:443 -r 10.0.0.11 -w 0 # default method\n"
    "-A -f 7 -6 -s sh -b sh-fallback,sh-port\n-A -u [2001:db8::10]:53 -s rr -o\n"
    "-a -u [2001:db8::10]:53 -r 10.0.0.21:53 -i -w 1 --tun-type gue --tun-port 6080 "
    "--tun-csum\n-A -t 192.0.2.10:0 -p\n-a -t 192.0.2.10:0 -r 10.0.0.1:0 -g -x 9 -y 3\n",
])
def test_good_files_get_as_far_as_the_missing_module(text):
    done = ipvsctl("restore", stdin=text)
    assert done.returncode == 7, done.stderr


WORDS = [w for row in BAD + [(g,) for g in GOOD] for w in row[0].split()] + \
    ["", "-", "--", "-\xff", "[", "]", "[]:", ":", "::", "/", ",", "%n%s", "\xe9" * 300,
     "1" * 400, "tcp:", "fwm:", "tcp:[::]", "-o,", "a," * 200, "-5"]


@pytest.mark.parametrize("seed", range(8))
def test_no_words_crash_it(seed):
    """Every command line ends with a status that the manual lists; a failure has a message.
    With status 1 a command has found something, and its report is the output."""
    rng = random.Random(seed)
    for _ in range(60):
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 9))]
        done = ipvsctl("-n", *words, stdin="-A x")
        assert done.returncode in range(10), (words, done.stderr)
        if done.returncode:
            assert done.stdout if done.returncode == 1 else done.stderr, words


def test_no_rules_crash_it():
    rng = random.Random(2)
    words = [w for text, _, _ in RULES for w in text.split()] + ["--tun-type", "gue", "\n"]
    for _ in range(150):
        text = " ".join(rng.choice(words) for _ in range(rng.randint(1, 40)))
        assert ipvsctl("-n", "restore", stdin=text).returncode in range(10), text


# Code, help and manual have the same words; completion: test_completion.py.

def help_text(*words):
    done = ipvsctl("help", *words)
    assert done.returncode == 0 and not done.stderr
    return done.stdout


def verbs():
    """{object: [verb]} of the source code."""
    found = {}
    for source in SOURCES.glob("*.c"):
        text = source.read_text(encoding="utf-8")
        noun = re.search(r"const struct noun noun_\w+ = \{\s*\"([\w-]+)\"", text)
        if noun:
            table = text[text.index("static const struct verb verbs"):]
            names = re.findall(r"^\t\{ \"([\w-]+)\"", table, re.M)
            found[noun[1]] = [] if names == [noun[1]] else names
    assert len(found) >= 10 and "flush" in found["service"]
    return found


def options():
    """Every option, with its dashes, of the table in the source code."""
    text = (SOURCES / "options.c").read_text(encoding="utf-8")
    rows = re.findall(r"^\t\{ (?:'(.)'|0), \"([\w-]+)\",", text, re.M)
    assert len(rows) > 15
    return ["--" + name for _, name in rows] + ["-" + letter for letter, _ in rows if letter]


def manual():
    return (SOURCES / "ipvsctl.8").read_text(encoding="utf-8")


@pytest.mark.parametrize("noun, names", verbs().items())
def test_objects_and_verbs_are_in_help_and_manual(noun, names):
    assert re.search(rf"^  {noun}\b", help_text(), re.M)
    assert re.search(rf"^\.Ss .*\b{noun}\b", manual(), re.M)
    for verb in names:
        assert f"ipvsctl {noun} {verb}" in help_text(noun)
        assert verb in help_text(noun, verb)
        assert re.search(rf"^\.It Cm {noun} {verb}\b", manual(), re.M), verb


@pytest.mark.parametrize("option", options())
def test_options_are_in_help_and_manual(option):
    assert re.search(rf"(?<!\S){option}\b", help_text())
    dashed = option[1:].replace("-", r"[\\]?-")
    assert re.search(rf"^\.It .*Fl {dashed}(?!\w)", manual(), re.M), option


def test_manual_has_no_option_that_the_code_lacks():
    named = set(re.findall(r"Fl (-?[\w-]+)", manual().replace("\\-", "-")))
    assert {"-" + name for name in named} <= set(options())


def test_words_of_the_help_are_in_the_manual():
    for noun in verbs():
        for word in re.findall(r"[a-z]+(?:-[a-z]+)*", " ".join(
                line for line in help_text(noun).splitlines()
                if line.startswith("  ipvsctl "))):
            assert re.search(rf"\b{word}\b", manual()), word


def test_version_is_the_same_everywhere():
    version = re.search(r'IPVSCTL_VERSION "(.+)"', (SOURCES / "version.h").read_text(
        encoding="utf-8"))[1]
    assert ipvsctl("--version").stdout == f"ipvsctl {version}\n"
    assert f"ipvsctl {version}" in manual()


def test_help_goes_to_stdout_and_succeeds():
    for words in (["-h"], ["--help"], ["help"], ["service", "add", "-h"], ["rs", "--help"],
                  ["help", "svc", "rm"]):
        done = ipvsctl(*words)
        assert done.returncode == 0 and done.stdout and not done.stderr
    assert "service add" in ipvsctl("service", "add", "tcp", "-h").stdout


def test_exit_codes_of_help_and_manual_agree():
    for code in range(10):
        assert re.search(rf"(^|\s){code} \w", help_text())
        assert re.search(rf"^\.It {code}$", manual(), re.M)


def test_manual_is_lint_clean():
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning",
                           str(SOURCES / "ipvsctl.8")],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@needs_preload
def test_a_silent_kernel_is_not_waited_for_ever(tmp_path):
    """A poll() that never reports an answer simulates a silent kernel."""
    source = tmp_path / "deaf.c"
    source.write_text("""
#include <poll.h>
#include <unistd.h>
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	(void)fds;
	(void)n;
	usleep(1000 * (ms < 2000 ? ms : 60000));
	return 0;
}
""", encoding="ascii")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "deaf.so", source], check=True)
    done = subprocess.run([*shield(), "env", f"LD_PRELOAD={tmp_path}/deaf.so", IPVSCTL, "show",
                           "--timeout", "1"], capture_output=True, text=True, check=False,
                          timeout=20)
    assert done.returncode == 9 and "did not answer within 1000 ms" in done.stderr


def test_full_disk_is_an_error():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([IPVSCTL, "help"], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert done.returncode == 3 and "cannot write the output" in done.stderr


def test_source_files_and_functions_are_short():
    for source in SOURCES.glob("*.[ch]"):
        lines = source.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 700, source
        start = None
        for number, line in enumerate(lines):
            if line == "{":
                start = number
            elif line == "}" and start is not None:
                assert number - start <= 60, f"{source}:{start}"
                start = None
