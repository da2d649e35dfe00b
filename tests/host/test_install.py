# SPDX-License-Identifier: GPL-2.0
"""make uninstall removes what make install has installed, and nothing else; the packages have
the same files; each mentions every scheduler."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
RELEASE = "6.12.999-test"
MODULES = "l4lb.ko", "l4lb_rr.ko"
SYSTEM = {"usr/lib/modprobe.d/l4lb.conf", "usr/lib/modules-load.d/l4lb.conf",
          "usr/lib/sysctl.d/60-l4lb.conf", "usr/lib/systemd/system/l4lb.service",
          "usr/lib/systemd/system/ipvsctl-metrics.service", "usr/lib/systemd/system/ipvsctl-metrics.timer"}
TOOL = {"sbin/ipvsctl", "share/man/man8/ipvsctl.8",
        "share/bash-completion/completions/ipvsctl", "share/zsh/vendor-completions/_ipvsctl",
        "share/fish/vendor_completions.d/ipvsctl.fish", "share/ipvsctl/config.schema.json",
        "share/ipvsctl/grafana/l4lb.json"}


@pytest.fixture
def make(tmp_path):
    """Runs make with a fake kernel tree and fake products; returns the names of the files
    below DESTDIR."""
    header = tmp_path / "kernel/include/generated/utsrelease.h"
    header.parent.mkdir(parents=True)
    header.write_text(f'#define UTS_RELEASE "{RELEASE}"\n', encoding="ascii")
    (tmp_path / "out" / RELEASE).mkdir(parents=True)
    for name in MODULES:
        subprocess.run(["gcc", "-g", "-xc", "-c", "-o", str(tmp_path / "out" / RELEASE / name),
                        "-"], input="int x;\n", text=True, check=True, timeout=60)
    (tmp_path / "out/ipvsctl").write_text("ipvsctl", encoding="ascii")
    root = tmp_path / "root"

    def run(target, *words, code=0):
        done = subprocess.run(
            ["make", "-o", "modules", "-o", "ipvsctl", target, f"DESTDIR={root}",
             f"out={tmp_path}/out", f"KDIR={tmp_path}/kernel", *words], cwd=TOP,
            capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code, done.stderr
        return done.stderr if code else \
            {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}
    run.root = root
    return run


@pytest.mark.parametrize("prefix", ("usr", "usr/local"))
def test_uninstall_leaves_nothing(make, prefix):
    words = [] if prefix == "usr" else [f"PREFIX=/{prefix}"]
    assert make("install", *words) == {
        *(f"lib/modules/{RELEASE}/updates/l4lb/{name}" for name in MODULES), *SYSTEM,
        f"{prefix}/share/man/man7/l4lb.7", *(f"{prefix}/{name}" for name in (
            {name.replace("vendor-completions", "site-functions") for name in TOOL}
            if words else TOOL))}
    sections = subprocess.run(["objdump", "-h", str(
        make.root / f"lib/modules/{RELEASE}/updates/l4lb/l4lb.ko")], text=True,
        capture_output=True, check=True, timeout=60).stdout
    assert ".data" in sections or ".bss" in sections
    assert ".debug" not in sections
    unit = (make.root / "usr/lib/systemd/system/l4lb.service").read_text("utf-8")
    assert f" /{prefix}/sbin/ipvsctl $$do " in unit and "@SBIN@" not in unit
    assert "\nSystemCallFilter=@system-service bpf\n" in unit       # programs and XDP
    assert make("uninstall", *words) == set()
    assert not (make.root / f"lib/modules/{RELEASE}/updates/l4lb").exists()
    assert not (make.root / "etc/l4lb").exists()
    assert make("uninstall", *words) == set()       # twice is no error


def test_uninstall_leaves_what_others_put_there(make):
    make("install")
    others = {f"lib/modules/{RELEASE}/updates/other.ko", "usr/lib/modprobe.d/other.conf",
           "usr/sbin/other", "usr/share/man/man8/other.8", "etc/l4lb/mine.rules"}
    for name in others:
        (make.root / name).write_text("other", encoding="ascii")
    assert make("uninstall") == others


def test_uninstall_needs_to_know_the_kernel(make, tmp_path):
    """Without a release it would remove the wrong directory below /lib/modules."""
    make("install")
    assert "no kernel release: name the kernel build directory with KDIR=" in \
        make("uninstall", f"KDIR={tmp_path}/none", code=2)
    assert len(make("install")) == len(MODULES) + len(SYSTEM) + len(TOOL) + 1


def test_a_key_needs_its_certificate(make):
    assert "SIGN_KEY needs its certificate: SIGN_CERT=FILE" in \
        make("install-modules", "SIGN_KEY=/none", code=2)


# ---- packages ----

def version():
    return re.search(r'^MODULE_VERSION\("(.+)"\)', (TOP / "kernel/main.c").read_text("utf-8"),
                     re.M)[1]


def modules():
    names = re.search(r"^schedulers := (.+)", (TOP / "schedulers/Kbuild").read_text("utf-8"),
                      re.M)[1].split()
    assert len(names) > 10
    return {"l4lb": "kernel"} | {f"l4lb_{name}": "schedulers" for name in names} | {"l4lb_ftp": "kernel"}


def test_dkms_sources(make):
    """They are all that Kbuild reads, and dkms.conf names what it makes of them."""
    folder = f"usr/src/l4lb-{version()}"
    found = make("install-dkms")
    sources = {"Kbuild", *(str(p.relative_to(TOP)) for folder in ("kernel", "schedulers")
                           for p in (TOP / folder).rglob("*") if p.is_file())}
    assert found == {f"{folder}/dkms.conf", *(
        f"{folder}/{name}" for name in sources if not name.endswith(".md"))}
    # As dkms reads it.
    shown = subprocess.run(
        ["bash", "-c", f""". {make.root}/{folder}/dkms.conf; echo $PACKAGE_NAME $PACKAGE_VERSION
        for i in ${{!BUILT_MODULE_NAME[@]}}; do
            echo ${{BUILT_MODULE_NAME[i]}} ${{BUILT_MODULE_LOCATION[i]}} ${{DEST_MODULE_LOCATION[i]}}
        done
        for k in 6.1.0-56-amd64 6.12.117+deb12-amd64 6.12.9 6.11.1 6.6.0 6.10.1 5.10.0 16.1.0; do
            [[ ! $k =~ $BUILD_EXCLUSIVE_KERNEL ]] || echo builds $k
        done"""], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert shown[0] == f"l4lb {version()}"
    assert shown[1:-3] == [f"{name} {place} /updates/dkms" for name, place in modules().items()]
    assert shown[-3:] == ["builds 6.1.0-56-amd64", "builds 6.12.117+deb12-amd64", "builds 6.12.9"]


def test_packages_have_the_version_of_the_module_and_the_tool():
    first = (TOP / "debian/changelog").read_text("utf-8").splitlines()[0]
    assert first.startswith(f"l4lb ({version()}) ")
    assert f'"{version()}"' in (TOP / "tools/ipvsctl/version.h").read_text("utf-8")


def test_packages_need_the_libraries_of_the_tool():
    """tools/ipvsctl/Makefile names them as pkg-config does."""
    control = (TOP / "debian/control").read_text("utf-8")
    wanted = " ".join(re.findall(r"^PKGS +[:+]= (.+)", (TOP / "tools/ipvsctl/Makefile").read_text("utf-8"),
                                 re.M)).split()
    debian = {"libnl-3.0": "libnl-3-dev", "libnl-genl-3.0": "libnl-genl-3-dev",
              "libnl-route-3.0": "libnl-route-3-dev",
              "jansson": "libjansson-dev", "smartcols": "libsmartcols-dev",
              "yaml-0.1": "libyaml-dev", "ncursesw": "libncurses-dev", "libkmod": "libkmod-dev",
              "libbpf": "libbpf-dev"}
    build = control[control.index("Build-Depends:"):control.index("Standards-Version")]
    for name in wanted:
        assert debian[name] in build, name


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="runs where systemd is installed")
@pytest.mark.parametrize("name", ("l4lb.service", "ipvsctl-metrics.service", "ipvsctl-metrics.timer"))
def test_unit_is_what_systemd_understands(name, make, tmp_path):
    make("install-tool")
    unit = make.root / "usr/lib/systemd/system" / name
    assert "@SBIN@" not in unit.read_text("utf-8")
    program = make.root / "usr/sbin/ipvsctl"
    program.chmod(0o755)
    copy = tmp_path / name
    if copy.suffix == ".timer":
        (tmp_path / "ipvsctl-metrics.service").write_text("[Service]\nExecStart=/bin/true\n", "ascii")
    copy.write_text(unit.read_text("utf-8").replace("/usr/sbin/ipvsctl", str(program)), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], text=True,
                          capture_output=True, check=False, timeout=60)
    assert (done.returncode, [line for line in done.stderr.splitlines()
                              if "l4lb" in line or "ipvsctl" in line]) == (0, [])


@pytest.mark.parametrize("files, code, applied", [
    ({"a.rules": "good", "b.rules": "good"}, 0, ["restore a.rules", "restore b.rules"]),
    ({"a.rules": "bad", "b.rules": "good"}, 2, ["restore b.rules"]),      # the others are applied, it fails
    ({"a b.rules": "good", "c.other": "good"}, 0, ["restore a b.rules"]),
    ({"a.rules": "good", "b.yaml": "good"}, 0, ["apply b.yaml", "restore a.rules"]),
    ({"a.yaml": "bad", "b c.yaml": "good"}, 2, ["apply b c.yaml"]),
])
def test_what_the_unit_runs(files, code, applied, make, tmp_path):
    make("install-tool")
    for name, text in files.items():
        (make.root / "etc/l4lb" / name).write_text(text, "utf-8")
    log = tmp_path / "log"
    tool = make.root / "usr/sbin/ipvsctl"
    tool.write_text(f'#!/bin/sh\n[ $# = 2 ] && grep -q good "$2" || exit 2\n'
                    f'echo "$1 $(basename "$2")" >>{log}\n', "utf-8")
    tool.chmod(0o755)
    unit = (make.root / "usr/lib/systemd/system/l4lb.service").read_text("utf-8")
    for verb in "ExecStart", "ExecReload":
        log.unlink(missing_ok=True)
        command = re.search(rf"^{verb}=/bin/sh -c '(.+)'$", unit, re.M)[1].replace("$$", "$")
        for there in "/etc/l4lb/", "/usr/sbin/ipvsctl":
            assert there in command
            command = command.replace(there, f"{make.root}{there}")
        done = subprocess.run(["sh", "-c", command], check=False, timeout=60)
        assert (done.returncode, log.read_text("utf-8").splitlines()) == (code, applied)
    assert "ExecStop" not in unit.replace("# No ExecStop:", "")


def test_documents_of_the_package():
    """What debian/ names is there; the specifications of the netlink families are among it."""
    names = [name for end in ("docs", "examples")
             for name in (TOP / f"debian/l4lb-doc.{end}").read_text("ascii").split()]
    assert all(list(TOP.glob(name)) for name in names) and "tests/specs" in names
    assert {path.name for path in (TOP / "tests/specs").iterdir()} == {"ipvs.yaml", "l4lb.yaml"}
