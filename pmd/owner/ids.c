/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives blocks of communication ids at random. */
#include "owner/ids.h"

#include <errno.h>
#include <sys/random.h>

#include "share/quarantine.h"

static struct quarantine ids_quarantine(struct ids *ids)
{
	return (struct quarantine){
		.slots = ids->slots,
		.quarantine_end_ns = ids->quarantine_end_ns,
		.users = ids->users,
		.count = IDS_BLOCKS,
		.quarantine_ns = IDS_QUARANTINE_NS,
		.user_max = IDS_USER_MAX,
	};
}

void ids_init(struct ids *ids)
{
	const struct quarantine quarantine = ids_quarantine(ids);

	quarantine_init(&quarantine);
}

/* Return a free block whose quarantine has ended, chosen at random; all are equally likely. If all
 * free blocks are in quarantine, return the one whose quarantine ends first. IDS_BLOCKS: none is
 * free. */
static uint32_t ids_choose(const struct ids *ids, uint64_t now_ns, uint32_t random)
{
	uint32_t first = IDS_BLOCKS, reusable = 0;

	for (uint32_t i = 0; i < IDS_BLOCKS; i++)
		reusable += ids->slots[i] == IDS_NONE && ids->quarantine_end_ns[i] <= now_ns;
	random = reusable > 0 ? random % reusable : 0;
	for (uint32_t i = 0; i < IDS_BLOCKS; i++) {
		if (ids->slots[i] != IDS_NONE)
			continue;
		if (ids->quarantine_end_ns[i] <= now_ns && random-- == 0)
			return i;
		if (first == IDS_BLOCKS ||
		    ids->quarantine_end_ns[i] < ids->quarantine_end_ns[first])
			first = i;
	}
	return first;
}

int ids_alloc(struct ids *ids, uint16_t slot, uint64_t now_ns, user_t user, uint32_t *value)
{
	const struct quarantine quarantine = ids_quarantine(ids);
	uint32_t random, block;
	int rc;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	block = ids_choose(ids, now_ns, random);
	rc = quarantine_give(&quarantine, block, slot, now_ns, user);
	if (rc == 0)
		*value = block << IDS_SHIFT;
	return rc;
}

void ids_free(struct ids *ids, uint32_t value, uint64_t now_ns)
{
	const struct quarantine quarantine = ids_quarantine(ids);

	quarantine_take_back(&quarantine, value >> IDS_SHIFT, now_ns);
}

void ids_keep(struct ids *ids, uint32_t value, uint64_t until_ns, user_t user)
{
	const struct quarantine quarantine = ids_quarantine(ids);

	quarantine_keep(&quarantine, value >> IDS_SHIFT, until_ns, user);
}

int ids_take(struct ids *ids, uint32_t value, uint16_t slot, user_t user)
{
	const struct quarantine quarantine = ids_quarantine(ids);

	return quarantine_take(&quarantine, value >> IDS_SHIFT, slot, user);
}
