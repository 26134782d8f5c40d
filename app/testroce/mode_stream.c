/* SPDX-License-Identifier: BSD-3-Clause */
/* The modes that keep queues full: they post in batches, signal few requests, and refill the queue
 * after completions. They are WRITE, READ, SEND and atomics, SEND of and into the null region, and
 * SEND of many queue pairs into one shared receive queue. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "histogram.h"
#include "endpoint.h"
#include "mode.h"
#include "passive.h"
#include "pattern.h"
#include "plan.h"
#include "result.h"
#include "run.h"

struct endpoint_config;
struct passive;
struct run;

struct stream_ops {
	enum ibv_wr_opcode opcode;
	/* Called only if messages are verified; each may be NULL. fill runs before a message is
	 * posted, check after it has completed. */
	void (*fill)(struct run *run, uint32_t qp, uint64_t n);
	void (*check)(struct run *run, uint32_t qp, uint64_t n);
};

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

/* Return the memory of a message on this side. */
static void *stream_memory(const struct run *run, uint32_t qp, uint64_t n)
{
	return run->endpoint.memory + slot_of(&run->slots, qp, n);
}

/* Fill a message with its pattern; usable as stream_ops.fill. */
static void stream_fill_pattern(struct run *run, uint32_t qp, uint64_t n)
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

/* Take completions, and fill the queues again. Returns 0 or -errno. */
static int stream_poll(struct run *run)
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

/* Fill the queues. Returns 0 or -errno. */
static int stream_begin(struct run *run)
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

/* Free what stream_begin allocated. */
static void stream_end(struct run *run)
{
	free(run->state);
	run->state = NULL;
}

/* Lower `least` and raise `most` to the number of messages that each queue pair has completed. */
static void stream_spread(const struct run *run, uint64_t *least, uint64_t *most)
{
	const struct stream *stream = run->state;

	for (uint32_t i = 0; i < run->plan.qps; i++) {
		const uint64_t completed = count_get(&stream->qps[i].completed);

		*least = RTE_MIN(*least, completed);
		*most = RTE_MAX(*most, completed);
	}
}

static uint64_t stream_qp_messages(const struct run *run, uint32_t qp)
{
	const struct stream *stream = run->state;

	return count_get(&stream->qps[qp].completed);
}

/* Set the size of both regions: room for `depth` messages of each queue pair, and for one more. */
static void stream_shape(const struct plan *plan, struct endpoint_config *active,
			 struct endpoint_config *passive)
{
	const struct slots slots = plan_slots(plan, plan->depth + 1);

	/* Add one request and one slot for the message that stream_end_tails posts. */
	active->send_wr = (uint32_t)plan->depth + 1;
	active->region_bytes = slots_bytes(&slots);
	passive->region_bytes = slots_bytes(&slots);
}

/* Do what stream_shape does, and also give the passive side 2 * `depth` receive requests per queue
 * pair. */
static void stream_shape_receives(const struct plan *plan, struct endpoint_config *active,
				  struct endpoint_config *passive)
{
	struct slots slots;

	stream_shape(plan, active, passive);
	passive->recv_wr = 2 * (uint32_t)plan->depth;
	slots = plan_slots(plan, passive->recv_wr);
	passive->region_bytes = slots_bytes(&slots);
}

/* Check that verified messages are large enough for their tag. Returns 0, or -EINVAL with `error`.
 */
static int stream_check_plan(const struct plan *plan, char *error, size_t error_size)
{
	if (!plan->verify || plan->size_bytes >= PATTERN_MIN_BYTES)
		return 0;
	snprintf(error, error_size, "verified messages have at least %d bytes", PATTERN_MIN_BYTES);
	return -EINVAL;
}

#define SHARED_WR_MAX UINT64_C(8192)

/* The members that are the same in every mode. */
#define STREAM(mode_name, ops)                                                           \
	.name = mode_name, .stream = &(ops), .begin = stream_begin, .poll = stream_poll, \
	.qp_messages = stream_qp_messages, .end = stream_end

static const struct stream_ops write_ops = {
	.opcode = IBV_WR_RDMA_WRITE,
	.fill = stream_fill_pattern,
};

/*
 * Check the slots of a queue pair and return the number of messages it has sent. The slots hold its
 * newest messages, each in the slot of its count. The highest count tells how many messages were
 * sent.
 */
