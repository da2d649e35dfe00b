# SPDX-License-Identifier: GPL-2.0
"""ipvsctl sync verify and sync wait with a peer that answers as the test wants."""

import os
import random
import struct
import subprocess
import time

import pytest
from lab import genl
from lab.ctl import IPVSCTL
from lab.netns import SLOW, wait_until
from lab.peers import BULK_END, DIGEST_ASK, SLICE_COUNT, Fake, Peers
from lab.sync_group import PEER

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]


class Pair:
    """The director, and a peer that is joining."""

    def __init__(self, side, peers, fake):
        self.side, self.peers, self.fake = side, peers, fake

    def __call__(self, words, **env):
        """(exit status, output, message) of ipvsctl. Meanwhile the peer is heard."""
        done = self.start(words, **env)
        while done.poll() is None:
            self.fake.listen(0.5)
        return done.returncode, done.stdout.read(), done.stderr.read()

    def start(self, words, **env):
        with self.side.ns.enter():
            return subprocess.Popen([IPVSCTL, *words.split()], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=os.environ | env)

    @property
    def verified(self):
        return self.peers.progress(PEER[4])["verified"]

    def question(self, but=None):
        """The number of the director's next question that is not BUT."""
        end = time.monotonic() + 30 * SLOW
        while time.monotonic() < end:
            (nonce,) = struct.unpack(">Q", self.fake.body(DIGEST_ASK, 20))
            if nonce != but:
                return nonce
        raise AssertionError("no other question came")

    def differ(self, nonce):
        chance = random.Random(nonce)
        self.fake.send_sums(nonce, [chance.getrandbits(64) for _ in range(SLICE_COUNT)])

    def agree(self, nonce):
        self.fake.send_sums(nonce, self.fake.digest(nonce))


@pytest.fixture
def pair(side):
    with Peers(side.ns) as peers:
        peers.set(verify=0)
        peers.add(PEER[4])
        with Fake(side.peer) as fake:
            yield Pair(side, peers, fake.join())


@pytest.fixture
def joined(pair):
    pair.fake.answer()
    pair.peers.in_step(PEER[4])
    return pair


def test_a_peer_that_is_joining(pair):
    """Neither absent nor silent: the message says how far it is."""
    wanted = f"peer {PEER[4]} is joining, 0 of about 0 records have come\n  see: ipvsctl sync show\n"
    assert pair("sync wait 1") == (9, "", f"ipvsctl: sync: after 1 s: {wanted}")
    assert pair("sync verify") == (9, "", f"ipvsctl: sync: after 30 s: {wanted}")


def test_a_peer_without_an_answer(joined):
    code, said, why = joined("sync verify")
    assert (code, said) == (9, "")
    assert why.startswith(f"ipvsctl: sync: after 30 s: peer {PEER[4]} has not answered the comparison\n")


def test_a_comparison_that_goes_on(joined):
    """It began before the command, so its result does not count."""
    joined.peers.verify(PEER[4])
    older = joined.question()
    joined.peers.verify(PEER[4])
    joined.differ(older)
    nonce = joined.question(but=older)
    assert joined.verified == 0
    joined.agree(nonce)
    wait_until(lambda: joined.verified == 1, 5, what="a comparison")
    assert joined.peers.progress(PEER[4])["difference"] == 0


# ipvsctl waits before its first message with this command: a file says that it does.
PAUSE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct nl_sock;
struct nl_msg;
struct nlmsghdr { unsigned int len; unsigned short type, flags; unsigned int seq, port; };
struct nlmsghdr *nlmsg_hdr(struct nl_msg *msg);

int nl_send(struct nl_sock *sock, struct nl_msg *msg)
{
	int (*real)(struct nl_sock *, struct nl_msg *) = dlsym(RTLD_NEXT, "nl_send");
	struct nlmsghdr *h = nlmsg_hdr(msg);
	static int once;

	if (h->type > 16 && *(unsigned char *)(h + 1) == atoi(getenv("COMMAND")) && !once++) {
		fclose(fopen(getenv("MARK"), "w"));
		while (!access(getenv("MARK"), F_OK))
			usleep(10000);
	}
	return real(sock, msg);
}
"""


def test_a_comparison_that_ends_meanwhile(joined, tmp_path):
    """It ends between the command's two looks at the kernel, and does not count either."""
    source, library, mark = (tmp_path / name for name in ("pause.c", "pause.so", "mark"))
    source.write_text(PAUSE, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=300)
    joined.peers.verify(PEER[4])
    older = joined.question()
    command = joined.start("sync verify", LD_PRELOAD=str(library), MARK=str(mark),
                           COMMAND=str(genl.SYNC_VERIFY))
    wait_until(mark.exists, 10, what="the command")
    joined.differ(older)
    wait_until(lambda: joined.verified == 1, 5, what="the older comparison")
    joined.fake.bulk_control(BULK_END, older, 0)
    mark.unlink()
    joined.agree(joined.question(but=older))
    while command.poll() is None:
        joined.fake.listen(0.5)
    assert (command.returncode, command.stderr.read()) == (0, "")
    assert f"peer {PEER[4]}: difference 0 " in command.stdout.read()
