/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/cm_request.c: requests that come again, and of queue pairs and ids that are in
 * use or in timewait. */
#include <string.h>

#include "cm_fixture.h"

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

TEST(request__that_comes_again_draws_the_same_answer)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	const struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_accept(rig.conn, &accept, rig.now_ns), 0);
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 2);
	assert_memory_equal(rig.mads[0].bytes, rig.mads[1].bytes, MAD_LEN);
	assert_int_equal(rig_sent(&rig).message, CM_REP);
	rig_no_event(&rig);
	assert_int_equal(cm_conn_count(rig.cm), 1);
	assert_int_equal(cm_stats(rig.cm)->unexpected, 0);
	assert_int_equal(cm_stats(rig.cm)->sent, 1);
	assert_int_equal(cm_stats(rig.cm)->resent, 1);
}

TEST(request__that_was_rejected_is_rejected_again)
{
	const struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_reject(rig.conn, CM_REJ_CONSUMER_DEFINED, "no", 2, rig.now_ns), 0);
	cm_conn_destroy(rig.conn, rig.now_ns);
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 2);
	assert_memory_equal(rig.mads[0].bytes, rig.mads[1].bytes, MAD_LEN);
	rig_no_event(&rig);
	while (cm_deadline_ns(rig.cm) != UINT64_MAX)
		rig_expire(&rig);
	assert_int_equal(cm_conn_count(rig.cm), 0);
}

/* An id is in use until its connection is over. */
TEST(request__another_with_the_same_id_is_refused)
{
	struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_REP_SENT);
	req.req.qpn++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_DUPLICATE_LOCAL_COMM_ID);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REP_SENT);
	assert_int_equal(cm_stats(rig.cm)->unexpected, 1);
	req = rig_req();
	req.tid++;
	rig_receive(&rig, &req);
	assert_int_equal(rig.sent, 3);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_DUPLICATE_LOCAL_COMM_ID);
	/* Another host may use the same id. */
	memcpy(req.req.primary.local_gid, rig.other.remote, 16);
	rig_receive_from(&rig, &rig.other, &req);
	rig_event(&rig, CM_EVENT_REQ);
}

/* Both sides connect at once. This makes two connections, which do not affect each other. */
TEST(request__while_we_ask_the_same_peer)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	struct cm_mad mad = rig_req();
	struct cm_conn *ours;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	ours = rig.conn;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REQ);
	assert_ptr_not_equal(rig.event.conn, ours);
	assert_int_equal(cm_accept(rig.event.conn, &accept, rig.now_ns), 0);
	mad = rig_message(&rig, CM_REP);
	mad.local_id = RIG_PEER_ID + 1;
	mad.rep.qpn = RIG_PEER_QPN + 1;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REP);
	assert_ptr_equal(rig.event.conn, ours);
	assert_int_equal(cm_conn_state(ours), CM_STATE_REP_RCVD);
	assert_int_equal(cm_conn_count(rig.cm), 2);
}

/* The peer's host has started anew, and uses the queue pair again. */
TEST(request__of_a_connected_queue_pair_ends_the_old_connection)
{
	struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	req.local_id = RIG_PEER_ID + 1;
	rig_receive(&rig, &req);
	rig_no_event(&rig);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_DREQ_SENT);
	assert_int_equal(rig_sent(&rig).message, CM_DREQ);
	assert_int_equal(rig_sent(&rig).remote_id, RIG_PEER_ID);
	assert_int_equal(rig_sent(&rig).dreq_qpn, RIG_PEER_QPN);
	rig.sent--;
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(rig_sent(&rig).remote_id, RIG_PEER_ID + 1);
}

/* Our timewait may last longer than the peer's, so the peer may use its queue pair again while we
 * are still in it. Linux accepts this, too. */
TEST(request__of_a_queue_pair_in_timewait)
{
	struct cm_mad req = rig_req();
	struct cm_conn *old;

	rig_bring(&rig, CM_STATE_DREQ_RCVD);
	old = rig.conn;
	req.local_id = RIG_PEER_ID + 1;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(cm_disconnect(old, NULL, 0, rig.now_ns), 0);
	assert_int_equal(cm_conn_state(old), CM_STATE_TIMEWAIT);
	req.local_id++;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_conn_state(old), CM_STATE_TIMEWAIT);
	/* The number belongs to the new connection, also after the old one's end. */
	rig_expire(&rig);
	rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
	cm_conn_destroy(old, rig.now_ns);
	req.local_id++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
}

