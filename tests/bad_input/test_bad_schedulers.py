# SPDX-License-Identifier: GPL-2.0
"""Schedulers that do not exist, are incomplete, in use, or fail: the request gets
an errno and a sentence, and the service goes on unchanged.

The broken schedulers are in tests/modules/: l4lb_defect is refused by the registry,
l4lb_moody's init() and build() fail on demand and count their allocations.
"""

import errno
import os
import re
import subprocess
import threading
import time

import pytest
from lab import faults, genl
from lab.faults import FaultyIpvs
from lab.netns import join_all, run, wait_until
from lab.packet import ACK, RST, SYN, TCP
from lab.raw import Raw
from lab.testmodule import TestModule

CPUS = 2
IPVSCTL = os.environ.get("L4LB_IPVSCTL", "build/ipvsctl")

pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.fixture
def defect(backend, nat):
    module = TestModule(backend, "l4lb_defect")
    yield module
    nat.flush()
    if module.loaded:
        assert module.rmmod().returncode == 0


class Site:
    """A live service under SCHED: servers 1 and 2, an established connection to
    each, and the initial state to compare with."""

    def __init__(self, lab, sched="rr"):
        self.lab = lab
        self.raw = Raw(lab, TCP, 4, (1, 2), sched="rr", weights=(7, 7))
        clients = [self.raw.client() for _ in range(2)]
        self.old = {c.establish(): c for c in clients}
        if sched != "rr":
            self.raw.service.edit(sched=sched)
        self.before = self.state()

    def state(self):
        got = self.raw.service.get()
        return [got[k] for k in ("sched", "flags", "timeout", "netmask")], \
            [[d[k] for k in ("addr", "port", "weight", "upper", "method")]
             for d in self.raw.service.servers()]

    @property
    def vip(self):
        return f"{self.raw.vip}:{self.raw.port}"

    @property
    def server(self):
        return f"{self.raw.address(3)}:{self.raw.dport}"

    def carries_on(self):
        """Old connections go both ways as before, new ones reach both servers."""
        for number, client in self.old.items():
            client.send(ACK, b"more")
            assert client.arrive()[0] == number
            client.reply(ACK, b"back")
            assert client.answered().payload == b"back"
        got = self.reached()
        if self.raw.service.get()["sched"] in ("mh", "lblcr"):
            assert got <= {1, 2}        # these choose by address: perhaps one server only
        else:
            assert got == {1, 2}

    def reached(self, count=4):
        """Return the servers of COUNT new connections, which are reset again."""
        fresh = [self.raw.client() for _ in range(count)]
        got = {c.open() for c in fresh}
        for client in fresh:
            for flags in (ACK, RST):
                client.send(flags)
                client.arrive()
        return got

    def unharmed(self):
        assert self.state() == self.before
        assert len(self.lab.ipvs.services()) == 1
        self.carries_on()

    def refuses(self, code, pattern, call):
        """CALL(service) fails with CODE and a sentence like PATTERN, and changes nothing."""
        options = dict(self.raw.service.options)
        said = genl.is_refused(lambda: call(self.raw.service), code)
        self.raw.service.options = options
        assert re.search(pattern, said), said
        self.unharmed()

    def tool(self, argv, code, pattern):
        """The same with a program: it exits with CODE and an error message like PATTERN."""
        with self.lab.director.ns.enter():
            done = subprocess.run(argv, capture_output=True, text=True, check=False,
                                  timeout=60)
        assert done.returncode == code, done.stderr
        assert re.search(pattern, done.stderr, re.S), done.stderr
        self.unharmed()


@pytest.fixture
def site(nat):
    return Site(nat)


# ---- unknown ----

NAMES = [("nosuch", errno.ENOENT), ("fifteen-letters", errno.ENOENT), ("", errno.ENOENT),
         ("RR", errno.ENOENT), ("../../rr", errno.ENOENT), ("r r", errno.ENOENT),
         ("rr\n", errno.ENOENT), ("%s%n", errno.ENOENT), ("sixteen-letters-", errno.EINVAL)]


