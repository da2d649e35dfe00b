# SPDX-License-Identifier: GPL-2.0
"""ipvsctl restore and save at scale, compared with ipvsadm on in-tree ip_vs."""

import time

import pytest
from lab import genl, packet
from lab.backend import both_modules
from lab.ctl import Director, knock
from lab.rows import amount

NO_MODULE = True


def rules(services, servers, scheduler="wrr"):
    out = []
    for n in range(services):
        vip = f"198.18.{n >> 8}.{n & 255}:80"
        out.append(f"-A -t {vip} -s {scheduler}")
        out += [f"-a -t {vip} -r 10.0.0.{m + 2}:80 -m -w {m + 1}" for m in range(servers)]
    return "\n".join(out) + "\n"


@pytest.fixture
def director(module):  # noqa: F811
    one = Director()
    yield one
    one.ns.run(["ipvsadm", "-C"])
    one.ns.destroy()


def timed(call):
    began = time.monotonic()
    out = call()
    return out, time.monotonic() - began


@both_modules
def test_many_services(director, module, request):  # noqa: F811
    """save prints what restore has read, also with ip_vs, without batches. The
    times are printed, with those of ipvsadm -R for comparison."""
    services = amount(request.config, few=500, all=2000)
    text = rules(services, 4)
    _, adm = timed(lambda: director.ns.run(["ipvsadm", "-R"], text_input=text, timeout=300))
    saved, save = timed(lambda: director.ctl("save"))
    assert sorted(saved.splitlines()) == sorted(text.splitlines())
    director.ns.run(["ipvsadm", "-C"])
    said, restore = timed(lambda: director.ctl("restore", stdin=text))
    assert f"services: {services} added" in said and f"servers:  {4 * services} added" in said
    assert director.ctl("save") == saved
    said, again = timed(lambda: director.ctl("restore", stdin=saved))
    assert f"{4 * services} unchanged" in said
    print(f"{module.name}: {services} x 4: ipvsadm -R {adm:.2f} s, restore {restore:.2f} s, "
          f"again {again:.2f} s, save {save:.2f} s")


@pytest.mark.slow
@both_modules
def test_ten_thousand_by_ten(director, module):  # noqa: F811
    text = rules(10000, 10)
    if module.is_l4lb:
        said, restore = timed(lambda: director.ctl("restore", stdin=text))
        assert "servers:  100000 added" in said
        saved, save = timed(lambda: director.ctl("save"))
        assert sorted(saved.splitlines()) == sorted(text.splitlines())
        print(f"l4lb: 10,000 x 10: restore {restore:.2f} s, save {save:.2f} s")
    else:
        _, adm = timed(lambda: director.ns.run(["ipvsadm", "-R"], text_input=text, timeout=1200))
        print(f"ip_vs: 10,000 x 10: ipvsadm -R {adm:.2f} s")


def test_hooks_survive_a_replacement(director):  # noqa: F811
    """All IPv4 that there was goes before all IPv4 that comes: a tunnel server of an IPv6
    service, and a service. The service gets its packets."""
    six, tunnel = "2001:db8::10", genl.batch_server("10.0.0.11", 5353, method=genl.TUNNEL)
    with genl.L4lb(director.ns) as l4lb:
        l4lb.set_services([genl.batch_entry(six, 5353, [tunnel], proto=packet.UDP)])
        l4lb.set_services([
            genl.batch_entry(six, 5353, proto=packet.UDP),
            genl.batch_entry("192.0.2.10", 5353, ["10.0.0.12"], proto=packet.UDP)],
            genl.REPLACE)
    knock(director)
    assert "192.0.2.10" in director.ctl("conn show")


def test_persistence_engine_is_refused(director):  # noqa: F811
    """l4lb has one: restore says so, and adds nothing."""
    rule = "-A -u 192.0.2.1:5060 -s rr -o -p 60 --pe sip\n"
    said = director.ctl("restore", stdin=rule.replace("sip", "nosuch"), code=4)
    assert "persistence engine" in said and "sip" in said
    assert director.ctl("save") == ""
    director.ctl("restore", stdin=rule)
    assert "--pe sip" in director.ctl("save")
    shown = director.json("svc show")["services"]
    assert [s["pe"] for s in shown] == ["sip"]
