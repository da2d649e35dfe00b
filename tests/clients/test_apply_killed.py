# SPDX-License-Identifier: GPL-2.0
"""apply is killed at each of its system calls: then nothing was changed or all, rollback knows
which, and the next run is not in the way of anything."""

import random
import subprocess

import pytest
from lab import genl
from lab.ctl import IPVSCTL, SANITIZED
from lab.rows import amount

TAKES = 60
NO_MODULE = True        # `module` loads it
pytestmark = pytest.mark.skipif(SANITIZED, reason="traces calls; runs with build/ipvsctl")
# Runs a command until the Nth time it enters or leaves a system call, and kills it there.
# The exit status is 0; or 9 if the command ended before, then the output is how often it was.
KILLER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int i, n = atoi(argv[1]), status;
	cpu_set_t one;
	pid_t pid;

	/* Both on one processor: another would have to wake up for each call. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	for (i = 0; i < n; i++) {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		waitpid(pid, &status, 0);
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			fprintf(stderr, "%d", i);
			return 9;
		}
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return 0;
}
"""
BEFORE = """\
version: 1
timeouts: {tcp: 900, udp: 300}
services:
  - service: tcp 192.0.2.10:80
    scheduler: wrr
    servers: [10.0.0.11 weight 3, 10.0.0.12]
  - {service: 'udp 192.0.2.10:53', servers: [10.0.0.13]}
"""
AFTER = """\
version: 1
timeouts: {tcp: 800, udp: 200}
services:
  - service: tcp 192.0.2.10:80
    scheduler: rr
    persistent: 60
    servers: [10.0.0.11 weight 5, 10.0.0.14]
  - {service: fwmark 7, servers: [10.0.0.15]}
"""


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killer")
    (folder / "killer.c").write_text(KILLER, encoding="ascii")
    subprocess.run(["gcc", "-o", folder / "killer", folder / "killer.c"], check=True)
    return folder / "killer"


def state(director):
    with genl.Ipvs(director.ns) as ipvs:
        return director.state(), ipvs.timeouts()


@pytest.mark.slow
def test_killed(director, module, killer, tmp_path, monkeypatch, request, seed):
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text(BEFORE, encoding="ascii")
    after.write_text(AFTER, encoding="ascii")
    director.ctl(f"apply --prune {after}")
    new = state(director)
    director.ctl(f"apply --prune {before}")
    old = state(director)

    def killed(at):
        """Returns how many stops there were, or 0 if it was killed."""
        with director.ns.enter():
            done = subprocess.run([killer, str(at), IPVSCTL, "-q", "apply", "--prune", after], text=True,
                                  capture_output=True, check=False, timeout=60)
        assert done.returncode in (0, 9)
        return int(done.stderr) if done.returncode else 0

    total = killed(1000000)
    assert state(director) == new and total > 100
    director.ctl("rollback")
    # In the first half, libraries are loaded.
    begin, step = (amount(request.config, few=few, all=every) for few, every in ((total // 2, 0), (41, 1)))
    seen = set()
    for at in range(begin + random.Random(seed).randrange(step), total, step):
        ended = killed(at)
        found = state(director)
        assert found == new if ended else found in (old, new), at
        seen.add(found == new)
        if found == new:
            director.ctl("rollback")
            assert state(director) == old, at
    assert seen == {False, True}, "killed before and after"
    director.ctl(f"apply --prune {after}")
    director.ctl("rollback")
    assert state(director) == old
    assert not list((tmp_path / "state").rglob("new"))
