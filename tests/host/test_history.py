# SPDX-License-Identifier: GPL-2.0
"""Where ipvsctl keeps what rollback needs: one folder for each network namespace."""

import os
import re
import subprocess

import fake
import pytest


def folder(tmp_path, *before):
    """Its name, of a run of ipvsctl by the command BEFORE."""
    if before:
        able = subprocess.run([*before, "true"], capture_output=True, text=True, check=False, timeout=60)
        if able.returncode:
            pytest.skip(f"{before[0]} is not allowed here: {able.stderr.strip()}; runs as root")
    done = subprocess.run([*before, fake.program(), "-n", "rollback"], capture_output=True, text=True,
                          check=False, timeout=60, env=os.environ | {"STATE_DIRECTORY": str(tmp_path)})
    assert done.returncode == 4, done.stderr
    return re.search(f"nothing in {tmp_path}/(.*)/$", done.stderr, re.M)[1]


def test_the_unit_and_a_person_have_one_folder(tmp_path):
    """The unit has one capability, and the kernel lets it not look at process 1."""
    assert re.fullmatch("main|boot-.*", folder(tmp_path))
    limits = ["--inh-caps=-all", "--bounding-set=-all,+net_admin"] if os.getuid() == 0 else []
    assert folder(tmp_path, "setpriv", "--no-new-privs", *limits) == folder(tmp_path)
    same = os.stat("/proc/1/net/dev").st_ino == os.stat("/proc/self/net/dev").st_ino
    assert (folder(tmp_path) == "main") == same


def test_namespaces_have_their_own(tmp_path):
    root = [] if os.getuid() == 0 else ["-r"]
    assert folder(tmp_path, "unshare", *root, "-n").startswith("boot-")
