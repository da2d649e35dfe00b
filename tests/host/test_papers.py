# SPDX-License-Identifier: GPL-2.0
"""The benches of the papers' other experiments: their options, and their reports about
made-up figures. The tests of SURGE's users are in test_bench.py."""

import shutil
import subprocess
import types

import pytest
from test_speed import MEASURE, TOP, load

SCHEDULING = TOP / "bench/scheduling"
connections = load(MEASURE / "connections.py", "bench_connections_report")
counted = load(MEASURE / "counted.py", "bench_counted")
host = load(MEASURE / "host.py", "bench_papers_host")
site = load(MEASURE / "site_report.py", "bench_site_report")
soak = load(MEASURE / "soak_report.py", "bench_soak_report")
SITE_RUN = load(MEASURE / "site_run.py", "bench_site_run")
relay = load(MEASURE / "relay_report.py", "bench_relay_report")
priority = load(SCHEDULING / "priority_report.py", "bench_priority_report", SCHEDULING)
trials = load(SCHEDULING / "trials_report.py", "bench_trials_report", SCHEDULING)
COMMON = {"command": "bench/x", "date": "2026-01-01 00:00", "kernel": "6.12", "processor": "one",
          "load": [0.1, 0.2]}


@pytest.mark.parametrize("name, words, what", [
    ("connections", "--seed x", "'x' is not a number from 0 to 2147483647"),
    ("connections", "--rounds 3", "unrecognized arguments: --rounds 3"),
    ("connections", "--requests 99", "'99' is not a number from 100 to 400000"),
    ("connections", "--requests x", "'x' is not a number"),
    ("connections", "--kernel uml", "invalid choice: 'uml'"),
    ("connections", "--rate 5", "unrecognized arguments: --rate 5"),
    ("site", "--seconds 0", "'0' is not a number from 1 to 7200"),
    ("site", "--together 5001", "'5001' is not a number from 1 to 5000"),
    ("site", "four", "unrecognized arguments: four"),
    ("relay", "--rate 0", "'0' is not a number from 1 to 10000"),
    ("relay", "--seed -1", "argument --seed"),
    ("priority", "--counts 0", "'0' is not a number from 1 to 3000"),
    ("priority", "--counts ", "--counts: name a number of users"),
    ("priority", "--ends 5 5", "--ends: one to three sizes, each more than the one before"),
    ("priority", "--ends 1 2 3 4", "--ends: one to three sizes"),
    ("priority", "--ends 7 3", "each more than the one before"),
    ("priority", "--ends 4294967296", "is not a number from 1 to 4294967295"),
    ("priority", "--seeds 0", "'0' is not a number from 1 to 100"),
])
def test_bad_options(name, words, what):
    """They get one line, and nothing is started."""
    option, _, rest = words.partition(" ")
    argv = [option, rest] if name == "priority" else words.split()
    done = subprocess.run([TOP / "bench" / name, *argv], capture_output=True, text=True,
                          check=False, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("bench: ")
    assert what in done.stderr and f"bench/{name} --help" in done.stderr


# -- two runs with one seed


def ran(figures, date="2026-01-01 00:00", **others):
    return {"date": date, "kernel": "6.12", "code": "c0de", "spec": {"seed": 1},
            "figures": figures} | others


FIGURES = {"ip_vs": 1000.0, "l4lb": 2000.0}


@pytest.mark.parametrize(("now", "says", "agree"), [
    (ran(FIGURES), "2 figures with the same seed, the largest difference is 0.000 % (ip_vs)", True),
    (ran(FIGURES | {"l4lb": 2015.0}), "0.744 % (l4lb) (1 % allowed): they agree.", True),
    (ran(FIGURES | {"l4lb": 2030.0}), "1.478 % (l4lb) (1 % allowed): they DO NOT agree.", False),
    (ran(FIGURES | {"l4lb": 1950.0}), "(1 % allowed): they DO NOT agree.", False),
    (ran({"ip_vs": 1000.0}), "1 are missing now: they DO NOT agree.", False),
    (ran({"ip_vs": 1000.0, "l4lb": 0}), "1 are missing now: they DO NOT agree.", False),
    (ran({"ip_vs": 1500.0}, code="other"), "the code has changed between them.", True),
    (ran({"ip_vs": 1500.0}, spec={"seed": 2}), "nothing to compare", True),
    (ran({"ip_vs": 1500.0}, kernel="6.1"), "nothing to compare", True)])
def test_two_runs(now, says, agree):
    sentence, result = counted.compare(now, ran(FIGURES), 0.01)
    assert says in sentence and result == agree


def test_first_run():
    sentence, agree = counted.compare(ran(FIGURES), None, 0.01)
    assert agree and sentence.startswith("Run it again")


class Report:
    """A report module whose figures are the results themselves."""

    @staticmethod
    def figures(results):
        return results["rows"]

    @staticmethod
    def write(results, directory):
        (directory / "table.md").write_text(str(results["rows"]), encoding="utf-8")
        return []


@pytest.mark.parametrize(("again", "status"), [(100.0, 0), (100.9, 0), (101.5, 1), (95.0, 1)])
def test_exit_status(tmp_path, monkeypatch, capsys, again, status):
    """The exit status of a second run, from the function that the benches call."""
    kernel = types.SimpleNamespace(release="6.12")
    monkeypatch.setattr(counted, "fingerprint", lambda kernel: kernel.release)
    for figure, wanted in ((100.0, 0), (again, status)):
        record = host.Record("x", kernel)
        assert counted.publish(record, {"seed": 1, "rates": (1, 2)}, {"rows": {"a": figure}},
                               tmp_path, Report, allowed=0.01) == wanted
    assert ("DO NOT agree" in capsys.readouterr().out) == bool(status)


def test_fingerprint():
    """Depends on the measured and the measuring modules, not on test modules."""
    release = "0.0-fingerprint"
    directory = TOP / "build" / release
    try:
        for name in ("l4lb.ko", "bench/l4lb_gen.ko", "tests/l4lb_mine.ko"):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(b"one")
        kernel = types.SimpleNamespace(release=release)
        before = counted.fingerprint(kernel)
        (directory / "tests/l4lb_mine.ko").write_bytes(b"two")
        assert counted.fingerprint(kernel) == before
        for name in ("l4lb.ko", "bench/l4lb_gen.ko"):
            (directory / name).write_bytes(b"two")
            after, before = before, counted.fingerprint(kernel)
            assert after != before
    finally:
        shutil.rmtree(directory)


# -- connections


def ladder(top, even=True, sessions=0.5, fall=0.8):
    """Results of a director that manages TOP a second, and fewer when asked for more."""
    ways, rows = ["ip_vs", "l4lb fast 1"], []
    for way, most in zip((connections.REFERENCE, *ways), (9 * top, top, 2 * top)):
        for closes in (False, True):
            for rate in connections.RATES:
                limit = most * (sessions if closes else 1)
                achieved = min(rate, limit if rate < 2 * limit else fall * limit)
                share = [100] * 7 if even else [100] * 6 + [150]
                rows.append({"way": way, "closes": closes, "rate": rate, "achieved": achieved,
                             "offered": rate, "opened": share})
    return COMMON | {"spec": {"ways": ways, "requests": 100, "shift": 2, "seed": 1,
                              "rates": connections.RATES, "sessions": connections.RATES,
                              "held": {"most": 1_000_000, "step": 100}},
                     "rows": rows,
                     "held": {"ip_vs": {"asked": 500, "open": 400, "bytes": -350, "slowest": 1},
                              "l4lb fast 1": {"asked": 1_000_000, "open": 1_000_000, "bytes": 90,
                                              "slowest": 0.5}}}


def test_connections_report(tmp_path):
    assert connections.write(ladder(5000), tmp_path) == ["rates.png"]
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "one processor of 250 million\ninstructions a second" in text and "seed 1" in text
    assert "| 4,200 | 4,200 | 4,200 | 4,200 |" in text
    assert "| 14,000 | 2,000 | 4,000 |" in text
    assert "| ip_vs | 400 | too few to tell | 1.00 s |" in text
    assert "| l4lb fast 1 | 1,000,000 (all that were asked for) | 90 | 0.50 s |" in text
    assert "every server gets the same share" in text.split("As in the paper: ")[1]
    assert "is 2.00 times that of ip_vs" in text
    assert (tmp_path / "rates.png").stat().st_size > 5000


def test_connections_report_says_what_is_wrong(tmp_path):
    results = ladder(5000, even=False, sessions=0.9, fall=1.0)
    connections.write(results, tmp_path)
    text = (tmp_path / "table.md").read_text("utf-8")
    wrong = text.split("In the paper, but not here: ")[1]
    for part in ("every server", "sessions cost", "beyond the most"):
        assert part in wrong
    assert "As in the paper:" not in text
    none = ladder(5000)
    next(r for r in none["rows"] if r["way"] == "ip_vs")["opened"] = [0] + [100] * 6
    assert connections.Results(none).uneven("ip_vs", False) == 0


def test_connections_report_of_who_takes_all(tmp_path):
    """A director that takes every rate has not shown its maximum."""
    connections.write(ladder(40_000), tmp_path)
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "ip_vs and l4lb fast 1 take all that is asked for" in text
    assert "paper: sessions" not in text and "beyond the most" not in text


def test_connections_figures():
    found = connections.figures(ladder(5000))
    assert found["ip_vs, set up at 2800"] == 2800 and found["ip_vs, sessions at 21000"] == 2000
    assert found["at once, l4lb fast 1"] == 1_000_000
    assert len(found) == 3 * 2 * 14 + 2


# -- site


def farm(client=0.4, gain=3.0, firewall=0.9):
    rows = []
    for tool in site.TOOLS:
        for network in site.NETWORKS:
            for way in site.WAYS:
                rate = 500 * (1 if way == "single" else gain) * \
                    (firewall if network == "fwl" else 1)
                rows += [{"tool": tool, "way": way, "network": network,
                          "rate": rate - 10 * n, "failed": 0, "ms": 5.0,
                          "vmstat": {"in": 1000, "cs": 2000, "id": 30},
                          "busy": {"client": client, "rs1": 0.1, "rs2": 0.1, "rs3": 0.1,
                                   "rs4": 0.1}} | ({"asked": 100 * n} if tool == "hp" else {})
                         for n in range(1 + (tool == "hp"))]
    return COMMON | {"rows": rows, "spec": {"share": 0.1, "seconds": 5, "together": 50,
                                            "shift": 2, "seed": 1}}


def test_site_report(tmp_path):
    assert site.write(farm(), tmp_path) == ["requests.png"]
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "| ab | 500 | 1,500 | 1,500 | 450 | 1,350 | 1,350 |" in text
    assert "does 3.0 to 3.0 times what one server does: as in the paper" in text
    assert "neither client nor network is the limit" in text
    assert "| ab-cl-fwl l4lb | 1,000 | 2,000 | 30 | 0.40 |" in text


def test_site_figures():
    """One figure for each run; each rate of httperf is a run."""
    found = site.figures(farm())
    assert found["ab, l4lb, lan, all it can"] == 1500
    assert found["hp, single, lan, 0"] == 500 and found["hp, single, lan, 100"] == 490
    assert len(found) == 4 * 6


def test_site_report_says_what_is_wrong(tmp_path):
    results = farm(client=0.95, gain=1.2)
    results["rows"] = [r for r in results["rows"]
                       if (r["tool"], r["way"]) != ("ab", "ip_vs")] + \
        [{"tool": "ab", "way": "ip_vs", "network": "lan", "fault": "no answer"}]
    site.write(results, tmp_path)
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "THEY ARE THE LIMIT" in text
    assert "1.2 times what one server does; in the paper it is 3 times" in text
    assert "FAULT" in text and "not run" in text
    results = farm()
    for row in results["rows"]:
        if row["tool"] == "hp":
            row["busy"]["client"] = 0.97
    site.write(results, tmp_path)
    assert "THEY ARE" not in (tmp_path / "table.md").read_text("utf-8")


# -- relay


def pipe(factors, missing=()):
    rows = []
    for way, factor in factors.items():
        if way in missing:
            rows.append({"way": way, "fault": "no"})
            continue
        rows.append({"way": way, "lines": [
            [size, size * 8 / (factor * (1e-4 + size * 8e-8)) / 1e6,
             factor * (1e-4 + size * 8e-8)]
            for size in (1 << k for k in range(10, 21))]})
    return COMMON | {"spec": {"rate": 100, "times": 20, "shift": 0, "seed": 1}, "rows": rows}


GOOD = {"direct": 1.0, "two proxies": 2.1, "NAT and relay": 1.5, "NAT and ip_vs": 1.1,
        "NAT and l4lb": 1.05}


def test_relay_report(tmp_path):
    assert relay.write(pipe(GOOD), tmp_path) == ["messages.png"]
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "| the same, here | 1.00 | 2.10 | 1.50 | 1.10 | 1.05 |" in text
    assert "In the paper's order: two proxies are slowest (2.1 times" in text
    assert "a relay at one end is better (1.5, paper 1.5)" in text
    assert "Not as" not in text
    assert "+40 to +40 %" in text      # 2.1 / 1.5
    assert "one processor of 1,000 million" in text and "each message 20 times" in text


def test_relay_figures():
    found = relay.figures(pipe(GOOD, missing=("two proxies",)))
    assert found["NAT and relay, 1024 bytes"] == pytest.approx(1.5 * (1e-4 + 1024 * 8e-8))
    assert len(found) == 4 * 11


def test_relay_report_says_what_is_wrong(tmp_path):
    relay.write(pipe(GOOD | {"NAT and relay": 2.5}), tmp_path)
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "Not as in the paper" in text and "NAT and relay, two proxies" in text
    relay.write(pipe(GOOD, missing=("two proxies",)), tmp_path)
    assert "nothing to compare" in (tmp_path / "table.md").read_text("utf-8")


# -- soak


def test_soak_report(tmp_path):
    assert soak.write(COMMON | {"packets": 5_000_000, "changes": 1200, "left": 1_250_000, "memory": [
        [0.5, 2_000_000], [30.2, 41_000_000], [59.9, 7_000_000]]}, tmp_path) == ["memory.png"]
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "| minutes | 60 |" in text and "| packets, none lost | 5,000,000 |" in text
    assert "MB more than before | 2.0 to 41.0 |" in text and "MB more than before | 1.2 |" in text
    assert (tmp_path / "memory.png").stat().st_size > 5000


# -- priority


AB = """\
Complete requests:      887
Failed requests:        3
Requests per second:    286.68 [#/sec] (mean)
Time per request:       171.02 [ms] (mean)
Time per request:       3.42 [ms] (mean, across all concurrent requests)
"""
WRK = """\
    Latency   156.81ms  133.39ms 571.83ms   62.01%
  887 requests in 3.09s, 2.32MB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec:    286.68
"""
HTTPERF = """\
Total: connections 174 requests 1740 replies 870 test-duration 3.434 s
Request rate: 506.6 req/s (2.0 ms/req)
Reply time [ms]: response 40.8 transfer 0.0
Reply status: 1xx=0 2xx=868 3xx=0 4xx=0 5xx=2
Errors: total 87 client-timo 87 socket-timo 0 connrefused 0 connreset 0
"""
SITE_SPEC = {"seconds": 3, "together": 50, "calls": 10}


@pytest.mark.parametrize("tool, text, rate, failed, ms", [
    (SITE_RUN.ab, AB, 286.68, 3, 171.02),
    (SITE_RUN.wrk, WRK, 286.68, 15, 156.81),
    (SITE_RUN.wrk, "Latency 1.50s 1.00s\nRequests/sec: 7.5\n", 7.5, 0, 1500),
    (lambda *args: SITE_RUN.httperf(*args, 58), HTTPERF, 253.3, 89, 40.8)])
def test_what_tools_say(tool, text, rate, failed, ms):
    argv, read = tool("http://192.0.2.1/", SITE_SPEC)
    assert " ".join(argv).count("192.0.2.1") == 1
    row = read(text)
    assert (row["rate"], row["failed"], row["ms"]) == (pytest.approx(rate), failed, ms)
    with pytest.raises(SITE_RUN.MeasureError, match="says nothing of"):
        read("Killed")


def test_ab_does_not_end_early():
    argv, _ = SITE_RUN.ab("http://192.0.2.1/", SITE_SPEC | {"seconds": 1800})
    assert int(argv[argv.index("-n") + 1]) > 1000 * 1800


def test_vmstat():
    """Means, without the first line, which covers the time since boot."""
    head = " r b swpd free buff cache si so bi bo in cs us sy id wa st"
    lines = [f" 1 0 0 1 0 1 0 0 0 0 {interrupts} {switches} 1 2 {idle} 0 0"
             for interrupts, switches, idle in ((9000, 9000, 1), (500, 600, 50), (600, 400, 60))]
    assert SITE_RUN.vmstat("\n".join(["procs ---memory---", head, *lines])) == {
        "in": 550, "cs": 500, "id": 55}


def shop(small, large, failed=0):
    """With LAS the time of small documents changes by the factor SMALL, that of the largest
    by LARGE; FAILED documents of each run fail with prio."""
    runs = []
    for count, base in ((90, 100.0), (270, 1000.0)):
        for way in priority.WAYS:
            for seed in (1, 2):
                las = way != priority.WAYS[0]
                factor = (small, large) if las and count == 270 else (1, 1)
                visits = [[base * factor[0] + seed, 10_000 + n] for n in range(99)]
                visits.append([20 * base * factor[1], 2_000_000])
                runs.append(priority.summary({
                    "count": count, "way": way, "seed": seed,
                    "failed": failed if "prio" in way else 0, "visits": visits,
                    "director": {"bands": [{"out_bytes": 300}, {"out_bytes": 100}]
                                 if las else None}}))
    return COMMON | {"runs": runs, "rate": 34e6, "mean": 53000, "idle": 2.6, "parameters": {
        "users": {"seconds": 60, "warmup": 10, "seeds": 2, "even": 210},
        "director": {"ends": [16384]}}}


def test_priority_report(tmp_path):
    assert priority.write(shop(0.2, 1.5), tmp_path) == ["response.png"]
    text = (tmp_path / "table.md").read_text("utf-8")
    for way in priority.WAYS[1:]:
        assert f"{way}: with 270 users the mean changes by -58 %: as in the paper" in text
        assert (f"{way}: the largest hundredth of the documents takes +50 %; as many arrive as "
                "without it, the last after 30 s: none starves.") in text
        assert f"Bytes in the bands, {way}: 75 %, 25 %." in text
    # 53,000 bytes a document over 34 Mbit/s: 80 a second; 270 / 80 - 2.6 s.
    assert "the mean of 270 users over such a link is 767 ms at least" in text
    assert ("| mean response time, ms | 1,191 ± 0 % | 499 ± 0 % | -58 % | 499 ± 0 % | -58 % |"
            in text)


def test_priority_report_says_what_is_wrong(tmp_path):
    priority.write(shop(0.9, 1.0, failed=3), tmp_path)
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "less than the paper's 50 %" in text
    assert "LAS, prio: the largest hundredth of the documents takes +0 %; 12 of all loads' " \
        "documents did not arrive in time (without it 0): THEY STARVE." in text
    assert "LAS, ets: the largest hundredth of the documents takes +0 %; as many arrive" in text


# -- schedulers without traffic


def trial(scheduler, chosen, **others):
    """One scheduler's outcome with servers of weight 3 and 1."""
    return {"scheduler": scheduler, "flows": 1000, "refused": 0, "cv": 0.1, "jain": 0.9, "lost": 700,
            "moved": None, "servers": [
                {"server": f"10.0.0.{n}:53", "share": share / 1000, "fair": fair}
                for n, (share, fair) in enumerate(zip(chosen, (0.75, 0.25)), 1)]} | others


def test_trials_report(tmp_path):
    """Shares by weight; a scheduler whose choice depends on more than the flow moves nothing that
    could be counted; one that refused all has no evenness."""
    outcomes = [trial("wrr", (750, 250)), trial("mh", (600, 400), moved=30),
                trial("mine", (0, 0), flows=0, refused=1000, cv=None, jain=None, lost=0)]
    results = COMMON | {"names": ["wrr", "mh", "mine"], "flows": 1000, "seed": 7,
                        "pools": {"unequal": {"weights": [3, 1], "hold": 100}},
                        "found": {"unequal": {"without": "10.0.0.1:53", "trials": outcomes}}}
    assert trials.write(results, tmp_path) == ["compare.png"]
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "| wrr | 1.000 | 1.000 | 0.1000 | 0.9000 | 0 | 70.00 % | - |" in text
    assert "| mh | 0.800 | 1.600 | 0.1000 | 0.9000 | 0 | 70.00 % | 3.00 % |" in text
    assert "| mine | 0.000 | 0.000 | - | - | 1,000 | 0.00 % | - |" in text
    assert "## unequal: weights 3, 1" in text and "when 100 others have begun" in text
    assert (tmp_path / "compare.png").stat().st_size > 1000
    many = {"weights": [1, 5] * 5}
    assert trials.weights(many) == "10 servers of weight 1 to 5"
    assert trials.weights({"weights": [2] * 9}) == "9 servers of weight 2"
