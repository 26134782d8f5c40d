/* SPDX-License-Identifier: BSD-3-Clause */
/* A host: the engine that runs one device by turns in virtual time. */
#include "sim_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "age.h"
#include "device/device.h"
#include "sim_inside.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "sim.h"
#include "transport/pacer.h"
#include "wire/headers.h"
#include "wire/packet.h"

static void host_lock(void *engine)
{
	struct host *host = engine;

	sim_check(host->sim, !host->locked, "host %d: engine locked twice", host->number);
	host->locked = true;
}

static void host_unlock(void *engine)
{
	((struct host *)engine)->locked = false;
}

static void host_attach(void *engine, struct qp *qp)
{
	struct end *end = qp_user(qp);

	end->host = engine;
	end->is_ready = false;
	end->timer_ns = UINT64_MAX;
}

static void host_detach(void *engine, struct qp *qp)
{
	struct host *host = engine;
	struct end *end = qp_user(qp);

	if (end->is_ready)
		TAILQ_REMOVE(&host->ready, end, ready_link);
	end->is_ready = false;
	end->timer_ns = UINT64_MAX;
}

static void host_turn(void *context, void *argument);

static void host_want_turn(struct host *host, uint64_t after_ns)
{
	if (host->turn_due)
		return;
	host->turn_due = true;
	clock_at(host->clock, host->clock->now_ns + after_ns, host_turn, host, NULL);
}

static void host_ready(struct end *end)
{
	if (end->is_ready)
		return;
	end->is_ready = true;
	TAILQ_INSERT_TAIL(&end->host->ready, end, ready_link);
}

static void host_engine_kick(void *engine, struct qp *qp)
{
	struct host *host = engine;

	host_ready(qp_user(qp));
	host_want_turn(host, rng_range(&host->rng, 1, host->pace.turn_ns));
}

/* Turns happen by themselves. */
static void host_engine_poll(void *engine)
{
	(void)engine;
}

static void host_engine_polled(void *engine, int n)
{
	(void)engine;
	(void)n;
}

static const uint8_t group_mac[6] = {0x33, 0x33, 0, 0, 0, 9};

/* The port receives the group's packets from now on, or no longer. */
static int host_join(void *engine, const union ibv_gid *gid)
{
	(void)gid;
	((struct host *)engine)->hears_group = true;
	return 0;
}

static void host_leave(void *engine, const union ibv_gid *gid)
{
	(void)gid;
	((struct host *)engine)->hears_group = false;
}

static int host_resolve(void *engine, uint8_t sgid_index, const union ibv_gid *dgid, uint8_t mac[6])
{
	struct sim *sim = ((struct host *)engine)->sim;

	(void)sgid_index;
	if (memcmp(dgid, &sim->group, sizeof(*dgid)) == 0) {
		memcpy(mac, group_mac, 6);
		return 0;
	}
	for (unsigned int i = 0; i < sim->hosts; i++) {
		if (memcmp(dgid, &sim->host[i].gid, sizeof(*dgid)) == 0) {
			memcpy(mac, sim->host[i].mac, 6);
			return 0;
		}
	}
	return -ENETUNREACH;
}

static const struct engine_ops host_engine_ops = {
	.lock = host_lock,
	.unlock = host_unlock,
	.attach = host_attach,
	.detach = host_detach,
	.kick = host_engine_kick,
	.poll = host_engine_poll,
	.polled = host_engine_polled,
	.wait = host_engine_poll,
	.resolve = host_resolve,
	.join = host_join,
	.leave = host_leave,
};

static struct packet_out *host_get(struct packet_sink *sink)
{
	struct host *host = container_of(sink, struct host, sink);

	sim_check(host->sim, !host->out_taken, "host %d: a packet was taken and never put",
		  host->number);
	if (host->tx_room == 0)
		return NULL;
	host->tx_room--;
	host->out_taken = true;
	host->out_failed = false;
	return &host->out;
}