@pytest.mark.smoke
def test_unknown_name(site, log):
    """By netlink: no service is made, none changes, the log stays silent."""
    log.refresh()
    log.seen.clear()
    for name, code in NAMES:
        # The netlink core itself refuses names that are too long.
        pattern = "no such scheduler" if code == errno.ENOENT else "policy validation"
        other = site.lab.ipvs.service(site.raw.vip, site.lab.fresh_port(), add=False,
                                      sched=name)
        said = genl.is_refused(other.add, code)
        assert re.search(pattern, said), (name, said)
        site.refuses(code, pattern, lambda s, n=name: s.edit(sched=n))
    assert log.lines("l4lb") == []


def test_unknown_name_by_tools(site):
    """ipvsctl and ipvsadm, adding and changing."""
    other = f"{site.raw.vip}:{site.lab.fresh_port()}"
    site.tool([IPVSCTL, "service", "add", "tcp", other, "scheduler", "wlcc"], 4,
              'scheduler "wlcc" not found.*kernel: no such scheduler')
    site.tool([IPVSCTL, "service", "change", "tcp", site.vip, "scheduler", "wlcc"], 4,
              'scheduler "wlcc" not found')
    for what, where in (("-A", other), ("-E", site.vip)):
        site.tool(["ipvsadm", what, "-t", where, "-s", "wlcc"], 255,
                  "Scheduler or persistence engine not found")


# ---- not fit to be registered ----

DEFECTS = [("no-pick", "has no pick"), ("no-build", "only one of build"),
           ("no-free", "only one of build"), ("no-init", "only one of init"),
           ("no-exit", "only one of init"), ("no-owner", "has no owner"),
           ("bad-option", "option whose default is out of its range"),
           ("same-options", "two options of one name"),
           ("bad-flags", "flags that are not a scheduler's"),
           ("no-name", '"" has a bad name'), ("long-name", '"sixteen-letters-" has a bad name'),
           ("bad-name", '"De fect/.." has a bad name'), ("none-name", '"none" has a bad name'),
           ("taken-name", '"rr" is registered already')]


@pytest.mark.smoke
@pytest.mark.parametrize("name, pattern", DEFECTS, ids=[n for n, _ in DEFECTS])
def test_defect(site, defect, log, name, pattern):
    """Loading it fails with an errno, one line in the log names the module and its defect,
    and neither the module nor its scheduler is registered."""
    log.refresh()
    log.seen.clear()
    done = defect.insmod(f"defect={name}")
    assert done.returncode == (errno.EEXIST if name == "taken-name" else errno.EINVAL)
    said = [(level, text) for level, text in log.refresh() if "scheduler" in text]
    assert len(said) == 1 and said[0][0] == 3, said
    assert re.search(f"^l4lb: .*{pattern}", said[0][1]), said
    assert ('"defect"' if name == "no-owner" else "module l4lb_defect:") in said[0][1]
    assert not defect.loaded
    site.refuses(errno.ENOENT, "no such scheduler", lambda s: s.edit(sched="defect"))


def test_no_defect(site, defect):
    """Control: the same module without a defect is accepted, and works."""
    assert defect.insmod().returncode == 0
    site.raw.service.edit(sched="defect")
    site.carries_on()


# ---- in use ----

@pytest.mark.smoke
@pytest.mark.parametrize("sched", ("mh", "lblcr", "wrr"))
def test_unload_in_use(nat, backend, sched):
    """rmmod fails and changes nothing while a service uses the scheduler; after that it
    works, even with live connections."""
    site = Site(nat, sched)
    second = nat.ipvs.service(site.raw.vip, nat.fresh_port(), sched=sched)
    name = backend.prefix + sched
    for step in (second.delete, lambda: site.raw.service.edit(sched="sed")):
        done = run(["rmmod", name], check=False)
        assert done.returncode != 0 and "in use" in done.stderr, done.stderr
        assert site.state() == site.before
        site.carries_on()
        step()
    assert run(["rmmod", name], check=False).returncode == 0
    site.carries_on()
    site.raw.service.edit(sched=sched)
    assert backend.loaded(name)
    site.unharmed()


@pytest.mark.timer
def test_unload_waits(nat, moody):
    """A service's old pool is freed later, by the module's code: rmmod waits until
    that is done."""
    site = Site(nat, "moody")
    moody["free_delay"] = 700
    site.raw.service.edit(sched="rr")
    begun = time.monotonic()
    assert moody.rmmod().returncode == 0
    assert time.monotonic() - begun > 0.6
    site.carries_on()
    time.sleep(0.8)


