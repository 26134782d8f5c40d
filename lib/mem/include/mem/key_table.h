/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of memory regions: 32 bits, unpredictable, found by one indexed look-up, not soon used
 * again. */
#ifndef MEM_KEY_TABLE_H
#define MEM_KEY_TABLE_H

#include <stdint.h>

struct mr;
struct key_table;

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

/** The region of a key, or NULL. MT-safe, wait-free; O(1). Every bit of the key is compared. */
struct mr *key_table_find(const struct key_table *table, uint32_t key);

/** The region whose key has these upper 24 bits, or NULL. MT-safe. */
struct mr *key_table_find_any_tag(struct key_table *table, uint32_t key);

/** Call `each` for every region and window that has a key, under the table's lock. MT-safe. */
void key_table_each(struct key_table *table,
		    void (*each)(const struct mr *mr, uint32_t key, void *arg), void *arg);

#endif