/* A paced queue pair keeps to its rate over any time, except for the allowed burst. */
static void host_check_pace(struct host *host, const struct packet *packet, uint32_t len)
{
	struct end *end = host->running;
	uint64_t due_ns;

	if (end->rate_kbps == 0 || !(packet->op->flags & OPCODE_REQUEST))
		return;
	if (end->paced_bytes == 0)
		end->paced_since_ns = host->clock->now_ns;
	due_ns = end->paced_bytes * 8000000 / end->rate_kbps;
	sim_check(host->sim, due_ns <= host->clock->now_ns - end->paced_since_ns + PACER_BURST_NS,
		  "qp %06x: sends faster than %u kbit/s", end->qpn, end->rate_kbps);
	end->paced_bytes += len;
}

/* A responder acknowledges only packets that it has executed. */
static void host_check_ack(const struct host *host, const struct packet *packet)
{
	const struct end *end = host->running;

	if ((packet->opcode & OPCODE_OPERATION_MASK) != OPCODE_ACKNOWLEDGE ||
	    (packet->syndrome & AETH_KIND_MASK) != AETH_ACK)
		return;
	sim_check(host->sim, psn_before(packet->psn, inside_expected(end->qp)),
		  "qp %06x: acknowledges PSN %06x, and expects %06x", end->qpn, packet->psn.v,
		  inside_expected(end->qp).v);
}

/* A peer that is not uroce never sees our opcode, nor the sign of our responses: Soft-RoCE may
 * crash if it does. */
static void host_check_signs(const struct host *host, const struct packet *packet)
{
	const struct host *to = host->running->peer->host;
	const bool plain = host->plain || !host->keeps || to->plain || !to->keeps;

	sim_check(host->sim, packet->sign == 0 || !(host->plain || !host->keeps),
		  "qp %06x: a sign, although that is off", host->running->qpn);
	sim_check(host->sim, !plain || packet->opcode != OPCODE_SACK,
		  "qp %06x: a selective acknowledgement to a peer that does not understand it",
		  host->running->qpn);
	sim_check(host->sim,
		  (packet->sign & BTH_SIGN_KIND) != BTH_SIGN_RESPONSE ||
			  (!plain && !(packet->op->flags & OPCODE_REQUEST)),
		  "qp %06x: a sign to a peer that does not understand it", host->running->qpn);
}

/* A peer must accept every packet that a host sends. */
static void host_check_frame(struct host *host, uint32_t len, struct packet *packet)
{
	const enum packet_status status = packet_parse(host->out.frame, len, false, packet);

	sim_check(host->sim, status == PACKET_OK, "host %d: made a frame that does not parse (%d)",
		  host->number, (int)status);
	sim_check(host->sim, packet_icrc_ok(packet), "host %d: made a frame with a bad ICRC",
		  host->number);
	host_check_signs(host, packet);
	host_check_pace(host, packet, len);
	host_check_ack(host, packet);
}

static int host_put(struct packet_sink *sink, struct packet_out *out)
{
	struct host *host = container_of(sink, struct host, sink);
	struct sim *sim = host->sim;
	const int len = packet_seal(out);
	struct packet packet;

	sim_check(sim, host->out_taken || host->out_failed,
		  "host %d: a packet was put and not taken", host->number);
	host->out_taken = false;
	host->out_failed = len < 0;
	if (len < 0)
		return len;
	host_check_frame(host, (uint32_t)len, &packet);
	sim->packets++;
	forge_sent(host, out->frame, (uint32_t)len);
	if (memcmp(out->frame, group_mac, 6) == 0) {
		for (unsigned int i = 0; i < sim->hosts; i++) {
			if (sim->host[i].hears_group)
				link_send(host->links[i], out->frame, (uint32_t)len);
		}
		return 0;
	}
	for (unsigned int i = 0; i < sim->hosts; i++) {
		if (memcmp(out->frame, sim->host[i].mac, 6) == 0) {
			link_send(host->links[i], out->frame, (uint32_t)len);
			soft_sent(host->running, &packet);
			return 0;
		}
	}
	sim_fail(sim, "host %d: sent a frame to nobody's MAC address", host->number);
}

