/* SPDX-License-Identifier: BSD-3-Clause */
/* A netlink socket in the groups of changes of addresses and interfaces. The messages' contents are
 * not used: the caller queries the addresses again. */
#include "netdev/watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"

int watch_open(void)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		const int err = errno;

		close(fd);
		return -err;
	}
	own_mark(fd);
	return fd;
}

bool watch_changed(int fd)
{
	bool changed = false;
	char message;

	/* Any message counts as a change. If there were too many, some were lost (ENOBUFS). */
	while (own_is(fd)) {
		if (recv(fd, &message, sizeof(message), MSG_TRUNC) >= 0 || errno == ENOBUFS)
			changed = true;
		else if (errno != EINTR)
			break;
	}
	return changed;
}
