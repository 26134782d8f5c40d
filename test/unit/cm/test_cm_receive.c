/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/cm_receive.c: a connection hears its peer only, and what is nobody's is answered
 * or dropped. */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "cm_fixture.h"
#include "wire/mad.h"

TEST_FIXTURE(cm_fixture_set_up, cm_fixture_tear_down);

/* Check that a message is ignored: it changes no state, and causes no event and no answer. */
static void assert_ignored(const struct gsi_address *from, const struct cm_mad *mad)
{
	const enum cm_state before = cm_conn_state(rig.conn);
	const uint64_t deadline_ns = cm_deadline_ns(rig.cm);
	const unsigned int sent = rig.sent;

	rig_receive_from(&rig, from, mad);
	assert_int_equal(cm_conn_state(rig.conn), before);
	assert_int_equal(rig.sent, sent);
	assert_true(cm_deadline_ns(rig.cm) == deadline_ns);
	rig_no_event(&rig);
}

/* Check that a message is ignored from another host, to another of our addresses, in another VLAN,
 * and with another id of either side. */
static void assert_ignored_of_others(enum cm_message message, uint8_t about)
{
	struct gsi_address from = rig.peer;
	struct cm_mad mad = rig_message(&rig, message);

	if (message == CM_MRA)
		mad.mra.about = about;
	if (message == CM_REJ)
		mad.rej.about = about;
	assert_ignored(&rig.other, &mad);
	from.local[15]++;
	assert_ignored(&from, &mad);
	from = rig.peer;
	from.vlan_id = 5;
	assert_ignored(&from, &mad);
	/* A connection that has sent a REQ does not know its peer's id yet. */
	if (cm_conn_state(rig.conn) == CM_STATE_REQ_SENT)
		return;
	mad.local_id++;
	assert_ignored(&rig.peer, &mad);
}

TEST(receive__others_change_nothing)
{
	rig_bring(&rig, CM_STATE_REQ_SENT);
	assert_ignored_of_others(CM_REP, 0);
	assert_ignored_of_others(CM_MRA, CM_ABOUT_REQ);
	assert_ignored_of_others(CM_REJ, CM_ABOUT_REQ);
	cm_conn_destroy(rig.conn, rig.now_ns);
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	assert_ignored_of_others(CM_REP, 0);
	assert_ignored_of_others(CM_DREQ, 0);
	assert_ignored_of_others(CM_REJ, CM_ABOUT_OTHER);
	assert_ignored_of_others(CM_REJ, CM_ABOUT_REQ);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_ignored_of_others(CM_DREP, 0);
}

TEST(receive__others_change_nothing_of_a_passive_side)
{
	rig_bring(&rig, CM_STATE_REP_SENT);
	assert_ignored_of_others(CM_RTU, 0);
	assert_ignored_of_others(CM_DREQ, 0);
	assert_ignored_of_others(CM_MRA, CM_ABOUT_REP);
	assert_ignored_of_others(CM_REJ, CM_ABOUT_OTHER);
}

TEST(receive__others_answer_no_resolution)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_SIDR_REQ_SENT);
	mad = rig_message(&rig, CM_SIDR_REP);
	assert_ignored(&rig.other, &mad);
	mad.sidr_rep.service_id++;
	assert_ignored(&rig.peer, &mad);
}

TEST(receive__dreq_of_another_queue_pair)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	mad = rig_message(&rig, CM_DREQ);
	mad.dreq_qpn++;
	assert_ignored(&rig.peer, &mad);
}

