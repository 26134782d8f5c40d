#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages of Debian and reserves the huge pages that building, running or testing needs.
#
# usage: config/setup.sh [PART...]
#   build      what `make` needs (the default)
#   demo       build, perftest and huge pages
#   test       demo and what the tests that need no virtual machine use
#   perf       test and what draws plots of performance
#   interop    test and what boots the Linux peer
#   lint       build and what reads the files without running them
#   coverage   build and what tells which lines the unit tests run
#   package    build and what builds Debian's packages and tries them in a clean root
#   hugepages  huge pages only
#
# The script does only what is missing, so it is safe (and quick) to run again.
set -uo pipefail
umask 022

BUILD_PKGS="dpdk dpdk-dev libdpdk-dev make meson ninja-build gcc libc6-dev pkgconf libibverbs-dev
	librdmacm-dev libisal-dev libjson-c-dev libcmocka-dev"
DEMO_PKGS="perftest"
TEST_PKGS="clang clang-format libclang-rt-dev ibverbs-providers ibverbs-utils rdmacm-utils iproute2 ethtool
	iperf3 tcpdump tshark python3 pyflakes3 python3-pyverbs tgt libiscsi-bin qemu-utils qemu-block-extra fio ucx-utils
	openmpi-bin libopenmpi-dev libfabric-bin qperf python3-jsonschema python3-prometheus-client
	dapl2-utils libgloo-dev g++ valgrind elfutils ceph-mon ceph-osd ceph-common codespell shellcheck prometheus"
PERF_PKGS="gnuplot-nox libiscsi-dev"
INTEROP_PKGS="qemu-system-x86 cpio kmod open-iscsi e2fsprogs nvme-cli"
LINT_PKGS="clang clang-format clang-tidy codespell pyflakes3 shellcheck"
COVERAGE_PKGS="gcovr"
PACKAGE_PKGS="build-essential dpkg-dev debhelper lintian mmdebstrap systemd util-linux iproute2 ibverbs-utils python3
	podman catatonit"

# Do the same on a system without dpkg: names of pkg-config with ".pc", and commands.
BUILD_PARTS="pkg-config meson ninja cc libdpdk.pc libibverbs.pc libisal.pc json-c.pc cmocka.pc"
DEMO_PARTS="ib_write_bw"
TEST_PARTS="clang clang-format codespell shellcheck ibv_devinfo rping ip ethtool iperf3 tcpdump tshark python3 pyflakes3 tgtd iscsi-inq qemu-io fio ucx_perftest mpirun mpicc fi_pingpong valgrind promtool"
LINT_PARTS="clang clang-format clang-tidy codespell pyflakes3 shellcheck"
COVERAGE_PARTS="gcovr"
PERF_PARTS="gnuplot libiscsi.pc"
PACKAGE_PARTS="dpkg-buildpackage dh lintian mmdebstrap systemd-analyze unshare ip ibv_devinfo python3"
INTEROP_PARTS="qemu-system-x86_64 cpio modprobe iscsiadm mkfs.ext4 nvme"

APT_LISTS=/var/lib/apt/lists

HUGEPAGES_WANTED=256 # of 2 MiB: a process takes 26 MiB and more, the tests run several at once
HUGEPAGES_SHARE=8    # of the memory, one part in that many at most
HUGEPAGES_DIR=/sys/kernel/mm/hugepages/hugepages-2048kB
HUGEPAGES_MOUNT=/dev/hugepages

die()
{
	printf 'setup: %s\n' "$@" >&2
	exit 1
}

note()
{
	printf 'setup: %s\n' "$*" >&2
}

# Print the given packages that are not installed.
missing_packages()
{
	local pkg

	for pkg in "$@"; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$pkg" 2>/dev/null)" = installed ] ||
			printf '%s ' "$pkg"
	done
}

# Print the given parts that are not there.
missing_parts()
{
	local part

	for part in "$@"; do
		case $part in
		*.pc) pkg-config --exists "${part%.pc}" 2>/dev/null ;;
		*) command -v "$part" >/dev/null ;;
		esac || printf '%s ' "${part%.pc}"
	done
}

# Without apt nothing is installed: print what is missing.
check_parts()
{
	local missing

	missing=$(missing_parts "$@")
	[ -z "$missing" ] || die "this is not Debian; install by hand what brings: $missing"
}

apt_install()
{
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
		-o DPkg::Lock::Timeout=120 "$@" \
		>"$apt_log" 2>&1 </dev/null
}

# Images of containers often have no lists.
have_lists()
{
	compgen -G "$APT_LISTS/*_Packages*" >/dev/null
}

# Lists of the last day have every package that the release has.
lists_are_new()
{
	have_lists && [ -n "$(find $APT_LISTS -maxdepth 0 -mtime -1)" ]
}

# Print those of the given packages that apt can install; all of them where apt has no lists yet.
known_packages()
{
	local pkg found

	found=$(apt-cache show --no-all-versions "$@" 2>/dev/null | sed -n 's/^Package: //p')
	for pkg in "$@"; do
		! have_lists || grep -qFx -- "$pkg" <<<"$found" || continue
		printf '%s ' "$pkg"
	done
}

# Say which packages this release does not have: tests that need them are skipped by name.
tell_unknown() # MISSING KNOWN
{
	local pkg unknown=''

	for pkg in $1; do
		case " $2 " in
		*" $pkg "*) ;;
		*) unknown+=" $pkg" ;;
		esac
	done
	[ -z "$unknown" ] || note "this release lacks:$unknown"
}