/* Only the host that has the connection can end it by such a REQ. */
TEST(request__of_another_host_ends_no_connection)
{
	struct cm_mad req = rig_req();

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	req.local_id = RIG_PEER_ID + 1;
	memcpy(req.req.primary.local_gid, rig.other.remote, 16);
	rig_receive_from(&rig, &rig.other, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_ESTABLISHED);
}

/* An id is in use with all of our addresses. The REQ is not the one that was answered. */
TEST(request__of_the_same_id_to_another_of_our_addresses)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	struct gsi_address from = rig.peer;
	struct cm_mad req = rig_req();
	unsigned int sent;

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_accept(rig.conn, &accept, rig.now_ns), 0);
	sent = rig.sent;
	from.local[15]++;
	memcpy(req.req.primary.remote_gid, from.local, 16);
	rig_receive_from(&rig, &from, &req);
	assert_int_equal(rig.sent, sent + 1);
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_DUPLICATE_LOCAL_COMM_ID);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REP_SENT);
}

/* The peer gives up and asks again with the same id, before the program has read the first request.
 * The end of the first one leaves the second one as it is. */
TEST(request__again_after_the_peer_has_given_up)
{
	const struct cm_mad req = rig_req();
	struct cm_conn *first;
	struct cm_mad rej;

	rig_bring(&rig, CM_STATE_MRA_REQ_SENT);
	first = rig.conn;
	rej = rig_message(&rig, CM_REJ);
	rig_receive(&rig, &rej);
	rig_event(&rig, CM_EVENT_REJECTED);
	assert_int_equal(cm_conn_state(first), CM_STATE_IDLE);
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	cm_conn_destroy(first, rig.now_ns);
	rig_receive(&rig, &req);
	rig_no_event(&rig);
	assert_int_equal(cm_conn_count(rig.cm), 1);
	assert_int_equal(rig_sent(&rig).message, CM_MRA);
}

/* A REQ that was delayed in the network comes when its connection is over. */
TEST(request__that_comes_again_in_timewait)
{
	const struct cm_mad req = rig_req();
	struct cm_mad dreq;
	uint64_t deadline_ns;

	rig_bring(&rig, CM_STATE_REP_SENT);
	dreq = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &dreq);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	deadline_ns = cm_deadline_ns(rig.cm);
	rig.now_ns++;
	rig_receive(&rig, &req);
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(rig_sent(&rig).rej.about, CM_ABOUT_REQ);
	assert_int_equal(rig_sent(&rig).remote_id, RIG_PEER_ID);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
	assert_true(cm_deadline_ns(rig.cm) == deadline_ns);
	rig_no_event(&rig);
}

/* Bring the passive side to timewait; the REQ has this ACK timeout. */
static void wait_after(uint8_t ack_timeout)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	struct cm_mad mad = rig_req();

	mad.req.primary.ack_timeout = ack_timeout;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REQ);
	rig.conn = rig.event.conn;
	assert_int_equal(cm_accept(rig.conn, &accept, rig.now_ns), 0);
	rig.our_id = rig_sent(&rig).local_id;
	mad = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
}

/* 12.9: twice a packet's life and the ACK delay, which is what the REQ calls the ACK timeout. */
TEST(request__timewait_lasts_as_long_as_its_ack_timeout)
{
	wait_after(19);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(19));
}

TEST(request__timewait_is_bounded)
{
	wait_after(31);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(22));
}

/* Receive a REQ with these two times, and reject it. */
static void reject_after(uint8_t remote_response_timeout, uint8_t ack_timeout)
{
	struct cm_mad req = rig_req();

	req.req.remote_response_timeout = remote_response_timeout;
	req.req.primary.ack_timeout = ack_timeout;
	rig_receive(&rig, &req);
	rig_event(&rig, CM_EVENT_REQ);
	assert_int_equal(cm_reject(rig.event.conn, CM_REJ_CONSUMER_DEFINED, NULL, 0, rig.now_ns),
			 0);
}

/* A REJ is kept for twice the time after which the peer repeats its REQ: our response time, and a
 * packet's life there and back. */
TEST(request__rej_is_kept_for_a_peer_that_asks_again)
{
	reject_after(18, 17);
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + 2 * (cm_time_ns(18) + 2 * cm_time_ns(16)));
}

TEST(request__rej_of_a_peer_without_an_ack_timeout)
{
	reject_after(18, 0);
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + 2 * (cm_time_ns(18) + 2 * cm_time_ns(0)));
}

TEST(request__rej_is_kept_for_a_bounded_time)
{
	reject_after(31, 31);
	assert_true(cm_deadline_ns(rig.cm) ==
		    rig.now_ns + 2 * (cm_time_ns(22) + 2 * cm_time_ns(22)));
}
