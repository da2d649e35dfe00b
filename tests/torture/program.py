# SPDX-License-Identifier: GPL-2.0
"""Compiles the program hostile, if it is older than its sources."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = [HERE / name for name in ("hostile.c", "packets.c", "messages.c")]
BUILD = HERE.parents[1] / "build/hostile"
FLAGS = "-std=gnu11 -O2 -g -Wall -Wextra -Werror".split()


def program(flags=FLAGS, out=BUILD / "hostile"):
    """The program's path."""
    newest = max(path.stat().st_mtime for path in [*SOURCES, HERE / "hostile.h"])
    if not out.exists() or out.stat().st_mtime < newest:
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh = out.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", *flags, "-o", fresh, *SOURCES], check=True)
        fresh.rename(out)
    return out