@pytest.mark.waits
def test_no_module_waits_for_a_command(nat, moody, defect):
    """Another scheduler can be loaded and unloaded while a command takes long: here, one of a
    scheduler's build()."""
    site = Site(nat)
    moody["build_delay"] = 3000
    thread = threading.Thread(target=site.raw.service.edit, kwargs={"sched": "moody"})
    try:
        thread.start()
        time.sleep(0.5)
        begun = time.monotonic()
        assert defect.insmod().returncode == 0
        assert defect.rmmod().returncode == 0
        took = time.monotonic() - begun
        assert thread.is_alive(), "the command was too short"
        assert took < 2, took
    finally:
        moody["build_delay"] = 0
        join_all(thread)
    site.raw.service.edit(sched="rr")


# ---- failing ----

FAILING = [(p, c) for p in ("init_error", "build_error")
           for c in (errno.ENOMEM, errno.ENOSPC)] + [("build_error", -1)]
WORDS = {errno.ENOMEM: "^no memory for .* scheduler$"}


@pytest.mark.smoke
@pytest.mark.parametrize("parameter, code", FAILING)
def test_change_to_a_failing_scheduler(site, moody, parameter, code):
    """The service keeps its scheduler and state, and nothing leaks; not even when
    build() returns a value that is no errno."""
    with moody.failing(parameter, code):
        for _ in range(2):
            site.refuses(code if code > 0 else errno.EINVAL,
                         WORDS.get(code, "^the scheduler cannot work"),
                         lambda s: s.edit(sched="moody"))
        assert (moody["states"], moody["tables"]) == (0, 0)
        # The failed change holds no reference on the module.
        assert moody.rmmod().returncode == 0
        assert moody.insmod().returncode == 0
    site.raw.service.edit(sched="moody")
    assert (moody["states"], moody["tables"]) == (1, 1)
    site.carries_on()


@pytest.mark.parametrize("code", (errno.ENOMEM, errno.ENOSPC))
def test_option_of_a_failing_table(site, moody, code):
    """If the table cannot be built with an option's new value, no option changes; an option
    that build() does not read needs no new table."""
    service = site.raw.service
    service.edit(sched="moody")
    with genl.L4lb(site.lab.director.ns) as l4lb:
        l4lb.set(service, table=3, pick=4)
        with moody.failing("build_error", code):
            for wanted in ({"table": 5}, {"table": 5, "pick": 6}):
                genl.is_refused(lambda w=wanted: l4lb.set(service, **w), code)
                assert l4lb.values(service) == {"table": 3, "pick": 4}
            l4lb.set(service, pick=7, table=3)
            assert l4lb.values(service) == {"table": 3, "pick": 7}
        l4lb.set(service, table=5)
        assert l4lb.values(service) == {"table": 5, "pick": 7}
    site.carries_on()


@pytest.mark.parametrize("parameter", ("init_error", "build_error"))
def test_add_with_a_failing_scheduler(site, moody, parameter):
    """The failed service leaves nothing behind: its port gets the stack's own RST."""
    other = Raw(site.lab, TCP, 6, (), sched="rr")
    other.service.delete()
    with moody.failing(parameter):
        other.service.options["sched"] = "moody"
        said = genl.is_refused(other.service.add, errno.ENOMEM)
        assert re.search(WORDS[errno.ENOMEM], said), said
        client = other.client()
        client.send(SYN)
        assert client.answered().flags & RST
    site.unharmed()
    assert (moody["states"], moody["tables"]) == (0, 0)
    assert moody.rmmod().returncode == 0


@pytest.mark.smoke
def test_failure_in_use(nat, moody):
    """If the pool of a live service cannot be rebuilt, the request is refused and the
    service keeps its present pool."""
    site = Site(nat, "moody")
    raw = site.raw
    with moody.failing("build_error"):
        for call, said in (
                (lambda _: raw.add(3), "could not take the real server"),
                (lambda _: raw.edit(1, weight=0), "could not take the change"),
                (lambda _: raw.edit(2, weight=7, upper=1), "could not take the change"),
                (lambda s: s.edit(flags=genl.PERSISTENT, timeout=60), "no memory")):
            site.refuses(errno.ENOMEM, said, call)
        assert (moody["states"], moody["tables"]) == (1, 1)
        # Changing to another scheduler always works.
        raw.service.edit(sched="rr")
        site.carries_on()
    raw.service.edit(sched="moody")
    site.unharmed()
    raw.add(3, weight=7)
    assert site.reached(6) == {1, 2, 3}
    wait_until(lambda: moody["tables"] == 1, 5, what="old pools gone")


