/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices joined in memory, registered as the only ones, and the code that runs them. */
#include "rdmacm_rig.h"

#include "device/device.h"
#include "device/gsi.h"
#include "device/registry.h"
#include "qp/qp.h"
#include "transport/sink.h"

#define FRAMES_MAX 512
#define QPS_MAX	   16
#define MAC_LEN	   6

/* The state that runs one device. */
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

static struct driver drivers[RIG_DEVICES];
static struct frame frames[FRAMES_MAX];
static unsigned int frame_count;

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
			assert_true(device_receive(device_first(rig.devices[i]), frame->bytes,
						   frame->length, FRAME_SOURCE_GOOD, rig.now_ns,
						   &qp));
	}
}

static void set_locked(bool locked)
{
	for (int i = 0; i < RIG_DEVICES; i++) {
		assert_true(drivers[i].locked != locked);
		drivers[i].locked = locked;
	}
}

/* Engine polls until nothing moves, each under the engines' locks. */
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

/* Call a hook, but not again from within it. */
static void call_once(void (**hook)(void))
{
	void (*const call)(void) = *hook;

	*hook = NULL;
	if (call)
		call();
}

static void rig_lock(void *engine)
{
	struct driver *driver = engine;

	call_once(&rig.locking);
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
		if (device_find_gid(rig.devices[i], gid, DEVICE_ANY_VLAN) >= 0) {
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
	call_once(&rig.routing);
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
};

static const struct device_net_ops rig_net = {
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

static int count_change(void *user, uint32_t id, uint8_t ip_version, bool reuse)
{
	return cm_ports_local.change(user, id, ip_version, reuse);
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
	.change = count_change,
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
	device_first(*device)->ops = &rig_ops;
	device_first(*device)->driver = &drivers[index];
	device_first(*device)->now_ns = &rig.now_ns;
	(*device)->net = &rig_net;
	(*device)->net_user = &drivers[index];
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
