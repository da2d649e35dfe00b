# SPDX-License-Identifier: GPL-2.0
"""Fixtures shared by all tests: the module, the topologies, the kernel's log.

Run inside a lab vehicle as root:  $PYTHON -m pytest tests
`--backend ip_vs` runs the same tests against in-tree ip_vs, the control: a
failure there is a mistake in the test, or a documented difference that the
test must name (`backend.is_l4lb`).
"""


import os
import secrets
import sys
import time
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["lab.events", "lab.rows", "lab.share"]

from lab import genl, kernel_log, packet, xdp  # noqa: E402
from lab.backend import Backend  # noqa: E402
from lab.lab import Topologies, emptied  # noqa: E402
from lab.netns import SLOW, run, wait_until  # noqa: E402
from lab.oracle import Oracle  # noqa: E402
from lab.testmodule import TestModule  # noqa: E402
from lab.topology import SHAPES  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--backend", default="l4lb", choices=("l4lb", "ip_vs"),
                     help="the module under test (default: l4lb)")
    parser.addoption("--seed", type=int,
                     help="seed of tests with random input (default: random, and printed)")
    parser.addoption("--fast-path", choices=("0", "1", "2", Backend.UNWATCHED),
                     help="net.ipv4.vs.fast_path for all tests except those of the fast path "
                          "itself, which set it; unwatched: its default, and the director "
                          "has no firewall")
    parser.addoption("--xdp", action="store_true",
                     help="the tests of the fast path find XDP attached to the director's devices")
    config = parser.getgroup("random configuration (test_config_fuzz.py)")
    config.addoption("--config-seed", type=int, help="first seed (default: the test's own)")
    config.addoption("--config-seeds", type=int, default=1, help="number of seeds (default: 1)")
    config.addoption("--config-count", type=int, help="number of commands for each seed")
    config.addoption("--config-replay", metavar="FILE", help="run the commands in FILE instead")
    steps = parser.getgroup("random sequences (test_sequences.py)")
    steps.addoption("--sequence-seed", type=int, help="play the steps of this seed")
    steps.addoption("--sequence-count", type=int, help="number of steps")
    steps.addoption("--sequence-replay", metavar="FILE", help="play the steps in FILE instead")
    fuzz = parser.getgroup("random packets (test_packet_fuzz.py)")
    fuzz.addoption("--fuzz-seed", type=int, help="send the packets of this seed")
    fuzz.addoption("--fuzz-count", type=int, help="number of packets (default: by --rows)")
    fuzz.addoption("--fuzz-replay", metavar="SEED:CASE[:STEP,...]",
                   help="only this case (or several, separated by blanks), packet by packet")


def pytest_configure(config):
    for line in ("smoke: a quick representative subset, also for slow kernels",
                 "slow: takes minutes; left out unless asked for",
                 "dear: takes seconds of a processor for each row, see lab/rows.py",
                 "ip_vs_differs(how, only=''): what in-tree ip_vs does instead, in the rows with "
                 "ONLY in their name; with --backend ip_vs those must fail",
                 "l4lb_differs(how, only=''): what l4lb does instead of ip_vs, on purpose; with "
                 "--backend l4lb those rows must fail"):
        config.addinivalue_line("markers", line)
    Backend.fast_path = config.getoption("--fast-path")
    xdp.everywhere = config.getoption("--xdp")
    if config.option.seed is None:
        config.option.seed = secrets.randbelow(1 << 32)


def pytest_report_header(config):
    return f"seed {config.option.seed}"


@pytest.fixture
def seed(request):
    """A number that depends on the test and on --seed."""
    return zlib.crc32(request.node.nodeid.encode(), request.config.option.seed)


@pytest.fixture(scope="session")
def kernel_messages():
    return kernel_log.KernelLog()


@pytest.fixture(autouse=True)
def log(kernel_messages):
    view = kernel_log.Log(kernel_messages)
    yield view
    splats = [i for i, (_, text) in enumerate(view.refresh()) if kernel_log.SPLAT.search(text)]
    if splats:
        around = view.seen[max(0, splats[0] - 3):splats[0] + 40]
        pytest.fail("kernel log:\n" + "\n".join(text for _, text in around),
                    pytrace=False)


@pytest.fixture(scope="session")
def backend(request):
    which = Backend(request.config.getoption("--backend"))
    other = Backend("ip_vs" if which.is_l4lb else "l4lb")
    for module in (other, which):
        if module.loaded():
            module.unload()
    return which


@pytest.fixture(autouse=True, scope="module")
def module_life(request, backend, topologies, kernel_messages):
    """Load the module before a test file; unload it afterwards and check for leaks."""
    if getattr(request.module, "NO_MODULE", False):
        yield
        return
    kernel_log.begins(request.module.__name__)
    backend.load()
    yield
    topologies.flush()
    backend.unload()
    leaks = kernel_log.scan_for_leaks()
    assert not leaks, leaks
    bad = [text for _, text in kernel_messages.records() if kernel_log.SPLAT.search(text)]
    assert not bad, bad


@pytest.fixture(autouse=True)
def nothing_attached():
    """A program of XDP holds the module."""
    yield
    xdp.detach_all()