/* The peer has given up, and only knows its own id. */
TEST(receive__rej_by_guid_of_who_has_no_answer)
{
	const rte_be64_t guid = rte_cpu_to_be_64(RIG_PEER_GUID), other = guid + 1;
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	mad = rig_message(&rig, CM_REJ);
	mad.remote_id = 0;
	mad.rej.reason = CM_REJ_TIMEOUT;
	assert_ignored(&rig.peer, &mad);
	mad.rej.info = (const uint8_t *)&other;
	mad.rej.info_len = sizeof(other);
	assert_ignored(&rig.peer, &mad);
	mad.rej.info = (const uint8_t *)&guid;
	assert_ignored(&rig.other, &mad);
	rig_receive(&rig, &mad);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_IDLE);
	rig_event(&rig, CM_EVENT_REJECTED);
	assert_int_equal(rig.event.status, CM_REJ_TIMEOUT);
}

/* A peer that has received our REP, and gives up all the same, names both ids and needs no GUID. */
TEST(receive__rej_of_a_timeout_with_our_id)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REP_SENT);
	mad = rig_message(&rig, CM_REJ);
	mad.rej.reason = CM_REJ_TIMEOUT;
	mad.local_id++;
	assert_ignored(&rig.peer, &mad);
	mad.local_id--;
	mad.remote_id++;
	assert_ignored(&rig.peer, &mad);
	mad.remote_id--;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REJECTED);
	assert_int_equal(rig.event.status, CM_REJ_TIMEOUT);
}

/* Any other reason names our id: a REJ without it is nobody's. */
TEST(receive__rej_without_our_id)
{
	const rte_be64_t guid = rte_cpu_to_be_64(RIG_PEER_GUID);
	struct gsi_address from = rig.peer;
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_RCVD);
	mad = rig_message(&rig, CM_REJ);
	mad.remote_id = 0;
	mad.rej.info = (const uint8_t *)&guid;
	mad.rej.info_len = sizeof(guid);
	assert_ignored(&rig.peer, &mad);
	/* A timeout at another of our addresses is not about this connection. */
	mad.rej.reason = CM_REJ_TIMEOUT;
	from.local[15]++;
	assert_ignored(&from, &mad);
	mad.rej.info_len--;
	assert_ignored(&rig.peer, &mad);
}

TEST(receive__rej_stale_goes_through_timewait)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	mad = rig_message(&rig, CM_REJ);
	mad.local_id = 0; /* as Linux's of a REQ */
	mad.rej = (struct cm_rej){.about = CM_ABOUT_REQ, .reason = CM_REJ_STALE_CONNECTION};
	rig_receive(&rig, &mad);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
	rig_event(&rig, CM_EVENT_REJECTED);
	/* As long as the REQ's ACK timeout, because there was no REP. */
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(17));
	rig_expire(&rig);
	rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(rig.event.status, 0);
}

/* The peer's REP was lost, and then it has rejected: it names an id that we have not heard of. */
TEST(receive__rej_of_a_peer_whose_rep_was_lost)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	mad = rig_message(&rig, CM_REJ);
	rig_receive(&rig, &mad);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_IDLE);
	rig_event(&rig, CM_EVENT_REJECTED);
	assert_int_equal(rig.event.status, CM_REJ_CONSUMER_DEFINED);
}

TEST(receive__rej_of_a_dreq_is_no_error)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_DREQ_SENT);
	mad = rig_message(&rig, CM_REJ);
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(rig.event.status, 0);
}

/* 0 is an id as any other. */
TEST(receive__peer_with_id_0)
{
	unsigned int sent;
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	mad = rig_message(&rig, CM_REP);
	mad.local_id = 0;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REP);
	assert_int_equal(cm_establish(rig.conn, NULL, 0, rig.now_ns), 0);
	sent = rig.sent;
	rig_receive(&rig, &mad);
	assert_int_equal(rig.sent, sent + 1);
	assert_int_equal(rig_sent(&rig).message, CM_RTU);
	assert_int_equal(rig_sent(&rig).remote_id, 0);
}

