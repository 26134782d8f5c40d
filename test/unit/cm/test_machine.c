/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/cm/machine.c: in each state each message, call and timer does what the table says,
 * and nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/reason.h"
#include "cm_rig.h"
#include "test.h"

#define NO_INPUT CM_INPUT_COUNT

/* The input that a message is to a connection in a state; NO_INPUT: none of the connection's. */
static enum cm_input input_of(enum cm_state state, enum cm_message message)
{
	const bool passive = state == CM_STATE_REQ_RCVD || state == CM_STATE_MRA_REQ_SENT ||
			     state == CM_STATE_REP_SENT || state == CM_STATE_MRA_REP_RCVD ||
			     state == CM_STATE_REJ_SENT;
	const bool knows_peer = passive || state == CM_STATE_REP_RCVD ||
				state == CM_STATE_MRA_REP_SENT || state == CM_STATE_ESTABLISHED ||
				state == CM_STATE_DREQ_SENT || state == CM_STATE_DREQ_RCVD ||
				state == CM_STATE_TIMEWAIT;
	/* The peer does not know the id of one that has not sent anything. */
	const bool is_known = state != CM_STATE_REQ_RCVD;

	switch (message) {
	case CM_REQ:
		return passive ? CM_INPUT_REQ_AGAIN : NO_INPUT;
	case CM_SIDR_REQ:
		return state == CM_STATE_SIDR_REQ_RCVD || state == CM_STATE_SIDR_REP_SENT
			       ? CM_INPUT_SIDR_REQ_AGAIN
			       : NO_INPUT;
	case CM_SIDR_REP:
		return state == CM_STATE_SIDR_REQ_SENT ? CM_INPUT_SIDR_REP : NO_INPUT;
	case CM_REP:
		if (state == CM_STATE_REQ_SENT || state == CM_STATE_MRA_REQ_RCVD)
			return CM_INPUT_REP;
		return knows_peer && !passive ? CM_INPUT_REP_AGAIN : NO_INPUT;
	case CM_RTU:
		return passive && is_known ? CM_INPUT_RTU : NO_INPUT;
	case CM_REJ:
		if (state == CM_STATE_REQ_SENT || state == CM_STATE_MRA_REQ_RCVD)
			return CM_INPUT_REJ;
		return knows_peer && is_known ? CM_INPUT_REJ : NO_INPUT;
	case CM_MRA:
		return knows_peer && is_known ? CM_INPUT_MRA_OF_REP : NO_INPUT;
	case CM_DREQ:
		/* A connection that has not told its queue pair yet is named by no DREQ. */
		return knows_peer && state != CM_STATE_REQ_RCVD && state != CM_STATE_MRA_REQ_SENT
			       ? CM_INPUT_DREQ
			       : NO_INPUT;
	case CM_DREP:
		return knows_peer && is_known ? CM_INPUT_DREP : NO_INPUT;
	default:
		return NO_INPUT;
	}
}

static void assert_sent(const struct cm_rig *rig, const struct cm_transition *row,
			unsigned int before, const uint8_t *last)
{
	if (row->send == 0) {
		assert_int_equal(rig->sent, before);
		return;
	}
	assert_int_equal(rig->sent, before + 1);
	if (row->send == CM_SEND_AGAIN)
		assert_memory_equal(rig->mads[before % RIG_SENT_MAX].bytes, last, MAD_LEN);
	else
		assert_int_equal(rig_sent(rig).message, row->send);
	assert_memory_equal(&rig->mads[before % RIG_SENT_MAX].to, &rig->peer, sizeof(rig->peer));
}

/* Check the effect of an input on a connection that was in `from`. */
static void assert_done(struct cm_rig *rig, enum cm_state from, enum cm_input input,
			unsigned int before, const uint8_t *last)
{
	const struct cm_transition *row = cm_transition(from, input);

	if (!row->defined) {
		assert_int_equal(cm_conn_state(rig->conn), from);
		assert_int_equal(rig->sent, before);
		rig_no_event(rig);
		return;
	}
	assert_string_equal(cm_state_name(cm_conn_state(rig->conn)),
			    cm_state_name((enum cm_state)row->next));
	assert_sent(rig, row, before, last);
	if (row->event)
		rig_event(rig, (enum cm_event_type)row->event);
	rig_no_event(rig);
}

