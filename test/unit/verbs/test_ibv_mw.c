/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: bound, used by a peer, and taken back in each of the ways (ibv_alloc_mw(3)). */
#include <stdlib.h>
#include <string.h>

#include "talk.h"
#include "test.h"

static struct talk talk;

static int set_up(void **state)
{
	return talk_set_up(&talk, state);
}

static int tear_down(void **state)
{
	return talk_tear_down(&talk, state);
}

TEST_FIXTURE(set_up, tear_down);

static struct ibv_mw *window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(talk.b.pd, type);

	assert_non_null(mw);
	return mw;
}

/* The target's first 100 bytes. */
static struct ibv_mw_bind_info part(unsigned int access)
{
	return (struct ibv_mw_bind_info){.mr = talk.target_mr,
					 .addr = (uintptr_t)talk.target,
					 .length = 100,
					 .mw_access_flags = access};
}

static void bind_type_1(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = {.wr_id = 7, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
	struct ibv_wc wc;

	assert_int_equal(ibv_bind_mw(talk.b.qp, mw, &bind), 0);
	wc = talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
}

static void post_bind(struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = {.wr_id = 8,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED,
				 .bind_mw = {.mw = mw, .rkey = rkey, .bind_info = info}};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(talk.b.qp, &wr, &bad), 0);
}

