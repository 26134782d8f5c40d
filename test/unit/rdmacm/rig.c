/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices on a wire in memory, registered as the only ones. */
#include "rig.h"

#include <fcntl.h>
#include <stdlib.h>

#include "device/device.h"
#include "device/gsi.h"
#include "device/registry.h"
#include "fds.h"
#include "qp/qp.h"
#include "transport/sink.h"

#define FRAMES_MAX    512
#define QPS_MAX	      16
#define ADDRESSES_MAX 16
#define MAC_LEN	      6

/* What drives one device. */
struct driver {
	struct packet_sink sink;
	struct packet_out out;
	bool locked;
	struct qp *attached[QPS_MAX];
};

struct frame {
	uint32_t length;
	uint8_t bytes[PACKET_FRAME_MAX];
};

struct rig rig;
struct rdma_event_channel *rig_channel;

static struct driver drivers[RIG_DEVICES];
static struct frame frames[FRAMES_MAX];
static unsigned int frame_count;
static unsigned int fds;

static const uint8_t macs[RIG_DEVICES][MAC_LEN] = {{0x02, 0, 0, 0, 0, 1}, {0x02, 0, 0, 0, 0, 2}};

static struct packet_out *sink_get(struct packet_sink *sink)
{
	struct driver *driver = container_of(sink, struct driver, sink);

	if (frame_count == FRAMES_MAX)
		return NULL;
	driver->out.frame = frames[frame_count].bytes;
	return &driver->out;
}

static int sink_put(struct packet_sink *sink, struct packet_out *out)
{
	const int len = packet_seal(out);

	(void)sink;
	if (len < 0)
		return len;
	frames[frame_count++].length = (uint32_t)len;
	return 0;
}

static bool run(int index)
{
	struct driver *driver = &drivers[index];
	bool more = gsi_run(rig.devices[index], rig.now_ns, &driver->sink) > 0;

	for (int i = 0; i < QPS_MAX; i++) {
		if (driver->attached[i])
			more |= qp_run(driver->attached[i], rig.now_ns, &driver->sink, 16);
	}
	return more;
}

/* A frame's first bytes are the link address that it goes to. */
static void deliver(const struct frame *frame)
{
	struct qp *qp;

	for (int i = 0; i < RIG_DEVICES && !rig.loses; i++) {
		if (memcmp(frame->bytes, macs[i], MAC_LEN) == 0)
			assert_true(device_receive(rig.devices[i], frame->bytes, frame->length, 0,
						   rig.now_ns, &qp));
	}
}

static void set_locked(bool locked)
{
	for (int i = 0; i < RIG_DEVICES; i++) {
		assert_true(drivers[i].locked != locked);
		drivers[i].locked = locked;
	}
}

/* Turns until nothing moves, each under the engines' locks. */
static void carry(void)
{
	bool more;

	set_locked(true);
	do {
		static struct frame now[FRAMES_MAX];
		unsigned int count;

		more = false;
		for (int i = 0; i < RIG_DEVICES; i++)
			more |= run(i);
		count = frame_count;
		memcpy(now, frames, count * sizeof(now[0]));
		frame_count = 0;
		for (unsigned int i = 0; i < count; i++)
			deliver(&now[i]);
	} while (more || frame_count > 0);
	set_locked(false);
}

void rig_pass(uint64_t ns)
{
	const uint64_t end_ns = rig.now_ns + ns;

	carry();
	while (rig.now_ns < end_ns) {
		uint64_t next_ns = end_ns;

		for (int i = 0; i < RIG_DEVICES; i++)
			next_ns = RTE_MIN(next_ns, gsi_deadline_ns(rig.devices[i]));
		rig.now_ns = RTE_MAX(next_ns, rig.now_ns + 1);
		carry();
	}
}

static void rig_lock(void *engine)
{
	struct driver *driver = engine;

	assert_false(driver->locked);
	driver->locked = true;
}

static void rig_unlock(void *engine)
{
	struct driver *driver = engine;

	assert_true(driver->locked);
	driver->locked = false;
}

static void rig_attach(void *engine, struct qp *qp)
{
	struct driver *driver = engine;

	assert_true(driver->locked);
	for (int i = 0; i < QPS_MAX; i++) {
		if (!driver->attached[i]) {
			driver->attached[i] = qp;
			return;
		}
	}
	fail_msg("too many queue pairs");
}

static void rig_detach(void *engine, struct qp *qp)
{
	struct driver *driver = engine;

	assert_true(driver->locked);
	for (int i = 0; i < QPS_MAX; i++) {
		if (driver->attached[i] == qp)
			driver->attached[i] = NULL;
	}
}

static void rig_kick(void *engine, struct qp *qp)
{
	(void)engine;
	(void)qp;
	carry();
}

static void rig_poll(void *engine)
{
	(void)engine;
	carry();
}

static void rig_polled(void *engine, int n)
{
	(void)engine;
	(void)n;
}

/* Called for each device; once is enough. */
static void rig_wait(void *engine)
{
	if (engine != &drivers[0])
		return;
	rig_pass(rig.wait_ns);
	if (rig.waiting) {
		rig.waiting();
		carry();
	}
}

