/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/queue/sq.c. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "posters.h"
#include "queue/sq.h"
#include "test.h"
#include "queues.h"

static const struct sq_attr attr = {.max_wr = 4, .max_sge = 3, .max_inline = 100};

static int post_as(struct sq *sq, enum ibv_qp_type qp_type, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	const int rc = sq_post(sq, qp_type, wr, &bad);

	assert_ptr_equal(bad, rc == 0 ? NULL : wr);
	return rc;
}

static int post(struct sq *sq, struct ibv_send_wr *wr)
{
	return post_as(sq, IBV_QPT_RC, wr);
}

/* Post where it must work; the request as the requester sees it. */
static struct send_wqe *posted(struct sq *sq, struct ibv_send_wr *wr)
{
	const uint32_t index = sq_prod(sq);

	assert_int_equal(post(sq, wr), 0);
	assert_int_equal(sq_prod(sq), index + 1);
	sq_pop(sq);
	return sq_at(sq, index);
}

TEST(sq_init__grants_at_least_what_was_asked_for)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_wr = UINT32_MAX}), -EINVAL);
	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_wr = 1, .max_sge = UINT32_MAX}),
			 -EINVAL);
	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_wr = 1, .max_inline = UINT32_MAX}),
			 -EINVAL);
	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_wr = 5}), 0);
	assert_true(sq.attr.max_wr >= 5);
	for (uint32_t i = 0; i < sq.attr.max_wr; i++)
		assert_int_equal(post(&sq, &wr), 0);
	assert_int_equal(post(&sq, &wr), ENOMEM);
	sq_pop(&sq);
	assert_int_equal(post(&sq, &wr), 0);
	sq_fini(&sq);
}

TEST(sq_init__a_queue_of_0_takes_nothing)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_sge = 1}), 0);
	assert_int_equal(post(&sq, &wr), ENOMEM);
	sq_fini(&sq);
}

TEST(sq_post__opcodes_are_those_of_the_queue_pairs_type)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		bool rc, uc, ud;
	} cases[] = {
		{IBV_WR_SEND, true, true, true},
		{IBV_WR_SEND_WITH_IMM, true, true, true},
		/* UC and UD queue pairs refuse some of these only when their turn comes. */
		{IBV_WR_RDMA_WRITE, true, true, true},
		{IBV_WR_RDMA_WRITE_WITH_IMM, true, true, true},
		{IBV_WR_RDMA_READ, true, true, true},
		{IBV_WR_ATOMIC_CMP_AND_SWP, true, true, true},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, true, true, true},
		{IBV_WR_SEND_WITH_INV, true, false, false},
		{IBV_WR_LOCAL_INV, true, true, false},
		{IBV_WR_BIND_MW, true, true, false},
		{IBV_WR_ATOMIC_WRITE, true, false, false},
		/* These opcodes need values for which ibv_send_wr has no member. */
		{(enum ibv_wr_opcode)LATER_WR_FLUSH, false, false, false},
		{IBV_WR_TSO, false, false, false},
		{IBV_WR_DRIVER1, false, false, false},
		{(enum ibv_wr_opcode)31, false, false, false},
		{(enum ibv_wr_opcode)32, false, false, false},
		{(enum ibv_wr_opcode)256, false, false, false},
		{(enum ibv_wr_opcode)0x80000002, false, false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_sge sge = {.length = 8};
		struct ibv_mw mw = {0};
		struct ibv_send_wr wr = {.opcode = cases[i].opcode,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .bind_mw.mw = &mw};
		struct sq sq;

		assert_int_equal(sq_init(&sq, &attr), 0);
		assert_int_equal(post_as(&sq, IBV_QPT_RC, &wr), cases[i].rc ? 0 : EINVAL);
		assert_int_equal(post_as(&sq, IBV_QPT_UC, &wr), cases[i].uc ? 0 : EINVAL);
		assert_int_equal(post_as(&sq, IBV_QPT_UD, &wr), cases[i].ud ? 0 : EINVAL);
		assert_int_equal(post_as(&sq, IBV_QPT_RAW_PACKET, &wr), EINVAL);
		sq_fini(&sq);
	}
}

