/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that came out of order: a pool for each device, and lists in the order of PSNs. */
#include "transport/early.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/guard.h"
#include "wire/packet.h"

struct early_packet {
	SLIST_ENTRY(early_packet) link; /* in the list of free ones */
	struct packet packet;		/* its payload is in `bytes`, or NULL */
	const void *placed;		/* address of its payload if it was placed, or NULL */
	uint8_t bytes[EARLY_BYTES_MAX];
};

struct early_entry {
	struct psn psn;
	uint32_t packet; /* index in the pool */
};

/* The order of a list. Looking something up touches a few cache lines of this struct, and no
 * packet. */
struct early_order {
	SLIST_ENTRY(early_order) link; /* in the list of free ones */
	uint32_t first;
	struct early_entry entries[EARLY_LIST_PKTS]; /* `count` of them, beginning with `first` */
};

struct early_pool {
	/* Take the last freed one first, because it is in the cache. */
	SLIST_HEAD(, early_packet) free;
	SLIST_HEAD(, early_order) free_orders;
	TAILQ_HEAD(, early)
	lists; /* lists that are not empty; the one without progress for the longest time first */
	uint32_t used; /* number of `packets` that were ever used */
	uint32_t orders_used;
	uint32_t count;
	struct early_packet *packets;
	struct early_order *orders; /* as many as packets: each may be in a list of its own */
};

/* Map the pool's memory. It is not from the heap: its pages are allocated when they are first used,
 * and most never are. */