/* Bind a window of type 2; returns its key. */
static uint32_t bind_type_2(struct ibv_mw *mw, unsigned int access)
{
	const uint32_t rkey = ibv_inc_rkey(mw->rkey);

	post_bind(mw, rkey, part(access));
	assert_int_equal(talk_wait(talk.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	return rkey;
}

static void post_key(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 9,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = rkey};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* A's WRITE or READ of the first bytes, by this key. */
static void reach(enum ibv_wr_opcode opcode, uint32_t rkey, uint32_t length,
		  enum ibv_wc_status status)
{
	struct ibv_sge sge = talk_source(&talk, 0, length);
	struct ibv_mr *own = talk.target_mr, by_key = {.rkey = rkey};

	talk.target_mr = &by_key;
	talk_post(&talk, opcode, &sge, 1);
	talk.target_mr = own;
	talk_wait(talk.a.cq, status);
}

static void reach_no_more(struct ibv_context *context, uint32_t rkey)
{
	reach(IBV_WR_RDMA_WRITE, rkey, 8, IBV_WC_REM_ACCESS_ERR);
	talk_event(context, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(alloc_mw__fills_the_public_struct)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);

	assert_ptr_equal(mw->context, *state);
	assert_ptr_equal(mw->pd, talk.b.pd);
	assert_int_equal(mw->type, IBV_MW_TYPE_2);
	assert_int_not_equal(mw->rkey, 0);
	assert_int_equal(ibv_dealloc_pd(talk.b.pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	errno = 0;
	assert_null(ibv_alloc_mw(talk.b.pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
}

/* Allocate as many windows as the device reports. */
TEST(alloc_mw__no_more_than_there_are)
{
	struct ibv_device_attr attr;
	struct ibv_mw **mws;

	assert_int_equal(ibv_query_device(*state, &attr), 0);
	mws = calloc((size_t)attr.max_mw, sizeof(mws[0]));
	assert_non_null(mws);
	for (int i = 0; i < attr.max_mw; i++)
		mws[i] = window(i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	errno = 0;
	assert_null(ibv_alloc_mw(talk.b.pd, IBV_MW_TYPE_1));
	assert_int_equal(errno, ENOMEM);
	for (int i = 0; i < attr.max_mw; i++)
		assert_int_equal(ibv_dealloc_mw(mws[i]), 0);
	free(mws);
}

TEST(bind_mw__gives_the_key_at_once)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	const uint32_t before = mw->rkey;

	bind_type_1(mw, part(IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(mw->rkey, ibv_inc_rkey(before));
	reach(IBV_WR_RDMA_WRITE, mw->rkey, 100, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, talk.source, 100);
	assert_int_equal(ibv_dereg_mr(talk.target_mr), EBUSY);
	/* An access that the window does not grant fails. */
	reach(IBV_WR_RDMA_READ, mw->rkey, 8, IBV_WC_REM_ACCESS_ERR);
	talk_event(*state, IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(bind_mw__what_is_wrong_is_told_at_once)
{
	struct ibv_context *context = *state;
	struct ibv_mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2);
	struct ibv_mr *null = ibv_alloc_null_mr(talk.b.pd);
	struct ibv_mw_bind bind = {.bind_info = part(IBV_ACCESS_REMOTE_READ)};
	const struct ibv_mw_bind good = bind;
	const uint32_t rkey = one->rkey;

	(void)context;
	assert_int_equal(ibv_bind_mw(talk.b.qp, two, &bind), EINVAL);
	bind.send_flags = IBV_SEND_INLINE;
	assert_int_equal(ibv_bind_mw(talk.b.qp, one, &bind), EINVAL);
	bind = good;
	bind.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	assert_int_equal(ibv_bind_mw(talk.b.qp, one, &bind), EINVAL);
	bind = good;
	bind.bind_info.mr = null;
	assert_int_equal(ibv_bind_mw(talk.b.qp, one, &bind), EINVAL);
	bind = good;
	bind.bind_info.mr = NULL;
	assert_int_equal(ibv_bind_mw(talk.b.qp, one, &bind), EINVAL);
	bind = good;
	/* The region is in A's domain; verbs.h demands EPERM for that. */
	bind.bind_info.mr = talk.source_mr;
	assert_int_equal(ibv_bind_mw(talk.b.qp, one, &bind), EPERM);
	assert_int_equal(one->rkey, rkey);
	assert_int_equal(ibv_dereg_mr(null), 0);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
}

TEST(bind_mw__what_is_wrong_in_its_turn_completes_so)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = 3, .bind_info = part(IBV_ACCESS_REMOTE_READ)};
	struct ibv_wc wc;

	bind.bind_info.length = TALK_BYTES + 1;
	assert_int_equal(ibv_bind_mw(talk.b.qp, mw, &bind), 0);
	wc = talk_wait(talk.b.cq, IBV_WC_MW_BIND_ERR);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* Window and queue pair, or window and region, of different domains: adapters tell in the engine
 * poll of it. */
TEST(bind_mw__of_two_domains_completes_so)
{
	struct ibv_mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = {.wr_id = 3, .bind_info = part(IBV_ACCESS_REMOTE_READ)};
	struct ibv_mw_bind_info foreign = part(IBV_ACCESS_REMOTE_READ);

	assert_int_equal(ibv_bind_mw(talk.a.qp, one, &bind), 0);
	assert_int_equal(talk_wait(talk.a.cq, IBV_WC_MW_BIND_ERR).wr_id, 3);
	foreign.mr = talk.source_mr;
	foreign.addr = (uintptr_t)talk.source;
	post_bind(two, ibv_inc_rkey(two->rkey), foreign);
	assert_int_equal(talk_wait(talk.b.cq, IBV_WC_MW_BIND_ERR).wr_id, 8);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
}

/* ibv_bind_mw(3): the service is RC, UC or XRC_SEND. */
static void expect_bind_on(enum ibv_qp_type type, int rc)
{
	struct ibv_qp_init_attr init = {
		.send_cq = talk.b.cq,
		.recv_cq = talk.b.cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = type,
	};
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
				   .bind_info = part(IBV_ACCESS_REMOTE_READ)};
	struct ibv_qp *qp = ibv_create_qp(talk.b.pd, &init);
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	const uint32_t rkey = mw->rkey;

	assert_non_null(qp);
	assert_int_equal(fake_connect(qp, 1, FAKE_GID_V4, IBV_QPS_RTS), 0);
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), rc);
	if (rc == 0)
		assert_int_equal(talk_wait(talk.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	assert_int_equal(mw->rkey, rc == 0 ? ibv_inc_rkey(rkey) : rkey);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(bind_mw__on_every_connected_service)
{
	expect_bind_on(IBV_QPT_RC, 0);
	expect_bind_on(IBV_QPT_UC, 0);
	expect_bind_on(IBV_QPT_XRC_SEND, 0);
	expect_bind_on(IBV_QPT_UD, EINVAL);
}

/* ibv_inc_rkey(3): the tag goes up and around, the index stays. */
TEST(inc_rkey__changes_the_tag)
{
	assert_int_equal(ibv_inc_rkey(0x12345600), 0x12345601);
	assert_int_equal(ibv_inc_rkey(0x123456ff), 0x12345600);
	assert_int_equal(ibv_inc_rkey(0xffffffff), 0xffffff00);
}

/* Bind once more often than the tag has values; each key is valid only in its turn. */
TEST(bind_mw__the_tag_goes_around)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	const uint32_t first = mw->rkey;

	for (int i = 0; i < 257; i++)
		bind_type_1(mw, part(IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(mw->rkey, ibv_inc_rkey(first));
	reach(IBV_WR_RDMA_WRITE, mw->rkey, 8, IBV_WC_SUCCESS);
	reach_no_more(*state, first);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(bind_mw__of_length_0_takes_it_back)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_1);
	struct ibv_mw_bind_info none = part(0);

	bind_type_1(mw, part(IBV_ACCESS_REMOTE_WRITE));
	reach(IBV_WR_RDMA_WRITE, mw->rkey, 8, IBV_WC_SUCCESS);
	none.length = 0;
	bind_type_1(mw, none);
	/* The region is free again. */
	assert_int_equal(ibv_rereg_mr(talk.target_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE),
			 0);
	reach_no_more(*state, mw->rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(type_2__is_used_and_invalidated_here)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	uint32_t rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

	reach(IBV_WR_RDMA_WRITE, rkey, 100, IBV_WC_SUCCESS);
	reach(IBV_WR_RDMA_READ, rkey, 100, IBV_WC_SUCCESS);
	post_key(talk.b.qp, IBV_WR_LOCAL_INV, rkey);
	assert_int_equal(talk_wait(talk.b.cq, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
	/* Bind it again under the next key. */
	post_bind(mw, ibv_inc_rkey(rkey), part(IBV_ACCESS_REMOTE_WRITE));
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	reach(IBV_WR_RDMA_WRITE, ibv_inc_rkey(rkey), 100, IBV_WC_SUCCESS);
	reach_no_more(*state, rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* ConnectX and irdma take the lowest byte of the key that is asked for, and programs count on it.
 */
TEST(type_2__the_lowest_byte_of_the_key_is_the_programs)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	const uint32_t before = mw->rkey;
	/* The byte differs from those of the keys before and after it. */
	const uint32_t rkey = before ^ 0x42;

	post_bind(mw, rkey & 0xff, part(IBV_ACCESS_REMOTE_WRITE));
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(mw->rkey, rkey);
	reach(IBV_WR_RDMA_WRITE, rkey, 100, IBV_WC_SUCCESS);
	post_key(talk.b.qp, IBV_WR_LOCAL_INV, rkey);
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	post_bind(mw, ~before, part(IBV_ACCESS_REMOTE_WRITE));
	talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(mw->rkey, before ^ 0xff);
	reach(IBV_WR_RDMA_WRITE, mw->rkey, 100, IBV_WC_SUCCESS);
	reach_no_more(*state, rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(type_2__is_invalidated_by_the_peer)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	const uint32_t rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_wc wc;

	reach(IBV_WR_RDMA_WRITE, rkey, 100, IBV_WC_SUCCESS);
	talk_recv(&talk, NULL, 0);
	post_key(talk.a.qp, IBV_WR_SEND_WITH_INV, rkey);
	talk_wait(talk.a.cq, IBV_WC_SUCCESS);
	wc = talk_wait(talk.b.cq, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	reach_no_more(*state, rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* A call that is refused because of a window changes neither the region nor the window
 * (ibv_dereg_mr(3)). */
TEST(region__stays_as_it_was_while_a_window_is_bound)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	const uint32_t rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	const struct ibv_mr before = *talk.target_mr;

	assert_int_equal(ibv_dereg_mr(talk.target_mr), EBUSY);
	errno = 0;
	assert_int_equal(ibv_rereg_mr(talk.target_mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      talk.target, 64, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EBUSY);
	assert_memory_equal(talk.target_mr, &before, sizeof(before));
	assert_int_equal(ibv_dealloc_pd(talk.b.pd), EBUSY);
	reach(IBV_WR_RDMA_WRITE, rkey, 100, IBV_WC_SUCCESS);
	reach(IBV_WR_RDMA_READ, rkey, 100, IBV_WC_SUCCESS);
	reach(IBV_WR_RDMA_WRITE, talk.target_mr->rkey, TALK_BYTES, IBV_WC_SUCCESS);
	assert_memory_equal(talk.target, talk.source, TALK_BYTES);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_rereg_mr(talk.target_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE),
			 0);
}

/* Several at once; the region is free when the last is gone. */
TEST(region__counts_its_windows)
{
	struct ibv_mw *one = window(IBV_MW_TYPE_1), *two = window(IBV_MW_TYPE_2);

	bind_type_1(one, part(IBV_ACCESS_REMOTE_WRITE));
	bind_type_2(two, IBV_ACCESS_REMOTE_READ);
	/* Bound once more is bound once. */
	bind_type_1(one, part(IBV_ACCESS_REMOTE_READ));
	assert_int_equal(ibv_dealloc_mw(two), 0);
	assert_int_equal(ibv_dereg_mr(talk.target_mr), EBUSY);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dereg_mr(talk.target_mr), 0);
	talk.target_mr = NULL;
}

/* A binding that cannot be made: the first completes so, what stood behind it is flushed. */
static void expect_bind_error(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	post_bind(mw, ibv_inc_rkey(mw->rkey), info);
	assert_int_equal(talk_wait(talk.b.cq, IBV_WC_MW_BIND_ERR).wr_id, 8);
}

TEST(type_2__the_null_region_has_no_windows)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_mr *null = ibv_alloc_null_mr(talk.b.pd);
	struct ibv_mw_bind_info info = part(IBV_ACCESS_REMOTE_READ);

	info.mr = null;
	expect_bind_error(mw, info);
	assert_int_equal(ibv_dereg_mr(null), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(type_2__the_region_must_have_mw_bind)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_mr *mr = ibv_reg_mr(talk.b.pd, talk.target, TALK_BYTES, access);
	struct ibv_mw_bind_info info = part(IBV_ACCESS_REMOTE_WRITE);

	info.mr = mr;
	expect_bind_error(mw, info);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* ibv_bind_mw(3): remote write and atomic access requires local write access to the region. */
static void expect_local_write_needed(unsigned int access)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_mr *mr = ibv_reg_mr(talk.b.pd, talk.target, TALK_BYTES, IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind_info info = part(access);

	info.mr = mr;
	expect_bind_error(mw, info);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(type_2__remote_write_needs_local_write)
{
	expect_local_write_needed(IBV_ACCESS_REMOTE_WRITE);
}

TEST(type_2__remote_atomic_needs_local_write)
{
	expect_local_write_needed(IBV_ACCESS_REMOTE_ATOMIC);
}

TEST(type_2__is_not_bound_twice)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	const uint32_t rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_WRITE);

	post_bind(mw, ibv_inc_rkey(rkey), part(IBV_ACCESS_REMOTE_WRITE));
	talk_wait(talk.b.cq, IBV_WC_MW_BIND_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

TEST(type_2__takes_atomics)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	const uint32_t rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_ATOMIC);
	uint64_t value;

	reach(IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, 8, IBV_WC_SUCCESS);
	memcpy(&value, talk.target, sizeof(value));
	assert_int_equal(value, 1);
	reach_no_more(*state, rkey); /* it grants no WRITE */
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* A type 2B window belongs to one queue pair: a peer of another one in the same domain has no
 * access. */
TEST(type_2__serves_one_queue_pair)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_qp_init_attr init = {
		.send_cq = talk.b.cq,
		.recv_cq = talk.b.cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *own = talk.b.qp, *other = ibv_create_qp(talk.b.pd, &init);
	uint32_t rkey;

	assert_non_null(other);
	assert_int_equal(fake_connect(other, talk.a.qp->qp_num, FAKE_GID_V4, IBV_QPS_RTS), 0);
	/* Bound by the other, used by B's own peer. */
	talk.b.qp = other;
	rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_WRITE);
	talk.b.qp = own;
	reach_no_more(*state, rkey);
	assert_int_equal(ibv_destroy_qp(other), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* IBV_WR_SEND_WITH_INV of what is no bound window: an error here, of which the peer hears nothing.
 */
TEST(type_2__cannot_be_invalidated_unbound)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct ibv_wc wc;

	talk_recv(&talk, NULL, 0);
	post_key(talk.a.qp, IBV_WR_SEND_WITH_INV, mw->rkey);
	talk_wait(talk.b.cq, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(ibv_poll_cq(talk.a.cq, 1, &wc), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* Neither a peer nor the own queue pair may invalidate a region's key. */
TEST(region__is_not_invalidated)
{
	post_key(talk.b.qp, IBV_WR_LOCAL_INV, talk.target_mr->rkey);
	talk_wait(talk.b.cq, IBV_WC_MW_BIND_ERR);
	assert_int_equal(ibv_dereg_mr(talk.target_mr), 0);
	talk.target_mr = NULL;
}

TEST(type_2__ends_with_its_deallocation)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	const uint32_t rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_WRITE);

	reach(IBV_WR_RDMA_WRITE, rkey, 100, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(talk.target_mr), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	reach_no_more(*state, rkey);
	assert_int_equal(ibv_dereg_mr(talk.target_mr), 0);
	talk.target_mr = NULL;
}

TEST(type_2__zero_based)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	const uint32_t rkey = bind_type_2(mw, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	uint8_t *target = talk.target;

	talk.target = (uint8_t *)92; /* the offset that A writes to */
	reach(IBV_WR_RDMA_WRITE, rkey, 8, IBV_WC_SUCCESS);
	talk.target = target;
	assert_memory_equal(target + 92, talk.source, 8);
	assert_int_equal(target[91], 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* The window goes while its binding waits for its turn. */
TEST(type_2__gone_before_its_turn)
{
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);

	fake.carries = false;
	post_bind(mw, ibv_inc_rkey(mw->rkey), part(IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	fake.carries = true;
	talk_wait(talk.b.cq, IBV_WC_MW_BIND_ERR);
}
