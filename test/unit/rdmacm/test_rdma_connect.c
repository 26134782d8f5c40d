/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rdma_connect.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(rdma_connect__both_sides_are_established)
{
	struct rig_pair pair = rig_connect();

	assert_int_equal(rdma_get_dst_port(pair.active), htons(RIG_PORT));
	assert_int_equal(rdma_get_src_port(pair.passive), htons(RIG_PORT));
	assert_int_equal(rdma_get_dst_port(pair.passive), rdma_get_src_port(pair.active));
	rig_end(&pair);
}

/* The request is the listener's event, with what the other side has asked for. */
TEST(rdma_connect__request_has_the_peers_parameters)
{
	struct rdma_conn_param param = {.responder_resources = 3,
					.initiator_depth = 2,
					.flow_control = 1,
					.retry_count = 9,
					.rnr_retry_count = 6,
					.private_data = "hello",
					.private_data_len = 5};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};
	struct rdma_conn_param *conn;
	struct rdma_cm_event *event;

	rig_create_qp(pair.active);
	assert_int_equal(rdma_connect(pair.active, &param), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	conn = &event->param.conn;
	assert_ptr_equal(event->listen_id, pair.listener);
	assert_int_equal(event->status, 0);
	assert_int_equal(conn->responder_resources, 2);
	assert_int_equal(conn->initiator_depth, 3);
	assert_int_equal(conn->flow_control, 1);
	assert_int_equal(conn->retry_count, 7);
	assert_int_equal(conn->rnr_retry_count, 6);
	assert_int_equal(conn->qp_num, pair.active->qp->qp_num);
	assert_int_equal(conn->private_data_len, ID_CONNECT_DATA);
	assert_memory_equal(conn->private_data, "hello\0", 6);
	pair.passive = event->id;
	rdma_ack_cm_event(event);
	rig_end(&pair);
	rig_pass(10 * RIG_SECOND);
}

TEST(rdma_connect__too_much_private_data_is_refused)
{
	char data[ID_CONNECT_DATA + 1] = {0};
	struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	rig_create_qp(id);
	rig_fails(rdma_connect(id, &param), EINVAL);
	param.private_data_len--;
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_REJECTED), id);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

TEST(rdma_connect__needs_a_route_and_a_queue_pair)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};

	rig_fails(rdma_connect(NULL, NULL), EINVAL);
	rig_fails(rdma_connect(id, &param), EINVAL);
	rdma_destroy_id(id);
	id = rig_resolve(RDMA_PS_TCP);
	rig_fails(rdma_connect(id, NULL), EINVAL);
	param.responder_resources = 254;
	rig_fails(rdma_connect(id, &param), EINVAL);
	rdma_destroy_id(id);
}

TEST(rdma_connect__rejected_id_cannot_connect_again)
{
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(id, &param), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, CM_REJ_INVALID_SERVICE_ID);
	rdma_ack_cm_event(event);
	rig_fails(rdma_connect(id, &param), EINVAL);
	rdma_destroy_id(id);
}

TEST(rdma_connect__silent_peer_is_unreachable)
{
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_event *event;

	rig.loses = true;
	assert_int_equal(rdma_connect(id, &param), 0);
	rig_pass(150 * RIG_SECOND);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(event->status, -ETIMEDOUT);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

/* Linux takes the lower 24 bits of a queue pair number, and a DREQ must name the same. */
TEST(rdma_connect__number_of_a_queue_pair_has_24_bits)
{
	struct rdma_conn_param param = {.qp_num = 0xff000005};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};

	assert_int_equal(rdma_connect(pair.active, &param), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	param.qp_num = 0xff000006;
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	rig_expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_establish(pair.active), 0);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_disconnect(pair.passive), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.active);
	rig_end(&pair);
}

TEST(rdma_connect__response_has_the_peers_parameters)
{
	struct rdma_conn_param param = {.responder_resources = 1,
					.initiator_depth = 1,
					.rnr_retry_count = 4,
					.qp_num = 6,
					.srq = 1,
					.private_data = "yes",
					.private_data_len = 3};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};
	struct rdma_conn_param own = {.qp_num = 5, .responder_resources = 2, .initiator_depth = 2};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(pair.active, &own), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_null(event->listen_id);
	assert_int_equal(event->param.conn.qp_num, 6);
	assert_int_equal(event->param.conn.srq, 1);
	assert_int_equal(event->param.conn.rnr_retry_count, 4);
	assert_int_equal(event->param.conn.responder_resources, 1);
	assert_int_equal(event->param.conn.private_data_len, CM_REP_PRIVATE);
	assert_memory_equal(event->param.conn.private_data, "yes\0", 4);
	rdma_ack_cm_event(event);
	rig_end(&pair);
}

