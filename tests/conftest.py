# SPDX-License-Identifier: GPL-2.0
"""Fixtures shared by all tests: the module, the topologies, the kernel's log.

Run inside a lab vehicle as root:  $PYTHON -m pytest tests
`--backend ip_vs` runs the same tests against in-tree ip_vs, the control: what
fails there is a mistake in the test, or a documented difference that the test
names (`backend.is_l4lb`).
"""

import contextlib
import os
import re
import secrets
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest_plugins = ["lab.events", "lab.rows", "lab.share"]

from lab import genl, packet  # noqa: E402
from lab.netns import SLOW, Namespace, run, wait_until  # noqa: E402
from lab.topology import SHAPES, Topology  # noqa: E402

SPLAT = re.compile(
    r"BUG:|WARNING:|KASAN|KFENCE|UBSAN|possible recursive|circular locking"
    r"|suspicious RCU|inconsistent lock|unreferenced object|ref_tracker"
    r"|unregister_netdevice: waiting|hung task|blocked for more than|rcu.*stall"
    r"|Oops|general protection|Call Trace")
KMEMLEAK = Path("/sys/kernel/debug/kmemleak")
# A cache's directory in sysfs that finds no memory leaves its name behind; so
# says lab/guest-init, too.
KERNELS_OWN = "sysfs_slab_add"


def pytest_addoption(parser):
    parser.addoption("--backend", default="l4lb", choices=("l4lb", "ip_vs"),
                     help="the module under test (default: l4lb)")
    parser.addoption("--seed", type=int,
                     help="of tests that draw random input (default: drawn, and printed)")
    parser.addoption("--fast-path", choices=("0", "1", "2"),
                     help="net.ipv4.vs.fast_path where tests do not set it: everything but the "
                          "tests of the fast path itself")
    config = parser.getgroup("random configuration (test_config_fuzz.py)")
    config.addoption("--config-seed", type=int, help="the first (default: the test's own)")
    config.addoption("--config-seeds", type=int, default=1, help="how many (default: 1)")
    config.addoption("--config-count", type=int, help="of commands for each")
    config.addoption("--config-replay", metavar="FILE", help="commands to run instead")
    fuzz = parser.getgroup("random packets (test_packet_fuzz.py)")
    fuzz.addoption("--fuzz-seed", type=int, help="send those of this seed")
    fuzz.addoption("--fuzz-count", type=int, help="packets (default: by --rows)")
    fuzz.addoption("--fuzz-replay", metavar="SEED:CASE[:STEP,...]",
                   help="only that, or several with blanks between, each packet on its own")


def pytest_configure(config):
    for line in ("smoke: a quick representative subset, also for slow kernels",
                 "slow: takes minutes; left out unless asked for",
                 "ip_vs_differs(how, only=''): what in-tree ip_vs does instead, in the rows with "
                 "ONLY in their name; with --backend ip_vs those have to fail"):
        config.addinivalue_line("markers", line)
    Backend.fast_path = config.getoption("--fast-path")
    if config.option.seed is None:
        config.option.seed = secrets.randbelow(1 << 32)


def pytest_report_header(config):
    return f"seed {config.option.seed}"


@pytest.fixture
def seed(request):
    """A number for this test, the same for the same --seed."""
    return zlib.crc32(request.node.nodeid.encode(), request.config.option.seed)


class KernelLog:
    """What the kernel printed since the last look."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def records(self):
        """[(level, text)], each at most once."""
        out = []
        while True:
            try:
                record = os.read(self.fd, 16384).decode(errors="replace")
            except BlockingIOError:
                return out
            except BrokenPipeError:
                continue  # the ring overtook us; go on with what is left
            prefix, _, rest = record.partition(";")
            out.append((int(prefix.split(",")[0]) & 7, rest.split("\n")[0]))


@pytest.fixture(scope="session")
def kernel_log():
    return KernelLog()


class Log:
    """A test's view of the kernel log; splats fail the test that caused them."""

    def __init__(self, source):
        self.source, self.seen = source, []
        self.refresh()
        self.seen.clear()

    def refresh(self):
        self.seen += self.source.records()
        return self.seen

    def lines(self, pattern=""):
        return [text for _, text in self.refresh() if re.search(pattern, text)]

    @contextlib.contextmanager
    def provoked(self, pattern):
        """Inside, another module's warning that matches PATTERN is no failure,
        neither here nor to tests/lab/run, which reads the same marks."""
        self.refresh()
        before = list(self.seen)
        mark_log("l4lb lab: provoked warning begins")
        try:
            yield
        finally:
            mark_log("l4lb lab: provoked warning ends")
            fresh = [text for _, text in self.refresh()[len(before):]]
        wrong = [t for t in fresh if SPLAT.search(t) and not re.search(pattern, t)
                 and "Call Trace" not in t]
        assert not wrong, wrong
        self.seen[:] = before


