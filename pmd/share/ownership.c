/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the holder of each buffer in an array, and checks against it what processes say. */
#include "share/ownership.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

int ownership_init(struct ownership *ownership, uint32_t buffers, uint32_t buffer_bytes,
		   uint32_t slots, uint32_t quota)
{
	ownership->holders = malloc(buffers * sizeof(ownership->holders[0]));
	ownership->held = calloc(slots, sizeof(ownership->held[0]));
	ownership->quotas = calloc(slots, sizeof(ownership->quotas[0]));
	ownership->buffers = buffers;
	ownership->buffer_bytes = buffer_bytes;
	ownership->slots = slots;
	if (!ownership->holders || !ownership->held || !ownership->quotas) {
		ownership_fini(ownership);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < buffers; i++)
		ownership->holders[i] = OWNERSHIP_OWNER;
	for (uint32_t i = 0; i < slots; i++)
		ownership->quotas[i] = quota;
	return 0;
}

void ownership_fini(struct ownership *ownership)
{
	free(ownership->holders);
	free(ownership->held);
	free(ownership->quotas);
	memset(ownership, 0, sizeof(*ownership));
}

bool ownership_give(struct ownership *ownership, uint32_t buffer, uint16_t slot)
{
	if (ownership->held[slot] >= ownership->quotas[slot])
		return false;
	ownership->holders[buffer] = slot;
	ownership->held[slot]++;
	return true;
}

bool ownership_take(struct ownership *ownership, uint32_t buffer, uint16_t slot)
{
	if (buffer >= ownership->buffers || ownership->holders[buffer] != slot)
		return false;
	ownership->holders[buffer] = OWNERSHIP_OWNER;
	ownership->held[slot]--;
	return true;
}

bool ownership_may_send(const struct ownership *ownership, const struct share_packet *packet,
			uint16_t slot)
{
	return packet->buffer < ownership->buffers && ownership->holders[packet->buffer] == slot &&
	       packet->len >= RTE_ETHER_HDR_LEN && packet->len <= ownership->buffer_bytes &&
	       packet->offset <= ownership->buffer_bytes - packet->len;
}

void ownership_reclaim(struct ownership *ownership, uint16_t slot,
		       void (*each)(uint32_t buffer, void *arg), void *arg)
{
	for (uint32_t i = 0; i < ownership->buffers && ownership->held[slot] > 0; i++) {
		if (ownership_take(ownership, i, slot))
			each(i, arg);
	}
}
