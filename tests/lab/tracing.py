# SPDX-License-Identifier: GPL-2.0
"""The kernel's tracepoints: switched on, and what they have written."""

import contextlib
import re
from pathlib import Path

import pytest

from .netns import run

TRACE = Path("/sys/kernel/tracing")
LINE = re.compile(r"^.*?\[\d+\].*?: (\w+): (.*)$")


def mounted():
    """The directory of tracefs; skips where the kernel has no events."""
    if not (TRACE / "events").exists():
        run(["mount", "-t", "tracefs", "tracefs", str(TRACE)], check=False)
    if not (TRACE / "events").exists():
        pytest.skip("this kernel has no tracepoints: Debian's and the debug kernel have (suite "
                    "stages 6.12, 6.1 and debug)")
    return TRACE


@contextlib.contextmanager
def tracing(*events):
    """Inside, EVENTS ("l4lb", "timer/timer_expire_entry") are written to the trace buffer."""
    switches = [mounted() / "events" / event / "enable" for event in events]
    # The names of tasks come from sched_switch, whose code each processor runs at any time: to
    # patch it is what QEMU fails at now and then (see EMULATOR in tests/lab/run).
    (TRACE / "options/record-cmd").write_text("0", encoding="ascii")
    (TRACE / "trace").write_text("", encoding="ascii")
    try:
        for switch in switches:
            switch.write_text("1", encoding="ascii")
        yield
    finally:
        for switch in switches:
            if switch.exists():         # its module may have been unloaded
                switch.write_text("0", encoding="ascii")


def text():
    return (TRACE / "trace").read_text(encoding="utf-8", errors="replace")


def lines():
    """[(event, its fields as text)] in their order."""
    return [found.groups() for found in map(LINE.match, text().splitlines()) if found]
