# SPDX-License-Identifier: GPL-2.0
"""A network namespace as an object, and polling with a deadline.

Everything that needs a namespace (a socket, a sysctl, a file below /proc/net,
a child process) is created while the calling thread is inside it and stays
there afterwards, so one test process can use all of them at once.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import resource
import socket
import struct
import subprocess
import time
from pathlib import Path

from .nft import NftError, nft

CLONE_NEWNET = 0x40000000
MS_BIND, MS_REC, MS_SHARED, MNT_DETACH = 0x1000, 0x4000, 1 << 20, 2
SIOCGIFFLAGS, SIOCGIFHWADDR, IFF_RUNNING = 0x8913, 0x8927, 0x40
SIOCETHTOOL, ETHTOOL_GLINK = 0x8946, 0x0a
IFA_F_TENTATIVE = 0x40
KEPT = Path("/run/netns")       # where `ip netns` keeps namespaces
_libc = ctypes.CDLL(None, use_errno=True)

# Debug kernels are slow. A missed deadline means "surely broken", so deadlines
# may be generous: they do not make a passing run any longer.
SLOW = 3 if os.environ.get("L4LB_VEHICLE") == "debug" else 1


class DeadlineError(AssertionError):
    """A condition did not come true in time."""


def wait_until(condition, deadline=10.0, what=None, step=0.02):
    """Poll CONDITION until it returns something true; return that. The first pauses are
    shorter than STEP: most conditions come true within a tick."""
    end, pause = time.monotonic() + deadline * SLOW, step / 8
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            name = what or getattr(condition, "__name__", "condition")
            raise DeadlineError(f"{name}: not within {deadline * SLOW:g} s, "
                                f"last value {value!r}")
        time.sleep(pause)
        pause = min(2 * pause, step)


def join_all(*threads, seconds=20):
    """Waits for THREADS; one that does not end has failed."""
    end = time.monotonic() + seconds * SLOW
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
        if thread.is_alive():
            raise DeadlineError(f"{thread.name} did not end within {seconds * SLOW:g} s")


def _call(name, *args):
    if getattr(_libc, name)(*args):
        err = ctypes.get_errno()
        raise OSError(err, f"{name}: {os.strerror(err)}")


def setns(fd):
    _call("setns", fd, CLONE_NEWNET)


def _insist(call, *args):
    """Where faults are injected, an allocation may fail a few times."""
    for _ in range(100):
        try:
            return call(*args)
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
    return call(*args)


@contextlib.contextmanager
def _comes_back():
    """The calling thread is in its namespace again after the block."""
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            _insist(setns, back)
        finally:
            os.close(back)


@functools.cache
def _prepare():
    """Makes KEPT a shared mount: a namespace that is removed there vanishes for all processes."""
    KEPT.mkdir(exist_ok=True)
    folder = os.fsencode(KEPT)
    try:
        _call("mount", b"none", folder, None, MS_SHARED | MS_REC, None)
    except OSError as error:
        if error.errno != errno.EINVAL:     # that is: it is no mount yet
            raise
        _call("mount", folder, folder, b"none", MS_BIND | MS_REC, None)
        _call("mount", b"none", folder, None, MS_SHARED | MS_REC, None)


def _create(name):
    """Makes a namespace as `ip netns add` does. A process would cost a slow kernel more than all
    the rest."""
    _prepare()
    path = KEPT / name
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0))
    try:
        with _comes_back():
            _call("unshare", CLONE_NEWNET)
            _call("mount", b"/proc/thread-self/ns/net", os.fsencode(path), b"none", MS_BIND, None)
    except OSError:
        _libc.umount2(os.fsencode(path), MNT_DETACH)
        path.unlink()
        raise


@contextlib.contextmanager
def pinned():
    """Run on one CPU: packets do not overtake each other, and the director has
    nearly always processed them when send() returns."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def allow_files(count):
    """This process may have at least COUNT files open at once; the usual limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), max(hard, count)))


def run(argv, check=True, timeout=60, text_input=None):
    """Run ARGV (a list, or a string split at blanks) and capture its output."""
    if isinstance(argv, str):
        argv = argv.split()
    done = subprocess.run(argv, capture_output=True, text=True, check=False,
                          timeout=timeout * SLOW, input=text_input)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: exit {done.returncode}\n"
                           f"{done.stdout}{done.stderr}")
    return done


class Namespace:
    """A named network namespace, below /run/netns as `ip netns` keeps them."""

    def __init__(self, name, create=True):
        self.name = name
        # The kernel remembers it as long as the namespace lives, also without a rule.
        self.had_rules = False
        if create:
            _create(name)
        self.fd = os.open(KEPT / name, os.O_RDONLY | os.O_CLOEXEC)

    def __repr__(self):
        return f"<ns {self.name}>"

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def destroy(self):
        self.close()
        with contextlib.suppress(OSError):
            _call("umount2", os.fsencode(KEPT / self.name), MNT_DETACH)
        (KEPT / self.name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def enter(self):
        """The calling thread is inside this namespace within the block."""
        with _comes_back():
            setns(self.fd)
            yield self

    def run(self, argv, **kwargs):
        words = argv.split() if isinstance(argv, str) else argv
        if words[0] == "ip":
            lines = [" ".join(map(str, words)), kwargs.get("text_input") or ""]
            self.had_rules |= any("rule add" in line for line in lines)
        with self.enter():
            return run(argv, **kwargs)

    def nft(self, commands):
        """Runs commands of nft; returns what they print."""
        with self.enter():
            return nft(commands)

    def takes_rules(self, commands):
        """Would this kernel take them? Nothing changes."""
        try:
            with self.enter():
                nft(commands, only_check=True)
        except NftError:
            return False
        return True

    def popen(self, argv, **kwargs):
        if isinstance(argv, str):
            argv = argv.split()
        with self.enter():
            return subprocess.Popen(argv, **kwargs)

    def ip(self, *lines, family=None):
        """Run several `ip` commands in one process; FAMILY, 4 or 6, is the default
        family of the commands."""
        return self.run(["ip", *([f"-{family}"] if family else []), "-batch", "-"],
                        text_input="\n".join(lines) + "\n")

    def datagrams(self, address, count=1):
        """COUNT clients of this namespace send one datagram each; what refuses it, they ignore.
        All have their ports at once: a port that is closed may be chosen again, and then its
        client is no new one."""
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                client = stack.enter_context(self.socket(socket.AF_INET, socket.SOCK_DGRAM))
                with contextlib.suppress(OSError):
                    client.sendto(b"x", address)

    def socket(self, family, kind, proto=0):
        with self.enter():
            return socket.socket(family, kind, proto)

    def read(self, path):
        """A file below /proc/net or /proc/sys/net as this namespace sees it."""
        path = path.replace("/proc/net/", "/proc/thread-self/net/")
        with self.enter(), open(path, encoding="ascii") as f:
            return f.read()

    def write(self, path, text):
        with self.enter(), open(path, "w", encoding="ascii") as f:
            f.write(text)

    def _ask(self, request, device):
        """The union of an ifreq about DEVICE."""
        with self.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            return fcntl.ioctl(s, request, struct.pack("16s24x", device.encode("ascii")))[16:]

    def mac(self, device):
        return self._ask(SIOCGIFHWADDR, device)[2:8]

    def has_carrier(self, device):
        """Is it up, and has it a carrier at this moment?"""
        link = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_GLINK, 0), 8)
        with self.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, SIOCETHTOOL,
                        struct.pack("16sP16x", device.encode("ascii"), ctypes.addressof(link)))
        return bool(struct.unpack_from("I", link, 4)[0])

    def is_running(self, device):
        """Is it up, has it a carrier, and has the kernel noticed? The kernel notices up to a
        second later: until then, RUNNING is what was true before."""
        flags, = struct.unpack_from("H", self._ask(SIOCGIFFLAGS, device))
        return bool(flags & IFF_RUNNING) and self.has_carrier(device)

    def has_ipv6(self, device):
        """Has DEVICE its link-local address, and are none still being tested for duplicates?"""
        found = [line.split() for line in self.read("/proc/net/if_inet6").splitlines()]
        tentative = {address: int(flags, 16) & IFA_F_TENTATIVE
                     for address, *_, flags, name in found if name == device}
        return any(a.startswith("fe80") for a in tentative) and not any(tentative.values())

    def forget_paths(self):
        """Make the stack forget learnt path MTUs and redirects."""
        self.sysctl("net/ipv4/route/flush", 1)
        # The fifth number counts cached entries of single destinations.
        if int(self.read("/proc/net/rt6_stats").split()[4], 16):
            self.run("ip -6 route flush cache")

    def sysctl(self, name, value=None):
        """Read, or with VALUE set, the sysctl NAME (dots or slashes)."""
        path = "/proc/sys/" + (name if "/" in name else name.replace(".", "/"))
        if value is None:
            return self.read(path).strip()
        self.write(path, str(value))
        return None