static void bring(struct cm_rig *rig, enum cm_state state, unsigned int *sent, uint8_t *last)
{
	rig_init(rig);
	rig_bring(rig, state);
	*sent = rig->sent;
	memset(last, 0, MAD_LEN);
	if (rig->sent > 0)
		memcpy(last, rig->mads[(rig->sent - 1) % RIG_SENT_MAX].bytes, MAD_LEN);
}

TEST(step__each_message_in_each_state)
{
	static struct cm_rig rig;
	uint8_t last[MAD_LEN];
	unsigned int sent;

	for (int from = CM_STATE_IDLE + 1; from < CM_STATE_COUNT; from++) {
		for (int i = CM_FIRST_MESSAGE; i <= CM_LAST_MESSAGE; i++) {
			const enum cm_input input =
				input_of((enum cm_state)from, (enum cm_message)i);
			struct cm_mad mad;

			bring(&rig, (enum cm_state)from, &sent, last);
			mad = rig_message(&rig, (enum cm_message)i);
			if (mad.message == CM_MRA)
				mad.mra.about = CM_ABOUT_REP;
			if (input == NO_INPUT) {
				/* Answered or not, the connection does not hear of it. */
				mad.local_id += mad.message == CM_REQ || mad.message == CM_SIDR_REQ;
				mad.req.qpn += mad.message == CM_REQ;
				rig_receive(&rig, &mad);
				assert_int_equal(cm_conn_state(rig.conn), from);
			} else {
				rig_receive(&rig, &mad);
				assert_done(&rig, (enum cm_state)from, input, sent, last);
			}
			rig_fini(&rig);
		}
	}
}

static int call(struct cm_rig *rig, enum cm_input input)
{
	const struct cm_accept_attr accept = rig_accept_attr();
	const struct cm_reply_attr reply = {.qpn = RIG_OUR_QPN};

	switch (input) {
	case CM_INPUT_ACCEPT:
		return cm_accept(rig->conn, &accept, rig->now_ns);
	case CM_INPUT_ESTABLISH:
		return cm_establish(rig->conn, NULL, 0, rig->now_ns);
	case CM_INPUT_REJECT:
		return cm_reject(rig->conn, CM_REJ_CONSUMER_DEFINED, NULL, 0, rig->now_ns);
	case CM_INPUT_REPLY:
		return cm_reply(rig->conn, &reply, rig->now_ns);
	case CM_INPUT_DATA:
		return cm_data_arrived(rig->conn, rig->now_ns);
	default:
		return cm_disconnect(rig->conn, NULL, 0, rig->now_ns);
	}
}

TEST(step__each_call_in_each_state)
{
	static struct cm_rig rig;
	uint8_t last[MAD_LEN];
	unsigned int sent;

	for (int from = CM_STATE_IDLE; from < CM_STATE_COUNT; from++) {
		for (int input = CM_INPUT_ACCEPT; input <= CM_INPUT_DISCONNECT; input++) {
			const bool defined =
				cm_transition((enum cm_state)from, (enum cm_input)input)->defined;

			bring(&rig, (enum cm_state)from, &sent, last);
			assert_int_equal(call(&rig, (enum cm_input)input), defined ? 0 : -EINVAL);
			assert_done(&rig, (enum cm_state)from, (enum cm_input)input, sent, last);
			rig_fini(&rig);
		}
	}
}

static void expire_at_last(struct cm_rig *rig, unsigned int sent, const uint8_t *last)
{
	const enum cm_state at = cm_conn_state(rig->conn);

	rig_expire(rig);
	assert_done(rig, at, CM_INPUT_EXPIRED, sent, last);
}

/* Every state sends all its retries, each at its time, and then ends. */
TEST(step__timers_in_each_state)
{
	static struct cm_rig rig;
	uint8_t last[MAD_LEN];
	unsigned int sent;

	for (int from = CM_STATE_IDLE; from < CM_STATE_COUNT; from++) {
		const bool retries = cm_transition((enum cm_state)from, CM_INPUT_TIMEOUT)->defined;

		bring(&rig, (enum cm_state)from, &sent, last);
		if (!cm_transition((enum cm_state)from, CM_INPUT_EXPIRED)->defined) {
			assert_true(cm_deadline_ns(rig.cm) == UINT64_MAX);
			rig_fini(&rig);
			continue;
		}
		for (int i = 0; retries && i < RIG_RETRIES; i++) {
			enum cm_state at = cm_conn_state(rig.conn);

			rig_expire(&rig);
			assert_done(&rig, at, CM_INPUT_TIMEOUT, sent++, last);
		}
		expire_at_last(&rig, sent, last);
		rig_fini(&rig);
	}
}

