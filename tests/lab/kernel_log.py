# SPDX-License-Identifier: GPL-2.0
"""The kernel's log and its leak detector, for checks of the tests."""

import contextlib
import os
import re
import time
from pathlib import Path

SPLAT = re.compile(
    r"BUG:|WARNING:|KASAN|KFENCE|UBSAN|possible recursive|circular locking"
    r"|suspicious RCU|inconsistent lock|unreferenced object|ref_tracker"
    r"|unregister_netdevice: waiting|hung task|blocked for more than|rcu.*stall"
    r"|Oops|general protection|Call Trace")
KMEMLEAK = Path("/sys/kernel/debug/kmemleak")
# A kernel bug: a slab cache's sysfs directory that gets no memory leaks its name.
# tests/lab/guest-init ignores it, too.
KERNELS_OWN = "sysfs_slab_add"


class KernelLog:
    """The kernel's messages since the last call."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def records(self):
        """[(level, text)], each at most once."""
        out = []
        while True:
            try:
                record = os.read(self.fd, 16384).decode(errors="replace")
            except BlockingIOError:
                return out
            except BrokenPipeError:
                continue  # messages were overwritten; go on with those that are left
            prefix, _, rest = record.partition(";")
            out.append((int(prefix.split(",")[0]) & 7, rest.split("\n")[0]))


class Log:
    """A test's view of the kernel log; splats fail the test that caused them."""

    def __init__(self, source):
        self.source, self.seen = source, []
        self.refresh()
        self.seen.clear()

    def refresh(self):
        self.seen += self.source.records()
        return self.seen

    def lines(self, pattern=""):
        return [text for _, text in self.refresh() if re.search(pattern, text)]

    @contextlib.contextmanager
    def provoked(self, pattern):
        """Inside, another module's warning that matches PATTERN is no failure,
        neither here nor for tests/lab/run, which looks for the marks in the log."""
        self.refresh()
        before = list(self.seen)
        mark_log("l4lb lab: provoked warning begins")
        try:
            yield
        finally:
            mark_log("l4lb lab: provoked warning ends")
            fresh = [text for _, text in self.refresh()[len(before):]]
        wrong = [t for t in fresh if SPLAT.search(t) and not re.search(pattern, t)
                 and "Call Trace" not in t]
        assert not wrong, wrong
        self.seen[:] = before


def mark_log(line):
    """Without the line feed the kernel waits for the rest of the line, and shows the mark
    only after another message, which may be many tests later."""
    Path("/dev/kmsg").write_text(line + "\n", encoding="ascii")


# (file, start time) of the test files whose leaks may still be found.
_suspects = []


def begins(file):
    """Record that a test file begins: objects allocated from now on are its own."""
    _suspects.append((file, time.monotonic()))


def scan_for_leaks(wait=0):
    """The leaked objects, each with the file that leaked it. Only objects older than five
    seconds that have not changed since the scan before count as leaked. So without WAIT
    (seconds), a file's own are found after the next file (and are attributed by their age),
    those of the last file by tests/lab/guest-init. A scan takes half a second: there is one
    for a file. What it finds must be found by another, because a pointer may be in a
    register during one of them."""
    if not KMEMLEAK.exists():
        return ""
    time.sleep(wait)
    found = ""
    for _ in range(2 if wait else 1):
        found = scan()
    if found:
        found = scan()
        KMEMLEAK.write_text("clear", encoding="ascii")
    return "".join(f"leaked by {leaker(leak)}: {leak}"
                   for leak in re.split("(?=unreferenced object)", found)
                   if leak.startswith("unreferenced") and KERNELS_OWN not in leak)


def scan():
    """What kmemleak knows to be leaked after one more scan."""
    KMEMLEAK.write_text("scan", encoding="ascii")
    return KMEMLEAK.read_text(encoding="ascii", errors="replace")


def leaker(leak):
    """The file during which an object was allocated. Jiffies start five minutes before
    they wrap around at 32 bits; UML has 100 per second."""
    jiffies = int(re.search(r"jiffies (\d+)", leak)[1])
    born = (jiffies - (1 << 32)) / 100 + 300
    return next((name for name, began in reversed(_suspects) if began <= born), _suspects[0][0])
