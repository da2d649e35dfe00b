# SPDX-License-Identifier: GPL-2.0
"""net.ipv4.vs.*: in-tree ip_vs and l4lb, one after the other in one boot, have
the same names, defaults and modes, and accept and refuse the same writes."""

import errno
import os
import subprocess
import sys
import textwrap

import pytest
from lab import modules
from lab.backend import Backend
from lab.genl import Ipvs, L4lb
from lab.netns import Namespace, run

NO_MODULE = True        # the tests load one module after the other
DIRECTORY = "/proc/sys/net/ipv4/vs"
SCHEDULERS = ("lblc", "lblcr")
ESTIMATOR = {"est_cpulist", "est_nice"}     # of in-tree ip_vs from 6.2 on
OWN = {"conn_max", "fast_path", "nonlocal_vip", "servers_max", "services_max"}   # of l4lb alone

TEXTS = ("0", "1", "2", "3", "4", "5", "-1", "-20", "-21", "19", "20", "64", "99", "128",
         "8589934", "8589935", "2147483647", "2147483648", "4294967296", "", "x", "1x",
         "1 2", "3 50", "3 0", "0 0", "50 3", "3 3", "-1 5", "0-1", "0,1", "0-0", "9-99", "7 ",
         " 2", "1\n2")


def write(path, text):
    """"ok", or the name of the error."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, (text or "\n").encode())
    except OSError as e:
        return errno.errorcode[e.errno]
    finally:
        os.close(fd)
    return "ok"


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def names():
    return sorted(set(os.listdir(DIRECTORY)) - OWN)


def look(ns):
    """{name: (mode, value)}"""
    with ns.enter():
        return {name: (os.stat(f"{DIRECTORY}/{name}").st_mode & 0o777,
                       read(f"{DIRECTORY}/{name}"))
                for name in names()}


def try_writes(ns):
    """{(name, text): (result, value afterwards)}, each from the default."""
    out = {}
    with ns.enter():
        for name in names():
            path = f"{DIRECTORY}/{name}"
            default = read(path)
            for text in TEXTS:
                result = write(path, text)
                out[name, text] = result, read(path)
                assert result == "ok" or out[name, text][1] == default, (name, text)
                write(path, default.strip())
    return out


# Prints the settings that root of an unprivileged user's namespace sees and may write.
LOOK = textwrap.dedent(f"""
    import os
    for name in sorted(os.listdir({DIRECTORY!r})):
        path = {DIRECTORY!r} + "/" + name
        value = open(path).read()
        try:
            open(path, "w").write(value)
            can = "can"
        except PermissionError:
            can = "cannot"
        print(name, oct(os.stat(path).st_mode & 0o777), can)
""")


def look_as_user():
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", sys.executable,
                           "-c", LOOK], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def answers():
    """{module: {question: answer}}"""
    out = {}
    for name in ("ip_vs", "l4lb"):
        backend = Backend(name)
        backend.load()
        ns = Namespace(f"sysctl-{name}")
        try:
            for scheduler in SCHEDULERS:
                backend.need_scheduler(scheduler)
            out[name] = {"look": look(ns), "write": try_writes(ns), "user": look_as_user()}
            run(["rmmod", backend.prefix + "lblc"])
            out[name]["without lblc"] = set(look(ns))
        finally:
            ns.destroy()
            backend.unload()
    return out


def compared(answers, question):
    """Both answers, without the settings that only 6.12's ip_vs has."""
    theirs, ours = (answers[name][question] for name in ("ip_vs", "l4lb"))
    assert ESTIMATOR <= set(answers["l4lb"]["look"])
    if "est_nice" in answers["ip_vs"]["look"]:
        return theirs, ours

    def name_of(key):
        return key[0] if isinstance(key, tuple) else key.split()[0]
    if isinstance(ours, dict):
        return theirs, {k: v for k, v in ours.items() if name_of(k) not in ESTIMATOR}
    return theirs, type(ours)(k for k in ours if name_of(k) not in ESTIMATOR)


@pytest.mark.smoke
def test_names_defaults_and_modes(answers):
    theirs, ours = compared(answers, "look")
    assert ours == theirs
    assert len(answers["l4lb"]["look"]) == 31


def test_writes(answers):
    """try_writes() also checks that a refused write changes nothing."""
    theirs, ours = compared(answers, "write")
    assert {k: (theirs.get(k), v) for k, v in ours.items() if theirs.get(k) != v} == {}
    assert len(ours) == len(theirs) == len(TEXTS) * len(answers["ip_vs"]["look"])


@pytest.mark.smoke
def test_in_a_namespace_of_an_unprivileged_user(answers):
    """The same as with ip_vs of 6.12; older ones show nothing there."""
    theirs, ours = (answers[name]["user"] for name in ("ip_vs", "l4lb"))
    assert theirs in ([line for line in ours if line.split()[0] not in OWN], [])
    assert [line for line in ours if not line.endswith("0o644 can")] == [
        f"{name} 0o444 cannot" for name in
        ("conn_max", "est_cpulist", "est_nice", "run_estimation", "servers_max",
         "services_max", "sync_qlen_max", "sync_sock_size")]
    assert len(ours) == 29 + len(OWN)       # without lblc_expiration, lblcr_expiration


def test_a_schedulers_setting_goes_with_it(answers):
    theirs, ours = compared(answers, "without lblc")
    assert ours == theirs
    assert "lblc_expiration" not in ours
    assert "lblcr_expiration" in ours