/* A connection that is destroyed, in whatever state, leaves nothing when its timers have expired.
 */
TEST(step__destroy_in_each_state)
{
	static struct cm_rig rig;
	uint8_t last[MAD_LEN];
	unsigned int sent;

	for (int from = CM_STATE_IDLE; from < CM_STATE_COUNT; from++) {
		const struct cm_transition *row =
			cm_transition((enum cm_state)from, CM_INPUT_DESTROY);

		bring(&rig, (enum cm_state)from, &sent, last);
		cm_conn_destroy(rig.conn, rig.now_ns);
		assert_sent(&rig, row, sent, last);
		while (cm_deadline_ns(rig.cm) != UINT64_MAX)
			rig_expire(&rig);
		assert_int_equal(cm_conn_count(rig.cm), 0);
		rig_no_event(&rig);
		rig_fini(&rig);
	}
}

TEST(step__rej_tells_what_it_rejects)
{
	static struct cm_rig rig;
	struct cm_mad mad;

	rig_init(&rig);
	rig_bring(&rig, CM_STATE_REQ_RCVD);
	assert_int_equal(cm_reject(rig.conn, CM_REJ_NO_QP, "no", 2, rig.now_ns), 0);
	mad = rig_sent(&rig);
	assert_int_equal(mad.rej.about, CM_ABOUT_REQ);
	assert_int_equal(mad.rej.reason, CM_REJ_NO_QP);
	assert_int_equal(mad.remote_id, RIG_PEER_ID);
	assert_int_equal(mad.tid, RIG_PEER_TID);
	assert_memory_equal(mad.private_data, "no", 2);
	rig_fini(&rig);
	rig_init(&rig);
	rig_bring(&rig, CM_STATE_REP_RCVD);
	assert_int_equal(cm_reject(rig.conn, CM_REJ_NO_QP, NULL, 0, rig.now_ns), 0);
	assert_int_equal(rig_sent(&rig).rej.about, CM_ABOUT_REP);
	rig_fini(&rig);
	rig_init(&rig);
	rig_bring(&rig, CM_STATE_REP_RCVD);
	cm_conn_destroy(rig.conn, rig.now_ns);
	assert_int_equal(rig_sent(&rig).rej.reason, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(rig_sent(&rig).rej.info_len, 0);
	rig_fini(&rig);
}

/* The peer cannot know our id: it finds the connection by its own GUID and id. */
TEST(step__rej_of_a_timeout_names_the_guid)
{
	static const uint8_t guid[8] = {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11};
	static struct cm_rig rig;
	struct cm_mad mad;
	uint64_t tid;

	rig_init(&rig);
	rig_bring(&rig, CM_STATE_REQ_SENT);
	tid = rig_sent(&rig).tid;
	cm_conn_destroy(rig.conn, rig.now_ns);
	mad = rig_sent(&rig);
	assert_true(mad.tid == tid);
	assert_int_equal(mad.local_id, rig.our_id);
	assert_int_equal(mad.rej.about, CM_ABOUT_OTHER);
	assert_int_equal(mad.rej.reason, CM_REJ_TIMEOUT);
	assert_int_equal(mad.remote_id, 0);
	assert_int_equal(mad.rej.info_len, sizeof(guid));
	assert_memory_equal(mad.rej.info, guid, sizeof(guid));
	rig_fini(&rig);
}

/* An MRA without a time would give the peer none. */
TEST(step__mra_asks_for_time)
{
	static const struct {
		enum cm_state state;
		enum cm_about about;
	} cases[] = {{CM_STATE_MRA_REQ_SENT, CM_ABOUT_REQ}, {CM_STATE_MRA_REP_SENT, CM_ABOUT_REP}};
	static struct cm_rig rig;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		rig_init(&rig);
		rig_bring(&rig, cases[i].state);
		assert_int_equal(rig_sent(&rig).message, CM_MRA);
		assert_int_equal(rig_sent(&rig).mra.about, cases[i].about);
		assert_int_equal(rig_sent(&rig).mra.service_timeout, 24);
		rig_fini(&rig);
	}
}

