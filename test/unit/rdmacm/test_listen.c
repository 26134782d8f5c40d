/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/listen.c. */
#include "rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static void connect_to(struct rdma_cm_id *id, struct sockaddr *address)
{
	struct rdma_conn_param param = {.qp_num = 5};

	assert_int_equal(rdma_resolve_addr(id, NULL, address, 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	assert_int_equal(rdma_connect(id, &param), 0);
}

/* Connect to an address; which listener gets the request. */
static struct rdma_cm_id *reach(struct sockaddr *address)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *listener;
	struct rdma_cm_event *event;

	connect_to(id, address);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	listener = event->listen_id;
	rdma_destroy_id(event->id);
	rdma_ack_cm_event(event);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(id);
	return listener;
}

static struct rdma_cm_id *listen_at(struct sockaddr *address)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(id, address), 0);
	assert_int_equal(rdma_listen(id, 8), 0);
	return id;
}

TEST(rdma_listen__any_address_is_every_device)
{
	struct rdma_cm_id *listener = listen_at(rig_address("0.0.0.0", RIG_PORT));

	assert_ptr_equal(reach(rig_ipv4(0, RIG_PORT)), listener);
	assert_ptr_equal(reach(rig_ipv4(1, RIG_PORT)), listener);
	rdma_destroy_id(listener);
}

TEST(rdma_listen__any_ipv6_address_is_both_versions)
{
	struct rdma_cm_id *listener = listen_at(rig_address("::", RIG_PORT));

	assert_ptr_equal(reach(rig_ipv4(1, RIG_PORT)), listener);
	assert_ptr_equal(reach(rig_ipv6(1, RIG_PORT)), listener);
	rdma_destroy_id(listener);
}

TEST(rdma_listen__unbound_id_gets_a_port)
{
	struct rdma_cm_id *listener = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_listen(listener, 0), 0);
	assert_ptr_equal(reach(rig_ipv4(1, ntohs(rdma_get_src_port(listener)))), listener);
	rdma_destroy_id(listener);
}

TEST(rdma_listen__link_local_address)
{
	struct rdma_cm_id *listener = listen_at(rig_link_local(1, RIG_PORT, RIG_IFINDEX + 1));

	assert_ptr_equal(reach(rig_link_local(1, RIG_PORT, RIG_IFINDEX + 1)), listener);
	rdma_destroy_id(listener);
}

/* The host's own address and 127.0.0.1 are two addresses, whichever listener came first. */
TEST(rdma_listen__loopback_beside_the_devices_address)
{
	for (int order = 0; order < 2; order++) {
		struct rdma_cm_id *first, *second, *own, *loopback;

		first = listen_at(order == 0 ? rig_address("127.0.0.1", RIG_PORT)
					     : rig_ipv4(0, RIG_PORT));
		second = listen_at(order == 0 ? rig_ipv4(0, RIG_PORT)
					      : rig_address("127.0.0.1", RIG_PORT));
		loopback = order == 0 ? first : second;
		own = order == 0 ? second : first;
		assert_ptr_equal(reach(rig_address("127.0.0.1", RIG_PORT)), loopback);
		assert_ptr_equal(reach(rig_ipv4(0, RIG_PORT)), own);
		rdma_destroy_id(first);
		rdma_destroy_id(second);
	}
}

/* Each side of a connection to 127.0.0.1 sees that address, as on Linux. */
TEST(rdma_listen__loopback_is_what_both_sides_see)
{
	struct rdma_cm_id *listener = listen_at(rig_address("127.0.0.1", RIG_PORT));
	struct rdma_cm_id *active = rig_create(RDMA_PS_TCP), *passive;

	connect_to(active, rig_address("127.0.0.1", RIG_PORT));
	passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(passive->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_int_equal(passive->route.addr.dst_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_int_equal(rdma_get_dst_port(passive), rdma_get_src_port(active));
	rdma_destroy_id(active);
	rdma_destroy_id(passive);
	rdma_destroy_id(listener);
}

/* Nobody else's packets reach a listener of ::1. */
TEST(rdma_listen__loopback_is_for_this_host)
{
	struct rdma_cm_id *listener = listen_at(rig_address("127.0.0.1", RIG_PORT));
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_event *event;

	assert_int_equal(rdma_bind_addr(id, rig_ipv4(1, 0)), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(0, RIG_PORT), 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(id, &param), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, CM_REJ_INVALID_SERVICE_ID);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
}

TEST(rdma_listen__wrong_states)
{
	struct rdma_cm_id *id = rig_listen(RDMA_PS_TCP), *other = rig_resolve(RDMA_PS_TCP);

	rig_fails(rdma_listen(NULL, 1), EINVAL);
	rig_fails(rdma_listen(id, 1), EINVAL);
	rig_fails(rdma_listen(other, 1), EINVAL);
	rig_fails(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1), EINVAL);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
}

static struct rdma_cm_id *server; /* synchronous */

static void listen_synchronously(void)
{
	assert_int_equal(rdma_create_id(NULL, &server, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(server, rig_ipv4(1, RIG_PORT)), 0);
	assert_int_equal(rdma_listen(server, 1), 0);
}

TEST(rdma_get_request__gives_a_synchronous_id)
{
	struct rdma_cm_id *id, *active = rig_create(RDMA_PS_TCP);

	listen_synchronously();
	connect_to(active, rig_ipv4(1, RIG_PORT));
	assert_int_equal(rdma_get_request(server, &id), 0);
	assert_non_null(id->event);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(id->event->param.conn.qp_num, 5);
	assert_ptr_not_equal(id->channel, server->channel);
	assert_int_equal(rdma_reject(id, NULL, 0), 0);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(id);
	rdma_destroy_id(server);
	rdma_destroy_id(active);
}

/* As well where the program takes the event itself. */
TEST(rdma_get_cm_event__id_of_a_synchronous_listener_is_synchronous)
{
	struct rdma_cm_id *active = rig_create(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	listen_synchronously();
	connect_to(active, rig_ipv4(1, RIG_PORT));
	event = rig_event_of(server->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_ptr_not_equal(event->id->channel, server->channel);
	assert_true(cm_id_of(event->id)->sync);
	rdma_destroy_id(event->id);
	rdma_ack_cm_event(event);
	rdma_destroy_id(server);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(active);
}

/* Requests that nobody has read end with their listener, whatever has happened to them since. */
TEST(listen_end__unread_request_whose_peer_has_gone)
{
	struct rdma_cm_id *listener = rig_listen(RDMA_PS_TCP), *active = rig_create(RDMA_PS_TCP);

	connect_to(active, rig_ipv4(1, RIG_PORT));
	rig_pass(0);
	rdma_destroy_id(active);
	rig_pass(0);
	rdma_destroy_id(listener);
	rig_no_event(rig_channel);
}

TEST(rdma_get_request__wrong_calls)
{
	struct rdma_cm_id *id, *listener = rig_listen(RDMA_PS_TCP);

	rig_fails(rdma_get_request(NULL, &id), EINVAL);
	rig_fails(rdma_get_request(listener, &id), EINVAL);
	rdma_destroy_id(listener);
	listen_synchronously();
	rig_fails(rdma_get_request(server, NULL), EINVAL);
	rdma_destroy_id(server);
}
