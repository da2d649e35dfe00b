# SPDX-License-Identifier: GPL-2.0
"""keepalived's lvs_sync_daemon. (ipvsadm: clients/test_ipvsadm_options.py, script "daemon".)"""

import pytest
from lab import daemons
from lab.keepalived import Keepalived, block
from lab.sync_group import DEVICE

ADDRESS = "172.31.0.100"


def roles(side):
    return [(d["role"], d["ifname"], d["sync_id"], d["maxlen"], d["port"])
            for d in daemons.listed(side.ipvs)]


@pytest.mark.waits
@pytest.mark.smoke
def test_both_roles(nat, side, tmp_path):
    """Without an instance both run, from the start to the end."""
    virtual = block(f"virtual_server {nat.vip()} {nat.http_port()}", "protocol TCP",
                    "lb_algo rr", "lb_kind NAT")
    with Keepalived(nat.director.ns, tmp_path, virtual,
                    options=f"lvs_sync_daemon {DEVICE} id 9 maxlen 1200 port 9000") as checker:
        checker.until(lambda: roles(side) == [("master", DEVICE, 9, 1200, 9000),
                                              ("backup", DEVICE, 9, 1200, 9000)], "both daemons")
    assert roles(side) == []


@pytest.mark.waits
@pytest.mark.smoke
def test_follows_an_instance(nat, side, tmp_path):
    """The daemon has the role of the VRRP instance, and by default its number."""
    instance = block("vrrp_instance one", "state BACKUP", f"interface {DEVICE}",
                     "virtual_router_id 51", "priority 100", "version 3", "advert_int 0.1",
                     block("virtual_ipaddress", f"{ADDRESS}/32"))
    with Keepalived(nat.director.ns, tmp_path, instance, vrrp=True,
                    options=f"lvs_sync_daemon {DEVICE} inst one") as director:
        director.until(lambda: roles(side) == [("master", DEVICE, 51, 1472, 8848)], "a master")
        side.ns.ip(f"link set {DEVICE} down")
        try:
            director.until(lambda: roles(side) == [("backup", DEVICE, 51, 1472, 8848)],
                           "a backup")
        finally:
            side.ns.ip(f"link set {DEVICE} up")
        director.until(lambda: roles(side) == [("master", DEVICE, 51, 1472, 8848)],
                       "a master again")
    assert roles(side) == []
