# SPDX-License-Identifier: GPL-2.0
"""What ipvsctl says where no module is loaded. It looks for what is installed for this kernel."""

import os
from pathlib import Path

import pytest
from lab import modules
from lab.ctl import IPVSCTL
from lab.netns import run

NO_MODULE = True
MODPROBE = Path("/proc/sys/kernel/modprobe")
# What is installed: the sentence, what to try, the doctor's sentence.
ROWS = {
    "kernel/l4lb.ko": (
        "module l4lb is installed but not loaded", "modprobe l4lb",
        "l4lb is installed but not loaded"),
    "kernel/net/netfilter/ipvs/ip_vs.ko": (
        "module l4lb is not built for RELEASE, and ip_vs is not loaded",
        "install l4lb for this kernel and modprobe l4lb, or modprobe ip_vs",
        "l4lb is neither loaded nor built for kernel RELEASE"),
    "kernel/fs/ext4/ext4.ko": (
        "neither l4lb nor ip_vs is installed for kernel RELEASE",
        "install l4lb with this kernel's headers, then modprobe l4lb",
        "l4lb is neither loaded nor built for kernel RELEASE"),
}


@pytest.fixture
def nothing_loads():
    """The kernel looks for a module when a program asks for family IPVS, and is not to find one."""
    assert not modules.is_loaded("l4lb")
    if modules.is_loaded("ip_vs"):
        run("modprobe -r ip_vs")
    before = MODPROBE.read_text("ascii")
    MODPROBE.write_text("/bin/false\n", "ascii")
    yield
    MODPROBE.write_text(before, "ascii")


def ipvsctl(installed, *words):
    """With /lib/modules that has only the module INSTALLED."""
    return run(["unshare", "-m", "sh", "-ec", """\
here=$PWD
mount -t tmpfs none /lib/modules
mkdir /lib/modules/$(uname -r)
echo "$1:" >/lib/modules/$(uname -r)/modules.dep
shift
cd "$here"
exec "$@"
""", "sh", installed, IPVSCTL, *words], check=False)


@pytest.mark.smoke
@pytest.mark.parametrize("installed", ROWS)
def test_why_there_is_none(installed, nothing_loads):
    why, cure, found = (text.replace("RELEASE", os.uname().release) for text in ROWS[installed])
    for words in (["show"], ["service", "add", "tcp", "192.0.2.10:80"], ["conn", "show"], ["save"]):
        done = ipvsctl(installed, *words)
        assert (done.returncode, done.stdout) == (7, ""), words
        assert done.stderr == f"ipvsctl: no IPVS backend: {why}\n  try: {cure}\n"
    assert f"error: module: {found}\n" in ipvsctl(installed, "doctor").stdout