static void host_timer(void *context, void *argument)
{
	struct end *end = context;
	struct host *host = end->host;
	const uint64_t at_ns = (uint64_t)(uintptr_t)argument;
	const uint64_t now_ns = host->clock->now_ns;

	if (end->qp == NULL || end->timer_ns != at_ns)
		return; /* the work moved */
	end->timer_ns = UINT64_MAX;
	if (qp_deadline_ns(end->qp) <= now_ns)
		qp_timeout(end->qp, now_ns);
	host_ready(end);
	host_want_turn(host, rng_range(&host->rng, 1, host->pace.turn_ns));
}

static void host_arm(struct end *end)
{
	struct host *host = end->host;
	const uint64_t deadline_ns = qp_deadline_ns(end->qp);
	uint64_t at_ns;

	if (deadline_ns == end->timer_ns)
		return;
	end->timer_ns = deadline_ns;
	if (deadline_ns == UINT64_MAX)
		return;
	at_ns = deadline_ns + rng_range(&host->rng, 0, host->pace.late_ns);
	clock_at(host->clock, at_ns, host_timer, end, (void *)(uintptr_t)deadline_ns);
}

static void host_receive(struct host *host, const uint8_t *bytes, uint32_t len, bool trusted)
{
	struct qp *qp;

	device_receive(device_first(host->device), (uint8_t *)(uintptr_t)bytes, len,
		       trusted ? FRAME_TRUSTED : 0, host->clock->now_ns, &qp);
	if (qp == NULL)
		return;
	host_ready(qp_user(qp));
	age_check(qp_user(qp));
}

void host_inject(struct host *host, const uint8_t *bytes, uint32_t len)
{
	host_receive(host, bytes, len, false);
	host_want_turn(host, rng_range(&host->rng, 1, host->pace.turn_ns));
}

static uint32_t host_take_in(struct host *host)
{
	const uint64_t burst = rng_range(&host->rng, 1, host->pace.receive_burst);
	struct frame *frame;
	uint32_t n = 0;

	while (n < burst && (frame = TAILQ_FIRST(&host->arrived)) != NULL) {
		TAILQ_REMOVE(&host->arrived, frame, link);
		host_receive(host, frame->bytes, frame->len, frame->trusted);
		free(frame);
		n++;
	}
	return n;
}

/* Each queue pair that is ready now runs once. */
static void host_run_ready(struct host *host)
{
	struct end *last = TAILQ_LAST(&host->ready, end_list);
	struct end *end;

	while ((end = TAILQ_FIRST(&host->ready)) != NULL) {
		const unsigned int budget =
			(unsigned int)rng_range(&host->rng, 1, host->pace.budget);
		const bool is_last = end == last;

		TAILQ_REMOVE(&host->ready, end, ready_link);
		end->is_ready = false;
		host->running = end;
		if (qp_run(end->qp, host->clock->now_ns, &host->sink, budget))
			host_ready(end);
		sim_check(host->sim, !host->out_taken, "host %d: a packet was taken and never put",
			  host->number);
		host_arm(end);
		if (is_last)
			break;
	}
}

static void host_run_changed(struct qp *qp, void *host)
{
	(void)host;
	host_ready(qp_user(qp));
}

/* Give all queue pairs another congestion control, as a user can at any time. */
static void host_change_cc(struct host *host)
{
	const enum cc_kind kind = (enum cc_kind)rng_below(&host->change_rng, CC_KINDS);

	sim_check(host->sim, device_change_cc(host->device, 0, kind, host_run_changed, host) == 0,
		  "device_change_cc");
}

static void host_turn(void *context, void *argument)
{
	struct host *host = context;
	uint64_t took;

	(void)argument;
	sim_check(host->sim, !host->locked, "host %d: a turn while locked", host->number);
	if (rng_chance(&host->change_rng, host->sim->variant.change))
		host_change_cc(host);
	host->turn_due = false;
	host->tx_room = (uint32_t)rng_range(&host->rng, 0, host->pace.transmit_burst);
	took = host_take_in(host);
	took += host->tx_room;
	host_run_ready(host);
	took -= host->tx_room;
	if (!TAILQ_EMPTY(&host->arrived) || !TAILQ_EMPTY(&host->ready))
		host_want_turn(host, host->pace.turn_ns + took * host->pace.packet_ns);
	app_wake(host);
}

static void host_wake(struct qp *qp, void *host)
{
	(void)host;
	host_ready(qp_user(qp));
}

