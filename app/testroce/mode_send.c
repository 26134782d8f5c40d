/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode send: SEND into receive requests of each queue pair. */
#include <infiniband/verbs.h>

#include "mode.h"
#include "passive.h"
#include "run.h"
#include "stream.h"

static const struct stream_ops send_ops = {
	.opcode = IBV_WR_SEND,
	.fill = stream_fill_pattern,
};

static int send_begin(struct run *run)
{
	return stream_begin(run, &send_ops);
}

static int send_serve_poll(struct passive *passive)
{
	return passive_receive(passive, passive->plan.verify ? passive_check_message : NULL);
}

const struct mode mode_send = {
	.name = "send",
	.help = "SEND into receive requests of each queue pair",
	.check = stream_check_plan,
	.shape = stream_shape_receives,
	.begin = send_begin,
	.poll = stream_poll,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_qp = passive_post_receives,
	.serve_poll = send_serve_poll,
	.serve_end = passive_count_messages,
};
