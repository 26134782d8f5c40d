/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/rdma_listen.c. */
#include <malloc.h>

#include "rdmacm_rig.h"
#include "sanitizer.h"

#define REPEATED   (7 * RIG_SECOND) /* a REQ has been repeated once more */
#define BACKLOG	   64
#define FLOOD	   40000
#define FLOOD_HEAP (1 << 20) /* most bytes; the filter for repeated requests has 256 KiB */

TEST_FIXTURE(rig_set_up, rig_tear_down);

static void connect_as(struct rdma_cm_id *id, struct sockaddr *address, uint32_t qp_num)
{
	struct rdma_conn_param param = {.qp_num = qp_num};

	assert_int_equal(rdma_resolve_addr(id, NULL, address, 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	assert_int_equal(rdma_connect(id, &param), 0);
}

static void connect_to(struct rdma_cm_id *id, struct sockaddr *address)
{
	connect_as(id, address, 5);
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

/* A program can connect to a peer's link-local address only if it has the scope. */
TEST(rdma_get_peer_addr__link_local_address_has_its_scope)
{
	struct rdma_cm_id *listener = listen_at(rig_address("::", RIG_PORT)), *passive;
	struct rdma_cm_id *active = rig_create(RDMA_PS_TCP);

	connect_to(active, rig_link_local(1, RIG_PORT, RIG_IFINDEX + 1));
	passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(((struct sockaddr_in6 *)rdma_get_peer_addr(passive))->sin6_scope_id,
			 RIG_IFINDEX + 1);
	assert_int_equal(((struct sockaddr_in6 *)rdma_get_local_addr(passive))->sin6_scope_id,
			 RIG_IFINDEX + 1);
	rdma_destroy_id(passive);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(active);
	active = rig_create(RDMA_PS_TCP);
	connect_to(active, rig_ipv6(1, RIG_PORT));
	passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(((struct sockaddr_in6 *)rdma_get_peer_addr(passive))->sin6_scope_id, 0);
	rdma_destroy_id(passive);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(active);
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

/* Only this host's packets reach a listener of ::1. */
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

/* Linux rejects such a request as well, but with reason 28. */
TEST(rdma_listen__requests_of_another_transport_service)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UC,
					.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct rdma_cm_id *listener = listen_at(rig_ipv4(1, RIG_PORT));
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_REJECTED);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->status, CM_REJ_INVALID_TRANSPORT_TYPE);
	rdma_ack_cm_event(event);
	rdma_destroy_qp(id);
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

/* The same holds when the program takes the event itself. */
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

/* A listener that the program does not look after, and ids that ask it for connections. */
static struct {
	struct rdma_event_channel *channel; /* the listener's */
	struct rdma_cm_id *listener;
	struct rdma_cm_id *active[4];
	struct rdma_cm_id *passive[4]; /* ids of requests that are read */
	unsigned int read;
} busy;

static void busy_begin(int backlog, unsigned int count)
{
	memset(&busy, 0, sizeof(busy));
	busy.channel = rig_create_channel();
	assert_int_equal(rdma_create_id(busy.channel, &busy.listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(busy.listener, rig_ipv4(1, RIG_PORT)), 0);
	assert_int_equal(rdma_listen(busy.listener, backlog), 0);
	for (unsigned int i = 0; i < count; i++) {
		busy.active[i] = rig_create(RDMA_PS_TCP);
		connect_as(busy.active[i], rig_ipv4(1, RIG_PORT), 5 + i);
	}
	rig_pass(0);
}

static void busy_read(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = rig_event_of(channel, RDMA_CM_EVENT_CONNECT_REQUEST);

	busy.passive[busy.read++] = event->id;
	rdma_ack_cm_event(event);
}

static void busy_end(void)
{
	for (unsigned int i = 0; i < RTE_DIM(busy.active) && busy.active[i]; i++)
		rdma_destroy_id(busy.active[i]);
	for (unsigned int i = 0; i < busy.read; i++)
		rdma_destroy_id(busy.passive[i]);
	rdma_destroy_id(busy.listener);
	rdma_destroy_event_channel(busy.channel);
}

/* Requests beyond the backlog are not answered, and come again when the program has read one. */
TEST(rdma_listen__backlog_counts_unread_requests)
{
	busy_begin(1, 3);
	for (int i = 0; i < 3; i++) {
		busy_read(busy.channel);
		rig_no_event(busy.channel);
		rig_pass(REPEATED);
	}
	rig_no_event(busy.channel);
	rig_no_event(rig_channel);
	busy_end();
}

/* Unread ones keep their places however long it takes; then each place is given back once. */
TEST(rdma_listen__backlog_of_two)
{
	busy_begin(2, 4);
	rig_pass(2 * REPEATED);
	busy_read(busy.channel);
	busy_read(busy.channel);
	rig_no_event(busy.channel);
	rdma_destroy_id(busy.passive[--busy.read]);
	rig_pass(REPEATED);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	busy_read(busy.channel);
	busy_read(busy.channel);
	rig_no_event(busy.channel);
	busy_end();
}

/* The backlog is the id's: a listener on all devices has one, not one on each device. */
TEST(rdma_listen__backlog_of_all_devices)
{
	struct rdma_cm_id *ids[RIG_DEVICES];
	struct rdma_cm_event *event;

	busy_begin(1, 0);
	rdma_destroy_id(busy.listener);
	assert_int_equal(rdma_create_id(busy.channel, &busy.listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(busy.listener, rig_address("0.0.0.0", RIG_PORT)), 0);
	assert_int_equal(rdma_listen(busy.listener, 1), 0);
	for (int i = 0; i < RIG_DEVICES; i++) {
		ids[i] = rig_create(RDMA_PS_TCP);
		connect_as(ids[i], rig_ipv4(i, RIG_PORT), 5 + (uint32_t)i);
	}
	rig_pass(0);
	for (int i = 0; i < RIG_DEVICES; i++) {
		event = rig_event_of(busy.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		assert_int_equal(event->param.conn.qp_num, 5 + i);
		rdma_destroy_id(event->id);
		rdma_ack_cm_event(event);
		rig_no_event(busy.channel);
		rig_pass(REPEATED);
		rig_expect(RDMA_CM_EVENT_REJECTED);
		rdma_destroy_id(ids[i]);
	}
	busy_end();
}

/* The listener's end rejects the request that is unread; the next listener has its whole backlog.
 */
TEST(rdma_listen__backlog_of_the_next_listener)
{
	busy_begin(1, 2);
	rdma_destroy_id(busy.listener);
	rig_expect(RDMA_CM_EVENT_REJECTED);
	assert_int_equal(rdma_create_id(busy.channel, &busy.listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(busy.listener, rig_ipv4(1, RIG_PORT)), 0);
	assert_int_equal(rdma_listen(busy.listener, 1), 0);
	rig_pass(REPEATED);
	busy_read(busy.channel);
	rig_no_event(busy.channel);
	busy_end();
}

TEST(rdma_listen__backlog_moves_with_the_listener)
{
	struct rdma_event_channel *other = rig_create_channel();

	busy_begin(1, 3);
	assert_int_equal(rdma_migrate_id(busy.listener, other), 0);
	rig_pass(REPEATED);
	busy_read(other);
	rig_no_event(other);
	rig_pass(REPEATED);
	busy_read(other);
	rig_no_event(other);
	busy_end();
	rdma_destroy_event_channel(other);
}

TEST(rdma_get_request__gives_a_place_back)
{
	struct rdma_cm_id *active[2], *id;

	listen_synchronously();
	for (unsigned int i = 0; i < 2; i++) {
		active[i] = rig_create(RDMA_PS_TCP);
		connect_as(active[i], rig_ipv4(1, RIG_PORT), 5 + i);
	}
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(rdma_get_request(server, &id), 0);
		assert_int_equal(id->event->param.conn.qp_num, 5 + i);
		assert_int_equal(rdma_destroy_id(id), 0);
		rig_pass(REPEATED);
		rig_expect(RDMA_CM_EVENT_REJECTED);
	}
	rdma_destroy_id(server);
	rdma_destroy_id(active[0]);
	rdma_destroy_id(active[1]);
}

/* A REQ of a host that there is not, and its end: it is half-open no more, but its event is
 * unread. */
static void come_made_up(struct cm_device *device, uint32_t number)
{
	struct gsi_address from = {.vlan_id = -1, .mac_known = true};
	const struct cm_ip ip = {.version = 4,
				 .src = {[10] = 0xff, 0xff, 10, 9},
				 .dst = {[10] = 0xff, 0xff, 10, 0, 0, 2}};
	struct cm_mad req = {.message = CM_REQ, .tid = number, .local_id = number};
	const rte_be64_t guid = 0;
	const struct cm_mad rej = {.message = CM_REJ,
				   .local_id = number,
				   .rej = {.reason = CM_REJ_TIMEOUT,
					   .info = (const uint8_t *)&guid,
					   .info_len = sizeof(guid)}};
	uint8_t header[CM_IP_LEN], bytes[MAD_LEN];
	uint64_t now_ns;
	struct cm *cm;

	assert_int_equal(cm_ip_build(&ip, header), 0);
	memcpy(from.local, ip.dst, sizeof(from.local));
	memcpy(from.remote, ip.src, sizeof(from.remote));
	req.req = (struct cm_req){.service_id = address_service(RDMA_PS_TCP, rig_ipv4(1, RIG_PORT)),
				  .qpn = number,
				  .mtu = 3,
				  .pkey = 0xffff};
	memcpy(req.req.primary.local_gid, from.remote, sizeof(from.remote));
	memcpy(req.req.primary.remote_gid, from.local, sizeof(from.local));
	req.private_data = header;
	req.private_len = sizeof(header);
	cm = agent_enter(device->agent, &now_ns);
	assert_int_equal(cm_mad_build(&req, bytes), 0);
	cm_receive(cm, bytes, sizeof(bytes), &from, now_ns);
	agent_leave(device->agent);
	cm = agent_enter(device->agent, &now_ns);
	assert_int_equal(cm_mad_build(&rej, bytes), 0);
	cm_receive(cm, bytes, sizeof(bytes), &from, now_ns);
	agent_leave(device->agent);
}

/* The program never reads its events. */
TEST(rdma_listen__flood_costs_bounded_memory)
{
	struct cm_device *const *devices;
	struct rdma_cm_event *event;
	unsigned int requests = 0;
	size_t heap;

	assert_int_equal(devices_get(&devices), RIG_DEVICES);
	busy_begin(BACKLOG, 0);
	heap = mallinfo2().uordblks;
	for (uint32_t i = 0; i < FLOOD; i++)
		come_made_up(devices[1], i + 2);
	heap = mallinfo2().uordblks - heap;
	print_message("%u REQs: %zu bytes\n", FLOOD, heap);
	/* The address sanitizer's allocator has no such count. */
	assert_true(ADDRESS_SANITIZER || heap < FLOOD_HEAP);
	/* Take the backlog, and the requests that the filter counts as repeated. */
	while (rdma_get_cm_event(busy.channel, &event) == 0) {
		rdma_destroy_id(event->id);
		rdma_ack_cm_event(event);
		requests++;
	}
	assert_in_range(requests, BACKLOG, BACKLOG * 5 / 4);
	busy_end();
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