void host_pages_came(struct host *host)
{
	if (host->device == NULL)
		return;
	qp_wake_waiting(&device_first(host->device)->waiting, host_wake, host);
	host_want_turn(host, rng_range(&host->absence.rng, 1, host->pace.turn_ns));
}

void host_kick(struct end *end)
{
	struct device *device = end->host->device;

	device_engine_kick(device_first(device), end->qp);
}

void host_deliver(void *context, void *argument)
{
	struct host *host = context;
	struct frame *frame = argument;

	if (host->device == NULL) {
		free(frame);
		return;
	}
	TAILQ_INSERT_TAIL(&host->arrived, frame, link);
	host_want_turn(host, rng_range(&host->rng, 1, host->pace.turn_ns));
}

static void host_overrun(void *user)
{
	const struct host *host = ((struct host_cq *)user)->host;

	sim_fail(host->sim, "host %d: a completion queue overran", host->number);
}

void host_start(struct host *host, uint32_t cqe)
{
	struct device_config config = {.port_mtu_bytes = host->port_mtu,
				       .link_mbps = 100000,
				       .unique = "sim",
				       .cc = (enum cc_kind)(host->sim->variant.cc % CC_KINDS)};
	struct sim *sim = host->sim;

	snprintf(config.name, sizeof(config.name), "sim%d", host->number);
	memcpy(config.mac, host->mac, sizeof(config.mac));
	sim_check(sim, device_create(&config, &host->device) == 0, "device_create");
	device_first(host->device)->ops = &host_engine_ops;
	device_first(host->device)->driver = host;
	host->device->link_up = true;
	sim_check(sim, device_add_gid(host->device, &host->gid, -1, 0) == 0, "device_add_gid");
	sim_check(sim, pd_create(host->device->keys, &host->pd) == 0, "pd_create");
	absent_start(host);
	sim_check(sim, channel_init(&host->channel) == 0, "channel_init");
	fcntl(host->channel.fd, F_SETFL, O_NONBLOCK);
	rings_start(host, cqe);
	for (unsigned int i = 0; i < host->cq_count; i++) {
		struct host_cq *cq = &host->cqs[i];
		const struct cq_attr attr = {
			.cqe = cqe,
			.channel = host->pace.wakes != WAKES_NEVER ? &host->channel : NULL,
			.user = cq,
			.overrun = host_overrun,
			.domain = &host->rings.domain,
		};

		cq->host = host;
		sim_check(sim, cq_create_in(&attr, &cq->cq) == 0, "cq_create_in");
		if (host->pace.wakes != WAKES_NEVER)
			cq_arm(cq->cq, host->pace.wakes == WAKES_SOLICITED);
	}
	TAILQ_INIT(&host->arrived);
	TAILQ_INIT(&host->ready);
	host->sink = (struct packet_sink){.get = host_get, .put = host_put};
	if (host->out.frame == NULL)
		host->out.frame = malloc(PACKET_FRAME_MAX);
	sim_check(sim, host->out.frame != NULL, "out of memory");
	host->out_taken = false;
	host->turn_due = false;
}

void host_stop(struct host *host)
{
	struct sim *sim = host->sim;
	struct frame *frame;

	memory_deregister(&host->memory);
	for (unsigned int i = 0; i < POOLS; i++) {
		if (host->pools[i].in_use)
			pool_stop(&host->pools[i]);
	}
	for (unsigned int i = 0; i < host->cq_count; i++)
		sim_check(sim, cq_destroy(host->cqs[i].cq) == 0, "host %d: cq_destroy",
			  host->number);
	rings_stop(host);
	channel_fini(&host->channel);
	sim_check(sim, pd_destroy(host->pd) == 0, "host %d: pd_destroy", host->number);
	while ((frame = TAILQ_FIRST(&host->arrived)) != NULL) {
		TAILQ_REMOVE(&host->arrived, frame, link);
		free(frame);
	}
	device_destroy(host->device);
	host->device = NULL;
	memory_clear(&host->memory);
}

void host_fini(struct host *host)
{
	memory_fini(&host->memory);
	free(host->out.frame);
}
