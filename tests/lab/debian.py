# SPDX-License-Identifier: GPL-2.0
"""New roots of Debian, as a machine that has never seen l4lb.

mmdebstrap makes one of each release; it and what apt loads are kept for a week in the cache,
because downloads take most of the time. The roots share this machine's network and nothing else.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "l4lb/debian"
MIRROR, SECURITY = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
WEEK = 7 * 86400
# apt and dpkg keep lists and logs of their own.
NOT_OURS = ("proc", "dev", "tmp", "var/cache", "var/lib/apt", "var/lib/dpkg", "var/log", "packages")

# Mounts in namespaces that end with the command.
ENTER = r"""
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --bind "$2" "$1/var/cache/apt/archives"
cd "$1"
exec chroot . /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
	LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -euc "$3"
"""


class Failed(Exception):
    """What a command said that should have done something else."""


def base(release):
    """The archive of a root with nothing but what each Debian has."""
    archive = CACHE / f"{release}.tar"
    if not archive.exists() or time.time() - archive.stat().st_mtime > WEEK:
        CACHE.mkdir(parents=True, exist_ok=True)
        new = archive.with_name("new-" + archive.name)
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", release, str(new),
                        f"deb {MIRROR} {release} main", f"deb {MIRROR} {release}-updates main",
                        f"deb {SECURITY} {release}-security main"], check=True, timeout=1800)
        new.rename(archive)
    return archive


class Root:
    def __init__(self, folder, release):
        self.path, self.release = Path(folder), release
        self.packages = CACHE / f"{release}-packages"
        self.packages.mkdir(parents=True, exist_ok=True)
        self.path.mkdir()
        subprocess.run(["tar", "--extract", f"--file={base(release)}", f"--directory={folder}",
                        "--exclude=./dev/*"], check=True, timeout=300)
        shutil.copy("/etc/resolv.conf", self.path / "etc/resolv.conf")
        self.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
        self.write("etc/apt/apt.conf.d/keep", 'APT::Keep-Downloaded-Packages "true";\n')
        self.write("etc/dpkg/dpkg.cfg.d/quick", "force-unsafe-io\n")
        self.run("apt-get -q update")

    def write(self, name, text, mode=0o644):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)

    def run(self, command, code=0):
        """Runs the shell COMMAND in it as root; returns both outputs together."""
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh",
             str(self.path), str(self.packages), command], text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=1800)
        if done.returncode != code:
            raise Failed(f"{command}: status {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    def install(self, *packages):
        return self.run("apt-get -q -y --no-install-recommends install " + " ".join(packages))

    def kernels(self):
        """Releases with headers."""
        return sorted(p.parent.name for p in (self.path / "lib/modules").glob("*/build"))

    def files(self):
        """Every path in it, but for what is mounted, and apt's and dpkg's own."""
        found = (str(p.relative_to(self.path)) for p in self.path.rglob("*"))
        return {name for name in found if not name.startswith(NOT_OURS)}
