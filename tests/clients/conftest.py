# SPDX-License-Identifier: GPL-2.0
"""Fixtures for the tests of ipvsctl: the module, and a director in its own namespace."""

import pytest
from lab import genl
from lab.backend import Backend
from lab.ctl import Director


@pytest.fixture(scope="module")
def module(request):
    with Backend(getattr(request, "param", "l4lb")).alone(("rr", "wrr", "lc", "wlc")) as which:
        yield which


@pytest.fixture(scope="module")
def shared(module):
    one = Director()
    yield one
    one.ns.destroy()


@pytest.fixture
def director(shared):
    """An empty configuration, in a namespace where nothing has been forwarded."""
    with genl.Ipvs(shared.ns) as ipvs:
        ipvs.flush()
        ipvs.timeouts(900, 120, 300)
    return shared


@pytest.fixture
def fresh(module):
    """A new namespace for each test, for tests that send packets."""
    one = Director()
    yield one
    one.ns.destroy()


@pytest.fixture
def udp(fresh):
    fresh.ctl("svc add udp 192.0.2.10:5353 scheduler rr server 10.0.0.11 server 10.0.0.12")
    return fresh