static uint64_t rig_now(void *engine)
{
	(void)engine;
	return rig.now_ns;
}

static int rig_join(void *engine, const union ibv_gid *gid)
{
	(void)engine;
	(void)gid;
	rig.joined++;
	return 0;
}

static void rig_leave(void *engine, const union ibv_gid *gid)
{
	(void)engine;
	(void)gid;
	rig.joined--;
}

static bool find_mac(const uint8_t gid[GID_LEN], uint8_t mac[MAC_LEN])
{
	for (int i = 0; i < RIG_DEVICES; i++) {
		if (device_find_gid(rig.devices[i], gid) >= 0) {
			memcpy(mac, macs[i], MAC_LEN);
			return true;
		}
	}
	return false;
}

static int rig_resolve_mac(void *engine, uint8_t sgid_index, const union ibv_gid *dgid,
			   uint8_t mac[MAC_LEN])
{
	(void)engine;
	(void)sgid_index;
	return find_mac(dgid->raw, mac) ? 0 : -ETIMEDOUT;
}

static int rig_route(void *engine, uint8_t sgid_index, const union ibv_gid *dgid,
		     struct device_hop *hop)
{
	const struct driver *driver = engine;

	(void)sgid_index;
	assert_false(driver->locked);
	*hop = (struct device_hop){0};
	memcpy(hop->gid, dgid->raw, sizeof(hop->gid));
	return rig.unreachable ? -ENETUNREACH : 0;
}

static bool rig_look(void *engine, uint8_t sgid_index, const uint8_t gid[GID_LEN],
		     uint8_t mac[MAC_LEN])
{
	const struct driver *driver = engine;

	(void)sgid_index;
	assert_true(driver->locked);
	return !rig.silent && find_mac(gid, mac);
}

static const struct engine_ops rig_ops = {
	.lock = rig_lock,
	.unlock = rig_unlock,
	.attach = rig_attach,
	.detach = rig_detach,
	.kick = rig_kick,
	.poll = rig_poll,
	.polled = rig_polled,
	.wait = rig_wait,
	.now = rig_now,
	.join = rig_join,
	.leave = rig_leave,
	.resolve = rig_resolve_mac,
	.route = rig_route,
	.look = rig_look,
};

/* The ports of this process, counted. */
static int count_claim(void *user, struct cm_port_claim *claim, uint32_t *id)
{
	const int rc = cm_ports_local.claim(user, claim, id);

	rig.claims += rc == 0;
	return rc;
}

static int count_listen(void *user, uint32_t id)
{
	return cm_ports_local.listen(user, id);
}

static void count_release(void *user, uint32_t id)
{
	cm_ports_local.release(user, id);
	rig.claims--;
}

static int count_ids(void *user, uint32_t *mask, uint32_t *value)
{
	return cm_ports_local.ids(user, mask, value);
}

static const struct cm_ports_ops rig_ports = {
	.claim = count_claim,
	.listen = count_listen,
	.release = count_release,
	.ids = count_ids,
};

static void add_gid(struct device *device, struct sockaddr *address, uint32_t ifindex)
{
	union ibv_gid gid;

	assert_true(address_gid(address, gid.raw));
	assert_true(device_add_gid(device, &gid, -1, ifindex) >= 0);
}

static void create_device(int index)
{
	struct device_config config = {
		.port_mtu_bytes = 1500,
		.link_mbps = 100000,
		.unique = index == 0 ? "rig0" : "rig1",
	};
	struct device **device = &rig.devices[index];
	const uint32_t ifindex = RIG_IFINDEX + (uint32_t)index;

	strcpy(config.name, config.unique);
	memcpy(config.mac, macs[index], MAC_LEN);
	assert_int_equal(device_create(&config, device), 0);
	add_gid(*device, rig_link_local(index, 0, 0), ifindex);
	add_gid(*device, rig_ipv4(index, 0), ifindex);
	add_gid(*device, rig_ipv6(index, 0), ifindex);
	(*device)->link_up = true;
	(*device)->ops = &rig_ops;
	(*device)->engine = &drivers[index];
	(*device)->now_ns = &rig.now_ns;
	(*device)->cm_ports = &rig_ports;
	drivers[index].sink = (struct packet_sink){.get = sink_get, .put = sink_put};
}

static int rig_start(struct device **devices, size_t max)
{
	assert_true(max >= RIG_DEVICES);
	memset(drivers, 0, sizeof(drivers));
	for (int i = 0; i < RIG_DEVICES; i++) {
		create_device(i);
		devices[i] = rig.devices[i];
	}
	return RIG_DEVICES;
}

static const struct device_provider provider = {.start = rig_start};

__attribute__((constructor)) static void rig_register(void)
{
	registry_set_provider(&provider);
}

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
}

int rig_set_up(TEST_STATE)
{
	struct cm_device *const *devices;

	forget_hooks();
	rig.now_ns += RIG_SECOND;
	/* What stays open for the life of a process. */
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
