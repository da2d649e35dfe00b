# SPDX-License-Identifier: GPL-2.0
"""Debian's keepalived on a director, and real servers that come and go."""

import contextlib
import signal
import subprocess
from pathlib import Path

from .netns import SLOW, wait_until

# Without a router_id it asks the DNS for its own name.
GLOBAL = "global_defs {\n router_id lab\n script_user root\n checker_log_all_failures\n%s\n}\n"


def block(head, *lines):
    """A block of its configuration language."""
    inner = "\n".join(lines)
    return f"{head} {{\n{inner}\n}}"


class Keepalived:
    """Runs keepalived's health checkers, or with VRRP that part of it, with a configuration; a
    context manager."""

    def __init__(self, ns, directory, *blocks, options="", vrrp=False):
        self.part = "--vrrp" if vrrp else "--check"
        self.ns = ns
        self.directory = Path(directory)
        self.conf = self.directory / "keepalived.conf"
        self.log = self.directory / "keepalived.log"
        self.configure(*blocks, options=options)
        self.proc = None

    def configure(self, *blocks, options=""):
        self.conf.write_text(GLOBAL % options + "\n".join(blocks) + "\n", encoding="ascii")

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.proc = self.ns.popen(
                ["keepalived", self.part, "--dont-fork", "--log-console", "--log-detail",
                 "-f", str(self.conf), "-p", str(self.directory / "pid"),
                 "-c", str(self.directory / "checkers.pid"),
                 "-r", str(self.directory / "vrrp.pid")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_):
        self.proc.send_signal(signal.SIGTERM)
        try:
            self.proc.wait(20 * SLOW)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise

    def reload(self, *blocks, options=""):
        self.configure(*blocks, options=options)
        self.proc.send_signal(signal.SIGHUP)

    def said(self):
        return self.log.read_text("utf-8", "replace")

    def until(self, condition, what, deadline=15):
        """Wait for CONDITION; a failure shows the end of keepalived's log."""
        try:
            return wait_until(condition, deadline, what, step=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said()[-3000:]}") from None


@contextlib.contextmanager
def dead(node, port):
    """The server NODE refuses connections to PORT; existing ones go on."""
    node.ns.nft(
        "table inet dead {\n chain input {\n  type filter hook input priority 0;\n"
        f"  tcp dport {port} tcp flags syn reject with tcp reset\n }}\n}}\n")
    try:
        yield
    finally:
        node.ns.nft("delete table inet dead")
