# SPDX-License-Identifier: GPL-2.0
"""What "make demo-ha" and "make bench-failover" count: a loss must not look like none."""

import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "bench/measure"))

import failover_report  # noqa: E402
from lab.visitors import Visit, Visitors  # noqa: E402
from streams import MESSAGE, PADDING, STAMP, Stream  # noqa: E402

SPEC = {"downloads": 10, "adverts": [1, 0.1], "wait": 30, "sessions": 5, "idle": 1200}


def result(**wrong):
    """Results in which nothing is lost, but what WRONG changes in l4lb's rows."""
    rows = []
    for system in ("ip_vs", "l4lb"):
        for event in failover_report.EVENTS:
            for method in failover_report.METHODS:
                base = {"system": system, "event": event, "method": method, "lost": 0,
                        "young": 0, "slowest": 0.5, "outage": 0.3, "resets": 0, "downloads": 10}
                rows += [base | {"advert": a} | (wrong if system == "l4lb" else {})
                         for a in SPEC["adverts"]]
                rows.append(base | {"advert": 1, "idle": True})
    curves = [{"system": s, "advert": a, "event": e, "share": [1, 0, 1]} for s in ("ip_vs", "l4lb")
              for a in SPEC["adverts"] for e in failover_report.EVENTS]
    return {"spec": SPEC, "rows": rows, "curves": curves, "command": "x", "date": "y",
            "kernel": "z"}


@pytest.mark.parametrize(("wrong", "says"), [
    ({}, "l4lb meets every bar."), ({"young": 3}, "l4lb meets every bar."),
    ({"lost": 1}, "misses 12 of 18 bars"), ({"slowest": 1.8}, "misses 6 of 18 bars"),
    ({"slowest": 8.3}, "misses 12 of 18 bars")], ids=str)
def test_the_bars(tmp_path, wrong, says):
    assert failover_report.write(result(**wrong), tmp_path) == ["data.png"]
    assert says in (tmp_path / "table.md").read_text("utf-8").splitlines()[-1]
    assert (tmp_path / "data.png").exists()


def test_messages_in_pieces():
    stream, data = Stream(None, "nat"), b"".join(STAMP.pack(at) + PADDING for at in (1.0, 2.0, 3.0))
    assert len(data) == 3 * MESSAGE
    assert stream.take(data[:100], 4.0) == 0 and stream.last == 0
    assert stream.take(data[100:MESSAGE + 5], 4.5) == 1 and (stream.worst, stream.last) == (3.5, 4.5)
    assert stream.take(data[MESSAGE + 5:], 4.6) == 2 and (stream.worst, stream.last) == (3.5, 4.6)


HEAD = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"
PAGE = b"<html>rs1</html>\n".ljust(2000)


def test_an_answer_in_pieces():
    visit = Visit("nat", "/slow", len(PAGE))
    assert not visit.take(HEAD[:20], 1.0) and not visit.take(HEAD[20:] + PAGE[:500], 2.0)
    assert not visit.take(PAGE[500:1999], 5.0) and visit.take(PAGE[1999:], 5.5)
    assert visit.pauses == [(2.0, 3.0), (5.0, 0.5)]


@pytest.mark.parametrize(("pieces", "why"), [
    ((HEAD.replace(b"200", b"404"), PAGE), "404"), ((HEAD + PAGE + b" ",), "more than 2000 bytes"),
    ((HEAD + PAGE[:500], PAGE[500:1000].replace(b" ", b"x", 1)), "wrong data")], ids=("404", "more", "other"))
def test_a_wrong_answer(pieces, why):
    visit = Visit("nat", "/slow", len(PAGE))
    with pytest.raises(OSError, match=why):
        for piece in pieces:
            visit.take(piece, 1.0)


def test_the_longest_silence():
    visitors = Visitors(None, "", {"nat": 80}, {})
    visitors.answers = [0.5, 1.0, 1.1, 1.6, 4.0]
    assert visitors.silence(0.9, 2.0) == pytest.approx(0.5)
    assert visitors.silence(2.0, 3.0) == pytest.approx(1.0), "no answer at all"
    visitors.pauses = [(0.0, 1.5), (1.5, 0.7), (9.0, 5.0)]
    assert visitors.pause(1.0, 3.0) == 1.5