static uint64_t write_verify_qp(struct passive *passive, uint32_t qp)
{
	const struct slots *slots = &passive->slots;
	uint64_t sent = 0, right = 0, tag;

	for (uint64_t i = 0; i < slots->per_qp; i++) {
		const uint8_t *at = passive->endpoint.memory + slot_of(slots, qp, i);

		if (!pattern_check(at, passive->plan.size_bytes, passive->plan.seed, &tag))
			continue;
		tag -= pattern_tag(qp, 0);
		if (tag % slots->per_qp != i)
			continue;
		right++;
		sent = RTE_MAX(sent, tag + 1);
	}
	passive->wrong += RTE_MIN(sent, slots->per_qp) - right;
	return sent;
}

static void write_serve_end(struct passive *passive)
{
	if (!passive->plan.verify)
		return;
	for (uint32_t qp = 0; qp < passive->plan.qps; qp++)
		passive->messages += write_verify_qp(passive, qp);
	if (passive->messages != passive->sent_by_peer)
		passive->wrong++;
}

const struct mode mode_write = {
	STREAM("write", write_ops),
	.check = stream_check_plan,
	.shape = stream_shape,
	.serve_end = write_serve_end,
};

/* Overwrite the data of the previous message, so that the check cannot take it for the data of this
 * message. */
static void read_fill(struct run *run, uint32_t qp, uint64_t n)
{
	memset(stream_memory(run, qp, n), 0xff, run->plan.size_bytes);
}

static void read_check(struct run *run, uint32_t qp, uint64_t n)
{
	uint64_t tag;

	if (!pattern_check(stream_memory(run, qp, n), run->plan.size_bytes, run->plan.seed, &tag) ||
	    tag != pattern_tag(qp, n % run->slots.per_qp))
		count_add(&run->wrong, 1);
}

static const struct stream_ops read_ops = {
	.opcode = IBV_WR_RDMA_READ,
	.fill = read_fill,
	.check = read_check,
};

static int read_serve_qp(struct passive *passive, unsigned int qp)
{
	for (uint64_t i = 0; passive->plan.verify && i < passive->slots.per_qp; i++)
		pattern_fill(passive->endpoint.memory + slot_of(&passive->slots, qp, i),
			     passive->plan.size_bytes, passive->plan.seed, pattern_tag(qp, i));
	return 0;
}

const struct mode mode_read = {
	STREAM("read", read_ops),
	.check = stream_check_plan,
	.shape = stream_shape,
	.serve_qp = read_serve_qp,
};

/* Check that an atomic has returned the number of atomics before it. */
static void atomic_check(struct run *run, uint32_t qp, uint64_t n)
{
	uint64_t before;

	memcpy(&before, stream_memory(run, qp, n), sizeof(before));
	if (before != n)
		count_add(&run->wrong, 1);
}

static const struct stream_ops atomic_ops = {
	.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
	.check = atomic_check,
};

static int atomic_check_plan(const struct plan *plan, char *error, size_t error_size)
{
	if (plan->size_bytes == sizeof(uint64_t))
		return 0;
	snprintf(error, error_size, "an atomic operation has a size of 8");
	return -EINVAL;
}

static void atomic_serve_end(struct passive *passive)
{
	uint64_t count;

	for (uint32_t qp = 0; qp < passive->plan.qps; qp++) {
		memcpy(&count, passive->endpoint.memory + slot_of(&passive->slots, qp, 0),
		       sizeof(count));
		passive->messages += count;
	}
	/* Of many queue pairs two may share a place, but no count is lost. */
	if (passive->plan.verify && passive->messages != passive->sent_by_peer)
		passive->wrong++;
}

const struct mode mode_atomic = {
	STREAM("atomic", atomic_ops),
	.check = atomic_check_plan,
	.shape = stream_shape,
	.serve_end = atomic_serve_end,
};

static const struct stream_ops send_ops = {
	.opcode = IBV_WR_SEND,
	.fill = stream_fill_pattern,
};

const struct mode mode_send = {
	STREAM("send", send_ops),
	.check = stream_check_plan,
	.shape = stream_shape_receives,
	.serve_qp = passive_post_receives,
	.serve_poll = passive_receive,
	.check_message = passive_check_message,
	.serve_end = passive_count_messages,
};

/*
 * Modes source, sink and null: SEND from the null region, into it, and both. A source reads no
 * memory and a sink writes none, so a comparison with mode send shows the cost of memory accesses.
 */
