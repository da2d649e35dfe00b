# SPDX-License-Identifier: GPL-2.0
"""Metrics for Prometheus, listings that repeat, files that are replaced as a whole; with a
kernel that tests/unit/fake_kernel.c plays."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import fake
import pytest
from prometheus_client.parser import text_string_to_metric_families

TOP = Path(__file__).resolve().parents[2]
PROM = "stats -F prometheus".split()
UNITS = TOP / "tools/systemd"


@pytest.fixture
def proc(tmp_path):
    return fake.proc(tmp_path / "proc")


def samples(text):
    """{name: {labels: value}}; fails where promtool would."""
    assert text.endswith("\n")
    families = list(text_string_to_metric_families(text))
    out, typed = {}, re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    assert [n for n, c in Counter(name for name, _ in typed).items() if c > 1] == []
    assert re.findall(r"^# HELP (\S+) \S.*$", text, re.M) == [name for name, _ in typed]
    for name, kind in typed:
        assert re.fullmatch(r"ipvs_[a-z][a-z0-9_]*", name)
        assert (kind == "counter") == name.endswith("_total"), name
    for family in families:
        for s in family.samples:
            key = tuple(sorted(s.labels.items()))
            assert key not in out.setdefault(s.name, {}), (s.name, key)
            out[s.name][key] = s.value
    # The samples of a metric stand together, below its head.
    heads = [name for name, _ in typed if re.search(rf"^{name}(_bucket)?[ {{]", text, re.M)]
    order = [re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", re.split(r"[{ ]", line)[0])
             for line in text.splitlines() if line[0] != "#"]
    assert len([a for a, b in zip(order, [None, *order], strict=False) if a != b]) == len(heads)
    return out


def one(found, name, **labels):
    return found[name][tuple(sorted(labels.items()))]


def test_every_number_has_its_metric(proc):
    found = samples(fake.run(proc, *PROM))
    web, first = {"service": "tcp:192.0.2.10:80"}, "10.0.0.11:80"
    assert one(found, "ipvs_info", backend="l4lb", backend_version="",
               ipvsctl_version="0.1.0") == 1
    assert (one(found, "ipvs_services"), one(found, "ipvs_connections_max")) == (6, 131072)
    assert one(found, "ipvs_connections_total") == 0x64
    assert one(found, "ipvs_packets_total", direction="out") == 0x384
    assert one(found, "ipvs_bytes_total", direction="in") == 0x1110c
    # An hour of 100 connections a second, of which each has 7 packets and answers 9.
    assert one(found, "ipvs_server_connections_total", **web, server=first) == 360000
    assert one(found, "ipvs_server_packets_total", **web, server=first, direction="in") == 2520000
    assert one(found, "ipvs_server_bytes_total", **web, server=first, direction="out") == 3.24e9
    assert one(found, "ipvs_service_connections_total", **web) == 658800
    assert one(found, "ipvs_service_active_connections", **web) == 10 + 11 + 12
    assert one(found, "ipvs_service_info", **web, scheduler="rr") == 1
    assert one(found, "ipvs_service_band_bytes_total", **web, below="131072") == 2000
    assert one(found, "ipvs_service_band_packets_total", **web, below="+Inf") == 40
    services = {dict(key)["service"] for key in found["ipvs_service_info"]}
    assert services == {"tcp:192.0.2.10:80", "udp:192.0.2.10:81", "sctp:192.0.2.10:82",
                        "tcp:192.0.2.10:83", "fwm:4", "sctp:[2001:db8::a]:85"}
    draining, full = ("tcp:192.0.2.10:83", "10.0.0.11:83"), ("sctp:192.0.2.10:82", "10.0.0.11:82")
    for (service, server), name, value in ((draining, "weight", 0), (full, "overloaded", 1),
                                           (draining, "overloaded", 0), (full, "weight", 1),
                                           (full, "max_connections", 20)):
        assert one(found, f"ipvs_server_{name}", service=service, server=server) == value
    for service, n in ((draining[0], 2), (full[0], 2), (web["service"], 3),
                       ("sctp:[2001:db8::a]:85", 0)):
        assert one(found, "ipvs_service_available_servers", service=service) == n
    assert one(found, "ipvs_sync_peer_state", peer="10.0.0.2") == 2
    assert one(found, "ipvs_sync_peer_lost_total", peer="10.0.0.2") == 3


def test_reasons_of_drops(proc):
    """Each name of /proc/net/l4lb is somewhere, also one that is added to the kernel's list."""
    fake.proc(proc, flood=77)
    text = (proc / "net/l4lb").read_text("ascii")
    (proc / "net/l4lb").write_text("flood 77\n" + text.replace("flood 77\n", ""), "ascii")
    found = samples(fake.run(proc, *PROM))
    packets = {dict(k)["reason"]: v for k, v in found["ipvs_dropped_packets_total"].items()}
    conns = {dict(k)["reason"]: v for k, v in found["ipvs_dropped_connections_total"].items()}
    assert set(conns) == {"drop_entry", "evicted"}
    want = {name: place for place, name in enumerate(fake.DROPS)} | {"flood": 77}
    assert packets | conns == want
    assert one(found, "ipvs_fast_path_packets_total", outcome="slow_protocol") == len(fake.DROPS) + 1
    assert one(found, "ipvs_sync_bytes_out_total") == len(fake.DROPS) + 4
    assert one(found, "ipvs_sync_full_total") == len(fake.DROPS) + 5