@pytest.mark.parametrize("bits, size", ((None, 4096), (5, 256), (14, 16384), (40, None)))
def test_conn_tab_bits(bits, size):
    """As with ip_vs of 6.12, a value out of range counts as the nearest end of the range,
    which depends on the memory."""
    backend = Backend("l4lb")
    ko = backend.modules / "l4lb.ko"
    modules.insert_needs(ko)
    ns = Namespace("tab-bits")
    try:
        run(["insmod", str(ko), *([f"conn_tab_bits={bits}"] if bits is not None else [])])
        parameter = "/sys/module/l4lb/parameters/conn_tab_bits"
        assert os.stat(parameter).st_mode & 0o777 == 0o444
        value = int(read(parameter))
        title = f"(size={1 << value})"
        assert size in (None, 1 << value)
        assert 8 <= value <= 27
        assert title in ns.read("/proc/net/ip_vs")
        with Ipvs(ns) as ipvs:
            ipvs.service("192.0.2.1", 80)
        assert title in ns.read("/proc/net/ip_vs")
    finally:
        ns.destroy()
        backend.unload()


def test_conn_tab_bits_have_the_same_bounds():
    seen = {}
    for name in ("ip_vs", "l4lb"):
        backend = Backend(name)
        try:
            if name == "ip_vs":
                run(["modprobe", "ip_vs", "conn_tab_bits=40"])
            else:
                ko = backend.modules / "l4lb.ko"
                modules.insert_needs(ko)
                run(["insmod", str(ko), "conn_tab_bits=40"])
            seen[name] = int(read(f"/sys/module/{name}/parameters/conn_tab_bits"))
        finally:
            backend.unload()
    if seen["ip_vs"] == 12:
        pytest.skip("ip_vs of 6.1 forgets what is out of the range; runs on 6.12")
    assert seen["l4lb"] == seen["ip_vs"]


@pytest.fixture
def own_ns():
    """A namespace with l4lb, and with the schedulers loaded that have a setting."""
    backend = Backend("l4lb")
    backend.load()
    ns = Namespace("sched-setting")
    try:
        for scheduler in SCHEDULERS:
            backend.need_scheduler(scheduler)
        yield ns
    finally:
        ns.destroy()
        backend.unload()


@pytest.mark.parametrize("name, nothing, value", [
    ("sync_retries", "0", "3"), ("est_nice", "0", "5"), ("est_cpulist", None, "0")])
def test_a_setting_without_effect_is_logged(own_ns, log, name, nothing, value):
    """It is taken, as by ip_vs; its default and a refused value are not logged."""
    path = f"{DIRECTORY}/{name}"
    said = f"l4lb: net.ipv4.vs.{name} is set, but has no effect: see l4lb(7)"
    with own_ns.enter():
        for text in (nothing, "x"):
            if text:
                write(path, text)
        assert log.lines("no effect") == []
        assert write(path, value) == "ok" and read(path).strip() == value
        assert log.lines("no effect") == [said]
        assert write(f"{DIRECTORY}/sync_sock_size", "4096") == "ok"
        assert log.lines("no effect") == [said]


def test_nobody_fills_the_log(own_ns, log):
    """Root of an unprivileged user's namespace sets it, and that is not logged."""
    run(["unshare", "--user", "--map-root-user", "--net", "sh", "-c", f"echo 3 >{DIRECTORY}/sync_retries"])
    assert log.lines("no effect") == []


DAY = 86400


def test_a_schedulers_setting_is_what_services_do_not_set(own_ns):
    with Ipvs(own_ns) as ipvs, L4lb(own_ns) as l4lb:
        lblcr = ipvs.service("192.0.2.1", 80, sched="lblcr")
        lblc = ipvs.service("192.0.2.1", 81, sched="lblc")
        mine = ipvs.service("192.0.2.1", 82, sched="lblcr")
        l4lb.set(mine, expire=DAY)       # set explicitly to the default

        def seconds(service):
            values = l4lb.values(service)
            return values["expire"], values.get("shrink")

        own_ns.sysctl("net/ipv4/vs/lblcr_expiration", 77)
        assert [seconds(s) for s in (lblcr, lblc, mine)] == [(77, 77), (DAY, None), (DAY, 77)]
        own_ns.sysctl("net/ipv4/vs/lblc_expiration", 5)
        assert [seconds(s) for s in (lblcr, lblc)] == [(77, 77), (5, None)]
        described = l4lb.options(lblcr)["options"]
        assert [described[o]["default"] for o in ("expire", "shrink", "entries")] == \
            [77, 77, 16384]
        # Services that get the scheduler now, by creation and by edit.
        assert seconds(ipvs.service("192.0.2.1", 83, sched="lblcr")) == (77, 77)
        lblc.edit(sched="lblcr")
        assert seconds(lblc) == (77, 77)
        # A value out of the option's range counts as its nearest end.
        for value, effect in ((0, 1), (-5, 1), (2000000, 14 * DAY)):
            own_ns.sysctl("net/ipv4/vs/lblcr_expiration", value)
            assert seconds(lblcr) == (effect, effect)
        assert l4lb.values(lblcr)["entries"] == 16384


def test_a_schedulers_setting_is_its_namespaces(own_ns):
    other = Namespace("sched-setting-2")    # made after the schedulers were loaded
    try:
        own_ns.sysctl("net/ipv4/vs/lblc_expiration", 5)
        assert other.sysctl("net/ipv4/vs/lblc_expiration") == str(DAY)
        with Ipvs(other) as ipvs, L4lb(other) as l4lb:
            assert l4lb.values(ipvs.service("192.0.2.1", 80, sched="lblc"))["expire"] == DAY
    finally:
        other.destroy()