def test_failure_in_a_batch(nat, moody, l4lb):
    """The same in a batch: the entries before the failing one are undone."""
    site = Site(nat, "moody")
    raw = site.raw
    servers = [genl.batch_server(raw.address(n), raw.dport, weight=n, upper=n) for n in (1, 2, 3)]
    with moody.failing("build_error"):
        batch = [genl.batch_entry(raw.vip, raw.port + 1, servers, sched="rr"),
                 genl.batch_entry(raw.vip, raw.port, servers, sched="moody")]
        said = genl.is_refused(lambda: l4lb.set_services(batch), errno.ENOMEM)
        assert re.search("no memory", said), said
        site.unharmed()
    assert (moody["states"], moody["tables"]) == (1, 1)


def test_failure_in_use_by_tools(nat, moody):
    """The messages of ipvsctl and ipvsadm."""
    site = Site(nat, "moody")
    with moody.failing("build_error"):
        site.tool([IPVSCTL, "server", "add", "tcp", site.vip, site.server, "nat"], 3,
                  "out of memory.*could not take the real server")
        site.tool(["ipvsadm", "-a", "-t", site.vip, "-r", site.server, "-m"], 255,
                  "Memory allocation problem")
    site.raw.service.edit(sched="rr")
    site.before = site.state()
    with moody.failing("init_error"):
        site.tool([IPVSCTL, "service", "change", "tcp", site.vip, "scheduler", "moody"], 3,
                  "out of memory.*no memory for the service or its scheduler")
        site.tool(["ipvsadm", "-E", "-t", site.vip, "-s", "moody"], 255,
                  "Memory allocation problem")


@pytest.mark.smoke
def test_removal_never_fails(nat, moody, log):
    """A server can be removed even when its scheduler fails: it gets no more packets
    from then on, one line is logged, and the next change that works repairs the pool."""
    site = Site(nat, "moody")
    raw = site.raw
    with moody.failing("build_error"):
        log.refresh()
        log.seen.clear()
        raw.remove(1)
        said = log.lines("moody")
        assert len(said) == 1 and "missed a server's removal" in said[0], said
        assert [d["addr"] for d in raw.service.servers()] == [raw.address(2)]
        assert site.reached() == {2}
        site.old[1].send(ACK)
        site.old[1].nothing_arrives()
        # Adding it again needs a new pool, so it fails while build() does.
        genl.is_refused(lambda: raw.add(1, weight=7), errno.ENOMEM)
        assert site.reached() == {2}
        site.old[1].send(ACK)
        site.old[1].nothing_arrives()
        raw.remove(2)
        refused = raw.client()
        refused.send(SYN)
        refused.icmp()
        assert raw.service.servers() == []
    raw.add(2, weight=7)
    assert site.reached() == {2}
    raw.add(1, weight=7)
    site.carries_on()
    wait_until(lambda: moody["tables"] == 1, 5, what="old pools gone")
    with moody.failing("build_error"):
        raw.remove(1)
        raw.service.delete()
    assert nat.ipvs.services() == []


# ---- no memory: every allocation in turn ----

ALL = "rr wrr lc wlc lblc lblcr dh sh mh sed nq fo ovf twos ewma bpf".split()


@pytest.fixture
def faulty(nat):
    if not faults.available():
        pytest.skip(faults.ABSENT)
    with faults.injection(), FaultyIpvs(nat.director.ns) as client:
        yield client


def fail_each(faulty, expected, *sweep):
    """The answers to SWEEP are the sentences in EXPECTED, each at least once. It is
    repeated, because the debug kernel's own allocations sometimes take a failure
    that was meant for ours."""
    said = set()
    for _ in range(4):
        said |= sweep_once(faulty, *sweep)
        if said >= expected:
            break
    assert said == expected


