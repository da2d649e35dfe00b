# SPDX-License-Identifier: GPL-2.0
"""When the clock of a guest may jump. Inside a guest whose clock counts instructions and
jumps over idle time (QEMU's -icount sleep=off).

The guest is idle, too, while it waits for a file of the host's, and the clock would jump to
the next time limit: by whatever that is, and as often as the host is slow. So a process that
has the processor when nobody else wants it keeps the clock from jumping, but for what is
measured, which needs no file that is not in memory.
"""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PAUSE = 2       # seconds for what is still under way; they cost nothing
TURN = 0.002    # seconds of the processor, of which the host makes several: an answer's time


class Awake:
    """The process, from the block's begin to its end. REST: seconds that the clock may jump
    over after each of its turns, so that idle time does not take as long as work."""

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
        """Processor time that nobody else wanted so far."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text("ascii").split()[0]) / 1e9

    @contextlib.contextmanager
    def aside(self):
        """The clock jumps over idle time, and all is quiet when the block begins."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            time.sleep(PAUSE)
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)
