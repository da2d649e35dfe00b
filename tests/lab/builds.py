# SPDX-License-Identifier: GPL-2.0
"""Builds with "make", through the compiler's cache, so that a fresh checkout's modules are
built in seconds. All of the lab shares one folder of objects. From tests/:

    python3 -B -m lab.builds TARGET [VARIABLE=VALUE]...

prints what the compilers say about our sources, and fails if they say anything.
"""

import contextlib
import fcntl
import functools
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "l4lb")


class BuildError(Exception):
    """Something cannot be built; the text says why."""


def with_ccache():
    """The environment with ccache, without what an outer make has for its own children."""
    return {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS")} | \
        {"PATH": f"/usr/lib/ccache:{os.environ['PATH']}"}


@functools.cache
def objects(folder=TOP / "build/objects"):
    """(A link to the folder of this checkout's objects, a lock that keeps it as long as this
    process or its make runs.) Kbuild's commands have absolute paths, so by another name ccache
    would find nothing. Processes of one checkout share a link; the first of them takes the
    lowest free one, which other checkouts have used before."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "objects.lock", "w", encoding="ascii") as choosing:
        fcntl.flock(choosing, fcntl.LOCK_EX)
        links = [link for link in sorted(CACHE.glob("objects-*[0-9]"))
                 if link.is_symlink() and link.readlink() == folder]
        for link in links:
            if not (free := locked(link, fcntl.LOCK_EX)):
                return link, locked(link, fcntl.LOCK_SH)
            free.close()
        for number in itertools.count(1):
            link = CACHE / f"objects-{number}"
            if lock := locked(link, fcntl.LOCK_EX):
                link.unlink(missing_ok=True)
                link.symlink_to(folder)
                fcntl.flock(lock, fcntl.LOCK_SH)
                return link, lock


def locked(link, how):
    """LINK's lock, or None if another process has it."""
    lock = open(link.with_suffix(".lock"), "w", encoding="ascii")
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def release_of(kdir):
    """The release of the kernel whose build directory is KDIR."""
    header = Path(kdir, "include/generated/utsrelease.h")
    return header.read_text("ascii").split('"')[1] if header.exists() else "unknown"


def remarks(text, home):
    """What compilers say about the sources in HOME, a path: not about the kernel's headers, nor
    about the modules of tests and benches, which are built beside HOME."""
    foreign = ("/usr/src/", "/lib/modules/", "./", "include/", "arch/", "make", f"{home}-")
    return sorted({line.removeprefix(f"{home}/") for line in text.splitlines()
                   if re.search(r"(^|: )(warning|error):", line) and not line.startswith(foreign)})


@contextlib.contextmanager
def said_again(home):
    """Kbuild does not compile an object again to repeat what was said about it. So after a build
    with remarks, or one that did not end, the next one compiles all objects in HOME. The block
    gets a lock for its make, so that the next build waits for that one even if this process is
    killed, and a function to call once a build has ended without remarks."""
    mark = home.with_name(f"{home.name}.remarks")
    # Not the name of the lock that the Makefile takes for a build.
    with open(f"{mark}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists():
            for each in home.rglob("*.o"):
                each.unlink(missing_ok=True)
        mark.touch()
        yield lock, mark.unlink


def run_make(log, *args, locks=()):
    """The output of make with ARGS, which goes to LOG. LOCKS are held as long as it runs."""
    link, lock = objects()
    log.parent.mkdir(exist_ok=True)
    with open(log, "wb") as out:
        done = subprocess.run(["make", "--no-print-directory", "-C", TOP, *args,
                               f"OBJECTS={link}"], stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT, check=False, env=with_ccache(),
                              pass_fds=[each.fileno() for each in (lock, *locks)])
    text = log.read_text("utf-8", "replace")
    if done.returncode:
        lines = text.splitlines()
        telling = [line for line in lines if re.search(r"error|undefined|\*\*\*", line)]
        raise BuildError(f"'make {' '.join(args)}' failed, see {log}:\n"
                         + "\n".join(telling[:25] or lines[-25:]))
    return text


def make(target, *variables):
    """Makes TARGET; returns the remarks() of the compilers."""
    values = dict(v.split("=", 1) for v in variables)
    release = release_of(values["KDIR"]) if "KDIR" in values else ""
    log = TOP / f"build/make-{target}{release and f'-{release}'}.log"
    if not release or "ARCH" in values:
        run_make(log, target, *variables)
        return []
    # Debian's kernels always get the same flags, so that "make style" has nothing to compile.
    # kernel-doc would take a quarter of the time: style runs it once.
    home = objects()[0] / release
    with said_again(home) as (lock, clean):
        found = remarks(run_make(log, target, *variables, "W=1", "cmd_checkdoc=",
                                 locks=[lock]), home)
        if not found:
            clean()
    return found


def main(target, *variables):
    try:
        found = make(target, *variables)
    except BuildError as error:
        print(f"builds: {error}", file=sys.stderr)
        return 1
    print(*found, sep="\n", end="\n" * bool(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