static void *early_map(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

int early_pool_create(uint32_t packets, struct early_pool **out)
{
	struct early_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return -ENOMEM;
	SLIST_INIT(&pool->free);
	SLIST_INIT(&pool->free_orders);
	TAILQ_INIT(&pool->lists);
	pool->count = packets;
	pool->packets = early_map(packets * sizeof(pool->packets[0]));
	pool->orders = early_map(packets * sizeof(pool->orders[0]));
	if (pool->packets == NULL || pool->orders == NULL) {
		early_pool_destroy(pool);
		return -ENOMEM;
	}
	*out = pool;
	return 0;
}

void early_pool_destroy(struct early_pool *pool)
{
	if (pool == NULL)
		return;
	if (pool->packets != NULL)
		munmap(pool->packets, pool->count * sizeof(pool->packets[0]));
	if (pool->orders != NULL)
		munmap(pool->orders, pool->count * sizeof(pool->orders[0]));
	free(pool);
}

static bool early_pool_empty(const struct early_pool *pool)
{
	return SLIST_EMPTY(&pool->free) && pool->used == pool->count;
}

/* Return the entries of a list that is not empty. */
static struct early_entry *early_entries(const struct early *early)
{
	return early->order->entries + early->order->first;
}

/* Free a packet of the list. */
static void early_free(struct early *early, uint32_t packet)
{
	struct early_pool *pool = early->pool;

	SLIST_INSERT_HEAD(&pool->free, &pool->packets[packet], link);
	if (--early->count > 0)
		return;
	TAILQ_REMOVE(&pool->lists, early, link);
	SLIST_INSERT_HEAD(&pool->free_orders, early->order, link);
	early->order = NULL;
}

static void early_free_first(struct early *early)
{
	const uint32_t packet = early_entries(early)[0].packet;

	early->order->first++;
	early_free(early, packet);
}

static void early_free_last(struct early *early)
{
	early_free(early, early_entries(early)[early->count - 1].packet);
}

/*
 * Take a free packet. If there is none, drop the farthest packet of the list without progress for
 * the longest time, as if the network had lost it. So a peer that never sends the missing packet
 * does not keep others from using the pool.
 */
static struct early_packet *early_pool_take(struct early_pool *pool)
{
	struct early_packet *kept;

	if (early_pool_empty(pool))
		early_free_last(TAILQ_FIRST(&pool->lists));
	kept = SLIST_FIRST(&pool->free);
	if (kept == NULL)
		return &pool->packets[pool->used++];
	SLIST_REMOVE_HEAD(&pool->free, link);
	return kept;
}

static struct early_order *early_pool_take_order(struct early_pool *pool)
{
	struct early_order *order = SLIST_FIRST(&pool->free_orders);

	if (order == NULL)
		return &pool->orders[pool->orders_used++];
	SLIST_REMOVE_HEAD(&pool->free_orders, link);
	return order;
}

/* Return how many packets of a list are before `psn`. Most new packets are ahead of all others. */
static uint32_t early_before(const struct early *early, struct psn psn)
{
	const struct early_entry *entries;
	uint32_t low = 0, high = early->count;

	if (high == 0)
		return 0;
	entries = early_entries(early);
	if (psn_before(entries[high - 1].psn, psn))
		return high;
	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (psn_before(entries[middle].psn, psn))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum early_verdict early_look(const struct early *early, const struct packet *packet,
			      struct psn expected, uint32_t *place)
{
	const int32_t ahead = psn_diff(packet->psn, expected);

	if (early->pool == NULL || ahead <= 0 || ahead >= EARLY_REACH ||
	    packet->payload_len > EARLY_BYTES_MAX)
		return EARLY_REFUSED;
	*place = early_before(early, packet->psn);
	if (*place < early->count && psn_eq(early_entries(early)[*place].psn, packet->psn))
		return EARLY_THERE;
	if (early->count == EARLY_LIST_PKTS ||
	    (early_pool_empty(early->pool) && TAILQ_FIRST(&early->pool->lists) == early))
		return EARLY_REFUSED;
	return EARLY_TAKEN;
}

/* Begin a list with its first packet. */
static void early_begin(struct early *early)
{
	early->order = early_pool_take_order(early->pool);
	early->order->first = 0;
	TAILQ_INSERT_TAIL(&early->pool->lists, early, link);
}

/* Make room for one more packet at its place. */
static struct early_entry *early_insert(struct early *early, uint32_t place)
{
	struct early_order *order = early->order;
	struct early_entry *entry;

	if (order->first + early->count == EARLY_LIST_PKTS) {
		memmove(order->entries, early_entries(early),
			early->count * sizeof(order->entries[0]));
		order->first = 0;
	}
	entry = early_entries(early) + place;
	memmove(entry + 1, entry, (early->count - place) * sizeof(*entry));
	early->count++;
	return entry;
}

void early_keep(struct early *early, const struct packet *packet, uint32_t place,
		const void *placed)
{
	struct early_packet *kept = early_pool_take(early->pool);

	kept->packet = *packet;
	/* The frame will be freed. Nothing reads these fields of a kept packet. */
	kept->packet.l3 = NULL;
	kept->packet.src_mac = NULL;
	kept->packet.payload = placed != NULL ? NULL : kept->bytes;
	kept->placed = placed;
	if (placed == NULL)
		memcpy(kept->bytes, packet->payload, packet->payload_len);
	if (early->count == 0)
		early_begin(early);
	*early_insert(early, place) = (struct early_entry){
		.psn = packet->psn, .packet = (uint32_t)(kept - early->pool->packets)};
}

static const struct early_packet *early_kept(const struct early *early, uint32_t place)
{
	return &early->pool->packets[early_entries(early)[place].packet];
}

const struct packet *early_at(const struct early *early, uint32_t place)
{
	return &early_kept(early, place)->packet;
}

const void *early_placed_at(const struct early *early, uint32_t place)
{
	return early_kept(early, place)->placed;
}

const struct packet *early_first(const struct early *early)
{
	return early->count == 0 ? NULL : early_at(early, 0);
}

const void *early_placed(const struct early *early)
{
	return early->count == 0 ? NULL : early_placed_at(early, 0);
}

/* Arguments of the guarded part of a comparison. */
struct comparison {
	const void *a;
	const void *b;
	uint32_t len;
	bool same;
};

static void compare(void *arg)
{
	struct comparison *comparison = arg;

	comparison->same = memcmp(comparison->a, comparison->b, comparison->len) == 0;
}

bool early_same_payload(const struct early *early, uint32_t place, const struct packet *packet)
{
	const struct early_packet *kept = early_kept(early, place);
	struct comparison comparison = {.a = kept->placed != NULL ? kept->placed : kept->bytes,
					.b = packet->payload,
					.len = packet->payload_len};

	if (kept->packet.payload_len != packet->payload_len)
		return false;
	/* The application's memory may be unmapped. */
	if (packet->payload_len > 0 && guard_run(compare, &comparison) != 0)
		return false;
	return packet->payload_len == 0 || comparison.same;
}

void early_remove(struct early *early, uint32_t place)
{
	struct early_entry *entry = early_entries(early) + place;
	const uint32_t packet = entry->packet;

	memmove(entry, entry + 1, (early->count - place - 1) * sizeof(*entry));
	early_free(early, packet);
}

void early_drop(struct early *early)
{
	early_free_first(early);
	if (early->count == 0)
		return;
	/* Requeue at the tail: the pool evicts from the list without progress for the longest
	 * time. */
	TAILQ_REMOVE(&early->pool->lists, early, link);
	TAILQ_INSERT_TAIL(&early->pool->lists, early, link);
}

bool early_drop_before(struct early *early, struct psn psn)
{
	const uint32_t count = early->count;

	while (early->count > 0 && psn_before(early_entries(early)[0].psn, psn))
		early_drop(early);
	return early->count < count;
}

void early_clear(struct early *early)
{
	while (early->count > 0)
		early_drop(early);
}

void early_check(const struct early *early)
{
#ifndef NDEBUG
	const struct early_entry *entries;

	assert((early->count > 0) == (early->order != NULL));
	if (early->count == 0)
		return;
	assert(early->order->first + early->count <= EARLY_LIST_PKTS);
	entries = early_entries(early);
	for (uint32_t i = 0; i < early->count; i++) {
		assert(i == 0 || psn_before(entries[i - 1].psn, entries[i].psn));
		assert(entries[i].packet < early->pool->used);
		assert(psn_eq(early_at(early, i)->psn, entries[i].psn));
	}
#else
	(void)early;
#endif
}
