#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The first thing to see: ib_write_bw between two processes on uroce, over a shared-memory wire.
set -uo pipefail

TOP=$(readlink -f "$(dirname "$0")/../../..")
RUN=$TOP/build/app/uroce-run
TCP_PORT=$((20000 + $$ % 10000)) # two demos at once do not meet

die()
{
	printf 'demo: %s\n' "$@" >&2
	exit 1
}

# port ROLE: DPDK's arguments for one end of the wire
port()
{
	echo "net_memif0,socket=$dir/wire.sock,role=$1,id=0"
}

server_listens()
{
	grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X $TCP_PORT) [^ ]* 0A" \
		"/proc/$server/net/tcp" "/proc/$server/net/tcp6" 2>/dev/null
}

stop()
{
	local pid

	for pid in $server $client; do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$dir"
}

[ -x "$RUN" ] || die "$RUN does not exist; run: make"
command -v ib_write_bw >/dev/null || die "ib_write_bw is missing; run: config/setup.sh demo"

dir=$(mktemp -d)
server=
client=
trap stop EXIT
trap 'exit 1' INT TERM HUP
# The CPUs that this process may use, which need not begin with 0.
mapfile -t cpus < <(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status | tr , '\n' |
	awk -F- '{ for (i = $1; i <= $NF; i++) print i }')
server_cpu=${cpus[0]}
client_cpu=${cpus[1]:-$server_cpu}

taskset -c "$server_cpu" "$RUN" --port "$(port server)" --ip 10.9.1.1/24 -- \
	ib_write_bw -F -p $TCP_PORT --report_gbits >"$dir/server.log" 2>&1 </dev/null &
server=$!
for _ in $(seq 300); do
	server_listens && break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.1
done
server_listens || {
	cat "$dir/server.log" >&2
	die "the server does not start (its words are above)"
}

timeout 60 taskset -c "$client_cpu" "$RUN" --port "$(port client)" --ip 10.9.1.2/24 -- \
	ib_write_bw -F -p $TCP_PORT --report_gbits 127.0.0.1 </dev/null &
client=$!
wait $client || {
	cat "$dir/server.log" >&2
	die "ib_write_bw failed"
}
wait "$server"
server=
client=

echo "Next: run a program on a network interface of yours:" \
	"build/app/uroce-run --netdev eth0 -- ibv_devinfo -v"
