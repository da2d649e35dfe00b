# SPDX-License-Identifier: GPL-2.0
"""Every option of Debian's ipvsadm, in scripts that run with either module.

A script is a list of command lines for ipvsadm, each without the program's
name. Consecutive rules (-A -E -D -a -e -d) are fed to one `-R`, because starting
processes takes most of the time; a line with `!` is refused and runs alone.
`ARGS <<< RULE; RULE` feeds rules to a command's standard input. `send N ADDRESS
PORT` is no command: it sends N clients' datagrams and waits until they are counted.

The namespace has the VIPs 192.0.2.10 and 2001:db8:1::10 as its own addresses,
and 10.0.0.0/24 and 2001:db8::/64 behind a device that discards everything, so
that programs in the namespace can be the clients.
"""

import itertools
import re
import shlex
import socket

from . import genl
from .netns import Namespace, wait_until

VIP, VIP6 = "192.0.2.10", "2001:db8:1::10"
FIRST_SPORT = 40001
END = "\x1e"
RULE = re.compile(r"(-[AEDaed]|--(add|edit|delete)-(service|server)) ")

SIP = "persistence-engine-sip"       # for a kernel that has ip_vs_pe_sip
SCRIPTS = {
    # -- services
    "tcp": """
        -A -t 192.0.2.10:80 -s rr
        -a -t 192.0.2.10:80 -r 10.0.0.11:8080 -m
        -A --tcp-service 192.0.2.10:81 --scheduler wrr
        --add-server -t 192.0.2.10:81 --real-server 10.0.0.11:80 --masquerading --weight 7""",
    "udp": """
        --add-service --udp-service 192.0.2.10:53
        -a -u 192.0.2.10:53 -r 10.0.0.11:53 -m -w 0
        -A -u [2001:db8:1::10]:53 -s lc
        -a -u [2001:db8:1::10]:53 -r [2001:db8::11]:5353 -m""",
    "sctp": """
        -A --sctp-service 192.0.2.10:9899 -s wlc
        -a --sctp-service 192.0.2.10:9899 -r 10.0.0.11:9900 -m
        -A --sctp-service [2001:db8:1::10]:9899 -p
        -a --sctp-service [2001:db8:1::10]:9899 -r [2001:db8::11]:9899 -g""",
    "fwmark": """
        -A -f 7 -s rr
        -a -f 7 -r 10.0.0.11 -g
        -a -f 7 -r 10.0.0.12:8080 -m
        -A --fwmark-service 2147483647
        -A -f 7 -6 -s wrr
        -a -f 7 -6 -r [2001:db8::11]:0 -m -w 65535
        -A --fwmark-service 9 --ipv6 -p 60
        ! -A -f 7 -s rr
        -D -f 7 -6""",
    "persistent": """
        -A -t 192.0.2.10:80 -p
        -A -t 192.0.2.10:81 -p 600 -M 255.255.255.0
        -A -u 192.0.2.10:0 --persistent 30 --netmask 255.255.0.0
        -A -t [2001:db8:1::10]:80 -p 90 -M 64
        ! -A -t [2001:db8:1::10]:81 -p -M 129
        ! -A -t 192.0.2.10:0 -s rr
        -E -t 192.0.2.10:80 -s wlc
        -E -t 192.0.2.10:81 -p 60""",
    "one-packet": """
        -A -u 192.0.2.10:53 -s rr -o
        -A -f 8 --ops
        ! -A -t 192.0.2.10:80 -o
        -E -u 192.0.2.10:53 -s rr""",
    "every-scheduler": """
        -A -t 192.0.2.10:1 -s rr
        -A -t 192.0.2.10:2 -s wrr
        -A -t 192.0.2.10:3 -s lc
        -A -t 192.0.2.10:4 -s wlc
        -A -t 192.0.2.10:5 -s lblc
        -A -t 192.0.2.10:6 -s lblcr
        -A -t 192.0.2.10:7 -s dh
        -A -t 192.0.2.10:8 -s sh
        -A -t 192.0.2.10:9 -s sed
        -A -t 192.0.2.10:10 -s nq
        -A -t 192.0.2.10:11 -s fo
        -A -t 192.0.2.10:12 -s ovf
        -A -t 192.0.2.10:13 -s mh
        -A -t 192.0.2.10:14
        ! -A -t 192.0.2.10:15 -s nosuch""",
    "sched-flags": """
        -A -t 192.0.2.10:1 -s sh -b sh-fallback
        -A -t 192.0.2.10:2 -s sh --sched-flags sh-fallback,sh-port
        -A -t 192.0.2.10:3 -s mh -b mh-port
        -A -t 192.0.2.10:4 -s mh -b mh-fallback,mh-port
        -A -t 192.0.2.10:5 -s sh -b flag-1
        -E -t 192.0.2.10:5 -s sh -b flag-2
        -E -t 192.0.2.10:5 -s sh
        -E -t 192.0.2.10:2 -s rr""",
    "sched-flags-foreign": """
        -A -t 192.0.2.10:1 -s rr -b flag-1
        -A -t 192.0.2.10:2 -s sh -b flag-3""",
    "persistence-engine": """
        ! -A -u 192.0.2.10:5060 -p -o --pe nosuch""",
    SIP: """
        -A -u 192.0.2.10:5060 -p -o --pe sip
        -Sn
        -D -u 192.0.2.10:5060""",
    "edit-service": """
        -A -t 192.0.2.10:80 -s rr
        -a -t 192.0.2.10:80 -r 10.0.0.11:80 -m -w 5
        --edit-service -t 192.0.2.10:80 -s lc -p 90 -M 255.0.0.0
        ! -E -t 192.0.2.10:81 -s lc
        ! -E -t 192.0.2.10:80 -s nosuch""",
    "delete-service": """
        -A -t 192.0.2.10:80
        -a -t 192.0.2.10:80 -r 10.0.0.11
        -A -t 192.0.2.10:81
        --delete-service -t 192.0.2.10:81
        ! -D -t 192.0.2.10:81
        -D -t 192.0.2.10:80""",
    # -- real servers
    "methods": """
        -A -t 192.0.2.10:80 -s rr
        -a -t 192.0.2.10:80 -r 10.0.0.11 -g
        -a -t 192.0.2.10:80 -r 10.0.0.12:80 --gatewaying
        -a -t 192.0.2.10:80 -r 10.0.0.13 -i
        -a -t 192.0.2.10:80 -r 10.0.0.14 --ipip -w 3
        -a -t 192.0.2.10:80 -r 10.0.0.15:8080 -m
        -a -t 192.0.2.10:80 -r 10.0.0.16
        -a -t 192.0.2.10:80 -r 10.0.0.17:8080 -g
        -a -t 192.0.2.10:80 -r [2001:db8::11]:80 -i
        ! -a -t 192.0.2.10:80 -r [2001:db8::12]:80 -m
        -a -t 192.0.2.10:80 -r 127.0.0.1:80 -m
        ! -a -t 192.0.2.10:80 -r 224.0.0.9:80 -m""",
    "tunnels": """
        -A -t 192.0.2.10:80 -s rr
        -a -t 192.0.2.10:80 -r 10.0.0.11 -i --tun-type ipip
        -a -t 192.0.2.10:80 -r 10.0.0.12 -i --tun-type gue --tun-port 6080 --tun-nocsum
        -a -t 192.0.2.10:80 -r 10.0.0.13 -i --tun-type gue --tun-port 6080 --tun-csum
        -a -t 192.0.2.10:80 -r 10.0.0.14 -i --tun-type gue --tun-port 6080 --tun-remcsum
        -a -t 192.0.2.10:80 -r 10.0.0.15 -i --tun-type gre
        -a -t 192.0.2.10:80 -r 10.0.0.16 -i --tun-type gre --tun-csum
        ! -a -t 192.0.2.10:80 -r 10.0.0.17 -i --tun-type gue
        ! -a -t 192.0.2.10:80 -r 10.0.0.18 -i --tun-type nosuch
        -e -t 192.0.2.10:80 -r 10.0.0.12 -i --tun-type gue --tun-port 6081
        -e -t 192.0.2.10:80 -r 10.0.0.16 -m
        -L -n --tun-info""",
    "weights": """
        -A -t 192.0.2.10:80 -s wrr
        -a -t 192.0.2.10:80 -r 10.0.0.11 -w 0
        -a -t 192.0.2.10:80 -r 10.0.0.12 -w 2147483647
        -a -t 192.0.2.10:80 -r 10.0.0.13 -w 65536
        ! -a -t 192.0.2.10:80 -r 10.0.0.14 -w 2147483648
        ! -a -t 192.0.2.10:80 -r 10.0.0.15 -w -1""",
    "thresholds": """
        -A -t 192.0.2.10:80 -s wlc
        -a -t 192.0.2.10:80 -r 10.0.0.11 -x 100 -y 50
        -a -t 192.0.2.10:80 -r 10.0.0.12 --u-threshold 9
        -a -t 192.0.2.10:80 -r 10.0.0.13 --u-threshold 10 --l-threshold 9
        ! -a -t 192.0.2.10:80 -r 10.0.0.14 -x 1 -y 2
        ! -a -t 192.0.2.10:80 -r 10.0.0.14 -y 2
        -L -n --thresholds""",
    "edit-server": """
        -A -t 192.0.2.10:80
        -a -t 192.0.2.10:80 -r 10.0.0.11 -m -w 5
        -a -t 192.0.2.10:80 -r 10.0.0.12 -m -w 5
        ! -a -t 192.0.2.10:80 -r 10.0.0.12 -m
        --edit-server -t 192.0.2.10:80 -r 10.0.0.11 -m -w 8
        -e -t 192.0.2.10:80 -r 10.0.0.12 -g
        ! -e -t 192.0.2.10:80 -r 10.0.0.13 -m
        ! -e -t 192.0.2.10:81 -r 10.0.0.11 -m
        --delete-server -t 192.0.2.10:80 -r 10.0.0.11
        ! -d -t 192.0.2.10:80 -r 10.0.0.11
        ! -d -t 192.0.2.10:81 -r 10.0.0.11""",
    # -- the whole table
    "clear-restore-save": """
        -A -t 192.0.2.10:80
        -A -f 3
        --clear
        --restore <<< -A -t 127.0.0.1:81; -A -t 127.0.0.1:80; ipvsadm -A -t 127.0.0.1:82
        --save
        -S -n
        --save --numeric
        -C
        -R <<< -A -f 5 -6 -p 60; -a -f 5 -6 -r [2001:db8::11]:0 -w 9; -E -f 5 -6 -s rr""",
    "set": """
        --set 700 0 200
        -L --timeout
        --set 0 60 0
        -l --timeout
        ! --set 99999999 1 1
        --list --timeout
        --set 900 120 300""",
    # -- listing
    "list": """
        -A -t 127.0.0.1:80 -s rr
        -a -t 127.0.0.1:80 -r 127.0.0.1:443 -m
        -A -u 127.0.0.1:53
        -L
        -l
        --list --numeric
        -L -n -t 127.0.0.1:80
        ! -L -n -t 127.0.0.1:81
        -L -n --persistent-conn
        -L -n --sort
        -L -n --exact
        -L -n --daemon
        -L -n --stats --rate""",
    "sort": """
        -A -t 192.0.2.10:80
        -a -t 192.0.2.10:80 -r 10.0.0.13
        -a -t 192.0.2.10:80 -r 10.0.0.11
        -a -t 192.0.2.10:80 -r 10.0.0.12
        -L -n --sort
        -L -n --nosort""",
    "nosort-services": """
        -A -t 192.0.2.10:90
        -A -t 192.0.2.10:80
        -A -u 192.0.2.10:80
        -A -t [2001:db8:1::10]:80
        -A -t 192.0.2.10:77
        -A -t 192.0.2.10:99
        -A -t 192.0.2.10:55
        -A -t 192.0.2.10:88
        -A -t 192.0.2.10:66
        -A -t 192.0.2.10:44
        -A -t 192.0.2.10:33
        -A -t 192.0.2.10:22
        -A -f 1
        --list --numeric --nosort""",
    "counters": """
        -A -u 192.0.2.10:53 -s rr
        -a -u 192.0.2.10:53 -r 10.0.0.11 -g
        -A -u [2001:db8:1::10]:53 -s rr
        -a -u [2001:db8:1::10]:53 -r [2001:db8::11]:53 -g
        -A -u 192.0.2.10:54 -p 300
        -a -u 192.0.2.10:54 -r 10.0.0.12 -g -x 100
        send 3 192.0.2.10 53
        send 2 2001:db8:1::10 53
        send 4 192.0.2.10 54
        -L -n --stats
        -L -n --stats --exact
        -L -n --rate
        -L -n --rate --exact
        -L -n -u 192.0.2.10:53 --stats
        -L -n --persistent-conn
        -L -n --thresholds
        -L -n -c
        -L -n --connection --persistent-conn
        -L -n -c --exact --sort
        -Z -u 192.0.2.10:53
        -L -n --stats
        --zero
        -L -n --stats
        ! -Z -u 192.0.2.10:99""",
    "help": "-h",
    "long-help": "--help",
    # -- synchronisation
    "daemon": """
        --start-daemon master --mcast-interface lo --syncid 7 --sync-maxlen 1400 \
--mcast-group 224.0.0.90 --mcast-port 8850 --mcast-ttl 3
        --list --daemon
        ! --start-daemon master --mcast-interface lo
        --start-daemon backup --mcast-interface sink0 --syncid 255
        -L -n --daemon
        -S
        --stop-daemon master
        ! --stop-daemon master
        -L --daemon
        --stop-daemon backup
        --start-daemon backup --mcast-interface sink0 --mcast-group ff02::51
        --start-daemon master --mcast-interface sink0 --mcast-group ff02::51 --sync-maxlen 65000
        -L --daemon
        --stop-daemon backup
        --stop-daemon master
        ! --start-daemon master --mcast-interface nosuch0
        ! --start-daemon master --mcast-interface lo --mcast-group 10.0.0.1
        ! --start-daemon backup --mcast-interface lo --mcast-group 2001:db8::1
        ! --start-daemon nothing --mcast-interface lo
        -L --daemon""",
}

