# SPDX-License-Identifier: BSD-3-Clause
# The commands of this project; Meson and Ninja do the building underneath.

SETUP = config/setup.sh
# Options of a new build, for example MESONFLAGS=-Dwerror=true, which CI has.
export MESONFLAGS
CONFIGURE = umask 022; test -f build/build.ninja || meson setup build $(MESONFLAGS)

# What the demonstration runs, and no more: a newcomer waits for it.
DEMO_TARGETS = lib/verbs/libibverbs.so.1 lib/verbs/liburoce.so.0 lib/verbs/liburoce-attached.so app/uroce-run

.PHONY: all build tests demo check test test-since test-sanitized test-all soak simulate test-interop test-interop-quick test-interop-all test-package test-package-all test-debian13 test-arm64 bundle test-bundle perf perf-doc perf-rxe fuzz lint mutate coverage clean distclean help

all: build

# What is installed.
build:
	@$(SETUP) build
	@$(CONFIGURE)
	@umask 022; ninja -C build product

# The tests and examples, too.
tests:
	@$(SETUP) build
	@$(CONFIGURE)
	@umask 022; ninja -C build

demo:
	@$(SETUP) demo
	@$(CONFIGURE)
	@ninja -C build $(DEMO_TARGETS)
	@test/programs/tools/demo.sh

check:
	@$(MAKE) --no-print-directory build
	@ninja -C build meson-test-prereq
	@meson test -C build --no-rebuild --quiet --no-suite sim --no-suite sim-all --no-suite slow --num-processes $$((3 * $$(nproc)))

test:
	@$(SETUP) test
	@$(MAKE) --no-print-directory tests
	@test/run-all.py $(if $(ONLY),--only '$(ONLY)')

# What of `make check` a change can reach.
test-since:
	@$(SETUP) build
	@$(CONFIGURE)
	@test/since.py $(or $(COMMIT),HEAD)

# Unit tests, simulator and fuzz targets once more, under ASan, UBSan and TSan.
test-sanitized:
	@$(SETUP) test
	@test/run-all.py --sanitized

# What takes too long for each change: every combination, many kills, a minute of loss, long fuzzing.
test-all:
	@$(SETUP) test
	@$(MAKE) --no-print-directory tests
	@test/run-all.py --all

test-interop:
	@$(SETUP) interop
	@$(MAKE) --no-print-directory tests
	@test/interop/run.py

# Every value of each factor, and every pair of values, in place of all combinations.
test-interop-quick:
	@$(SETUP) interop
	@$(MAKE) --no-print-directory tests
	@test/interop/run.py --quick

test-interop-all:
	@$(SETUP) interop
	@$(MAKE) --no-print-directory tests
	@test/interop/run.py --all

# The release archive, Debian's packages, and a clean Debian with them; -all: also the examples of other languages than C, each
# of which installs a compiler.
test-package test-package-all:
	@$(SETUP) package
	@$(MAKE) --no-print-directory build
	@test/package/run.py $(if $(filter %-all,$@),--all)

# Debian 13 in build-debian13: built there, and tested by that release's programs.
test-debian13:
	@$(SETUP) package
	@test/platforms/run.py

# Built for arm64 in build-arm64, and tested there in qemu-user.
test-arm64:
	@$(SETUP) package
	@test/platforms/arm64.py

# One file with all that a host needs, for any Linux whose C library is not older than this machine's: a release is made on
# Debian 12. ARCHITECTURE: of a cross compiler that MESONFLAGS names.
bundle:
	@$(SETUP) build
	@umask 022; test -f build-bundle/build.ninja || meson setup build-bundle $(MESONFLAGS) -Dbundle=true -Dtests=false \
		--prefix=/ --bindir=bin --sbindir=bin --libdir=lib
	@umask 022; ninja -C build-bundle product
	@umask 022; config/bundle/make.sh $(ARCHITECTURE)

# It is unpacked and used in Debian 12, 13 and forky.
test-bundle:
	@$(SETUP) package
	@$(MAKE) --no-print-directory bundle
	@test/platforms/bundle.py

# Random programs on every CPU; what fails is named, and kept in build/soak.
soak:
	@$(SETUP) build
	@$(CONFIGURE)
	@ninja -C build test/sim/sim
	@mkdir -p build/soak
	@build/test/sim/sim --hours $(or $(HOURS),1) --jobs 0 --vary --save build/soak

