/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode write: WRITE into the peer's region. */
#include <infiniband/verbs.h>

#include <rte_common.h>

#include "mode.h"
#include "passive.h"
#include "pattern.h"
#include "run.h"
#include "stream.h"

static const struct stream_ops write_ops = {
	.opcode = IBV_WR_RDMA_WRITE,
	.fill = stream_fill_pattern,
};

static int write_begin(struct run *run)
{
	return stream_begin(run, &write_ops);
}

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
	.name = "write",
	.help = "WRITE into the peer's region",
	.check = stream_check_plan,
	.shape = stream_shape,
	.begin = write_begin,
	.poll = stream_poll,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_end = write_serve_end,
};