/* 12.6.9: a DREQ is a new exchange. Its repetitions have the same TID. */
TEST(step__dreq_has_a_tid_of_its_own)
{
	static struct cm_rig rig;
	uint64_t tid;

	rig_init(&rig);
	rig_bring(&rig, CM_STATE_ESTABLISHED);
	tid = rig_sent(&rig).tid;
	assert_int_equal(rig_sent(&rig).message, CM_RTU);
	assert_int_equal(cm_disconnect(rig.conn, NULL, 0, rig.now_ns), 0);
	assert_int_equal(rig_sent(&rig).message, CM_DREQ);
	assert_true(rig_sent(&rig).tid == tid + 1);
	rig_expire(&rig);
	assert_true(rig_sent(&rig).tid == tid + 1);
	rig_fini(&rig);
}

TEST(step__drep_has_the_tid_of_its_dreq)
{
	static struct cm_rig rig;
	struct cm_mad dreq;

	rig_init(&rig);
	rig_bring(&rig, CM_STATE_TIMEWAIT);
	dreq = rig_message(&rig, CM_DREQ);
	dreq.tid = 77;
	rig_receive(&rig, &dreq);
	assert_int_equal(rig_sent(&rig).message, CM_DREP);
	assert_int_equal(rig_sent(&rig).tid, 77);
	rig_fini(&rig);
}

/* A DREP in between is not what a request draws that comes again. */
TEST(step__rej_is_kept_beside_a_drep)
{
	static struct cm_rig rig;
	struct cm_mad mad;

	rig_init(&rig);
	rig_bring(&rig, CM_STATE_REJ_SENT);
	mad = rig_message(&rig, CM_DREQ);
	rig_receive(&rig, &mad);
	assert_int_equal(rig_sent(&rig).message, CM_DREP);
	mad = rig_req();
	rig_receive(&rig, &mad);
	assert_int_equal(rig_sent(&rig).message, CM_REJ);
	rig_fini(&rig);
}

/* The machine keeps two answers. A third displaces the oldest, whose request then counts as new. */
TEST(step__answers_kept_are_bounded)
{
	const struct cm_config config = {.lingering_max = 2};
	static struct cm_rig rig;

	rig_init_with(&rig, &config);
	for (uint32_t i = 0; i < 5; i++) {
		struct cm_mad req = rig_req();

		req.local_id += i;
		req.req.qpn += i;
		rig_receive(&rig, &req);
		rig_event(&rig, CM_EVENT_REQ);
		cm_conn_destroy(rig.event.conn, rig.now_ns);
	}
	assert_int_equal(cm_conn_count(rig.cm), 2);
	rig_fini(&rig);
}

/* A message that cannot be built changes nothing. */
/* The reasons of --explain. */
TEST(command__says_why_it_is_refused)
{
	static const uint8_t data[256];
	static struct cm_rig rig;

	rig_init(&rig);
	rig_bring(&rig, CM_STATE_REP_RCVD);
	reason_wanted = true;
	cm_disconnect(rig.conn, NULL, 0, rig.now_ns);
	assert_string_equal(reason_take(EINVAL), "the connection is in REP_RCVD, where DISCONNECT "
						 "is not possible (IBTA 12.9)");
	cm_establish(rig.conn, data, CM_RTU_PRIVATE + 1, rig.now_ns);
	assert_contains(reason_take(EINVAL), "225");
	reason_wanted = false;
	rig_fini(&rig);
}

TEST(step__private_data_too_long_changes_nothing)
{
	static const uint8_t data[256];
	static struct cm_rig rig;
	unsigned int sent;

	rig_init(&rig);
	rig_bring(&rig, CM_STATE_REP_RCVD);
	sent = rig.sent;
	assert_int_equal(cm_establish(rig.conn, data, CM_RTU_PRIVATE + 1, rig.now_ns), -EINVAL);
	assert_int_equal(cm_reject(rig.conn, 28, data, CM_REJ_PRIVATE + 1, rig.now_ns), -EINVAL);
	assert_int_equal(cm_conn_state(rig.conn), CM_STATE_REP_RCVD);
	assert_int_equal(rig.sent, sent);
	assert_int_equal(cm_establish(rig.conn, data, CM_RTU_PRIVATE, rig.now_ns), 0);
	rig_fini(&rig);
}
