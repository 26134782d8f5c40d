/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that join multicast groups on kernel interfaces. The kernel limits the groups of a
 * socket, and the sockets of a process, so groups share sockets. */
#ifndef NET_MEMBERS_H
#define NET_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "netdev/addresses.h"

struct member_socket {
	LIST_ENTRY(member_socket) link;
	int fd;
	bool ipv4;
	bool full;	/* the kernel lets it join no more groups */
	uint32_t joins; /* number of groups that it has joined */
};

/* All zero: no sockets. */
struct members {
	LIST_HEAD(, member_socket) sockets;
};

/** Join a group on a kernel interface. Not MT-safe. 0 or -errno of the kernel. */
int members_join(struct members *members, unsigned int ifindex, const uint8_t gid[GID_LEN],
		 struct member_socket **by);

/** Leave a group that the socket `by` has joined. Not MT-safe. */
void members_leave(struct member_socket *by, unsigned int ifindex, const uint8_t gid[GID_LEN]);

#endif
