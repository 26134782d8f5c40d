/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that are in multicast groups, so that the kernel joins them on its interfaces. It lets
 * one socket be in a few groups only, and a process have a few sockets only: so they are shared. */
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
	bool full;	/* the kernel lets it join no more */
	uint32_t joins; /* that it is in */
};

/* Zeros are none. */
struct members {
	LIST_HEAD(, member_socket) sockets;
};

/** Have the kernel join a group on an interface. Not MT-safe. 0 or -errno of the kernel. */
int members_join(struct members *members, unsigned int ifindex, const uint8_t gid[GID_LEN],
		 struct member_socket **by);

/** Have it leave the group, which `by` has joined. Not MT-safe. */
void members_leave(struct member_socket *by, unsigned int ifindex, const uint8_t gid[GID_LEN]);

#endif
