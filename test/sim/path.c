/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A path that becomes longer, and shorter again, while a connection between uroce peers uses it:
 * the requester measures the round trip anew. Else it would send each message again before the
 * answer can come, and its window would be that of the old path. Virtual time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "transfer.h"

#define MESSAGES  200u /* on each path, one at a time */
#define MESSAGE	  4096u
#define EARLY	  8u  /* messages until the new round trip is known */
#define EARLY_MAX 40u /* probes meanwhile */
/* Many messages at a time: goodput of the first ones on a longer path, and then. Without a change
 * it is 47 and 64 Gb/s: the largest advertised window is two thirds of what this path holds. */
#define BULK	     3000u
#define BULK_MESSAGE 65536u
#define BULK_FLIGHT  256u
#define BULK_FIRST   40.0
#define BULK_THEN    60.0
#define NEAR_NS	     5000u /* one way */
#define FAR_NS	     500000u

static const char *name_of(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND ? "SEND" : opcode == IBV_WR_RDMA_READ ? "READ" : "WRITE";
}

/* Send messages, one at a time. Return how many probes the requester sent meanwhile. */
static uint64_t probes_of(struct pair *pair, enum ibv_wr_opcode opcode, unsigned int messages)
{
	const struct transfer transfer = {.opcode = opcode, .bytes = MESSAGE};
	const uint64_t before = pair_counted(pair, 0, COUNTER_probes);

	for (unsigned int i = 0; i < messages; i++) {
		transfer_post(pair, &transfer, 0);
		while (pair_poll(pair) == 0)
			pair_step(pair);
		pair_poll_received(pair);
	}
	return pair_counted(pair, 0, COUNTER_probes) - before;
}

/* Let each direction of the path take so long. */
static void set_path(struct pair *pair, uint64_t one_way_ns)
{
	for (int i = 0; i < 2; i++)
		pair->node[i].link.attr.latency_ns = one_way_ns;
}

/* Change the path. Return false if the requester does not measure it. */
static bool change(struct pair *pair, enum ibv_wr_opcode opcode, uint64_t one_way_ns)
{
	uint64_t early, late;

	set_path(pair, one_way_ns);
	early = probes_of(pair, opcode, EARLY);
	late = probes_of(pair, opcode, MESSAGES - EARLY);
	printf("%-5s %5llu us one way: %2llu probes for %u messages, then %llu for %u\n",
	       name_of(opcode), (unsigned long long)one_way_ns / 1000, (unsigned long long)early,
	       EARLY, (unsigned long long)late, MESSAGES - EARLY);
	return early <= EARLY_MAX && late == 0;
}

static bool changes(enum ibv_wr_opcode opcode)
{
	/* The third is longer by so little that one probe of a message would be too early. */
	static const uint64_t ways_ns[] = {NEAR_NS,	FAR_NS,	      NEAR_NS,
					   2 * NEAR_NS, 10 * NEAR_NS, FAR_NS};
	const struct pair_attr attr = {.seed = 1,
				       .keeps = true,
				       .sack = SACK_ALWAYS,
				       .mtu = IBV_MTU_1024,
				       .bytes = MESSAGE,
				       .link = {.latency_ns = NEAR_NS, .mbps = 100000}};
	struct pair pair;
	bool good = true;

	pair_set_up(&pair, &attr);
	for (size_t i = 0; i < sizeof(ways_ns) / sizeof(ways_ns[0]); i++)
		good &= change(&pair, opcode, ways_ns[i]);
	good &= pair_counted(&pair, 0, COUNTER_local_ack_timeout_err) == 0;
	transfer_check(&pair);
	pair_tear_down(&pair);
	return good;
}

/* Send many messages, many at a time. Return their goodput in Gb/s. */
static double goodput(struct pair *pair, enum ibv_wr_opcode opcode)
{
	const struct transfer transfer = {.opcode = opcode, .bytes = BULK_MESSAGE};
	const uint64_t start_ns = pair->clock.now_ns;
	unsigned int posted = 0, complete = 0;

	while (complete < BULK) {
		while (posted < BULK && posted - complete < BULK_FLIGHT)
			transfer_post(pair, &transfer,
				      (posted++ % BULK_FLIGHT) * (size_t)BULK_MESSAGE);
		pair_step(pair);
		complete += pair_poll(pair);
		pair_poll_received(pair);
	}
	return 8.0 * BULK_MESSAGE * BULK / (double)(pair->clock.now_ns - start_ns);
}

/* Let the path become longer while it is full. Return false if the window stays as it was. */
static bool bulk(enum ibv_wr_opcode opcode)
{
	const struct pair_attr attr = {.seed = 1,
				       .keeps = true,
				       .sack = SACK_ALWAYS,
				       .mtu = IBV_MTU_1024,
				       .bytes = (size_t)BULK_FLIGHT * BULK_MESSAGE,
				       .link = {.latency_ns = NEAR_NS, .mbps = 100000}};
	double near, first, then;
	struct pair pair;

	pair_set_up(&pair, &attr);
	near = goodput(&pair, opcode);
	set_path(&pair, FAR_NS);
	first = goodput(&pair, opcode);
	then = goodput(&pair, opcode);
	printf("%-5s from %u to %u us one way: %.1f Gb/s, then %.1f and %.1f\n", name_of(opcode),
	       NEAR_NS / 1000, FAR_NS / 1000, near, first, then);
	transfer_check(&pair);
	pair_tear_down(&pair);
	return first >= BULK_FIRST && then >= BULK_THEN;
}

int main(void)
{
	bool good = true;

	good &= changes(IBV_WR_RDMA_WRITE);
	good &= changes(IBV_WR_SEND);
	good &= changes(IBV_WR_RDMA_READ);
	good &= bulk(IBV_WR_RDMA_WRITE);
	good &= bulk(IBV_WR_RDMA_READ);
	if (!good)
		printf("the longer path is not measured\n");
	return good ? 0 : 1;
}