def mark_log(line):
    """Without the line feed the kernel waits for the rest of the line: nobody reads it
    before somebody else has printed, which may be many tests later."""
    Path("/dev/kmsg").write_text(line + "\n", encoding="ascii")


@pytest.fixture(autouse=True)
def log(kernel_log):
    view = Log(kernel_log)
    yield view
    splats = [i for i, (_, text) in enumerate(view.refresh()) if SPLAT.search(text)]
    if splats:
        around = view.seen[max(0, splats[0] - 3):splats[0] + 40]
        pytest.fail("kernel log:\n" + "\n".join(text for _, text in around),
                    pytrace=False)


class Backend:
    """The module under test."""

    fast_path = None    # what --fast-path says

    def __init__(self, name):
        self.name = name
        self.is_l4lb = name == "l4lb"
        self.prefix = "l4lb_" if self.is_l4lb else "ip_vs_"
        self.modules = Path(os.environ.get("L4LB_MODULES", ""))

    def loaded(self, name=None):
        return Path("/sys/module", name or self.name).exists()

    def refcount(self):
        return int(Path("/sys/module", self.name, "refcnt").read_text(encoding="ascii"))

    def family(self):
        """Every module of this backend that is loaded, the core last."""
        names = [p.name for p in Path("/sys/module").iterdir()
                 if p.name.startswith(self.prefix) and (p / "refcnt").exists()]
        return sorted(names) + ([self.name] if self.loaded() else [])

    def load(self, check=True):
        if not self.is_l4lb:
            return run(["modprobe", "ip_vs"], check=check)
        ko = self.modules / "l4lb.ko"
        if not ko.exists():
            pytest.exit(f"{ko}: not there, build it with 'make modules'", 4)
        self.load_dependencies(ko)
        done = run(["insmod", str(ko)], check=check)
        for path in Path("/run/netns").glob("*"):
            with contextlib.closing(Namespace(path.name, create=False)) as ns:
                self.set_fast_path(ns)
        return done

    @classmethod
    def set_fast_path(cls, ns):
        """In NS, if the module is there."""
        if cls.fast_path:
            with contextlib.suppress(FileNotFoundError):
                ns.sysctl("net/ipv4/vs/fast_path", cls.fast_path)

    @staticmethod
    def load_dependencies(ko):
        for need in run(["modinfo", "-F", "depends", str(ko)]).stdout.strip().split(","):
            if need:
                run(["modprobe", need])

    def unload(self):
        """Remove schedulers and core; a reference that stays is a failure."""
        for name in self.family():
            def removed(name=name):
                done = subprocess.run(["rmmod", name], capture_output=True, text=True,
                                      check=False)
                return done.returncode == 0 or not self.loaded(name) or \
                    self._remember(done.stderr)
            wait_until(removed, 10, what=f"rmmod {name}", step=0.2)

    def _remember(self, message):
        self.last_error = message
        return False

    @contextlib.contextmanager
    def preloaded(self, schedulers):
        """Within the block these are loaded and no other module will be, so
        that a wrong name costs no process."""
        for name in schedulers:
            run(["modprobe", self.prefix + name])
        modprobe = Path("/proc/sys/kernel/modprobe")
        before = modprobe.read_text(encoding="ascii")
        modprobe.write_text("\n", encoding="ascii")
        try:
            yield
        finally:
            modprobe.write_text(before, encoding="ascii")

    @contextlib.contextmanager
    def alone(self, schedulers):
        """Within the block it is loaded, with these, and the other module is
        not: for tests that name the module themselves (NO_MODULE)."""
        for each in (Backend("ip_vs" if self.is_l4lb else "l4lb"), self):
            if each.loaded():
                each.unload()
        if self.load(check=self.is_l4lb).returncode:
            pytest.skip("this kernel has no ip_vs to compare with: Debian's have it "
                        "(suite stages 6.12 and 6.1)")
        for name in schedulers:
            run(["modprobe", self.prefix + name])
        try:
            yield self
        finally:
            self.unload()

    def need_scheduler(self, name):
        """Load a scheduler; skip when this backend has none of that name."""
        done = run(["modprobe", self.prefix + name], check=False)
        if done.returncode:
            pytest.skip(f"{self.prefix}{name} is not built for this kernel: "
                        "ip_vs has it from Debian's 6.12 on")


