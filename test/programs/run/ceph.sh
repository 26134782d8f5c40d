#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A Ceph cluster of one monitor and one object store in memory, whose messages go by RDMA (ms_type=async+rdma).
#
# usage: uroce-run --local -- ceph.sh DIR UUID UROCE_CTL
#   in a network namespace with the address 198.18.0.1: the daemons find each other by TCP
#
# Stores an object and reads it back, compares the bytes, and prints the daemons' queue pairs and the bytes that the
# device has sent.
set -eu
dir=$1
uuid=$2
uroce_ctl=$3

cat >"$dir/ceph.conf" <<END
[global]
fsid = $uuid
mon host = [v2:198.18.0.1:3300]
mon initial members = a
public network = 198.18.0.0/24
auth cluster required = none
auth service required = none
auth client required = none
ms type = async+rdma
ms async rdma device name = uroce0
ms async rdma gid idx = 1
ms async rdma local gid = 0000:0000:0000:0000:0000:ffff:c612:0001
ms bind msgr1 = false
osd pool default size = 1
osd crush chooseleaf type = 0
osd objectstore = memstore
mon allow pool size one = true
admin socket = $dir/\$name.asok
pid file = $dir/\$name.pid
log file = $dir/\$name.log
mon data = $dir/mon
osd data = $dir/osd
keyring = $dir/keyring
END
export CEPH_CONF="$dir/ceph.conf"
mkdir "$dir/mon" "$dir/osd"
: >"$dir/keyring"

# A daemon is a child of this shell, which ends both.
trap 'kill $daemons 2>/dev/null; wait' EXIT
daemons=
start()
{
	"$@" -f --setuser root --setgroup root >>"$dir/daemons.out" 2>&1 &
	daemons="$daemons $!"
}

monmaptool --create --fsid "$uuid" --addv a '[v2:198.18.0.1:3300]' "$dir/monmap" >/dev/null
ceph-mon -i a --mkfs --monmap "$dir/monmap" --setuser root --setgroup root
start ceph-mon -i a
ceph --connect-timeout 60 osd new "$uuid"
ceph-osd -i 0 --mkfs --osd-uuid "$uuid" --setuser root --setgroup root >/dev/null 2>&1
start ceph-osd -i 0
until ceph osd stat | grep -q '1 up'; do sleep 0.5; done
ceph osd pool create pool 8 8
head -c 6000000 /dev/urandom >"$dir/stored"
rados -p pool put object "$dir/stored"
rados -p pool get object "$dir/read"
cmp "$dir/stored" "$dir/read"
"$uroce_ctl" resource show qp | grep -E 'state RTS .*comm ceph-(mon|osd)'
sleep 0.5
echo "sent $(cat /sys/class/infiniband/uroce0/ports/1/hw_counters/tx_bytes)"
