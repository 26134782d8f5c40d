#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The first process of a place (place.py), in namespaces of its own. It mounts LOWER with a writable layer in WORK, and the
# other file systems of a container. Then it stays in that root, as process 1.
#
# usage: enter-root.sh LOWER WORK
set -eu

mkdir -p "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
cd "$2/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
for node in null zero full random urandom tty; do
	: >dev/$node
	mount --bind /dev/$node dev/$node
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
# The size that container engines give.
mount -t tmpfs -o mode=1777,size=64m tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/lock
[ -s etc/hosts ] || printf '127.0.0.1\tlocalhost\n::1\tlocalhost\n' >etc/hosts
ip link set lo up
# Process 1 must reap orphaned processes, as init does: a zombie would look like a program that has a device.
# shellcheck disable=SC2016 # perl's variable
exec chroot . perl -e '$SIG{CHLD} = "IGNORE"; sleep while 1'
