# SPDX-License-Identifier: GPL-2.0
"""The inputs of "make torture", some thousand of them: neither the kernel nor the services
that they do not name may take notice."""

import pytest
from lab import genl
from lab.counters import counts
from lab.packet import UDP
from lab.raw import Raw
from lab.rows import amount
from torture import hostile


def sent(run):
    result = run.result(60)
    assert not result["gone"]
    return result


@pytest.mark.smoke
@pytest.mark.parametrize("side", ("client", "rs1"))
def test_packets(lab, side, seed, tmp_path, request, only_l4lb):
    target = hostile.Target(lab)
    with genl.L4lb(lab.director.ns) as l4lb:
        l4lb.set_services(list(target.entries()))
    honest = Raw(lab, UDP).client()
    honest.open()
    bases = hostile.write(tmp_path / "bases", target.frames(side))
    number = amount(request.config, few=500, each=1000, pairs=4000)
    found = sent(hostile.Run(lab.nodes[side].ns, "packets", bases, "eth0", seed=seed,
                             count=number))
    # Damaged lengths: the kernel sends no frame without a header.
    assert found["sent"] > 0.9 * number
    honest.raw.drain()
    honest.send(0, b"")
    honest.arrive()
    assert Raw(lab, UDP).client().open() == 1
    if side == "client":
        assert len(lab.conns()) > number / 100
        assert counts(lab)["checksum"]
    lab.director.ns.forget_paths()


@pytest.mark.smoke
def test_messages(nat, seed, tmp_path, request, backend, only_l4lb):
    """They go deep: a good part is accepted."""
    with backend.preloaded(("rr", "wrr", "lc", "wlc", "sh", "mh", "lblc")):
        bases = hostile.write(tmp_path / "bases", hostile.messages(nat.director.ns, seed))
        number = amount(request.config, few=1000, each=2000, pairs=8000)
        found = sent(hostile.Run(nat.director.ns, "messages", bases, seed=seed, count=number))
    assert found["sent"] == number
    assert found["accepted"] > number / 50
    assert found["rejected"] > number / 10
    nat.flush()
    assert nat.ipvs.services() == []
    assert Raw(nat, UDP).client().open() == 1