# Install the packages that this release has.
install_known() # MISSING KNOWN
{
	tell_unknown "$1" "$2"
	[ -n "$2" ] || return 0
	note "installing $2"
	# shellcheck disable=SC2086
	apt_install $2
}

# Run apt-get update only if the present lists do not lead to the packages.
setup_packages()
{
	local missing known

	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	# shellcheck disable=SC2086 # a list of names
	known=$(known_packages $missing)
	if [ "$(id -u)" != 0 ]; then
		tell_unknown "$missing" "$known"
		[ -n "$known" ] || return 0
		die "packages are missing and only root can install them; run:" \
			"  sudo apt-get install --no-install-recommends $known"
	fi
	apt_log=$(mktemp)
	trap 'rm -f "$apt_log"' EXIT
	if [ "$known" = "$missing" ] || lists_are_new; then
		install_known "$missing" "$known" && return
	fi
	note "refreshing the package lists"
	apt-get update >"$apt_log" 2>&1 </dev/null && touch $APT_LISTS
	# shellcheck disable=SC2086
	known=$(known_packages $missing)
	install_known "$missing" "$known" && return
	tail -n 15 "$apt_log" >&2
	die "apt could not install the packages (its last words are above); when that is solved, run:" \
		"  apt-get update && apt-get install --no-install-recommends $known"
}

# Fewer huge pages than wanted is a warning: uroce runs on ordinary pages too, only slower.
setup_hugepages()
{
	local have want memory_kib

	if [ ! -r $HUGEPAGES_DIR/nr_hugepages ]; then
		note "this kernel has no 2 MiB huge pages; uroce will run on ordinary pages, slower"
		return 0
	fi
	memory_kib=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
	want=$((memory_kib / HUGEPAGES_SHARE / 2048))
	[ "$want" -lt $HUGEPAGES_WANTED ] || want=$HUGEPAGES_WANTED
	have=$(<$HUGEPAGES_DIR/nr_hugepages)
	if [ "$have" -lt "$want" ]; then
		{ echo "$want" >$HUGEPAGES_DIR/nr_hugepages; } 2>/dev/null
		have=$(<$HUGEPAGES_DIR/nr_hugepages)
	fi
	[ "$have" -ge "$want" ] ||
		note "only $have of $want huge pages (of 2 MiB) are reserved; uroce may run on" \
			"ordinary pages, slower. As root, best just after boot:" \
			"echo $want >$HUGEPAGES_DIR/nr_hugepages"

	hugetlbfs_mounted && return 0
	{ mkdir -p $HUGEPAGES_MOUNT && mount -t hugetlbfs -o pagesize=2M none $HUGEPAGES_MOUNT; } \
		2>/dev/null && return
	note "hugetlbfs is not mounted; uroce will run on ordinary pages, slower. As root:" \
		"mkdir -p $HUGEPAGES_MOUNT && mount -t hugetlbfs -o pagesize=2M none $HUGEPAGES_MOUNT"
}

hugetlbfs_mounted()
{
	grep -q "^[^ ]* [^ ]* hugetlbfs .*pagesize=2M" /proc/mounts
}

main()
{
	local part pkgs='' parts='' huge=

	[ $# -gt 0 ] || set -- build
	for part in "$@"; do
		case $part in
		build) pkgs+=" $BUILD_PKGS" parts+=" $BUILD_PARTS" ;;
		demo)
			pkgs+=" $BUILD_PKGS $DEMO_PKGS" parts+=" $BUILD_PARTS $DEMO_PARTS"
			huge=1
			;;
		test)
			pkgs+=" $BUILD_PKGS $DEMO_PKGS $TEST_PKGS"
			parts+=" $BUILD_PARTS $DEMO_PARTS $TEST_PARTS"
			huge=1
			;;
		perf)
			pkgs+=" $BUILD_PKGS $DEMO_PKGS $TEST_PKGS $PERF_PKGS"
			parts+=" $BUILD_PARTS $DEMO_PARTS $TEST_PARTS $PERF_PARTS"
			huge=1
			;;
		interop)
			pkgs+=" $BUILD_PKGS $DEMO_PKGS $TEST_PKGS $INTEROP_PKGS"
			parts+=" $BUILD_PARTS $DEMO_PARTS $TEST_PARTS $INTEROP_PARTS"
			huge=1
			;;
		lint) pkgs+=" $BUILD_PKGS $LINT_PKGS" parts+=" $BUILD_PARTS $LINT_PARTS" ;;
		coverage) pkgs+=" $BUILD_PKGS $COVERAGE_PKGS" parts+=" $BUILD_PARTS $COVERAGE_PARTS" ;;
		package) pkgs+=" $BUILD_PKGS $PACKAGE_PKGS" parts+=" $BUILD_PARTS $PACKAGE_PARTS" ;;
		hugepages) huge=1 ;;
		-h | --help)
			sed -n '3,15s/^# \{0,1\}//p' "$0"
			return 0
			;;
		*) die "unknown part '$part'; use: build, demo, test, perf, interop, lint, coverage, package, hugepages" ;;
		esac
	done
	# shellcheck disable=SC2086 # lists of names
	if [ -n "$pkgs" ]; then
		if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
			setup_packages $pkgs || return
		else
			check_parts $parts
		fi
	fi
	[ -z "$huge" ] || setup_hugepages
	return 0
}

main "$@"
