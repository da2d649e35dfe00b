# SPDX-License-Identifier: GPL-2.0
"""The tracepoints, as users read them: with perf and with bpftrace."""

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lab.netns import SLOW, run
from lab.packet import UDP
from lab.raw import Raw
from lab.tracing import mounted

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("only_l4lb")]

EVENTS = ("l4lb_pick", "l4lb_conn_new")
# Of a packet's choice of a real server, and of its connection; addresses are 16 bytes.
PROGRAM = "".join(
    f"tracepoint:l4lb:{event} {{ printf(\"{event} %u %d %s %d %s %d %s %d %d\\n\", args->netns, args->proto, "
    f"ntop(args->caddr), args->cport, ntop(args->vaddr), args->vport, ntop(args->daddr), args->dport, "
    f"args->{last}); }}\n" for event, last in zip(EVENTS, ("total", "state"), strict=True))
STARTS = 120        # seconds, in an emulator


def needed(tool, feature):
    """Skips without TOOL, or where the kernel lacks FEATURE."""
    if not shutil.which(tool):
        pytest.skip(f"no {tool}: make deps installs it on Debian 12")
    mounted()
    if not Path(feature).exists():
        pytest.skip(f"this kernel has no {feature}: Debian's have it (suite stages 6.12 and 6.1)")


@contextlib.contextmanager
def reading(*argv):
    """The tool ARGV starts cat when it reads the events, and ends with it."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as tool:
        try:
            tool.stdin.write("reads\n")
            tool.stdin.flush()
            line = tool.stdout.readline()
            assert line == "reads\n", line + tool.stderr.read()
            yield
            _, said = tool.communicate(timeout=STARTS * SLOW)
            assert not tool.returncode, said
        finally:
            tool.kill()


def connection(nat, family):
    """One begins; what its events should say."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    number = client.open()
    inode = os.stat(f"/run/netns/{nat.director.ns.name}").st_ino
    ends = ((client.address, client.sport), (raw.vip, raw.port), (raw.address(number), raw.dport))
    return [str(inode), str(UDP), *(str(part) for end in ends for part in end)]


def plain(address):
    return address.removeprefix("::ffff:")


def test_perf(nat, tmp_path):
    needed("perf", "/proc/sys/kernel/perf_event_paranoid")
    file = str(tmp_path / "perf.data")
    with reading("perf", "record", "-q", "-a", "-B", "-N", "-o", file, "-e", "l4lb:*", "--", "cat"):
        want = [connection(nat, family) for family in (4, 6)]
    found = {}
    shown = run(["perf", "script", "-i", file, "-F", "event,trace"]).stdout
    for event, text in re.findall(r"\bl4lb:(\w+): *(.*)", shown):
        fields = dict(re.findall(r"(\w+)=(\S+)", text))
        ports = re.findall(r"(?:client|vip|server)=\S+ (\d+)", text)
        if fields["netns"] == want[0][0] and event in EVENTS:
            ends = zip(("client", "vip", "server"), ports, strict=True)
            found.setdefault(event, []).append(
                [fields["netns"], fields["proto"], *(part for name, port in ends
                                                     for part in (plain(fields[name]), port))])
    assert found == {event: want for event in EVENTS}


def test_bpftrace(nat, tmp_path):
    needed("bpftrace", "/sys/kernel/btf/vmlinux")
    program, out = tmp_path / "program.bt", tmp_path / "out"
    program.write_text(PROGRAM, encoding="ascii")
    with reading("bpftrace", "-q", "-o", str(out), "-c", shutil.which("cat"), str(program)):
        want = [connection(nat, family) for family in (4, 6)]
    found = {}
    for line in out.read_text(encoding="ascii").splitlines():
        event, *values, _ = line.split() or [""] * 2
        if event in EVENTS and values[0] == want[0][0]:
            found.setdefault(event, []).append([plain(value) for value in values])
    # Each processor has a buffer of its own.
    assert {event: sorted(seen) for event, seen in found.items()} == {event: sorted(want) for event in EVENTS}
