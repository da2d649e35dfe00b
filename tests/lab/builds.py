# SPDX-License-Identifier: GPL-2.0
"""Builds with "make", through the compiler's cache, so that a fresh checkout's modules are
built in seconds. All of the lab shares one folder of objects. From tests/:

    python3 -B -m lab.builds TARGET [VARIABLE=VALUE]...

prints what the compiler says about our sources, and fails if it says anything.
"""

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
    """The environment with ccache."""
    return os.environ | {"PATH": f"/usr/lib/ccache:{os.environ['PATH']}"}


@functools.cache
def objects(folder=TOP / "build/objects"):
    """(A link to the folder of this checkout's objects, a lock that keeps it as long as this
    process runs.) Kbuild's commands have absolute paths, so by another name ccache would find
    nothing, and "make" would compile everything again."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "objects.lock", "w", encoding="ascii") as choosing:
        fcntl.flock(choosing, fcntl.LOCK_EX)
        for link in sorted(CACHE.glob("objects-*[0-9]")):
            if link.is_symlink() and link.readlink() == folder and (lock := locked(link)):
                return link, lock
        for number in itertools.count(1):
            link = CACHE / f"objects-{number}"
            if lock := locked(link, folder):
                return link, lock


def locked(link, folder=None):
    """LINK's lock, shared with others of this checkout; with FOLDER, once LINK is nobody's and
    leads to FOLDER. None if it is another checkout's."""
    lock = open(link.with_suffix(".lock"), "w", encoding="ascii")
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if folder else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    if folder:
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
        fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def remarks(text):
    """What the compiler or sparse says about our sources, not about the kernel's headers."""
    ours = re.compile(rf"{re.escape(str(objects()[0]))}(?:/[^/]+)?/(.*: (?:warning|error):.*)")
    return sorted({found[1] for line in text.splitlines() if (found := ours.match(line))})


def forget(directory):
    """Kbuild would not compile an object again to repeat its warnings."""
    release = Path(directory, "include/generated/utsrelease.h").read_text("ascii").split('"')[1]
    for each in (objects()[0] / release).rglob("*.o"):
        each.unlink()


def make(target, *variables):
    """Makes TARGET; returns the remarks() of its compilers."""
    values = dict(v.split("=", 1) for v in variables)
    checked = "-checked" if "C" in values else ""
    log = TOP / f"build/make-{target}{checked}.log"
    log.parent.mkdir(exist_ok=True)
    # On Debian's kernels. The flags are always the same: "make style" then has nothing to compile.
    more = ["W=1"] if "KDIR" in values and "ARCH" not in values else []
    with open(log, "wb") as out:
        done = subprocess.run(["make", "--no-print-directory", "-C", TOP, target, *variables, *more,
                               f"OBJECTS={objects()[0]}"],
                              stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT, check=False, env=with_ccache())
    text = log.read_text("utf-8", "replace")
    if done.returncode:
        lines = text.splitlines()
        telling = [line for line in lines if re.search(r"error|undefined|\*\*\*", line)]
        raise BuildError(f"'make {' '.join((target, *variables))}' failed, see {log}:\n"
                         + "\n".join(telling[:25] or lines[-25:]))
    found = remarks(text)
    if found and more:
        forget(values["KDIR"])
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
