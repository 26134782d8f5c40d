#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Starts a private network of RDMA devices for the commands that follow in a CI job, and prints the environment that they
# need, one NAME=VALUE a line. The network runs in the background until the machine or the container ends.
#
# usage: vars=$(start.sh [DEVICES]) && export $vars
# (`export $(start.sh)` would print the whole environment, and succeed, if start.sh failed.)
set -eu

# The uroce-run of this installation.
PATH=$(dirname "$0")/../../../bin:$PATH

devices=${1:-1}
# A directory that only this user can enter: the environment of a job may have secrets.
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT

# The command prints its environment and stays. Files of the device are shown by a preloaded library: a mount namespace
# could not be entered by later commands.
# shellcheck disable=SC2016 # the inner shell expands it
nohup uroce-run --local="$devices" --view preload -- \
	sh -c 'env >"$0/part" && mv "$0/part" "$0/env" && exec sleep infinity' "$found" </dev/null >/dev/null 2>"$found/log" &
pid=$!

until [ -s "$found/env" ]; do
	kill -0 $pid 2>/dev/null || {
		cat "$found/log" >&2
		exit 1
	}
	sleep 0.1
done
grep -E '^(LD_LIBRARY_PATH|LD_PRELOAD|UROCE_[A-Z_]+)=' "$found/env"
echo "UROCE_CI_PID=$pid"
