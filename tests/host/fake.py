# SPDX-License-Identifier: GPL-2.0
"""ipvsctl linked with a kernel that tests/unit/fake_kernel.c plays."""

import functools
import os
import re
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
WRAPPED = ("wire_open", "wire_has_own", "backend_is_l4lb", "backend_name", "module_loaded",
           "kern_services", "kern_service", "kern_conns", "kern_peers", "kern_drains", "kern_latency",
           "fopen",
           "kern_sync_list", "clock_gettime", "time", "ppoll", "kern_schedulers", "scheduler_list_read")
DROPS = ("header", "checksum", "no_dest", "dest_gone", "no_route", "ttl", "too_big", "memory",
         "fragment", "martian", "drop_packet", "drop_entry", "guard", "full", "evicted",
         "same_replies", "limit", "no_call_id", "no_port")
FAST = ("fast", "slow_protocol", "slow_header")
SYNC = ("sync_messages_out", "sync_bytes_out", "sync_full")
STATS = """\
   Total Incoming Outgoing         Incoming         Outgoing
   Conns  Packets  Packets            Bytes            Bytes
      64      2BC      384            1110C            DBBA0

 Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s
       7       10       20              300              400
"""


@functools.cache
def program():
    """The path of the program; it is built once for all tests of a process."""
    out = TOP / "build/host-fake"
    out.mkdir(parents=True, exist_ok=True)
    objects = sorted((TOP / "build/ipvsctl.obj").glob("*.o"))
    have = {source.stem for source in (TOP / "tools/ipvsctl").glob("*.c")}
    target = out / f"ipvsctl-{os.getpid()}"
    makefile = (TOP / "tools/ipvsctl/Makefile").read_text("utf-8")
    libraries = " ".join(re.findall(r"^PKGS +[:+]= (.*)", makefile, re.M)).split()
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", *libraries],
                           check=True, capture_output=True, text=True).stdout.split()
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", target,
                    TOP / "tests/unit/fake_kernel.c", *(o for o in objects if o.stem in have),
                    *(f"-Wl,--wrap={name}" for name in WRAPPED), *flags, "-lm"], check=True)
    final = out / "ipvsctl"
    target.rename(final)
    return final


def proc(directory, sync=True, **more):
    """Writes files that stand for /proc; returns their directory. A counter that is the text
    "2 5" begins at 2 and grows by 5 in each second of the fake kernel's clock."""
    net, settings = directory / "net", directory / "sys/net/ipv4/vs"
    net.mkdir(parents=True, exist_ok=True)
    settings.mkdir(parents=True, exist_ok=True)
    names = [*DROPS, *FAST, *(SYNC if sync else ())]
    counters = {name: place for place, name in enumerate(names)} | more
    # A program may be reading it.
    (net / "l4lb.new").write_text("".join(f"{n} {v}\n" for n, v in counters.items()), "ascii")
    (net / "l4lb.new").rename(net / "l4lb")
    (net / "ip_vs_stats").write_text(STATS, "ascii")
    (net / "ip_vs_conn").write_text("", "ascii")
    (settings / "conn_max").write_text("131072\n", "ascii")
    return directory


def run(directory, *words, code=0, out=False, before=(), **env):
    """What the program prints. BEFORE: a command that runs it."""
    done = subprocess.run([*before, program(), *words], capture_output=True, text=True, check=False,
                          timeout=60, env=os.environ | {"LANG": "C", "FAKE_PROC": str(directory)}
                          | env)
    assert done.returncode == code, done.stderr
    return done.stderr if code and not out else done.stdout
