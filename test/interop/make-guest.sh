#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Linux peer: Debian's kernel with rdma_rxe and a small initramfs with RDMA programs.
#
# usage: make-guest.sh DIR PEER [backports]
#   leaves DIR/vmlinuz and DIR/initrd; does nothing where they are current
#   PEER       our own program for both sides (peer.c)
#   backports  the newest kernel of bookworm-backports, with more of rxe than the release's
#
# Only the kernel and busybox are downloaded, and only unpacked. The programs and libraries are
# copied from this machine, where they were installed by `config/setup.sh interop`.
set -euo pipefail

GUEST_BINS="/usr/bin/ibv_devinfo /usr/bin/ibv_asyncwatch /usr/bin/ibv_rc_pingpong /usr/bin/ibv_uc_pingpong
	/usr/bin/ibv_ud_pingpong /usr/bin/ibv_srq_pingpong /usr/bin/rdma
	/usr/bin/ib_send_bw /usr/bin/ib_send_lat /usr/bin/ib_write_bw /usr/bin/ib_write_lat
	/usr/bin/ib_read_bw /usr/bin/ib_read_lat /usr/bin/ib_atomic_bw /usr/bin/ib_atomic_lat
	/usr/bin/rping /usr/bin/ucmatose /usr/bin/rdma_client /usr/bin/rdma_server /usr/bin/rdma_xclient
	/usr/bin/rdma_xserver /usr/bin/udaddy /usr/bin/mckey /usr/bin/cmtime
	/usr/bin/rstream /usr/bin/riostream /usr/bin/rcopy /usr/bin/udpong
	/sbin/tc /sbin/iscsiadm /sbin/iscsid /sbin/mkfs.ext4 /sbin/e2fsck /usr/sbin/nvme"
LOADED_BY_NAME=/lib/x86_64-linux-gnu/libgcc_s.so.1 # by pthread_exit
PROVIDERS=/usr/lib/x86_64-linux-gnu/libibverbs
GUEST_MODULES="virtio_pci virtio_net virtio_console virtio_rng rdma_rxe ib_uverbs rdma_ucm 8021q
	tun cls_flower act_skbedit sch_multiq sch_ingress
	vfio-pci vfio_iommu_type1 uio uio_pci_generic crc32_generic crc32c_generic crc32_pclmul
	ib_iser ib_isert target_core_file sd_mod ext4 nvme-rdma nvmet-rdma brd
	sch_netem ifb act_mirred cls_matchall"

HERE=$(dirname "$(readlink -f "$0")")
APT=(apt-get -qq -o APT::Sandbox::User=root)
KERNEL_APT=() # options that lead to the kernel

die()
{
	printf 'make-guest: %s\n' "$*" >&2
	exit 1
}

# The package lists of bookworm-backports alone, so that the machine's own stay as they are.
use_backports()
{
	local apt=$out/backports

	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"http://deb.debian.org/debian bookworm-backports main" >"$apt/sources.list"
	KERNEL_APT=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=-
		-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache")
}

# The real package behind the name that follows Debian's newest kernel of this release. The *cloud*
# kernel has no rdma_rxe.
kernel_package()
{
	apt-cache "${KERNEL_APT[@]}" depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ {print $2; exit}'
}

# download PACKAGE [APT_OPTION...]: unpacks it into $work/PACKAGE.
download()
{
	local package=$1

	shift
	mkdir -p "$work/deb"
	(cd "$work/deb" && "${APT[@]}" "$@" download "$package") 2>"$work/apt.log" || {
		"${APT[@]}" "$@" update && (cd "$work/deb" && "${APT[@]}" "$@" download "$package")
	} || die "cannot download the package $package; check the network and run: apt-get update"
	dpkg -x "$work"/deb/"$package"_*.deb "$work/$package"
}

# Copies files with the libraries they load, at the paths they have here.
copy_with_libraries()
{
	local file lib

	for file in "$@"; do
		[ -e "$file" ] || die "$file is missing; run: config/setup.sh interop"
		install -D "$file" "$tree$file"
		env -u LD_LIBRARY_PATH -u LD_PRELOAD ldd "$file" | grep -o '/[^ ]*' | while read -r lib; do
			[ -e "$tree$lib" ] || install -D "$(readlink -f "$lib")" "$tree$lib"
		done
	done
}

copy_modules()
{
	local kernel_root=$1 version=$2 module file base

	base=lib/modules/$version
	for module in $GUEST_MODULES; do
		modprobe -d "$kernel_root" -S "$version" --show-depends "$module" |
			awk '$1 == "insmod" {print $2}'
	done | sort -u | while read -r file; do
		install -D -m 644 "$file" "$tree/${file#"$kernel_root"/}"
	done
	cp "$kernel_root/$base"/modules.{builtin,builtin.modinfo,order} "$tree/$base/"
	depmod -b "$tree" "$version"
}

build()
{
	local package version kernel_root

	package=$1
	version=${package#linux-image-}
	rm -rf "$work"
	mkdir -p "$tree"/{bin,dev,etc,proc,sys,tmp,run}

	download "$package" "${KERNEL_APT[@]}"
	kernel_root=$work/$package
	grep -q '^CONFIG_RDMA_RXE=m' "$kernel_root/boot/config-$version" ||
		die "the kernel $version has no rdma_rxe"
	depmod -b "$kernel_root" "$version"
	cp "$kernel_root/boot/vmlinuz-$version" "$work/vmlinuz"
	copy_modules "$kernel_root" "$version"

	download busybox-static
	cp "$work/busybox-static/bin/busybox" "$tree/bin/"
	# shellcheck disable=SC2086 # a list of names
	copy_with_libraries $GUEST_BINS $PROVIDERS/librxe-rdmav*.so $LOADED_BY_NAME
	install -m 755 "$peer" "$tree/usr/bin/interop_peer"
	install -D -m 644 /etc/libibverbs.d/rxe.driver "$tree/etc/libibverbs.d/rxe.driver"
	printf 'root:x:0:0:root:/:/bin/sh\n' >"$tree/etc/passwd"
	install -m 755 "$HERE/guest-init" "$tree/init"
	(cd "$tree" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) >"$work/initrd"
}

main()
{
	local package stamp

	[ $# = 2 ] || [ "$#$3" = 3backports ] || die "usage: make-guest.sh DIR PEER [backports]"
	mkdir -p "$1"
	out=$(readlink -f "$1")
	peer=$2
	[ -x "$peer" ] || die "$peer is missing; run: make"
	[ $# = 2 ] || use_backports
	work=$out/work
	tree=$work/tree
	package=$(kernel_package || :)
	if [ -z "$package" ]; then
		"${APT[@]}" "${KERNEL_APT[@]}" update || die "apt-get update failed; check the network"
		package=$(kernel_package || :)
	fi
	[ -n "$package" ] || die "apt knows no linux-image-amd64; is this Debian with amd64?"

	stamp="$package $(cat "$0" "$HERE/guest-init" "$peer" | sha256sum)"
	if [ -e "$out/initrd" ] && [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then
		return 0
	fi
	echo "make-guest: building the Linux peer with $package in $out"
	rm -f "$out/stamp"
	build "$package"
	mv "$work/vmlinuz" "$work/initrd" "$out/"
	rm -rf "$work"
	echo "$stamp" >"$out/stamp"
}

main "$@"
