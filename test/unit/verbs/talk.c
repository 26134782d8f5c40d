/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connected queue pairs of the fake device. */
#include "talk.h"

#include <sys/mman.h>

#define TALK_ACCESS                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static uint8_t *map_memory(void)
{
	void *memory =
		mmap(NULL, TALK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void connect_pair(struct fake_pair *pair, const struct fake_pair *to, uint8_t gid_index)
{
	struct ibv_qp_attr attr = {.qp_access_flags = TALK_ACCESS & ~IBV_ACCESS_MW_BIND};

	assert_int_equal(fake_connect(pair->qp, to->qp->qp_num, gid_index, IBV_QPS_RTS), 0);
	assert_int_equal(ibv_modify_qp(pair->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

struct talk talk_start(struct ibv_context *context, uint8_t gid_index)
{
	struct talk talk = {
		.a = fake_pair_create(context),
		.b = fake_pair_create(context),
		.source = map_memory(),
		.target = map_memory(),
	};

	fake.carries = true;
	talk.source_mr = ibv_reg_mr(talk.a.pd, talk.source, TALK_BYTES, TALK_ACCESS);
	talk.target_mr = ibv_reg_mr(talk.b.pd, talk.target, TALK_BYTES, TALK_ACCESS);
	assert_non_null(talk.source_mr);
	assert_non_null(talk.target_mr);
	for (size_t i = 0; i < TALK_BYTES; i++)
		talk.source[i] = (uint8_t)(i * 31 + 7);
	connect_pair(&talk.a, &talk.b, gid_index);
	connect_pair(&talk.b, &talk.a, gid_index);
	return talk;
}

void talk_end(struct talk *talk)
{
	assert_int_equal(ibv_dereg_mr(talk->source_mr), 0);
	if (talk->target_mr)
		assert_int_equal(ibv_dereg_mr(talk->target_mr), 0);
	fake_pair_destroy(&talk->a);
	fake_pair_destroy(&talk->b);
	munmap(talk->source, TALK_BYTES);
	munmap(talk->target, TALK_BYTES);
}

int talk_set_up(struct talk *talk, void **state)
{
	fake_setup(state);
	*talk = talk_start(*state, FAKE_GID_V4);
	return 0;
}

int talk_tear_down(struct talk *talk, void **state)
{
	talk_end(talk);
	return fake_close(state);
}

struct ibv_sge talk_source(const struct talk *talk, size_t offset, uint32_t length)
{
	return (struct ibv_sge){.addr = (uintptr_t)talk->source + offset,
				.length = length,
				.lkey = talk->source_mr->lkey};
}

struct ibv_sge talk_target(const struct talk *talk, size_t offset, uint32_t length)
{
	return (struct ibv_sge){.addr = (uintptr_t)talk->target + offset,
				.length = length,
				.lkey = talk->target_mr->lkey};
}

void talk_post(struct talk *talk, enum ibv_wr_opcode opcode, struct ibv_sge *sge, int num_sge)
{
	const bool atomic =
		opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = sge,
		.num_sge = num_sge,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)talk->target;
		wr.wr.atomic.rkey = talk->target_mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)talk->target;
		wr.wr.rdma.rkey = talk->target_mr->rkey;
	}
	assert_int_equal(ibv_post_send(talk->a.qp, &wr, &bad), 0);
}

struct ibv_qp *talk_shared(const struct talk *talk, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = talk->b.cq,
		.recv_cq = talk->b.cq,
		.srq = srq,
		.cap = {.max_send_wr = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *b = ibv_create_qp(talk->b.pd, &init);
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	assert_non_null(b);
	assert_int_equal(ibv_modify_qp(talk->a.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(fake_connect(talk->a.qp, b->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(fake_connect(b, talk->a.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	return b;
}

void talk_recv(struct talk *talk, struct ibv_sge *sge, int num_sge)
{
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = sge, .num_sge = num_sge}, *bad;

	assert_int_equal(ibv_post_recv(talk->b.qp, &wr, &bad), 0);
}

struct ibv_wc talk_wait(struct ibv_cq *cq, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	for (int i = 0; i < 100; i++) {
		if (ibv_poll_cq(cq, 1, &wc) == 1) {
			assert_string_equal(ibv_wc_status_str(wc.status),
					    ibv_wc_status_str(status));
			return wc;
		}
	}
	fail_msg("no completion");
	return wc;
}

void talk_event(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	do {
		assert_int_equal(ibv_get_async_event(context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != type);
}
