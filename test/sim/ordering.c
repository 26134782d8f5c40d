/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the two memory orderings. Messages go to successive places, over a link that reorders and
 * loses, and all of the memory is inspected after every packet. Strict memory shows no byte before
 * an earlier one, which a polling thread sees too. Relaxed memory shows some before, but only of
 * the message in progress. A completion comes when every byte is there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/mr.h"
#include "sim_pair.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "rng.h"

#define MESSAGES      60u
#define MESSAGE_BYTES (40u << 10)
#define TOTAL_BYTES   ((size_t)MESSAGES * MESSAGE_BYTES)
#define MTU_BYTES     1024u
#define IN_FLIGHT     12u
#define TAIL_BYTES    8u

/* The memory that is watched, and what was seen of it. */
struct watch {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool relaxed;
	int node;	   /* the device whose memory is written */
	const uint8_t *to; /* that memory */
	const uint8_t *from;
	uint8_t *before; /* the memory's contents at the beginning */
	size_t there;	 /* number of bytes that are there, from the beginning on */
	uint64_t packets;
	uint64_t ooo;	   /* packets after which a later byte was there before an earlier one */
	uint32_t received; /* messages that the receiver was notified of */
	bool over;	   /* atomic: no more bytes will be written */
};

static void fail(const struct watch *watch, const char *what, size_t at)
{
	fprintf(stderr, "ordering: %s, %s memory: %s, byte %zu\n", watch->name,
		watch->relaxed ? "relaxed" : "strict", what, at);
	exit(1);
}

/* Return the length up to which two images are the same. */
static size_t same(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i = 0;

	while (i + 64 <= len && memcmp(a + i, b + i, 64) == 0)
		i += 64;
	while (i < len && a[i] == b[i])
		i++;
	return i;
}

/* Check the bytes that are visible behind the next byte: only its own message may have some. */
static void look_ahead(struct watch *watch)
{
	const size_t end = (watch->there / MESSAGE_BYTES + 1) * MESSAGE_BYTES;
	const size_t rest =
		watch->there + same(watch->to + watch->there, watch->before + watch->there,
				    TOTAL_BYTES - watch->there);

	if (rest == TOTAL_BYTES)
		return;
	if (!watch->relaxed)
		fail(watch, "is there before an earlier one", rest);
	watch->ooo++;
	if (end < TOTAL_BYTES &&
	    same(watch->to + end, watch->before + end, TOTAL_BYTES - end) < TOTAL_BYTES - end)
		fail(watch, "of a later message is there before one of an earlier message", end);
}

/* Check that every completed message is there. */
static void look_at_receives(struct watch *watch, const struct pair *pair)
{
	struct ibv_wc wc;

	while (watch->opcode != IBV_WR_RDMA_READ && cq_poll(pair->node[1].cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id != watch->received)
			fail(watch, "a receive failed, or is not the next", 0);
		watch->received++;
		if (watch->there < (size_t)watch->received * MESSAGE_BYTES)
			fail(watch, "a message was told of before it was there", watch->there);
	}
}

static void took(struct pair *pair, int node)
{
	struct watch *watch = pair->attr.user;

	if (node != watch->node)
		return;
	watch->packets++;
	watch->there += same(watch->to + watch->there, watch->from + watch->there,
			     TOTAL_BYTES - watch->there);
	if (watch->there < TOTAL_BYTES)
		look_ahead(watch);
	look_at_receives(watch, pair);
}

/* Return the end of a packet's payload, which a program would poll. */
static bool tail_is_there(const struct watch *watch, size_t packet)
{
	const size_t at = (packet + 1) * MTU_BYTES - TAIL_BYTES;
	uint64_t is, will_be;

	is = __atomic_load_n((const uint64_t *)(const void *)(watch->to + at), __ATOMIC_ACQUIRE);
	memcpy(&will_be, watch->from + at, sizeof(will_be));
	return is == will_be;
}

/* A program on another CPU polls the ends of packets, in any order: if one is there, all bytes
 * before it are. */