# The transport in simulated networks: doc/results/network.md's tables and plots anew.
simulate:
	@$(SETUP) perf
	@$(CONFIGURE)
	@ninja -C build test/net/net
	@python3 test/net/tables.py --document

perf:
	@$(SETUP) perf
	@$(MAKE) --no-print-directory tests
	@python3 test/perf/perf.py --build build

perf-rxe:
	@$(SETUP) interop
	@$(MAKE) --no-print-directory tests
	@test/interop/beside_rxe.py

# What fails is named and left as it was.
perf-doc:
	@$(SETUP) perf
	@$(MAKE) --no-print-directory tests
	@python3 test/perf/perf.py --build build --json build/perf.json; status=$$?; \
		python3 test/perf/document.py --build build --json build/perf.json && exit $$status

# Faults that can be read: clang-tidy and GCC's analyzer compile what has changed since SINCE, or all.
lint:
	@$(SETUP) lint
	@$(CONFIGURE)
	@test/lint.py $(if $(SINCE),--since $(SINCE))

# One change at a time, which the room's unit tests must notice.
mutate:
	@$(SETUP) build
	@test/mutate.py $(ROOM) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

coverage:
	@$(SETUP) coverage
	@test/coverage.py $(if $(DOCUMENT),--document)

fuzz:
	@$(SETUP) test
	@test/run-all.py --fuzz-seconds $(or $(SECONDS),600)

clean:
	rm -rf build build-asan build-tsan build-coverage build-mutate build-package build-bundle

distclean: clean
	rm -rf build-interop build-interop-backports build-debian13 build-forky build-arm64

help:
	@echo "make               build what is installed (gets the packages it needs, as root); make tests: the tests, too"
	@echo "make demo          ib_write_bw on uroce, two processes, as the first thing to see"
	@echo "make check         unit tests, ABI and a short simulation, in less than a minute: while you change code"
	@echo "make test          unit tests, simulator, programs and storage: before you land a change"
	@echo "make test ONLY=X   unit tests and checks of programs whose name contains X"
	@echo "make test-since COMMIT=X   what of make check the changes since X can reach"
	@echo "make test-sanitized  unit tests, simulator and fuzz targets under ASan, UBSan and TSan"
	@echo "make test-all      all of that, sanitized too, with every combination, many kills, long fuzzing: for a night"
	@echo "make soak          random programs in the simulator, on every CPU, for HOURS=1"
	@echo "make simulate      the transport in simulated networks: doc/results/network.md anew; 5 minutes"
	@echo "make test-interop  RDMA programs and storage between uroce and Linux's rxe in a virtual machine"
	@echo "make test-interop-quick  the same with a choice of combinations"
	@echo "make test-interop-all  the same, and every NIC model with every driver; an hour"
	@echo "make test-package  Debian's packages, installed and used in a clean Debian; 5 minutes"
	@echo "make test-package-all  the same, and the examples of doc/user/ci.md in each language"
	@echo "make test-debian13 build and test in a Debian 13, which is kept in build-debian13"
	@echo "make test-arm64    build for arm64, and test in qemu-user; both are kept in build-arm64"
	@echo "make bundle        one file that needs nothing installed and no root: build-bundle/uroce-VERSION-ARCHITECTURE.tar.gz"
	@echo "make test-bundle   the same, used in Debian 12, 13 and forky; a minute, the first time 10"
	@echo "make perf          what it gives, beside its marks and the limits of the machine; 15 minutes"
	@echo "make perf-doc      the same, and doc/results/performance.md, its plots and the README's figures anew; 25 minutes"
	@echo "make perf-rxe      uroce beside Linux's rxe, between two virtual machines"
	@echo "make fuzz          the fuzz targets for SECONDS=600"
	@echo "make lint          clang-tidy, GCC's analyzer, spelling, shell scripts, format; SINCE=COMMIT: only changed C files"
	@echo "make mutate ROOM=lib/cm  changes one place at a time, and lists what no unit test notices; COUNT=100 changes"
	@echo "make coverage      which lines and branches the unit tests run, by room; build-coverage/html shows each"
	@echo "make clean         remove what was built; make distclean: the virtual machine's image and other Debians, too"