TEST(sq_post__copies_what_the_opcode_uses)
{
	struct ibv_sge sges[3] = {{.addr = 1, .length = 100, .lkey = 2},
				  {.addr = 3, .length = 0, .lkey = 4},
				  {.addr = 5, .length = 27, .lkey = 6}};
	const struct ibv_sge copy[3] = {sges[0], sges[1], sges[2]};
	struct ibv_send_wr wr = {
		.wr_id = 77, .sg_list = sges, .num_sge = 3, .imm_data = 0x01020304};
	struct send_wqe *wqe;
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	/* The remains of the last round in the slots do not show. */
	memset(sq.ring, 0xff, (size_t)sq.attr.max_wr * sq.stride);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.send_flags = IBV_SEND_SOLICITED | IBV_SEND_FENCE;
	wr.wr.rdma.remote_addr = 0x1122334455667788;
	wr.wr.rdma.rkey = 0xabcdef01;
	wqe = posted(&sq, &wr);
	sges[0].addr = 0; /* the application's again */
	assert_int_equal(wqe->wr_id, 77);
	assert_int_equal(wqe->opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(wqe->flags, IBV_SEND_SOLICITED | IBV_SEND_FENCE);
	assert_int_equal(wqe->imm_be, 0x01020304);
	assert_int_equal(wqe->remote_addr, 0x1122334455667788);
	assert_int_equal(wqe->rkey, 0xabcdef01);
	assert_int_equal(wqe->length, 127);
	assert_int_equal(wqe->num_sge, 3);
	assert_memory_equal(wqe->sge, copy, sizeof(copy));
	assert_false(wqe->started);

	wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = 0x55};
	wqe = posted(&sq, &wr);
	assert_int_equal(wqe->rkey, 0x55);
	assert_int_equal(wqe->length, 0);
	assert_int_equal(wqe->num_sge, 0);

	wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x66};
	wqe = posted(&sq, &wr);
	assert_int_equal(wqe->imm_be, 0x66);

	wr = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_READ, .sg_list = &sges[2], .num_sge = 1};
	wr.wr.rdma.remote_addr = 9;
	wr.wr.rdma.rkey = 8;
	wqe = posted(&sq, &wr);
	assert_int_equal(wqe->remote_addr, 9);
	assert_int_equal(wqe->rkey, 8);
	assert_int_equal(wqe->length, 27);
	sq_fini(&sq);
}

TEST(sq_post__signal_all_sets_the_flag)
{
	const struct sq_attr all = {.max_wr = 1, .sig_all = true};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SOLICITED};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &all), 0);
	assert_int_equal(posted(&sq, &wr)->flags, IBV_SEND_SOLICITED | IBV_SEND_SIGNALED);
	sq_fini(&sq);
}

TEST(sq_post__flags_without_a_meaning_are_refused)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_IP_CSUM};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.send_flags = 1u << 8;
	assert_int_equal(post(&sq, &wr), EINVAL);
	sq_fini(&sq);
}

TEST(sq_post__inline_data_is_copied_at_once)
{
	uint8_t data[100];
	struct ibv_sge sges[3] = {{.addr = (uintptr_t)data, .length = 60},
				  {.addr = 0, .length = 0},
				  {.addr = (uintptr_t)data + 60, .length = 40}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE,
				 .sg_list = sges,
				 .num_sge = 3};
	struct send_wqe *wqe;
	struct sq sq;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_int_equal(sq_init(&sq, &attr), 0);
	wqe = posted(&sq, &wr);
	memset(data, 0, sizeof(data));
	assert_int_equal(wqe->length, 100);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(wqe->data[i], i);
	/* The whole slot was room enough. */
	assert_true(sizeof(*wqe) + 100 <= sq.stride);
	sq_fini(&sq);
}

