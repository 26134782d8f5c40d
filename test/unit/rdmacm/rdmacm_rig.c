/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids, events and connections for the tests, and what must be left of them. */
#include "rdmacm_rig.h"

#include <fcntl.h>
#include <pthread.h>

#include "device/device.h"
#include "open_fds.h"

#define ADDRESSES_MAX 16

struct rdma_event_channel *rig_channel;

static unsigned int fds;

struct sockaddr *rig_address(const char *text, uint16_t port)
{
	static struct sockaddr_storage addresses[ADDRESSES_MAX];
	static unsigned int next;
	struct sockaddr_storage *address = &addresses[next++ % ADDRESSES_MAX];
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
	struct sockaddr_in *in = (struct sockaddr_in *)address;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	return (struct sockaddr *)address;
}

struct sockaddr *rig_ipv4(int device, uint16_t port)
{
	return rig_address(device == 0 ? "10.0.0.1" : "10.0.0.2", port);
}

struct sockaddr *rig_ipv6(int device, uint16_t port)
{
	return rig_address(device == 0 ? "fd00::1" : "fd00::2", port);
}

struct sockaddr *rig_link_local(int device, uint16_t port, uint32_t scope)
{
	struct sockaddr *address = rig_address(device == 0 ? "fe80::1" : "fe80::2", port);

	((struct sockaddr_in6 *)address)->sin6_scope_id = scope;
	return address;
}

struct rdma_event_channel *rig_create_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	assert_non_null(channel);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	return channel;
}

static void forget_hooks(void)
{
	rig.unreachable = false;
	rig.silent = false;
	rig.loses = false;
	rig.wait_ns = 0;
	rig.waiting = NULL;
	rig.locking = NULL;
	rig.routing = NULL;
}

int rig_set_up(TEST_STATE)
{
	struct cm_device *const *devices;

	forget_hooks();
	rig.now_ns += RIG_SECOND;
	/* Count the descriptors that stay open for the life of a process. */
	assert_int_equal(devices_get(&devices), RIG_DEVICES);
	fds = fds_count();
	rig_channel = rig_create_channel();
	return 0;
}

/* Connections that nobody has any more end by themselves. */
static void check_agents(void)
{
	struct cm_device *const *devices;
	uint64_t now_ns;

	assert_int_equal(devices_get(&devices), RIG_DEVICES);
	for (int i = 0; i < RIG_DEVICES; i++) {
		struct cm *cm = agent_enter(devices[i]->agent, &now_ns);

		assert_int_equal(cm_conn_count(cm), 0);
		agent_leave(devices[i]->agent);
		assert_int_equal(rig.devices[i]->qps, 0);
	}
}

int rig_tear_down(TEST_STATE)
{
	forget_hooks();
	rdma_destroy_event_channel(rig_channel);
	rig_pass(200 * RIG_SECOND);
	check_agents();
	assert_int_equal(rig.claims, 0);
	assert_int_equal(rig.joined, 0);
	assert_int_equal(fds_count(), fds);
	return 0;
}

struct rdma_cm_id *rig_create(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(rig_channel, &id, NULL, ps), 0);
	return id;
}

struct rdma_cm_event *rig_event_of(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	rig_pass(0);
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

struct rdma_cm_id *rig_expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = rig_event_of(rig_channel, type);
	struct rdma_cm_id *id = event->id;

	assert_int_equal(rdma_ack_cm_event(event), 0);
	return id;
}

void rig_no_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	rig_pass(0);
	rig_fails(rdma_get_cm_event(channel, &event), EAGAIN);
}

struct rdma_cm_id *rig_listen(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = rig_create(ps);

	assert_int_equal(rdma_bind_addr(id, rig_ipv4(1, RIG_PORT)), 0);
	assert_int_equal(rdma_listen(id, 8), 0);
	return id;
}

struct rdma_cm_id *rig_resolve(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = rig_create(ps);

	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ROUTE_RESOLVED), id);
	return id;
}

struct ibv_qp_init_attr rig_qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

void rig_create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = rig_qp_attr();

	attr.qp_type = id->qp_type;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static struct cm_id *tried;

static void try_qp_lock(void)
{
	rig.qp_lock_rc = pthread_mutex_trylock(&tried->qp_lock);
	if (rig.qp_lock_rc == 0)
		pthread_mutex_unlock(&tried->qp_lock);
}

void rig_try_qp_lock(struct rdma_cm_id *id)
{
	tried = cm_id_of(id);
	rig.qp_lock_rc = 0;
	rig.locking = try_qp_lock;
}

struct rig_pair rig_ask(void)
{
	struct rdma_conn_param param = {.responder_resources = 3,
					.initiator_depth = 2,
					.retry_count = 5,
					.rnr_retry_count = 6,
					.private_data = "hello",
					.private_data_len = 5};
	struct rig_pair pair = {.listener = rig_listen(RDMA_PS_TCP)};

	pair.active = rig_resolve(RDMA_PS_TCP);
	rig_create_qp(pair.active);
	assert_int_equal(rdma_connect(pair.active, &param), 0);
	pair.passive = rig_expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	return pair;
}

struct rig_pair rig_connect(void)
{
	struct rig_pair pair = rig_ask();

	rig_create_qp(pair.passive);
	assert_int_equal(rdma_accept(pair.passive, NULL), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ESTABLISHED), pair.active);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ESTABLISHED), pair.passive);
	return pair;
}

static void end_id(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(id), 0);
}

void rig_end(struct rig_pair *pair)
{
	end_id(pair->active);
	end_id(pair->passive);
	end_id(pair->listener);
}
