# SPDX-License-Identifier: GPL-2.0
#
# Targets only.  What the module is made of is in Kbuild; library, tool and
# tests have makefiles of their own, called from here.  Everything built lands
# in out/, and a target that needs packages installs them itself (see
# scripts/setup.sh; KVTIER_SETUP=skip turns that off).

FLAVOUR ?= stock
DESTDIR ?=
PREFIX ?= /usr/local
TRACES ?=
OUT := $(CURDIR)/out
# Neither make nor rm -rf knows a path with blanks for one.
ifneq ($(words x$(CURDIR)x x$(OUT)x x$(DESTDIR)x x$(PREFIX)x),4)
$(error kvtier cannot be built in, or installed to, a path with blanks)
endif
VERSION := $(shell cat VERSION)
KREL ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KREL)/build
export OUT DESTDIR PREFIX TRACES KDIR

.PHONY: all help setup modules lib tools host-test policy-report crash kselftest check check-quick \
	check-long demo bench bench-readme shell fuzz fuzz-ioctl torture install uninstall dkms-install \
	dkms-uninstall clean

all: modules tools

help:
	@echo 'make demo            set everything up and run the main job in a VM (TRACES=DIR: real traces)'
	@echo 'make check           all test suites; check-quick: host and stock kernel only;'
	@echo '                     check-long: at full length, and the suites kcsan, policy, all of teeth'
	@echo 'make bench           measurements, into out/bench; bench-readme: puts them into README.md'
	@echo 'make shell           an interactive VM with everything in it'
	@echo 'make modules         kernel modules into out/FLAVOUR (FLAVOUR=stock|hooked|debug|newest|host;'
	@echo '                     host: the running kernel, or KREL=, KDIR=)'
	@echo 'make lib tools       library and tool'
	@echo 'make host-test fuzz  core logic in user space under sanitizers; fuzzers'
	@echo 'make fuzz-ioctl      commands in any order on the debug kernel (DURATION=seconds, 3600; SEED=N)'
	@echo 'make torture         everything at once, every byte read compared (DURATION=, FLAVOUR=stock|debug|kcsan)'
	@echo 'make policy-report   what policies keep of traces (TRACES=DIR: real ones): table, charts in out/policy'
	@echo 'make crash           the log on a simulated device that loses power 100,000 times'
	@echo 'make kselftest       build the in-VM test programs'
	@echo 'make install         module for the running kernel (or KREL=), library, tool, udev rules (DESTDIR=, PREFIX=)'
	@echo 'make dkms-install    the module by DKMS; then make -C lib install, make -C userspace install'
	@echo 'make uninstall dkms-uninstall clean'

setup:
	scripts/setup.sh all

modules:
	scripts/build-modules.sh $(FLAVOUR)

lib:
	scripts/setup.sh build
	$(MAKE) -C lib

tools: lib
	$(MAKE) -C userspace

host-test:
	scripts/setup.sh build test
	$(MAKE) -C selftests/host check

fuzz:
	scripts/setup.sh build test
	$(MAKE) -C selftests/host fuzz

fuzz-ioctl:
	scripts/fuzz-ioctl.sh $(or $(DURATION),3600) $(SEED)

torture:
	scripts/torture.sh $(or $(DURATION),3600) $(FLAVOUR)

policy-report: tools
	scripts/setup.sh build test
	$(MAKE) -C selftests/host sim
	selftests/host/policy_report.sh $(TRACES)

crash:
	scripts/setup.sh build test
	$(MAKE) -C selftests/host crash

kselftest: lib
	scripts/setup.sh vm
	$(MAKE) -C selftests/kselftest

check:
	scripts/check.sh full

check-quick:
	scripts/check.sh quick

check-long:
	scripts/check.sh long

demo:
	selftests/vm/demo.sh

bench:
	selftests/bench/run.sh

bench-readme:
	selftests/bench/run.sh readme

shell:
	selftests/vm/shell.sh

# modprobe finds what lies in updates/ before what came with the kernel.
install: FLAVOUR := host
install: modules tools
	@tr '\0' '\n' <$(OUT)/$(FLAVOUR)/kvtier.ko | grep -aqF 'vermagic=$(KREL) ' || \
		{ echo 'kvtier: the module is not one for kernel $(KREL): its build tree is KDIR=' >&2; exit 1; }
	install -d $(DESTDIR)/lib/modules/$(KREL)/updates
	install -m 644 $(OUT)/$(FLAVOUR)/kvtier.ko $(DESTDIR)/lib/modules/$(KREL)/updates/
	$(if $(DESTDIR),,depmod -a $(KREL))
	$(MAKE) -C lib install
	$(MAKE) -C userspace install

uninstall:
	rm -f $(DESTDIR)/lib/modules/$(KREL)/updates/kvtier.ko
	$(if $(DESTDIR),,depmod -a $(KREL))
	DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) scripts/uninstall.sh

# dkms keeps what it has built of a version, and cp the files that are no more.
dkms-install:
	$(if $(DESTDIR),,if dkms status -m kvtier -v $(VERSION) | grep -q .; then \
		dkms remove -m kvtier -v $(VERSION) --all; fi)
	rm -rf $(DESTDIR)/usr/src/kvtier-$(VERSION)
	install -d $(DESTDIR)/usr/src/kvtier-$(VERSION)
	cp -r dkms.conf Kbuild Makefile VERSION driver uapi $(DESTDIR)/usr/src/kvtier-$(VERSION)/
	$(if $(DESTDIR),,dkms install -m kvtier -v $(VERSION))

dkms-uninstall:
	$(if $(DESTDIR),,-dkms remove -m kvtier -v $(VERSION) --all)
	rm -rf $(DESTDIR)/usr/src/kvtier-$(VERSION)

clean:
	rm -rf $(OUT)
