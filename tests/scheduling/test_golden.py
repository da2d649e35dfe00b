# SPDX-License-Identifier: GPL-2.0
"""Every scheduler in the kernel makes the choices that were recorded from
in-tree ip_vs (tests/unit/golden_picks.jsonl, see tests/host/test_schedulers.py
for its form).  With --backend=ip_vs this is the recording's own control."""

import json
from pathlib import Path

import pytest
from lab.oracle import Oracle

TAKES = 140
FILE = Path(__file__).parents[1] / "unit/golden_picks.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="ascii").splitlines()]
SCHEDULERS = sorted({c["sched"] for c in CASES})


@pytest.mark.smoke
@pytest.mark.parametrize("sched", SCHEDULERS)
def test_same_choices_as_ip_vs(dr_with_rules, backend, sched):
    """The order of rr and wrr is not compared: l4lb's is the paper's."""
    with Oracle(dr_with_rules) as oracle:
        for case in (c for c in CASES if c["sched"] == sched):
            got = oracle.replay(case)
            oracle.forget()
            want = [step[-1] for step in case["steps"] if step[0] == "pkt"]
            if backend.is_l4lb and sched in ("rr", "wrr"):
                assert got.count(None) == want.count(None), case["case"]
            else:
                assert got == want, f"{case['case']}, flags {case['flags']}"
