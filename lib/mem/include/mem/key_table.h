/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of memory regions: 32 bits, unpredictable, found by one indexed look-up, not soon used
 * again. */
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
 * The begin of every table: where keys of late were found, by their middle bits. Slots are never
 * taken back, and say themselves whose they are, so an entry may be anybody's. Atomic.
 */
struct key_recent {
	struct key_slot *slot[KEY_RECENT];
};

/**
 * Create a table. MT-safe.
 *
 * @param max_regions
 *   How many keys may be in use at once.
 * @return
 *   0 or -ENOMEM.
 */
int key_table_create(uint32_t max_regions, struct key_table **table);

/** Destroy an empty table. Not MT-safe. */
void key_table_destroy(struct key_table *table);

/**
 * Give a region a key and make it findable. MT-safe.
 * No key is given again before 2^16 others were given after it became free.
 *
 * @return
 *   0, -ENOMEM, or -ENOSPC when max_regions are in use.
 */
int key_table_insert(struct key_table *table, struct mr *mr, uint32_t *key);

/**
 * Give a region another key, whose upper 24 bits are the same (as ibv_inc_rkey(3) makes it). The
 * old key becomes invalid. MT-safe. 0, or -EINVAL where `from` is nobody's key, or `to` none for
 * it.
 */
int key_table_change(struct key_table *table, uint32_t from, uint32_t to);

/** Make a key invalid. MT-safe; a concurrent look-up may still return the region (see
 * mr_deregister). */
void key_table_remove(struct key_table *table, uint32_t key);

/** The region that a slot has for a key, or NULL. */
static inline struct mr *key_slot_region(const struct key_slot *slot, uint32_t key)
{
	struct mr *mr;

	if (unlikely(!slot) || key == KEY_NONE ||
	    __atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) != key)
		return NULL;
	/*
	 * The key is read again behind the region: between the two reads the slot may have gone to
	 * another region, whose store of `mr` came after the store that took the key away.
	 */
	mr = __atomic_load_n(&slot->mr, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key ? mr : NULL;
}

/** key_table_find, where the table remembers nothing of the key. */
struct mr *key_table_search(struct key_table *table, uint32_t key);

/** The region of a key, or NULL. MT-safe, wait-free; O(1). Every bit of the key is compared. */
static inline struct mr *key_table_find(struct key_table *table, uint32_t key)
{
	struct key_recent *recent = (struct key_recent *)(void *)table;
	struct mr *mr = NULL;

	/* Pairs with key_table_search's release store, behind which the slot is there. */
	if (likely(tuning.key_cache))
		mr = key_slot_region(__atomic_load_n(&recent->slot[key >> 8 & (KEY_RECENT - 1)],
						     __ATOMIC_ACQUIRE),
				     key);
	return likely(mr != NULL) ? mr : key_table_search(table, key);
}

/** The region whose key has these upper 24 bits, or NULL. MT-safe. */
struct mr *key_table_find_any_tag(struct key_table *table, uint32_t key);

/** Call `each` for every region and window that has a key, under the table's lock. MT-safe. */
void key_table_each(struct key_table *table,
		    void (*each)(const struct mr *mr, uint32_t key, void *arg), void *arg);

#endif
