/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator of mode storage. `depth` requests of each queue pair are in flight, and the latency
 * of each is measured. What one poll makes ready leaves in one post for each queue pair. A request
 * is complete when its response has arrived and its command has been acknowledged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rte_cycles.h>

#include "histogram.h"
#include "endpoint.h"
#include "pattern.h"
#include "result.h"
#include "run.h"
#include "storage.h"

#define POLL_MAX     128
#define RESPONSE_BIT UINT64_C(1) /* of wr_id: a struct initiator_response, else an initiator_io */

struct initiator_io {
	struct ibv_send_wr wr;
	struct ibv_sge sges[2]; /* the command, and the block that goes with it */
	struct storage_command *command;
	uint8_t *buffer;
	uint64_t begin_tsc;
	bool acknowledged;
	bool answered; /* or free */
};

/* A receive request. */
struct initiator_response {
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
	struct initiator_qp *qp;
	const struct storage_response *bytes;
};

struct initiator_qp {
	struct storage_queue queue;
	struct initiator_io *ios; /* an array of `depth` */
	uint64_t completed;
};

struct initiator {
	uint64_t blocks;
	uint64_t random;
	uint64_t reads; /* completed */
	/* set only if blocks are verified: write count of each block, and 1 if a request for it is
	 * in flight */
	uint32_t *versions;
	uint8_t *busy;
	struct initiator_qp *qps;
	struct initiator_io *ios;
	struct initiator_response *responses;
	struct storage_ready ready;
};

