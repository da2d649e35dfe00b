# SPDX-License-Identifier: GPL-2.0
"""ipvsctl doctor: broken set-ups, in each of which it names the mistake and no other, and
healthy ones, in which it names none."""

import contextlib
import dataclasses
import itertools
import json
import os
import re
import socket

import pytest
from lab.ctl import IPVSCTL
from lab.guide import page
from lab.netns import run, wait_until

TAKES = 30
VRRP = 112
VIP, VIP6 = "198.51.100.100", "2001:db8:1::100"
NAT = f"ipvsctl service add tcp {VIP}:PORT scheduler rr server 192.0.2.11 nat server 192.0.2.12 nat"
NAT6 = (f"ipvsctl service add tcp [{VIP6}]:PORT scheduler rr server [2001:db8:2::11] nat "
        "server [2001:db8:2::12] nat")
DR = f"ipvsctl service add tcp {VIP}:PORT scheduler rr server 198.51.100.11 dr server 198.51.100.12 dr"
DR6 = (f"ipvsctl service add tcp [{VIP6}]:PORT scheduler rr server [2001:db8:1::11] dr "
       "server [2001:db8:1::12] dr")
TUN = f"ipvsctl service add tcp {VIP}:PORT scheduler rr server 203.0.113.11 tun server 203.0.113.12 tun"
TUN6 = (f"ipvsctl service add tcp [{VIP6}]:PORT scheduler rr server [2001:db8:3::11] tun "
        "server 203.0.113.12 tun type gue port 6080")
LAZY = f"ipvsctl service add tcp {VIP}:PORT scheduler mh conn-state lazy"
ONE = f"ipvsctl service add tcp {VIP}:PORT scheduler rr server"
MODULES = "mount -t tmpfs none /lib/modules; mkdir /lib/modules/$(uname -r); cd /lib/modules/*; "
SYS = "mount -t tmpfs none /sys/module; cd /sys/module; mkdir -p l4lb module/parameters; "
# An ordinary one, without a rule for the service.
FIREWALL = """\
director# nft add table inet fw
director# nft 'add chain inet fw input { type filter hook input priority 0; policy drop; }'
director# nft 'add rule inet fw input iifname lo accept'
director# nft 'add rule inet fw input meta l4proto { icmp, ipv6-icmp } accept'
director# nft 'add rule inet fw input ct state established,related accept'
director# nft 'add rule inet fw input tcp dport 22 accept'
director# nft 'add chain inet fw forward { type filter hook forward priority 0; policy drop; }'
director# nft 'add rule inet fw forward ct state established,related accept'"""
NO_FIREWALL = "director# nft delete table inet fw"


@dataclasses.dataclass
class Row:
    """A set-up that is broken in one way. COMMANDS and MEND are lines as in the guides, with
    the machine's prompt; PORT is a port that no other row has."""

    found: str                  # the checks that find something, as words
    shape: str
    commands: str
    mend: str = ""
    settings: dict = dataclasses.field(default_factory=dict)    # the director's, restored
    vrrp: bool = False          # a VRRP program runs
    under: str = ""             # commands that change what this run of ipvsctl sees of files
    l4lb: bool = False          # in-tree ip_vs has nothing of the kind
    options: str = ""           # of doctor


def knock(times, kind="tcp", role="client", vip=VIP):
    """Opens connections that nobody answers."""
    return "\n".join([f"{role}# timeout 0.2 bash -c 'echo >/dev/{kind}/{vip}/PORT' || :"] * times)