TEST(receive__rep_is_agreed_on)
{
	struct cm_agreed agreed;

	rig_bring(&rig, CM_STATE_REP_RCVD);
	cm_conn_agreed(rig.conn, &agreed);
	assert_int_equal(agreed.local_qpn, RIG_OUR_QPN);
	assert_int_equal(agreed.remote_qpn, RIG_PEER_QPN);
	assert_int_equal(agreed.sq_psn.v, 0xfedcba);
	/* The REP's values, 3 and 2, are below those that we have asked for, 8 and 4. */
	assert_int_equal(agreed.max_rd_atomic, 3);
	assert_int_equal(agreed.max_dest_rd_atomic, 2);
	assert_int_equal(agreed.rnr_retry_count, 5);
	/* 16 + 1 there and back; the peer's delay of 14 adds nothing. */
	assert_int_equal(agreed.ack_timeout, 17);
	assert_memory_equal(&agreed.address, &rig.peer, sizeof(rig.peer));
	assert_int_equal(agreed.remote_qkey, 0);
	assert_false(agreed.remote_srq);
}

/* The REP offers more than we have asked for. */
TEST(receive__rep_raises_nothing)
{
	struct cm_agreed agreed;
	struct cm_mad rep;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	rep = rig_message(&rig, CM_REP);
	rep.rep.responder_resources = 100;
	rep.rep.initiator_depth = 100;
	rep.rep.qkey = 0x77777;
	rep.rep.srq = true;
	rig_receive(&rig, &rep);
	rig_event(&rig, CM_EVENT_REP);
	cm_conn_agreed(rig.conn, &agreed);
	assert_int_equal(agreed.max_rd_atomic, 8);
	assert_int_equal(agreed.max_dest_rd_atomic, 4);
	assert_int_equal(agreed.remote_qkey, 0x77777);
	assert_true(agreed.remote_srq);
}

/* A message is counted as unknown for each reason for which nobody hears it. */
TEST(receive__unknown_is_counted)
{
	static const enum cm_message messages[] = {CM_MRA,  CM_REJ,  CM_REP,	 CM_RTU,
						   CM_DREQ, CM_DREP, CM_SIDR_REP};
	uint64_t count = 0;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	for (size_t i = 0; i < RTE_DIM(messages); i++) {
		struct cm_mad mad = rig_message(&rig, messages[i]);

		rig_receive_from(&rig, &rig.other, &mad);
		assert_int_equal(cm_stats(rig.cm)->unknown, ++count);
		if (messages[i] == CM_SIDR_REP)
			continue;
		mad.remote_id ^= 0x55555555;
		rig_receive(&rig, &mad);
		assert_int_equal(cm_stats(rig.cm)->unknown, ++count);
	}
	assert_int_equal(cm_stats(rig.cm)->unexpected, 0);
}

/* A message that the connection's state does not expect is counted as such. */
TEST(receive__unexpected_is_counted)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	mad = rig_message(&rig, CM_DREP);
	rig_receive(&rig, &mad);
	assert_int_equal(cm_stats(rig.cm)->unexpected, 1);
	rig_bring(&rig, CM_STATE_REQ_SENT);
	mad = rig_message(&rig, CM_REP);
	mad.rep.qpn++;
	rig_receive(&rig, &mad); /* with the id of the first connection */
	assert_int_equal(cm_stats(rig.cm)->unexpected, 2);
	assert_int_equal(cm_stats(rig.cm)->unknown, 0);
	assert_int_equal(cm_stats(rig.cm)->malformed, 0);
	assert_int_equal(cm_stats(rig.cm)->no_room, 0);
}

/* The peer of a connection for which we have asked knows our id: it needs no GUID. */
TEST(receive__rej_by_guid_of_an_active_connection)
{
	const rte_be64_t none = 0;
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	mad = rig_message(&rig, CM_REJ);
	mad.remote_id = 0;
	mad.rej = (struct cm_rej){.about = CM_ABOUT_REP,
				  .reason = CM_REJ_TIMEOUT,
				  .info = (const uint8_t *)&none,
				  .info_len = sizeof(none)};
	assert_ignored(&rig.peer, &mad);
}

