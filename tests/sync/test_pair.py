# SPDX-License-Identifier: GPL-2.0
"""One director sends, another one of the same kind receives: connections of every kind."""

import pytest
from lab import daemons, genl
from lab.netns import wait_until
from lab.rows import amount
from lab.settings import setting
from lab.sync_group import GROUP
from lab.sync_matrix import Matrix, copy_services, differences, rows_of, without_ipv6

V0 = "v0"


@pytest.mark.waits
@pytest.mark.smoke
@pytest.mark.parametrize("how", (4, 6, V0), ids=("v4-group", "v6-group", "v0"))
def test_matrix(request, lab, side_of, how):
    """The same server, state and end on both; version 0 has neither IPv6 nor timeouts."""
    count = amount(request.config, all=200, few=10)
    side, matrix = side_of(lab), Matrix(lab)
    group = GROUP[4 if how == V0 else how]
    with genl.Ipvs(side.peer) as peer, setting(lab, "sync_version", int(how != V0)):
        copy_services(lab.ipvs, peer)
        try:
            with daemons.running(peer, "backup", group=group), side.master(group=group):
                matrix.play(count)
                compare(side, matrix, count, how)
        finally:
            peer.flush()


def compare(side, matrix, count, how):
    def wrong():
        sent, got = matrix.rows(count), rows_of(side.peer, matrix.number)
        if how == V0:
            sent = without_ipv6(sent)
        # A template without a time gets 180 s.
        return [text for text in differences(sent, got) if how != V0 or ": ends " not in text]
    try:
        wait_until(lambda: not wrong(), 15, what="both directors know the same", step=0.3)
    except AssertionError:
        found = wrong()
        assert not found, f"{len(found)} differences: " + "; ".join(found[:10])
