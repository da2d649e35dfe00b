# SPDX-License-Identifier: GPL-2.0
"""The manual's recipes work exactly as printed."""

import os
import re
import shlex
import socket
import threading
from pathlib import Path

import pytest
from lab import fast
from lab.netns import SLOW, Namespace, join_all

pytestmark = pytest.mark.usefixtures("only_l4lb")
MANUAL = Path(__file__).resolve().parents[2] / "tools/ipvsctl/ipvsctl.8"
# For each cluster: its front node's outer and inner address, its compute node's address.
OUTSIDE = ("198.51.100.1", "198.51.100.2")
INSIDE = ("10.1.0.1", "10.2.0.1")
NODE = ("10.1.0.2", "10.2.0.2")
PORT = 5002
IPVSCTL = os.environ.get("L4LB_IPVSCTL", "build/ipvsctl")


def recipe(title):
    """The commands of the example that begins with TITLE."""
    text = MANUAL.read_text("utf-8")
    part = text[text.index(f"\n{title}"):]
    part = part[:re.search(r"\n\.S[hs] ", part).start()]
    return [shlex.split(line) for line in re.findall(r"^\.Dl # (.*)$", part, re.M)]


@pytest.fixture
def clusters(module_life):
    """(front nodes, compute nodes) of two clusters that share one network between them."""
    names = ("front0", "front1", "node0", "node1")
    spaces = [Namespace(f"recipe-{n}") for n in names]
    fronts, nodes = spaces[:2], spaces[2:]
    try:
        fronts[0].ip(f"link add eth0 type veth peer name eth0 netns {fronts[1].name}")
        for front, node, outside, inside, address in zip(fronts, nodes, OUTSIDE, INSIDE, NODE):
            front.ip(f"link add eth1 type veth peer name eth0 netns {node.name}",
                     "link set lo up", "link set eth0 up", "link set eth1 up",
                     f"addr add {outside}/24 dev eth0", f"addr add {inside}/24 dev eth1")
            front.sysctl("net/ipv4/ip_forward", 1)
            node.ip("link set lo up", "link set eth0 up", f"addr add {address}/24 dev eth0",
                    f"route add default via {inside}")
        yield fronts, nodes
    finally:
        for ns in spaces:
            ns.destroy()


def talk(listens, asks, address):
    """ASKS sends 100,000 bytes to ADDRESS and gets them back. Return its address as seen there."""
    sent, came = bytes(range(250)) * 400, []
    with listens.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind(("", PORT))
        server.listen()
        server.settimeout(10 * SLOW)

        def echo():
            conn, peer = server.accept()
            came.append(peer[0])
            with conn:
                conn.settimeout(10 * SLOW)
                while data := conn.recv(65536):
                    conn.sendall(data)
        thread = threading.Thread(target=echo)
        thread.start()
        got = b""
        try:
            with asks.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
                client.settimeout(10 * SLOW)
                client.connect((address, PORT))
                sender = threading.Thread(target=client.sendall, args=(sent,))
                sender.start()
                while len(got) < len(sent):
                    data = client.recv(65536)
                    if not data:
                        break
                    got += data
                join_all(sender)
        finally:
            join_all(thread)
    assert got == sent
    return came[0]


@pytest.mark.smoke
@pytest.mark.tool
@pytest.mark.parametrize("path", (0, 1, 2))
def test_two_clusters(clusters, path):
    """Each cluster opens connections to the other, which sees the front node's address."""
    fronts, nodes = clusters
    commands = recipe("Two clusters on private addresses")
    assert [c[0] for c in commands] == ["ipvsctl", "nft"]
    for front, outside, inside, address in zip(fronts, OUTSIDE, INSIDE, NODE):
        for command in commands:
            # The manual's commands are for the second cluster.
            words = [w.replace(OUTSIDE[1], outside).replace(NODE[1], address)
                     .replace("10.2.0.0/24", f"{inside.rsplit('.', 1)[0]}.0/24")
                     for w in command]
            front.run([IPVSCTL, *words[1:]] if words[0] == "ipvsctl" else words)
        front.sysctl(fast.SETTING, path)
    for _ in range(2):
        assert talk(nodes[1], nodes[0], OUTSIDE[1]) == OUTSIDE[0]
        assert talk(nodes[0], nodes[1], OUTSIDE[0]) == OUTSIDE[1]
