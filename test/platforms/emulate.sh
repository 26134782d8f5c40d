#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a shell script in a root whose qemu-user runs the programs of arm64. The kernel starts it: the caller has made a user
# namespace, which has its own binfmt_misc (since Linux 6.7), so the machine's own stays as it is.
#
# usage: emulate.sh ROOT SCRIPT
set -eu

formats=$1/proc/sys/fs/binfmt_misc
if ! mount -t binfmt_misc none "$formats" 2>/dev/null; then
	echo "this kernel has no binfmt_misc for a user namespace"
	exit 77
fi
# An ELF file of 64 bits, little endian, executable or shared, for machine 183.
printf %s ':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$1/usr/bin/qemu-aarch64-static:F" >"$formats/register"
exec chroot "$1" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
	sh -c "cd /src && { $2
}"
