/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop that keeps send queues full. */
#include "stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "count.h"
#include "endpoint.h"
#include "mode.h"
#include "pattern.h"
#include "run.h"

#define POLL_MAX 32
#define QP_SHIFT                                                                        \
	32 /* of wr_id: queue pair above, messages that its completion stands for below \
	    */

struct stream_qp {
	uint64_t posted;
	uint64_t completed;
	uint64_t quota;	      /* messages to post in a test that ends after a number of messages */
	uint32_t unsignalled; /* requests posted since the last signalled one */
};

struct stream {
	const struct stream_ops *ops;
	uint32_t signal;
	uint32_t batch;
	unsigned int send_flags;
	bool has_tail; /* the last request of each queue pair is signalled */
	struct ibv_send_wr wrs[PLAN_BATCH_MAX];
	struct ibv_sge sges[PLAN_BATCH_MAX];
	struct stream_qp qps[];
};

void *stream_memory(const struct run *run, uint32_t qp, uint64_t n)
{
	return run->endpoint.memory + slot_of(&run->slots, qp, n);
}

void stream_fill_pattern(struct run *run, uint32_t qp, uint64_t n)
{
	pattern_fill(stream_memory(run, qp, n), run->plan.size_bytes, run->plan.seed,
		     pattern_tag(qp, n));
}

/* Return true if the n-th message of a queue pair must be signalled. */
static bool stream_signals(const struct stream *stream, const struct stream_qp *qp, uint64_t n)
{
	return qp->unsignalled + 1 >= stream->signal || n + 1 == qp->quota;
}

static void stream_make(struct run *run, uint32_t index, uint32_t at, bool signal)
{
	struct stream *stream = run->state;
	struct stream_qp *qp = &stream->qps[index];
	struct ibv_send_wr *wr = &stream->wrs[at];
	const uint64_t n = qp->posted++;
	const uint64_t offset = slot_of(&run->slots, index, n);

	if (unlikely(run->plan.verify) && stream->ops->fill)
		stream->ops->fill(run, index, n);
	stream->sges[at].addr = (uintptr_t)run->endpoint.memory + offset;
	wr->send_flags = stream->send_flags;
	qp->unsignalled++;
	if (signal) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		wr->wr_id = (uint64_t)index << QP_SHIFT | qp->unsignalled;
		qp->unsignalled = 0;
	}
	if (stream->ops->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr->wr.atomic.remote_addr = run->peer.addr + slot_of(&run->slots, index, 0);
	else
		wr->wr.rdma.remote_addr = run->peer.addr + offset;
}

static int stream_post(struct run *run, uint32_t index, uint32_t count)
{
	struct stream *stream = run->state;
	struct ibv_send_wr *last = &stream->wrs[count - 1], *bad;
	struct ibv_send_wr *const next = last->next;
	int rc;

	last->next = NULL;
	rc = ibv_post_send(run->endpoint.qps[index], stream->wrs, &bad);
	last->next = next;
	run->posted += count;
	return -rc;
}

static int stream_refill(struct run *run, uint32_t index)
{
	struct stream *stream = run->state;
	struct stream_qp *qp = &stream->qps[index];
	int rc = 0;

	while (rc == 0 && !run->stopping) {
		uint32_t count = stream->batch;

		if (qp->posted - qp->completed + count > run->plan.depth)
			break;
		count = (uint32_t)RTE_MIN(count, qp->quota - qp->posted);
		if (count == 0)
			break;
		for (uint32_t i = 0; i < count; i++)
			stream_make(run, index, i, stream_signals(stream, qp, qp->posted));
		rc = stream_post(run, index, count);
	}
	return rc;
}

static int stream_complete(struct run *run, const struct ibv_wc *wc)
{
	struct stream *stream = run->state;
	const uint32_t index = (uint32_t)(wc->wr_id >> QP_SHIFT);
	const uint32_t count = (uint32_t)wc->wr_id;
	struct stream_qp *qp = &stream->qps[index];

	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		run->status = (int)wc->status;
		return -EIO;
	}
	if (unlikely(run->plan.verify) && stream->ops->check)
		for (uint32_t i = 0; i < count; i++)
			stream->ops->check(run, index, qp->completed + i);
	count_add(&qp->completed, count);
	count_add(&run->completed, count);
	return stream_refill(run, index);
}

/* Post one last signalled message on each queue pair whose newest messages are unsignalled, so that
 * all of them complete. */
