/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong programs of rdma_cm. Both sides are in this process, and have one event channel. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>

#include "zoo.h"

#define PORT 7471

static struct rdma_event_channel *channel;

static struct sockaddr *at(const char *ip, uint16_t port)
{
	static struct sockaddr_in addresses[4];
	static unsigned int next;
	struct sockaddr_in *in = &addresses[next++ % 4];

	*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	must(inet_pton(AF_INET, ip, &in->sin_addr) == 1, "inet_pton");
	return (struct sockaddr *)in;
}

static struct sockaddr *own(void)
{
	return at("10.0.0.1", PORT);
}

static struct rdma_cm_id *create(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	if (!channel)
		channel = rdma_create_event_channel();
	must(channel && rdma_create_id(channel, &id, NULL, ps) == 0, "rdma_create_id");
	return id;
}

/* Take the next event. Return its id. */
static struct rdma_cm_id *await(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
	must(event->event == type, rdma_event_str(event->event));
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static struct rdma_cm_id *listen_on(enum rdma_port_space ps, uint16_t port)
{
	struct rdma_cm_id *id = create(ps);

	must(rdma_bind_addr(id, at("10.0.0.1", port)) == 0, "rdma_bind_addr");
	must(rdma_listen(id, 4) == 0, "rdma_listen");
	return id;
}

static struct rdma_cm_id *resolve(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = create(ps);

	must(rdma_resolve_addr(id, NULL, own(), 1000) == 0, "rdma_resolve_addr");
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(rdma_resolve_route(id, 1000) == 0, "rdma_resolve_route");
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static struct ibv_qp_init_attr qp_attr(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};
}

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

	must(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");
}

/* An active side with a queue pair, and its request. */
static struct rdma_cm_id *ask(void)
{
	struct rdma_cm_id *id = resolve(RDMA_PS_TCP);

	create_qp(id);
	must(rdma_connect(id, NULL) == 0, "rdma_connect");
	return id;
}

static void no_listener(void)
{
	if (!wrong)
		listen_on(RDMA_PS_TCP, PORT);
	ask();
	await(wrong ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void listener_on_other_port(void)
{
	listen_on(RDMA_PS_TCP, wrong ? PORT + 1 : PORT);
	ask();
	await(wrong ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void rejected(void)
{
	struct rdma_cm_id *passive;

	listen_on(RDMA_PS_TCP, PORT);
	ask();
	passive = await(RDMA_CM_EVENT_CONNECT_REQUEST);
	if (wrong) {
		must(rdma_reject(passive, NULL, 0) == 0, "rdma_reject");
		await(RDMA_CM_EVENT_REJECTED);
		return;
	}
	create_qp(passive);
	must(rdma_accept(passive, NULL) == 0, "rdma_accept");
	await(RDMA_CM_EVENT_ESTABLISHED);
}

/* Two connections with one queue pair number. */
static void same_queue_pair(void)
{
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_id *first, *second;

	listen_on(RDMA_PS_TCP, PORT);
	first = resolve(RDMA_PS_TCP);
	second = resolve(RDMA_PS_TCP);
	must(rdma_connect(first, &param) == 0, "rdma_connect");
	await(RDMA_CM_EVENT_CONNECT_REQUEST);
	if (!wrong)
		param.qp_num = 6;
	must(rdma_connect(second, &param) == 0, "rdma_connect");
	await(wrong ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void no_service(void)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id;

	if (!wrong)
		listen_on(RDMA_PS_UDP, PORT);
	id = resolve(RDMA_PS_UDP);
	must(rdma_connect(id, &param) == 0, "rdma_connect");
	await(wrong ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_CONNECT_REQUEST);
}

/* The passive side learns that the connection is over. */
static void peer_disconnects(void)
{
	struct rdma_cm_id *active, *passive;

	listen_on(RDMA_PS_TCP, PORT);
	active = ask();
	passive = await(RDMA_CM_EVENT_CONNECT_REQUEST);
	create_qp(passive);
	must(rdma_accept(passive, NULL) == 0, "rdma_accept");
	await(RDMA_CM_EVENT_ESTABLISHED);
	await(RDMA_CM_EVENT_ESTABLISHED);
	if (!wrong)
		return;
	must(rdma_disconnect(active) == 0, "rdma_disconnect");
	await(RDMA_CM_EVENT_DISCONNECTED);
}

static void no_such_host(void)
{
	struct rdma_cm_id *id = create(RDMA_PS_TCP);

	must(rdma_resolve_addr(id, NULL, wrong ? at("10.0.0.77", PORT) : own(), 50) == 0,
	     "rdma_resolve_addr");
	await(wrong ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void no_such_network(void)
{
	struct rdma_cm_id *id = create(RDMA_PS_TCP);

	must(rdma_resolve_addr(id, NULL, wrong ? at("192.0.2.1", PORT) : own(), 50) == 0,
	     "rdma_resolve_addr");
	await(wrong ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void foreign_address(void)
{
	struct rdma_cm_id *id = create(RDMA_PS_TCP);

	must((rdma_bind_addr(id, wrong ? at("10.0.0.9", PORT) : own()) != 0) == wrong,
	     "rdma_bind_addr");
}

static void port_in_use(void)
{
	struct rdma_cm_id *id = create(RDMA_PS_TCP);

	listen_on(RDMA_PS_TCP, wrong ? PORT : PORT + 1);
	must((rdma_bind_addr(id, own()) != 0) == wrong, "rdma_bind_addr");
}

static void too_early_connect(void)
{
	struct rdma_conn_param param = {.qp_num = 5};
	struct rdma_cm_id *id;

	id = wrong ? create(RDMA_PS_TCP) : resolve(RDMA_PS_TCP);
	if (wrong) {
		must(rdma_resolve_addr(id, NULL, own(), 1000) == 0, "rdma_resolve_addr");
		await(RDMA_CM_EVENT_ADDR_RESOLVED);
	}
	must((rdma_connect(id, &param) != 0) == wrong, "rdma_connect");
}

static void too_much_private_data(void)
{
	uint8_t data[57] = {0};
	struct rdma_conn_param param = {
		.qp_num = 5, .private_data = data, .private_data_len = wrong ? 57 : 56};
	struct rdma_cm_id *id = resolve(RDMA_PS_TCP);

	must((rdma_connect(id, &param) != 0) == wrong, "rdma_connect");
}

static void too_much_private_data_in_accept(void)
{
	uint8_t data[197] = {0};
	struct rdma_conn_param param = {.private_data = data,
					.private_data_len = wrong ? 197 : 196};
	struct rdma_cm_id *passive;

	listen_on(RDMA_PS_TCP, PORT);
	ask();
	passive = await(RDMA_CM_EVENT_CONNECT_REQUEST);
	create_qp(passive);
	must((rdma_accept(passive, &param) != 0) == wrong, "rdma_accept");
}

static void too_many_reads(void)
{
	struct rdma_conn_param param = {.qp_num = 5, .initiator_depth = wrong ? 200 : 1};
	struct rdma_cm_id *id = resolve(RDMA_PS_TCP);

	must((rdma_connect(id, &param) != 0) == wrong, "rdma_connect");
}

static void accepted_twice(void)
{
	struct rdma_cm_id *passive;

	listen_on(RDMA_PS_TCP, PORT);
	ask();
	passive = await(RDMA_CM_EVENT_CONNECT_REQUEST);
	create_qp(passive);
	must(rdma_accept(passive, NULL) == 0, "rdma_accept");
	if (wrong)
		must(rdma_accept(passive, NULL) != 0, "rdma_accept");
}

static void no_queue_pair(void)
{
	struct rdma_cm_id *id = resolve(RDMA_PS_TCP);

	if (!wrong)
		create_qp(id);
	must((rdma_connect(id, NULL) != 0) == wrong, "rdma_connect");
}

static void queue_pair_before_device(void)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rdma_cm_id *id = wrong ? create(RDMA_PS_TCP) : resolve(RDMA_PS_TCP);

	must((rdma_create_qp(id, NULL, &attr) != 0) == wrong, "rdma_create_qp");
}

static void queue_pair_of_other_type(void)
{
	struct ibv_qp_init_attr attr = qp_attr(wrong ? IBV_QPT_UD : IBV_QPT_RC);
	struct rdma_cm_id *id = resolve(RDMA_PS_TCP);

	must((rdma_create_qp(id, NULL, &attr) != 0) == wrong, "rdma_create_qp");
}

static void too_long_queue_of_id(void)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rdma_cm_id *id = resolve(RDMA_PS_TCP);

	attr.cap.max_send_sge = wrong ? 4096 : 1;
	must((rdma_create_qp(id, NULL, &attr) != 0) == wrong, "rdma_create_qp");
}

static void nothing_to_disconnect(void)
{
	struct rdma_cm_id *id = wrong ? resolve(RDMA_PS_TCP) : ask();

	must((rdma_disconnect(id) != 0) == wrong, "rdma_disconnect");
}

static void no_group(void)
{
	struct rdma_cm_id *id = resolve(RDMA_PS_UDP);

	must((rdma_join_multicast(id, at(wrong ? "10.0.0.9" : "239.0.0.1", 0), NULL) != 0) == wrong,
	     "rdma_join_multicast");
}

static void unknown_name(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *found;

	must((rdma_getaddrinfo(wrong ? "10.0.0.x" : "10.0.0.1", NULL, &hints, &found) != 0) ==
		     wrong,
	     "rdma_getaddrinfo");
}

/* A synchronous id: the call fails with what the event says. */
static void no_listener_of_endpoint(void)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rdma_cm_id *id;

	must(rdma_getaddrinfo("10.0.0.1", "7471", &hints, &found) == 0, "rdma_getaddrinfo");
	must(rdma_create_ep(&id, found, NULL, &attr) == 0, "rdma_create_ep");
	if (wrong)
		must(rdma_connect(id, NULL) != 0 && errno == ECONNREFUSED, "rdma_connect");
}

static void end(int signal)
{
	(void)signal;
	_exit(0);
}

static void event_not_acknowledged(void)
{
	struct rdma_cm_id *id = create(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	must(rdma_resolve_addr(id, NULL, own(), 1000) == 0, "rdma_resolve_addr");
	must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
	if (!wrong)
		rdma_ack_cm_event(event);
	signal(SIGALRM, end);
	alarm(wrong ? 4 : 0);
	must(rdma_destroy_id(id) == 0, "rdma_destroy_id");
}

const struct zoo_case zoo_cm[] = {
	CASE(no_listener),
	CASE(listener_on_other_port),
	CASE(rejected),
	CASE(same_queue_pair),
	CASE(no_service),
	CASE(peer_disconnects),
	CASE(no_such_host),
	CASE(no_such_network),
	CASE(foreign_address),
	CASE(port_in_use),
	CASE(too_early_connect),
	CASE(too_much_private_data),
	CASE(too_much_private_data_in_accept),
	CASE(too_many_reads),
	CASE(accepted_twice),
	CASE(no_queue_pair),
	CASE(queue_pair_before_device),
	CASE(queue_pair_of_other_type),
	CASE(too_long_queue_of_id),
	CASE(nothing_to_disconnect),
	CASE(no_group),
	CASE(unknown_name),
	CASE(no_listener_of_endpoint),
	CASE(event_not_acknowledged),
	{0},
};