TEST(sq_post__inline_data_has_its_limit)
{
	uint8_t data[101] = {0};
	struct ibv_sge sges[2] = {{.addr = (uintptr_t)data, .length = 101},
				  {.addr = (uintptr_t)data, .length = UINT32_MAX}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_INLINE,
				 .sg_list = sges,
				 .num_sge = 1};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	assert_int_equal(post(&sq, &wr), EINVAL);
	/* A sum that is small modulo 2^32. */
	sges[0].length = 50;
	wr.num_sge = 2;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.num_sge = 1;
	assert_int_equal(post(&sq, &wr), 0);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.opcode = IBV_WR_LOCAL_INV;
	assert_int_equal(post(&sq, &wr), EINVAL);
	sq_fini(&sq);
}

TEST(sq_post__a_binding_is_described_by_keys)
{
	struct ibv_sge sge = {.length = 8};
	struct ibv_mr mr = {.lkey = 0x1122};
	struct ibv_mw mw = {.rkey = 0x3344};
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
				 .sg_list = &sge, /* means nothing here */
				 .num_sge = 1,
				 .bind_mw = {.mw = &mw,
					     .rkey = 0x3345,
					     .bind_info = {.mr = &mr,
							   .addr = 0x5566778899,
							   .length = 1ull << 40,
							   .mw_access_flags = 6}}};
	struct send_wqe *wqe;
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	wqe = posted(&sq, &wr);
	assert_int_equal(wqe->bind_window, 0x3344);
	assert_int_equal(wqe->rkey, 0x3345);
	/* The window is told its key. Of what is asked for, the lowest byte counts. */
	assert_int_equal(mw.rkey, 0x3345);
	wr.bind_mw.rkey = 0xabcdef46;
	wqe = posted(&sq, &wr);
	assert_int_equal(wqe->bind_window, 0x3345);
	assert_int_equal(wqe->rkey, 0x3346);
	assert_int_equal(mw.rkey, 0x3346);
	assert_int_equal(wqe->bind->lkey, 0x1122);
	assert_int_equal(wqe->remote_addr, 0x5566778899);
	assert_int_equal(wqe->bind->length, 1ull << 40);
	assert_int_equal(wqe->bind->access, 6);
	assert_int_equal(wqe->num_sge, 0);
	assert_int_equal(wqe->length, 0);
	wr.bind_mw.bind_info.mr = NULL;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.bind_mw.bind_info.length = 0; /* of nothing */
	assert_int_equal(posted(&sq, &wr)->bind->lkey, 0);
	wr.bind_mw.mw = NULL;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr = (struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 0x77};
	assert_int_equal(posted(&sq, &wr)->rkey, 0x77);
	sq_fini(&sq);
}

TEST(sq_post__a_message_has_at_most_2_gib)
{
	struct ibv_sge sges[3] = {{.length = 0x40000000}, {.length = 0x40000000}, {.length = 1}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = sges, .num_sge = 2};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	assert_int_equal(posted(&sq, &wr)->length, 0x80000000);
	wr.num_sge = 3;
	assert_int_equal(post(&sq, &wr), EINVAL);
	sges[0].length = UINT32_MAX; /* the sum is small modulo 2^32 */
	assert_int_equal(post(&sq, &wr), EINVAL);
	sq_fini(&sq);
}

TEST(sq_post__bad_lists_are_refused)
{
	struct ibv_sge sges[4] = {{0}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = 4};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.num_sge = 1;
	wr.sg_list = NULL;
	assert_int_equal(post(&sq, &wr), EINVAL);
	assert_int_equal(sq_prod(&sq), 0);
	sq_fini(&sq);
}

/* Describing a request writes operands before its gather list is checked. */
TEST(sq_init__leaves_room_for_operands_and_windows)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						 IBV_QPT_XRC_SEND};
	struct sq sq;

	for (size_t i = 0; i < RTE_DIM(types); i++) {
		for (uint32_t sges = 0; sges < 4; sges++) {
			const struct sq_attr few = {
				.max_wr = 1, .max_sge = sges, .type = (uint8_t)types[i]};

			assert_int_equal(sq_init(&sq, &few), 0);
			assert_true(sq.stride >=
				    sizeof(struct send_wqe) + sizeof(struct sq_operands));
			assert_true(sq.stride >= sizeof(struct send_wqe) + sizeof(struct sq_bind));
			/* Requests with one entry each touch one line. */
			assert_int_equal(sq.stride % RTE_CACHE_LINE_MIN_SIZE, 0);
			sq_fini(&sq);
		}
	}
}

