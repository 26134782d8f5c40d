/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a slow receiver, with and without losses. Its application polls now and then, and
 * posts receive requests for the messages that it has found. Between polls the requests run out,
 * and the sender gets RNR NAKs. The program prints packets sent for each that is needed, and
 * goodput, for go-back-N peers and for peers that keep out of order packets; these do not tell
 * which ones at first, and then they do. It fails if a peer that keeps packets gets more than what
 * was lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_pair.h"

#define MESSAGES   2000u
#define MTU_BYTES  1024u
#define IN_FLIGHT  16u
#define LATENCY_NS 5000
#define MBPS	   100000
/* With peers that keep packets, these are sent again: the refused packet; the next one, which may
 * be held back, and again when it was refused; and the lost packets, some of them twice. */
#define EXCESS_RNR   3
#define EXCESS_LOSS  1.5
#define EXCESS_START 0.01
/*
 * Goodput with a peer that keeps packets, relative to a go-back-N peer. If each message is one
 * packet and packets get lost, the packet that goes alone and its answer are lost too, and only a
 * timer recovers: 0.71 was measured.
 */
#define GOODPUT	     0.99
#define GOODPUT_LOSS 0.65

struct wanting {
	uint32_t message_bytes;
	unsigned int receives; /* receive requests posted at a time */
	uint64_t look_ns;      /* between two polls of the receiver's application */
	uint32_t loss_ppm;
	uint32_t reorder_ppm;
};

struct outcome {
	double ratio; /* packets sent for each that is needed */
	double rnr;   /* RNR NAKs for each message */
	double gbps;
};

/* The receiver's application. */
struct receiver {
	struct pair *pair;
	const struct wanting *wanting;
	unsigned int posted;
	unsigned int complete;
};

static uint32_t packets_of(const struct wanting *wanting)
{
	return (wanting->message_bytes + MTU_BYTES - 1) / MTU_BYTES;
}

static size_t place(const struct wanting *wanting, unsigned int i)
{
	return (i % IN_FLIGHT) * (size_t)wanting->message_bytes;
}

static void look(void *context, void *argument)
{
	struct receiver *receiver = context;
	const struct wanting *wanting = receiver->wanting;

	receiver->complete += pair_poll_received(receiver->pair);
	while (receiver->posted < MESSAGES &&
	       receiver->posted - receiver->complete < wanting->receives)
		pair_receive(receiver->pair, place(wanting, receiver->posted++),
			     wanting->message_bytes);
	if (receiver->complete < MESSAGES)
		clock_at(&receiver->pair->clock, receiver->pair->clock.now_ns + wanting->look_ns,
			 look, receiver, argument);
}

static void check(const struct pair *pair, const struct wanting *wanting)
{
	if (memcmp(pair->node[0].memory, pair->node[1].memory,
		   IN_FLIGHT * (size_t)wanting->message_bytes) == 0)
		return;
	fprintf(stderr, "starve: the data is wrong\n");
	exit(1);
}

static struct outcome measure(const struct wanting *wanting, bool keeps, enum sack_use sack)
{
	const struct pair_attr attr = {.seed = 1,
				       .keeps = keeps,
				       .sack = sack,
				       .mtu = IBV_MTU_1024,
				       .bytes = IN_FLIGHT * (size_t)wanting->message_bytes,
				       .link = {.latency_ns = LATENCY_NS,
						.mbps = MBPS,
						.loss_ppm = wanting->loss_ppm,
						.reorder_ppm = wanting->reorder_ppm,
						.reorder_ns = 2 * LATENCY_NS}};
	unsigned int posted = 0, complete = 0;
	struct outcome outcome;
	struct receiver receiver;
	struct pair pair;
	uint64_t start_ns;

	pair_set_up(&pair, &attr);
	receiver = (struct receiver){.pair = &pair, .wanting = wanting};
	start_ns = pair.clock.now_ns;
	look(&receiver, NULL);
	while (complete < MESSAGES || receiver.complete < MESSAGES) {
		while (posted < MESSAGES && posted - complete < IN_FLIGHT) {
			pair_post(&pair, IBV_WR_SEND, place(wanting, posted),
				  wanting->message_bytes, 0);
			posted++;
		}
		pair_step(&pair);
		complete += pair_poll(&pair);
	}
	check(&pair, wanting);
	outcome.gbps = (double)MESSAGES * wanting->message_bytes * 8 /
		       (double)(pair.clock.now_ns - start_ns);
	outcome.ratio = (double)pair.node[0].packets / ((double)MESSAGES * packets_of(wanting));
	outcome.rnr = (double)pair_counted(&pair, 0, COUNTER_rnr_nak_retry_err) / MESSAGES;
	pair_tear_down(&pair);
	return outcome;
}

static bool line(const struct wanting *wanting, enum sack_use sack)
{
	const struct outcome drops = measure(wanting, false, SACK_NEVER);
	const struct outcome keeps = measure(wanting, true, sack);
	const double ratio_max = 1 + EXCESS_START + EXCESS_RNR * keeps.rnr / packets_of(wanting) +
				 EXCESS_LOSS * (wanting->loss_ppm + wanting->reorder_ppm) / 1e6;
	const double goodput =
		packets_of(wanting) == 1 && wanting->loss_ppm > 0 ? GOODPUT_LOSS : GOODPUT;
	const bool good = keeps.ratio <= ratio_max && keeps.gbps >= drops.gbps * goodput;

	printf("%5u B %9u %4u us %6.1f%% %9.1f%%   %7.3f %7.3f   %7.2f %7.2f   %7.2f %7.2f%s\n",
	       wanting->message_bytes, wanting->receives, (unsigned int)(wanting->look_ns / 1000),
	       wanting->loss_ppm / 1e4, wanting->reorder_ppm / 1e4, drops.ratio, keeps.ratio,
	       drops.rnr, keeps.rnr, drops.gbps, keeps.gbps, good ? "" : "   too much");
	return good;
}

int main(void)
{
	static const struct wanting rows[] = {
		{65536, 16, 20000, 0, 0},     {65536, 4, 20000, 0, 0},
		{65536, 1, 20000, 0, 0},      {65536, 4, 200000, 0, 0},
		{65536, 4, 20000, 10000, 0},  {65536, 1, 20000, 10000, 0},
		{65536, 4, 200000, 10000, 0}, {65536, 4, 200000, 50000, 0},
		{65536, 4, 200000, 0, 10000}, {8, 16, 20000, 0, 0},
		{8, 4, 20000, 0, 0},	      {8, 4, 20000, 10000, 0},
	};
	bool good = true;

	printf("%u SENDs, path MTU %u, %u Gbit/s, round trip of %u us\n"
	       "                                          sent / needed     RNR NAKs, each     "
	       "Gbit/s of data\n"
	       "        receives   looks   lost reordered     drops   keeps     drops   keeps     "
	       "drops   keeps\n",
	       MESSAGES, MTU_BYTES, MBPS / 1000, 2 * LATENCY_NS / 1000);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		good &= line(&rows[i], SACK_NEVER);
	printf("\nThe peer that keeps packets tells which ones\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		good &= line(&rows[i], SACK_ALWAYS);
	return good ? 0 : 1;
}
