/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode read: READ from the peer's region. */
#include <string.h>

#include <infiniband/verbs.h>

#include "count.h"
#include "mode.h"
#include "passive.h"
#include "pattern.h"
#include "run.h"
#include "stream.h"

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

static int read_begin(struct run *run)
{
	return stream_begin(run, &read_ops);
}

static int read_serve_qp(struct passive *passive, unsigned int qp)
{
	for (uint64_t i = 0; passive->plan.verify && i < passive->slots.per_qp; i++)
		pattern_fill(passive->endpoint.memory + slot_of(&passive->slots, qp, i),
			     passive->plan.size_bytes, passive->plan.seed, pattern_tag(qp, i));
	return 0;
}

const struct mode mode_read = {
	.name = "read",
	.help = "READ from the peer's region",
	.check = stream_check_plan,
	.shape = stream_shape,
	.begin = read_begin,
	.poll = stream_poll,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_qp = read_serve_qp,
};
