# SPDX-License-Identifier: GPL-2.0
"""Habits from ipvsadm and from other tools: lines of ipvsadm are understood, words are
where people look for them, and no message suggests what weakens or deletes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_ipvsctl import BAD, IPVSCTL, SOURCES, has_backend, ipvsctl, shield

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lab.ipvsadm import SCRIPTS  # noqa: E402

# A line of ipvsadm; the line of ipvsctl that is told; what compat runs, if it differs.
LINES = [
    ("-A -t 192.0.2.10:80", "service add tcp 192.0.2.10:80", None),
    ("-A -t 192.0.2.10:80 -s rr -p 600 -M 255.255.255.0",
     "service add tcp 192.0.2.10:80 scheduler rr persistent 600 mask 255.255.255.0", None),
    ("--add-service --udp-service=[2001:db8::10]:53 -o",
     "service add udp [2001:db8::10]:53 ops", None),
    ("-A -t192.0.2.10:80 -p", "service add tcp 192.0.2.10:80 persistent 360", None),
    ("-A --sctp-service 192.0.2.10:9 -s sh -b sh-fallback,sh-port",
     "service add sctp 192.0.2.10:9 scheduler sh flags fallback,port", None),
    ("-A -f 7 -6 -s mh -b mh-port,flag-3",
     "service add fwmark 7 inet6 scheduler mh flags port,flag-3", None),
    ("-A -t 192.0.2.10:http", "service add tcp 192.0.2.10:80", None),
    ("-A -u 192.0.2.10 -p --pe sip", "service add udp 192.0.2.10:0 persistent 360 pe sip", None),
    ("-E -t 192.0.2.10:80 -s rr", "service change tcp 192.0.2.10:80 scheduler rr",
     "service change tcp 192.0.2.10:80 scheduler rr flags none no-persistent pe none no-ops"),
    ("-E -t [2001:db8::10]:80 -p", "service change tcp [2001:db8::10]:80 persistent 360",
     "service change tcp [2001:db8::10]:80 scheduler wlc flags none persistent 360 mask 128 "
     "pe none no-ops"),
    ("-D -t 192.0.2.10:80", "service delete tcp 192.0.2.10:80", None),
    ("-a -t 192.0.2.10:80 -r 10.0.0.11:8080 -m -w 3",
     "server add tcp 192.0.2.10:80 10.0.0.11:8080 nat weight 3", None),
    ("-a -t 192.0.2.10:80 -r 10.0.0.11:8080", "server add tcp 192.0.2.10:80 10.0.0.11 dr", None),
    ("-a -f 7 -6 -r [2001:db8::11]:0 -g", "server add fwmark 7 inet6 [2001:db8::11] dr", None),
    ("-a -t 192.0.2.10:80 -r 10.0.0.12 -i --tun-type gue --tun-port 6080 --tun-csum -x 9 -y 3",
     "server add tcp 192.0.2.10:80 10.0.0.12 tun type gue port 6080 csum max-conns 9 min-conns 3",
     None),
    ("-e -t 192.0.2.10:80 -r 10.0.0.11:8080 -w 3",
     "server change tcp 192.0.2.10:80 10.0.0.11:8080 weight 3",
     "server change tcp 192.0.2.10:80 10.0.0.11 dr weight 3 max-conns 0 min-conns 0"),
    ("-e -t 192.0.2.10:80 -r 10.0.0.11:8080 -m",
     "server change tcp 192.0.2.10:80 10.0.0.11:8080 nat",
     "server change tcp 192.0.2.10:80 10.0.0.11:8080 nat weight 1 max-conns 0 min-conns 0"),
    ("-d -t 192.0.2.10:80 -r 10.0.0.11", "server delete tcp 192.0.2.10:80 10.0.0.11", None),
    ("-L", "show", None), ("-Ln", "show", None), ("-lnc", "conn show", None),
    ("-L -n -c -t 192.0.2.10:80", "conn show service tcp 192.0.2.10:80", None),
    ("-L --stats", "stats total", None),
    ("-L --rate -t 192.0.2.10:80", "stats rate tcp 192.0.2.10:80", None),
    ("-L --timeout", "timeout show", None), ("-L --daemon", "sync show", None),
    ("-L -n -t 192.0.2.10:80", "show tcp 192.0.2.10:80", None),
    ("-L --thresholds", "show -o name,sched,fwd,weight,max,min,active,inact", None),
    ("-Z", "stats zero", None), ("-Z -f 7", "stats zero fwmark 7", None),
    ("-Sn", "save", None), ("-R", "restore", None),
    ("--set 900 120 300", "timeout set tcp 900 tcp-fin 120 udp 300", None),
    ("--set 0 60 0", "timeout set tcp-fin 60", None),
    ("--start-daemon master --mcast-interface eth1 --syncid 7 --sync-maxlen 1400 "
     "--mcast-group 224.0.0.90 --mcast-port 8850 --mcast-ttl 3",
     "sync start send dev eth1 id 7 maxlen 1400 group 224.0.0.90 port 8850 ttl 3", None),
    ("--start-daemon=backup", None, None),
    ("--stop-daemon backup", "sync stop receive", None),
]


@pytest.mark.parametrize("line, told, _", LINES, ids=[row[0] for row in LINES])
def test_a_line_of_ipvsadm_is_told_in_our_words(line, told, _):
    done = ipvsctl(*line.split())
    assert done.returncode == 2 and not done.stdout
    first, *rest = done.stderr.splitlines()
    if told:
        assert first == f'ipvsctl: "{line}" is a line of ipvsadm'
        assert rest == [f"  write: ipvsctl {told}", f"  or run it as it is: ipvsctl compat {line}"]


@pytest.mark.skipif(has_backend(), reason="this kernel has an ip_vs, which answers; runs where it has none, as in CI")
@pytest.mark.parametrize("line, told, run", [row for row in LINES if row[1]],
                         ids=[row[0] for row in LINES if row[1]])
def test_compat_runs_it(line, told, run):
    """The line that -v prints gets as far as the missing module: its words are right."""
    done = ipvsctl("-v", "compat", *line.split(), stdin="-A -f 7\n")
    first, second = done.stderr.splitlines()[:2]
    if "pe sip" not in told:
        assert second.startswith("ipvsctl: no IPVS backend"), done.stderr
    assert (done.returncode, first) == (2, f"ipvsctl {run or told}")


@pytest.mark.skipif(has_backend(), reason="this kernel has an ip_vs, which answers; runs where it has none, as in CI")
def test_every_line_of_the_comparison_with_ipvsadm_is_understood():
    """All options of Debian's ipvsadm are in these scripts (see test_ipvsadm.py)."""
    lines = {line.strip().split(" <<< ")[0] for script in SCRIPTS.values()
             for line in script.splitlines() if line.strip() and not line.strip().startswith("send")}
    assert len(lines) > 100
    for line in lines:
        words = shlex.split(line.removeprefix("!"))
        done = ipvsctl("compat", *words, stdin="-A -f 7\n")
        if words[0] in ("-h", "--help"):
            assert done.returncode == 0 and "compat" in done.stdout
        else:
            assert done.returncode == 2 and ("no IPVS backend" in done.stderr
                                             or line.startswith("!")), (line, done.stderr)


