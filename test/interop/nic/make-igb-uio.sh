#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Compiles igb_uio for the guest's kernel, from Debian's dpdk-kmods-dkms.
#
# usage: make-igb-uio.sh DIR
#   DIR  where make-guest.sh has left the guest; leaves DIR/igb_uio.ko, and does nothing where that is current
#
# The packages are only downloaded and unpacked; the kernel's headers name /usr paths, which they get in a mount
# namespace of their own.
set -euo pipefail

die()
{
	printf 'make-igb-uio: %s\n' "$*" >&2
	exit 1
}

[ $# = 1 ] || die "usage: make-igb-uio.sh DIR"
out=$(readlink -f "$1")
read -r kernel _ <"$out/stamp" || die "$out has no guest; run: make test-interop"
[ "$(cat "$out/igb_uio.stamp" 2>/dev/null)" != "$kernel" ] || exit 0
version=${kernel#linux-image-}
echo "make-igb-uio: building igb_uio for $version in $out"
work=$out/igb_uio
rm -rf "$work"
mkdir -p "$work/deb" "$work/root"
packages=("linux-headers-$version" "linux-headers-${version%-amd64}-common" "linux-kbuild-$(cut -d. -f1,2 <<<"$version")"
	linux-compiler-gcc-12-x86 dpdk-kmods-dkms)
(cd "$work/deb" && apt-get -qq -o APT::Sandbox::User=root download "${packages[@]}") ||
	die "cannot download ${packages[*]}; check the network and run: apt-get update"
for package in "$work"/deb/*.deb; do
	dpkg -x "$package" "$work/root"
done
source=$(dirname "$(find "$work/root/usr/src" -name igb_uio.c | head -n 1)")
cp -r "$source" "$work/igb_uio"
export work version
# shellcheck disable=SC2016 # expanded inside
unshare -m bash -ec '
for dir in usr/src usr/lib; do
	mkdir -p "$work/upper/$dir"
	mount -t overlay overlay -o "lowerdir=$work/root/$dir:/$dir" "/$dir"
done
make -s -C "/usr/src/linux-headers-$version" M="$work/igb_uio" modules' >"$work/log" 2>&1 || {
	tail -n 20 "$work/log" >&2
	die "igb_uio does not build"
}
mv "$work/igb_uio/igb_uio.ko" "$out/"
rm -rf "$work"
echo "$kernel" >"$out/igb_uio.stamp"
