/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the holder of each buffer in an array, and checks against it what processes say. */
#include "share/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

int ledger_init(struct ledger *ledger, uint32_t buffers, uint32_t buffer_bytes, uint32_t slots,
		uint32_t quota)
{
	ledger->holders = malloc(buffers * sizeof(ledger->holders[0]));
	ledger->held = calloc(slots, sizeof(ledger->held[0]));
	ledger->quotas = calloc(slots, sizeof(ledger->quotas[0]));
	ledger->buffers = buffers;
	ledger->buffer_bytes = buffer_bytes;
	ledger->slots = slots;
	ledger->aside = 0;
	if (!ledger->holders || !ledger->held || !ledger->quotas) {
		ledger_fini(ledger);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < buffers; i++)
		ledger->holders[i] = LEDGER_OWNER;
	for (uint32_t i = 0; i < slots; i++)
		ledger->quotas[i] = quota;
	return 0;
}

void ledger_fini(struct ledger *ledger)
{
	free(ledger->holders);
	free(ledger->held);
	free(ledger->quotas);
	memset(ledger, 0, sizeof(*ledger));
}

bool ledger_give(struct ledger *ledger, uint32_t buffer, uint16_t slot)
{
	if (ledger->held[slot] >= ledger->quotas[slot])
		return false;
	ledger->holders[buffer] = slot;
	ledger->held[slot]++;
	return true;
}

bool ledger_take(struct ledger *ledger, uint32_t buffer, uint16_t slot)
{
	if (buffer >= ledger->buffers || ledger->holders[buffer] != slot)
		return false;
	ledger->holders[buffer] = LEDGER_OWNER;
	ledger->held[slot]--;
	return true;
}

bool ledger_may_send(const struct ledger *ledger, const struct share_packet *packet, uint16_t slot)
{
	return packet->buffer < ledger->buffers && ledger->holders[packet->buffer] == slot &&
	       packet->len >= RTE_ETHER_HDR_LEN && packet->len <= ledger->buffer_bytes &&
	       packet->offset <= ledger->buffer_bytes - packet->len;
}

bool ledger_set_aside(struct ledger *ledger, uint32_t buffer, uint16_t slot)
{
	if (!ledger_take(ledger, buffer, slot))
		return false;
	ledger->holders[buffer] = LEDGER_ASIDE;
	ledger->aside++;
	return true;
}

void ledger_take_aside(struct ledger *ledger, uint32_t buffer)
{
	ledger->holders[buffer] = LEDGER_OWNER;
	ledger->aside--;
}

void ledger_reclaim(struct ledger *ledger, uint16_t slot, void (*each)(uint32_t buffer, void *arg),
		    void *arg)
{
	for (uint32_t i = 0; i < ledger->buffers && ledger->held[slot] > 0; i++) {
		if (ledger_take(ledger, i, slot))
			each(i, arg);
	}
}
