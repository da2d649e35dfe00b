# SPDX-License-Identifier: GPL-2.0
"""How long real servers take, as ipvsctl shows it; with a kernel that tests/unit/fake_kernel.c plays."""

import json
import math

import fake
import pytest
from test_metrics import PROM, one, samples
from test_top import documented

WEB, OTHER = "tcp:192.0.2.10:80", "tcp:192.0.2.10:83"
SERVERS = [f"10.0.0.{n}:80" for n in (11, 12, 13)]
N = 36000       # requests in an hour, of which each tenth gets no answer
ANSWERED, LOST = N * 9 // 10, N // 10


@pytest.fixture
def proc(tmp_path):
    return fake.proc(tmp_path / "proc")


def shown(proc, words, **more):
    return fake.run(proc, *words.split(), FAKE_LATENCY="1", **more)


def test_table(proc):
    """Half of a bucket's answers are below the middle of its ends' logarithms."""
    lines = shown(proc, "stats latency").splitlines()
    assert lines[0].split() == "SERVICE / SERVER HANDSHAKES P50 ms P99 ms FAILED ANSWERS P50 ms P99 ms FAILED".split()
    rows = [line.replace("|-", " ").replace("`-", " ").split()[-9:] for line in lines[1:]]
    assert [row[0] for row in rows[:4]] == ["192.0.2.10:80", *SERVERS] and len(rows) == 8
    for j, row in enumerate(rows[1:4]):
        middle, most = (1.024 * 2 ** (j + part) for part in (0.5, 0.99))
        assert row[1:] == [str(N), "0.18", "0.25", "1", str(ANSWERED), f"{middle:.2f}", f"{most:.2f}", str(LOST)]
    assert rows[0][1] == str(3 * N) and rows[0][5] == str(3 * ANSWERED) and rows[0][8] == str(3 * LOST)
    assert shown(proc, "stats tcp 192.0.2.10:83 by service latency -H").split()[:2] == ["tcp", "192.0.2.10:83"]


def test_json(proc):
    doc = json.loads(shown(proc, "stats latency -j"))
    assert [s["id"] for s in doc["services"]] == [WEB, OTHER]
    first = doc["services"][0]["servers"][0]
    assert first["id"] == SERVERS[0]
    kind = first["answer"]
    assert (kind["count"], kind["mean_us"], kind["refused"], kind["unanswered"]) == (ANSWERED, 1500, 0, LOST)
    assert kind["buckets"] == [{"below_us": 2048, "count": ANSWERED}]
    assert [kind[f"p{q}_us"] for q in (50, 90, 99)] == pytest.approx([1024 * 2 ** (q / 100) for q in (50, 90, 99)])
    assert first["handshake"]["refused"] == 1
    whole = doc["services"][0]["answer"]
    assert whole["mean_us"] == (1500 + 3000 + 6000) / 3 and len(whole["buckets"]) == 3
    # A third of all, and half of the second third.
    assert whole["p50_us"] == pytest.approx(2048 * math.sqrt(2))
    assert "servers" not in json.loads(shown(proc, "stats latency -j by service"))["services"][0]


def test_metrics(proc):
    found = samples(shown(proc, " ".join(PROM)))
    labels = {"service": WEB, "server": SERVERS[1]}
    bucket = "ipvs_server_answer_seconds_bucket"
    ends = [float(dict(key)["le"]) for key in found[bucket] if dict(key)["server"] == SERVERS[1]]
    assert len(ends) == 28 and ends[:2] == [1e-6, 2e-6] and ends[-2:] == [67.108864, math.inf]
    for le, n in (("0.002048", 0), ("0.004096", ANSWERED), ("+Inf", ANSWERED)):
        assert one(found, bucket, **labels, le=le) == n
    assert one(found, "ipvs_server_answer_seconds_count", **labels) == ANSWERED
    assert one(found, "ipvs_server_answer_seconds_sum", **labels) == pytest.approx(ANSWERED * 0.003)
    assert one(found, "ipvs_server_answer_failed_total", **labels, how="unanswered") == LOST
    assert one(found, "ipvs_server_handshake_failed_total", **labels, how="refused") == 1
    for words in (PROM, [*PROM, "by", "service"]):
        assert not [n for n in samples(fake.run(proc, *words)) if "seconds" in n or "failed" in n]


def test_top(proc):
    """What came since the last reading; at first, all that came."""
    text = shown(proc, "top -b -n 2 -w 1", COLUMNS="120")
    for part, want in zip(text.split("\n\n"), (["2.03", "4.07", "8.14"], ["4.07", "8.14", "16.27"]), strict=True):
        head = next(line for line in part.splitlines() if "CONN/s" in line)
        at = head.index("P99 ms") + len("P99 ms")
        rows = {line.split()[0]: line[:at].split()[-1] for line in part.splitlines() if line.startswith("  ")}
        assert [rows[s] for s in SERVERS] == want
        assert rows["10.0.0.11:81"] == "-"
    assert "P99" not in fake.run(proc, *"top -b -n 1".split(), COLUMNS="200")
    docs = [json.loads(line) for line in shown(proc, "top -b -n 2 -j").splitlines()]
    listed = {s["id"]: s for s in docs[1]["services"]}
    assert listed[WEB]["servers"][0]["rates"]["answer_p99_us"] == pytest.approx(2048 * 2 ** 0.99)
    assert "answer_p99_us" not in listed["fwm:4"]["rates"]


def test_nothing_is_measured(proc):
    assert len(fake.run(proc, "stats", "latency").splitlines()) <= 1
    said = fake.run(proc, *"stats latency tcp 192.0.2.10:80".split(), code=4)
    assert "tcp 192.0.2.10:80: its latency is not measured" in said
    assert "try: ipvsctl service change tcp 192.0.2.10:80 latency on" in said
    assert "ip_vs" in fake.run(proc, "stats", "latency", code=7, FAKE_OLD="1")
    assert "stats latency has no form prometheus" in fake.run(proc, *"stats latency -F prometheus".split(), code=2)


def test_the_page(proc):
    """doc/watching.md shows what is printed; L4LB_WRITE_DOC=1 writes it."""
    documented("latency", shown(proc, "stats latency tcp 192.0.2.10:80"))
