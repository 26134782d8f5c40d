/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that came out of order: a pool for each device, and lists in the order of PSNs. */
#include "transport/ooo.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "base/guard.h"
#include "wire/packet.h"

struct ooo_packet {
	SLIST_ENTRY(ooo_packet) link; /* in the list of free ones */
	struct packet packet;	      /* its payload is in `bytes`, or NULL */
	const void *placed;	      /* address of its payload if it was placed, or NULL */
	uint8_t bytes[OOO_BYTES_MAX];
};

struct ooo_entry {
	struct psn psn;
	uint32_t packet;  /* index in the pool */
	uint64_t kept_ns; /* when it was kept; 0: not known yet */
};

/* The order of a list. Looking something up touches a few cache lines of this struct, and no
 * packet. */
struct ooo_order {
	SLIST_ENTRY(ooo_order) link; /* in the list of free ones */
	uint32_t first;
	uint32_t room; /* of `entries` */
	struct ooo_entry
		*entries; /* `count` of them, beginning with `first`: `few`, or allocated */
	struct ooo_entry few[OOO_LIST_PKTS];
};

struct ooo_pool {
	/* Take the last freed one first, because it is in the cache. */
	SLIST_HEAD(, ooo_packet) free;
	SLIST_HEAD(, ooo_order) free_orders;
	/* Lists that are not empty; the one without progress for the longest time first. */
	TAILQ_HEAD(, ooo) lists;
	uint32_t used; /* number of `packets` that were ever used */
	uint32_t orders_used;
	uint32_t count;
	struct ooo_packet *packets;
	struct ooo_order *orders; /* as many as packets: each may be in a list of its own */
};

/* Map the pool's memory. It is not from the heap: its pages are allocated when they are first used,
 * and most never are. */
