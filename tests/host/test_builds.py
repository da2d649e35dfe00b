# SPDX-License-Identifier: GPL-2.0
"""The lab's builds: one folder of objects for each checkout, and no remark of a compiler is lost."""

import pytest
from lab import builds

SAYS = """make: Entering directory
{home}/kernel/main.c:7:5: warning: unused variable 'x' [-Wunused-variable]
{home}/kernel/main.c:7:5: warning: unused variable 'x' [-Wunused-variable]
{home}/schedulers/../kernel/sched.h:9: error: bad
ld: warning: kernel/l4lb.o has a writable stack
warning: nothing is known of this
/usr/src/linux-headers-6.1/include/net/sock.h:1:1: warning: the kernel's own
./include/linux/mm.h:1:1: warning: likewise
{home}-tests/bad.c:1:1: warning: a test's
make[1]: warning: jobserver unavailable: using -j1.  Add '+' to parent make rule.
make: warning:  Clock skew detected.  Your build may be incomplete.
  CC [M]  {home}/kernel/warning.o
"""
REMARKS = ["kernel/main.c:7:5: warning: unused variable 'x' [-Wunused-variable]",
           "ld: warning: kernel/l4lb.o has a writable stack",
           "schedulers/../kernel/sched.h:9: error: bad",
           "warning: nothing is known of this"]


@pytest.fixture
def objects(tmp_path, monkeypatch):
    """builds.objects() as each process calls it, for a folder."""
    monkeypatch.setattr(builds, "CACHE", tmp_path / "cache")
    return lambda name: builds.objects.__wrapped__(tmp_path / name)


def test_one_name_for_each_checkout(objects):
    """Processes of one checkout share a link; another checkout gets its own meanwhile, and a
    link that nobody uses any more."""
    (mine, lock), (again, same), (others, other) = map(objects, ("a", "a", "b"))
    assert mine == again != others
    assert (mine.readlink().name, others.readlink().name) == ("a", "b")
    lock.close()
    assert objects("c")[0] not in (mine, others)    # it is shared
    same.close()
    link, _ = objects("d")
    assert link == mine and link.readlink().name == "d"
    assert other.fileno() >= 0


def test_the_lowest_free_link_is_taken(objects):
    """In it the compiler's cache has what other checkouts have built, not only this one."""
    link, lock = objects("a")
    _, kept = objects("b")
    lock.close()
    kept.close()
    assert objects("b")[0] == link and link.readlink().name == "b"


def test_remarks():
    home = "/cache/objects-1/6.1"
    assert builds.remarks(SAYS.format(home=home), home) == REMARKS


@pytest.fixture
def built(tmp_path, monkeypatch, objects):
    """A function: a build whose compilers say TEXT; (its remarks, objects that it found)."""
    header = tmp_path / "kdir/include/generated/utsrelease.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define UTS_RELEASE "6.1.0-1-amd64"\n', encoding="ascii")
    link = objects("a")
    object_file = tmp_path / "a/6.1.0-1-amd64/kernel/main.o"
    object_file.parent.mkdir(parents=True)

    def build(text, *variables):
        def run_make(log, target, *rest, locks=()):
            found.append(object_file.exists())
            assert target == "objects" and ("W=1" in rest) == ("ARCH=um" not in rest)
            object_file.write_text("", encoding="ascii")
            if isinstance(text, Exception):
                raise text
            return text
        found = []
        monkeypatch.setattr(builds, "run_make", run_make)
        monkeypatch.setattr(builds, "objects", lambda: link)
        said = builds.make("objects", f"KDIR={tmp_path / 'kdir'}", *variables)
        return said, found[0]
    return build


def test_what_was_remarked_is_compiled_again(built):
    """Until there is nothing to remark: then objects stay."""
    warning = "a.c:1: warning: b"
    assert built("") == ([], False)
    assert built(warning) == ([warning], True)
    assert built(warning) == ([warning], False)
    assert built("") == ([], False)
    assert built("") == ([], True)


def test_a_build_that_failed_is_no_clean_one(built):
    """Objects before the one that failed may have remarks."""
    assert built("") == ([], False)
    with pytest.raises(builds.BuildError):
        built(builds.BuildError("no such file"))
    assert built("") == ([], False)


def test_other_kernels_are_not_checked(built):
    assert built("a.c:1: warning: a large stack", "ARCH=um") == ([], False)
    assert built("", "ARCH=um") == ([], True)
