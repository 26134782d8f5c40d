/* SPDX-License-Identifier: BSD-3-Clause */
/* Common code of the modes that keep queues full: post in batches, signal few requests, and refill
 * the queue after completions. */
#ifndef TESTROCE_STREAM_H
#define TESTROCE_STREAM_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "plan.h"

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

/** Fill the queues. Returns 0 or -errno. */
int stream_begin(struct run *run);

/** Take completions, and fill the queues again. Returns 0 or -errno. */
int stream_poll(struct run *run);

/** Free what stream_begin allocated. */
void stream_end(struct run *run);

/** Lower `least` and raise `most` to the number of messages that each queue pair has completed. */
void stream_spread(const struct run *run, uint64_t *least, uint64_t *most);

uint64_t stream_qp_messages(const struct run *run, uint32_t qp);

/** Return the memory of a message on this side. */
void *stream_memory(const struct run *run, uint32_t qp, uint64_t n);

/** Fill a message with its pattern; usable as stream_ops.fill. */
void stream_fill_pattern(struct run *run, uint32_t qp, uint64_t n);

/** Set the size of both regions: room for `depth` messages of each queue pair, and for one more. */
void stream_shape(const struct plan *plan, struct endpoint_config *active,
		  struct endpoint_config *passive);

/** Do what stream_shape does, and also give the passive side 2 * `depth` receive requests per queue
 * pair. */
void stream_shape_receives(const struct plan *plan, struct endpoint_config *active,
			   struct endpoint_config *passive);

/** Check that verified messages are large enough for their tag. Returns 0, or -EINVAL with `error`.
 */
int stream_check_plan(const struct plan *plan, char *error, size_t error_size);

#endif
