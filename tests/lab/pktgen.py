# SPDX-License-Identifier: GPL-2.0
"""The kernel's packet generator: its files, and first packets of many flows from several processors."""

import contextlib
import threading

from .netns import join_all, run


def write(ns, file, *lines):
    """Commands for the generator in namespace NS, or for its thread or device FILE."""
    for line in lines:
        ns.write(f"/proc/net/pktgen/{file}", line + "\n")


class Generator:
    """Each of PROCESSORS gives the director datagrams for RAW's service, from random addresses and
    ports, as if its eth0 had received them."""

    def __init__(self, raw, processors):
        self.raw, self.ns, self.processors = raw, raw.lab.director.ns, tuple(processors)
        self.starter = None

    def write(self, file, *lines):
        write(self.ns, file, *lines)

    def __enter__(self):
        run(["modprobe", "pktgen"])
        mac = ":".join(f"{b:02x}" for b in self.raw.client_tap.peer)
        for number in self.processors:
            self.write(f"kpktgend_{number}", "rem_device_all", f"add_device eth0@{number}")
            self.write(f"eth0@{number}", "xmit_mode netif_receive", "count 0", "delay 0", "pkt_size 60",
                       f"dst_mac {mac}", f"dst {self.raw.vip}", "src_min 203.0.113.1", "src_max 203.0.113.250",
                       "flag IPSRC_RND", "flag UDPSRC_RND", "udp_src_min 1024", "udp_src_max 65535",
                       f"udp_dst_min {self.raw.port}", f"udp_dst_max {self.raw.port}")
        # To start it takes until it ends.
        self.starter = threading.Thread(target=self.write, args=("pgctrl", "start"))
        self.starter.start()
        return self

    def __exit__(self, *_):
        self.write("pgctrl", "stop")
        join_all(self.starter, seconds=30)
        for number in self.processors:
            with contextlib.suppress(OSError):
                self.write(f"kpktgend_{number}", "rem_device_all")
        run(["modprobe", "-r", "pktgen"], check=False)
