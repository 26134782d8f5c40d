/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode atomic: fetch-and-add of 1 to a counter that each queue pair has in the peer's region. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "count.h"
#include "mode.h"
#include "passive.h"
#include "run.h"
#include "stream.h"

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

static int atomic_begin(struct run *run)
{
	return stream_begin(run, &atomic_ops);
}

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
	.name = "atomic",
	.help = "fetch-and-add in the peer's region",
	.check = atomic_check_plan,
	.shape = stream_shape,
	.begin = atomic_begin,
	.poll = stream_poll,
	.qp_messages = stream_qp_messages,
	.end = stream_end,
	.serve_end = atomic_serve_end,
};
