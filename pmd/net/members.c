/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens sockets that are members of multicast groups; many groups share a socket. */
#include "net/members.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int change_ipv4(int fd, bool join, unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	struct ip_mreqn request = {.imr_ifindex = (int)ifindex};

	memcpy(&request.imr_multiaddr, gid + GID_IPV4_OFFSET, sizeof(request.imr_multiaddr));
	return setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
			  sizeof(request));
}

static int change_ipv6(int fd, bool join, unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	struct ipv6_mreq request = {.ipv6mr_interface = ifindex};

	memcpy(&request.ipv6mr_multiaddr, gid, sizeof(request.ipv6mr_multiaddr));
	return setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request,
			  sizeof(request));
}

static int change(const struct member_socket *by, bool join, unsigned int ifindex,
		  const uint8_t gid[GID_LEN])
{
	const int rc = by->ipv4 ? change_ipv4(by->fd, join, ifindex, gid)
				: change_ipv6(by->fd, join, ifindex, gid);

	return rc == 0 ? 0 : -errno;
}

static int open_socket(bool ipv4, struct member_socket **opened)
{
	struct member_socket *by = calloc(1, sizeof(*by));

	if (!by)
		return -ENOMEM;
	by->ipv4 = ipv4;
	by->fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (by->fd < 0) {
		free(by);
		return -errno;
	}
	*opened = by;
	return 0;
}

static void close_socket(struct member_socket *by)
{
	close(by->fd);
	free(by);
}

/* Return true if the error means that a socket can join no more groups (igmp_max_memberships,
 * optmem_max). */
static bool means_full(int rc)
{
	return rc == -ENOBUFS || rc == -ENOMEM;
}

int members_join(struct members *members, unsigned int ifindex, const uint8_t gid[GID_LEN],
		 struct member_socket **by)
{
	const bool ipv4 = gid_is_ipv4(gid);
	struct member_socket *socket;
	int rc;

	LIST_FOREACH (socket, &members->sockets, link) {
		if (socket->ipv4 != ipv4 || socket->full)
			continue;
		rc = change(socket, true, ifindex, gid);
		socket->full = means_full(rc);
		if (socket->full)
			continue;
		if (rc != 0)
			return rc;
		socket->joins++;
		*by = socket;
		return 0;
	}
	rc = open_socket(ipv4, &socket);
	if (rc != 0)
		return rc;
	rc = change(socket, true, ifindex, gid);
	if (rc != 0) {
		close_socket(socket);
		return rc;
	}
	socket->joins = 1;
	LIST_INSERT_HEAD(&members->sockets, socket, link);
	*by = socket;
	return 0;
}

void members_leave(struct member_socket *by, unsigned int ifindex, const uint8_t gid[GID_LEN])
{
	/* If the interface has gone, the kernel has ended the membership, but the socket still
	 * counts it. */
	change(by, false, ifindex, gid);
	by->full = false;
	if (--by->joins > 0)
		return;
	LIST_REMOVE(by, link);
	close_socket(by);
}