BROKEN = {
    "ip_forward": Row("forwarding", "nat", f"director# {NAT}",
                      settings={"net/ipv4/ip_forward": 0}),
    "ipv6 forwarding": Row("forwarding", "nat", f"director# {NAT6}",
                           settings={"net/ipv6/conf/all/forwarding": 0}),
    "device-forwarding": Row("forwarding", "nat", f"director# {NAT}",
                             settings={"net/ipv4/conf/eth1/forwarding": 0}),
    "no VIP": Row("vip", "dr", f"""\
director# {DR}
director# ip addr del {VIP}/32 dev eth0""", f"director# ip addr add {VIP}/32 dev eth0"),
    "VIP on a device that is down": Row("vip", "dr", """\
director# ip link add d9 type veth peer name d8
director# ip addr add 198.51.100.200/32 dev d9
director# ipvsctl service add tcp 198.51.100.200:PORT scheduler rr server 198.51.100.11 dr""",
                                        "director# ip link del d9"),
    "VIP taken": Row("vip", "dr", """\
rs1# ip addr add 2001:db8:1::77/128 dev eth0 nodad
director# ip addr add 2001:db8:1::77/128 dev eth0
director# ipvsctl service add tcp [2001:db8:1::77]:PORT scheduler rr server [2001:db8:1::12] dr""", """\
rs1# ip addr del 2001:db8:1::77/128 dev eth0
director# ip addr del 2001:db8:1::77/128 dev eth0""",
                     settings={"net/ipv6/conf/eth0/accept_dad": 1,
                               "net/ipv6/conf/eth0/dad_transmits": 1}),
    "ARP for the VIP": Row("vip-answer", "dr", f"""\
director# {DR}
director# ping -c 1 -q 198.51.100.11 >/dev/null
rs1# sysctl -qw net.ipv4.conf.all.arp_ignore=0""",
                           "rs1# sysctl -qw net.ipv4.conf.all.arp_ignore=1"),
    "IPv6 VIP of a server": Row("vip-answer", "dr", f"""\
director# {DR6}
director# ping -c 1 -q 2001:db8:1::12 >/dev/null
rs2# ip addr add {VIP6}/128 dev eth0 nodad""", f"rs2# ip addr del {VIP6}/128 dev eth0"),
    "no route": Row("route", "nat", f"""\
director# ip route add unreachable 203.0.113.0/24
director# {ONE} 203.0.113.11 nat""", "director# ip route del unreachable 203.0.113.0/24"),
    "no neighbour": Row("neighbour", "nat", f"director# {NAT} server 192.0.2.99 nat"),
    "no IPv6 neighbour": Row("neighbour", "dr", f"director# {DR6} server [2001:db8:1::99] dr"),
    "no router": Row("neighbour", "tun", f"""\
director# {TUN}
router# ip link set br1 down
director# ip neigh flush all""", """\
router# ip link set br1 up
router# ip addr add 2001:db8:1::3/64 dev br1 nodad"""),
    "server behind a router": Row("direct", "dr", f"director# {ONE} 203.0.113.11 dr"),
    "no carrier": Row("device", "nat", f"""\
director# {NAT}
router# ip link set director down""", """\
router# ip link set director up
director# until ip link show eth1 | grep -q LOWER_UP; do sleep 0.1; done"""),
    "loopback down": Row("loopback", "nat", f"""\
director# {NAT}
director# ip link set lo down""", "director# ip link set lo up"),
    "nobody listens": Row("listen", "nat", f"director# {ONE} 192.0.2.11 nat", options="--probe"),
    "packets are dropped": Row("listen", "nat", f"""\
rs1# nft add table inet fw
rs1# nft 'add chain inet fw input {{ type filter hook input priority 0; }}'
rs1# nft 'add rule inet fw input tcp dport PORT drop'
director# {ONE} 192.0.2.11 nat""", "rs1# nft delete table inet fw", options="--probe"),
    "narrow tunnel": Row("mtu", "tun", f"director# {ONE} 203.0.113.64 tun"),
    # A bond is a device that has LRO and exists in the laboratory.
    "LRO": Row("lro", "dr", f"""\
director# {DR}
director# ip link add bond9 type bond
director# ip link set bond9 up""", "director# ip link del bond9",
               settings={"net/ipv4/vs/fast_path": 0, "net/ipv4/ip_forward": 0,
                         "net/ipv6/conf/all/forwarding": 0}, l4lb=True),
    "wrong gateway": Row("replies", "nat", f"""\
director# {ONE} 192.0.2.11 nat
rs1# ip route replace default dev eth0
{knock(2)}""", "rs1# ip route replace default via 192.0.2.1"),
    "client among servers": Row("replies", "nat", f"""\
director# {ONE} 192.0.2.12 nat
{knock(2, role="rs4")}"""),
    "strict rp_filter": Row("rp-filter", "nat", f"""\
director# {NAT}
director# ip route replace default via 192.0.2.14
client# ip addr add 172.16.0.9/32 dev eth0
client# ping -q -c 1 -W 0.1 -I 172.16.0.9 {VIP} >/dev/null || :""", """\
director# ip route replace default via 198.51.100.2
client# ip addr del 172.16.0.9/32 dev eth0""", settings={"net/ipv4/conf/eth0/rp_filter": 1}),
    "requests dropped": Row("firewall", "nat", f"""\
director# {NAT}
{FIREWALL}""", NO_FIREWALL),
    "replies dropped": Row("firewall", "nat", f"""\
director# {NAT}
{FIREWALL}
director# nft add rule inet fw input tcp dport PORT accept
director# nft insert rule inet fw forward ip saddr 192.0.2.0/24 tcp sport PORT reject""", NO_FIREWALL),
    "VIP rewritten": Row("firewall", "nat", f"""\
director# {NAT}
director# nft add table inet fw
director# nft 'add chain inet fw dstnat {{ type nat hook prerouting priority -100; }}'
director# nft add rule inet fw dstnat ip daddr {VIP} tcp dport PORT dnat ip to 192.0.2.11""", NO_FIREWALL),
    "no server": Row("usable", "nat", f"director# ipvsctl service add tcp {VIP}:PORT scheduler rr"),
    "weight 0": Row("usable", "nat", f"director# {ONE} 192.0.2.11 nat weight 0"),
    "overloaded": Row("overload", "nat", f"""\
director# ipvsctl service add udp {VIP}:PORT scheduler rr server 192.0.2.11 nat max-conns 1
{knock(1, "udp")}"""),
    "conn_max": Row("conn-max", "nat", f"""\
director# ipvsctl -q conn kill --yes
director# ipvsctl service add udp {VIP}:PORT scheduler rr server 192.0.2.11 nat
{knock(4, "udp")}""", settings={"net/ipv4/vs/conn_max": 5}, l4lb=True),
    "netfilter's entries": Row("conntrack", "nat", f"director# {NAT}", under="""\
cd /proc/sys/net/netfilter; echo 800 >/tmp/doctor-count; echo 1000 >/tmp/doctor-max
mount --bind /tmp/doctor-count nf_conntrack_count; mount --bind /tmp/doctor-max nf_conntrack_max"""),
    "lazy by turns": Row("lazy", "nat", f"""\
director# {LAZY} server 192.0.2.11 nat
director# ipvsctl compat -E -t {VIP}:PORT -s rr""", l4lb=True),
    "lazy and persistent": Row("lazy", "dr", f"""\
director# {LAZY} server 198.51.100.11 dr
director# ipvsctl compat -E -t {VIP}:PORT -s mh -p""", l4lb=True),
    "lazy with a threshold": Row("lazy", "dr", f"""\
director# {LAZY} server 198.51.100.11 dr max-conns 100 server 198.51.100.12 dr""", l4lb=True),
    "lazy and tracked": Row("lazy", "dr", f"director# {LAZY} server 198.51.100.11 dr",
                            settings={"net/ipv4/vs/conntrack": 1}, l4lb=True),
    "lazy twice": Row("lazy", "nat", f"""\
director# {LAZY} server 192.0.2.11 nat server 192.0.2.12 nat
director# ipvsctl service add tcp {VIP}:9 scheduler rr server 192.0.2.11:PORT nat""", l4lb=True),
    "snat without its address": Row("snat", "nat", f"""\
director# ip addr add 192.0.2.240/32 dev eth1
director# {NAT.replace("server", "snat 192.0.2.240 server", 1)}
director# ip addr del 192.0.2.240/32 dev eth1""", l4lb=True),
    "snat from the usual address": Row(
        "snat", "nat", f'director# {NAT.replace("server", "snat 192.0.2.1 server", 1)}', l4lb=True),
    "VRRP without sync": Row("sync", "dr", f"director# {DR}", vrrp=True),
    "sync device": Row("sync", "dr", f"""\
director# {DR}
director# ip link add d9 type dummy
director# ip addr add 10.9.0.1/24 dev d9
director# ip link set d9 up
director# ipvsctl -q sync start both dev d9 id 7
director# ip link set d9 down""", """\
director# ipvsctl -q sync stop
director# ip link del d9"""),
    "silent peer": Row("peer", "dr", f"""\
director# {DR}
director# ipvsctl -q sync start both dev eth0 id 7
director# ipvsctl -q sync peer add 198.51.100.9""", """\
director# ipvsctl -q sync peer delete 198.51.100.9
director# ipvsctl -q sync stop""", l4lb=True),
    "version": Row("version", "nat", f"director# {NAT}", l4lb=True, under="""\
echo 9.9.9 >/tmp/doctor-version; mount --bind /tmp/doctor-version /sys/module/l4lb/version"""),
    "scheduler's file": Row("scheduler", "nat", f"director# {NAT}", l4lb=True,
                            under=MODULES + "echo kernel/l4lb.ko: >modules.dep"),
    "ip_vs, too": Row("other-module", "nat", f"director# {NAT}", l4lb=True,
                      under=SYS + "mkdir ip_vs"),
    "no module": Row("module", "nat", "", under=SYS + "rmdir l4lb"),
    "Secure Boot": Row("module", "nat", "", under=MODULES + "echo kernel/l4lb.ko: >modules.dep; "
                       + SYS + "rmdir l4lb; echo Y >module/parameters/sig_enforce"),
}


