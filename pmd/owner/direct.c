/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's part in direct channels (share/direct.h). It makes a channel when packets go from one
 * process to another through the owner, and ends it when it stops serving one of the two.
 *
 * Two attached processes see in their pages that a channel has ended. Two isolated processes have
 * the ends of a pair of sockets, for doorbells. The owner keeps a second descriptor of one end,
 * which it never reads: it shuts the socket down, and both see that, whoever has the ends by then.
 */
#include "direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "memif/doorbell.h"
#include "memif/socket.h"
#include "server.h"
#include "share/direct.h"
#include "share/message.h"
#include "share/user.h"
#include "slot.h"

#define TRY_AT 16 /* packets between two processes: fewer are not worth a channel */
#define TRY_EVERY \
	64 /* packets until the next attempt if no channel could be made; a power of two */

static_assert(SERVE_SLOTS_MAX <= SHARE_PEERS_MAX, "each slot has its place in a page");

struct server_direct {
	LIST_ENTRY(server_direct) link;
	uint32_t number;
	uint16_t slots[2]; /* by side */
	bool trusted;
	struct direct_memory *memory; /* trusted */
	/* not trusted: side 0's end of the doorbells (-1: one of the two could not be told), and
	 * side 1's user, who may have left descriptors unread in that end */
	int doorbell_fd;
	user_t user;
};

/* Shut the socket down. Its user is charged for closing it. */
static void direct_shut(const struct server *server, struct server_direct *direct)
{
	const uint64_t before = memif_socket_charge(direct->user);

	/* The two processes go on without an owner that hands over. */
	if (server->resume.hands_over)
		memif_socket_discard(direct->doorbell_fd);
	else
		memif_socket_end(server->epoll_fd, direct->doorbell_fd);
	memif_socket_charge(before);
	direct->doorbell_fd = -1;
}

/* Remove the channel from the pages of its processes. */
static void direct_withdraw(const struct server *server, const struct server_direct *direct)
{
	/* They go on without this owner. */
	if (server->resume.hands_over)
		return;
	for (unsigned int side = 0; side < 2; side++) {
		const struct slot *slot = &server->slots.all[direct->slots[side]];

		__atomic_store_n(&slot->page->directs[direct->slots[!side]], 0, __ATOMIC_RELEASE);
	}
}

/* End the channel. Its two processes close it. */
static void direct_finish(const struct server *server, struct server_direct *direct)
{
	if (direct->trusted)
		direct_withdraw(server, direct);
	else
		direct_shut(server, direct);
}

/* Count a channel that is made (1) or freed (-1). */
static void direct_tally(struct server *server, const struct server_direct *direct, int n)
{
	if (direct->trusted)
		server->directs.count += (uint32_t)n;
	else
		server->directs.isolated_count += (uint32_t)n;
}

static void direct_free(struct server *server, struct server_direct *direct)
{
	LIST_REMOVE(direct, link);
	direct_tally(server, direct, -1);
	if (direct->memory)
		munmap(direct->memory, sizeof(*direct->memory));
	free(direct);
}

/* Make the memory. It cannot shrink: an access to removed pages would kill a process. Returns its
 * descriptor, or -errno. */
