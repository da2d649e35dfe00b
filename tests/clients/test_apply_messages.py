# SPDX-License-Identifier: GPL-2.0
"""What apply and diff send: nothing that changes if nothing differs, otherwise one message, as
large as the difference. A library between the program and the kernel reads each."""

import json
import os
import subprocess
import time

import pytest
from lab import genl
from lab.ctl import IPVSCTL, SANITIZED, declared
from lab.netns import SLOW
from lab.rows import amount
from test_apply import FILE

TAKES = 60
NO_MODULE = True        # `module` loads both, one after the other
pytestmark = pytest.mark.skipif(SANITIZED, reason="needs LD_PRELOAD; runs with build/ipvsctl")
SPY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

static void note(const void *data)
{
	const struct nlmsghdr *h = data;
	const struct genlmsghdr *g = NLMSG_DATA(h);
	FILE *f = fopen(getenv("SPY"), "a");

	fprintf(f, "[%u, %u, %u, %u]\n", h->nlmsg_type, g->cmd, h->nlmsg_flags, h->nlmsg_len);
	fclose(f);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");

	note(m->msg_iov->iov_base);
	return real(fd, m, flags);
}

ssize_t sendto(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
	ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) =
		dlsym(RTLD_NEXT, "sendto");

	note(p);
	return real(fd, p, n, flags, to, len);
}
"""
READING = {genl.IPVS.request(name) for name in ("get-service", "get-dest", "get-config", "get-info")}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spy")
    (folder / "spy.c").write_text(SPY, encoding="ascii")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "spy.so", folder / "spy.c"], check=True)
    return folder / "spy.so"


@pytest.fixture
def spy(director, library, tmp_path):
    """Runs ipvsctl; returns its exit status and [(command, length)] of the messages that
    change something."""
    log = tmp_path / "log"

    def run(*words):
        log.write_text("", encoding="ascii")
        with director.ns.enter():
            done = subprocess.run([IPVSCTL, *words], capture_output=True, text=True, check=False, timeout=60,
                                  env=os.environ | {"LD_PRELOAD": str(library), "SPY": str(log)})
        assert done.returncode < 2, done.stderr
        sent = [json.loads(line) for line in log.read_text(encoding="ascii").splitlines()]
        assert sent
        families = {}
        for name in "IPVS", "L4LB":
            try:
                with genl.Genl(director.ns, name) as family:
                    families[family.family_id] = name
            except OSError:
                pass
        changing = []
        for kind, command, flags, length in sent:
            name = families.get(kind)
            if name == "L4LB" and flags & genl.F_DUMP == genl.F_DUMP:
                continue
            if name == "IPVS" and command in READING or name is None:
                continue
            changing.append((f"{name} {command}", length))
        return done.returncode, changing
    return run


SET_SERVICES = f"L4LB {genl.L4LB.request('set-services')}"


@pytest.mark.smoke
@pytest.mark.tool
def test_messages(director, module, spy, tmp_path):
    """The first run sends one message, the timeouts in it; the second, and each diff, none."""
    file = tmp_path / "lb.yaml"
    file.write_text(FILE, encoding="ascii")
    assert spy("diff", str(file)) == (1, [])
    code, sent = spy("apply", str(file))
    assert code == 0 and [name for name, _ in sent] == [SET_SERVICES]
    assert spy("apply", str(file), "--prune") == (0, [])
    assert spy("diff", str(file), "--prune") == (0, [])
    file.write_text(FILE.replace("weight 3", "weight 4"), encoding="ascii")
    assert spy("diff", str(file)) == (1, [])
    assert [name for name, _ in spy("apply", str(file))[1]] == [SET_SERVICES]
    file.write_text("version: 1\nservices: []\n", encoding="ascii")
    assert spy("apply", str(file)) == (0, [])
    assert [name for name, _ in spy("apply", str(file), "--prune")[1]] == [SET_SERVICES]
    assert director.state() == []


def test_the_message_is_as_large_as_the_difference(director, module, spy, tmp_path, request):
    """Ten services of thousands change: one message, with these ten."""
    total = amount(request.config, few=1000, all=10000)
    file = tmp_path / "lb.yaml"
    file.write_text(declared(total), encoding="ascii")
    [(name, whole)] = spy("apply", str(file))[1]
    assert name == SET_SERVICES
    file.write_text(declared(total, 10), encoding="ascii")
    [(name, ten)] = spy("apply", str(file))[1]
    assert name == SET_SERVICES and whole / total * 9 < ten < whole / total * 12
    assert spy("apply", str(file)) == (0, [])


@pytest.mark.parametrize("module", ["ip_vs"], indirect=True)
def test_messages_to_ip_vs(director, module, spy, tmp_path):
    """A command for each difference."""
    file = tmp_path / "lb.yaml"
    file.write_text(FILE, encoding="ascii")
    assert len(spy("apply", str(file))[1]) == 1 + 3 + 4
    assert spy("apply", str(file), "--prune") == (0, [])
    file.write_text(FILE.replace("weight 3", "weight 4"), encoding="ascii")
    assert [name for name, _ in spy("apply", str(file))[1]] == [f"IPVS {genl.SET_DEST}"]


@pytest.mark.slow
def test_times(director, module, tmp_path):
    """2,000 services at once beside restore; ten of 10,000 changed. The figures are printed."""
    def timed(*words, **more):
        began = time.monotonic()
        said = director.ctl(*words, **more)
        return time.monotonic() - began, said

    small, whole, next_one = tmp_path / "small", tmp_path / "whole", tmp_path / "next"
    small.write_text(declared(2000), encoding="ascii")
    whole.write_text(declared(10000), encoding="ascii")
    next_one.write_text(declared(10000, 10), encoding="ascii")
    apply, restore = [], []
    for _ in range(3):
        apply.append(timed("apply", str(small))[0])
        rules = director.ctl("save")
        director.ctl("svc flush --yes")
        restore.append(timed("restore", stdin=rules)[0])
        director.ctl("svc flush --yes")
    first, _ = timed("apply", str(whole))
    same, said = timed("apply", str(whole))
    assert "no changes" in said
    diff, _ = timed("diff", str(next_one), code=1, out=True)
    ten, said = timed("apply", str(next_one))
    assert "servers:  0 added, 40 changed" in said
    print(f"2,000 x 4: apply {min(apply):.2f} s, restore {min(restore):.2f} s; 10,000 x 4: apply {first:.2f} s, "
          f"again {same:.2f} s; ten changed: diff {diff:.2f} s, apply {ten:.2f} s")
    # On the debug kernel most of the time is the kernel's checks.
    assert SLOW > 1 or min(apply) <= 1.2 * min(restore)
