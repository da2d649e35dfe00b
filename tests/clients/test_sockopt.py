# SPDX-License-Identifier: GPL-2.0
"""The old setsockopt interface does not exist: its options are unknown to the kernel.

No client needs it: the tests of ipvsadm, keepalived, moby/ipvs and others run
without it. In-tree ip_vs is the control: any user who may create a user
namespace can change the tables of a network namespace created there.
"""

import ctypes
import errno
import os
import socket
import struct

import pytest

BASE = 1152                     # IP_VS_BASE_CTL of linux/ip_vs.h
NUMBERS = range(BASE, BASE + 64)
SET_ADD, FLUSH = BASE + 2, BASE + 5
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
# struct ip_vs_service_user: TCP 198.51.100.9:80, rr
SERVICE = struct.pack("=HxxIHxxI16sIII", 6, int.from_bytes(
    socket.inet_aton("198.51.100.9"), "little"), socket.htons(80), 0, b"rr", 0, 0, 0xffffffff)


def code(call):
    try:
        call()
        return 0
    except OSError as e:
        return e.errno


@pytest.mark.smoke
def test_every_number_is_unknown(nat, backend):
    with nat.director.ns.socket(socket.AF_INET, socket.SOCK_RAW, 255) as s:
        got = {n: code(lambda n=n: s.getsockopt(0, n, 64)) for n in NUMBERS}
        # ip_vs refuses arguments of the wrong length.
        put = {n: code(lambda n=n: s.setsockopt(0, n, b"" if n == FLUSH else SERVICE))
               for n in NUMBERS}
    if backend.is_l4lb:
        assert set(got.values()) | set(put.values()) == {errno.ENOPROTOOPT}
        assert nat.ipvs.services() == []
    else:
        # The numbers include the commands that add a service and clear the table.
        assert got[BASE] == put[SET_ADD] == put[FLUSH] == 0


def as_user(question):
    """Return QUESTION() (bytes), called as root of new user and network namespaces
    that an ordinary user created."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgid(65534)
            os.setuid(65534)
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNET):
                os.write(write, b"no namespace")
            else:
                os.write(write, question())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        out = f.read()
    os.waitpid(child, 0)
    return out


def probe():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, 255) as s:
        done = code(lambda: s.setsockopt(0, SET_ADD, SERVICE))
    with open("/proc/self/net/ip_vs", encoding="ascii") as f:
        return f"{done} {'C6336409:0050' in f.read()}".encode()


@pytest.mark.smoke
def test_root_of_a_user_namespace(backend, nat):
    backend.need_scheduler("rr")
    answer = as_user(probe).decode()
    if answer == "no namespace":
        pytest.skip("this kernel lets no ordinary user make a user namespace; Debian's do "
                    "(suite stages 6.12 and 6.1)")
    assert answer == (f"{errno.ENOPROTOOPT} False" if backend.is_l4lb else "0 True")