TEST(sq_post__atomics_have_8_bytes)
{
	struct ibv_sge sges[2] = {{.addr = 1, .length = 4096, .lkey = 2}, {.length = 8}};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .sg_list = sges, .num_sge = 1};
	struct send_wqe *wqe;
	struct sq sq;

	wr.wr.atomic.remote_addr = 0x1000;
	wr.wr.atomic.compare_add = 0x1111111111111111;
	wr.wr.atomic.swap = 0x2222222222222222;
	wr.wr.atomic.rkey = 3;
	assert_int_equal(sq_init(&sq, &attr), 0);
	wqe = posted(&sq, &wr);
	assert_int_equal(wqe->remote_addr, 0x1000);
	assert_int_equal(wqe->atomic->compare_add, 0x1111111111111111);
	assert_int_equal(wqe->atomic->swap, 0x2222222222222222);
	assert_int_equal(wqe->rkey, 3);
	/* Whatever room the list names, the result is 8 bytes. */
	assert_int_equal(wqe->length, 8);
	assert_int_equal(wqe->sge[0].length, 8);
	assert_int_equal(wqe->sge[0].addr, 1);
	assert_int_equal(wqe->sge[0].lkey, 2);

	/* The responder judges the address. */
	wr.wr.atomic.remote_addr = 0x1001;
	assert_int_equal(posted(&sq, &wr)->remote_addr, 0x1001);
	wr.num_sge = 2;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.num_sge = 0;
	assert_int_equal(post(&sq, &wr), EINVAL);
	wr.num_sge = 1;
	sges[0].length = 7;
	assert_int_equal(post(&sq, &wr), EINVAL);
	sges[0].length = 8;
	assert_int_equal(post(&sq, &wr), 0);
	sq_fini(&sq);
}

TEST(sq_post__an_atomic_write_has_8_bytes)
{
	uint64_t value = 0x1122334455667788;
	struct ibv_sge sge = {.addr = (uintptr_t)&value, .length = 8, .lkey = 2};
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_WRITE, .sg_list = &sge, .num_sge = 1};
	struct send_wqe *wqe;
	struct sq sq;

	wr.wr.rdma.remote_addr = 0x1000;
	wr.wr.rdma.rkey = 3;
	assert_int_equal(sq_init(&sq, &attr), 0);
	wqe = posted(&sq, &wr);
	assert_int_equal(wqe->remote_addr, 0x1000);
	assert_int_equal(wqe->rkey, 3);
	assert_int_equal(wqe->length, 8);
	assert_int_equal(wqe->sge[0].lkey, 2);
	wr.send_flags = IBV_SEND_INLINE;
	wqe = posted(&sq, &wr);
	value = 0;
	assert_int_equal(*(uint64_t *)(void *)wqe->data, 0x1122334455667788);
	wr.wr.rdma.remote_addr = 0x1004;
	assert_int_equal(posted(&sq, &wr)->remote_addr, 0x1004);
	for (sge.length = 0; sge.length < 17; sge.length++)
		assert_int_equal(post(&sq, &wr), sge.length == 8 ? 0 : EINVAL);
	sq_fini(&sq);
}

