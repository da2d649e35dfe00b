# SPDX-License-Identifier: GPL-2.0
"""Commands of ipvsctl that print lines until they are stopped, in a namespace: context
managers that read their JSON."""

import contextlib
import json
import select
import signal
import subprocess
import time

from .ctl import IPVSCTL
from .netns import SLOW


class Follower:
    def __init__(self, ns, *words):
        with ns.enter():
            self.process = subprocess.Popen([IPVSCTL, "-j", *words],
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.left = b""
        self.head = self.next(30)

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        if failed:
            self.process.kill()
            self.process.communicate(timeout=30)
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        self.process.communicate(timeout=30)
        assert self.process.returncode == 0

    def next(self, seconds=10):
        """The next line. One that does not come in time: None."""
        end = time.monotonic() + seconds * SLOW
        pipe = self.process.stdout
        while b"\n" not in self.left:
            if not select.select([pipe], [], [], max(0, end - time.monotonic()))[0]:
                return None
            more = pipe.raw.read(65536)
            assert more, self.process.stderr.read()
            self.left += more
        line, _, self.left = self.left.partition(b"\n")
        return json.loads(line)

    def quiet(self, seconds=1):
        """Nothing comes for a while."""
        assert self.next(seconds) is None


class Monitor(Follower):
    """`ipvsctl monitor`"""

    def __init__(self, ns, *words):
        super().__init__(ns, "monitor", *words)

    def events(self, count, seconds=10):
        """The names of the next COUNT events."""
        return [(self.next(seconds) or {}).get("event") for _ in range(count)]


class ConnLog(Follower):
    """`ipvsctl conn log`"""

    def __init__(self, ns, *words):
        super().__init__(ns, "conn", "log", *words)
        assert self.head["log"] == "connections"
