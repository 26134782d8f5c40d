/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes what a process gets with its slot: its page, its numbers, and its descriptors.
 *
 * Each process gets a new page, so nothing that an earlier process left behind can access the
 * memory of a later one.
 */
#include "slot.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/settings.h"
#include "event.h"
#include "isolated.h"
#include "owner/arbiter.h"
#include "psocks.h"
#include "resume.h"
#include "server.h"

/* Find the process at the other end, and open a pidfd that reports its end. The socket does not
 * always do so, because a child of the process may keep it open. */
static int slot_identify(struct slot *slot, int socket, bool isolated)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return -errno;
	slot->pid = peer.pid;
	slot->uid = peer.uid;
	slot->user = isolated ? user_of(socket) : USER_TRUSTED;
	/* The process is in a PID namespace that ours does not contain. An isolated process needs
	 * no pidfd: the end of its socket is enough. */
	if (peer.pid == 0)
		return isolated ? 0 : -EPERM;
	slot->pidfd = user_pidfd(socket, &peer);
	if (slot->pidfd < 0)
		return slot->pidfd;
	/* If the process has not ended, no other process has its number, and what was found by
	 * the number is true. */
	return user_has_ended(slot->pidfd) ? -ESRCH : 0;
}

/* The superuser's limits are those of user id 0. */
const struct tenants_limits *slot_limits_of(const struct server *server, user_t user)
{
	const struct serve_tenants *all = server->tenant_limits;
	static const struct tenants_limits none = {.weight = 1};

	if (!all)
		return &none;
	if (user == USER_TRUSTED)
		return &all->attached;
	if (user == USER_ROOT)
		user = user_of_uid(0);
	for (size_t i = 0; i < all->count; i++) {
		if (all->users[i].user == user)
			return &all->users[i].limits;
	}
	return &all->others;
}

/* Count the slot towards its tenant. 0 or -errno. */
static int slot_join(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	slot->tenant = tenants_join(&server->tenants, slot->user,
				    slot_limits_of(server, slot->user), server->now_ns);
	return slot->tenant == TENANTS_NONE ? -ENOSPC : 0;
}

