/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READs and atomics at the maximum depth of a queue pair: on a link so long that all are sent
 * before the first response comes, and on links that lose, repeat and reorder. And many READs of a
 * requester that learns only meanwhile that its peer has more resources than it says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/limits.h"
#include "sim_pair.h"

#define DEPTH	   DEVICE_MAX_RD_ATOMIC
#define POSTED_MAX (DEPTH + 100) /* in flight, and waiting behind those */
#define MESSAGES   5000u
#define WORD	   8u
#define LATENCY_NS 1000000
#define MTU_BYTES  256u
/* Of strangers. */
#define FEW    2
#define WRITES 12u
#define SEEDS  200u

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "depth: %s\n", what);
	exit(1);
}

/* The target of a response. Atomics are on the first word of the other memory, READs are of the
 * rest. */
static size_t place(unsigned int i)
{
	return WORD + (size_t)(i % POSTED_MAX) * MTU_BYTES;
}

static bool is_atomic(unsigned int i)
{
	return i % 2 == 1;
}

static void post(struct pair *pair, unsigned int i)
{
	if (is_atomic(i))
		pair_post(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, place(i), WORD, 0);
	else
		pair_post(pair, IBV_WR_RDMA_READ, place(i), MTU_BYTES, place(i));
}

/* Requests complete in order, so the response to the request with this number has arrived. */
static void check(const struct pair *pair, unsigned int i, uint64_t first)
{
	const uint8_t *got = pair->node[0].memory + place(i);
	uint64_t added;

	if (!is_atomic(i)) {
		must(memcmp(got, pair->node[1].memory + place(i), MTU_BYTES) == 0, "wrong data");
		return;
	}
	memcpy(&added, got, sizeof(added));
	must(added == first + i / 2, "an addition is missing, or came twice");
}

static uint64_t word(const struct pair *pair)
{
	uint64_t value;

	memcpy(&value, pair->node[1].memory, sizeof(value));
	return value;
}

static void run(struct link_attr link, bool keeps)
{
	const struct pair_attr attr = {.seed = 1,
				       .keeps = keeps,
				       .sack = SACK_ALWAYS,
				       .resources = DEPTH,
				       .mtu = IBV_MTU_256,
				       .bytes = WORD + (size_t)POSTED_MAX * MTU_BYTES,
				       .link = link};
	unsigned int posted = 0, complete = 0;
	uint64_t first, most = 0;
	struct pair pair;

	pair_set_up(&pair, &attr);
	first = word(&pair);
	while (complete < MESSAGES) {
		unsigned int done;

		while (posted < MESSAGES && posted - complete < POSTED_MAX)
			post(&pair, posted++);
		pair_step(&pair);
		if (pair.node[1].packets == 0)
			most = pair.node[0].packets -
			       pair_counted(&pair, 0, COUNTER_retransmitted_packets);
		for (done = pair_poll(&pair); done > 0; done--)
			check(&pair, complete++, first);
	}
	must(word(&pair) == first + MESSAGES / 2, "additions are missing");
	must(most == DEPTH, "not as many at a time as there may be");
	must(pair_counted(&pair, 1, COUNTER_resp_invalid_request) == 0, "more than that");
	pair_tear_down(&pair);
}

/*
 * The first requests are WRITEs. They leave before the requester knows its peer, so they have no
 * capability bits, and some of them come behind retransmissions that have. The READs use what the
 * peer has by then.
 */
static void run_strangers(uint64_t seed)
{
	const struct pair_attr attr = {
		.seed = seed,
		.keeps = true,
		.sack = SACK_INTRODUCED,
		.resources = FEW,
		.mtu = IBV_MTU_256,
		.bytes = WORD + (size_t)POSTED_MAX * MTU_BYTES,
		.link = {.latency_ns = LATENCY_NS, .mbps = 100000, .loss_ppm = 100000}};
	unsigned int complete = 0;
	struct pair pair;

	pair_set_up(&pair, &attr);
	for (unsigned int i = 0; i < POSTED_MAX; i++)
		pair_post(&pair, i < WRITES ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, place(i),
			  MTU_BYTES, place(i));
	while (complete < POSTED_MAX) {
		pair_step(&pair);
		complete += pair_poll(&pair);
	}
	must(pair_counted(&pair, 1, COUNTER_resp_invalid_request) == 0, "more than the peer has");
	pair_tear_down(&pair);
}

int main(void)
{
	const struct link_attr sound = {.latency_ns = LATENCY_NS, .mbps = 100000};
	struct link_attr bad = sound;

	run(sound, true);
	bad.loss_ppm = 10000;
	bad.duplicate_ppm = 10000;
	bad.reorder_ppm = 10000;
	bad.reorder_ns = LATENCY_NS / 10;
	run(bad, true);
	run(bad, false);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run_strangers(seed);
	printf("depth: %u READs and atomics at a time\n", DEPTH);
	return 0;
}
