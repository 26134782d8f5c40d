/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct memifs between isolated processes. The owner makes two pairs of sockets and gives each
 * process one end of each: one pair for memif's messages, over which the two set up memif, and one
 * for doorbells. It keeps a second descriptor of one end of the first pair, which it never reads:
 * when it stops serving one of the processes, it shuts the socket down, and both ends see that,
 * whoever has them by then.
 */
#include "direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "memif/doorbell.h"
#include "memif/socket.h"
#include "server.h"
#include "share/message.h"
#include "share/user.h"

struct direct {
	LIST_ENTRY(direct) link;
	uint16_t slots[2]; /* by side */
	int socket_fd;	   /* side 0's end; -1: one of the two could not be told */
	user_t user;	   /* of side 1, which may have left descriptors unread in that end */
};

static bool direct_has(const struct direct *direct, uint16_t number)
{
	return direct->slots[0] == number || direct->slots[1] == number;
}

/* Return true if a process may have one more. */
static bool direct_may(const struct server *server, uint16_t number)
{
	const struct direct *direct;
	unsigned int count = 0;

	LIST_FOREACH (direct, &server->directs.list, link)
		count += direct_has(direct, number);
	return count < SHARE_DIRECTS_MAX;
}

static bool direct_is_known(const struct server *server, uint16_t a, uint16_t b)
{
	const struct direct *direct;

	LIST_FOREACH (direct, &server->directs.list, link) {
		if (direct_has(direct, a) && direct_has(direct, b))
			return true;
	}
	return false;
}

/* Give the process at a side its ends. 0 or -errno. */
static int direct_offer(const struct server *server, const struct direct *direct, unsigned int side,
			const int ends[SHARE_MEMIF_FDS])
{
	const struct slot *peer = &server->slots.all[direct->slots[!side]];
	const struct share_message message = {
		.type = SHARE_DIRECT,
		.version = SHARE_VERSION,
		.offer =
			{
				.peer = direct->slots[!side],
				.side = (uint16_t)side,
				.qpn_first = peer->qpn_first,
				.qpn_count = peer->qpn_count,
			},
	};

	return message_send(server->slots.all[direct->slots[side]].socket, &message, ends,
			    SHARE_MEMIF_FDS);
}

/* Shut the socket down. Its user is charged for closing it. */
static void direct_shut(const struct server *server, struct direct *direct)
{
	const uint64_t before = memif_socket_charge(direct->user);

	/* The two processes go on without an owner that hands over. */
	if (server->resume.hands_over)
		memif_socket_discard(direct->socket_fd);
	else if (direct->socket_fd >= 0)
		memif_socket_end(server->epoll_fd, direct->socket_fd);
	memif_socket_charge(before);
	direct->socket_fd = -1;
}

static void direct_end(struct server *server, struct direct *direct)
{
	direct_shut(server, direct);
	LIST_REMOVE(direct, link);
	server->directs.count--;
	free(direct);
}

/* Make both pairs of sockets. 0 or -errno. */
static int direct_make_sockets(int ends[2][SHARE_MEMIF_FDS])
{
	int pair[2], doorbell[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
		return -errno;
	rc = memif_doorbell_make(doorbell);
	if (rc != 0) {
		close(pair[0]);
		close(pair[1]);
		return rc;
	}
	for (int side = 0; side < 2; side++) {
		ends[side][SHARE_MEMIF_FD_SOCKET] = pair[side];
		ends[side][SHARE_MEMIF_FD_DOORBELL] = doorbell[side];
	}
	return 0;
}

/* Close our copy of an end that a process has. The process at the other end may have sent
 * descriptors into it already, so that one's user is charged. */
static void direct_leave(int end, user_t other)
{
	const uint64_t before = memif_socket_charge(other);

	memif_socket_discard(end);
	memif_socket_charge(before);
}

static int direct_connect(struct server *server, uint16_t a, uint16_t b)
{
	struct direct *direct = calloc(1, sizeof(*direct));
	const user_t user_a = server->slots.all[a].user, user_b = server->slots.all[b].user;
	int ends[2][SHARE_MEMIF_FDS];
	int rc;

	if (!direct)
		return -ENOMEM;
	rc = direct_make_sockets(ends);
	if (rc != 0) {
		free(direct);
		return rc;
	}
	*direct = (struct direct){
		.slots = {a, b}, .socket_fd = ends[0][SHARE_MEMIF_FD_SOCKET], .user = user_b};
	LIST_INSERT_HEAD(&server->directs.list, direct, link);
	server->directs.count++;
	rc = direct_offer(server, direct, 0, ends[0]);
	if (rc == 0)
		rc = direct_offer(server, direct, 1, ends[1]);
	direct_leave(ends[0][SHARE_MEMIF_FD_DOORBELL], user_b);
	direct_leave(ends[1][SHARE_MEMIF_FD_DOORBELL], user_a);
	direct_leave(ends[1][SHARE_MEMIF_FD_SOCKET], user_a);
	/* A process that got its end sees that the socket was shut down. The two stay in the list,
	 * so that this is not tried again with their next packets. */
	if (rc != 0)
		direct_shut(server, direct);
	return rc;
}

/* Return true if a process's tenant has a rate: then all its packets must pass through the owner.
 */
static bool direct_has_rate(const struct server *server, uint16_t number)
{
	return tenants_limits_of(&server->tenants, server->slots.all[number].tenant)->rate > 0;
}

void direct_make(struct server *server, uint16_t a, uint16_t b)
{
	int rc;

	if (server->slots.all[a].state != SLOT_LIVE || server->slots.all[b].state != SLOT_LIVE ||
	    direct_has_rate(server, a) || direct_has_rate(server, b) ||
	    server->directs.count >= DIRECTS_MAX || direct_is_known(server, a, b) ||
	    !direct_may(server, a) || !direct_may(server, b))
		return;
	rc = direct_connect(server, a, b);
	server->totals.direct_memifs += rc == 0;
	if (rc != 0 && rc != -EAGAIN)
		log_info("no direct memif between processes %d and %d: %s",
			 server->slots.all[a].pid, server->slots.all[b].pid, strerror(-rc));
}

void direct_close(struct server *server, uint16_t number)
{
	struct direct *direct, *next;

	for (direct = LIST_FIRST(&server->directs.list); direct; direct = next) {
		next = LIST_NEXT(direct, link);
		if (direct_has(direct, number))
			direct_end(server, direct);
	}
}
