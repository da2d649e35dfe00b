# SPDX-License-Identifier: GPL-2.0
"""ipvsctl -j: keys stay within a schema, numbers are whole however large."""

import json
import re
import socket
import subprocess
from pathlib import Path

from lab.ctl import VIP
from lab.monitor import ConnLog, Monitor

TAKES = 20
NO_MODULE = True        # `module` loads it
RECORD = Path(__file__).with_name("json_keys.json")

# A configuration in which every key appears.
CONFIG = f"""\
svc add udp {VIP}:5353 scheduler rr persistent 50 mask 24 on-loss move on-drain keep \
guard drop fast-path off timeout tcp 2h tcp-fin 9 udp 30 sctp 9 server 10.0.0.11 dr \
max-conns 70000 min-conns 50
svc add tcp {VIP}:80 scheduler lblc option expire 300 on-idle reset sync templates priority las 16K,1M \
ramp 30s limit-rate 5000 limit-burst 500 limit-conns 200000 limit-reply reset \
owner web protected on shadow mh server 10.0.0.12 tun type gue port 6080 csum \
server 10.0.0.13 tun type gue port 6081 remcsum
svc add fwmark 7 scheduler sh flags fallback,port persistent 50 latency on server 10.0.0.11
svc add udp {VIP}:54 scheduler rr ops server 10.0.0.11
svc add tcp {VIP}:55 scheduler mh conn-state lazy server 10.0.0.11
svc add udp {VIP}:57 scheduler rr snat 10.0.0.1 server 10.0.0.11
sync start receive dev d0 id 7"""

SHOWN = ("show", "conn show", "conn count by state", "stats", "stats latency", "stats percpu", "-b -n top 1",
         "timeout show", "sync show",
         "scheduler list", "scheduler show lblc", "info", "save", "export", "fast-path",
         f"scheduler compare udp:{VIP}:5353 with rr,mh flows 9 clients live without 10.0.0.11",
         f"scheduler stats tcp:{VIP}:80",
         f"-n service delete udp:{VIP}:54", f"server drain udp:{VIP}:54 10.0.0.11")
# A file for apply, in which udp VIP:54 differs.
FILE = f"{{version: 1, timeouts: {{tcp: 20m}}, services: [{{service: 'udp {VIP}:54', servers: [10.0.0.11]}}]}}"
REFUSED = ((f"service add udp:{VIP}:54", 5), (f"service delete tcp:{VIP}:81", 4),
           ("service add tcp 192.0.2.256:80", 2))
# Objects whose keys are data, not part of the schema.
NAMES = ("by", "services[].options", "drops_per_second")


def keys(value, path="", found=None):
    """{path of a key: the JSON types of its values}"""
    found = {} if found is None else found
    kind = {dict: "object", list: "array", str: "string", int: "integer", float: "number",
            bool: "boolean", type(None): "null"}[type(value)]
    if path:
        found.setdefault(path, set()).add(kind)
    if kind == "object":
        for name, one in value.items():
            name = "*" if path in NAMES else name
            keys(one, f"{path}.{name}" if path else name, found)
    elif kind == "array":
        for one in value:
            keys(one, f"{path}[]", found)
    return found


def send(one, port, mark=0):
    with one.ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, 36, mark)       # SO_MARK
        s.sendto(b"x", (VIP, port))


def followed(one):
    """{command: [what it prints]} of those that print until they are stopped"""
    with Monitor(one.ns) as monitor, ConnLog(one.ns) as log:
        one.build(f"""\
svc add udp {VIP}:56 scheduler rr log on snat 10.0.0.1 server 10.0.0.11 max-conns 1
sched set udp:{VIP}:56 wrr
rs change udp {VIP}:56 10.0.0.11 weight 9""")
        one.ns.datagrams((VIP, 56), 1)
        one.build(f"""\
conn kill --yes
sync peer add 10.0.0.9
sync peer delete 10.0.0.9
rs delete udp {VIP}:56 10.0.0.11""")
        events = []
        while not events or events[-1]["event"] != "server-deleted":
            events.append(monitor.next())
        return {"monitor": [monitor.head, *events], "conn log": [log.head, log.next()]}


