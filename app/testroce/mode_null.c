/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Modes source, sink and null: SEND from the null region, into it, and both. A source reads no
 * memory and a sink writes none, so a comparison with mode send shows the cost of memory accesses.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "endpoint.h"
#include "mode.h"
#include "passive.h"
#include "run.h"
#include "stream.h"

static const struct stream_ops null_ops = {.opcode = IBV_WR_SEND};
static const struct stream_ops sink_ops = {.opcode = IBV_WR_SEND, .fill = stream_fill_pattern};

static int null_begin(struct run *run)
{
	return stream_begin(run, &null_ops);
}

static int sink_begin(struct run *run)
{
	return stream_begin(run, &sink_ops);
}

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

static int source_serve_poll(struct passive *passive)
{
	return passive_receive(passive, passive->plan.verify ? source_check_message : NULL);
}

static int null_serve_poll(struct passive *passive)
{
	return passive_receive(passive, NULL);
}

const struct mode mode_source = {
	.name = "source",
	.help = "SEND from the null region into memory",
	.check = source_check,
	.shape = source_shape,
	.begin = null_begin,
	.poll = stream_poll,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_begin = source_serve_begin,
	.serve_qp = passive_post_receives,
	.serve_poll = source_serve_poll,
	.serve_end = passive_count_messages,
};

const struct mode mode_sink = {
	.name = "sink",
	.help = "SEND from memory into the null region",
	.check = sink_check,
	.shape = sink_shape,
	.begin = sink_begin,
	.poll = stream_poll,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_qp = passive_post_receives,
	.serve_poll = null_serve_poll,
	.serve_end = passive_count_messages,
};

const struct mode mode_null = {
	.name = "null",
	.help = "SEND from the null region into the null region",
	.check = sink_check,
	.shape = null_shape,
	.begin = null_begin,
	.poll = stream_poll,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_qp = passive_post_receives,
	.serve_poll = null_serve_poll,
	.serve_end = passive_count_messages,
};
