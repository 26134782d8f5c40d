/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting, and when the engine hears of it. */
#include "fake_provider.h"
#include "test.h"

TEST_FIXTURE(fake_setup, fake_close);

TEST(post_send__kicks)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad = NULL;
	unsigned int kicks;

	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTS), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_send(pair.qp, &wr, &bad), 0);
	assert_int_equal(fake.kicks, kicks + 1);
	fake_pair_destroy(&pair);
}

TEST(post_send__kicks_for_what_stands_before_a_bad_request)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_send_wr wrong = {.opcode = IBV_WR_BIND_MW};
	struct ibv_send_wr good = {.opcode = IBV_WR_SEND, .next = &wrong};
	struct ibv_send_wr *bad = NULL;
	unsigned int kicks;

	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_RTS), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_send(pair.qp, &good, &bad), EINVAL);
	assert_ptr_equal(bad, &wrong);
	assert_int_equal(fake.kicks, kicks + 1);
	fake_pair_destroy(&pair);
}

TEST(post_send__does_not_kick_for_nothing)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad = NULL;
	const unsigned int kicks = fake.kicks;

	assert_int_equal(ibv_post_send(pair.qp, &wr, &bad), EINVAL); /* RESET */
	assert_ptr_equal(bad, &wr);
	assert_int_equal(fake.kicks, kicks);
	fake_pair_destroy(&pair);
}

TEST(post_recv__kicks_in_error_only)
{
	struct fake_pair pair = fake_pair_create(*state);
	struct ibv_recv_wr wr = {.wr_id = 5}, *bad = NULL;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;
	unsigned int kicks;

	assert_int_equal(fake_connect(pair.qp, 17, FAKE_GID_V4, IBV_QPS_INIT), 0);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_recv(pair.qp, &wr, &bad), 0);
	assert_int_equal(fake.kicks, kicks);
	fake.carries = true;
	assert_int_equal(ibv_modify_qp(pair.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_poll_cq(pair.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	kicks = fake.kicks;
	assert_int_equal(ibv_post_recv(pair.qp, &wr, &bad), 0);
	assert_int_equal(fake.kicks, kicks + 1);
	assert_int_equal(ibv_poll_cq(pair.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	fake_pair_destroy(&pair);
}