class Ward:
    """A topology whose machines execute lines with prompts."""

    def __init__(self, lab):
        self.lab, self.port = lab, str(lab.fresh_port())

    def do(self, lines):
        for line in lines.replace("PORT", self.port).splitlines():
            machine, _, command = line.partition("# ")
            self.lab.nodes[machine].ns.run(
                ["bash", "-c", command.replace("ipvsctl", IPVSCTL)])

    def doctor(self, *words, under="", machine="director", options=""):
        """(exit code, output)"""
        argv = [IPVSCTL, *words, "doctor", *options.split()]
        if under:
            argv = ["unshare", "-m", "sh", "-ec", f'here=$PWD; {under}; cd "$here"; exec "$@"',
                    "sh", *argv]
        with self.lab.nodes[machine].ns.enter():
            done = run(argv, check=False)
        assert done.stderr == ""
        return done.returncode, done.stdout

    def found(self, **how):
        """The checks that found a problem, once each, as words."""
        code, text = self.doctor("-j", **how)
        said = json.loads(text)["doctor"]
        bad = [f for f in said["findings"] if f["severity"] != "note"]
        assert code == (1 if bad else 0)
        assert all(f["try"] for f in bad)
        assert said["not_checked"] == []
        return " ".join(dict.fromkeys(f["check"] for f in bad))


