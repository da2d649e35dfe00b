# SPDX-License-Identifier: GPL-2.0
"""Files by FTP: vsftpd on the real servers, curl as the client, in every way to open a data
connection; through NAT with the helper, and with direct routing and tunnels by persistence."""

import subprocess

import pytest
from lab.farm import pattern
from lab.genl import PERSISTENT
from lab.netns import SLOW, run, wait_until

PORT, LENGTH = 21, 300000
CONFIG = """listen={ipv4}
listen_ipv6={ipv6}
background=NO
anonymous_enable=YES
local_enable=NO
anon_root={root}
secure_chroot_dir={empty}
connect_from_port_20=YES
pasv_min_port=50000
pasv_max_port=50009
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
"""
WAYS = {"pasv": ("--disable-epsv", "--no-ftp-skip-pasv-ip"), "epsv": (),
        "port": ("--disable-eprt", "--ftp-port", "-"), "eprt": ("--ftp-port", "-")}


def vsftpd(node, folder, family):
    """A server whose files say its name."""
    root, empty = folder / node.role, folder / "empty"
    for path in (root, empty):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
    (root / "name").write_text(node.role, encoding="ascii")
    (root / "bulk").write_bytes(pattern(LENGTH))
    config = folder / f"{node.role}.conf"
    config.write_text(CONFIG.format(root=root, empty=empty, ipv4="NO" if family == 6 else "YES",
                                    ipv6="YES" if family == 6 else "NO"), encoding="ascii")
    process = node.ns.popen(["vsftpd", config])
    table = "/proc/net/tcp6" if family == 6 else "/proc/net/tcp"
    wait_until(lambda: f":{PORT:04X} " in node.ns.read(table), 10, what="vsftpd")
    return process


@pytest.fixture
def folder(tmp_path):
    """Anyone may go into it: vsftpd gives up its rights."""
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    return tmp_path


@pytest.fixture
def farm(folder, family):
    """Starts vsftpd on the first servers of a topology."""
    started = []

    def start(lab):
        started.extend(vsftpd(lab.topo.servers[n], folder, family) for n in (0, 1))
    yield start
    # Sessions have processes of their own; what they send would be counted in later tests.
    run(["pkill", "-KILL", "vsftpd"], check=False)
    for process in started:
        process.wait()


def get(lab, family, way, *names, seconds=30, options=()):
    """What a client reads over one control connection; None: it fails."""
    vip = lab.vip(family)
    urls = [f"ftp://{f'[{vip}]' if family == 6 else vip}/{name}" for name in names]
    process = lab.client.ns.popen(["curl", "-s", "-g", "--max-time", str(int(seconds * SLOW)), *WAYS[way],
                                   *options, *urls], stdout=subprocess.PIPE)
    text, _ = process.communicate(timeout=2 * seconds * SLOW)
    return None if process.returncode else text


def ways(family):
    return WAYS if family == 4 else ("epsv", "eprt")


def serve(lab, family, port=PORT, **options):
    service = lab.ipvs.service(lab.vip(family), port, sched="rr", **options)
    for number in (1, 2):
        service.server(lab.rip(number, family), port, method=lab.method)
    return service


@pytest.mark.stock
@pytest.mark.smoke
def test_nat(nat, family, ftp_helper, farm):
    """Control connections are spread, and each has its data connections, one after the other."""
    farm(nat)
    service = serve(nat, family)
    for way in ways(family):
        seen = [get(nat, family, way, "name", "bulk", "name") for _ in range(2)]
        assert sorted(seen, key=repr) == [name + pattern(LENGTH) + name for name in (b"rs1", b"rs2")], way
    service.delete()


def test_nat_without_helper(nat, family, farm, backend):
    """The control: a client can log in, but no data connection gets through."""
    if backend.loaded(backend.prefix + "ftp"):
        if not backend.is_l4lb:
            pytest.skip("connections of ip_vs hold its module; runs with --backend l4lb")
        backend.remove("ftp")
    farm(nat)
    service = serve(nat, family)
    # What SIZE answers needs no data connection.
    assert b"Content-Length: 3" in get(nat, family, "epsv", "name", options=["--head"])
    for way in ways(family):
        assert get(nat, family, way, "name", seconds=2) is None, way
    service.delete()


@pytest.mark.parametrize("shape", ("dr", "tun"))
def test_persistence(request, shape, family, farm):
    """With direct routing and tunnels no helper is needed: a persistent service for any port."""
    lab = request.getfixturevalue(shape)
    farm(lab)
    service = serve(lab, family, port=0, flags=PERSISTENT, timeout=60)
    for way in ways(family):
        text = get(lab, family, way, "name", "bulk", "name")
        assert text and text[:3] in (b"rs1", b"rs2") and text == text[:3] + pattern(LENGTH) + text[:3], way
    service.delete()
