/* SPDX-License-Identifier: BSD-3-Clause */
/* The modes that keep queues full (stream.h): WRITE, READ, SEND and atomics, SEND of and into the
 * null region, and SEND of many queue pairs into one shared receive queue. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rte_common.h>

#include "count.h"
#include "endpoint.h"
#include "mode.h"
#include "passive.h"
#include "pattern.h"
#include "result.h"
#include "run.h"
#include "stream.h"

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
