/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs that wait for the engine's next pass, first in, first out. Not MT-safe. */
#ifndef CM_OUTBOX_H
#define CM_OUTBOX_H

#include <stdint.h>

#include "device/gsi.h"
#include "wire/cm.h"

#define OUTBOX_KEPT 64u	   /* places that are kept while it is empty */
#define OUTBOX_MAX  65536u /* a program may ask for so many connections in one go */

struct outbox_mad {
	struct gsi_address to;
	uint8_t bytes[MAD_LEN];
};

/* Zeroed: empty, without memory. */
struct outbox {
	struct outbox_mad *mads;
	uint32_t room; /* a power of two, or 0 */
	uint32_t head; /* free-running */
	uint32_t tail;
};

/** Append a MAD of MAD_LEN bytes. 0; -ENOBUFS if OUTBOX_MAX MADs wait; -ENOMEM. */
int outbox_push(struct outbox *outbox, const struct gsi_address *to, const uint8_t *mad);

/** Return the oldest MAD; NULL if none waits. */
const struct outbox_mad *outbox_first(const struct outbox *outbox);

/** Remove the oldest MAD. */
void outbox_pop(struct outbox *outbox);

void outbox_fini(struct outbox *outbox);

#endif