static int direct_make_memory(struct server_direct *direct)
{
	const int fd = memfd_create("uroced-direct", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;
	int rc;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)sizeof(*direct->memory)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		goto failed;
	if (!direct->trusted)
		return fd;
	memory = mmap(NULL, sizeof(*direct->memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		goto failed;
	madvise(memory, sizeof(*direct->memory), MADV_DONTDUMP);
	direct->memory = memory;
	return fd;
failed:
	rc = -errno;
	close(fd);
	return rc;
}

/* Offer the channel to the process at a side. 0 or -errno. */
static int direct_offer(const struct server *server, const struct server_direct *direct,
			unsigned int side, int memory_fd, int doorbell_fd)
{
	const uint16_t peer = direct->slots[!side];
	const struct slot *slot = &server->slots.all[direct->slots[side]];
	const struct slot *first = &server->slots.all[slot_engine_first(server, peer)];
	const int fds[SHARE_DIRECT_FDS] = {
		[SHARE_DIRECT_FD_MEMORY] = memory_fd,
		[SHARE_DIRECT_FD_DOORBELL] = doorbell_fd,
	};
	const struct share_message message = {
		.type = SHARE_DIRECT,
		.version = SHARE_VERSION,
		.offer =
			{
				.number = direct->number,
				.peer = peer,
				.side = (uint16_t)side,
				.qpn_first = server->slots.all[peer].qpn_first,
				.qpn_count = server->slots.all[peer].qpn_count,
				.engines = (uint16_t)RTE_MAX(first->engine_count, 1u),
				.served = slot_engine_served(server, peer),
				.trusted = direct->trusted,
			},
	};

	if (direct->trusted)
		__atomic_store_n(&slot->page->directs[peer], direct->number, __ATOMIC_RELEASE);
	return message_send(slot->socket, &message, fds, SHARE_DIRECT_FDS);
}

static bool direct_is_of(const struct server_direct *direct, uint16_t number)
{
	return direct->slots[0] == number || direct->slots[1] == number;
}

static bool direct_is_known(const struct server *server, uint16_t a, uint16_t b)
{
	const struct server_direct *direct;

	LIST_FOREACH (direct, &server->directs.list, link) {
		if (direct_is_of(direct, a) && direct_is_of(direct, b))
			return true;
	}
	return false;
}

/* Return true if a process may have one more, and the owner, too. */
static bool direct_may(const struct server *server, uint16_t number)
{
	const struct server_direct *direct;
	unsigned int count = 0;

	if (server->slots.all[number].isolated
		    ? server->directs.isolated_count >= DIRECTS_ISOLATED_MAX
		    : server->directs.count >= DIRECTS_MAX)
		return false;
	LIST_FOREACH (direct, &server->directs.list, link)
		count += direct_is_of(direct, number);
	return count < SHARE_DIRECTS_MAX;
}

/* Close our copy of an end that a process has. The process at the other end may have sent
 * descriptors into it already, so that one's user is charged. */
static void direct_leave(int end, user_t other)
{
	const uint64_t before = memif_socket_charge(other);

	memif_socket_discard(end);
	memif_socket_charge(before);
}

/* Offer the channel to both. 0 or -errno. */
static int direct_offer_both(struct server *server, struct server_direct *direct, int memory_fd)
{
	const struct slot *slots[2] = {&server->slots.all[direct->slots[0]],
				       &server->slots.all[direct->slots[1]]};
	/* An attached process is woken by its own eventfd, by all its peers. */
	int doorbells[2] = {slots[1]->direct_fd, slots[0]->direct_fd};
	int rc = direct->trusted ? 0 : memif_doorbell_make(doorbells);

	if (rc != 0)
		return rc;
	for (unsigned int side = 0; side < 2 && rc == 0; side++)
		rc = direct_offer(server, direct, side, memory_fd, doorbells[side]);
	if (direct->trusted)
		return rc;
	direct->doorbell_fd = doorbells[0];
	direct->user = slots[1]->user;
	direct_leave(doorbells[1], slots[0]->user);
	return rc;
}

static uint32_t direct_next_number(struct server *server)
{
	if (++server->directs.number == 0)
		server->directs.number = 1;
	return server->directs.number;
}

/* Return true if a channel could not be made because something was used up. That passes. */
static bool direct_lacks(int rc)
{
	return rc == -ENOMEM || rc == -ENOBUFS || rc == -EMFILE || rc == -ENFILE ||
	       rc == -ETOOMANYREFS;
}

static int direct_make(struct server *server, uint16_t a, uint16_t b)
{
	struct server_direct *direct = calloc(1, sizeof(*direct));
	int fd, rc;

	if (!direct)
		return -ENOMEM;
	direct->trusted = !server->slots.all[a].isolated;
	direct->doorbell_fd = -1;
	direct->slots[0] = a;
	direct->slots[1] = b;
	direct->number = direct_next_number(server);
	fd = direct_make_memory(direct);
	if (fd < 0) {
		free(direct);
		return fd;
	}
	LIST_INSERT_HEAD(&server->directs.list, direct, link);
	direct_tally(server, direct, 1);
	rc = direct_offer_both(server, direct, fd);
	close(fd);
	server->totals.direct_channels += rc == 0;
	if (rc == 0)
		return 0;
	/* One process may have got its offer. It sends nothing by the channel, because the other
	 * one never says that it is ready. If one of two isolated processes takes no message, their
	 * channel stays in the list, so that their next packets do not cause another try. */
	direct_finish(server, direct);
	if (direct->trusted || direct_lacks(rc))
		direct_free(server, direct);
	return rc;
}

/* Return true if a process's tenant has a rate: then all its packets must pass through the owner.
 */
static bool direct_has_rate(const struct server *server, uint16_t number)
{
	return server->slots.all[number].isolated &&
	       tenants_limits_of(&server->tenants, server->slots.all[number].tenant)->rate > 0;
}

static bool direct_wants(const struct server *server, uint16_t from, uint16_t to)
{
	const struct slot *slots = server->slots.all;

	if (slots[from].state != SLOT_LIVE || slots[to].state != SLOT_LIVE ||
	    !slots[from].isolated != !slots[to].isolated)
		return false;
	/* An isolated process cannot make others talk to it: something must have come back. */
	if (slots[from].isolated && server->directs.handed[to][from] == 0)
		return false;
	return !direct_has_rate(server, from) && !direct_has_rate(server, to) &&
	       !direct_is_known(server, from, to) && direct_may(server, from) &&
	       direct_may(server, to);
}

void directs_note(struct server *server, uint16_t from, uint16_t to)
{
	int rc;

	if (server->directs.passes_all ||
	    ++server->directs.handed[from][to] % TRY_EVERY != TRY_AT ||
	    slot_engine_first(server, from) == slot_engine_first(server, to) ||
	    !direct_wants(server, from, to))
		return;
	rc = direct_make(server, from, to);
	if (rc != 0 && rc != -EAGAIN)
		log_info("no direct channel between processes %d and %d: %s",
			 server->slots.all[from].pid, server->slots.all[to].pid, strerror(-rc));
}

void directs_forget(struct server *server, uint16_t number)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		server->directs.handed[number][i] = server->directs.handed[i][number] = 0;
}

void directs_close(struct server *server, uint16_t number)
{
	struct server_direct *direct, *next;

	for (direct = LIST_FIRST(&server->directs.list); direct; direct = next) {
		next = LIST_NEXT(direct, link);
		if (!direct_is_of(direct, number))
			continue;
		direct_finish(server, direct);
		direct_free(server, direct);
	}
}

uint64_t directs_packets(const struct server *server)
{
	const struct server_direct *direct;
	uint64_t packets = 0;

	LIST_FOREACH (direct, &server->directs.list, link) {
		for (unsigned int side = 0; direct->memory && side < 2; side++)
			packets += __atomic_load_n(&direct->memory->rings[side].cons,
						   __ATOMIC_RELAXED);
	}
	return packets;
}

void directs_destroy(struct server *server)
{
	while (!LIST_EMPTY(&server->directs.list))
		direct_free(server, LIST_FIRST(&server->directs.list));
}