# Intended differences from in-tree ip_vs:
# {line: (reason, regular expression for l4lb's answer)}.
DIFFERENT = {
    "--list --numeric --nosort": (
        "unsorted, services come in the order of adding, not in that of a hash, which is "
        "another one for each namespace",
        "(?s)^0 .*TCP.*:90 .*TCP.*:80 .*UDP.*:80 .*2001:db8.*:77 .*:99 .*:55 .*:88 .*:66 .*:44 "
        ".*:33 .*:22 .*FWM  1"),
}


def words_used():
    """Every option in the scripts."""
    return {word for script in SCRIPTS.values() for word in re.split(r"[\s;]+", script)
            if word.startswith("-")}


class Director:
    """The namespace in which scripts run."""

    def __init__(self):
        self.ns = Namespace("adm")
        self.ns.ip("link set lo up", "link add sink0 type dummy", "link set sink0 up",
                   "addr add 10.0.0.1/24 dev sink0", "addr add 2001:db8::1/64 dev sink0 nodad",
                   f"addr add {VIP}/32 dev lo", f"addr add {VIP6}/128 dev lo nodad")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ns.destroy()

    def ask(self, *lines):
        """[(line, "STATUS output")] of command lines; one shell runs all of them,
        because starting processes takes most of the time."""
        script = "".join(f"{command(line)}echo \"{END}$?\"\n" for line in lines)
        found = self.ns.run(["sh", "-s"], text_input=script).stdout.split(END)
        # Each status is at the beginning of the text after its END.
        said = [found[0], *(text.partition("\n")[2] for text in found[1:])]
        statuses = [text.partition("\n")[0] for text in found[1:]]
        return [(line, answer(f"{status} {text}"))
                for line, status, text in zip(lines, statuses, said)]

    def play(self, script):
        """[(line, answer)] of a script and of a final save; the table is empty
        afterwards."""
        out = []
        lines = [*batched(script), "-Sn"]
        for sent, group in itertools.groupby(lines, lambda line: line.startswith("send ")):
            if sent:
                for line in group:
                    self.send(*line.split()[1:])
            else:
                out += self.ask(*group)
        with genl.Ipvs(self.ns) as ipvs:
            ipvs.flush()
        return out

    def send(self, count, address, port):
        count, port = int(count), int(port)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        name = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        for n in range(count):
            with self.ns.socket(family, socket.SOCK_DGRAM) as s:
                s.bind((address, FIRST_SPORT + n))
                s.sendto(b"x" * 72, (address, port))

        def counted():
            ((_, text),) = self.ask("-Ln --stats --exact")
            return re.search(rf"^UDP  {re.escape(name)} +{count} +{count} ", text, re.M) and \
                re.search(rf"^UDP  {re.escape(name)}.*\n  -> \S+ +{count} +{count} ", text, re.M)
        wait_until(counted, 10, step=0.2)


def batched(script):
    """The lines of a script; consecutive rules become one -R."""
    for rules, group in itertools.groupby(re.split(r"\n\s*", script.strip()), RULE.match):
        if rules:
            yield "-R <<< " + "; ".join(group)
        else:
            yield from group


def command(line):
    """A line of a script as a shell command."""
    args, _, rules = line.removeprefix("! ").partition("<<<")
    rules = re.sub(r"; *", "\n", rules.strip())
    return f"{shlex.join(['ipvsadm', *args.split()])} 2>&1 <<'EOT'\n{rules}\nEOT\n"


def answer(text):
    """The program's output without values that differ between runs: the table's
    size, remaining seconds, rates."""
    text = re.sub(r"\(size=\d+\)", "(size=N)", text)
    text = re.sub(r"^(IP|TCP|UDP|SCTP) +\d\d:\d\d ", r"\1 MM:SS ", text, flags=re.M)
    if "CPS" in text:
        text = re.sub(r"(?<= )\d+(?= |$)", "N", re.sub(r" +", " ", text), flags=re.M)
    if " expire state " in text:
        # Connections come in the order of a hash.
        head, *rows = text.split("\n")
        text = "\n".join([head, *rows[:1], *sorted(rows[1:])])
    return text