TEST(sq_post__what_stands_before_the_bad_one_is_posted)
{
	struct ibv_send_wr wrs[3] = {
		{.wr_id = 0, .next = &wrs[1]}, {.wr_id = 1, .next = &wrs[2]}, {.wr_id = 2}};
	struct ibv_send_wr *bad = NULL;
	struct sq sq;

	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_wr = 2}), 0);
	assert_int_equal(sq_post(&sq, IBV_QPT_RC, NULL, &bad), 0);
	assert_int_equal(sq_prod(&sq), 0);
	assert_int_equal(sq_post(&sq, IBV_QPT_RC, wrs, &bad), ENOMEM);
	assert_ptr_equal(bad, &wrs[2]);
	assert_int_equal(sq_prod(&sq), 2);
	assert_int_equal(sq_at(&sq, 0)->wr_id, 0);
	assert_int_equal(sq_at(&sq, 1)->wr_id, 1);
	sq_fini(&sq);
}

TEST(sq_post__counters_may_wrap)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	sq.prod = sq.cons = sq.next = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 4; i++) {
		wr.wr_id = i;
		assert_int_equal(post(&sq, &wr), 0);
	}
	assert_int_equal(post(&sq, &wr), ENOMEM);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(sq_at(&sq, UINT32_MAX - 1 + i)->wr_id, i);
	sq_fini(&sq);
}

TEST(sq_pop__moves_along_what_is_sent_next)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	/* The counters wrap. */
	sq.prod = sq.cons = sq.next = UINT32_MAX - 1;
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(&sq, &wr), 0);
	sq_seek(&sq, 0);
	sq_pop(&sq);
	assert_int_equal(sq.next, 0);
	sq_seek(&sq, UINT32_MAX);
	sq_pop(&sq);
	assert_int_equal(sq.next, 0);
	sq_pop(&sq);
	sq_pop(&sq);
	assert_int_equal(sq.next, sq_prod(&sq));
	sq_fini(&sq);
}

TEST(sq_has__what_is_posted_and_the_next_one)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	sq.prod = sq.cons = sq.next = UINT32_MAX;
	assert_int_equal(post(&sq, &wr), 0);
	assert_int_equal(post(&sq, &wr), 0);
	assert_false(sq_has(&sq, UINT32_MAX - 1));
	assert_true(sq_has(&sq, UINT32_MAX));
	assert_true(sq_has(&sq, 0));
	assert_true(sq_has(&sq, 1));
	assert_false(sq_has(&sq, 2));
	sq_pop(&sq);
	assert_false(sq_has(&sq, UINT32_MAX));
	sq_fini(&sq);
}

TEST(sq_clear__drops_everything)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(&sq, &wr), 0);
	sq_seek(&sq, 3);
	sq_clear(&sq);
	assert_int_equal(sq_prod(&sq), sq.cons);
	assert_int_equal(sq.next, sq.cons);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(&sq, &wr), 0);
	assert_int_equal(post(&sq, &wr), ENOMEM);
	sq_fini(&sq);
}

/* Each list has two requests; their inline data repeats the id. */
static void post_many(void *queue, uint64_t id)
{
	for (uint32_t i = 0; i < POSTS; i += 2, id += 2) {
		uint64_t ids[2] = {id, id + 1};
		struct ibv_sge sges[2] = {{.addr = (uintptr_t)&ids[0], .length = 8},
					  {.addr = (uintptr_t)&ids[1], .length = 8}};
		struct ibv_send_wr wrs[2] = {{.wr_id = ids[0],
					      .next = &wrs[1],
					      .sg_list = &sges[0],
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_INLINE},
					     {.wr_id = ids[1],
					      .sg_list = &sges[1],
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_INLINE}};
		struct ibv_send_wr *bad, *wr = wrs;

		/* A full queue takes what it has room for. */
		while (sq_post(queue, IBV_QPT_RC, wr, &bad) != 0) {
			wr = bad;
			sched_yield();
		}
	}
}

TEST(sq_post__threads_keep_their_order)
{
	const struct sq_attr small = {.max_wr = 1024, .max_sge = 1, .max_inline = 8};
	struct sq sq;
	struct posters posters = {.post = post_many, .queue = &sq};

	assert_int_equal(sq_init(&sq, &small), 0);
	posters_start(&posters);
	for (uint32_t n = 0; n < POSTS_OF_ALL;) {
		struct send_wqe *wqe;

		if (sq_prod(&sq) == n) {
			sched_yield();
			continue;
		}
		wqe = sq_at(&sq, n);
		posters_expect(&posters, wqe->wr_id);
		assert_memory_equal(wqe->data, &wqe->wr_id, sizeof(wqe->wr_id));
		wqe->started = true; /* the requester writes too */
		sq_pop(&sq);
		n++;
	}
	posters_join(&posters);
	sq_fini(&sq);
}

