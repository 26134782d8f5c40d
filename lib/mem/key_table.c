/* SPDX-License-Identifier: BSD-3-Clause */
/* The key table: slots that are allocated on demand, a FIFO list of free slots, and random keys. */
#include "mem/key_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <rte_bitops.h>
#include <rte_common.h>

/*
 * A key is 24 bits that name the slot, then a tag of 8 bits. The user of a memory window chooses
 * its tag (ibv_inc_rkey(3)); all other tags are random.
 */
#define TAG_BITS       8
#define INDEX_BITS_MAX (32 - TAG_BITS - 1) /* one less than a key has: some keys name no slot */
#define LOW_BITS_MAX   ((INDEX_BITS_MAX + 1) / 2)
#define ROUNDS	       4 /* as many as Luby and Rackoff's proof needs */
#define CHUNK_SHIFT    9
#define CHUNK_SLOTS    (1u << CHUNK_SHIFT)
/* Insertions that must pass before a freed slot is used again, as long as other slots are free. */
#define QUARANTINE_INSERTIONS (1u << 16)
#define RANDOM_WORDS	      64 /* getrandom(2) gives up to 256 bytes without interruption */
#define NO_SLOT		      UINT32_MAX

/*
 * Of the 24 bits, the lower index_bits are a position, and the bits above are random. The position
 * is the slot's index after a secret permutation, so that somebody who knows some keys cannot guess
 * the positions of others. The permutation is a Feistel network: it changes each half of the index
 * in turn by a table of random numbers that the other half selects.
 */

/* From these numbers the next keys could be predicted. So a child of fork() finds zeros here: it
 * may be less trusted than its parent. It has no use for the table, as it has none for the device.
 */
struct key_secrets {
	/* even rounds: lower half changes the upper one; odd: the reverse; set at creation */
	uint16_t rounds[ROUNDS][1u << LOW_BITS_MAX];
	uint32_t random[RANDOM_WORDS]; /* under the table's lock, as the next one */
	uint32_t random_left;
};

struct key_table {
	struct key_recent recent; /* must be the first field: key_table_find relies on it */

	/* set at creation */
	uint32_t max_regions;
	uint32_t capacity; /* maximal number of slots: max_regions, and as many that wait for reuse
			    */
	uint32_t place_mask;
	uint32_t low_bits; /* bits of the index's lower half; the upper half has as many, or one
			      less */
	struct key_secrets *secrets;

	pthread_mutex_t lock;
	/* under lock */
	uint32_t regions;    /* keys in use */
	uint32_t insertions; /* number of insertions; wraps */
	uint32_t fresh;	     /* slots from here on were never used */
	uint32_t free_head;  /* list of freed slots, the oldest first */
	uint32_t free_tail;

	/* atomic; release-stored when a chunk is allocated, never freed before the table */
	struct key_slot *chunks[];
};

static struct key_slot *slot_at(const struct key_table *table, uint32_t index)
{
	struct key_slot *chunk =
		__atomic_load_n(&table->chunks[index >> CHUNK_SHIFT], __ATOMIC_ACQUIRE);

	return chunk ? &chunk[index & (CHUNK_SLOTS - 1)] : NULL;
}

static int random_word_locked(struct key_secrets *secrets, uint32_t *word)
{
	if (secrets->random_left == 0) {
		ssize_t got;

		do {
			got = getrandom(secrets->random, sizeof(secrets->random), 0);
		} while (got < 0 && errno == EINTR);
		if (got < 0)
			return -errno;
		secrets->random_left = (uint32_t)((size_t)got / sizeof(secrets->random[0]));
		if (secrets->random_left == 0)
			return -EIO;
	}
	*word = secrets->random[--secrets->random_left];
	return 0;
}

/* Fill a round with random numbers of `bits` bits, one for each value of `from_bits` bits. */
static int fill_round(struct key_secrets *secrets, uint16_t *round, uint32_t from_bits,
		      uint32_t bits)
{
	for (uint32_t i = 0; i < 1u << from_bits; i++) {
		uint32_t word = 0;
		int rc = random_word_locked(secrets, &word);

		if (rc != 0)
			return rc;
		round[i] = (uint16_t)(word & ((1u << bits) - 1));
	}
	return 0;
}

