# SPDX-License-Identifier: GPL-2.0
"""Services without traffic cost nothing: no timer, no work, no thread."""

import contextlib
import re
import time
from pathlib import Path

import pytest
from lab.backend import Backend
from lab.genl import Ipvs
from lab.netns import Namespace
from lab.packet import UDP
from lab.tracing import text, tracing

NO_MODULE = True        # one module after the other, and no other namespace
EVENTS = ("workqueue/workqueue_execute_start", "timer/timer_expire_entry")
SECONDS = 5


def switches(comm):
    """How often threads whose names begin with COMM have gone to sleep."""
    total = 0
    for task in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (task / "comm").read_text(encoding="ascii").startswith(comm):
                status = (task / "status").read_text(encoding="ascii")
                total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status,
                                       re.M).group(1))
    return total


def what_runs(module, services):
    """{function of MODULE, or name of its threads: how often it ran}"""
    ns = Namespace("idle")
    try:
        with Ipvs(ns) as ipvs:
            for i in range(services):
                ipvs.service(f"192.0.{i >> 8}.{i & 255}", 53, proto=UDP)
        threads = switches("ipvs-e")
        with tracing(*EVENTS):
            time.sleep(SECONDS)
        threads = switches("ipvs-e") - threads
        found = re.findall(rf"function[= ](\w+)(?:\+\S+)? \[{module}\]",
                           text())
        assert "function" in text()
    finally:
        ns.destroy()
    out = {name: found.count(name) for name in found}
    return {**out, "threads": threads} if threads else out


@pytest.mark.emulated
@pytest.mark.parametrize("services", (
    pytest.param(200, marks=pytest.mark.smoke), pytest.param(10000, marks=pytest.mark.slow)))
@pytest.mark.parametrize("module", ("l4lb", "ip_vs"))
def test_idle_services(module, services):
    """l4lb runs nothing. ip_vs estimates the rates of all services every two seconds,
    and checks the memory every second."""
    backend = Backend(module)
    backend.load()
    try:
        runs = what_runs(module, services)
    finally:
        backend.unload()
    if backend.is_l4lb:
        assert runs == {}
    else:
        assert runs.get("estimation_timer", runs.get("threads", 0)) >= 2
