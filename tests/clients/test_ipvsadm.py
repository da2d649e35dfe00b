# SPDX-License-Identifier: GPL-2.0
"""Debian's ipvsadm, unmodified, from end to end."""

import re

import pytest
from lab.farm import http_get
from lab.netns import wait_until
from lab.packet import UDP
from lab.raw import Raw

RULES = """\
-A -t 198.51.100.100:80 -s wrr
-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m -w 3
-a -t 198.51.100.100:80 -r 192.0.2.12:8080 -m -w 2 -x 100 -y 50
-A -t 198.51.100.100:443 -s wlc -p 600 -M 255.255.255.0
-a -t 198.51.100.100:443 -r 192.0.2.13:443 -g -w 1
-a -t 198.51.100.100:443 -r 192.0.2.14:443 -i -w 0
-A -u 198.51.100.100:53 -s rr -o
-a -u 198.51.100.100:53 -r 192.0.2.11:53 -m -w 1
-A -t [2001:db8:1::100]:80 -s lc
-a -t [2001:db8:1::100]:80 -r [2001:db8:2::11]:80 -m -w 1
-A -f 7 -s rr
-a -f 7 -r 192.0.2.11:0 -g -w 1
-A -f 8 -6 -s wlc -p 360
-a -f 8 -6 -r [2001:db8:2::12]:0 -m -w 65535
"""


@pytest.fixture
def adm(nat):
    def ipvsadm(args, check=True, stdin=None):
        return nat.director.ns.run(["ipvsadm", *args.split()], check=check, text_input=stdin)
    return ipvsadm


def rules(adm):
    return adm("-Sn").stdout


def lines(text):
    """The lines that -S prints, sorted, so that the order of services is ignored."""
    return sorted(re.sub(r" +", " ", line).strip() for line in text.splitlines())


# ipvsadm -S leaves thresholds out.
EXPECTED = """\
-A -t 198.51.100.100:80 -s wrr
-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m -w 3
-a -t 198.51.100.100:80 -r 192.0.2.12:8080 -m -w 2
-A -t 198.51.100.100:443 -s wlc -p 600 -M 255.255.255.0
-a -t 198.51.100.100:443 -r 192.0.2.13:443 -g -w 1
-a -t 198.51.100.100:443 -r 192.0.2.14:443 -i -w 0 --tun-type ipip
-A -u 198.51.100.100:53 -s rr -o
-a -u 198.51.100.100:53 -r 192.0.2.11:53 -m -w 1
-A -t [2001:db8:1::100]:80 -s lc
-a -t [2001:db8:1::100]:80 -r [2001:db8:2::11]:80 -m -w 1
-A -f 7 -s rr
-a -f 7 -r 192.0.2.11:0 -g -w 1
-A -f 8 -6 -s wlc -p 360
-a -f 8 -6 -r [2001:db8:2::12]:0 -m -w 65535
"""


@pytest.mark.stock
@pytest.mark.smoke
def test_restore_save_clear(adm):
    adm("-R", stdin=RULES)
    saved = rules(adm)
    assert lines(saved) == lines(EXPECTED)
    adm("-C")
    assert rules(adm) == ""
    adm("-R", stdin=saved)
    assert lines(rules(adm)) == lines(saved)


@pytest.mark.smoke
def test_list(adm):
    adm("-R", stdin=RULES)
    out = adm("-L -n").stdout
    assert re.match(r"IP Virtual Server version 1\.2\.1 \(size=\d+\)\n"
                    r"Prot LocalAddress:Port Scheduler Flags\n"
                    r"  -> RemoteAddress:Port +Forward Weight ActiveConn InActConn\n", out)
    for row in (r"TCP  198\.51\.100\.100:80 wrr",
                r"  -> 192\.0\.2\.11:80 +Masq +3 +0 +0",
                r"  -> 192\.0\.2\.13:443 +Route +1 +0 +0",
                r"  -> 192\.0\.2\.14:443 +Tunnel +0 +0 +0",
                r"TCP  198\.51\.100\.100:443 wlc persistent 600 mask 255\.255\.255\.0",
                r"UDP  198\.51\.100\.100:53 rr ops",
                r"TCP  \[2001:db8:1::100\]:80 lc",
                r"  -> \[2001:db8:2::11\]:80 +Masq +1 +0 +0",
                r"FWM  7 rr", r"FWM  8 IPv6 wlc persistent 360"):
        assert re.search(f"^{row} *$", out, re.M), row + "\n" + out
    one = adm("-L -n -t 198.51.100.100:80").stdout
    assert "192.0.2.12:8080" in one and "192.0.2.13" not in one
    thresholds = adm("-L -n --thresholds").stdout
    assert re.search(r"-> 192\.0\.2\.12:8080 +100 +50 +0 +0", thresholds), thresholds