/* An answer that cannot be sent leaves the id and its queue pair as they are. */
TEST(rdma_accept__refused_answer_may_be_mended)
{
	char data[CM_REP_PRIVATE + 1] = {0};
	struct rdma_conn_param param = {.responder_resources = 1,
					.initiator_depth = 1,
					.private_data = data,
					.private_data_len = sizeof(data)};
	struct rig_pair pair = rig_ask();

	rig_create_qp(pair.passive);
	rig_fails(rdma_accept(pair.passive, &param), EINVAL);
	assert_int_equal(pair.passive->qp->state, IBV_QPS_INIT);
	param.private_data_len--;
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED);
	rig_expect(RDMA_CM_EVENT_ESTABLISHED);
	rig_end(&pair);
}

TEST(rdma_accept__once)
{
	struct rig_pair pair = rig_connect();

	rig_fails(rdma_accept(pair.passive, NULL), EINVAL);
	rig_fails(rdma_accept(pair.active, NULL), EINVAL);
	rig_fails(rdma_accept(pair.listener, NULL), EINVAL);
	rig_fails(rdma_accept(NULL, NULL), EINVAL);
	rig_end(&pair);
}

/* A peer that has gone meanwhile. */
TEST(rdma_accept__peer_has_given_up)
{
	struct rig_pair pair = rig_ask();

	rig_create_qp(pair.passive);
	rdma_destroy_qp(pair.active);
	rdma_destroy_id(pair.active);
	pair.active = NULL;
	rig_pass(0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_REJECTED), pair.passive);
	rig_fails(rdma_accept(pair.passive, NULL), EINVAL);
	rig_end(&pair);
}

TEST(rdma_reject__tells_reason_and_private_data)
{
	struct rig_pair pair = rig_ask();
	struct rdma_cm_event *event;

	assert_int_equal(rdma_reject(pair.passive, "no", 2), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_REJECTED);
	assert_ptr_equal(event->id, pair.active);
	assert_int_equal(event->status, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(event->param.conn.private_data_len, CM_REJ_PRIVATE);
	assert_memory_equal(event->param.conn.private_data, "no\0", 3);
	rdma_ack_cm_event(event);
	assert_int_equal(pair.active->qp->state, IBV_QPS_ERR);
	rig_fails(rdma_reject(pair.passive, NULL, 0), EINVAL);
	rig_fails(rdma_accept(pair.passive, NULL), EINVAL);
	rig_end(&pair);
}

TEST(rdma_reject__too_much_private_data_changes_nothing)
{
	char data[CM_REJ_PRIVATE + 1] = {0};
	struct rig_pair pair = rig_ask();

	rig_fails(rdma_reject(pair.passive, data, sizeof(data)), EINVAL);
	assert_int_equal(rdma_reject(pair.passive, data, sizeof(data) - 1), 0);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	rig_end(&pair);
}

TEST(rdma_reject_ece__has_a_reason_of_its_own)
{
	struct rig_pair pair = rig_ask();
	struct rdma_cm_event *event;

	assert_int_equal(rdma_reject_ece(pair.passive, NULL, 0), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, CM_REJ_VENDOR_OPTION_NOT_SUPPORTED);
	rdma_ack_cm_event(event);
	rig_end(&pair);
}

TEST(rdma_reject__wrong_states)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_reject(NULL, NULL, 0), EINVAL);
	rig_fails(rdma_reject(id, NULL, 0), EINVAL);
	rdma_destroy_id(id);
}

TEST(rdma_establish__wrong_states)
{
	struct rig_pair pair = rig_connect();
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_establish(NULL), EINVAL);
	rig_fails(rdma_establish(id), EINVAL);
	rig_fails(rdma_establish(pair.active), EINVAL);
	rdma_destroy_qp(pair.active);
	rig_fails(rdma_establish(pair.active), EINVAL);
	rdma_destroy_id(id);
	rig_end(&pair);
}

