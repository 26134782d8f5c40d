/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent. The test takes the place of the engine. */
#include "agent_rig.h"

#include <errno.h>
#include <string.h>

#include "device/gsi.h"
#include "test.h"
#include "transport/sink.h"
#include "wire/gid.h"

#define IFINDEX	      7
#define IPV4_DEST_END 34 /* Ethernet's header has 14 bytes, IPv4's 20 */

struct agent_rig agent_rig;

static const struct device_gid gids[AGENT_RIG_GIDS] = {
	[AGENT_RIG_LINK_LOCAL] = {{.raw = {0xfe, 0x80, [15] = 1}}, IFINDEX, -1},
	[AGENT_RIG_IPV4] = {{.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}}, IFINDEX, -1},
	[AGENT_RIG_IPV6] = {{.raw = {0xfd, [15] = 1}}, IFINDEX, -1},
	[AGENT_RIG_IPV6_FAR] = {{.raw = {0xfd, 1, [15] = 1}}, IFINDEX, -1},
	[AGENT_RIG_VLAN] = {{.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}}, IFINDEX + 1, 5},
};

static struct packet_out out;
static uint8_t frames[AGENT_RIG_FRAMES][PACKET_FRAME_MAX];
static size_t lengths[AGENT_RIG_FRAMES];

static struct packet_out *sink_get(struct packet_sink *sink)
{
	(void)sink;
	if (agent_rig.room == 0 || agent_rig.frames == AGENT_RIG_FRAMES)
		return NULL;
	out.frame = frames[agent_rig.frames];
	return &out;
}

static int sink_put(struct packet_sink *sink, struct packet_out *made)
{
	const int len = packet_seal(made);

	(void)sink;
	assert_true(len > 0);
	lengths[agent_rig.frames++] = (size_t)len;
	agent_rig.room--;
	return 0;
}

uint8_t agent_rig_dest(unsigned int frame)
{
	assert_true(frame < agent_rig.frames);
	return frames[frame][IPV4_DEST_END - 1];
}

static struct packet_sink sink = {.get = sink_get, .put = sink_put};

static void rig_lock(void *engine)
{
	(void)engine;
	assert_false(agent_rig.locked);
	agent_rig.locked = true;
}

static void rig_unlock(void *engine)
{
	(void)engine;
	assert_true(agent_rig.locked);
	agent_rig.locked = false;
}

static void rig_wait(void *engine)
{
	(void)engine;
	agent_rig.waits++;
}

static uint64_t rig_now(void *engine)
{
	(void)engine;
	return agent_rig.now_ns;
}

static int rig_route(void *engine, uint8_t sgid_index, const union ibv_gid *dgid,
		     struct device_hop *hop)
{
	(void)engine;
	memcpy(agent_rig.routed_to, dgid->raw, sizeof(agent_rig.routed_to));
	/* The look-up may ask the kernel, so no call waits for it: the engine's lock is not held.
	 */
	assert_false(agent_rig.locked);
	*hop = agent_rig.hop;
	return agent_rig.unrouted & 1u << sgid_index ? -ENETUNREACH : agent_rig.route_result;
}

static bool rig_look(void *engine, uint8_t sgid_index, const uint8_t gid[GID_LEN], uint8_t mac[6])
{
	(void)engine;
	(void)gid;
	assert_true(agent_rig.locked);
	agent_rig.looked_from = sgid_index;
	agent_rig.looks++;
	if (agent_rig.answers)
		memset(mac, 0x22, 6);
	return agent_rig.answers;
}

static const struct engine_ops ops = {
	.lock = rig_lock,
	.unlock = rig_unlock,
	.wait = rig_wait,
	.now = rig_now,
};

static const struct device_net_ops net = {.route = rig_route, .look = rig_look};

static int rig_ids(void *user, uint32_t *mask, uint32_t *value)
{
	(void)user;
	*mask = 0;
	*value = 0;
	return agent_rig.ids_result;
}

static const struct cm_ports_ops ports = {.ids = rig_ids};

static void keep_event(const struct cm_event *event, uint64_t now_ns)
{
	assert_true(agent_rig.locked);
	assert_true(now_ns == agent_rig.now_ns);
	assert_true(agent_rig.events < AGENT_RIG_EVENTS);
	agent_rig.event_types[agent_rig.events] = event->type;
	agent_rig.conns[agent_rig.events] = event->conn;
	agent_rig.events++;
}

static void keep_status(struct agent_query *query, int status)
{
	(void)query;
	assert_true(agent_rig.locked);
	agent_rig.resolved++;
	agent_rig.status = status;
}

const struct agent_notify agent_rig_notify = {.event = keep_event, .resolved = keep_status};

const uint8_t *agent_rig_gid(enum agent_rig_gid index)
{
	return gids[index].gid.raw;
}

void agent_rig_init_bare(void)
{
	static const struct device_config config = {
		.name = "agent", .port_mtu_bytes = 1500, .mac = {2}, .unique = "agent"};

	agent_rig = (struct agent_rig){.now_ns = 1000000, .room = UINT32_MAX};
	assert_int_equal(device_create(&config, &agent_rig.device), 0);
	memcpy(agent_rig.device->gids, gids, sizeof(gids));
	device_first(agent_rig.device)->ops = &ops;
	agent_rig.device->net = &net;
	device_first(agent_rig.device)->now_ns = &agent_rig.now_ns;
	agent_rig.device->cm_ports = &ports;
}

void agent_rig_init(void)
{
	agent_rig_init_bare();
	assert_int_equal(agent_get(agent_rig.device, &agent_rig_notify, &agent_rig.agent), 0);
}

void agent_rig_fini(void)
{
	if (agent_rig.agent)
		agent_destroy(agent_rig.agent);
	assert_false(agent_rig.locked);
	device_destroy(agent_rig.device);
}

static void receive_own(unsigned int first)
{
	struct qp *qp;

	for (unsigned int i = first; i < agent_rig.frames; i++)
		assert_true(device_receive(device_first(agent_rig.device), frames[i], lengths[i],
					   FRAME_SOURCE_GOOD, agent_rig.now_ns, &qp));
}

unsigned int agent_rig_run(void)
{
	unsigned int before, work, sum = 0;

	agent_rig.locked = true;
	do {
		before = agent_rig.frames;
		work = gsi_run(agent_rig.device, agent_rig.now_ns, &sink);
		sum += work;
		receive_own(before);
	} while (work > 0);
	agent_rig.locked = false;
	return sum;
}

void agent_rig_pass(uint64_t ns)
{
	agent_rig.now_ns += ns;
	agent_rig_run();
}
