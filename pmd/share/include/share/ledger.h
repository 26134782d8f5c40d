/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who holds which packet buffer. The owner of the port keeps it in memory of its own: whatever a
 * process wrote or left unwritten when it died, what it held is known, and comes back.
 */
#ifndef SHARE_LEDGER_H
#define SHARE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "share/layout.h"

#define LEDGER_OWNER UINT16_MAX /* held by the owner: in its pool, its port, its hands */
/* A process that has ended had lent it to another, which still has it. */
#define LEDGER_ASIDE (UINT16_MAX - 1)

/* One thread at a time. */
struct ledger {
	uint16_t *holders; /* of each buffer */
	uint32_t *held;	   /* how many each slot has */
	uint32_t buffers;
	uint32_t buffer_bytes;
	uint32_t slots;
	uint32_t aside;	   /* how many are LEDGER_ASIDE */
	uint32_t held_max; /* of a slot; SHARE_HELD_MAX, or less where that is wanted */
};

/** All buffers are the owner's. 0 or -ENOMEM. */
int ledger_init(struct ledger *ledger, uint32_t buffers, uint32_t buffer_bytes, uint32_t slots);

void ledger_fini(struct ledger *ledger);

/** Note that a buffer of the owner's goes to a slot. false where the slot has as many as it may. */
bool ledger_give(struct ledger *ledger, uint32_t buffer, uint16_t slot);

/** Note that it comes back. false where the slot never had it: then nothing has changed. */
bool ledger_take(struct ledger *ledger, uint32_t buffer, uint16_t slot);

/** Whether a slot may send this: a buffer that it holds, and a frame that lies in it. */
bool ledger_may_send(const struct ledger *ledger, const struct share_packet *packet, uint16_t slot);

/** Set aside a buffer of a slot that has ended. false where the slot never had it. */
bool ledger_set_aside(struct ledger *ledger, uint32_t buffer, uint16_t slot);

/** Take back one that was set aside. */
void ledger_take_aside(struct ledger *ledger, uint32_t buffer);

/** Take back everything that a slot holds; `each` gets the numbers. */
void ledger_reclaim(struct ledger *ledger, uint16_t slot, void (*each)(uint32_t buffer, void *arg),
		    void *arg);

#endif