static void *poll_memory(void *argument)
{
	const struct watch *watch = argument;
	struct rng rng = rng_fork(1, 30);
	size_t known = 0; /* number of packets */

	while (known < TOTAL_BYTES / MTU_BYTES) {
		const bool over = __atomic_load_n(&watch->over, __ATOMIC_ACQUIRE);
		const size_t packet =
			known + (over ? 0 : rng_below(&rng, TOTAL_BYTES / MTU_BYTES - known));

		if (!tail_is_there(watch, packet)) {
			if (over)
				fail(watch, "never came", packet * MTU_BYTES);
			continue;
		}
		if (memcmp(watch->to + known * MTU_BYTES, watch->from + known * MTU_BYTES,
			   (packet + 1 - known) * MTU_BYTES) != 0)
			fail(watch, "was seen before an earlier one", packet * MTU_BYTES);
		known = packet + 1;
	}
	return NULL;
}

static void post_receives(const struct pair *pair, enum ibv_wr_opcode opcode)
{
	const struct node *node = &pair->node[1];

	for (uint32_t i = 0; i < MESSAGES && opcode != IBV_WR_RDMA_READ; i++) {
		struct ibv_sge sge = {.addr = (uintptr_t)node->memory + i * (size_t)MESSAGE_BYTES,
				      .length = MESSAGE_BYTES,
				      .lkey = node->mr->key};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		if (qp_post_recv(node->qp, &wr, &bad) != 0)
			exit(1);
	}
}

static void run(struct pair *pair, struct watch *watch)
{
	uint32_t posted = 0, complete = 0;

	while (complete < MESSAGES) {
		while (posted < MESSAGES && posted - complete < IN_FLIGHT) {
			const size_t at = posted++ * (size_t)MESSAGE_BYTES;

			pair_post(pair, watch->opcode, at, MESSAGE_BYTES, at);
		}
		pair_step(pair);
		complete += pair_poll(pair);
		if (watch->there < complete * (size_t)MESSAGE_BYTES)
			fail(watch, "a request was complete before it was there", watch->there);
	}
}

static void prove(const char *name, enum ibv_wr_opcode opcode, bool relaxed)
{
	struct watch watch = {.name = name,
			      .opcode = opcode,
			      .relaxed = relaxed,
			      .node = opcode != IBV_WR_RDMA_READ};
	const struct pair_attr attr = {
		.seed = 7,
		.keeps = true,
		.sack = SACK_ALWAYS,
		.access = relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0,
		.mtu = IBV_MTU_1024,
		.bytes = TOTAL_BYTES,
		.took = took,
		.user = &watch,
		.link = {.latency_ns = 5000,
			 .mbps = 100000,
			 .loss_ppm = 5000,
			 .duplicate_ppm = 5000,
			 .reorder_ppm = 50000,
			 .reorder_ns = 5000},
	};
	pthread_t reader;
	struct pair pair;

	pair_set_up(&pair, &attr);
	watch.to = pair.node[watch.node].memory;
	watch.from = pair.node[1 - watch.node].memory;
	watch.before = malloc(TOTAL_BYTES);
	if (watch.before == NULL)
		exit(1);
	memcpy(watch.before, watch.to, TOTAL_BYTES);
	post_receives(&pair, opcode);
	if (!relaxed && pthread_create(&reader, NULL, poll_memory, &watch) != 0)
		exit(1);
	run(&pair, &watch);
	__atomic_store_n(&watch.over, true, __ATOMIC_RELEASE);
	if (!relaxed)
		pthread_join(reader, NULL);
	if (relaxed && opcode != IBV_WR_SEND && watch.ooo == 0)
		fail(&watch, "no byte was there before an earlier one", 0);
	printf("%-16s %-8s %6llu packets, %5llu kept, %5llu placed out of order\n", name,
	       relaxed ? "relaxed" : "strict", (unsigned long long)watch.packets,
	       (unsigned long long)pair_counted(&pair, watch.node, COUNTER_out_of_order_kept),
	       (unsigned long long)pair_counted(&pair, watch.node, COUNTER_out_of_order_placed));
	if (pair_counted(&pair, watch.node, COUNTER_out_of_order_kept) == 0)
		fail(&watch, "nothing was kept: the link did not reorder", 0);
	pair_tear_down(&pair);
	free(watch.before);
}

int main(void)
{
	prove("WRITE", IBV_WR_RDMA_WRITE_WITH_IMM, false);
	prove("WRITE", IBV_WR_RDMA_WRITE_WITH_IMM, true);
	prove("READ", IBV_WR_RDMA_READ, false);
	prove("READ", IBV_WR_RDMA_READ, true);
	prove("SEND", IBV_WR_SEND, false);
	prove("SEND", IBV_WR_SEND, true);
	return 0;
}
