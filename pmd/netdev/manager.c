/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes the lock on an interface's connection manager: the name of an abstract socket. Such names
 * belong to a network namespace, as interfaces do, and the kernel frees a name with its socket.
 */
#include "netdev/manager.h"

#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"

int manager_take(const char *ifname)
{
	const unsigned int ifindex = if_nametoindex(ifname);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd, len, err;

	if (ifindex == 0)
		return -ENODEV;
	len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "uroce-rdma_cm-%u", ifindex);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0) {
		err = errno;
		close(fd);
		return -err;
	}
	own_mark(fd);
	return fd;
}