static void *ooo_map(size_t bytes)
{
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

int ooo_pool_create(uint32_t packets, struct ooo_pool **out)
{
	struct ooo_pool *pool = calloc(1, sizeof(*pool));

	if (pool == NULL)
		return -ENOMEM;
	SLIST_INIT(&pool->free);
	SLIST_INIT(&pool->free_orders);
	TAILQ_INIT(&pool->lists);
	pool->count = packets;
	pool->packets = ooo_map(packets * sizeof(pool->packets[0]));
	pool->orders = ooo_map(packets * sizeof(pool->orders[0]));
	if (pool->packets == NULL || pool->orders == NULL) {
		ooo_pool_destroy(pool);
		return -ENOMEM;
	}
	*out = pool;
	return 0;
}

void ooo_pool_destroy(struct ooo_pool *pool)
{
	if (pool == NULL)
		return;
	if (pool->packets != NULL)
		munmap(pool->packets, pool->count * sizeof(pool->packets[0]));
	if (pool->orders != NULL)
		munmap(pool->orders, pool->count * sizeof(pool->orders[0]));
	free(pool);
}

static bool ooo_pool_empty(const struct ooo_pool *pool)
{
	return SLIST_EMPTY(&pool->free) && pool->used == pool->count;
}

/* Return the entries of a list that is not empty. */
static struct ooo_entry *ooo_entries(const struct ooo *ooo)
{
	return ooo->order->entries + ooo->order->first;
}

/* Free allocated entries when few packets are left. Else a peer with many queue pairs could make
 * each of them keep the memory of a long list, by leaving one packet in it. */
static void ooo_shrink(const struct ooo *ooo)
{
	struct ooo_order *order = ooo->order;

	if (order->entries == order->few || ooo->count > OOO_LIST_PKTS / 2)
		return;
	memcpy(order->few, ooo_entries(ooo), ooo->count * sizeof(order->few[0]));
	free(order->entries);
	order->entries = order->few;
	order->room = OOO_LIST_PKTS;
	order->first = 0;
}

/* Free what a list does not need after packets have left it. */
static void ooo_settle(struct ooo *ooo)
{
	struct ooo_pool *pool = ooo->pool;

	ooo_shrink(ooo);
	if (ooo->count > 0)
		return;
	TAILQ_REMOVE(&pool->lists, ooo, link);
	SLIST_INSERT_HEAD(&pool->free_orders, ooo->order, link);
	ooo->order = NULL;
}

/* Free a packet of the list. */
static void ooo_free(struct ooo *ooo, uint32_t packet)
{
	struct ooo_pool *pool = ooo->pool;

	SLIST_INSERT_HEAD(&pool->free, &pool->packets[packet], link);
	ooo->count--;
	ooo_settle(ooo);
}

static void ooo_free_first(struct ooo *ooo)
{
	const uint32_t packet = ooo_entries(ooo)[0].packet;

	ooo->order->first++;
	ooo_free(ooo, packet);
}

static void ooo_free_last(struct ooo *ooo)
{
	ooo_free(ooo, ooo_entries(ooo)[ooo->count - 1].packet);
}

/*
 * Take a free packet. If there is none, drop the farthest packet of the list without progress for
 * the longest time, as if the network had lost it. So a peer that never sends the missing packet
 * does not keep others from using the pool.
 */
static struct ooo_packet *ooo_pool_take(struct ooo_pool *pool)
{
	struct ooo_packet *kept;

	if (ooo_pool_empty(pool))
		ooo_free_last(TAILQ_FIRST(&pool->lists));
	kept = SLIST_FIRST(&pool->free);
	if (kept == NULL)
		return &pool->packets[pool->used++];
	SLIST_REMOVE_HEAD(&pool->free, link);
	return kept;
}

static struct ooo_order *ooo_pool_take_order(struct ooo_pool *pool)
{
	struct ooo_order *order = SLIST_FIRST(&pool->free_orders);

	if (order == NULL)
		return &pool->orders[pool->orders_used++];
	SLIST_REMOVE_HEAD(&pool->free_orders, link);
	return order;
}

/* Return how many packets of a list are before `psn`. Most new packets are ahead of all others. */
static uint32_t ooo_before(const struct ooo *ooo, struct psn psn)
{
	const struct ooo_entry *entries;
	uint32_t low = 0, high = ooo->count;

	if (high == 0)
		return 0;
	entries = ooo_entries(ooo);
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

static uint32_t ooo_reach(const struct ooo *ooo)
{
	return ooo->reach != 0 ? ooo->reach : OOO_REACH;
}

/* Return true if there is room for one more packet in the order of a list; allocate more if its
 * reach allows it. */
static bool ooo_reserve(const struct ooo *ooo)
{
	struct ooo_order *order = ooo->order;
	struct ooo_entry *entries;
	uint32_t room;

	if (ooo->count == 0 || ooo->count < order->room)
		return true;
	if (ooo->count >= ooo_reach(ooo) - (OOO_REACH - OOO_LIST_PKTS))
		return false;
	room = 2 * order->room;
	entries = malloc(room * sizeof(*entries));
	if (entries == NULL)
		return false;
	memcpy(entries, ooo_entries(ooo), ooo->count * sizeof(*entries));
	if (order->entries != order->few)
		free(order->entries);
	order->entries = entries;
	order->room = room;
	order->first = 0;
	return true;
}

enum ooo_verdict ooo_look(const struct ooo *ooo, const struct packet *packet, struct psn expected,
			  uint32_t *place)
{
	const int32_t ahead = psn_diff(packet->psn, expected);

	if (ooo->pool == NULL || ahead <= 0 || ahead >= (int32_t)ooo_reach(ooo) ||
	    packet->payload_len > OOO_BYTES_MAX)
		return OOO_REFUSED;
	*place = ooo_before(ooo, packet->psn);
	if (*place < ooo->count && psn_eq(ooo_entries(ooo)[*place].psn, packet->psn))
		return OOO_THERE;
	if (!ooo_reserve(ooo) ||
	    (ooo_pool_empty(ooo->pool) && TAILQ_FIRST(&ooo->pool->lists) == ooo))
		return OOO_REFUSED;
	return OOO_TAKEN;
}

/* Begin a list with its first packet. */
static void ooo_begin(struct ooo *ooo)
{
	ooo->order = ooo_pool_take_order(ooo->pool);
	ooo->order->first = 0;
	ooo->order->room = OOO_LIST_PKTS;
	ooo->order->entries = ooo->order->few;
	TAILQ_INSERT_TAIL(&ooo->pool->lists, ooo, link);
}

/* Make room for one more packet at its place. */
static struct ooo_entry *ooo_insert(struct ooo *ooo, uint32_t place)
{
	struct ooo_order *order = ooo->order;
	struct ooo_entry *entry;

	if (order->first + ooo->count == order->room) {
		memmove(order->entries, ooo_entries(ooo), ooo->count * sizeof(order->entries[0]));
		order->first = 0;
	}
	entry = ooo_entries(ooo) + place;
	memmove(entry + 1, entry, (ooo->count - place) * sizeof(*entry));
	ooo->count++;
	return entry;
}

void ooo_keep(struct ooo *ooo, const struct packet *packet, uint32_t place, const void *placed)
{
	struct ooo_packet *kept = ooo_pool_take(ooo->pool);

	kept->packet = *packet;
	/* The frame will be freed. Nothing reads these fields of a kept packet. */
	kept->packet.l3 = NULL;
	kept->packet.src_mac = NULL;
	kept->packet.payload = placed != NULL ? NULL : kept->bytes;
	kept->placed = placed;
	if (placed == NULL)
		memcpy(kept->bytes, packet->payload, packet->payload_len);
	if (ooo->count == 0)
		ooo_begin(ooo);
	*ooo_insert(ooo, place) = (struct ooo_entry){
		.psn = packet->psn, .packet = (uint32_t)(kept - ooo->pool->packets)};
}

static const struct ooo_packet *ooo_kept(const struct ooo *ooo, uint32_t place)
{
	return &ooo->pool->packets[ooo_entries(ooo)[place].packet];
}

const struct packet *ooo_at(const struct ooo *ooo, uint32_t place)
{
	return &ooo_kept(ooo, place)->packet;
}

const void *ooo_placed_at(const struct ooo *ooo, uint32_t place)
{
	return ooo_kept(ooo, place)->placed;
}

const struct packet *ooo_first(const struct ooo *ooo)
{
	return ooo->count == 0 ? NULL : ooo_at(ooo, 0);
}

const void *ooo_placed(const struct ooo *ooo)
{
	return ooo->count == 0 ? NULL : ooo_placed_at(ooo, 0);
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

bool ooo_same_payload(const struct ooo *ooo, uint32_t place, const struct packet *packet)
{
	const struct ooo_packet *kept = ooo_kept(ooo, place);
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

void ooo_remove(struct ooo *ooo, uint32_t place)
{
	struct ooo_entry *entry = ooo_entries(ooo) + place;
	const uint32_t packet = entry->packet;

	memmove(entry, entry + 1, (ooo->count - place - 1) * sizeof(*entry));
	ooo_free(ooo, packet);
}

void ooo_drop(struct ooo *ooo)
{
	ooo_free_first(ooo);
	if (ooo->count == 0)
		return;
	/* Requeue at the tail: the pool evicts from the list without progress for the longest
	 * time. */
	TAILQ_REMOVE(&ooo->pool->lists, ooo, link);
	TAILQ_INSERT_TAIL(&ooo->pool->lists, ooo, link);
}

bool ooo_drop_before(struct ooo *ooo, struct psn psn)
{
	const uint32_t count = ooo->count;

	while (ooo->count > 0 && psn_before(ooo_entries(ooo)[0].psn, psn))
		ooo_drop(ooo);
	return ooo->count < count;
}

void ooo_stamp(struct ooo *ooo, struct psn psn, uint64_t now_ns)
{
	const uint32_t place = ooo_before(ooo, psn);
	struct ooo_entry *entry;

	if (place == ooo->count)
		return;
	entry = ooo_entries(ooo) + place;
	if (!psn_eq(entry->psn, psn) || entry->kept_ns != 0)
		return;
	entry->kept_ns = now_ns;
	if (ooo->count == 1)
		ooo->oldest_ns = now_ns;
}

uint32_t ooo_drop_old(struct ooo *ooo, uint64_t age_ns, uint64_t now_ns)
{
	const uint32_t count = ooo->count;
	/* Look again after an eighth of that time, even if packets become too old before: they may
	 * be many. */
	uint64_t oldest_ns = now_ns;
	struct ooo_entry *entries;
	uint32_t left = 0;

	if (count == 0 || now_ns - ooo->oldest_ns <= age_ns)
		return 0;
	entries = ooo_entries(ooo);
	for (uint32_t i = 0; i < count; i++) {
		if (now_ns - entries[i].kept_ns > age_ns) {
			SLIST_INSERT_HEAD(&ooo->pool->free, &ooo->pool->packets[entries[i].packet],
					  link);
			continue;
		}
		oldest_ns = RTE_MIN(oldest_ns, entries[i].kept_ns);
		entries[left++] = entries[i];
	}
	ooo->oldest_ns = RTE_MAX(oldest_ns, now_ns - age_ns + age_ns / 8);
	ooo->count = left;
	if (left < count)
		ooo_settle(ooo);
	return count - left;
}

uint32_t ooo_tell(const struct ooo *ooo, struct psn expected, uint8_t *bitmap, uint32_t bytes)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < ooo->count; i++) {
		const uint32_t bit = (uint32_t)psn_diff(ooo_entries(ooo)[i].psn, expected) - 1;

		if (bit >= 8 * bytes)
			break;
		while (used <= bit / 8)
			bitmap[used++] = 0;
		bitmap[bit / 8] |= (uint8_t)(1u << bit % 8);
	}
	return used;
}

bool ooo_follows(const struct ooo *ooo, uint32_t place, struct psn psn)
{
	return place > 0 && psn_eq(ooo_entries(ooo)[place - 1].psn, psn_add(psn, -1));
}

void ooo_clear(struct ooo *ooo)
{
	while (ooo->count > 0)
		ooo_drop(ooo);
}

void ooo_check(const struct ooo *ooo)
{
#ifndef NDEBUG
	const struct ooo_entry *entries;

	assert((ooo->count > 0) == (ooo->order != NULL));
	if (ooo->count == 0)
		return;
	assert(ooo->order->first + ooo->count <= ooo->order->room);
	entries = ooo_entries(ooo);
	for (uint32_t i = 0; i < ooo->count; i++) {
		assert(i == 0 || psn_before(entries[i - 1].psn, entries[i].psn));
		assert(entries[i].packet < ooo->pool->used);
		assert(psn_eq(ooo_at(ooo, i)->psn, entries[i].psn));
	}
#else
	(void)ooo;
#endif
}
