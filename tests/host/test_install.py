# SPDX-License-Identifier: GPL-2.0
"""make uninstall removes what make install has installed, and nothing else."""

import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
RELEASE = "6.12.999-test"
MODULES = "l4lb.ko", "l4lb_rr.ko"


@pytest.fixture
def make(tmp_path):
    """Runs make with a fake kernel tree and fake products; returns the names of the files
    below DESTDIR."""
    header = tmp_path / "kernel/include/generated/utsrelease.h"
    header.parent.mkdir(parents=True)
    header.write_text(f'#define UTS_RELEASE "{RELEASE}"\n', encoding="ascii")
    (tmp_path / "out" / RELEASE).mkdir(parents=True)
    for name in MODULES:
        (tmp_path / "out" / RELEASE / name).write_text(name, encoding="ascii")
    (tmp_path / "out/ipvsctl").write_text("ipvsctl", encoding="ascii")
    root = tmp_path / "root"

    def run(target, *words, code=0):
        done = subprocess.run(
            ["make", "-o", "modules", "-o", "ipvsctl", target, f"DESTDIR={root}",
             f"out={tmp_path}/out", f"KDIR={tmp_path}/kernel", *words], cwd=TOP,
            capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code, done.stderr
        return done.stderr if code else \
            {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}
    run.root = root
    return run


@pytest.mark.parametrize("prefix", ("usr", "usr/local"))
def test_uninstall_leaves_nothing(make, prefix):
    words = [] if prefix == "usr" else [f"PREFIX=/{prefix}"]
    assert make("install", *words) == {
        *(f"lib/modules/{RELEASE}/updates/l4lb/{name}" for name in MODULES),
        "usr/lib/modprobe.d/l4lb.conf", f"{prefix}/sbin/ipvsctl",
        f"{prefix}/share/man/man8/ipvsctl.8",
        f"{prefix}/share/bash-completion/completions/ipvsctl"}
    assert make("uninstall", *words) == set()
    assert not (make.root / f"lib/modules/{RELEASE}/updates/l4lb").exists()
    assert make("uninstall", *words) == set()       # twice is no error


def test_uninstall_leaves_what_others_put_there(make):
    make("install")
    others = {f"lib/modules/{RELEASE}/updates/other.ko", "usr/lib/modprobe.d/other.conf",
           "usr/sbin/other", "usr/share/man/man8/other.8"}
    for name in others:
        (make.root / name).write_text("other", encoding="ascii")
    assert make("uninstall") == others


def test_uninstall_needs_to_know_the_kernel(make, tmp_path):
    """Without a release it would remove the wrong directory below /lib/modules."""
    make("install")
    assert "no kernel release: name the kernel build directory with KDIR=" in \
        make("uninstall", f"KDIR={tmp_path}/none", code=2)
    assert len(make("install")) == len(MODULES) + 4