def test_the_old_module_has_what_it_has(proc):
    shutil.rmtree(proc / "sys")
    (proc / "net/l4lb").unlink()
    found = samples(fake.run(proc, *PROM, FAKE_OLD="1"))
    assert one(found, "ipvs_info", backend="ip_vs", backend_version="",
               ipvsctl_version="0.1.0") == 1
    assert not [n for n in found if "drop" in n or "sync" in n or "max" in n.split("server")[0]]
    assert len(found["ipvs_server_weight"]) == 15


def test_fewer_metrics(proc):
    """By service: a tenth of the lines; the sums stay. With a filter, no totals of all."""
    whole, sums = (samples(fake.run(proc, *PROM, *w)) for w in ((), ("by", "service")))
    assert {n: v for n, v in whole.items() if not n.startswith("ipvs_server_")} == sums
    some = samples(fake.run(proc, *PROM, "proto", "udp", "by", "service"))
    assert set(some) < set(sums) and "ipvs_connections_total" not in some
    assert list(some["ipvs_service_info"]) == [(("scheduler", "wlc"),
                                                ("service", "udp:192.0.2.10:81"))]
    empty = samples(fake.run(proc, *PROM, FAKE_SERVICES="0"))
    assert one(empty, "ipvs_services") == 0


def test_grouping_of_other_forms(proc):
    rows = fake.run(proc, "stats", "by", "service", "-H").splitlines()
    assert len(rows) == 1 + 6 and rows[1].split()[:2] == ["tcp", "192.0.2.10:80"]
    assert rows[1].split()[2] == "658800"
    doc = json.loads(fake.run(proc, "stats", "rate", "by", "service", "-j"))
    assert all("servers" not in s for s in doc["services"]) and len(doc["services"]) == 6
    assert len(json.loads(fake.run(proc, "stats", "by", "server", "-j"))["services"][0]
               ["servers"]) == 3


@pytest.mark.parametrize(("words", "why", "hint"), [
    ("stats -F promtheus", 'unknown format "promtheus"', "did you mean: prometheus"),
    ("stats by", '"by" needs a value: service or server', None),
    ("stats by servcie", 'unknown grouping "servcie"', "did you mean: service"),
    ("stats percpu -F prometheus", "stats percpu has no form prometheus", None),
    ("stats -F prometheus -w 5", "need a file", "try: --output FILE"),
    ("stats -w 0", 'bad interval "0"', None),
    ("stats -w 1.5", 'bad interval "1.5"', None),
    ("stats --watch", "option --watch needs a value", None),
    ("info -w 1", 'option --watch does not belong to "info"', None),
    ("show --output x", 'option --output does not belong to "show"', None),
])
def test_bad_words(proc, words, why, hint):
    lines = fake.run(proc, *words.split(), code=2).splitlines()
    assert why in lines[0] and (not hint or hint in lines[1])
    assert len(lines) == 1 + bool(hint)


# As on a full disk: no file may grow.
FULL = "sh", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$0" "$@"'


