/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives blocks of communication ids. */
#include "owner/ids.h"

#include "share/blocks.h"

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

int ids_alloc(struct ids *ids, uint16_t slot, uint64_t now_ns, user_t user, uint32_t *value)
{
	const struct quarantine quarantine = ids_quarantine(ids);
	uint32_t block;
	const int rc = quarantine_give(&quarantine, slot, now_ns, user, &block);

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
