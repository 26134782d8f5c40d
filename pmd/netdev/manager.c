/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes the lock on an interface's connection manager: the only place of a fanout group of packet
 * sockets. Such groups belong to a network namespace, as interfaces do, and the kernel frees a
 * place with its socket. Only a process that may have packet sockets (CAP_NET_RAW) can take it, as
 * can only such a process be a connection manager.
 */
#include "netdev/manager.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "base/own.h"

/* For local experiments (IEEE 802): hardly a frame has it, and the socket drops those. */
#define ETHER_TYPE_LOCAL 0x88b5
/* The groups of other programs mostly have a small number, or that of a process. */
#define GROUP_FIRST 0xc000
#define GROUPS	    0x4000
/* Groups of the sockets that are kept from these (manager_exclude). */
#define EXCLUDED_FIRST 0x8000
#define EXCLUDED       0x4000
#define TRIES	       256

#ifndef PACKET_FANOUT_FLAG_IGNORE_OUTGOING
#define PACKET_FANOUT_FLAG_IGNORE_OUTGOING 0x4000 /* from Linux 6.2 on */
#endif

int manager_open(void)
{
	static const struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	const struct sock_fprog program = {.len = RTE_DIM(code),
					   .filter = (struct sock_filter *)(uintptr_t)code};
	const struct sockaddr_ll any = {.sll_family = AF_PACKET,
					.sll_protocol = RTE_BE16(ETHER_TYPE_LOCAL)};
	int fd, err;

	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Bind it to no interface: one that is down would refuse it. */
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) != 0 ||
	    bind(fd, (const struct sockaddr *)&any, sizeof(any)) != 0) {
		err = errno;
		close(fd);
		return -err;
	}
	own_mark(fd);
	return fd;
}

/*
 * The kernel lets a socket join one group, and binds a socket in a group to no other interface. Let
 * each socket have a group of its own. PACKET_FANOUT_FLAG_UNIQUEID would not do: a user can make
 * the kernel find the number of an interface's manager next.
 */
int manager_exclude(int fd)
{
	static uint32_t next;
	struct fanout_args group = {.type_flags =
					    PACKET_FANOUT_CPU | PACKET_FANOUT_FLAG_IGNORE_OUTGOING,
				    .max_num_members = 1};

	for (uint32_t i = 0; i < TRIES; i++) {
		const uint32_t number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);

		group.id = (uint16_t)(EXCLUDED_FIRST + number % EXCLUDED);
		if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)) == 0)
			return 0;
		/* ENOSPC: another process has this number. EINVAL: another program has it for
		 * another kind of group, or the interface is down. */
		if (errno != ENOSPC && errno != EINVAL)
			return -errno;
	}
	return -errno;
}

int manager_take(int *fd, const char *ifname)
{
	const unsigned int ifindex = if_nametoindex(ifname);
	struct fanout_args group = {.type_flags = PACKET_FANOUT_HASH, .max_num_members = 1};

	if (ifindex == 0)
		return -ENODEV;
	if (!own_is(*fd))
		*fd = manager_open();
	if (*fd < 0)
		return *fd;
	group.id = (uint16_t)(GROUP_FIRST + ifindex % GROUPS);
	if (setsockopt(*fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)) == 0)
		return 0;
	/* EALREADY: this socket has the place. ENOSPC: another one has it. EINVAL: another program
	 * uses the number for a group of its own. */
	if (errno == EALREADY)
		return 0;
	return errno == ENOSPC ? -EADDRINUSE : -errno;
}