def test_a_file_is_replaced_whole(proc, tmp_path):
    target = tmp_path / "ipvs.prom"
    target.write_text("old", "ascii")
    before = target.stat().st_ino
    assert fake.run(proc, *PROM, "--output", str(target)) == ""
    assert samples(target.read_text("ascii")) and target.stat().st_ino != before
    kept = target.read_text("ascii")
    # What cannot be read or written leaves the file and nothing else.
    (proc / "net/ip_vs_stats").unlink()
    fake.run(proc, *PROM, "--output", str(target), code=7)
    assert target.read_text("ascii") == kept
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ipvs.prom", "proc"]
    fake.proc(proc)
    assert "cannot write" in fake.run(proc, *PROM, "--output", str(target), code=3, before=FULL)
    assert target.read_text("ascii") == kept
    # What somebody has left where the new file comes into being is not written to.
    other = tmp_path / "other"
    other.write_text("his", "ascii")
    (tmp_path / "ipvs.prom.new").symlink_to(other)
    fake.run(proc, *PROM, "--output", str(target))
    assert other.read_text("ascii") == "his" and not target.is_symlink()
    other.unlink()
    (tmp_path / "ipvs.prom.new").mkdir()
    assert "cannot write" in fake.run(proc, *PROM, "--output", str(target), code=2)
    assert "cannot write" in fake.run(proc, *PROM, "--output", f"{tmp_path}/none/x", code=2)
    assert "cannot write" in fake.run(proc, *PROM, "--output", "", code=2)


def test_readers_never_see_half_a_file(proc, tmp_path):
    """It is read as fast as possible while it is written once a second, and killed at last."""
    target = tmp_path / "ipvs.prom"
    with subprocess.Popen([fake.program(), *PROM, "--output", target, "-w", "1"],
                          env=os.environ | {"FAKE_PROC": str(proc), "FAKE_SERVICES": "300"}) as p:
        seen, end = set(), time.monotonic() + 30
        while len(seen) < 3 and time.monotonic() < end:
            if target.exists():
                text = target.read_text("ascii")
                assert text.startswith("# HELP ipvs_info") and text.endswith("} 0\n")
                seen.add(hash(text))
        p.send_signal(signal.SIGINT)
        assert p.wait(10) == 0
    assert len(seen) == 3
    assert sorted(x.name for x in tmp_path.iterdir()) == ["ipvs.prom", "proc"]


def watch(proc, *words, lines, end=signal.SIGINT, **env):
    """What is printed until there are so many lines, and then the signal."""
    with open(proc / "printed", "w+", encoding="ascii") as out, \
            subprocess.Popen([fake.program(), *words], stdout=out,
                             env=os.environ | {"FAKE_PROC": str(proc), "LANG": "C"} | env) as p:
        limit = time.monotonic() + 60
        try:
            while (proc / "printed").read_text("ascii").count("\n") < lines:
                assert time.monotonic() < limit
                time.sleep(0.05)
            p.send_signal(end)
            assert p.wait(10) == 0
        finally:
            p.kill()    # or a failure would wait for it
        out.seek(0)
        return out.read()


@pytest.mark.parametrize("command", ["stats", "service show"])
def test_documents_follow_one_another(proc, command):
    """One line each; the times do not drift, whatever the work takes."""
    text = watch(proc, *command.split(), "-j", "-w", "1", lines=4, FAKE_DELAY="400")
    docs = [json.loads(line) for line in text.splitlines()]
    assert all(len(d["services"]) == 6 for d in docs)
    # The first one begins the intervals.
    for before, after in itertools.pairwise(docs[1:]):
        assert round(after["time"] - before["time"], 3) == 1


def test_tables_follow_one_another(proc):
    text = watch(proc, "stats", "rate", "tcp:192.0.2.10:80", "-w", "1", lines=6,
                 end=signal.SIGTERM)
    first, second = text.split("\n\n")[:2]
    assert first.splitlines()[0] == second.splitlines()[0]
    assert len(first.splitlines()) == 1 + 1 + 3


