/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected queue pairs of the fake device, each with memory, and calls to let them talk. */
#ifndef TEST_VERBS_TALK_H
#define TEST_VERBS_TALK_H

#include "fake_provider.h"

#define TALK_BYTES 8192

struct talk {
	struct fake_pair a; /* sends from source */
	struct fake_pair b; /* receives into target */
	uint8_t *source;    /* TALK_BYTES of a pattern, page-aligned */
	uint8_t *target;    /* TALK_BYTES of zeros, page-aligned */
	struct ibv_mr *source_mr;
	struct ibv_mr *target_mr; /* NULL when the test has deregistered it */
};

/** Connect, fill and register the memory for every access. */
struct talk talk_start(struct ibv_context *context, uint8_t gid_index);
void talk_end(struct talk *talk);

/** Do the same with a fake device of its own, as `*state`, over IPv4, for cmocka. */
int talk_set_up(struct talk *talk, void **state);
int talk_tear_down(struct talk *talk, void **state);

/** The whole of the source, or of the target, from an offset on. */
struct ibv_sge talk_source(const struct talk *talk, size_t offset, uint32_t length);
struct ibv_sge talk_target(const struct talk *talk, size_t offset, uint32_t length);

/** Post a signaled request (wr_id 1) from A to the first bytes of the target. */
void talk_post(struct talk *talk, enum ibv_wr_opcode opcode, struct ibv_sge *sge, int num_sge);
/** Connect A to a queue pair of B's domain that receives by this queue, in place of B. */
struct ibv_qp *talk_shared(const struct talk *talk, struct ibv_srq *srq);
/** Post a receive request (wr_id 2) to B. */
void talk_recv(struct talk *talk, struct ibv_sge *sge, int num_sge);

/** The next completion; asserts that it comes, with this status. */
struct ibv_wc talk_wait(struct ibv_cq *cq, enum ibv_wc_status status);

/** Read asynchronous events until one is of this type. */
void talk_event(struct ibv_context *context, enum ibv_event_type type);

#endif
