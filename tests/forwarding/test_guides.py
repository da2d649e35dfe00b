# SPDX-License-Identifier: GPL-2.0
"""The guides of doc/, run as they are printed: each line on the machine that its prompt
names, in fresh network namespaces. The output must be the printed one."""

import os
import subprocess

import pytest
from lab.guide import TOP, page, steps
from lab.netns import Namespace, run, wait_until

# The ports of each link; each link is a bridge in the namespace of the switch.
LINKS = {
    "nat": (("client eth0", "director eth0"), ("director eth1", "rs1 eth0", "rs2 eth0")),
    "direct-routing": (("client eth0", "director eth0", "rs1 eth0", "rs2 eth0"),),
    "tunnel": (("client eth0", "director eth0", "router eth0"),
               ("router eth1", "rs1 eth0", "rs2 eth0")),
    "migrating-from-ip_vs": (("director eth0",),),
    "high-availability": (
        ("client eth0", "director1 eth0", "director2 eth0", "rs1 eth0", "rs2 eth0"),
        ("director1 eth1", "director2 eth1")),
    "scale-out": (("client eth0", "router eth0"),
                  ("router eth1", "director1 eth0", "director2 eth0", "rs1 eth0", "rs2 eth0")),
}
PREFIX = "guide-"


class Network:
    def __init__(self, links):
        names = sorted({port.split()[0] for link in links for port in link})
        self.machines = {name: Namespace(PREFIX + name) for name in names}
        self.switch = Namespace(PREFIX + "switch")
        for number, link in enumerate(links):
            lines = [f"link add br{number} type bridge", f"link set br{number} up"]
            for port in link:
                machine, device = port.split()
                lines += [f"link add {machine}{number} type veth peer name {device} "
                          f"netns {PREFIX}{machine}",
                          f"link set {machine}{number} master br{number} up"]
            self.switch.ip(*lines)
        for machine in self.machines.values():
            machine.ip("link set lo up")

    def close(self):
        for machine in (*self.machines.values(), self.switch):
            for pid in run(["ip", "netns", "pids", machine.name]).stdout.split():
                subprocess.run(["kill", "-9", pid], check=False)
            machine.destroy()

    def do(self, machine, command):
        done = self.machines[machine].run(
            ["bash", "-c", command], check=False, timeout=60)
        return done.returncode, done.stdout + done.stderr


@pytest.mark.waits
@pytest.mark.parametrize("guide", LINKS)
def test_guide(guide, only_l4lb, monkeypatch):
    monkeypatch.setenv("PATH", f"{TOP / 'build'}:{os.environ['PATH']}")
    network = Network(LINKS[guide])
    try:
        for machine, command, wanted in steps(page(guide)):
            code, said = network.do(machine, command)
            assert said == wanted, f"{machine}# {command}"
            assert code == 0, f"{machine}# {command}"
            if command.startswith("pkill "):    # it does not wait until they have gone
                wait_until(lambda c=command: network.do(machine, c)[0] == 1, 10, what=command)
    finally:
        network.close()
