# SPDX-License-Identifier: GPL-2.0
"""After `make install`, every way to load ip_vs loads l4lb instead, and the two
never run together. A kernel that l4lb is not installed for loads its own ip_vs."""

import os
import shutil

import pytest
from lab.backend import Backend
from lab.ctl import IPVSCTL
from lab.installed import MODULES, RELEASE, in_tree, installed
from lab.netns import run

NO_MODULE = True        # these tests load modules the way programs do
IP_VS, L4LB = Backend("ip_vs"), Backend("l4lb")
PARTS = {"ip_vs_pe_sip"}        # of l4lb itself

pytestmark = [pytest.mark.smoke, pytest.mark.installed, pytest.mark.skipif(
    os.environ.get("L4LB_VEHICLE") != "qemu",
    reason="mounts over /lib/modules; runs in QEMU (suite stages 6.12 and 6.1)")]


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    names = in_tree()
    with installed(tmp_path_factory.mktemp("root")):
        yield names


@pytest.fixture(autouse=True)
def nothing_loaded():
    def unload():
        for module in (L4LB, IP_VS):
            if module.loaded():
                module.unload()
    unload()
    yield
    unload()


def test_completion_loads_nothing(system):
    """Other commands do: they ask for the netlink family, and the kernel loads its module."""
    offered = run([IPVSCTL, "__complete", "server", "delete", ""]).stdout
    assert "fwmark\t" in offered and not L4LB.loaded() and not IP_VS.loaded()
    run([IPVSCTL, "show"])
    assert L4LB.loaded()


def test_modprobe_of_every_name(system):
    """kube-proxy, kubeadm and /etc/modules-load.d load the modules by their names."""
    assert {"ip_vs", "ip_vs_wlc", "ip_vs_ftp"} <= set(system)
    wanted = sorted(system)
    run(["modprobe", "-va", *wanted])
    assert {name.replace("ip_vs", "l4lb") for name in wanted if name not in PARTS} <= \
        set(L4LB.family())
    assert not IP_VS.family()


@pytest.mark.stock      # so that make test has one of these tests, too
def test_the_netlink_family_loads_it(system):
    """Without modprobe, a request for the netlink family loads the module."""
    run(["ipvsadm", "-A", "-t", "192.0.2.10:80", "-s", "lc"])
    assert L4LB.loaded() and L4LB.loaded("l4lb_lc")
    assert not IP_VS.family()
    run(["ipvsadm", "-C"])


def test_not_beside_ip_vs(system, log):
    """`modprobe l4lb` while ip_vs is there fails, says why, and changes nothing
    (the other order is in test_teardown.py)."""
    run(["modprobe", "-i", "ip_vs"])
    log.refresh()
    log.seen.clear()
    done = run(["modprobe", "l4lb"], check=False)
    assert done.returncode and "Device or resource busy" in done.stderr, done
    assert [line for line in log.lines("l4lb") if "taint" not in line] == [
        "l4lb: the netlink family IPVS is taken: unload ip_vs and its schedulers first "
        "(modprobe -r ip_vs)"]
    assert IP_VS.loaded() and not L4LB.family()
    run(["ipvsadm", "-Ln"])
    assert run(["modprobe", "ip_vs"], check=False).returncode == 0      # it is loaded
    done = run(["modprobe", "ip_vs_lc"], check=False)
    assert done.returncode and "Device or resource busy" in done.stderr, done
    assert IP_VS.family() == ["ip_vs"] and not L4LB.family()


@pytest.fixture
def upgraded(system, tmp_path):
    """As after an upgrade of the kernel: the rules are there, and no l4lb."""
    shutil.move(MODULES / "updates", tmp_path)
    run(["depmod", RELEASE])
    yield system
    shutil.move(tmp_path / "updates", MODULES)
    run(["depmod", RELEASE])


def test_kernel_without_l4lb(upgraded, log):
    """Programs that load ip_vs go on working, and the log says with what."""
    run(["modprobe", "-a", "ip_vs_rr", "ip_vs_ftp"])
    assert {"ip_vs", "ip_vs_rr", "ip_vs_ftp"} <= set(IP_VS.family()) and not L4LB.family()
    assert log.lines("no l4lb") == [f"modprobe: this kernel has no l4lb, loading {name}"
                                    for name in ("ip_vs", "ip_vs_rr", "ip_vs_ftp")]
    run(["rmmod", "ip_vs_ftp", "ip_vs_rr", "ip_vs"])
    run(["ipvsadm", "-A", "-t", "192.0.2.10:80", "-s", "wlc"])      # the netlink family's alias
    assert IP_VS.loaded("ip_vs_wlc") and not L4LB.family()
    run(["ipvsadm", "-C"])
