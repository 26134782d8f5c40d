/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts with a device whose connection manager is an agent. Its MADs are frames, and it resolves
 * its peers' link addresses.
 */
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"
#include "device/device.h"
#include "wire/packet.h"

#define PORT_MTU     1500
#define FULL_PPM     100000 /* probability that the port takes nothing now */
#define FULL_NS	     1000   /* delay before the next attempt */
#define KNOWN_PPM    300000 /* probability that a neighbour is known already */
#define STALE_PPM    100000 /* probability that a neighbour has become unknown */
#define ANSWERED_PPM 200000 /* probability that a neighbour has answered since the last attempt */

static void ops_lock(void *engine)
{
	struct cm_host *host = engine;

	cm_check(host->sim, !host->locked, "the engine's lock is taken twice");
	host->locked = true;
}

static void ops_unlock(void *engine)
{
	struct cm_host *host = engine;

	host->locked = false;
}

static uint64_t ops_now(void *engine)
{
	const struct cm_host *host = engine;

	return host->sim->clock.now_ns;
}

static void put_mac(const uint8_t gid[16], uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[]){2, 0, 0, 0, 0, gid[15]}, 6);
}

static int ops_route(void *engine, uint8_t sgid_index, const union ibv_gid *dgid,
		     struct device_hop *hop)
{
	struct cm_host *host = engine;
	struct rng *rng = &host->sim->rng;

	(void)sgid_index;
	cm_check(host->sim, !host->locked, "a route is looked for under the lock");
	*hop = (struct device_hop){.known = rng_chance(rng, KNOWN_PPM),
				   .has_stale = rng_chance(rng, STALE_PPM)};
	put_mac(dgid->raw, hop->mac);
	memcpy(hop->gid, dgid->raw, sizeof(hop->gid));
	return 0;
}

static bool ops_look(void *engine, uint8_t sgid_index, const uint8_t gid[16], uint8_t mac[6])
{
	struct cm_host *host = engine;

	(void)sgid_index;
	put_mac(gid, mac);
	return rng_chance(&host->sim->rng, ANSWERED_PPM);
}

static const struct engine_ops engine_ops = {
	.lock = ops_lock,
	.unlock = ops_unlock,
	.now = ops_now,
};

static const struct device_net_ops net_ops = {.route = ops_route, .look = ops_look};

static struct cm_host *host_of_sink(struct packet_sink *sink)
{
	return (struct cm_host *)((char *)sink - offsetof(struct cm_host, packets));
}

static struct packet_out *sink_get(struct packet_sink *sink)
{
	struct cm_host *host = host_of_sink(sink);

	return rng_chance(&host->sim->rng, FULL_PPM) ? NULL : &host->out;
}

static int sink_put(struct packet_sink *sink, struct packet_out *out)
{
	struct cm_host *host = host_of_sink(sink);
	const int len = packet_seal(out);
	struct packet packet;

	cm_check(host->sim, len > 0, "a packet cannot be sealed");
	cm_check(host->sim,
		 packet_parse(out->frame, (size_t)len, false, &packet) == PACKET_OK &&
			 packet.payload_len == MAD_LEN,
		 "a frame that does not parse");
	cm_host_transmit(host, packet.dgid[15] - 1u, packet.payload, out->frame, (size_t)len);
	return 0;
}

/* An event of the agent, until the application takes it. */
struct cm_told {
	TAILQ_ENTRY(cm_told) next;
	struct cm_event event;
};

static void on_event(const struct cm_event *event, uint64_t now_ns)
{
	const bool request = event->type == CM_EVENT_REQ || event->type == CM_EVENT_SIDR_REQ;
	struct cm_host *host = request ? event->user : ((struct endpoint *)event->user)->host;
	struct cm_told *told = malloc(sizeof(*told));

	(void)now_ns;
	told->event = *event;
	/* The pointer refers to the event. */
	if (event->private_data)
		told->event.private_data = told->event.bytes + (event->private_data - event->bytes);
	if (request)
		told->event.user = app_admit(host, event);
	TAILQ_INSERT_TAIL(&host->told, told, next);
}

struct resolved {
	struct endpoint *endpoint;
	unsigned int life;
	int status;
};

static void tell_resolved(void *context, void *argument)
{
	struct resolved *resolved = argument;

	(void)context;
	if (resolved->endpoint->host->life == resolved->life)
		app_resolved(resolved->endpoint, resolved->status);
	free(resolved);
}

