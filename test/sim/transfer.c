/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures a number of equal messages from one end of a pair to the other. */
#include "transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many messages were complete at this time. */
struct mark {
	unsigned int complete;
	uint64_t at_ns;
};

void transfer_check(const struct pair *pair)
{
	if (memcmp(pair->node[0].memory, pair->node[1].memory, pair->attr.bytes) == 0)
		return;
	fprintf(stderr, "transfer: the data is wrong\n");
	exit(1);
}

void transfer_post(struct pair *pair, const struct transfer *transfer, size_t place)
{
	if (transfer->opcode == IBV_WR_SEND)
		pair_receive(pair, place, transfer->bytes);
	pair_post(pair, transfer->opcode, place, transfer->bytes, place);
}

struct transferred transfer_measure(struct pair_attr attr, const struct transfer *transfer)
{
	const double bits = 8.0 * transfer->messages * transfer->bytes;
	const unsigned int eighth = transfer->messages / 8;
	unsigned int posted = 0, complete = 0;
	struct mark first = {0}, last = {0};
	struct transferred transferred;
	const struct node *source;
	struct pair pair;
	uint64_t start_ns;

	attr.bytes = (size_t)transfer->flight * transfer->bytes;
	pair_set_up(&pair, &attr);
	start_ns = pair.clock.now_ns;
	while (complete < transfer->messages) {
		while (posted < transfer->messages && posted - complete < transfer->flight)
			transfer_post(&pair, transfer,
				      (posted++ % transfer->flight) * (size_t)transfer->bytes);
		pair_step(&pair);
		complete += pair_poll(&pair);
		pair_poll_received(&pair);
		if (first.complete < eighth)
			first = (struct mark){complete, pair.clock.now_ns};
		if (last.complete < transfer->messages - eighth)
			last = (struct mark){complete, pair.clock.now_ns};
	}
	transfer_check(&pair);
	source = &pair.node[transfer->opcode == IBV_WR_RDMA_READ];
	transferred = (struct transferred){.gbps = bits / (double)(pair.clock.now_ns - start_ns),
					   .steady_gbps = 8.0 * transfer->bytes *
							  (last.complete - first.complete) /
							  (double)(last.at_ns - first.at_ns),
					   .packets = source->packets,
					   .lost = source->link.fates[LINK_LOST]};
	pair_tear_down(&pair);
	return transferred;
}
