# SPDX-License-Identifier: GPL-2.0
"""A guest whose /lib/modules and modprobe rules are those of an installed l4lb.

`make install` puts the modules beside a copy of the kernel's own IPVS and their
dependencies (depmod would need minutes for all of Debian's modules). The result
is mounted over /lib/modules/RELEASE, because the kernel's own requests look only
there; the lab's modprobe rules are moved aside.
"""

import contextlib
import os
import re
import shutil
from pathlib import Path

from .netns import run

TOP = Path(__file__).resolve().parents[2]
RELEASE = os.uname().release
MODULES = Path("/lib/modules", RELEASE)
RULES = Path("/run/modprobe.d")


def in_tree():
    """The kernel's own IPVS modules: {name: file}."""
    return {p.name.partition(".")[0]: p
            for p in (MODULES / "kernel/net/netfilter/ipvs").glob("ip_vs*.ko*")}


def build(destdir):
    """Runs `make install` with existing modules, adds the kernel's own and runs depmod."""
    run(["make", "-C", str(TOP), "-o", "modules", "-o", "ipvsctl", "install",
         f"KDIR={MODULES}/build", f"DESTDIR={destdir}"], timeout=200)
    root = destdir / "lib/modules" / RELEASE
    files = [MODULES / "modules.builtin", MODULES / "modules.order", *in_tree().values()]
    ours = [str(p) for p in (root / "updates/l4lb").glob("*.ko")]
    wanted = set(re.split(r"[\s,]+", run(["modinfo", "-F", "depends", *ours]).stdout))
    wanted |= {"nf_conntrack", "nf_defrag_ipv6", "nf_defrag_ipv4", "libcrc32c", "nf_nat"}
    # Built-in modules have no file and need none.
    found = run(["modinfo", "-F", "filename", *sorted(wanted - {"", "l4lb"})], check=False)
    files += [Path(line) for line in found.stdout.splitlines() if line.startswith("/")]
    for file in files:
        to = root / file.relative_to(MODULES)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)
    run(["depmod", "-b", str(destdir), RELEASE])
    return root


@contextlib.contextmanager
def rules(*files):
    """Within the block FILES are modprobe's configuration instead of the lab's."""
    aside = RULES.with_name("modprobe.d.lab")
    RULES.rename(aside)
    RULES.mkdir()
    for file in files:
        shutil.copy(file, RULES)
    try:
        yield
    finally:
        shutil.rmtree(RULES)
        aside.rename(RULES)


@contextlib.contextmanager
def installed(destdir):
    root = build(destdir)
    run(["mount", "--bind", str(root), str(MODULES)])
    try:
        with rules(destdir / "usr/lib/modprobe.d/l4lb.conf"):
            yield root
    finally:
        run(["umount", str(MODULES)])
