/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode storage: a mix of READs and WRITEs of random blocks in a large region of the peer. `depth`
 * requests of each queue pair are in flight, and the mode measures the latency of each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "endpoint.h"
#include "measure.h"
#include "mode.h"
#include "passive.h"
#include "pattern.h"

#define REGION_DEFAULT	 (UINT64_C(256) << 20)
#define VERIFY_MIN_BYTES 512
#define POLL_MAX	 32
#define QP_SHIFT	 32 /* of wr_id: queue pair above, number of its request below */

struct storage_io {
	uint64_t begin_tsc;
	uint64_t block;
	bool is_read;
};

struct storage {
	uint64_t blocks;
	uint64_t random;
	uint64_t *completed; /* of each queue pair */
	uint64_t reads;	     /* completed */
	/* set only if blocks are verified: write count of each block, and 1 if a request for it is
	 * in flight */
	uint32_t *versions;
	uint8_t *busy;
	struct storage_io ios[]; /* `depth` of each queue pair */
};

static uint64_t storage_region(const struct plan *plan)
{
	return plan->region_bytes > 0 ? plan->region_bytes : REGION_DEFAULT;
}

static uint64_t storage_local(const struct plan *plan)
{
	return plan->qps * plan->depth * plan->size_bytes;
}

static uint64_t storage_random(struct storage *storage)
{
	/* xorshift64* */
	storage->random ^= storage->random >> 12;
	storage->random ^= storage->random << 25;
	storage->random ^= storage->random >> 27;
	return storage->random * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

/* Choose a block without a request in flight: the content of a block is unknown while one is. */
static uint64_t storage_pick(struct storage *storage)
{
	uint64_t block;

	do
		block = storage_random(storage) % storage->blocks;
	while (storage->busy && storage->busy[block]);
	return block;
}

static int storage_post(struct run *run, uint32_t qp, uint32_t number)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct storage *storage = run->state;
	struct storage_io *io = &storage->ios[qp * run->plan.depth + number];
	const uint64_t size = run->plan.size_bytes;
	uint8_t *at = run->endpoint.memory + (qp * run->plan.depth + number) * size;
	struct ibv_sge sge = {
		.addr = (uintptr_t)at, .length = (uint32_t)size, .lkey = run->endpoint.mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)qp << QP_SHIFT | number,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	io->is_read = storage_random(storage) % 100 < run->plan.read_percent;
	io->block = storage_pick(storage);
	if (storage->busy) {
		storage->busy[io->block] = 1;
		if (io->is_read)
			memset(at, 0xff, size);
		else
			pattern_fill(at, size, run->plan.seed,
				     pattern_tag(io->block, ++storage->versions[io->block]));
	}
	wr.opcode = opcodes[io->is_read];
	wr.wr.rdma.remote_addr = run->peer.addr + io->block * size;
	wr.wr.rdma.rkey = (uint32_t)run->peer.rkey;
	run->posted++;
	io->begin_tsc = rte_rdtsc();
	return -ibv_post_send(run->endpoint.qps[qp], &wr, &bad);
}

static void storage_verify(struct run *run, const struct storage_io *io, const uint8_t *at)
{
	struct storage *storage = run->state;
	uint64_t tag;

	storage->busy[io->block] = 0;
	if (io->is_read && (!pattern_check(at, run->plan.size_bytes, run->plan.seed, &tag) ||
			    tag != pattern_tag(io->block, storage->versions[io->block])))
		run->wrong++;
}

static bool storage_wants_more(const struct run *run)
{
	return !run->stopping && (run->plan.messages == 0 || run->posted < run->plan.messages);
}

