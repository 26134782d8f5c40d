/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that came before their turn: a pool of the device, and lists in the order of PSNs. */
#include "transport/early.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/headers.h"
#include "wire/packet.h"

struct early_packet {
	TAILQ_ENTRY(early_packet) link; /* in its list, or among the free ones */
	struct packet packet;		/* its payload is in `bytes`, or NULL */
	uint8_t bytes[WIRE_MTU_MAX];
};

struct early_pool {
	struct early_list free; /* the one freed last first: it is in the cache */
	TAILQ_HEAD(, early) lists; /* that hold something, the one that stood still longest first */
	uint32_t used; /* of `packets`, how many were ever taken: nobody touches those behind */
	uint32_t count;
	struct early_packet *packets;
};

int early_pool_create(uint32_t packets, struct early_pool **out)
{
	struct early_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return -ENOMEM;
	TAILQ_INIT(&pool->free);
	TAILQ_INIT(&pool->lists);
	pool->count = packets;
	/* Not of the heap: pages come one by one, as they are used, and most never are. */
	pool->packets = mmap(NULL, packets * sizeof(pool->packets[0]), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool->packets == MAP_FAILED) {
		free(pool);
		return -ENOMEM;
	}
	*out = pool;
	return 0;
}

void early_pool_destroy(struct early_pool *pool)
{
	if (pool == NULL)
		return;
	munmap(pool->packets, pool->count * sizeof(pool->packets[0]));
	free(pool);
}

static bool early_pool_empty(const struct early_pool *pool)
{
	return TAILQ_EMPTY(&pool->free) && pool->used == pool->count;
}

static void early_remove(struct early *early, struct early_packet *kept)
{
	TAILQ_REMOVE(&early->list, kept, link);
	TAILQ_INSERT_HEAD(&early->pool->free, kept, link);
	if (--early->count == 0)
		TAILQ_REMOVE(&early->pool->lists, early, link);
}

/*
 * Where nothing is free, the list that stood still longest gives its farthest packet, as if that
 * had been lost: a peer that never sends what is missing keeps no other from using the pool.
 */
static struct early_packet *early_pool_take(struct early_pool *pool)
{
	struct early_packet *kept;

	if (early_pool_empty(pool)) {
		struct early *oldest = TAILQ_FIRST(&pool->lists);

		early_remove(oldest, TAILQ_LAST(&oldest->list, early_list));
	}
	kept = TAILQ_FIRST(&pool->free);

	if (kept == NULL)
		return &pool->packets[pool->used++];
	TAILQ_REMOVE(&pool->free, kept, link);
	return kept;
}

/*
 * The newest packet of a list that is not behind `psn`, or NULL. Most that come are ahead of all
 * that are there.
 */
static struct early_packet *early_up_to(const struct early *early, struct psn psn)
{
	struct early_packet *kept;

	if (early->count == 0)
		return NULL;
	TAILQ_FOREACH_REVERSE(kept, &early->list, early_list, link)
	{
		if (!psn_before(psn, kept->packet.psn))
			return kept;
	}
	return NULL;
}

bool early_takes(const struct early *early, const struct packet *packet, struct psn expected)
{
	const int32_t ahead = psn_diff(packet->psn, expected);
	const struct early_packet *before;

	if (early->pool == NULL || ahead <= 0 || ahead >= EARLY_REACH ||
	    packet->payload_len > WIRE_MTU_MAX || early->count == EARLY_LIST_PKTS ||
	    (early_pool_empty(early->pool) && TAILQ_FIRST(&early->pool->lists) == early))
		return false;
	before = early_up_to(early, packet->psn);
	return before == NULL || !psn_eq(before->packet.psn, packet->psn);
}

void early_keep(struct early *early, const struct packet *packet, bool placed)
{
	struct early_packet *before = early_up_to(early, packet->psn);
	struct early_packet *kept = early_pool_take(early->pool);

	kept->packet = *packet;
	/* The frame goes. Nobody asks for these of what is kept. */
	kept->packet.l3 = NULL;
	kept->packet.src_mac = NULL;
	kept->packet.payload = placed ? NULL : kept->bytes;
	if (!placed)
		memcpy(kept->bytes, packet->payload, packet->payload_len);
	if (early->count++ == 0) {
		TAILQ_INIT(&early->list);
		TAILQ_INSERT_TAIL(&early->pool->lists, early, link);
	}
	if (before == NULL)
		TAILQ_INSERT_HEAD(&early->list, kept, link);
	else
		TAILQ_INSERT_AFTER(&early->list, before, kept, link);
}

const struct packet *early_first(const struct early *early)
{
	return early->count == 0 ? NULL : &TAILQ_FIRST(&early->list)->packet;
}

void early_drop(struct early *early)
{
	early_remove(early, TAILQ_FIRST(&early->list));
	if (early->count == 0)
		return;
	/* It moves. */
	TAILQ_REMOVE(&early->pool->lists, early, link);
	TAILQ_INSERT_TAIL(&early->pool->lists, early, link);
}

bool early_drop_before(struct early *early, struct psn psn)
{
	const uint32_t count = early->count;

	while (early->count > 0 && psn_before(early_first(early)->psn, psn))
		early_drop(early);
	return early->count < count;
}

void early_clear(struct early *early)
{
	while (early->count > 0)
		early_drop(early);
}
