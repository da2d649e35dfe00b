# SPDX-License-Identifier: GPL-2.0
# l4lb: a layer-4 load balancer for Linux. "make help" lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The kernel to build against: the running one if its headers are installed, else
# the newest Debian 6.12 headers (the kernel that the lab runs).
running := /lib/modules/$(shell uname -r)/build
headers := $(lastword $(shell ls -d /usr/src/linux-headers-6.12*-amd64 2>/dev/null | \
	grep -v -e -cloud- -e -rt- | sort -V))
KDIR ?= $(if $(wildcard $(running)/Makefile),$(running),$(headers))

kdir     = $(abspath $(KDIR))
# Not from include/config/kernel.release, which on Debian differs from uname -r.
KREL     = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(kdir)/include/generated/utsrelease.h 2>/dev/null)
out      = $(CURDIR)/build
# The suite calls the same folder by a name that is the same for each checkout.
OBJECTS ?= $(out)/obj
obj      = $(OBJECTS)/$(KREL)
# MAKEFLAGS passes ARCH=, W=1, CC= and the like on to Kbuild.
kbuild   = $(MAKE) --no-print-directory -C $(kdir) M=$(obj) \
	$(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

PREFIX  ?= /usr
DESTDIR ?=
CACHE   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/l4lb
PYTHON  ?= $(CACHE)/venv/bin/python3

.PHONY: help
help:
	@echo 'l4lb targets:'
	@echo '  demo        real requests over four servers by NAT, tunnel and direct routing'
	@echo '  demo-ha     two directors: one dies under 200 downloads, and comes back; nothing is lost'
	@echo '  test        the test suite, each test on the kernel that runs it fastest (8 minutes)'
	@echo '              (TESTS=PATTERN KERNEL=uml|uml-6.1|virtual-time|virtual-time-6.1|6.12|6.1|debug|host SEED=N)'
	@echo '  test-all    all tests on every kernel, and on in-tree ip_vs as the control (hours)'
	@echo '  interop     l4lb in one guest and in-tree ip_vs in another synchronise connections (COUNT=200)'
	@echo '  test-packages  the Debian packages, built, installed, upgraded, removed (RELEASES="bookworm trixie")'
	@echo '  coverage    lines of the modules that the tests execute (TESTS=PATTERN; 15 minutes the first time)'
	@echo '  mutants     breaks the product on purpose: do the tests notice?'
	@echo '              (MUTANTS="nat-* fast" JOBS=N)'
	@echo '  fuzz-config  random configuration commands to in-tree ip_vs and l4lb, compared'
	@echo '              (SEED=1 SEEDS=1 COUNT=10000 KERNEL=6.12|6.1|debug, or REPLAY=FILE)'
	@echo '  fuzz-packets  random packets through in-tree ip_vs and l4lb, compared'
	@echo '              (SEED=1 COUNT=10000 KERNEL=6.12|6.1, or REPLAY=SEED:CASE)'
	@echo '  fuzz-sequences  random commands, packets, resizes, namespaces and module loads without memory'
	@echo '              (SEED=1 COUNT=300 KERNEL=debug, or REPLAY=FILE)'
	@echo '  fuzz-sync   changed synchronisation messages to their reader, as a program (SECONDS=60 or COUNT=10000000,'
	@echo '              SEED=N, or REPLAY=FILE)'
	@echo '  fuzz-files  changed configuration files to the readers of ipvsctl, as a program (the same)'
	@echo '  bench-schedulers  schedulers compared on the paper'"'"'s test bed in virtual time'
	@echo '              (SCHED="rr mine" SERVERS="1 2 4" SEED=N QUICK=1 UPDATE=1; an hour, quick 3 minutes;'
	@echo '              COMPARE="rr mine": without traffic, seconds)'
	@echo '  bench       speed, memory and tables of l4lb, compared with in-tree ip_vs'
	@echo '              (KERNEL=6.12|6.1|uml GROUPS="new flows" ROUNDS=N QUICK=1 RESUME=1; quick 6 minutes)'
	@echo '  bench-instructions  instructions per packet, compared with the recorded figures'
	@echo '  bench-misses  modelled cache misses per packet, compared with the recorded figures'
	@echo '              (KERNEL=6.12|6.1 UPDATE=1; 2 minutes)'
	@echo '  bench-scale-out  several directors behind a router: cost, flows that break (KERNEL=6.12|6.1 QUICK=1)'
	@echo '  bench-failover  10,000 downloads through a pair of which one director dies and comes back, and ip_vs'"'"'s pair'
	@echo '              (DOWNLOADS=10000 QUICK=1; 9 minutes, quick 3)'
	@echo '  bench-resync  all connections to a peer that has none, and what is forwarded meanwhile'
	@echo '  bench-tool  ipvsctl with 10,000 services: apply, diff, top, events, an exchange of the module'
	@echo '  bench-bulk  large TCP transfers beside plain forwarding, by instructions (KERNEL=6.12|6.1 ROUNDS=N QUICK=1)'
	@echo '  soak        full speed while the configuration changes (MINUTES=60 SEED=N KERNEL=6.12|6.1 XDP=1)'
	@echo '  torture     hostile input and faults for hours, while honest connections stay open'
	@echo '              (HOURS=1 KERNEL=6.12|6.1|debug|uml SEED=N PHASES="packets unloads"; at most 2 hours, then carries on)'
	@echo '  modules     builds the kernel modules into build/RELEASE/ (KDIR=DIR, ARCH=um, W=1)'
	@echo '  ipvsctl     builds the command-line tool as build/ipvsctl'
	@echo '  install     installs modules (for the kernel of KDIR) and ipvsctl (PREFIX=$(PREFIX), DESTDIR=, SIGN_KEY=,'
	@echo '              SIGN_CERT=); install-dkms: the sources for dkms, in /usr/src'
	@echo '  uninstall   removes the installed files'
	@echo '  deb         Debian packages in build/deb: l4lb-dkms, ipvsctl, l4lb-doc'
	@echo '  deps        installs the Debian packages that demo and test need (they run it themselves)'
	@echo '  style       checks the sources with checkpatch, sparse, shellcheck, ruff and others'
	@echo '  clean       removes build/'
	@echo 'KDIR=$(KDIR)'

# Kbuild writes beside the sources, so it builds in a mirror of them. Copying by
# content keeps the time stamps of unchanged files, so builds are incremental.
.PHONY: objects modules
objects:
	@test -n '$(KDIR)' || { echo "no kernel headers here: run 'make deps', or name a kernel build directory with KDIR=" >&2; exit 1; }
	@test -n '$(KREL)' || { echo '$(KDIR) is not a configured kernel build directory (no include/generated/utsrelease.h)' >&2; exit 1; }
	@mkdir -p $(obj)
	+@exec 9>$(obj).lock; flock 9; \
	rsync -rc --delete --prune-empty-dirs --include='*/' --include='*.[chS]' --include=Kbuild \
		--exclude='*' Kbuild kernel schedulers $(obj)/; \
	$(kbuild) modules

modules: objects
	@exec 9>$(obj).lock; flock 9; \
	! grep -qs '^CONFIG_DEBUG_INFO_BTF_MODULES=y' $(kdir)/.config || \
		kernel/add-btf $(obj)/kernel/l4lb.ko $(KREL) || :; \
	mkdir -p $(out)/$(KREL); rm -f $(out)/$(KREL)/.new-*; \
	sed 's/\.o$$/.ko/' $(obj)/modules.order | while read -r ko; do \
		[[ $$ko == /* ]] || ko=$(obj)/$$ko; \
		cmp -s $$ko $(out)/$(KREL)/$${ko##*/} || \
		{ cp $$ko $(out)/$(KREL)/.new-$${ko##*/}; \
		  mv $(out)/$(KREL)/.new-$${ko##*/} $(out)/$(KREL)/$${ko##*/}; }; \
	done; \
	for ko in $(out)/$(KREL)/*.ko; do \
		grep -q "/$$(basename $$ko .ko)\.k\?o$$" $(obj)/modules.order || rm $$ko; \
	done

# Schedulers that are wrong on purpose, and the example of schedulers/README.md (renamed, so
# that it does not clash with a copy in schedulers/), into build/RELEASE/tests/; not installed.
.PHONY: test-modules
test-modules: modules
	@mkdir -p $(obj)-tests $(out)/$(KREL)/tests
	+@exec 9>$(obj)-tests.lock; flock 9; \
	rsync -rc --delete --exclude=l4lb_example.c --include='*.c' --include=Kbuild --exclude='*' \
		tests/modules/ $(obj)-tests/; \
	sed -n '/^```c$$/,/^```$$/{/^```/d;s/\<mine/example/g;p}' schedulers/README.md >$(obj)-tests/.example; \
	cmp -s $(obj)-tests/.example $(obj)-tests/l4lb_example.c || \
		cp $(obj)-tests/.example $(obj)-tests/l4lb_example.c; \
	$(MAKE) --no-print-directory -C $(kdir) M=$(obj)-tests L4LB=$(obj) \
		KBUILD_EXTRA_SYMBOLS=$(obj)/Module.symvers modules; \
	cp -u $(obj)-tests/*.ko $(out)/$(KREL)/tests/

# The packet generator of bench/speed, into build/RELEASE/bench/; not installed.
.PHONY: bench-modules
bench-modules: modules
	@mkdir -p $(obj)-bench $(out)/$(KREL)/bench
	+@exec 9>$(obj)-bench.lock; flock 9; \
	rsync -rc --delete --include='*.[ch]' --include=Kbuild --exclude='*' bench/gen/ $(obj)-bench/; \
	$(MAKE) --no-print-directory -C $(kdir) M=$(obj)-bench L4LB=$(obj) modules; \
	cp -u $(obj)-bench/*.ko $(out)/$(KREL)/bench/

.PHONY: ipvsctl
ipvsctl:
	@$(MAKE) --no-print-directory -C tools/ipvsctl O=$(out)

.PHONY: deps
deps:
	@tests/lab/deps

.PHONY: demo demo-ha
demo demo-ha:
	@tests/lab/deps
	@tests/lab/$@

.PHONY: test test-all
# On a new machine the kernel for the tests is built while the other packages are installed;
# the suite waits for it.
test:
	@$(if $(KERNEL),,if tests/lab/deps --kernel; then tests/lab/uml-build plain >/dev/null 2>&1 & fi)
	@tests/lab/deps
	@tests/lab/suite $(if $(TESTS),-k '$(TESTS)') $(if $(SEED),--seed '$(SEED)') $(KERNEL)
# The results of all parts are summed; the other parts run even if one fails.
test-all:
	@tests/lab/deps
	@status=0; \
	tests/lab/suite --tier all --timeout 10800 || status=1; \
	tests/lab/suite --tier all --timeout 10800 --keep debug uml-6.1 virtual-time-6.1 6.1 || status=1; \
	tests/lab/suite --keep --label ip_vs uml -- --backend ip_vs || status=1; \
	tests/lab/suite --keep --label ip_vs -k 'test_master or test_pair or test_backup' virtual-time \
		-- --backend ip_vs || status=1; \
	tests/lab/suite --tier all --keep --label xdp -k fast_path 6.12 -- --xdp || status=1; \
	tests/lab/interop || status=1; \
	for path in 0 2 unwatched; do \
		tests/lab/suite --keep --label fast-path-$$path uml -- --fast-path $$path || status=1; \
	done; \
	exit $$status

# Directors of both kinds announce their connections to each other.
.PHONY: interop
interop:
	@tests/lab/interop $(call options,count kernel)

# Which lines of the modules the tests execute, on a kernel that counts them (its first build
# takes minutes).
.PHONY: coverage
coverage:
	@tests/lab/deps
	@tests/lab/coverage $(if $(TESTS),-k '$(TESTS)') $(if $(SEED),--seed '$(SEED)') $(KERNEL)

.PHONY: mutants
mutants:
	@tests/lab/deps
	@tests/lab/mutants $(if $(JOBS),--jobs '$(JOBS)') $(foreach pattern,$(MUTANTS),'$(pattern)')

# Defaults of these targets only: bench-schedulers gets a SEED only from the command line.
fuzz-config fuzz-packets fuzz-sequences: SEED ?= 1
fuzz-config: SEEDS ?= 1
fuzz-config fuzz-packets: COUNT ?= 10000
fuzz-config fuzz-packets: KERNEL ?= 6.12
fuzz-sequences: COUNT ?= 300
fuzz-sequences: KERNEL ?= debug

.PHONY: fuzz-config
fuzz-config:
	@tests/lab/deps
	@tests/lab/suite --tier all --show -k test_same_answers $(KERNEL) -- -s --config-count $(COUNT) \
		$(if $(REPLAY),--config-replay '$(REPLAY)',--config-seed $(SEED) --config-seeds $(SEEDS))

.PHONY: fuzz-packets
fuzz-packets:
	@tests/lab/deps
	@tests/lab/fuzz-packets --kernel $(KERNEL) \
		$(if $(REPLAY),--replay '$(REPLAY)',--seed $(SEED) --count $(COUNT))

.PHONY: fuzz-sequences
fuzz-sequences:
	@tests/lab/deps
	@tests/lab/suite --tier all --show -k test_sequence --timeout 10800 $(KERNEL) -- -s \
		$(if $(REPLAY),--sequence-replay '$(REPLAY)',--sequence-seed $(SEED) --sequence-count $(COUNT))

.PHONY: fuzz-sync fuzz-files
fuzz-sync fuzz-files:
	@tests/lab/fuzz-program $(@:fuzz-%=%) $(call options,seconds count seed replay)

# Make variables become command-line options of the same name: SEED=1 becomes --seed 1.
options = $(foreach name,$(1),\
	$(if $($(shell tr a-z A-Z <<<$(name))),--$(name) '$($(shell tr a-z A-Z <<<$(name)))'))

options_speed       = kernel groups rounds
options_schedulers  = sched servers experiments seed repeat jobs compare flows hold
# The papers' other experiments: see bench/README.md.
options_connections = kernel requests seed
options_site        = kernel seconds together seed
options_relay       = kernel rate seed
options_priority    = counts seeds ends jobs
options_scale-out   = kernel
# The drill of doc/high-availability.md.
options_failover    = downloads
options_resync      = kernel
options_tool        = kernel
options_bulk        = kernel rounds seed

BENCHES = schedulers connections site relay priority scale-out failover resync tool bulk
.PHONY: bench bench-speed $(BENCHES:%=bench-%)
bench: bench-speed
bench-speed $(BENCHES:%=bench-%): bench-%:
	@tests/lab/deps
	@bench/$* $(call options,$(options_$*)) $(if $(filter-out 0,$(QUICK)),--quick) \
		$(if $(filter-out 0,$(UPDATE)),--update) $(if $(filter-out 0,$(RESUME)),--resume)

.PHONY: bench-instructions bench-misses
bench-instructions bench-misses: bench-%:
	@tests/lab/deps
	@bench/$* $(call options,kernel) $(if $(filter-out 0,$(UPDATE)),--update)

.PHONY: soak
soak:
	@tests/lab/deps
	@bench/soak $(call options,kernel minutes seed) $(if $(XDP),--xdp)

.PHONY: torture
torture:
	@tests/lab/deps
	@tests/lab/torture $(call options,hours kernel seed phases)

.PHONY: style
style:
	@tests/lab/style

# ---- installation ----

VERSION  = $(shell sed -n 's/^MODULE_VERSION("\(.*\)");/\1/p' kernel/main.c)
moddir   = $(DESTDIR)/lib/modules/$(KREL)/updates/l4lb
libdir   = $(DESTDIR)/usr/lib
mandir   = $(DESTDIR)$(PREFIX)/share/man
sharedir = $(DESTDIR)$(PREFIX)/share
bashdir  = $(sharedir)/bash-completion/completions
# Debian's zsh reads packages' files in another folder than those of /usr/local.
zshdir   = $(sharedir)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
fishdir  = $(sharedir)/fish/vendor_completions.d
dkmsdir  = $(DESTDIR)/usr/src/l4lb-$(VERSION)
# What the loader of modules checks where Secure Boot is on: see doc/installation.md.
SIGN_KEY  ?=
SIGN_CERT ?=

.PHONY: install install-modules install-system install-tool install-dkms uninstall
install: install-modules install-system install-tool

# The debugging information is nine tenths of a module. A signature comes after its removal.
install-modules: modules
	@test -z '$(SIGN_KEY)' || test -r '$(SIGN_CERT)' || { echo 'SIGN_KEY needs its certificate: SIGN_CERT=FILE' >&2; exit 1; }
	install -d $(moddir)
	install -m 644 $(out)/$(KREL)/*.ko $(moddir)/
	strip --strip-debug $(moddir)/*.ko
	$(if $(SIGN_KEY),for ko in $(moddir)/*.ko; do \
		$(kdir)/scripts/sign-file sha256 '$(SIGN_KEY)' '$(SIGN_CERT)' $$ko; done)
	$(if $(DESTDIR),@echo 'DESTDIR is set: run depmod $(KREL) on the target',depmod $(KREL))

# Files about the modules that are the same for each kernel.
install-system:
	install -d $(libdir)/modprobe.d $(libdir)/modules-load.d $(libdir)/sysctl.d $(mandir)/man7
	install -m 644 tools/modprobe.d/l4lb.conf $(libdir)/modprobe.d/
	install -m 644 tools/system/modules-load.conf $(libdir)/modules-load.d/l4lb.conf
	install -m 644 tools/system/sysctl.conf $(libdir)/sysctl.d/60-l4lb.conf
	install -m 644 doc/l4lb.7 $(mandir)/man7/

install-tool: ipvsctl
	install -d $(DESTDIR)$(PREFIX)/sbin $(mandir)/man8 $(bashdir) $(zshdir) $(fishdir) \
		$(libdir)/systemd/system $(DESTDIR)/etc/l4lb
	install -m 755 $(out)/ipvsctl $(DESTDIR)$(PREFIX)/sbin/
	install -m 644 tools/ipvsctl/ipvsctl.8 $(mandir)/man8/
	install -m 644 tools/ipvsctl/ipvsctl.bash $(bashdir)/ipvsctl
	install -m 644 tools/ipvsctl/ipvsctl.zsh $(zshdir)/_ipvsctl
	install -m 644 tools/ipvsctl/ipvsctl.fish $(fishdir)/ipvsctl.fish
	install -D -m 644 tools/ipvsctl/config.schema.json $(sharedir)/ipvsctl/config.schema.json
	install -D -m 644 tools/grafana/l4lb.json $(sharedir)/ipvsctl/grafana/l4lb.json
	for unit in system/l4lb.service systemd/ipvsctl-metrics.service systemd/ipvsctl-metrics.timer; do \
		sed 's|@SBIN@|$(PREFIX)/sbin|' tools/$$unit >$(libdir)/systemd/system/$${unit##*/} || exit; done

# The sources for dkms, which builds them for each kernel: dkms install l4lb/VERSION
install-dkms:
	install -d $(dkmsdir)
	find Kbuild kernel schedulers -name '*.[ch]' -o -name Kbuild | \
		while read -r file; do install -D -m 644 $$file $(dkmsdir)/$$file; done
	install -m 755 kernel/add-btf $(dkmsdir)/kernel/
	sed 's/#MODULE_VERSION#/$(VERSION)/' tools/dkms/dkms.conf >$(dkmsdir)/dkms.conf

# /etc/l4lb stays if there are files in it.
uninstall:
	@test -n '$(KREL)' || { echo 'no kernel release: name the kernel build directory with KDIR=' >&2; exit 1; }
	rm -rf $(moddir) $(dkmsdir)
	rm -f $(libdir)/modprobe.d/l4lb.conf $(libdir)/modules-load.d/l4lb.conf $(libdir)/sysctl.d/60-l4lb.conf \
		$(libdir)/systemd/system/l4lb.service $(libdir)/systemd/system/ipvsctl-metrics.service \
		$(libdir)/systemd/system/ipvsctl-metrics.timer $(mandir)/man7/l4lb.7 \
		$(DESTDIR)$(PREFIX)/sbin/ipvsctl $(mandir)/man8/ipvsctl.8 \
		$(bashdir)/ipvsctl $(zshdir)/_ipvsctl $(fishdir)/ipvsctl.fish \
		$(sharedir)/ipvsctl/config.schema.json $(sharedir)/ipvsctl/grafana/l4lb.json
	rmdir $(sharedir)/ipvsctl/grafana $(sharedir)/ipvsctl 2>/dev/null || true
	rmdir $(DESTDIR)/etc/l4lb 2>/dev/null || true
	$(if $(DESTDIR),,depmod $(KREL))

# Debian packages of the files that git knows, in build/deb.
.PHONY: deb
deb:
	@tools/deb $(out)/deb

# They are built, installed, upgraded and removed in new roots of Debian 12 and 13.
.PHONY: test-packages
test-packages: deps ipvsctl
	@tests/lab/deps --packages
	@tests/lab/packages $(RELEASES)

.PHONY: clean
clean:
	rm -rf build
