/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures an end's ways to store and to read long packets: feeds its choices (base/choice.h). */
#ifndef MEMIF_METER_H
#define MEMIF_METER_H

#include "memif/end.h"

/* Initialise. The end's side is set. */
void meter_init(struct memif_end *end);

/* Note that a long packet was put into the ring. */
static inline void meter_put(struct memif_meter *meter, size_t len, bool past_caches)
{
	meter->bytes += len;
	meter->past_caches |= past_caches;
}

/* Measure, before the packets that were put since the last call are published. Some of them are
 * long. */
void meter_push(struct memif_end *end);

/* Measure, before the packets that were received since the last call are given back. Some of them
 * are long. */
void meter_release(struct memif_end *end);

#endif
