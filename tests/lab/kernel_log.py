# SPDX-License-Identifier: GPL-2.0
"""The kernel's log and its leak detector: what a test made the kernel say."""

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
# A cache's directory in sysfs that finds no memory leaves its name behind; so
# says lab/guest-init, too.
KERNELS_OWN = "sysfs_slab_add"


class KernelLog:
    """What the kernel printed since the last look."""

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
                continue  # the ring overtook us; go on with what is left
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
        neither here nor to tests/lab/run, which reads the same marks."""
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
    """Without the line feed the kernel waits for the rest of the line: nobody reads it
    before somebody else has printed, which may be many tests later."""
    Path("/dev/kmsg").write_text(line + "\n", encoding="ascii")


# (file, when it began) of those whose leaks may still be found.
_suspects = []


def begins(file):
    """A test file does: what is allocated from now on is its own."""
    _suspects.append((file, time.monotonic()))


def scan_for_leaks(wait=0):
    """What is leaked, with the file that leaked it. Nothing younger than five seconds
    counts as leaked: unless that is waited for, a file's last objects are found after the
    next file, which is not blamed for them, and those of the last file by lab/guest-init.
    Two scans: a pointer may be in a register during one of them."""
    if not KMEMLEAK.exists():
        return ""
    time.sleep(wait)
    for _ in range(2):
        KMEMLEAK.write_text("scan", encoding="ascii")
    found = KMEMLEAK.read_text(encoding="ascii", errors="replace")
    if found:
        KMEMLEAK.write_text("clear", encoding="ascii")
    return "".join(f"leaked by {leaker(leak)}: {leak}"
                   for leak in re.split("(?=unreferenced object)", found)
                   if leak.startswith("unreferenced") and KERNELS_OWN not in leak)


def leaker(leak):
    """The file during which an object was allocated. Jiffies begin five minutes before
    they wrap around at 32 bits, UML has 100 in a second."""
    jiffies = int(re.search(r"jiffies (\d+)", leak)[1])
    born = (jiffies - (1 << 32)) / 100 + 300
    return next((name for name, began in reversed(_suspects) if began <= born), _suspects[0][0])