@pytest.fixture(scope="session")
def backend(request):
    which = Backend(request.config.getoption("--backend"))
    other = Backend("ip_vs" if which.is_l4lb else "l4lb")
    for module in (other, which):
        if module.loaded():
            module.unload()
    return which


@pytest.fixture(autouse=True, scope="module")
def module_life(request, backend, topologies, kernel_log):
    """Load before a test file, and after it prove that nothing holds or leaks."""
    if getattr(request.module, "NO_MODULE", False):
        yield
        return
    _suspects.append((request.module.__name__, time.monotonic()))
    backend.load()
    yield
    topologies.flush()
    backend.unload()
    leaks = scan_for_leaks()
    assert not leaks, leaks
    bad = [text for _, text in kernel_log.records() if SPLAT.search(text)]
    assert not bad, bad


# (file, when it began) of those whose leaks may still be found.
_suspects = []


def scan_for_leaks(wait=0):
    """What is leaked, with the file that leaked it. Nothing younger than five seconds
    counts as leaked: unless that is waited for, a file's last objects are found after the
    next file, which is not blamed for them, and those of the last file by lab/guest-init.
    Two scans: a pointer may be in a register during one of them."""
    if not KMEMLEAK.exists():
        return ""
    time.sleep(wait)
    for _ in range(2):
        KMEMLEAK.write_text("scan", encoding="ascii")
    found = KMEMLEAK.read_text(encoding="ascii", errors="replace")
    if found:
        KMEMLEAK.write_text("clear", encoding="ascii")
    return "".join(f"leaked by {leaker(leak)}: {leak}"
                   for leak in re.split("(?=unreferenced object)", found)
                   if leak.startswith("unreferenced") and KERNELS_OWN not in leak)


def leaker(leak):
    """The file during which an object was allocated. Jiffies begin five minutes before
    they wrap around at 32 bits, UML has 100 in a second."""
    jiffies = int(re.search(r"jiffies (\d+)", leak)[1])
    born = (jiffies - (1 << 32)) / 100 + 300
    return next((name for name, began in reversed(_suspects) if began <= born), _suspects[0][0])


class Topologies:
    """Each shape is built when a test first asks for it, and kept."""

    def __init__(self):
        self.built = {}

    def __getitem__(self, shape):
        if shape not in self.built:
            self.built[shape] = Lab(shape)
        return self.built[shape]

    def flush(self):
        for lab in self.built.values():
            lab.flush()

    def destroy(self):
        for lab in self.built.values():
            lab.topo.destroy()
        self.built = {}


@pytest.fixture(scope="session")
def topologies():
    for name in ("ipip", "sit", "ip6_tunnel", "veth", "bridge"):
        run(["modprobe", "-q", name], check=False)
    shapes = Topologies()
    yield shapes
    shapes.destroy()