@pytest.fixture(autouse=True, scope="module")
def as_before(module_life):
    yield
    xdp.hide_all()


@pytest.fixture(scope="session")
def topologies():
    for name in ("ipip", "sit", "ip6_tunnel", "veth", "bridge"):
        run(["modprobe", "-q", name], check=False)
    shapes = Topologies()
    yield shapes
    shapes.destroy()


@pytest.fixture
def nat(topologies, module_life):
    return emptied(topologies, "nat")


@pytest.fixture
def dr(topologies, module_life):
    return emptied(topologies, "dr")


@pytest.fixture
def dr_with_rules(topologies, module_life):
    """For the oracle."""
    return emptied(topologies, "dr", rules=True)


@pytest.fixture
def tun(topologies, module_life):
    return emptied(topologies, "tun")


@pytest.fixture(params=SHAPES)
def lab(request, topologies, module_life):
    """Runs the test once for each forwarding method."""
    return emptied(topologies, request.param)


@pytest.fixture(scope="module")
def only_l4lb(backend):
    """For the pytestmark of files that test features which ip_vs lacks."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs has nothing of the kind; runs with --backend l4lb")


@pytest.fixture(scope="module")
def sip_engine(module_life, backend, topologies):
    """Persistence engine sip: of ip_vs it is a module of its own, which its templates hold."""
    if not backend.is_l4lb and run(["modprobe", "ip_vs_pe_sip"], check=False).returncode:
        pytest.skip("this kernel has no ip_vs_pe_sip: Debian's have it (suite stages 6.12 and 6.1)")
    yield
    if not backend.is_l4lb:
        topologies.destroy()


@pytest.fixture(scope="module")
def held_connections(module_life, backend, topologies):
    """A module of ip_vs is held by the connections that it has helped."""
    yield
    if not backend.is_l4lb:
        topologies.destroy()


@pytest.fixture
def ftp_helper(held_connections, backend):
    """Module l4lb_ftp, or ip_vs_ftp."""
    if backend.load_scheduler("ftp"):
        pytest.skip("this kernel has no ip_vs_ftp: Debian's have it (suite stages 6.12 and 6.1)")


@pytest.fixture
def ipvs(nat):
    """Netlink family IPVS in the director."""
    return nat.ipvs


@pytest.fixture
def l4lb(nat):
    """Netlink family L4LB in the director."""
    with genl.L4lb(nat.director.ns) as l4lb:
        yield l4lb


@pytest.fixture(params=(4, 6), ids=("v4", "v6"))
def family(request):
    return request.param


@pytest.fixture(params=(packet.TCP, packet.UDP, packet.SCTP), ids=("tcp", "udp", "sctp"))
def proto(request):
    return request.param


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselects `slow` tests unless -m or a test's id is given; with --fast-path, skips the
    tests that set it themselves."""
    if config.getoption("--fast-path"):
        l4lb = pytest.mark.skip(reason="about the fast path itself: runs without --fast-path")
        for item in items:
            if item.path.name.startswith("test_fast") or "test_defaults" in item.name:
                item.add_marker(l4lb)
    for item in items if config.getoption("--xdp") else ():
        for mark in item.iter_markers("no_xdp"):
            item.add_marker(pytest.mark.skip(reason=f"{mark.args[0]}; runs without --xdp"))
    for item in items:
        for mark in item.iter_markers(config.getoption("--backend") + "_differs"):
            if mark.kwargs.get("only", "") in item.name:
                item.add_marker(pytest.mark.xfail(reason=mark.args[0], strict=True))
    if not config.getoption("-m") and not any("::" in a for a in config.args):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


_started = time.monotonic()


def pytest_sessionfinish(session):
    """With --xdp, fast.read() does not tell XDP from ingress: it must have done something."""
    ran = not session.config.option.collectonly and \
        any("fast_path/" in item.nodeid for item in session.items)
    if xdp.everywhere and ran and not session.testsfailed and session.testscollected and not xdp.sent:
        session.exitstatus = 1
        print("no packet was forwarded by XDP")


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(
        f"{os.environ.get('L4LB_VEHICLE', 'native')} {os.uname().release}, "
        f"deadlines x{SLOW}, {time.monotonic() - _started:.0f} s")


@pytest.fixture
def moody(backend, nat):
    """Module l4lb_moody, loaded; its states and tables must all be freed at the end."""
    module = TestModule(backend, "l4lb_moody")
    assert module.insmod().returncode == 0
    yield module
    nat.flush()
    if module.loaded:
        wait_until(lambda: (module["states"], module["tables"]) == (0, 0), 10,
                   what="states and tables given back")
        assert module.rmmod().returncode == 0


@pytest.fixture
def oracle(dr_with_rules):
    with Oracle(dr_with_rules) as oracle:
        yield oracle
        oracle.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 1)
        dr_with_rules.ipvs.flush()
        oracle.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 0)
        oracle.forget()


@pytest.fixture(scope="module")
def small_table(only_l4lb, module_life, backend):
    """The module, loaded with the smallest initial connection table."""
    backend.unload()
    run(["insmod", str(backend.modules / "l4lb.ko"), "conn_tab_bits=8"])