static int fill_rounds(struct key_table *table, uint32_t index_bits)
{
	const uint32_t low_bits = (index_bits + 1) / 2, high_bits = index_bits - low_bits;
	struct key_secrets *secrets = table->secrets;
	int rc = 0;

	table->low_bits = low_bits;
	for (int i = 0; i < ROUNDS && rc == 0; i += 2) {
		rc = fill_round(secrets, secrets->rounds[i], low_bits, high_bits);
		if (rc == 0)
			rc = fill_round(secrets, secrets->rounds[i + 1], high_bits, low_bits);
	}
	return rc;
}

static uint32_t place_of(const struct key_table *table, uint32_t index)
{
	uint32_t high = index >> table->low_bits, low = index & ((1u << table->low_bits) - 1);
	const struct key_secrets *secrets = table->secrets;

	for (int i = 0; i < ROUNDS; i += 2) {
		high ^= secrets->rounds[i][low];
		low ^= secrets->rounds[i + 1][high];
	}
	return high << table->low_bits | low;
}

/* Run the same rounds in reverse order. */
static uint32_t index_of(const struct key_table *table, uint32_t key)
{
	const uint32_t place = key >> TAG_BITS & table->place_mask;
	uint32_t high = place >> table->low_bits, low = place & ((1u << table->low_bits) - 1);
	const struct key_secrets *secrets = table->secrets;

	for (int i = ROUNDS - 2; i >= 0; i -= 2) {
		low ^= secrets->rounds[i + 1][high];
		high ^= secrets->rounds[i][low];
	}
	return high << table->low_bits | low;
}

/* Map memory that is zero in a child of fork(). 0 or -errno. */
static int map_secrets(struct key_secrets **secrets)
{
	void *memory = mmap(NULL, sizeof(**secrets), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (memory == MAP_FAILED)
		return -ENOMEM;
	if (madvise(memory, sizeof(**secrets), MADV_WIPEONFORK) != 0) {
		rc = -errno;
		munmap(memory, sizeof(**secrets));
		return rc;
	}
	*secrets = memory;
	return 0;
}

int key_table_create(uint32_t max_regions, struct key_table **table)
{
	struct key_table *t;
	uint32_t bits;
	size_t chunks;
	int rc;

	if (max_regions > (1u << INDEX_BITS_MAX) - QUARANTINE_INSERTIONS)
		return -ENOMEM;
	bits = rte_log2_u32(max_regions + QUARANTINE_INSERTIONS);
	chunks = ((size_t)1 << bits) / CHUNK_SLOTS;
	t = calloc(1, sizeof(*t) + chunks * sizeof(t->chunks[0]));
	if (!t)
		return -ENOMEM;
	t->max_regions = max_regions;
	t->capacity = max_regions + QUARANTINE_INSERTIONS;
	t->place_mask = (1u << bits) - 1;
	t->free_head = NO_SLOT;
	t->free_tail = NO_SLOT;
	rc = map_secrets(&t->secrets);
	if (rc != 0) {
		free(t);
		return rc;
	}
	rc = fill_rounds(t, bits);
	if (rc != 0) {
		munmap(t->secrets, sizeof(*t->secrets));
		free(t);
		return rc;
	}
	pthread_mutex_init(&t->lock, NULL);
	*table = t;
	return 0;
}

void key_table_destroy(struct key_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->capacity && slot_at(table, i); i += CHUNK_SLOTS)
		free(table->chunks[i >> CHUNK_SHIFT]);
	pthread_mutex_destroy(&table->lock);
	munmap(table->secrets, sizeof(*table->secrets));
	free(table);
}

static void append_free_locked(struct key_table *table, uint32_t index)
{
	slot_at(table, index)->next_free = NO_SLOT;
	if (table->free_tail == NO_SLOT)
		table->free_head = index;
	else
		slot_at(table, table->free_tail)->next_free = index;
	table->free_tail = index;
}

static void take_oldest_free_locked(struct key_table *table)
{
	table->free_head = slot_at(table, table->free_head)->next_free;
	if (table->free_head == NO_SLOT)
		table->free_tail = NO_SLOT;
}

/* Return true if the slot that was freed first was free for long enough, or no other one is
 * left. */
static bool may_reuse_locked(const struct key_table *table)
{
	return table->free_head != NO_SLOT &&
	       (table->fresh == table->capacity ||
		table->insertions - slot_at(table, table->free_head)->freed_at >=
			QUARANTINE_INSERTIONS);
}

