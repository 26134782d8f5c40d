/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/id.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(rdma_create_id__port_spaces)
{
	const enum rdma_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB};
	struct rdma_cm_id *id;

	for (size_t i = 0; i < RTE_DIM(spaces); i++) {
		assert_int_equal(rdma_create_id(rig_channel, &id, &rig, spaces[i]), 0);
		assert_ptr_equal(id->context, &rig);
		assert_ptr_equal(id->channel, rig_channel);
		assert_int_equal(id->ps, spaces[i]);
		assert_null(id->verbs);
		rdma_destroy_id(id);
	}
	rig_fails(rdma_create_id(rig_channel, &id, NULL, 0), EINVAL);
	rig_fails(rdma_create_id(rig_channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
}

TEST(rdma_destroy_id__no_id)
{
	rig_fails(rdma_destroy_id(NULL), EINVAL);
}

TEST(rdma_destroy_id__in_every_state)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};
	struct rig_pair pair;

	rdma_destroy_id(id);
	id = rig_create(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, 0)), 0);
	rdma_destroy_id(id);

	rig.silent = true;
	id = rig_create(RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	rdma_destroy_id(id);
	rig.silent = false;
	rig_pass(2 * RIG_SECOND);
	rig_no_event(rig_channel);

	id = rig_create(RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	rdma_destroy_id(id);
	rdma_destroy_id(rig_resolve(RDMA_PS_TCP));
	id = rig_resolve(RDMA_PS_TCP);
	assert_int_equal(rdma_connect(id, &param), 0);
	rdma_destroy_id(id);
	rig_no_event(rig_channel);
	pair = rig_ask();
	rig_end(&pair);
	pair = rig_connect();
	rig_end(&pair);
	pair = rig_connect();
	assert_int_equal(rdma_disconnect(pair.active), 0);
	rig_end(&pair);
	rig_no_event(rig_channel);
}

/* A request that the program has never seen is rejected with its listener. */
TEST(rdma_destroy_id__listener_rejects_unread_requests)
{
	struct rdma_cm_id *listener = rig_listen(RDMA_PS_TCP), *id = rig_resolve(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_connect(id, &param), 0);
	rig_pass(0);
	rdma_destroy_id(listener);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_REJECTED);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->status, CM_REJ_CONSUMER_DEFINED);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

TEST(rdma_migrate_id__takes_unread_events_along)
{
	struct rdma_event_channel *other = rig_create_channel();
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	assert_ptr_equal(id->channel, other);
	rig_no_event(rig_channel);
	rdma_ack_cm_event(rig_event_of(other, RDMA_CM_EVENT_ADDR_RESOLVED));
	rdma_destroy_id(id);
	rdma_destroy_event_channel(other);
}

/* A request's id is told of by its listener's event, and so goes where that goes. */
TEST(rdma_migrate_id__listener_takes_unread_requests_along)
{
	struct rdma_event_channel *old = rig_create_channel(), *other = rig_create_channel();
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_event *event;
	struct rig_pair pair;

	assert_int_equal(rdma_create_id(old, &pair.listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(pair.listener, rig_ipv4(1, RIG_PORT)), 0);
	assert_int_equal(rdma_listen(pair.listener, 8), 0);
	pair.active = rig_resolve(RDMA_PS_TCP);
	assert_int_equal(rdma_connect(pair.active, &param), 0);
	rig_pass(0);
	assert_int_equal(rdma_migrate_id(pair.listener, other), 0);
	rdma_destroy_event_channel(old);
	event = rig_event_of(other, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair.passive = event->id;
	assert_ptr_equal(pair.passive->channel, other);
	rdma_ack_cm_event(event);
	rdma_destroy_id(pair.active);
	pair.active = NULL;
	event = rig_event_of(other, RDMA_CM_EVENT_REJECTED);
	assert_ptr_equal(event->id, pair.passive);
	rdma_ack_cm_event(event);
	rig_end(&pair);
	rdma_destroy_event_channel(other);
}

TEST(rdma_migrate_id__to_synchronous_and_back)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	assert_ptr_not_equal(id->channel, rig_channel);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	assert_int_equal(rdma_migrate_id(id, rig_channel), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	rdma_destroy_id(id);
	rig_fails(rdma_migrate_id(NULL, NULL), EINVAL);
}

/* The manual page forbids it, but nothing may be written to what is freed. */
TEST(rdma_destroy_event_channel__before_its_ids)
{
	struct rdma_event_channel *channel = rig_create_channel();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	rdma_destroy_event_channel(channel);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	rdma_destroy_id(id);
}
