# SPDX-License-Identifier: GPL-2.0
"""Controls when the clock of a guest may jump. Inside a guest whose clock counts
instructions and jumps over idle time (QEMU's -icount sleep=off).

While the guest waits for a file from the host it is idle, too: the clock would jump to the
next timer, however far away, more often the slower the host is. So a process of the lowest
priority uses the idle processor and keeps the clock from jumping. It is stopped during a
measurement, which only needs files that are in memory already.
"""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PAUSE = 2       # seconds for pending work to end; the clock jumps over them
TURN = 0.002    # seconds of the guest's clock; the host needs longer, time enough to answer


class Awake:
    """That process, which runs during the block. REST: seconds that it sleeps after each turn
    and that the clock may jump over, so that idle time passes faster than work."""

    def __init__(self, rest=0):
        self.rest = rest

    def _run(self):
        while True:
            end = time.monotonic() + TURN
            while time.monotonic() < end:
                pass
            if self.rest:
                time.sleep(self.rest)

    def __enter__(self):
        self.pid = os.fork()
        if not self.pid:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            self._run()
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def seconds(self):
        """Processor time so far that no other process wanted."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text("ascii").split()[0]) / 1e9

    @contextlib.contextmanager
    def aside(self):
        """In the block, the clock jumps over idle time; pending work ends before it."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE)
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)
