/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of memory regions: 32 bits, unpredictable, found by one indexed look-up, and not reused
 * soon. */
#ifndef MEM_KEY_TABLE_H
#define MEM_KEY_TABLE_H

#include <stdint.h>

#include <rte_branch_prediction.h>

#include "base/tuning.h"

struct mr;
struct key_table;

#define KEY_RECENT 256u /* a power of two */
#define KEY_NONE   0u	/* never given to a region */

struct key_slot {
	struct mr *mr;	    /* atomic */
	uint32_t key;	    /* atomic; KEY_NONE while the slot is free */
	uint32_t next_free; /* index, or none; while on the free list; under lock */
	uint32_t freed_at;  /* insertions when it was freed; under lock */
};

/*
 * Cache of the slots of keys that were used last, by the keys' middle bits; the first field of
 * every table. Slots are never freed, and each one holds its own key, so an entry may safely be
 * stale. Atomic.
 */
struct key_recent {
	struct key_slot *slot[KEY_RECENT];
};

/**
 * Create a table. MT-safe.
 *
 * @param max_regions
 *   How many keys may be in use at the same time.
 * @return
 *   0, -ENOMEM, or -errno of getrandom(2) or madvise(2).
 */
int key_table_create(uint32_t max_regions, struct key_table **table);

/** Destroy an empty table. Not MT-safe. */
void key_table_destroy(struct key_table *table);

/**
 * Give a region a key, by which it can then be found. MT-safe. A key that became free is not given
 * again before 2^16 other keys were given.
 *
 * @return
 *   0, -ENOMEM, or -ENOSPC if max_regions keys are in use.
 */
int key_table_insert(struct key_table *table, struct mr *mr, uint32_t *key);

/**
 * Give a region another key with the same upper 24 bits (as ibv_inc_rkey(3) makes it). The old key
 * becomes invalid. MT-safe. 0, or -EINVAL if `from` is not a valid key or `to` differs in the upper
 * bits.
 */
int key_table_change(struct key_table *table, uint32_t from, uint32_t to);

/** Make a key invalid. MT-safe; a concurrent look-up may still return the region (see
 * mr_deregister). */
void key_table_remove(struct key_table *table, uint32_t key);

/** Return the region that a slot holds for a key, or NULL. */
static inline struct mr *key_slot_region(const struct key_slot *slot, uint32_t key)
{
	struct mr *mr;

	if (unlikely(!slot) || key == KEY_NONE ||
	    __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) != key)
		return NULL;
	/*
	 * Read the key again after the region. Between the two reads the slot may have been given
	 * to another region, whose store to `mr` came after the store that removed the key.
	 */
	mr = __atomic_load_n(&slot->mr, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key ? mr : NULL;
}

/** Do what key_table_find does for a key that is not in the cache. */
struct mr *key_table_search(struct key_table *table, uint32_t key);

/** Return the region of a key that is in the cache, or NULL. MT-safe. */
static inline struct mr *key_table_recall(struct key_table *table, uint32_t key)
{
	struct key_recent *recent = (struct key_recent *)(void *)table;

	if (unlikely(!tuning.key_cache))
		return NULL;
	/* Pairs with the release store in key_table_search: a reader of the slot's address also
	 * sees the slot. */
	return key_slot_region(
		__atomic_load_n(&recent->slot[key >> 8 & (KEY_RECENT - 1)], __ATOMIC_ACQUIRE), key);
}

/** Return the region of a key, or NULL. MT-safe, wait-free, O(1). Every bit of the key is
 * compared. */
static inline struct mr *key_table_find(struct key_table *table, uint32_t key)
{
	struct mr *mr = key_table_recall(table, key);

	return likely(mr != NULL) ? mr : key_table_search(table, key);
}

/** Return the region whose key has these upper 24 bits, or NULL. MT-safe. */
struct mr *key_table_find_any_tag(struct key_table *table, uint32_t key);

/** Call `each` for every region and window that has a key, under the table's lock. MT-safe. */
void key_table_each(struct key_table *table,
		    void (*each)(const struct mr *mr, uint32_t key, void *arg), void *arg);

#endif