BAD_LINES = [
    ("-A -D -t 192.0.2.10:80", "two commands"), ("-A", "names no service"),
    ("-A -t 192.0.2.10:80 -u 192.0.2.10:80", "names two services"),
    ("-a -t 192.0.2.10:80", "names no server"), ("-A -t", '"tcp-service" needs a value'),
    ("-D -t 192.0.2.10:80 -w 3", "--weight does not belong to --delete-service"),
    ("-A -t 192.0.2.10:80 --wieght 3", 'no option "--wieght"'),
    ("-A -t 192.0.2.10:80 rr", 'no word "rr" here'), ("--set 900 120", '"set" needs a value'),
    ("-A -t 192.0.2.10:80 --ops=1", "takes no value"), ("-t 192.0.2.10:80", "no command"),
    ("-A -t 192.0.2.10:80 -s " + "x" * 5000, "too long"),
]


@pytest.mark.parametrize("line, why", BAD_LINES, ids=[row[0][:60] for row in BAD_LINES])
def test_bad_lines_of_ipvsadm(line, why):
    done = ipvsctl("compat", *line.split())
    assert done.returncode == 2 and why in done.stderr.splitlines()[0], done.stderr


def test_the_name_of_the_program(tmp_path):
    link = tmp_path / "ipvsadm"
    link.symlink_to(IPVSCTL)
    done = subprocess.run([*shield(), link, "-A", "-t", "192.0.2.10:80", "-x", "3"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--u-threshold does not belong to --add-service" in done.stderr


# The worst messages that a new user met, and what they say now.
MENDED = [
    ("service add fwmark 7 fast-path yes", 'unknown fast-path "yes"', "did you mean: on"),
    ("service add fwmark 7 fast-path neww", 'unknown fast-path "neww"', None),
    ("service add fwmark 7 guard of", 'unknown guard "of"', None),
    ("-C", '"-C" is a line of ipvsadm', "-C is --color here"),
    ("service add fwmark 7 persistent 32d", 'bad time "32d" for persistent', None),
    ("timeout set tcp 100ms", 'bad time "100ms" for tcp', "whole seconds"),
    ("timeout tcp 100", 'unknown verb "tcp"', "ipvsctl timeout set"),
    ("timeout set tcp 15 min", 'bad time "15 min" for tcp', "did you mean: 15m"),
    ("timeout set udp 15min", 'bad time "15min" for udp', "did you mean: 15m"),
    ("service add fwmark 7 timeout tcp 2 hours", 'bad time "2 hours"', "did you mean: 2h"),
    ("server add fwmark 7 10.0.0.1 masq", 'unknown server option "masq"', "did you mean: nat"),
    ("server add fwmark 7 10.0.0.1 gate", 'unknown server option "gate"', "did you mean: dr"),
    ("service add fwmark 7 scheduler rr server 10.0.0.1 nat snat 10.0.0.2",
     '"snat" is an option of the service: write it before "server"', None),
    ("server add fwmark 7 10.0.0.1 nat ramp 30s", 'or use "service change"', None),
    ("server add fwmark 7 10.0.0.1 -w 3", "option --watch does not", '"weight" has no dash'),
    ("service add fwmark 7 rr", 'unknown service option "rr"', "did you mean: scheduler rr"),
    ("fetch -f x", 'unknown object "fetch"', None),
    ("conn show --limit 5", 'unknown option "--limit"', '"limit" has no dash here'),
    ("conn --limit 5", 'unknown option "--limit"', '"limit" has no dash here'),
    ("add tcp 192.0.2.10:80", 'unknown object "add"', "ipvsctl service add"),
    ("delete tcp 192.0.2.10:80", 'unknown object "delete"', None),
    ("drain tcp 192.0.2.10:80 10.0.0.1", 'unknown object "drain"', "ipvsctl server drain"),
    ("kill client 192.0.2.1", 'unknown object "kill"', None),
    ("zero", 'unknown object "zero"', None),
    ("no-xdp dev eth0", 'unknown object "no-xdp"', None),
    ("stats zeor", 'unknown filter "zeor"', None),
    ("sync stp", 'unknown verb "stp"', None),
    ("fast-path no-xd dev eth0", 'unknown verb "no-xd"', None),
    ("service deleet fwmark 7", 'unknown verb "deleet"', None),
    ("server drain fwmark 7 10.0.0.1 --deadline 5m --then rest", 'unknown end of a drain "rest"', None),
    ("apply -f /etc/l4lb/web.yaml", 'unknown option "-f"', "FILE has no -f here"),
    ("diff -f web.yaml", 'unknown option "-f"', "FILE has no -f here"),
    ("restore -f rules", 'unknown option "-f"', "FILE has no -f here"),
    ("service edit fwmark 7", 'unknown verb "edit"', "did you mean: change"),
    ("show --ye", 'unknown option "--ye"', "see: ipvsctl help show"),
]


@pytest.mark.parametrize("words, why, hint", MENDED, ids=[row[0] for row in MENDED])
def test_messages_that_misled(words, why, hint):
    done = ipvsctl(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    first, *rest = done.stderr.splitlines()
    assert why in first
    assert any(hint in line for line in rest) if hint else not rest, done.stderr


@pytest.mark.parametrize("words, text", [
    ("server help", "ipvsctl server drain"), ("service add help", "ipvsctl service add ID"),
    ("help service options", "SVCOPT scheduler SCHED"), ("svc flush help", "flush [--yes]"),
    ("stats help", "ipvsctl stats rate"), ("info help", "ipvsctl info"),
])
def test_help_is_found_where_one_looks(words, text):
    done = ipvsctl(*words.split())
    assert done.returncode == 0 and text in done.stdout and not done.stderr


@pytest.mark.skipif(has_backend(), reason="this kernel has an ip_vs, which answers; runs where it has none, as in CI")
@pytest.mark.parametrize("words", ["ls", "list -j", "ls tcp 192.0.2.10:80", "flush --yes",
                                   "service add fwmark 7 persistent 1d -q", "show -H -4"])
def test_short_ways_get_as_far_as_the_missing_module(words):
    done = ipvsctl(*words.split())
    assert done.returncode == 7 and "no IPVS backend" in done.stderr


# No advice weakens a protection, deletes, or answers a question that asks for consent.
FORBIDDEN = re.compile(
    r"--yes|--kill|--force|--prune|\bflush\b|\binsmod\b|\brmmod\b|modprobe -r|\bkill\b|"
    r"\brm -|fast-path (new|on)|guard off|\bsync stop\b|set key none|multicast off|"
    r"conn_max=?0|rp_filter=0|nft (flush|delete)|iptables -F|setenforce|mitigations")


def test_no_hint_in_the_source_weakens_or_deletes():
    hints = [(source.name, text) for source in SOURCES.glob("*.c")
             for text in re.findall(r'\bhint\((?:rc, )?("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)',
                                    source.read_text(encoding="utf-8"))]
    assert len(hints) > 60
    assert not [(name, text) for name, text in hints if FORBIDDEN.search(text)]


def test_no_hint_in_an_answer_weakens_or_deletes():
    for words in [row[0] for row in BAD + MENDED]:
        advice = ipvsctl(*words.split()).stderr.splitlines()[1:]
        assert not [line for line in advice if FORBIDDEN.search(line)], words
        assert not [line for line in advice if re.search(
            r"did you mean: (--)?(new|off|none|flush|yes|kill|zero|stop|no-xdp|delete)$", line)], words