static int storage_complete(struct run *run, const struct ibv_wc *wc)
{
	struct storage *storage = run->state;
	const uint32_t qp = (uint32_t)(wc->wr_id >> QP_SHIFT), number = (uint32_t)wc->wr_id;
	const uint64_t index = qp * run->plan.depth + number;
	const struct storage_io *io = &storage->ios[index];

	if (wc->status != IBV_WC_SUCCESS) {
		run->status = (int)wc->status;
		return -EIO;
	}
	measure_add_latency(run, rte_rdtsc() - io->begin_tsc);
	if (storage->busy)
		storage_verify(run, io, run->endpoint.memory + index * run->plan.size_bytes);
	storage->reads += io->is_read;
	storage->completed[qp]++;
	run->completed++;
	return storage_wants_more(run) ? storage_post(run, qp, number) : 0;
}

static int storage_turn(struct run *run)
{
	struct ibv_wc wc[POLL_MAX];
	const int n = ibv_poll_cq(run->endpoint.cq, POLL_MAX, wc);
	int rc = n < 0 ? -EIO : 0;

	for (int i = 0; rc == 0 && i < n; i++)
		rc = storage_complete(run, &wc[i]);
	return rc;
}

static int storage_begin(struct run *run)
{
	const struct plan *plan = &run->plan;
	struct storage *storage =
		calloc(1, sizeof(*storage) + plan->qps * plan->depth * sizeof(storage->ios[0]));
	int rc = 0;

	if (!storage)
		return -ENOMEM;
	run->state = storage;
	storage->blocks = storage_region(plan) / plan->size_bytes;
	storage->random = plan->seed | UINT64_C(1) << 63;
	storage->completed = calloc(plan->qps, sizeof(storage->completed[0]));
	if (!storage->completed)
		return -ENOMEM;
	if (plan->verify) {
		storage->versions = calloc(storage->blocks, sizeof(storage->versions[0]));
		storage->busy = calloc(storage->blocks, 1);
		if (!storage->versions || !storage->busy)
			return -ENOMEM;
	}
	for (uint32_t number = 0; number < plan->depth; number++)
		for (uint32_t qp = 0; rc == 0 && qp < plan->qps && storage_wants_more(run); qp++)
			rc = storage_post(run, qp, number);
	return rc;
}

static void storage_end(struct run *run)
{
	struct storage *storage = run->state;

	if (!storage)
		return;
	free(storage->completed);
	free(storage->versions);
	free(storage->busy);
	free(storage);
	run->state = NULL;
}

static uint64_t storage_qp_messages(const struct run *run, uint32_t qp)
{
	const struct storage *storage = run->state;

	return storage->completed[qp];
}

static void storage_stats(const struct run *run, struct result *result)
{
	const struct storage *storage = run->state;

	result->reads = storage->reads;
}

static int storage_check(const struct plan *plan, char *error, size_t error_size)
{
	const char *what = NULL;

	/* storage_pick must always find a free block, so the region holds more blocks than can be
	 * in flight. */
	if (storage_region(plan) / plan->size_bytes < 2 * plan->qps * plan->depth)
		what = "the region holds less than twice the blocks under way";
	else if (plan->verify && plan->size_bytes < VERIFY_MIN_BYTES)
		what = "verified blocks have at least 512 bytes";
	if (!what)
		return 0;
	snprintf(error, error_size, "%s", what);
	return -EINVAL;
}

static void storage_shape(const struct plan *plan, struct endpoint_config *active,
			  struct endpoint_config *passive)
{
	active->send_wr = (uint32_t)plan->depth;
	active->region_bytes = storage_local(plan);
	passive->region_bytes = storage_region(plan);
}

static int storage_serve_begin(struct passive *passive)
{
	const uint64_t size = passive->plan.size_bytes;

	for (uint64_t block = 0;
	     passive->plan.verify && block < storage_region(&passive->plan) / size; block++)
		pattern_fill(passive->endpoint.memory + block * size, size, passive->plan.seed,
			     pattern_tag(block, 0));
	return 0;
}

const struct mode mode_storage = {
	.name = "storage",
	.help = "READ and WRITE of random blocks in a large region",
	.check = storage_check,
	.shape = storage_shape,
	.begin = storage_begin,
	.turn = storage_turn,
	.stats = storage_stats,
	.qp_messages = storage_qp_messages,
	.end = storage_end,
	.serve_begin = storage_serve_begin,
};