/* Annex A14: the REP of an XRC target has its queue pair in place of the EE context. */
TEST(receive__rep_of_xrc)
{
	struct cm_connect_attr attr = rig_connect_attr(&rig);
	struct cm_agreed agreed;
	struct cm_mad rep;

	attr.transport = CM_TRANSPORT_EXTENDED;
	attr.extended_type = CM_EXTENDED_XRC;
	assert_int_equal(cm_connect(rig.cm, &attr, rig.now_ns, &rig.conn), 0);
	rig.our_id = rig_sent(&rig).local_id;
	rep = rig_message(&rig, CM_REP);
	rep.rep.qpn = 0;
	rep.rep.eecn = 0x333;
	rep.rep.srq = true;
	rig_receive(&rig, &rep);
	rig_event(&rig, CM_EVENT_REP);
	cm_conn_agreed(rig.conn, &agreed);
	assert_int_equal(agreed.remote_qpn, 0x333);
	assert_true(agreed.remote_srq);
	assert_int_equal(cm_establish(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_int_equal(rig_sent(&rig).dreq_qpn, 0x333);
}

/* Disconnect after a REP whose sender has this ACK delay; the connection is in timewait. */
static void wait_after(uint8_t target_ack_delay)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	mad = rig_message(&rig, CM_REP);
	mad.rep.target_ack_delay = target_ack_delay;
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_REP);
	assert_int_equal(cm_establish(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	mad = rig_message(&rig, CM_DREP);
	rig_receive(&rig, &mad);
	rig_event(&rig, CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_TIMEWAIT);
}

/* 12.9: twice a packet's life, 2^17, and the peer's ACK delay. */
TEST(receive__timewait_lasts_as_the_rep_says)
{
	wait_after(14);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(17));
}

TEST(receive__timewait_is_longer_after_a_slow_peer)
{
	wait_after(20);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(20));
}

TEST(receive__timewait_is_bounded)
{
	wait_after(31);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(22));
}

TEST(receive__rep_of_a_queue_pair_that_is_connected)
{
	struct cm_conn *old;
	struct cm_mad rep;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	old = rig.conn;
	rig_bring(&rig, CM_STATE_REQ_SENT);
	rep = rig_message(&rig, CM_REP);
	rep.local_id = RIG_PEER_ID + 1;
	rig_receive(&rig, &rep);
	rig_event(&rig, CM_EVENT_REJECTED);
	assert_int_equal(rig.event.status, CM_REJ_STALE_CONNECTION);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_IDLE);
	assert_int_equal(cm_conn_state(old), CM_STATE_DREQ_SENT);
	assert_int_equal(rig_sent(&rig).message, CM_DREQ);
	rig.sent--;
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	assert_int_equal(rig_sent(&rig).rej.about, CM_ABOUT_REP);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_STALE_CONNECTION);
	assert_int_equal(rig_sent(&rig).remote_id, RIG_PEER_ID + 1);
}

TEST(receive__rep_of_a_queue_pair_in_timewait)
{
	struct cm_mad rep;

	rig_bring(&rig, CM_STATE_TIMEWAIT);
	rig_bring(&rig, CM_STATE_REQ_SENT);
	rep = rig_message(&rig, CM_REP);
	rep.local_id = RIG_PEER_ID + 1;
	rig_receive(&rig, &rep);
	rig_event(&rig, CM_EVENT_REP);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REP_RCVD);
}

TEST(receive__rep_with_an_id_that_the_peer_uses)
{
	struct cm_mad rep;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	rig_bring(&rig, CM_STATE_REQ_SENT);
	rep = rig_message(&rig, CM_REP);
	rep.rep.qpn++;
	assert_ignored(&rig.peer, &rep);
}

TEST(receive__mra_moves_the_timer)
{
	rig_bring(&rig, CM_STATE_MRA_REQ_RCVD);
	assert_true(cm_deadline_ns(rig.cm) == rig.now_ns + cm_time_ns(22) + cm_time_ns(RIG_LIFE));
}

