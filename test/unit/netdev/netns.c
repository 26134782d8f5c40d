/* SPDX-License-Identifier: BSD-3-Clause */
/* Namespaces for tests, through ip(8). */
#include "netns.h"

#include <sched.h>
#include <stdlib.h>

#include "skipped.h"

bool netns_run(const char *command)
{
	return system(command) == 0;
}

bool netns_enter(void)
{
	if (!netns_run("ip -V > /dev/null 2>&1")) {
		skipped_for("there is no ip(8): install iproute2");
		return false;
	}
	if (unshare(CLONE_NEWNET) != 0) {
		skipped_for("no network namespace may be made here: run the tests as root");
		return false;
	}
	if (netns_run("ip link set lo up && ip link add left type veth peer name right && "
		      "ip link set left mtu 9000 && ip link set right mtu 9000 && "
		      "ip addr add 10.7.0.1/24 dev left && ip -6 addr add fd07::1/64 dev left "
		      "nodad && "
		      "ip addr add 10.7.0.2/24 dev right && "
		      "ip link set left up && ip link set right up"))
		return true;
	skipped_for("no veth interfaces with IPv4 and IPv6 can be made in a namespace here");
	return false;
}