@contextlib.contextmanager
def broken(ward, row):
    """Within the block the set-up is ROW's."""
    ns, before = ward.lab.director.ns, {}
    try:
        for name, value in row.settings.items():
            before[name] = ns.sysctl(name)
            ns.sysctl(name, value)
        ward.do(row.commands)
        with ns.socket(socket.AF_INET, socket.SOCK_RAW, VRRP) if row.vrrp else \
                contextlib.nullcontext():
            yield
    finally:
        for name, value in before.items():
            ns.sysctl(name, value)
        ward.do(row.mend)


def screen(text, port):
    """TEXT as doc/doctor.md shows it, where all machines are alike."""
    for pattern, same in ((rf":{port}\b", ":80"), (r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", "02:00:00:00:00:11"),
                          (re.escape(os.uname().release), "6.12.117+deb12-amd64"),
                          (r"\d+ packets", "5 packets"), (r"packets \(\d+\)", "packets (5)")):
        text = re.sub(pattern, same, text)
    return text


@pytest.fixture
def ward(topologies, module_life):
    def on(shape):
        lab = topologies[shape]
        lab.flush()
        return Ward(lab)
    return on


@pytest.mark.waits
@pytest.mark.parametrize("name", BROKEN)
def test_broken(name, ward, backend):
    row = BROKEN[name]
    if row.l4lb and not backend.is_l4lb:
        pytest.skip("ip_vs has nothing of the kind; runs with --backend l4lb")
    one = ward(row.shape)
    with broken(one, row):
        # A carrier or an address needs a moment until the kernel has noticed.
        how = {"under": row.under, "options": row.options}
        wait_until(lambda: one.found(**how), 4, what=f"doctor finds {row.found}")
        assert one.found(**how) == row.found
        code, text = one.doctor(**how)
    assert code == 1
    said = screen(text, one.port)
    print(f"doc/doctor.md has to show:\n{said}", end="")
    assert said in re.sub("^    ", "", page("doctor"), flags=re.M)


HEALTHY = {
    "nat": ("nat", [NAT, NAT6]),
    "dr": ("dr", [DR, DR6]),
    "tun": ("tun", [TUN, TUN6]),
    "fwmark": ("nat", ["ipvsctl service add fwmark 7 scheduler rr server 192.0.2.11 nat server 192.0.2.12 dr",
                       "ipvsctl service add fwmark 7 inet6 scheduler rr server [2001:db8:2::11] nat"]),
    "nothing": ("nat", []),
}


@pytest.mark.waits
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(name, ward):
    shape, services = HEALTHY[name]
    one = ward(shape)
    one.do("\n".join(f"director# {line}" for line in services))
    assert one.found() == ""
    one.do(knock(2) if shape == "nat" else "")
    assert one.found() == ""
    code, text = one.doctor("-4")
    assert (code, text) == (0, "27 checks, no problem found\n")


def test_a_server_that_is_the_director(ward):
    """By direct routing or a tunnel that is a note, by NAT nothing."""
    one = ward("dr")
    one.do(f"director# {ONE} 198.51.100.1 nat")
    assert one.doctor() == (0, "27 checks, no problem found\n")
    one.do("director# ipvsctl server replace tcp "
           f"{VIP}:PORT 198.51.100.1 dr")
    code, text = one.doctor()
    said = screen(text, one.port)
    print(f"doc/doctor.md has to show:\n{said}", end="")
    assert code == 0 and said.splitlines()[0] in page("doctor")
    assert [f["check"] for f in json.loads(one.doctor("-j")[1])["doctor"]["findings"]] == ["local"]


@pytest.mark.parametrize("setting", ("net/ipv4/vs/fast_path", "net/ipv4/ip_forward"))
def test_who_switches_lro_off(ward, setting, only_l4lb):
    """The fast path on its devices, and the kernel where it forwards: nothing is to be said."""
    one = ward("dr")
    row = dataclasses.replace(BROKEN["LRO"], settings={**BROKEN["LRO"].settings, setting: 1})
    with broken(one, row):
        wait_until(lambda: one.found() == "", 4, what="LRO is off")


def test_a_firewall_that_lets_clients_in(ward):
    one = ward("nat")
    try:
        one.do(f"director# {NAT}\n{FIREWALL}\n"
               f"director# nft add rule inet fw input ip daddr {VIP} tcp dport '{{ 443, PORT }}' accept")
        assert one.found() == ""
    finally:
        one.do(NO_FIREWALL)


@pytest.mark.waits
def test_healthy_pair(ward, only_l4lb):
    """rs4 is the other director; VRRP runs on both."""
    one = ward("dr")
    both = ("director", "rs4")
    one.do("\n".join(f"{role}# {line}" for role in both for line in (
        DR, "ipvsctl -q sync start both dev eth0 id 7",
        f"ipvsctl -q sync peer add 198.51.100.{'14' if role == 'director' else '1'}")))
    one.do("director# ipvsctl -q sync wait 10")
    one.do(f"rs4# ip addr del {VIP}/32 dev lo")         # the director has it
    try:
        with contextlib.ExitStack() as stack:
            for role in both:
                stack.enter_context(one.lab.nodes[role].ns.socket(
                    socket.AF_INET, socket.SOCK_RAW, VRRP))
            assert [one.found(machine=role) for role in both] == ["", ""]
    finally:
        one.do(f"""\
rs4# ip addr add {VIP}/32 dev lo
director# ipvsctl -q sync peer delete 198.51.100.14
rs4# ipvsctl -q sync peer delete 198.51.100.1
director# ipvsctl -q sync stop
rs4# ipvsctl -q sync stop
rs4# ipvsctl -q service flush --yes""")


def listener(ward, number, address):
    sock = ward.lab.servers[number - 1].ns.socket(
        socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    sock.bind((address, int(ward.port)))
    sock.listen(8)
    sock.setblocking(False)
    return sock


def asked(sock, wanted=0):
    """How often a connection was opened; the last segment of a handshake that the client has
    ended may still be under way to one that is WANTED."""
    for count in itertools.count():
        sock.settimeout(2 if count < wanted else 0)
        try:
            sock.accept()[0].close()
        except (BlockingIOError, TimeoutError):
            return count


@pytest.mark.smoke
@pytest.mark.tool
@pytest.mark.parametrize("service, dip, rips", (
    (NAT, "192.0.2.1", ("192.0.2.11", "192.0.2.12")),
    (NAT6, "[2001:db8:2::1]", ("2001:db8:2::11", "2001:db8:2::12"))), ids=("v4", "v6"))
def test_probe(ward, service, dip, rips):
    """A server of several services is asked once, and only with --probe; it is an error if one of
    them needs NAT. One with weight 0 and one of a UDP service are not asked."""
    one, name = ward("nat"), service.split()[4]
    one.do(f"director# {service}")
    bracketed = f"[{rips[0]}]:PORT" if ":" in rips[0] else f"{rips[0]}:PORT"
    one.do(f"director# ipvsctl service add tcp {name.replace('PORT', '1')} scheduler rr "
           f"server {bracketed} nat")
    one.do(f"director# ipvsctl service add tcp {dip}:PORT scheduler rr server {bracketed} dr")
    one.do(f"director# ipvsctl service add udp {name} scheduler rr server {bracketed} nat")
    with listener(one, 1, rips[0]) as good, listener(one, 2, rips[1]) as other:
        assert one.found() == "" and (asked(good), asked(other)) == (0, 0)
        # Between two processors the end of a connection may overtake the last segment of its
        # handshake: then the server has not seen it.
        for turn in range(3):
            assert one.doctor(options="--probe") == (0, "28 checks, no problem found\n")
            counts = asked(good, 1), asked(other, 1)
            if counts == (1, 1):
                break
            assert max(counts) == 1 and turn < 2, counts
    assert one.found(options="--probe") == "listen"
    code, text = one.doctor(options="--probe")
    assert code == 1 and text.count("error: listen: ") == 2 == text.count("refused"), text
    for rip in rips:
        one.do(f"director# ipvsctl server change tcp {name} "
               f"{f'[{rip}]' if ':' in rip else rip} weight 0")
    one.do(f"director# ipvsctl service delete tcp {name.replace('PORT', '1')}")
    one.do(f"director# ipvsctl service delete tcp {dip}:PORT")
    assert one.found(options="--probe") == "usable"


def test_probe_of_one_that_listens_on_the_vip(ward):
    """That is no problem with direct routing: a note."""
    one = ward("dr")
    one.do(f"director# {DR}")
    with listener(one, 1, VIP):
        code, text = one.doctor(options="--probe")
    assert code == 0 and text.count("may listen on the VIP only") == 2, text


def test_probe_of_many(ward):
    """No more than some at a time and in all; the rest is named."""
    one, servers = ward("nat"), 4200
    with one.lab.director.ns.enter():
        run([IPVSCTL, "restore"], text_input=f"-A -t {VIP}:{one.port} -s rr\n" + "".join(
            f"-a -t {VIP}:{one.port} -r 127.1.{n >> 8}.{n & 255}:{one.port} -m\n"
            for n in range(1, servers + 1)))
    code, text = one.doctor(options="--probe")
    assert code == 1 and "connections are refused" in text
    assert f"not checked: listen: {servers - 4096} of {servers} servers: name a service" in text


@pytest.mark.smoke
@pytest.mark.tool
def test_on_a_stock_kernel(ward):
    one = ward("nat")
    one.do(f"director# {NAT}")
    assert one.found() == ""
    one = ward("nat")
    with broken(one, BROKEN["ip_forward"]):
        assert one.found() == "forwarding"


def test_without_the_right_to_ask(ward):
    """Not checked, which is no failure; without CAP_NET_ADMIN there is nothing to look at."""
    one = ward("nat")
    one.do(f"director# {NAT}")
    drop = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
    with one.lab.director.ns.enter():
        done = run([*drop, IPVSCTL, "doctor"], check=False)
        assert done.returncode == 0
        assert "not checked: vip-answer: a link cannot be asked" in done.stdout
        assert "27 checks, no problem found\n" in done.stdout
        done = run([*[w.replace("net_raw", "net_admin") for w in drop], IPVSCTL, "doctor"],
                   check=False)
        assert (done.returncode, done.stdout) == (6, "")


def test_one_service(ward):
    one = ward("nat")
    one.do(f"director# {NAT}\ndirector# ipvsctl service add udp {VIP}:PORT scheduler rr")
    with one.lab.director.ns.enter():
        good = run([IPVSCTL, "doctor", "tcp", f"{VIP}:{one.port}"], check=False)
        bad = run([IPVSCTL, "doctor", "udp", f"{VIP}:{one.port}"], check=False)
        none = run([IPVSCTL, "-j", "doctor", "sctp", f"{VIP}:{one.port}"], check=False)
    assert (good.returncode, bad.returncode, none.returncode) == (0, 1, 4)
    assert f"error: usable: udp {VIP}:{one.port}: the service has no server" in bad.stdout
    assert os.linesep not in none.stdout
    assert json.loads(none.stderr)["error"]["code"] == 4
