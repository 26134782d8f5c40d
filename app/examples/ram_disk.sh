#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Serves a disk in memory from one container to another: tgt's iSER target, and QEMU's block layer as the initiator.
#
# usage: ram_disk.sh, as root, after make; UROCE_RUN may name another uroce-run.
# Network namespaces stand for the containers. Everything is removed at the end.
set -euo pipefail

run=${UROCE_RUN:-$(dirname "$(readlink -f "$0")")/../../build/app/uroce-run}
server=server-$$ client=client-$$ disk=/dev/shm/ram-disk-$$
trap 'kill -KILL ${tgtd:-} 2>/dev/null || :; rm -f $disk; ip netns del $server; ip netns del $client' EXIT

# Two containers with a link between them
ip netns add $server
ip netns add $client
ip -n $server link add eth0 mtu 9000 type veth peer name eth0 mtu 9000 netns $client
ip -n $server address add 10.0.0.1/24 dev eth0
ip -n $client address add 10.0.0.2/24 dev eth0
ip -n $server link set eth0 up
ip -n $client link set eth0 up

# The server: 256 MiB of memory as a disk
truncate -s 256M $disk
ip netns exec $server "$run" --netdev eth0 -- tgtd -f --iser port=3260,pool_sz_mb=64 &
tgtd=$!
target="ip netns exec $server tgtadm --lld iser --mode target --tid 1"
until $target --op new -T iqn.2026-11.example:ram 2>/dev/null; do kill -0 $tgtd; sleep 0.1; done
$target --op bind -I ALL
$target --op bind -Q iqn.2026-11.example:me
ip netns exec $server tgtadm --lld iser --mode logicalunit --op new --tid 1 --lun 1 -b $disk

# The client: writes 1 MiB, and reads it again
ip netns exec $client "$run" --netdev eth0 -- qemu-io -c 'write -P 7 0 1M' -c 'read -P 7 0 1M' --image-opts \
	driver=blkdebug,max-transfer=262144,image.driver=iscsi,image.transport=iser,image.portal=10.0.0.1,`
	`image.target=iqn.2026-11.example:ram,image.lun=1,image.initiator-name=iqn.2026-11.example:me
