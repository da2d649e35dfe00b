# SPDX-License-Identifier: GPL-2.0
"""A root of Debian that boots: systemd as its first process, on the UML kernel "plain".

The kernel has no headers in the root, so dkms builds nothing for it; it gets the modules that
were built for the tests.
"""

import shutil
import subprocess

from . import builds
from .debian import Failed

PACKAGES = "systemd-sysv", "kmod", "iproute2", "keepalived"
OUT = "guest-out"
# The steps are lines of shell; systemd has started everything before.
UNIT = """[Unit]
After=l4lb.service keepalived.service
[Service]
Type=oneshot
ExecStart=/bin/bash /guest.sh
ExecStopPost=/usr/bin/systemctl poweroff -ff
"""
GUEST = f"""
for step in /{OUT}/*.step; do
	timeout 60 bash $step >$step.said 2>&1
	echo $? >$step.status
done
"""


class Booted:
    """ROOT with a kernel to boot. Its packages are installed by now."""

    def __init__(self, root):
        self.root = root
        build = subprocess.run([builds.TOP / "tests/lab/uml-build", "plain"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.strip()
        self.kernel = f"{build}/linux"
        self.release = builds.release_of(build)
        builds.make("modules", "ARCH=um", f"KDIR={build}")
        self.modules = root.path / "lib/modules" / self.release
        shutil.copytree(f"{build}/root/lib/modules/{self.release}", self.modules, symlinks=True)
        self.ours = self.modules / "updates/dkms"
        self.ours.mkdir(parents=True)
        for module in (builds.TOP / "build" / self.release).glob("*.ko"):
            shutil.copy(module, self.ours)
        root.write("etc/systemd/system/guest.service", UNIT)
        wants = root.path / "etc/systemd/system/multi-user.target.wants/guest.service"
        wants.symlink_to("/etc/systemd/system/guest.service")
        root.write("guest.sh", GUEST)

    def without_l4lb(self):
        shutil.rmtree(self.ours)

    def run(self, *steps):
        """Boots it and runs STEPS, shell; returns what each has said and its status."""
        self.root.run(f"depmod {self.release}")
        out = self.root.path / OUT
        shutil.rmtree(out, ignore_errors=True)
        for number, step in enumerate(steps):
            self.root.write(f"{OUT}/{number:03}.step", step)
        done = subprocess.run(
            [self.kernel, "mem=1G", "root=/dev/root", "rootfstype=hostfs", f"rootflags={self.root.path}", "rw",
             "con=null", "con0=null,fd:1", "panic=-1", "init=/sbin/init", "systemd.log_target=console",
             "systemd.firstboot=off"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
        ran = sorted(out.glob("*.status"))
        if len(ran) != len(steps):
            raise Failed(f"{len(ran)} of {len(steps)} steps ran\n"
                         f"{done.stdout.decode('utf-8', 'replace')[-6000:]}")
        return [(status.with_suffix(".said").read_text("utf-8").strip(), int(status.read_text("ascii")))
                for status in ran]
