/* SPDX-License-Identifier: BSD-3-Clause */
/* A number of equal messages from one end of a pair (sim_pair.h) to the other, and how long they
 * take. */
#ifndef SIM_TRANSFER_H
#define SIM_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "sim_pair.h"

struct transfer {
	enum ibv_wr_opcode opcode; /* WRITE, SEND or READ */
	uint32_t bytes;		   /* of a message */
	unsigned int messages;
	unsigned int flight; /* messages that are posted and not complete; all have memory of their
				own */
};

struct transferred {
	double gbps;	    /* of payload */
	double steady_gbps; /* of the messages behind the first eighth, and before the last */
	uint64_t packets;   /* sent by the end whose memory was read */
	uint64_t lost;	    /* of those */
};

/** Set up a pair whose memories have room for a flight, measure, and tear it down. Exit if anything
 * fails, or if the data is wrong. */
struct transferred transfer_measure(struct pair_attr attr, const struct transfer *transfer);

/** Post a message at this place of both memories, and, for a SEND, its receive request. */
void transfer_post(struct pair *pair, const struct transfer *transfer, size_t place);

/** Exit unless the two memories hold the same bytes. */
void transfer_check(const struct pair *pair);

#endif