static const struct stream_ops null_ops = {.opcode = IBV_WR_SEND};

static void source_shape(const struct plan *plan, struct endpoint_config *active,
			 struct endpoint_config *passive)
{
	stream_shape_receives(plan, active, passive);
	active->null_region = true;
}

static void sink_shape(const struct plan *plan, struct endpoint_config *active,
		       struct endpoint_config *passive)
{
	stream_shape_receives(plan, active, passive);
	passive->null_region = true;
}

static void null_shape(const struct plan *plan, struct endpoint_config *active,
		       struct endpoint_config *passive)
{
	source_shape(plan, active, passive);
	passive->null_region = true;
}

static int sink_check(const struct plan *plan, char *error, size_t error_size)
{
	if (!plan->verify)
		return 0;
	snprintf(error, error_size, "data that is received into a null region cannot be verified");
	return -EINVAL;
}

static int source_check(const struct plan *plan, char *error, size_t error_size)
{
	(void)plan;
	(void)error;
	(void)error_size;
	return 0;
}

/* Check a message from a source: all bytes are 0. Refill the buffer with 0xff for the next message.
 */
static void source_check_message(struct passive *passive, uint32_t qp, void *bytes)
{
	uint8_t *at = bytes;

	(void)qp;
	if (at[0] != 0 || memcmp(at, at + 1, passive->plan.size_bytes - 1) != 0)
		passive->wrong++;
	memset(at, 0xff, passive->plan.size_bytes);
}

static int source_serve_begin(struct passive *passive)
{
	if (passive->plan.verify)
		memset(passive->endpoint.memory, 0xff, passive->endpoint.config.region_bytes);
	return 0;
}

const struct mode mode_source = {
	STREAM("source", null_ops),
	.check = source_check,
	.shape = source_shape,
	.serve_begin = source_serve_begin,
	.serve_qp = passive_post_receives,
	.serve_poll = passive_receive,
	.check_message = source_check_message,
	.serve_end = passive_count_messages,
};

const struct mode mode_sink = {
	STREAM("sink", send_ops),
	.check = sink_check,
	.shape = sink_shape,
	.serve_qp = passive_post_receives,
	.serve_poll = passive_receive,
	.check_message = NULL, /* the null region keeps no byte */
	.serve_end = passive_count_messages,
};

const struct mode mode_null = {
	STREAM("null", null_ops),
	.check = sink_check,
	.shape = null_shape,
	.serve_qp = passive_post_receives,
	.serve_poll = passive_receive,
	.check_message = NULL, /* the null region keeps no byte */
	.serve_end = passive_count_messages,
};

/* Mode incast: the result also shows how evenly the queue pairs progress. */
static void incast_stats(const struct run *run, struct result *result)
{
	stream_spread(run, &result->qp_least, &result->qp_most);
}

static void incast_shape(const struct plan *plan, struct endpoint_config *active,
			 struct endpoint_config *passive)
{
	struct plan one = *plan;
	struct slots slots;

	stream_shape(plan, active, passive);
	passive->shared_receive = true;
	passive->recv_wr = (uint32_t)RTE_MIN(2 * plan->depth * plan->qps, SHARED_WR_MAX);
	one.qps = 1;
	slots = plan_slots(&one, passive->recv_wr);
	passive->region_bytes = slots_bytes(&slots);
}

static int incast_serve_begin(struct passive *passive)
{
	return passive_post_receives(passive, 0);
}

/* Check a message. The message itself names its sender. */
static void incast_check_message(struct passive *passive, uint32_t shared, void *bytes)
{
	uint64_t tag, qp;

	(void)shared;
	if (!pattern_check(bytes, passive->plan.size_bytes, passive->plan.seed, &tag)) {
		passive->wrong++;
		return;
	}
	qp = tag >> PATTERN_COUNT_BITS;
	if (qp >= passive->plan.qps || tag != pattern_tag(qp, passive->expected[qp]++))
		passive->wrong++;
}

const struct mode mode_incast = {
	STREAM("incast", send_ops),
	.check = stream_check_plan,
	.shape = incast_shape,
	.stats = incast_stats,
	.serve_begin = incast_serve_begin,
	.serve_poll = passive_receive,
	.check_message = incast_check_message,
	.serve_end = passive_count_messages,
};