def test_the_reader_goes_away(proc):
    """SIGPIPE ends it, silently."""
    with subprocess.Popen([fake.program(), "stats", "-j", "-w", "1"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=os.environ | {"FAKE_PROC": str(proc)}) as p:
        p.stdout.readline()
        p.stdout.close()
        assert p.wait(10) == -signal.SIGPIPE and p.stderr.read() == b""


def test_many_services_in_time(proc):
    """10,000 services with 4 servers each: half a million lines."""
    start = time.monotonic()
    text = fake.run(proc, *PROM, FAKE_SERVICES="10000", FAKE_SERVERS="4")
    assert time.monotonic() - start < 15
    assert text.count("\nipvs_server_connections_total{") == 9999 * 4
    small = fake.run(proc, *PROM, "by", "service", FAKE_SERVICES="10000", FAKE_SERVERS="4")
    assert len(small) < len(text) / 4


def test_units():
    """The timer starts the service, whose command is one that ipvsctl takes."""
    service = (UNITS / "ipvsctl-metrics.service").read_text("ascii")
    timer = (UNITS / "ipvsctl-metrics.timer").read_text("ascii")
    assert "WantedBy=timers.target" in timer and "[Install]" not in service
    command = re.search(r"^ExecStart=@SBIN@/ipvsctl (.*)$", service, re.M)[1].split()
    assert command[:-1] == [*PROM, "--output"]
    folder = str(Path(command[-1]).parent)
    assert f"\nReadWritePaths={folder}\n" in service and command[-1].endswith(".prom")


# ---- the dashboard ----

DASHBOARD = TOP / "tools/grafana/l4lb.json"
# What the functions in its queries are, and words that are no metrics.
FUNCTIONS = {"rate", "increase", "sum", "topk", "by", "ignoring", "group_left"}


def queries():
    """(title, query, legend) of each panel, and the queries of the variables"""
    doc = json.loads(DASHBOARD.read_text("ascii"))
    for panel in doc["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]
    for variable in doc["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], re.sub(r"label_values\((.*), (\w+)\)", r"sum by (\2) (\1)",
                                           variable["query"]), ""


def selectors(query):
    """(metric, [labels]) of each selector"""
    for name, inner in re.findall(r"\b(ipvs_\w+)(?:\{(.*?)\})?", query):
        yield name, re.findall(r'(\w+)=~?"', inner)


def test_queries_name_what_is_printed(proc):
    """Each metric exists with each label by which it is chosen, grouped or named; what is a
    counter is used as a rate, and nothing else is."""
    fake.proc(proc, sync_messages_in=5)
    text = fake.run(proc, *PROM)
    found = samples(text)
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    seen = set()
    for title, query, legend in queries():
        assert query.count("(") == query.count(")") and query.count("{") == query.count("}")
        words = re.findall(r"\b([a-z_]+)\b", re.sub(r"\{.*?\}|\[.*?\]", "", query))
        labels = {label for group in re.findall(r"(?:by|ignoring) ?\((\w+)\)", query)
                  for label in (group,)}
        assert not {w for w in words if not w.startswith("ipvs_")} - FUNCTIONS - labels, title
        for name, chosen in selectors(query):
            assert name in found, (title, name)
            have = {label for key in found[name] for label, _ in key} | {"instance"}
            assert set(chosen) <= have and "instance" in chosen or name == "ipvs_info", title
            if "server" in labels | set(re.findall(r"{{(\w+)}}", legend)):
                assert "server" in have or "ignoring" in query, title
            rated = re.search(rf"(?:rate|increase)\({name}\b", query)
            assert bool(rated) == (kinds[name] == "counter"), (title, name)
            seen.add(name)
        used = set(re.findall(r"{{(\w+)}}", legend))
        first = next(selectors(query))[0]
        have = {label for key in found[first] for label, _ in key} | {"instance"}
        assert used <= have, (title, used - have)
    # Nothing that is printed is left out, but for counters of the sync protocol's details.
    left = {name for name in found if name not in seen and not name.startswith("ipvs_sync_")}
    assert left <= {"ipvs_services", "ipvs_service_band_packets_total",
                    "ipvs_service_packets_total", "ipvs_server_packets_total",
                    "ipvs_server_persistent_connections"}, left


def test_panels_do_not_overlap():
    panels = json.loads(DASHBOARD.read_text("ascii"))["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    places = set()
    for at in (p["gridPos"] for p in panels):
        mine = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])}
        assert not places & mine and at["x"] + at["w"] <= 24
        places |= mine