static int make_fresh_locked(struct key_table *table)
{
	struct key_slot *chunk;

	if (slot_at(table, table->fresh))
		return 0;
	chunk = calloc(CHUNK_SLOTS, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	__atomic_store_n(&table->chunks[table->fresh >> CHUNK_SHIFT], chunk, __ATOMIC_RELEASE);
	return 0;
}

static int make_key_locked(struct key_table *table, uint32_t index, uint32_t *key)
{
	const uint32_t place = place_of(table, index);
	uint32_t word = 0;
	int rc;

	/* Repeat until the upper bits are not 0: then no tag can turn the key into KEY_NONE. */
	do {
		rc = random_word_locked(table->secrets, &word);
		if (rc != 0)
			return rc;
		*key = (word & ~(table->place_mask << TAG_BITS)) | place << TAG_BITS;
	} while (*key >> TAG_BITS == 0);
	return 0;
}

static int insert_locked(struct key_table *table, struct mr *mr, uint32_t *key)
{
	const bool reuse = may_reuse_locked(table);
	const uint32_t index = reuse ? table->free_head : table->fresh;
	struct key_slot *slot;
	int rc = 0;

	if (table->regions == table->max_regions)
		return -ENOSPC;
	if (!reuse)
		rc = make_fresh_locked(table);
	if (rc == 0)
		rc = make_key_locked(table, index, key);
	if (rc != 0)
		return rc;
	if (reuse)
		take_oldest_free_locked(table);
	else
		table->fresh++;
	table->regions++;
	table->insertions++;
	slot = slot_at(table, index);
	/* Release: a reader that sees the new region also sees that the slot's old key is gone. */
	__atomic_store_n(&slot->mr, mr, __ATOMIC_RELEASE);
	/* Release: a reader that sees the key also sees the region. */
	__atomic_store_n(&slot->key, *key, __ATOMIC_RELEASE);
	return 0;
}

int key_table_insert(struct key_table *table, struct mr *mr, uint32_t *key)
{
	int rc, cancel_state;

	/* Disable cancellation: a thread cancelled in getrandom(2) would leave the lock locked. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&table->lock);
	rc = insert_locked(table, mr, key);
	pthread_mutex_unlock(&table->lock);
	pthread_setcancelstate(cancel_state, NULL);
	return rc;
}

void key_table_remove(struct key_table *table, uint32_t key)
{
	const uint32_t index = index_of(table, key);
	struct key_slot *slot = slot_at(table, index);

	pthread_mutex_lock(&table->lock);
	if (slot && key != KEY_NONE && slot->key == key) {
		__atomic_store_n(&slot->key, KEY_NONE, __ATOMIC_RELAXED);
		slot->freed_at = table->insertions;
		append_free_locked(table, index);
		table->regions--;
	}
	pthread_mutex_unlock(&table->lock);
}

int key_table_change(struct key_table *table, uint32_t from, uint32_t to)
{
	struct key_slot *slot = slot_at(table, index_of(table, from));
	int rc = -EINVAL;

	pthread_mutex_lock(&table->lock);
	if (slot && from != KEY_NONE && slot->key == from && from >> TAG_BITS == to >> TAG_BITS) {
		__atomic_store_n(&slot->key, to, __ATOMIC_RELEASE);
		rc = 0;
	}
	pthread_mutex_unlock(&table->lock);
	return rc;
}

struct mr *key_table_search(struct key_table *table, uint32_t key)
{
	struct key_slot *slot = slot_at(table, index_of(table, key));
	struct mr *mr = key_slot_region(slot, key);

	if (mr)
		__atomic_store_n(&table->recent.slot[key >> TAG_BITS & (KEY_RECENT - 1)], slot,
				 __ATOMIC_RELEASE);
	return mr;
}

struct mr *key_table_find_any_tag(struct key_table *table, uint32_t key)
{
	const struct key_slot *slot = slot_at(table, index_of(table, key));
	struct mr *mr = NULL;

	pthread_mutex_lock(&table->lock);
	if (slot && slot->key != KEY_NONE && slot->key >> TAG_BITS == key >> TAG_BITS)
		mr = slot->mr;
	pthread_mutex_unlock(&table->lock);
	return mr;
}

void key_table_each(struct key_table *table,
		    void (*each)(const struct mr *mr, uint32_t key, void *arg), void *arg)
{
	pthread_mutex_lock(&table->lock);
	for (uint32_t i = 0; i < table->fresh; i++) {
		const struct key_slot *slot = slot_at(table, i);

		if (slot->key != KEY_NONE)
			each(slot->mr, slot->key, arg);
	}
	pthread_mutex_unlock(&table->lock);
}
