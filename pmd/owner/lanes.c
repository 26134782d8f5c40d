/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner's part in lanes between processes (share/lane.h). The owner makes a lane when packets
 * go from one process to another through the owner. */
#include "lanes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "server.h"
#include "share/lane.h"
#include "share/message.h"
#include "slot.h"

#define TRY_AT	  16 /* packets between two processes: fewer are not worth a lane */
#define TRY_EVERY 64 /* packets until the next attempt if no lane could be made; a power of two */

static_assert(SERVE_SLOTS_MAX <= SHARE_PEERS_MAX, "each slot has its place in a page");

struct server_lane {
	LIST_ENTRY(server_lane) link;
	uint32_t number;
	uint16_t slots[2]; /* by side */
	struct lane_memory *memory;
};

static void lane_free(struct server *server, struct server_lane *lane)
{
	LIST_REMOVE(lane, link);
	server->lanes.count--;
	munmap(lane->memory, sizeof(*lane->memory));
	free(lane);
}

static int lane_map(struct server_lane *lane)
{
	const int fd = memfd_create("uroced-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *memory;
	int rc;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)sizeof(*lane->memory)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		goto failed;
	memory = mmap(NULL, sizeof(*lane->memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		goto failed;
	madvise(memory, sizeof(*lane->memory), MADV_DONTDUMP);
	lane->memory = memory;
	return fd;
failed:
	rc = -errno;
	close(fd);
	return rc;
}

/* Offer the lane to the process at a side. 0 or -errno. */
static int lane_offer(struct server *server, const struct server_lane *lane, unsigned int side,
		      int memory_fd)
{
	const uint16_t peer = lane->slots[!side];
	const struct slot *slot = &server->slots.all[lane->slots[side]];
	const struct slot *first = &server->slots.all[slot_engine_first(server, peer)];
	const int fds[SHARE_LANE_FDS] = {
		[SHARE_LANE_FD_MEMORY] = memory_fd,
		[SHARE_LANE_FD_PEER] = server->slots.all[peer].lanes_fd,
	};
	const struct share_message message = {
		.type = SHARE_LANE,
		.version = SHARE_VERSION,
		.offer =
			{
				.number = lane->number,
				.peer = peer,
				.side = (uint16_t)side,
				.qpn_first = server->slots.all[peer].qpn_first,
				.qpn_count = server->slots.all[peer].qpn_count,
				.engines = RTE_MAX(first->engine_count, 1u),
				.served = slot_engine_served(server, peer),
			},
	};

	__atomic_store_n(&slot->page->lanes[peer], lane->number, __ATOMIC_RELEASE);
	return message_send(slot->socket, &message, fds, SHARE_LANE_FDS);
}

/* Remove the lane from the pages of its processes. A process whose page says so closes the lane. */
static void lane_withdraw(struct server *server, const struct server_lane *lane)
{
	/* They go on without this owner. */
	if (server->resume.hands_over)
		return;
	for (unsigned int side = 0; side < 2; side++) {
		const struct slot *slot = &server->slots.all[lane->slots[side]];

		__atomic_store_n(&slot->page->lanes[lane->slots[!side]], 0, __ATOMIC_RELEASE);
	}
}

static bool lane_is_of(const struct server_lane *lane, uint16_t number)
{
	return lane->slots[0] == number || lane->slots[1] == number;
}

static bool lane_is_known(const struct server *server, uint16_t a, uint16_t b)
{
	const struct server_lane *lane;

	LIST_FOREACH (lane, &server->lanes.list, link) {
		if (lane_is_of(lane, a) && lane_is_of(lane, b))
			return true;
	}
	return false;
}

/* Return true if a process may have one more. */
static bool lane_may(const struct server *server, uint16_t number)
{
	const struct server_lane *lane;
	unsigned int count = 0;

	LIST_FOREACH (lane, &server->lanes.list, link)
		count += lane_is_of(lane, number);
	return count < SHARE_LANES_MAX;
}

static int lane_make(struct server *server, uint16_t a, uint16_t b)
{
	struct server_lane *lane = calloc(1, sizeof(*lane));
	int fd, rc;

	if (!lane)
		return -ENOMEM;
	fd = lane_map(lane);
	if (fd < 0) {
		free(lane);
		return fd;
	}
	lane->number = ++server->lanes.number ? server->lanes.number : ++server->lanes.number;
	lane->slots[0] = a;
	lane->slots[1] = b;
	LIST_INSERT_HEAD(&server->lanes.list, lane, link);
	server->lanes.count++;
	rc = lane_offer(server, lane, 0, fd);
	if (rc == 0)
		rc = lane_offer(server, lane, 1, fd);
	close(fd);
	if (rc == 0) {
		server->totals.lanes++;
		return 0;
	}
	/* One process may know of the lane. It has never seen the other one ready. */
	lane_withdraw(server, lane);
	lane_free(server, lane);
	return rc;
}

void lanes_note(struct server *server, uint16_t from, uint16_t to)
{
	int rc;

	if (server->lanes.passes_all || ++server->lanes.handed[from][to] % TRY_EVERY != TRY_AT ||
	    slot_engine_first(server, from) == slot_engine_first(server, to))
		return;
	if (server->slots.all[from].isolated && server->slots.all[to].isolated) {
		/* A process cannot make others talk to it: something must have come back. */
		if (server->lanes.handed[to][from] > 0)
			direct_make(server, from, to);
		return;
	}
	if (server->slots.all[from].state != SLOT_LIVE ||
	    server->slots.all[to].state != SLOT_LIVE || server->slots.all[from].isolated ||
	    server->slots.all[to].isolated || server->lanes.count >= LANES_MAX ||
	    lane_is_known(server, from, to) || !lane_may(server, from) || !lane_may(server, to))
		return;
	rc = lane_make(server, from, to);
	if (rc != 0 && rc != -EAGAIN)
		log_info("no lane between processes %d and %d: %s", server->slots.all[from].pid,
			 server->slots.all[to].pid, strerror(-rc));
}

void lanes_forget(struct server *server, uint16_t number)
{
	for (uint16_t i = 0; i < SERVE_SLOTS_MAX; i++)
		server->lanes.handed[number][i] = server->lanes.handed[i][number] = 0;
}

void lanes_close(struct server *server, uint16_t number)
{
	struct server_lane *lane, *next;

	for (lane = LIST_FIRST(&server->lanes.list); lane; lane = next) {
		next = LIST_NEXT(lane, link);
		if (!lane_is_of(lane, number))
			continue;
		lane_withdraw(server, lane);
		lane_free(server, lane);
	}
}

uint64_t lanes_packets(const struct server *server)
{
	const struct server_lane *lane;
	uint64_t packets = 0;

	LIST_FOREACH (lane, &server->lanes.list, link) {
		for (unsigned int side = 0; side < 2; side++)
			packets +=
				__atomic_load_n(&lane->memory->rings[side].cons, __ATOMIC_RELAXED);
	}
	return packets;
}

void lanes_destroy(struct server *server)
{
	while (!LIST_EMPTY(&server->lanes.list))
		lane_free(server, LIST_FIRST(&server->lanes.list));
}
