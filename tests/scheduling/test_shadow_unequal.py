# SPDX-License-Identifier: GPL-2.0
"""What a shadow predicts is what comes when it is switched on: experiment `unequal` of
`make bench-schedulers` (bench/README.md), real clients and servers in virtual time."""

import contextlib
import json
import os
import sys
from pathlib import Path

import pytest
from lab.ctl import IPVSCTL
from lab.netns import Namespace, run

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "bench/scheduling"
sys.path.insert(0, str(SOURCES))

import workload  # noqa: E402

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.timer, pytest.mark.slow, pytest.mark.skipif(
    os.environ.get("L4LB_VEHICLE") != "virtual-time",
    reason="servers' time is a model; runs in virtual time (suite stage virtual-time)")]
TAKES = 400
SEED, SECONDS = 1, 20
NEAR = 0.05
NAMES = ("switch", "client", "director", "rs1", "rs2", "rs3", "rs4")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The model server and the clients."""
    where = tmp_path_factory.mktemp("bin")
    for name, sources in ("httpd", ["httpd.c"]), ("load", ["load.c", "fetch.c"]):
        run(["gcc", "-O2", "-o", str(where / name), *(str(SOURCES / s) for s in sources), "-lm"])
    return where


def spec_of(directory, programs, scheduler, shadow):
    parameters = workload.load()
    parameters["arrivals"] |= {"warmup": 0, "seconds": SECONDS}
    experiment = parameters["experiment"]["unequal"]
    workload.write(directory, parameters, experiment, SEED)
    return workload.bed(parameters, experiment, 4, directory) | {
        "scheduler": scheduler, "options": {"shadow": shadow}, "programs": str(programs),
        "ipvsctl": str(TOP / IPVSCTL)}


@pytest.fixture(scope="module")
def told(tmp_path_factory, programs):
    """{scheduler: (what its shadow wlc says, the outcomes)}"""
    found = {}
    for scheduler in ("rr", "wlc"):
        directory = tmp_path_factory.mktemp(scheduler)
        try:
            (directory / "spec").write_text(json.dumps(spec_of(directory, programs, scheduler, "wlc")),
                                            encoding="utf-8")
            run([sys.executable, "-B", str(SOURCES / "bed.py"), str(directory)])
        finally:
            for name in NAMES:
                with contextlib.suppress(OSError, RuntimeError):
                    Namespace(name, create=False).destroy()
        said = json.loads((directory / "director").read_text("utf-8"))["shadow"]
        found[scheduler] = said, workload.read_outcomes(directory)
    return found


def shares(said, side):
    return [server[side]["share"] for server in said["servers"]]


def far(a, b):
    """By how much they differ, the worst server's share."""
    return max(abs(x / y - 1) for x, y in zip(a, b))


def with_real_counters(outcomes):
    """The shares of wlc if it looks at what the real servers have, which another scheduler chose."""
    weights, begun, got = (4, 2, 1, 1), [], [0] * 4
    for at, _, took, _, server, *_ in outcomes:
        active, total = [0] * 4, [0] * 4
        for end, number in begun:
            active[number] += end > at
            total[number] += 1
        load = [(256 * a + t) / w for a, t, w in zip(active, total, weights)]
        got[max(n for n in range(4) if load[n] == min(load))] += 1
        begun.append((at + took, server - 1))
    return [n / sum(got) for n in got]


def test_control(told):
    """wlc in its own shade chooses the same."""
    said, _ = told["wlc"]
    assert said["agreed"] == said["choices"] > 15000 and said["refused"] == 0
    assert shares(said, "real") == shares(said, "shadow")


def test_prediction(told):
    """rr has all servers do the same; its shadow says how wlc would divide the requests, and how
    evenly for the weights: within a twentieth of what wlc does with the same requests."""
    (before, _), (after, _) = told["rr"], told["wlc"]
    assert far(shares(before, "real"), [0.25] * 4) < 0.01
    assert far(shares(before, "shadow"), shares(after, "real")) < NEAR
    for figure in "max_over_mean", "jain":
        assert before["shadow"][figure] == pytest.approx(after["real"][figure], rel=NEAR)
    assert far(shares(before, "real"), shares(after, "real")) > 4 * NEAR


def test_with_the_real_counters_it_would_be_wrong(told):
    """The control: with the loads that rr has made, wlc would be asked how to put them right."""
    (_, outcomes), (after, _) = told["rr"], told["wlc"]
    assert far(with_real_counters(outcomes[:1500]), shares(after, "real")) > 4 * NEAR