def test_edit_and_delete(adm):
    adm("-A -t 198.51.100.100:80 -s rr")
    adm("-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m")
    adm("-a -t 198.51.100.100:80 -r 192.0.2.12:80 -m")
    adm("-E -t 198.51.100.100:80 -s wrr -p 60")
    adm("-e -t 198.51.100.100:80 -r 192.0.2.11:80 -m -w 9")
    assert lines(rules(adm)) == lines(
        "-A -t 198.51.100.100:80 -s wrr -p 60\n"
        "-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m -w 9\n"
        "-a -t 198.51.100.100:80 -r 192.0.2.12:80 -m -w 1\n")
    adm("-d -t 198.51.100.100:80 -r 192.0.2.12:80")
    assert "192.0.2.12" not in rules(adm)
    adm("-D -t 198.51.100.100:80")
    assert rules(adm) == ""


def test_scheduler_flags_go_with_their_scheduler(adm):
    """ipvsadm sends all flags with each -E, so the old ones need not be cleared first."""
    adm("-A -t 198.51.100.100:80 -s sh -b sh-port,sh-fallback")
    adm("-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m")
    assert "-s sh -b sh-fallback,sh-port" in rules(adm)
    adm("-E -t 198.51.100.100:80 -s rr -b flag-1")
    assert "-s rr -b flag-1" in rules(adm)
    adm("-E -t 198.51.100.100:80 -s rr")
    assert lines(rules(adm)) == lines("-A -t 198.51.100.100:80 -s rr\n"
                                      "-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m -w 1\n")


ERRORS = [
    ("-A -t 198.51.100.100:80 -s rr", "Service already exists"),
    ("-A -t 198.51.100.100:81 -s nosuch", "Scheduler or persistence engine not found"),
    ("-D -t 198.51.100.100:82", "No such service"),
    ("-E -t 198.51.100.100:82 -s rr", "No such service"),
    ("-a -t 198.51.100.100:82 -r 192.0.2.11:80 -m", "Service not defined"),
    ("-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m", "Destination already exists"),
    ("-e -t 198.51.100.100:80 -r 192.0.2.99:80 -m", "No such destination"),
    ("-d -t 198.51.100.100:80 -r 192.0.2.99:80", "No such destination"),
    ("-a -t 198.51.100.100:80 -r 224.0.0.9:80 -m", "Invalid operation"),
]


def test_errors(adm):
    """The messages that ipvsadm derives from our error codes."""
    adm("-A -t 198.51.100.100:80 -s rr")
    adm("-a -t 198.51.100.100:80 -r 192.0.2.11:80 -m")
    before = rules(adm)
    for args, message in ERRORS:
        done = adm(args, check=False)
        assert done.returncode != 0, args
        assert message in done.stderr, (args, done.stderr)
    assert rules(adm) == before


def test_timeouts(adm):
    assert "Timeout (tcp tcpfin udp): 900 120 300" in adm("-L --timeout").stdout
    adm("--set 800 0 200")
    assert "Timeout (tcp tcpfin udp): 800 120 200" in adm("-L --timeout").stdout


@pytest.mark.smoke
def test_connections_stats_rate(nat, adm):
    """-c, --stats and --rate against real requests."""
    port = nat.http_port()
    vip = f"{nat.vip()}:{port}"
    adm(f"-A -t {vip} -s rr")
    adm(f"-a -t {vip} -r {nat.rip(1)}:{port} -m")
    for _ in range(3):
        http_get(nat.client, nat.vip(), port)
    rows = [line for line in adm("-L -n -c").stdout.splitlines() if vip in line]
    assert len(rows) == 3
    for row in rows:
        assert re.match(rf"TCP \d\d:\d\d  (TIME_WAIT|CLOSE_WAIT|FIN_WAIT|CLOSE) +"
                        rf"{nat.cip()}:\d+ +{vip} +{nat.rip(1)}:{port}$", row.strip()), row

    def counted():
        out = adm("-L -n --stats --exact").stdout
        found = re.search(rf"^TCP  {vip} +3 +(\d+) +(\d+) +(\d+) +(\d+)", out, re.M)
        return found and all(int(n) > 6 for n in found.groups()) and re.search(
            rf"-> {nat.rip(1)}:{port} +3 +(\d+)", out)

    wait_until(counted, 8, step=0.3)
    assert re.search(rf"^TCP  {vip} +\d+ +\d+ +\d+ +\d+ +\d+", adm("-L -n --rate").stdout, re.M)
    adm("-Z")
    assert re.search(rf"^TCP  {vip} +0 +0 +0 +0 +0", adm("-L -n --stats").stdout, re.M)


def test_zero_one(nat, adm):
    one, two = Raw(nat, UDP), Raw(nat, UDP)
    for raw in (one, two):
        raw.client().open()
        wait_until(lambda r=raw: r.service.stats["conns"] == 1, 5, step=0.1)
    adm(f"-Z -u {one.vip}:{one.port}")
    assert one.service.stats["conns"] == 0
    assert two.service.stats["conns"] == 1


def test_daemon_list(adm):
    assert adm("-L --daemon").stdout == ""