/* Requests of 1, 2 and 3 PSNs in turn, and local work of none. Returns how many PSNs. */
static uint32_t start_requests(struct sq *sq, uint32_t count, uint32_t first)
{
	uint32_t psn = first;

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
		struct send_wqe *wqe = sq_at(sq, sq_prod(sq));

		assert_int_equal(post(sq, &wr), 0);
		wqe->first_psn = psn_make(psn);
		psn += i % 4;
		wqe->last_psn = psn_make(psn - 1);
		wqe->started = true;
	}
	return psn - first;
}

TEST(sq_find__finds_the_request_of_each_psn)
{
	const uint32_t first = PSN_MASK - 20;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct sq sq;
	uint32_t psns;

	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_wr = 64}), 0);
	sq.cons = sq.next = sq.prod = UINT32_MAX - 10;
	assert_int_equal(sq_find(&sq, psn_make(first)), sq.cons);
	psns = start_requests(&sq, 32, first);
	assert_int_equal(post(&sq, &wr), 0); /* not started */
	for (uint32_t n = 0, i = 1, left = 1; n < psns; n++) {
		assert_int_equal(sq_find(&sq, psn_make(first + n)), sq.cons + i);
		if (--left > 0)
			continue;
		i += i % 4 == 3 ? 2 : 1;
		left = i % 4;
	}
	assert_int_equal(sq_find(&sq, psn_make(first + psns)), sq.cons + 32);
	sq_fini(&sq);
}

/* A peer chooses which packets are sent again, so the time must not grow with the queue. */
TEST(sq_find__looks_at_few_requests)
{
	const uint32_t count = 1024, first = 5;
	struct sq sq;
	uint32_t psns, looked = 0;

	assert_int_equal(sq_init(&sq, &(struct sq_attr){.max_wr = count}), 0);
	psns = start_requests(&sq, count, first);
	for (uint32_t i = 0; i + 1 < count; i++) {
		struct send_wqe *wqe = sq_at(&sq, i);

		/* If it is looked at, it now seems to contain the PSN. */
		wqe->started = false;
		looked += sq_find(&sq, psn_make(first + psns - 1)) != count - 1;
		wqe->started = true;
	}
	assert_true(looked > 0 && looked <= 10);
	sq_fini(&sq);
}

/* A request that a user has asked to fail: programs cannot post one. */
TEST(sq_post_failure__is_a_request_of_its_own)
{
	struct ibv_send_wr wr = {.opcode = SQ_WR_FAILS};
	const struct send_wqe *wqe;
	struct sq sq;

	assert_int_equal(sq_init(&sq, &attr), 0);
	assert_int_equal(post(&sq, &wr), EINVAL);
	for (uint32_t i = 0; i < sq.attr.max_wr; i++)
		assert_int_equal(sq_post_failure(&sq,
						 &(struct ibv_send_wr){.wr_id = 40 + i,
								       .opcode = IBV_WR_RDMA_READ},
						 6),
				 0);
	assert_int_equal(sq_post_failure(&sq, &wr, 6), ENOMEM);
	wqe = sq_at(&sq, 1);
	assert_int_equal(wqe->wr_id, 41);
	assert_int_equal(wqe->rkey, 6);
	assert_int_equal(sq_posted_opcode(wqe), IBV_WR_RDMA_READ);
	assert_int_equal(wqe->num_sge, 0);
	assert_true(sq_is_local((enum ibv_wr_opcode)wqe->opcode));
	assert_true(wqe->flags & IBV_SEND_SIGNALED);
	sq_pop(&sq);
	assert_int_equal(sq_post_failure(&sq, &wr, 6), 0);
	sq_fini(&sq);
}