/* The agent limits the service timeout of an MRA to 17 minutes. */
TEST(receive__mra_is_bounded)
{
	struct cm_mad mra;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	mra = rig_message(&rig, CM_MRA);
	mra.mra = (struct cm_mra){.about = CM_ABOUT_REQ, .service_timeout = 31};
	rig_receive(&rig, &mra);
	assert_true(cm_deadline_ns(rig.cm) <= rig.now_ns + cm_time_ns(24) + cm_time_ns(RIG_LIFE));
}

/* An MRA about a LAP, which we never send, changes nothing. */
TEST(receive__mra_of_a_lap_is_ignored)
{
	struct cm_mad mra;

	rig_bring(&rig, CM_STATE_REP_SENT);
	mra = rig_message(&rig, CM_MRA);
	mra.mra = (struct cm_mra){.about = CM_ABOUT_OTHER, .service_timeout = 22};
	assert_ignored(&rig.peer, &mra);
}

/* A message for a free id gets an answer at once: DREP for a DREQ, REJ for a REP. */
TEST(receive__unknown_connection_is_answered)
{
	struct cm_mad mad = rig_message(&rig, CM_DREQ);

	mad.remote_id = 0x777;
	rig_receive(&rig, &mad);
	assert_int_equal(rig_sent(&rig).message, CM_DREP);
	assert_int_equal(rig_sent(&rig).tid, mad.tid);
	assert_int_equal(rig_sent(&rig).local_id, 0x777);
	assert_int_equal(rig_sent(&rig).remote_id, mad.local_id);
	mad = rig_message(&rig, CM_REP);
	mad.remote_id = 0x777;
	rig_receive(&rig, &mad);
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_INVALID_COMM_ID);
	assert_int_equal(rig_sent(&rig).rej.about, CM_ABOUT_REP);
	assert_int_equal(cm_conn_count(rig.cm), 0);
}

/* The same where the connection is over, and its user has not let go of it yet. */
TEST(receive__connection_that_is_over_is_answered)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_REQ_SENT);
	while (cm_conn_state(rig.conn) != CM_STATE_IDLE)
		rig_expire(&rig);
	rig_event(&rig, CM_EVENT_UNREACHABLE);
	mad = rig_message(&rig, CM_REP);
	rig_receive(&rig, &mad);
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_INVALID_COMM_ID);
	rig_bring(&rig, CM_STATE_TIMEWAIT);
	rig_expire(&rig);
	rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
	mad = rig_message(&rig, CM_DREQ);
	mad.tid++;
	rig_receive(&rig, &mad);
	assert_int_equal(rig_sent(&rig).message, CM_DREP);
	assert_int_equal(rig_sent(&rig).tid, mad.tid);
}

TEST(receive__id_of_another_process_is_not_answered)
{
	const struct cm_config config = {.id_mask = 0xfff00000, .id_value = 0x12300000};
	struct cm_mad mad;

	rig_fini(&rig);
	rig_init_with(&rig, &config);
	rig_bring(&rig, CM_STATE_REQ_SENT);
	assert_int_equal(rig.our_id & 0xfff00000, 0x12300000);
	mad = rig_message(&rig, CM_DREQ);
	mad.remote_id = 0x12400000;
	assert_ignored(&rig.peer, &mad);
	mad = rig_message(&rig, CM_REP);
	mad.remote_id = 0x12400000;
	assert_ignored(&rig.peer, &mad);
}

/* Linux drops both on RoCE. */
TEST(receive__lap_and_apr_are_dropped)
{
	struct cm_mad mad;

	rig_bring(&rig, CM_STATE_ESTABLISHED);
	mad = rig_message(&rig, CM_LAP);
	assert_ignored(&rig.peer, &mad);
	mad = rig_message(&rig, CM_APR);
	assert_ignored(&rig.peer, &mad);
}

static void make_other(uint8_t *mad, uint8_t class, uint8_t version, uint8_t method, uint8_t attr)
{
	const uint8_t header[18] = {1, class, version, method, [17] = attr};

	memset(mad, 0, MAD_LEN);
	memcpy(mad, header, sizeof(header));
}