def sweep_once(faulty, look, call, undo, check=lambda: None):
    """CALL with its 1st, 2nd, ... allocation failing, until it makes no more.
    After an error LOOK() must be the same as before, otherwise the same as after
    a CALL without failures. Return the sentences of the errors."""
    before = look()
    call()
    wanted, sentences = look(), set()
    assert wanted != before
    undo()
    for faulty.nth in range(1, 500):
        error = None
        try:
            call()
        except OSError as e:
            error = e.errno
            sentences.add(getattr(e, "extack", ""))
        hit, nth, faulty.nth = faulty.hit, faulty.nth, 0
        now = look()
        # EFAULT: the request was not read. ENOBUFS: not sent, or not acknowledged.
        assert error in (None, errno.ENOMEM, errno.EFAULT, errno.ENOBUFS), error
        if error is None or (error == errno.ENOBUFS and now != before):
            assert now == wanted, (nth, error)
        else:
            assert now == before, (nth, error)
        check()
        if now != before:
            undo()
        if not hit:
            assert error is None
            return sentences - {""}
    raise AssertionError("no end of allocations")


# A new weight needs no new pool, unless the scheduler makes a table.
WITH_TABLE = ("bpf", "dh", "mh", "rr", "sh", "twos", "wrr")


@pytest.mark.smoke
@pytest.mark.parametrize("sched", ALL if faults.available() else ALL[:1])
def test_no_memory(nat, backend, faulty, log, sched):
    """Change to a scheduler; add, change and remove a server: whichever allocation
    fails, the request is done as a whole or not at all, and connections go on.
    A removal fails only if its netlink message does, and a removal that the
    scheduler missed is logged."""
    backend.need_scheduler(sched)
    site = Site(nat, "wrr" if sched == "rr" else "rr")
    raw, plain = site.raw, site.raw.service
    shaky = genl.Service(faulty, plain.ident, plain.af, dict(plain.options))
    address, port, method = raw.address, raw.dport, {"method": raw.method}

    def alive():
        site.old[1].send(ACK)
        assert site.old[1].arrive()[0] == 1

    def without_2():
        """A removed server gets no connections, even if the pool still has it."""
        alive()
        if address(2) not in [d["addr"] for d in plain.servers()]:
            client = raw.client()
            client.send(SYN)
            raw.fence()
            assert {n for n, _ in client.arrivals()} <= {1}

    first = plain.options["sched"]
    fail_each(faulty, {"no memory for the service or its scheduler"}, site.state,
              lambda: shaky.edit(sched=sched), lambda: plain.edit(sched=first), alive)
    plain.edit(sched=sched)
    fail_each(faulty, {"the scheduler could not take the real server",
                       "no memory for the real server"}, site.state,
              lambda: shaky.server(address(3), port, weight=3, **method),
              lambda: raw.remove(3), alive)
    fail_each(faulty, {"the scheduler could not take the change"} if sched in WITH_TABLE else set(),
              site.state, lambda: shaky.edit_server(address(2), port, weight=3, **method),
              lambda: raw.edit(2, weight=7), alive)
    log.refresh()
    log.seen.clear()
    for _ in range(4):
        fail_each(faulty, set(), site.state, lambda: shaky.delete_server(address(2), port),
                  lambda: raw.add(2, weight=7), without_2)
        if log.lines(f"scheduler {sched} missed a server's removal"):
            break
    else:
        pytest.fail("no removal was missed, or none was logged")
    alive()
    site.old[2].send(ACK)
    assert site.old[2].arrive()[0] == 2


@pytest.mark.smoke
def test_no_memory_for_a_service(nat, backend, faulty):
    """Add and delete the first service of a family, which also needs its hooks."""
    backend.need_scheduler("mh")
    site = Site(nat)
    vip, port = nat.raw_vip(6), nat.fresh_port()
    shaky = faulty.service(vip, port, add=False, sched="mh")
    plain = nat.ipvs.service(vip, port, add=False, sched="mh")

    def look():
        return sorted((s["addr"], s["port"]) for s in nat.ipvs.services())

    fail_each(faulty, {"no memory for the service or its scheduler",
                       "the netfilter hooks could not be registered"},
              look, shaky.add, plain.delete)
    plain.add()
    fail_each(faulty, set(), look, shaky.delete, plain.add)
    plain.delete()
    site.unharmed()
