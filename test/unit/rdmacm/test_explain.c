/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/explain.c. What test/zoo can show is there. */
#include "base/reason.h"
#include "rdmacm_rig.h"

static void want(bool wanted)
{
	explain_wanted = wanted;
	reason_wanted = wanted;
}

static int set_up(TEST_STATE)
{
	want(true);
	return rig_set_up(state);
}

static int tear_down(TEST_STATE)
{
	want(false);
	return rig_tear_down(state);
}

TEST_FIXTURE(set_up, tear_down);

/* Take an event, whose reason must have this text. */
static void assert_why(enum rdma_cm_event_type type, const char *text)
{
	struct rdma_cm_event *event = rig_event_of(rig_channel, type);
	const char *why = ((struct id_event *)event)->why;

	assert_non_null(why);
	assert_contains(why, text);
	rdma_ack_cm_event(event);
}

/* Take an event without a reason: it is no failure. */
static void assert_no_why(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = rig_event_of(rig_channel, type);

	assert_null(((struct id_event *)event)->why);
	rdma_ack_cm_event(event);
}

static struct rdma_cm_id *ask_nobody(void)
{
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};

	rig.loses = true;
	assert_int_equal(rdma_connect(id, &param), 0);
	rig_pass(150 * RIG_SECOND);
	return id;
}

TEST(explain_event__request_without_an_answer_says_how_often_and_how_long)
{
	struct rdma_cm_id *id = ask_nobody();

	assert_why(RDMA_CM_EVENT_UNREACHABLE, ":7174: no answer to 16 times a request, 6.4 s each");
	rdma_destroy_id(id);
}

TEST(explain_event__nothing_is_kept_while_nobody_wants_to_know)
{
	struct rdma_cm_id *id;

	want(false);
	id = ask_nobody();
	assert_no_why(RDMA_CM_EVENT_UNREACHABLE);
	rdma_destroy_id(id);
}

TEST(explain_event__acceptance_without_an_answer)
{
	struct rig_pair pair = rig_ask();

	rig_create_qp(pair.passive);
	rig.loses = true;
	assert_int_equal(rdma_accept(pair.passive, NULL), 0);
	rig_pass(100 * RIG_SECOND);
	assert_why(RDMA_CM_EVENT_UNREACHABLE, "the acceptance (REP)");
	rig_pass(100 * RIG_SECOND);
	assert_why(RDMA_CM_EVENT_UNREACHABLE, "a request");
	rig_end(&pair);
}

TEST(explain_event__disconnection_without_an_answer)
{
	struct rig_pair pair = rig_connect();

	rig.loses = true;
	assert_int_equal(rdma_disconnect(pair.active), 0);
	rig_pass(200 * RIG_SECOND);
	assert_why(RDMA_CM_EVENT_DISCONNECTED, "times the disconnection (DREQ)");
	assert_no_why(RDMA_CM_EVENT_TIMEWAIT_EXIT);
	rig_end(&pair);
}

TEST(explain_event__disconnection_that_the_program_has_asked_for)
{
	struct rig_pair pair = rig_connect();

	assert_int_equal(rdma_disconnect(pair.active), 0);
	assert_why(RDMA_CM_EVENT_DISCONNECTED, "the peer has sent a DREQ");
	assert_int_equal(rdma_disconnect(pair.passive), 0);
	assert_no_why(RDMA_CM_EVENT_DISCONNECTED);
	rig_pass(10 * RIG_SECOND);
	rig_end(&pair);
}

TEST(explain_by_reason__connect_error_has_the_reason_of_the_queue_pair)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rig_pair pair = rig_ask();

	rig_create_qp(pair.passive);
	assert_int_equal(rdma_accept(pair.passive, NULL), 0);
	assert_int_equal(ibv_modify_qp(pair.active->qp, &attr, IBV_QP_STATE), 0);
	assert_why(RDMA_CM_EVENT_CONNECT_ERROR, ": no transition leads from ERR to INIT");
	assert_why(RDMA_CM_EVENT_REJECTED, "its program could not make its queue pair ready");
	rig_end(&pair);
}

TEST(explain_enter__calls_inside_a_call_report_nothing)
{
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	unsigned int depth;

	reason_enter("outer");
	assert_null(ibv_create_cq(id->verbs, -1, NULL, NULL, 0));
	assert_string_equal(reason_call(&depth), "outer");
	assert_int_equal(depth, 1);
	assert_true(reason_is_said(EINVAL));
	reason_leave();
	assert_null(reason_call(&depth));
	rdma_destroy_id(id);
}
