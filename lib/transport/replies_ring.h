/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings of owed and stored replies, for the files of replies.h only. */
#ifndef TRANSPORT_REPLIES_RING_H
#define TRANSPORT_REPLIES_RING_H

#include "transport/replies.h"

static inline struct reply *replies_resource(const struct replies *replies, uint32_t index)
{
	return &replies->resource[index & replies->mask];
}

static inline struct reply *replies_pending(const struct replies *replies, uint32_t index)
{
	return &replies->pending[index & (2 * replies->mask + 1)];
}

static inline void replies_pop(struct replies *replies)
{
	replies->repeats -= replies_pending(replies, replies->head++)->repeated;
}

#endif