/* The status of the answer to a MAD, or -1 where there is none. */
static int status_of(uint8_t class, uint8_t version, uint8_t method, uint8_t attr)
{
	const unsigned int sent = rig.sent;
	uint8_t mad[MAD_LEN];
	const uint8_t *answer = rig.mads[sent % RIG_SENT_MAX].bytes;

	make_other(mad, class, version, method, attr);
	cm_receive(rig.cm, mad, sizeof(mad), &rig.peer, rig.now_ns);
	if (rig.sent == sent)
		return -1;
	assert_int_equal(answer[3], MAD_GET_RESPONSE);
	return answer[4] << 8 | answer[5];
}

/* 13.4.7 */
TEST(receive__what_nobody_has_is_answered_by_status)
{
	assert_int_equal(status_of(0x04, 1, MAD_GET, 1), MAD_CODE_BAD_VERSION);
	assert_int_equal(status_of(0x04, 1, MAD_SET, 1), MAD_CODE_BAD_VERSION);
	assert_int_equal(status_of(MAD_CLASS_CM, 1, MAD_GET, 1), MAD_CODE_BAD_VERSION);
	assert_int_equal(status_of(MAD_CLASS_CM, 2, MAD_GET, 0x10), MAD_CODE_BAD_ATTRIBUTE);
	assert_int_equal(status_of(MAD_CLASS_CM, 2, MAD_SET, 1), MAD_CODE_BAD_ATTRIBUTE);
}

TEST(receive__what_has_no_response_is_dropped)
{
	static const uint8_t methods[] = {MAD_SEND, MAD_GET_RESPONSE, 0x05, 0x06, 0x07, 0x84, 0xff};

	for (size_t i = 0; i < sizeof(methods); i++) {
		assert_int_equal(status_of(0x04, 1, methods[i], 1), -1);
		assert_int_equal(status_of(MAD_CLASS_CM, 1, methods[i], 1), -1);
	}
	assert_int_equal(status_of(MAD_CLASS_CM, 2, MAD_SEND, 0x1b), -1);
	assert_int_equal(status_of(MAD_CLASS_CM, 2, MAD_SEND, 0x01), -1);
}

TEST(receive__class_port_info)
{
	const uint8_t *data = rig.mads[rig.sent % RIG_SENT_MAX].bytes + sizeof(struct mad_header);

	assert_int_equal(status_of(MAD_CLASS_CM, 2, MAD_GET, 1), 0);
	assert_int_equal(data[0], MAD_BASE_VERSION);
	assert_int_equal(data[1], CM_CLASS_VERSION);
	assert_int_equal(data[2] << 8 | data[3], 1 << 9 | 1 << 13);
	assert_int_equal(data[7], 20);
}

TEST(receive__req_of_another_class_version)
{
	const struct cm_mad req = rig_req();
	uint8_t bytes[MAD_LEN];

	assert_int_equal(cm_mad_build(&req, bytes), 0);
	bytes[2] = 3;
	cm_receive(rig.cm, bytes, sizeof(bytes), &rig.peer, rig.now_ns);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_INVALID_CLASS_VERSION);
	assert_int_equal(cm_conn_count(rig.cm), 0);
}

TEST(receive__other_lengths_are_dropped)
{
	const struct cm_mad req = rig_req();
	uint8_t bytes[MAD_LEN + 1] = {0};

	assert_int_equal(cm_mad_build(&req, bytes), 0);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		uint8_t *copy = malloc(len + 1); /* the address sanitizer sees a read beyond */

		memcpy(copy, bytes, len);
		if (len != MAD_LEN)
			cm_receive(rig.cm, copy, len, &rig.peer, rig.now_ns);
		free(copy);
	}
	assert_int_equal(rig.sent, 0);
	assert_int_equal(cm_stats(rig.cm)->malformed, MAD_LEN + 1);
}