/* No call is allowed here: the application gets the event later. */
static void on_resolved(struct agent_query *query, int status)
{
	struct endpoint *endpoint =
		(struct endpoint *)((char *)query - offsetof(struct endpoint, query));
	struct resolved *resolved = malloc(sizeof(*resolved));
	struct clock *clock = &endpoint->sim->clock;

	*resolved = (struct resolved){endpoint, endpoint->host->life, status};
	clock_at(clock, clock->now_ns, tell_resolved, NULL, resolved);
}

static const struct agent_notify notify = {.event = on_event, .resolved = on_resolved};

void cm_device_start(struct cm_host *host)
{
	struct device_config config = {
		.name = "cm", .port_mtu_bytes = PORT_MTU, .link_mbps = 100000, .unique = "cm"};
	const struct gsi_address own = cm_address(host->index, host->index);
	union ibv_gid gid;
	uint64_t now_ns;

	memcpy(gid.raw, own.local, sizeof(gid.raw));
	put_mac(gid.raw, config.mac);
	TAILQ_INIT(&host->told);
	cm_check(host->sim, device_create(&config, &host->device) == 0, "device_create");
	device_first(host->device)->ops = &engine_ops;
	device_first(host->device)->driver = host;
	host->device->net = &net_ops;
	host->device->net_user = host;
	cm_check(host->sim, device_add_gid(host->device, &gid, -1, 0) == 0, "device_add_gid");
	cm_check(host->sim, agent_get(host->device, &notify, &host->agent) == 0, "agent_get");
	host->packets = (struct packet_sink){.get = sink_get, .put = sink_put};
	host->out.frame = malloc(PACKET_FRAME_MAX);
	host->cm = agent_enter(host->agent, &now_ns);
	agent_leave(host->agent);
}

void cm_device_end(struct cm_host *host, bool in_order)
{
	const uint64_t now_ns = host->sim->clock.now_ns;

	if (in_order) {
		gsi_end(host->device, now_ns);
		gsi_run(host->device, now_ns, &host->packets);
	}
	cm_device_forget(host, NULL);
	agent_destroy(host->agent);
	device_destroy(host->device);
	free(host->out.frame);
	host->device = NULL;
}

void cm_device_receive(struct cm_host *host, const uint8_t *frame, size_t len)
{
	struct qp *qp;

	/* A host may connect to itself. */
	device_receive(device_first(host->device), frame, len, FRAME_SOURCE_GOOD,
		       host->sim->clock.now_ns, &qp);
}

void cm_device_run(struct cm_host *host)
{
	uint64_t now_ns;

	agent_enter(host->agent, &now_ns);
	agent_leave(host->agent);
	gsi_run(host->device, now_ns, &host->packets);
}

uint64_t cm_device_deadline_ns(const struct cm_host *host)
{
	const uint64_t deadline_ns = gsi_deadline_ns(host->device);

	return deadline_ns ? deadline_ns : host->sim->clock.now_ns + FULL_NS;
}

bool cm_device_next_event(struct cm_host *host, struct cm_event *event)
{
	struct cm_told *told = TAILQ_FIRST(&host->told);

	if (!told)
		return false;
	TAILQ_REMOVE(&host->told, told, next);
	*event = told->event;
	if (event->private_data)
		event->private_data = event->bytes + (told->event.private_data - told->event.bytes);
	free(told);
	return true;
}

void cm_device_forget(struct cm_host *host, const struct cm_conn *conn)
{
	struct cm_told *told = TAILQ_FIRST(&host->told);

	while (told) {
		struct cm_told *next = TAILQ_NEXT(told, next);

		if (!conn || told->event.conn == conn) {
			TAILQ_REMOVE(&host->told, told, next);
			free(told);
		}
		told = next;
	}
}

int cm_device_resolve(struct endpoint *endpoint, unsigned int to, uint64_t timeout_ns)
{
	struct cm_host *host = endpoint->host;
	const struct gsi_address address = cm_address(host->index, to);
	struct device_gid found;
	const int index = agent_choose_source(host->agent, address.remote, 0, &found);

	cm_check(host->sim, index == 0, "no address of ours");
	return agent_resolve(host->agent, &endpoint->query, (uint8_t)index, address.remote,
			     timeout_ns);
}
