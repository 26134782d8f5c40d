/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of timers over a port that knows which packets its other end has taken (lib/qp/run.c,
 * transport/backlog.h). */
#include <stdint.h>

#include "qp_rig.h"
#include "test.h"
#include "transport/backlog.h"
#include "transport/recovery.h"

static enum sink_knows knows;
static struct sink_taken taken;
static unsigned int asked;

static enum sink_knows ask(struct packet_sink *sink, const struct path *path, uint32_t qpn,
			   struct sink_taken *counts)
{
	assert_ptr_equal(sink, &A->catcher.sink);
	assert_memory_equal(path->hdr, A->path.hdr, 6);
	assert_int_equal(qpn, A->attr.dest_qp_num);
	asked++;
	*counts = taken;
	return knows;
}

static int set_up(void **state)
{
	const int rc = qp_rig_set_up(state);

	A->catcher.sink.ask = ask;
	knows = SINK_KNOWS_TAKEN;
	taken = (struct sink_taken){0};
	asked = 0;
	return rc;
}

TEST_FIXTURE(set_up, qp_rig_tear_down);

/* Send packets that lie in the port. */
static void send_unread(void)
{
	while (end_run(A, 64))
		;
	taken.given += A->catcher.count;
}

TEST(qp_timeout__a_packet_that_was_not_taken_uses_up_no_retry)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	send_unread();
	for (int i = 0; i < 10 * RETRIES; i++) {
		assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + TIMEOUT_NS);
		end_time_out(A);
		send_unread();
	}
	/* Nothing was sent again. */
	assert_int_equal(A->catcher.count, 1);
	assert_int_equal(rig_counter(COUNTER_ack_timer_restarts), 10 * RETRIES);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
	/* At last the peer takes it. */
	taken.taken = taken.given;
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
}

TEST(qp_timeout__a_packet_that_was_taken_and_not_answered_uses_up_retries)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	for (int i = 0; i <= RETRIES; i++) {
		assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
		end_run(A, 9);
		assert_int_equal(A->catcher.count, 1);
		catcher_clear(&A->catcher);
		end_time_out(A);
	}
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
	end_expect_error(A);
	assert_int_equal(rig_counter(COUNTER_ack_timer_restarts), 0);
}

/* The process at the other end is stopped, and never continues. */
TEST(qp_timeout__a_peer_that_takes_nothing_is_given_up)
{
	uint64_t begin_ns;

	rig_connect();
	begin_ns = rig.now_ns;
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	while (qp_state(A->qp) == IBV_QPS_RTS) {
		send_unread();
		catcher_clear(&A->catcher);
		end_time_out(A);
	}
	end_sent(A, 1, IBV_WC_RETRY_EXC_ERR);
	assert_in_range(rig.now_ns - begin_ns, BACKLOG_MAX_NS,
			BACKLOG_MAX_NS + (RETRIES + 2) * TIMEOUT_NS);
}

TEST(qp_timeout__a_full_port_that_knows_uses_up_no_retry)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	knows = SINK_KNOWS_FULL;
	for (int i = 0; i < 2 * RETRIES; i++)
		end_time_out(A);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
	knows = SINK_KNOWS_NOTHING;
	end_time_out(A);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 1);
}

/* The retransmission waits for room behind packets of other queue pairs, all of which were taken.
 */
TEST(qp_timeout__a_packet_that_is_owed_uses_up_no_retry)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	end_time_out(A);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 1);
	for (int i = 0; i < 2 * RETRIES; i++)
		end_time_out(A);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 1);
	end_run(A, 9);
	assert_int_equal(A->catcher.count, 2);
	end_time_out(A);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 2);
}

/* The port has dropped the packet, because the peer's process takes none. */
TEST(qp_timeout__a_packet_that_the_port_dropped_is_sent_again_and_uses_up_no_retry)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	for (int i = 0; i < 5 * RETRIES; i++) {
		end_run(A, 9);
		assert_int_equal(A->catcher.count, 1);
		catcher_clear(&A->catcher);
		taken.dropped++;
		end_time_out(A);
	}
	assert_int_equal(qp_state(A->qp), IBV_QPS_RTS);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_timeout__a_receiver_that_is_not_ready_is_not_asked_about)
{
	rig_connect();
	taken.given = 1;
	assert_int_equal(end_send(A, 1, IBV_WR_SEND, 0, 8, 0), 0);
	rig_run();
	assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns + RNR_NS);
	end_time_out(A);
	assert_int_equal(asked, 0);
	assert_int_equal(end_receive(B, 10, 0, 8), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_received(B, 10, IBV_WC_SUCCESS);
}

/* What a connection knew does not limit the next one. */
TEST(qp_modify__a_new_connection_has_a_new_limit)
{
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	send_unread();
	end_time_out(A);
	rig.now_ns += 2 * BACKLOG_MAX_NS;
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	catcher_clear(&A->catcher);
	rig_connect();
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	send_unread();
	for (int i = 0; i < 2 * RETRIES; i++)
		end_time_out(A);
	assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
}
