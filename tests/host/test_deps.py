# SPDX-License-Identifier: GPL-2.0
"""make deps names the packages before it installs them, and installs no others.

The package manager is a script that logs its arguments. /usr/sbin is an empty directory in
a mount namespace: make deps puts policy-rc.d there, which keeps new daemons from starting.
"""

import os
import subprocess
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[2] / "tests/lab"

FAKES = {
    # All packages but $MISSING are installed; a missing wrk was removed, but not its files in /etc.
    "dpkg-query": """for name; do
        case $name in -*|'${'*) continue ;; esac
        case " $MISSING " in
        *" $name "*) [ "$name" != wrk ] || echo "wrk config-files" ;;
        *) echo "$name installed" ;;
        esac
    done""",
    "apt-get": """echo "$*" >>"$NOTES"
    echo "said before: $(cat "$SAID")" >>"$NOTES"
    [ -z "$INITRD" ] || echo "initramfs: $INITRD" >>"$NOTES"
    case $* in *' -s '*) echo "$UPGRADED upgraded, 2 newly installed"; exit ;; esac
    [ ! -x /usr/sbin/policy-rc.d ] || echo guarded >>"$NOTES" """,
    "id": 'echo "$UID_NOW"',
    "go": "true",
    "systemctl": 'echo "systemctl $*" >>"$NOTES"',
}
SYSTEMS = {"12": "ID=debian\nVERSION_ID=12\n", "13": "ID=debian\nVERSION_ID=13\n",
           "fedora": "ID=fedora\nVERSION_ID=41\n"}
SCRIPT = """mount -t tmpfs none /usr/sbin
mount --bind "$BOOT" /boot
mount --bind "$SYSTEM" "$(readlink -f /etc/os-release)"
"$@" 2>"$SAID" || status=$?
ls /usr/sbin
exit ${status-0}"""


class Machine:
    def __init__(self, path, system="12"):
        self.path, self.notes, self.said = path, path / "notes", path / "said"
        (path / "bin").mkdir()
        (path / "boot").mkdir()
        for name, text in FAKES.items():
            (path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
            (path / "bin" / name).chmod(0o755)
        (path / "os-release").write_text(SYSTEMS[system], encoding="ascii")
        self.venv = path / "cache/l4lb/venv"
        (self.venv / "bin").mkdir(parents=True)
        (self.venv / "bin/python3").symlink_to("/bin/true")
        (self.venv / ".requirements").write_bytes((LAB / "requirements.txt").read_bytes())

    def deps(self, *argv, missing="", uid=0, upgraded=0):
        """(exit status, error output, log of the package manager's arguments)"""
        for file in (self.notes, self.said):
            file.write_text("", encoding="ascii")
        env = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "HOME": str(self.path),
               "XDG_CACHE_HOME": str(self.path / "cache"), "MISSING": missing,
               "NOTES": str(self.notes), "SAID": str(self.said), "UID_NOW": str(uid), "UPGRADED": str(upgraded),
               "SYSTEM": str(self.path / "os-release"), "BOOT": str(self.path / "boot")}
        done = subprocess.run(["unshare", "-rm", "sh", "-c", SCRIPT, "sh", LAB / "deps", *argv],
                              env=env, capture_output=True, text=True, check=False, timeout=60)
        assert done.stderr == ""
        assert done.stdout == "", "left behind in /usr/sbin"
        return done.returncode, self.said.read_text(), self.notes.read_text()


@pytest.fixture
def machine(tmp_path):
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace to be had here: run it as root")
    return lambda system="12": Machine(tmp_path, system)


def test_silent_when_nothing_is_missing(machine):
    one = machine()
    assert one.deps() == one.deps("--check") == one.deps(uid=1000) == (0, "", "")


def test_check_names_and_installs_nothing(machine):
    one = machine()
    assert one.deps("--check", missing="wrk bison") == \
        (1, "deps: missing Debian packages: bison wrk\n", "")


def test_names_what_it_installs(machine):
    """It names them before it installs them; no daemon among them may start."""
    one = machine()
    (one.path / "boot/grub").mkdir()
    status, said, asked = one.deps(missing="wrk bison linux-image-amd64")
    named = "deps: missing Debian packages: bison linux-image-amd64 wrk"
    assert (status, said.splitlines()[0]) == (0, named)
    assert "may become this machine's own" in said
    update, install = [line for line in asked.splitlines() if line.startswith("-o ")]
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends bison linux-image-amd64 wrk")
    assert asked.count(f"said before: {named}\n") == 2
    assert asked.count("guarded\n") == 2 and "initramfs" not in asked


def test_no_initramfs_where_no_kernel_boots(machine):
    """A container gets its kernel from outside. It would take a minute."""
    status, said, asked = machine().deps(missing="linux-image-amd64")
    assert (status, asked.count("initramfs: No\n")) == (0, 3)
    assert "may become this machine's own" not in said


@pytest.mark.parametrize("upgraded", (0, 1, 10))
def test_files_that_were_there_are_safe_from_a_crash(machine, upgraded):
    """Only new packages are installed without waiting for the disk, where no kernel boots."""
    one = machine()

    def unsafe():
        _, _, asked = one.deps(missing="wrk", upgraded=upgraded)
        *_, install = [line for line in asked.splitlines() if line.startswith("-o ")]
        assert install.endswith(" wrk")
        return "--force-unsafe-io" in install
    assert unsafe() == (not upgraded)
    (one.path / "boot/grub").mkdir()
    assert not unsafe()


def test_kernel_needs_only_what_builds_it(machine):
    """wrk is for tests: it is not waited for."""
    status, said, asked = machine().deps("--kernel", missing="wrk bison")
    assert (status, said.splitlines()[0]) == (0, "deps: missing Debian packages: bison")
    assert " install -y --no-install-recommends bison\n" in asked


def test_who_is_not_root_is_told_the_command(machine):
    status, said, asked = machine().deps(missing="wrk bison", uid=1000)
    assert (status, asked) == (1, "")
    assert said.splitlines() == [
        "deps: missing Debian packages: bison wrk",
        ("deps: run: sudo apt-get update && sudo apt-get install -y --no-install-recommends "
         "bison wrk")]


def test_kernel_leaves_the_explanation_to_the_next_call(machine):
    assert machine().deps("--kernel", missing="wrk bison", uid=1000) == (1, "", "")


@pytest.mark.parametrize("system", ("13", "fedora"))
def test_other_systems_are_told_what_is_lacking(machine, system):
    """nft is in /usr/sbin, which is empty here, and so is lacking; make is in /usr/bin."""
    if not os.access("/usr/bin/make", os.X_OK):
        pytest.skip("no /usr/bin/make, which the test names as one that is there")
    status, said, asked = machine(system).deps()
    assert (status, asked) == (1, "")
    assert said.startswith("deps: this is not Debian 12, so nothing is installed for you")
    lacking = [line.strip() for line in said.splitlines()[1:]]
    assert "nft" in lacking and "make" not in lacking


def test_python_packages_are_named(machine):
    """Those with another pinned version, or not installed yet."""
    one = machine()
    (one.venv / ".requirements").write_text("virtme-ng==0\n", encoding="ascii")
    status, said, asked = one.deps("--check")
    assert (status, asked) == (1, "")
    for line in (LAB / "requirements.txt").read_text().split():
        assert line in said
    assert str(one.venv) in said
