/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The application's handles: pointers to objects that it has created and not destroyed.
 *
 * A program may destroy an object twice. Its memory may have another use by then, so the memory
 * cannot tell if the object still exists. This table of the process's handles can. It uses open
 * addressing with linear probing, and is never more than three quarters full. It cannot distinguish
 * an old handle from a later object at the same address.
 */
#include <pthread.h>
#include <stdlib.h>

#include "verbs_internal.h"

#define FIRST_BITS 6

static struct {
	pthread_mutex_t lock; /* protects all below; no other lock is taken under it */
	const void **slots;   /* NULL: free */
	unsigned int bits;    /* the table has 1 << bits slots, if there are any */
	size_t count;
	bool is_incomplete; /* memory ran out: handles that are not here may be valid */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t mask(void)
{
	return ((size_t)1 << table.bits) - 1;
}

/* Return the first slot to try. The upper bits of the product differ, because objects are far
 * apart. */
static size_t home_of(const void *handle)
{
	return (size_t)(((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15)) >>
			(64 - table.bits));
}

/* Return the slot of a handle, or the free slot where it would be. */
static size_t find_locked(const void *handle)
{
	size_t at = home_of(handle);

	while (table.slots[at] && table.slots[at] != handle)
		at = (at + 1) & mask();
	return at;
}

static bool grow_locked(void)
{
	const void **const old = table.slots;
	const size_t slots = old ? mask() + 1 : 0;
	const unsigned int bits = old ? table.bits + 1 : FIRST_BITS;
	const void **const new = calloc((size_t)1 << bits, sizeof(*new));

	if (!new)
		return false;
	table.slots = new;
	table.bits = bits;
	for (size_t i = 0; i < slots; i++) {
		if (old[i])
			table.slots[find_locked(old[i])] = old[i];
	}
	free(old);
	return true;
}

static bool has_room_locked(void)
{
	return table.slots && table.count + 1 <= (mask() + 1) / 4 * 3;
}

/* Close the gap: move up every later entry of the run that may stand in it. */
static void empty_locked(size_t gap)
{
	for (size_t at = (gap + 1) & mask(); table.slots[at]; at = (at + 1) & mask()) {
		const size_t home = home_of(table.slots[at]);

		if (((at - home) & mask()) < ((at - gap) & mask()))
			continue;
		table.slots[gap] = table.slots[at];
		gap = at;
	}
	table.slots[gap] = NULL;
	table.count--;
}

void handles_add(const void *handle)
{
	pthread_mutex_lock(&table.lock);
	if (has_room_locked() || grow_locked()) {
		table.slots[find_locked(handle)] = handle;
		table.count++;
	} else {
		table.is_incomplete = true;
	}
	pthread_mutex_unlock(&table.lock);
}

bool handles_take(const void *handle)
{
	bool taken = false;

	pthread_mutex_lock(&table.lock);
	if (table.slots && handle) {
		const size_t at = find_locked(handle);

		taken = table.slots[at];
		if (taken)
			empty_locked(at);
	}
	taken |= handle && table.is_incomplete;
	pthread_mutex_unlock(&table.lock);
	return taken;
}

int handles_end_by(void *handle, int (*end)(void *handle), const char *function)
{
	int rc;

	if (!handles_take(handle))
		return face_fail(CALL_REASON(-EINVAL, "there is no such object, or not any more"),
				 function);
	rc = end(handle);
	if (rc != 0)
		handles_add(handle);
	if (rc == -EBUSY)
		rc = CALL_REASON(-EBUSY, "other objects still use it");
	return face_fail(rc, function);
}

void handles_lock(void)
{
	pthread_mutex_lock(&table.lock);
}

void handles_unlock(void)
{
	pthread_mutex_unlock(&table.lock);
}