class Lab:
    """A topology with its director's control plane, as tests use it."""

    _port = [1000]

    def __init__(self, shape):
        self.topo = Topology(shape).create()
        Backend.set_fast_path(self.topo.director.ns)
        self.shape = shape
        self.method = genl.METHOD[shape]
        self._ipvs = None
        self._http = []

    def __getattr__(self, name):
        return getattr(self.topo, name)

    @property
    def ipvs(self):
        """A control socket; opened anew when the module was reloaded."""
        if self._ipvs is None:
            self._ipvs = genl.Ipvs(self.topo.director.ns)
        return self._ipvs

    def flush(self):
        if self._ipvs is not None:
            self._ipvs.close()
            self._ipvs = None
        # Not loaded: nothing to flush.
        with contextlib.suppress(genl.NetlinkError), \
                genl.Ipvs(self.topo.director.ns) as ipvs:
            ipvs.flush()
            ipvs.timeouts(900, 120, 300)

    def fresh_port(self):
        """A service port that no other test uses: old connections of the same
        address and port would count for a server that is added again."""
        self._port[0] += 1
        if self._port[0] == packet.GUE_PORT:    # tests would take its packets for a tunnel's
            self._port[0] += 1
        return self._port[0]

    def http_port(self):
        """The same among the ports the real servers listen on."""
        self.topo.start_http()
        if not self._http:
            from lab.topology import HTTP_PORTS
            self._http = list(HTTP_PORTS[2:])
        return self._http.pop()

    def conns(self, **want):
        return [c for c in genl.conns(self.topo.director.ns)
                if all(c[k] == v for k, v in want.items())]

    def client_address(self, family=4):
        """A phantom client address that no test has used."""
        Lab._client = getattr(Lab, "_client", 0) + 1
        n = Lab._client
        return f"10.{n >> 8 & 255}.{n & 255}.7" if family == 4 else \
            f"2001:db8:c:{n:x}::7"


def _lab(topologies, shape):
    lab = topologies[shape]
    lab.flush()
    return lab


@pytest.fixture
def nat(topologies, module_life):
    return _lab(topologies, "nat")


@pytest.fixture
def dr(topologies, module_life):
    return _lab(topologies, "dr")


@pytest.fixture
def tun(topologies, module_life):
    return _lab(topologies, "tun")


@pytest.fixture(params=SHAPES)
def lab(request, topologies, module_life):
    """One test for each forwarding method."""
    return _lab(topologies, request.param)


@pytest.fixture(scope="module")
def only_l4lb(backend):
    """For pytestmark of files about what ip_vs does not have."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs has nothing of the kind; runs with --backend l4lb")


@pytest.fixture
def ipvs(nat):
    """Netlink family IPVS in the director."""
    return nat.ipvs


@pytest.fixture
def own(nat):
    """Netlink family L4LB in the director."""
    with genl.L4lb(nat.director.ns) as own:
        yield own


def selected(request, name):
    """The values of parameter NAME in those tests of this file that will run:
    what a fixture of the module has to prepare for."""
    return {item.callspec.params[name] for item in request.session.items
            if item.module is request.module and hasattr(item, "callspec")}


both_modules = pytest.mark.parametrize("module", ["l4lb", "ip_vs"], indirect=True)


@pytest.fixture(params=(4, 6), ids=("v4", "v6"))
def family(request):
    return request.param


@pytest.fixture(params=(packet.TCP, packet.UDP, packet.SCTP), ids=("tcp", "udp", "sctp"))
def proto(request):
    return request.param


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leaves `slow` out unless -m names it or a test is named, and with --fast-path what
    sets that itself."""
    if config.getoption("--fast-path"):
        own = pytest.mark.skip(reason="about the fast path itself: runs without --fast-path")
        for item in items:
            if item.path.name.startswith("test_fast") or "test_defaults" in item.name:
                item.add_marker(own)
    if config.getoption("--backend") == "ip_vs":
        for item in items:
            for mark in item.iter_markers("ip_vs_differs"):
                if mark.kwargs.get("only", "") in item.name:
                    item.add_marker(pytest.mark.xfail(reason=mark.args[0], strict=True))
    if not config.getoption("-m") and not any("::" in a for a in config.args):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


_started = time.monotonic()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(
        f"{os.environ.get('L4LB_VEHICLE', 'native')} {os.uname().release}, "
        f"deadlines x{SLOW}, {time.monotonic() - _started:.0f} s")