static uint64_t initiator_random(struct initiator *initiator)
{
	/* xorshift64* */
	initiator->random ^= initiator->random >> 12;
	initiator->random ^= initiator->random << 25;
	initiator->random ^= initiator->random >> 27;
	return initiator->random * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

/* Choose a block without a request in flight: the content of a block is unknown while one is. */
static uint64_t initiator_pick(struct initiator *initiator)
{
	uint64_t block;

	do
		block = initiator_random(initiator) % initiator->blocks;
	while (initiator->busy && initiator->busy[block]);
	return block;
}

static void initiator_fill(struct run *run, struct initiator_io *io)
{
	struct initiator *initiator = run->state;
	const uint64_t block = io->command->block;

	if (!initiator->busy)
		return;
	initiator->busy[block] = 1;
	if (io->command->op == STORAGE_READ)
		memset(io->buffer, 0xff, run->plan.size_bytes);
	else
		pattern_fill(io->buffer, run->plan.size_bytes, run->plan.seed,
			     pattern_tag(block, ++initiator->versions[block]));
}

static void initiator_verify(struct run *run, const struct initiator_io *io)
{
	struct initiator *initiator = run->state;
	const uint64_t block = io->command->block;
	uint64_t tag;

	if (!initiator->busy)
		return;
	initiator->busy[block] = 0;
	if (io->command->op == STORAGE_READ &&
	    (!pattern_check(io->buffer, run->plan.size_bytes, run->plan.seed, &tag) ||
	     tag != pattern_tag(block, initiator->versions[block])))
		count_add(&run->wrong, 1);
}

/* Make a new request, and queue its command. */
static void initiator_request(struct run *run, struct initiator_qp *qp, struct initiator_io *io)
{
	struct initiator *initiator = run->state;
	struct storage_command *command = io->command;

	command->op = initiator_random(initiator) % 100 < run->plan.read_percent ? STORAGE_READ
										 : STORAGE_WRITE;
	command->block = initiator_pick(initiator);
	initiator_fill(run, io);
	io->wr.num_sge = command->op == STORAGE_WRITE && storage_in_capsule(&run->plan) ? 2 : 1;
	io->acknowledged = false;
	io->answered = false;
	storage_queue_send(&initiator->ready, &qp->queue, &io->wr, &io->wr);
	run->posted++;
	io->begin_tsc = rte_rdtsc();
}

static bool initiator_wants_more(const struct run *run)
{
	return !run->stopping && (run->plan.messages == 0 || run->posted < run->plan.messages);
}

static void initiator_complete(struct run *run, struct initiator_qp *qp, struct initiator_io *io)
{
	struct initiator *initiator = run->state;

	run_add_latency(run, rte_rdtsc() - io->begin_tsc);
	initiator_verify(run, io);
	count_add(&initiator->reads, io->command->op == STORAGE_READ);
	count_add(&qp->completed, 1);
	count_add(&run->completed, 1);
	if (initiator_wants_more(run))
		initiator_request(run, qp, io);
}

static int initiator_take_response(struct run *run, struct initiator_response *response,
				   uint32_t bytes)
{
	struct initiator *initiator = run->state;
	struct initiator_qp *qp = response->qp;
	const struct storage_response got = *response->bytes;
	struct initiator_io *io;

	storage_queue_receive(&initiator->ready, &qp->queue, &response->wr);
	if (bytes != sizeof(got) || got.number >= run->plan.depth)
		return -EPROTO;
	if (got.status != 0)
		return -EREMOTEIO;
	io = &qp->ios[got.number];
	if (io->answered)
		return -EPROTO;
	io->answered = true;
	if (io->acknowledged)
		initiator_complete(run, qp, io);
	return 0;
}

static int initiator_take(struct run *run, const struct ibv_wc *wc)
{
	struct initiator *initiator = run->state;
	struct initiator_io *io;

	if (wc->status != IBV_WC_SUCCESS) {
		run->status = (int)wc->status;
		return -EIO;
	}
	if (wc->wr_id & RESPONSE_BIT)
		return initiator_take_response(run, &initiator->responses[wc->wr_id >> 1],
					       wc->byte_len);
	io = &initiator->ios[wc->wr_id >> 1];
	io->acknowledged = true;
	if (io->answered)
		initiator_complete(run, &initiator->qps[(wc->wr_id >> 1) / run->plan.depth], io);
	return 0;
}

int storage_initiator_poll(struct run *run)
{
	struct ibv_wc wc[POLL_MAX];
	struct initiator *initiator = run->state;
	const int n = ibv_poll_cq(run->endpoint.cq, POLL_MAX, wc);
	int rc = n < 0 ? -EIO : 0;

	for (int i = 0; rc == 0 && i < n; i++)
		rc = initiator_take(run, &wc[i]);
	return rc == 0 ? storage_queue_post(&initiator->ready) : rc;
}

static int initiator_allocate(struct run *run)
{
	const struct plan *plan = &run->plan;
	const size_t requests = plan->qps * plan->depth;
	struct initiator *initiator = calloc(1, sizeof(*initiator));

	if (!initiator)
		return -ENOMEM;
	run->state = initiator;
	STAILQ_INIT(&initiator->ready);
	initiator->blocks = storage_blocks(plan);
	initiator->random = plan->seed | UINT64_C(1) << 63;
	initiator->qps = calloc(plan->qps, sizeof(initiator->qps[0]));
	initiator->ios = calloc(requests, sizeof(initiator->ios[0]));
	initiator->responses = calloc(requests, sizeof(initiator->responses[0]));
	if (!initiator->qps || !initiator->ios || !initiator->responses)
		return -ENOMEM;
	if (plan->verify) {
		initiator->versions = calloc(initiator->blocks, sizeof(initiator->versions[0]));
		initiator->busy = calloc(initiator->blocks, 1);
		if (!initiator->versions || !initiator->busy)
			return -ENOMEM;
	}
	return 0;
}

/* Prepare what stays the same in all uses of a request and of a receive request; queue the latter.
 */
static void initiator_prepare(struct run *run, struct initiator_qp *qp, size_t index)
{
	const struct storage_layout layout = storage_lay_initiator(&run->plan);
	const uint32_t lkey = run->endpoint.mr->lkey;
	struct initiator *initiator = run->state;
	struct initiator_io *io = &initiator->ios[index];
	struct initiator_response *response = &initiator->responses[index];
	uint8_t *memory = run->endpoint.memory;

	io->answered = true;
	io->buffer = memory + layout.buffers + index * layout.buffer_bytes;
	io->command = (void *)(memory + layout.capsules + index * layout.capsule_bytes);
	*io->command = (struct storage_command){
		.addr = (uintptr_t)io->buffer,
		.rkey = run->endpoint.mr->rkey,
		.number = (uint32_t)(index % run->plan.depth),
	};
	io->sges[0] = (struct ibv_sge){(uintptr_t)io->command, sizeof(*io->command), lkey};
	io->sges[1] = (struct ibv_sge){(uintptr_t)io->buffer, (uint32_t)run->plan.size_bytes, lkey};
	io->wr = (struct ibv_send_wr){
		.wr_id = index << 1,
		.sg_list = io->sges,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	response->qp = qp;
	response->bytes = (void *)(memory + layout.responses + index * sizeof(*response->bytes));
	response->sge =
		(struct ibv_sge){(uintptr_t)response->bytes, sizeof(*response->bytes), lkey};
	response->wr = (struct ibv_recv_wr){
		.wr_id = index << 1 | RESPONSE_BIT,
		.sg_list = &response->sge,
		.num_sge = 1,
	};
	storage_queue_receive(&initiator->ready, &qp->queue, &response->wr);
}

int storage_initiator_begin(struct run *run)
{
	const uint64_t depth = run->plan.depth;
	struct initiator *initiator;
	int rc = initiator_allocate(run);

	if (rc != 0)
		return rc;
	initiator = run->state;
	for (uint32_t i = 0; i < run->plan.qps; i++) {
		struct initiator_qp *qp = &initiator->qps[i];

		storage_queue_init(&qp->queue, run->endpoint.qps[i]);
		qp->ios = &initiator->ios[i * depth];
		for (uint64_t number = 0; number < depth; number++)
			initiator_prepare(run, qp, i * depth + number);
	}
	for (uint64_t number = 0; number < depth; number++)
		for (uint32_t i = 0; i < run->plan.qps && initiator_wants_more(run); i++)
			initiator_request(run, &initiator->qps[i], &initiator->qps[i].ios[number]);
	return storage_queue_post(&initiator->ready);
}

void storage_initiator_end(struct run *run)
{
	struct initiator *initiator = run->state;

	if (!initiator)
		return;
	free(initiator->qps);
	free(initiator->ios);
	free(initiator->responses);
	free(initiator->versions);
	free(initiator->busy);
	free(initiator);
	run->state = NULL;
}

uint64_t storage_initiator_qp_messages(const struct run *run, uint32_t qp)
{
	const struct initiator *initiator = run->state;

	return count_get(&initiator->qps[qp].completed);
}

void storage_initiator_stats(const struct run *run, struct result *result)
{
	const struct initiator *initiator = run->state;

	result->reads += count_get(&initiator->reads);
}