static int slot_make_page(struct slot *slot, int *page_fd)
{
	const size_t bytes = share_ring_offset(SHARE_RINGS);
	void *memory;

	*page_fd = memfd_create("uroced-slot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*page_fd < 0)
		return -errno;
	if (ftruncate(*page_fd, (off_t)bytes) != 0 ||
	    fcntl(*page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return -errno;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *page_fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	madvise(memory, bytes, MADV_DONTDUMP);
	slot->page = memory;
	for (int kind = 0; kind < SHARE_RINGS; kind++)
		share_ring_init(&slot->rings[kind],
				(uint8_t *)memory + share_ring_offset((enum share_ring_kind)kind),
				share_ring_words((enum share_ring_kind)kind));
	return 0;
}

/* Make the eventfds that wake the process, and the set that it gets. Edge-triggered, so that it
 * need not read them. */
static int slot_make_wake_set(struct slot *slot)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	slot->process_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (slot->process_fd < 0)
		return -errno;
	slot->direct_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (slot->direct_fd < 0)
		return -errno;
	slot->wake_set_fd = epoll_create1(EPOLL_CLOEXEC);
	if (slot->wake_set_fd < 0)
		return -errno;
	if (epoll_ctl(slot->wake_set_fd, EPOLL_CTL_ADD, slot->process_fd, &event) != 0 ||
	    epoll_ctl(slot->wake_set_fd, EPOLL_CTL_ADD, slot->direct_fd, &event) != 0)
		return -errno;
	return 0;
}

/* Return how many full shares are reserved for others. A process of several engines had one, and
 * finds one if it is back. Nobody knows which processes of one engine had one: they come before new
 * ones only. */
static uint32_t slot_shares_reserved(const struct server *server, const struct resume_awaited *kept)
{
	const struct resume_needs needs = resume_needs(server, USER_TRUSTED);

	if (!kept)
		return needs.shares;
	return kept->entry.engines > 1 ? 0 : needs.engine_shares;
}

/* Make the page, which only processes that share memory have. `reserved` counts full shares. */
static int slot_make_shared(struct server *server, uint16_t number, uint32_t reserved, int *page_fd)
{
	struct slot *slot = &server->slots.all[number];
	int rc = slot_make_page(slot, page_fd);

	if (rc != 0)
		return rc;
	if (server->slots.full_shares + reserved < SERVER_FULL_SHARES)
		slot_give_full_share(server, number);
	rc = slot_make_wake_set(slot);
	if (rc != 0)
		return rc;
	slot->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (slot->doorbell_fd < 0)
		return -errno;
	return event_watch(server, slot->doorbell_fd, EVENT_DOORBELL, number);
}

/* Return true if a user has as many slots as it may. So no user takes all slots from the others,
 * except the superuser, who could do so anyway. */
static bool slot_user_has_all(const struct server *server, user_t user, uint32_t reserved)
{
	uint32_t count = reserved;

	if (!user_is_limited(user))
		return false;
	for (int i = 0; i < SERVE_SLOTS_MAX; i++)
		count += server->slots.all[i].isolated && server->slots.all[i].user == user;
	return count >= RTE_MIN(SERVER_ISOLATED_USER_MAX, server->slots.max / 5u);
}

static int slot_make_isolated(struct server *server, struct slot *slot,
			      const struct resume_awaited *kept)
{
	const struct resume_needs needs =
		kept ? (struct resume_needs){0} : resume_needs(server, slot->user);
	int rc;

	if (server->slots.isolated_count + needs.isolated >=
		    RTE_MIN(SERVER_ISOLATED_MAX, server->slots.max / 2u) ||
	    slot_user_has_all(server, slot->user, needs.of_user))
		return -ENOSPC;
	rc = isolated_create(slot);
	server->slots.isolated_count += rc == 0;
	return rc;
}

/* Watch the process's socket, and wait for its end. */
static int slot_watch(struct server *server, uint16_t number, int socket)
{
	const struct slot *slot = &server->slots.all[number];
	const int rc = event_rewatch(server, socket, EVENT_SOCKET, number);

	if (rc != 0 || slot->pidfd < 0)
		return rc;
	return event_watch(server, slot->pidfd, EVENT_PIDFD, number);
}

/* Return how many queue pairs the other processes of a slot's tenant may have. */
static uint32_t slot_count_qp(const struct server *server, uint16_t number)
{
	uint32_t count = 0;

	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++) {
		const struct slot *slot = &server->slots.all[i];

		if (i != number && slot->state != SLOT_FREE && !slot->is_further &&
		    slot->tenant == server->slots.all[number].tenant)
			count += slot->qpn_count / 2;
	}
	return count;
}

/* Give a slot as many numbers as its process and its tenant may have. 0, or -EDQUOT: the tenant has
 * all that it may have. */
static int slot_limit_qp(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	const uint32_t limit = tenants_limits_of(&server->tenants, slot->tenant)->max_qp;

	slot->max_qp = server->slots.max_qp;
	if (limit > 0) {
		const uint32_t used = slot_count_qp(server, number);

		if (used >= limit)
			return -EDQUOT;
		if (slot->max_qp == 0 || slot->max_qp > limit - used)
			slot->max_qp = RTE_MIN(limit - used, (uint32_t)SETTINGS_QP_MAX);
	}
	/* Give twice as many numbers as queue pairs: the number of a destroyed queue pair is not
	 * reused at once. */
	static_assert(2 * SETTINGS_QP_MAX == BLOCK_QPNS, "no more than a block has numbers for");
	slot->qpn_count = BLOCK_QPNS;
	if (slot->max_qp > 0)
		slot->qpn_count = RTE_MIN(2 * slot->max_qp, BLOCK_QPNS);
	return 0;
}

/* Give a slot new numbers. 0 or -errno. */
static int slot_give_numbers(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	const int rc = blocks_alloc(&server->slots.blocks, number, server->now_ns, slot->user);

	if (rc < 0)
		return rc;
	slot->qpn_first = (uint32_t)rc;
	psocks_check(server);
	if (psocks_leave_out(server, slot->qpn_first))
		return -ENOMEM;
	return arbiter_begin(server->gsi.arbiter, number, slot->user, server->now_ns,
			     &slot->id_value);
}

int slot_prepare(struct server *server, uint16_t number, int socket, bool isolated,
		 uint32_t engines, const struct resume_awaited *kept, int *page_fd)
{
	struct slot *slot = &server->slots.all[number];
	int rc;

	rc = slot_identify(slot, socket, isolated);
	if (rc == 0)
		rc = slot_join(server, number);
	if (rc == 0)
		rc = isolated ? slot_make_isolated(server, slot, kept)
			      : slot_make_shared(server, number, slot_shares_reserved(server, kept),
						 page_fd);
	if (rc != 0)
		return rc;
	slot_engine_reserve(server, number, engines, kept != NULL);
	rc = kept ? resume_give_numbers(server, number, &kept->entry)
		  : slot_give_numbers(server, number);
	if (rc == 0)
		rc = slot_limit_qp(server, number);
	/* A process that is back has its queue pairs, whatever new ones may have now. */
	if (kept && (rc == 0 || rc == -EDQUOT)) {
		slot->qpn_count = kept->entry.qpn_count;
		rc = 0;
	}
	if (rc != 0)
		return rc;
	return slot_watch(server, number, socket);
}

int slot_prepare_further(struct server *server, uint16_t number, int socket,
			 const struct share_engine *engine, int *page_fd)
{
	int rc;

	rc = slot_identify(&server->slots.all[number], socket, false);
	if (rc == 0)
		rc = slot_join(server, number);
	if (rc != 0)
		return rc;
	slot_engine_add(server, number, engine);
	rc = slot_make_shared(server, number, 0, page_fd);
	return rc == 0 ? slot_watch(server, number, socket) : rc;
}