TEST(rdma_notify__ends_the_wait_for_an_rtu)
{
	struct rdma_conn_param param = {.qp_num = 5};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP),
				.active = rig_resolve(RDMA_PS_TCP)};

	assert_int_equal(rdma_connect(pair.active, &param), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	rig_fails(rdma_notify(pair.passive, IBV_EVENT_COMM_EST), EINVAL);
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	rig_fails(rdma_notify(pair.passive, IBV_EVENT_QP_FATAL), EINVAL);
	assert_int_equal(rdma_notify(pair.passive, IBV_EVENT_COMM_EST), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ESTABLISHED), pair.passive);
	rig_fails(rdma_notify(pair.passive, IBV_EVENT_COMM_EST), EISCONN);
	rig_fails(rdma_notify(pair.listener, IBV_EVENT_COMM_EST), EINVAL);
	rig_expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
	rig_end(&pair);
}

TEST(rdma_disconnect__both_sides_are_told_and_wait)
{
	struct rig_pair pair = rig_connect();

	assert_int_equal(rdma_disconnect(pair.active), 0);
	assert_int_equal(pair.active->qp->state, IBV_QPS_ERR);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.passive);
	assert_int_equal(rdma_disconnect(pair.passive), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_DISCONNECTED), pair.active);
	/* Either side may have been first. */
	assert_int_equal(rdma_disconnect(pair.active), 0);
	rig_pass(60 * RIG_SECOND);
	rig_expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
	rig_expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
	rig_end(&pair);
}

TEST(rdma_disconnect__peer_that_is_gone)
{
	struct rig_pair pair = rig_connect();
	struct rdma_cm_event *event;

	rig.loses = true;
	assert_int_equal(rdma_disconnect(pair.active), 0);
	rig_pass(200 * RIG_SECOND);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(event->status, -ETIMEDOUT);
	rdma_ack_cm_event(event);
	rig_expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
	rig.loses = false;
	rig_end(&pair);
}

TEST(rdma_disconnect__wrong_states)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_disconnect(NULL), EINVAL);
	rig_fails(rdma_disconnect(id), EINVAL);
	rdma_destroy_id(id);
	id = rig_listen(RDMA_PS_TCP);
	rig_fails(rdma_disconnect(id), EINVAL);
	rdma_destroy_id(id);
}

static void ask_for_service(enum rdma_port_space ps)
{
	struct rdma_conn_param param = {.private_data = "ask", .private_data_len = 3};
	struct rig_pair pair = {.listener = rig_listen(ps), .active = rig_resolve(ps)};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(pair.active, &param), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(event->param.ud.private_data_len, ID_SIDR_DATA);
	assert_memory_equal(event->param.ud.private_data, "ask\0", 4);
	pair.passive = event->id;
	rdma_ack_cm_event(event);
	param.qp_num = 77;
	assert_int_equal(rdma_accept(pair.passive, &param), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(event->id, pair.active);
	assert_int_equal(event->param.ud.qp_num, 77);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.private_data_len, CM_SIDR_REP_PRIVATE);
	assert_int_equal(event->param.ud.ah_attr.port_num, 1);
	rdma_ack_cm_event(event);
	rig_end(&pair);
}

TEST(rdma_connect__datagram_service_tells_queue_pair_and_key)
{
	ask_for_service(RDMA_PS_UDP);
	ask_for_service(RDMA_PS_IPOIB);
}

/* The same port number of another space is another service. */
TEST(rdma_connect__datagram_services_of_two_spaces)
{
	struct rdma_cm_id *listener = rig_listen(RDMA_PS_UDP), *id = rig_resolve(RDMA_PS_IPOIB);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(id, NULL), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(event->status, CM_SIDR_UNSUPPORTED_SERVICE);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
}

TEST(rdma_reject__datagram_service_is_unreachable)
{
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_UDP),
				.active = rig_resolve(RDMA_PS_UDP)};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(pair.active, NULL), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(rdma_reject(pair.passive, "no", 2), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(event->status, CM_SIDR_REJECTED);
	rdma_ack_cm_event(event);
	rig_end(&pair);
}

TEST(connect_transport__of_each_type)
{
	static const struct {
		enum ibv_qp_type type;
		enum cm_transport transport;
	} cases[] = {{IBV_QPT_RC, CM_TRANSPORT_RC},
		     {IBV_QPT_UC, CM_TRANSPORT_UC},
		     {IBV_QPT_XRC_SEND, CM_TRANSPORT_EXTENDED},
		     {IBV_QPT_XRC_RECV, CM_TRANSPORT_EXTENDED}};
	struct rdma_cm_id *id = rig_create(RDMA_PS_IB);

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		id->qp_type = cases[i].type;
		assert_int_equal(connect_transport(cm_id_of(id)), cases[i].transport);
	}
	rdma_destroy_id(id);
}