static int stream_end_tails(struct run *run)
{
	struct stream *stream = run->state;
	int rc = 0;

	stream->has_tail = true;
	for (uint32_t i = 0; rc == 0 && i < run->plan.qps; i++) {
		if (stream->qps[i].unsignalled == 0)
			continue;
		stream_make(run, i, 0, true);
		rc = stream_post(run, i, 1);
	}
	return rc;
}

int stream_poll(struct run *run)
{
	struct stream *stream = run->state;
	struct ibv_wc wc[POLL_MAX];
	int n, rc = 0;

	if (unlikely(run->stopping) && !stream->has_tail)
		rc = stream_end_tails(run);
	n = ibv_poll_cq(run->endpoint.cq, POLL_MAX, wc);
	if (n < 0)
		return -EIO;
	for (int i = 0; rc == 0 && i < n; i++)
		rc = stream_complete(run, &wc[i]);
	return rc;
}

static void stream_prepare(struct run *run, struct stream *stream)
{
	const bool by_value =
		stream->ops->opcode == IBV_WR_RDMA_WRITE || stream->ops->opcode == IBV_WR_SEND;

	if (by_value && run->endpoint.memory && run->plan.size_bytes <= run->plan.inline_bytes)
		stream->send_flags = IBV_SEND_INLINE;
	for (uint32_t i = 0; i < PLAN_BATCH_MAX; i++) {
		struct ibv_send_wr *wr = &stream->wrs[i];

		stream->sges[i].length = (uint32_t)run->plan.size_bytes;
		stream->sges[i].lkey = run->endpoint.mr->lkey;
		wr->sg_list = &stream->sges[i];
		wr->num_sge = 1;
		wr->opcode = stream->ops->opcode;
		wr->next = i + 1 < PLAN_BATCH_MAX ? wr + 1 : NULL;
		if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr->wr.atomic.compare_add = 1;
			wr->wr.atomic.rkey = (uint32_t)run->peer.rkey;
		} else {
			wr->wr.rdma.rkey = (uint32_t)run->peer.rkey;
		}
	}
}

int stream_begin(struct run *run)
{
	const uint64_t qps = run->plan.qps, messages = run->plan.messages;
	struct stream *stream = calloc(1, sizeof(*stream) + qps * sizeof(stream->qps[0]));
	int rc = 0;

	if (!stream)
		return -ENOMEM;
	run->state = stream;
	stream->ops = run->mode->stream;
	stream->signal = (uint32_t)plan_signal(&run->plan);
	stream->batch = (uint32_t)run->plan.batch;
	stream_prepare(run, stream);
	for (uint32_t i = 0; rc == 0 && i < qps; i++) {
		stream->qps[i].quota =
			messages ? messages / qps + (i < messages % qps) : UINT64_MAX;
		rc = stream_refill(run, i);
	}
	return rc;
}

void stream_end(struct run *run)
{
	free(run->state);
	run->state = NULL;
}

void stream_spread(const struct run *run, uint64_t *least, uint64_t *most)
{
	const struct stream *stream = run->state;

	for (uint32_t i = 0; i < run->plan.qps; i++) {
		const uint64_t completed = count_get(&stream->qps[i].completed);

		*least = RTE_MIN(*least, completed);
		*most = RTE_MAX(*most, completed);
	}
}

uint64_t stream_qp_messages(const struct run *run, uint32_t qp)
{
	const struct stream *stream = run->state;

	return count_get(&stream->qps[qp].completed);
}

void stream_shape(const struct plan *plan, struct endpoint_config *active,
		  struct endpoint_config *passive)
{
	const struct slots slots = plan_slots(plan, plan->depth + 1);

	/* Add one request and one slot for the message that stream_end_tails posts. */
	active->send_wr = (uint32_t)plan->depth + 1;
	active->region_bytes = slots_bytes(&slots);
	passive->region_bytes = slots_bytes(&slots);
}

void stream_shape_receives(const struct plan *plan, struct endpoint_config *active,
			   struct endpoint_config *passive)
{
	struct slots slots;

	stream_shape(plan, active, passive);
	passive->recv_wr = 2 * (uint32_t)plan->depth;
	slots = plan_slots(plan, passive->recv_wr);
	passive->region_bytes = slots_bytes(&slots);
}

int stream_check_plan(const struct plan *plan, char *error, size_t error_size)
{
	if (!plan->verify || plan->size_bytes >= PATTERN_MIN_BYTES)
		return 0;
	snprintf(error, error_size, "verified messages have at least %d bytes", PATTERN_MIN_BYTES);
	return -EINVAL;
}