def every_key(one, exported):
    """(schema, {command: {key: types, separated by blanks}}) of this ipvsctl"""
    one.build(CONFIG)
    send(one, 5353)
    send(one, 57)
    send(one, 5555, mark=7)
    documents = {words: one.json(words) for words in SHOWN}
    saved = json.dumps(documents["save"])
    documents["-n restore"] = one.json("-n restore", stdin=saved)
    documents["restore"] = one.json("restore", stdin=saved)
    documents["diff -"] = one.json("diff -", code=1, stdin=FILE, out=True)
    for words in "-n apply -", "apply - --confirm 60", "confirm", "-n rollback", "rollback":
        documents[words] = one.json(words, stdin=FILE)
    documents["check -"] = one.json("check -", stdin=FILE)
    documents["doctor"] = one.json("doctor", code=1, out=True)
    one.ctl(f"conn kill service udp:{VIP}:57 --yes")     # full NAT stays here
    one.ctl("conn export", exported)
    documents["conn import"] = one.json("conn import", exported)
    documents["conn kill --yes"] = one.json("conn kill --yes")
    assert {d["ipvsctl"]["schema"] for d in documents.values()} == \
        {documents["show"]["ipvsctl"]["schema"]}
    documents |= followed(one)
    documents["errors"] = [json.loads(one.ctl("-j", words, code=code))
                           for words, code in REFUSED]
    return str(documents["show"]["ipvsctl"]["schema"]), \
        {words: {key: " ".join(sorted(kinds)) for key, kinds in keys(document).items()}
         for words, document in documents.items()}


def test_keys_stay(fresh, monkeypatch, tmp_path):  # noqa: F811
    """A schema keeps all keys and types that it ever had; other changes need a new
    schema. New keys must be recorded, too, or nobody would notice their loss."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    schema, have = every_key(fresh, str(tmp_path / "connections"))
    record = json.loads(RECORD.read_text(encoding="ascii"))
    assert schema in record, f"record the keys of schema {schema} in {RECORD.name}: " + \
        json.dumps(have)
    had = record[schema]
    lost = {(words, key): (kinds, have.get(words, {}).get(key)) for words in had
            for key, kinds in had[words].items()
            if kinds != have.get(words, {}).get(key)}
    assert lost == {}, "not within a schema"
    new = {(words, key): kinds for words in have for key, kinds in have[words].items()
           if key not in had.get(words, {})}
    assert new == {}, f"record these in {RECORD.name}"


# Replaces the counters that libnl reads from netlink answers, and the totals of /proc.
PRELOAD = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nlattr;

uint64_t nla_get_u64(const struct nlattr *attr)
{
	return strtoull(getenv("COUNT"), NULL, 0);
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");

	return real(strcmp(path, "/proc/net/ip_vs_stats") ? path : getenv("STATS"), mode);
}
"""
STATS = """\
   Total Incoming Outgoing         Incoming         Outgoing
   Conns  Packets  Packets            Bytes            Bytes
{0:8X} {0:8X} {0:8X} {0:16X} {0:16X}

 Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s
       0        0        0                0                0
"""
COUNTERS = ("conns", "in_packets", "out_packets", "in_bytes", "out_bytes")


def test_large_counters(fresh, tmp_path):  # noqa: F811
    """They are printed to the last digit, which a floating point number would lose. The
    kernel's counters are replaced by values that would take years to reach."""
    source, library, stats = (tmp_path / name for name in ("count.c", "count.so", "stats"))
    source.write_text(PRELOAD, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=300)
    fresh.ctl(f"svc add udp {VIP}:5353 scheduler rr priority las 16K server 10.0.0.11")
    for count in (2**53 - 1, 2**53 + 1, 2**62 + 1, 2**63 - 1):
        stats.write_text(STATS.format(count), encoding="ascii")
        env = {"LD_PRELOAD": str(library), "COUNT": str(count), "STATS": str(stats)}
        text = fresh.ctl("-j stats", env=env)
        document = json.loads(text)
        (service,) = document["services"]
        for found in (document["total"], service["stats"], service["servers"][0]["stats"]):
            assert [found[name] for name in COUNTERS] == [count] * len(COUNTERS)
        for band in service["bands"]:
            assert band["out_packets"] == band["out_bytes"] == count
        # Not 9007199254740993.0, which json.loads() would accept, too.
        assert "." not in re.sub(r'"[^"]*"', "", text)
        rows = [line.split() for line in fresh.ctl("stats -H", env=env).splitlines()]
        assert [row[-5:] for row in rows[:3]] == [[str(count)] * 5] * 3
