# SPDX-License-Identifier: GPL-2.0
"""What is no file of `ipvsctl conn export` is refused before it is read whole."""

import subprocess

import fake
import pytest

REFUSED = "ipvsctl: {} is no file of ipvsctl conn export\n"


def imported(*words, **more):
    # With less memory than the largest file that is read.
    return subprocess.run(["prlimit", "--as=300000000", fake.program(), "conn", "import", *words],
                          capture_output=True, text=True, check=False, timeout=60, **more)


@pytest.mark.parametrize("name", ("/dev/zero", "/dev/null", "/etc/passwd", "/etc"))
def test_other_files(name):
    done = imported(name)
    assert (done.returncode, done.stderr) == (2, REFUSED.format(name))


def test_a_pipe():
    done = imported("-", input="-A -t 192.0.2.1:80\n")
    assert (done.returncode, done.stderr) == (2, REFUSED.format("standard input"))
