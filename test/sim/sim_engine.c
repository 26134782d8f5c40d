/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines of a host: their polls, timers, and the frames that they receive. */
#include "sim_engine.h"

#include <stdlib.h>
#include <string.h>

#include "age.h"
#include "device/device.h"
#include "qp/qp.h"
#include "sim.h"
#include "wire/headers.h"
#include "wire/packet.h"

#define STALL_LOG_MAX 30 /* of nanoseconds */

static void engine_lock(void *driver)
{
	struct sim_engine *engine = driver;

	sim_check(engine->host->sim, !engine->locked, "host %d: engine locked twice",
		  engine->host->number);
	engine->locked = true;
}

static void engine_unlock(void *driver)
{
	((struct sim_engine *)driver)->locked = false;
}

static void engine_attach(void *driver, struct qp *qp)
{
	struct end *end = qp_user(qp);

	end->engine = driver;
	end->is_ready = false;
	end->timer_ns = UINT64_MAX;
}

static void engine_detach(void *driver, struct qp *qp)
{
	struct sim_engine *engine = driver;
	struct end *end = qp_user(qp);

	if (end->is_ready)
		TAILQ_REMOVE(&engine->ready, end, ready_link);
	end->is_ready = false;
	end->timer_ns = UINT64_MAX;
}

static void engine_poll(void *context, void *argument);

static void want_poll_after(struct sim_engine *engine, uint64_t after_ns)
{
	struct clock *clock = engine->host->clock;

	if (engine->poll_due)
		return;
	engine->poll_due = true;
	clock_at(clock, clock->now_ns + after_ns, engine_poll, engine, NULL);
}

/* The engine needs an engine poll soon. */
static void engine_want_poll(struct sim_engine *engine)
{
	struct host *host = engine->host;

	want_poll_after(engine, rng_range(&host->rng, 1, host->pace.poll_ns));
}

static void engine_ready(struct end *end)
{
	if (end->is_ready)
		return;
	end->is_ready = true;
	TAILQ_INSERT_TAIL(&end->engine->ready, end, ready_link);
}

static void engine_work(void *driver, struct qp *qp)
{
	engine_ready(qp_user(qp));
	engine_want_poll(driver);
}

/* Engine polls happen by themselves. */
static void engine_poll_cq(void *driver)
{
	(void)driver;
}

static void engine_polled(void *driver, int n)
{
	(void)driver;
	(void)n;
}

/* The port receives the group's packets from now on, or no longer. */
static int engine_join(void *driver, const union ibv_gid *gid)
{
	(void)gid;
	((struct sim_engine *)driver)->host->hears_group = true;
	return 0;
}

static void engine_leave(void *driver, const union ibv_gid *gid)
{
	(void)gid;
	((struct sim_engine *)driver)->host->hears_group = false;
}

static const struct engine_ops sim_engine_ops = {
	.lock = engine_lock,
	.unlock = engine_unlock,
	.attach = engine_attach,
	.detach = engine_detach,
	.kick = engine_work,
	.poll = engine_poll_cq,
	.polled = engine_polled,
	.wait = engine_poll_cq,
};

static const struct device_net_ops net_ops = {.join = engine_join, .leave = engine_leave};

/* Return true if frames wait for an engine. */
static bool has_arrived(const struct sim_engine *engine)
{
	return !TAILQ_EMPTY(&engine->arrived) || !TAILQ_EMPTY(&engine->host->engines[0].arrived);
}

/* Return when a timer may fire: not before the host has its CPU back, and has processed the frames
 * that have come meanwhile. */
static uint64_t timer_not_before_ns(const struct end *end)
{
	const struct host *host = end->host;
	const uint64_t now_ns = host->clock->now_ns;

	if (host->sim->variant.stall == 0)
		return now_ns;
	if (now_ns < host->stalled_until_ns)
		return host->stalled_until_ns;
	return has_arrived(end->engine) ? now_ns + host->pace.poll_ns : now_ns;
}

static void engine_timer(void *context, void *argument)
{
	struct end *end = context;
	const uint64_t at_ns = (uint64_t)(uintptr_t)argument;
	const uint64_t now_ns = end->host->clock->now_ns;

	if (end->qp == NULL || end->timer_ns != at_ns)
		return; /* the work moved */
	if (timer_not_before_ns(end) > now_ns) {
		clock_at(end->host->clock, timer_not_before_ns(end), engine_timer, end, argument);
		return;
	}
	end->timer_ns = UINT64_MAX;
	if (qp_deadline_ns(end->qp) <= now_ns)
		qp_timeout(end->qp, now_ns, &end->engine->sink);
	engine_ready(end);
	engine_want_poll(end->engine);
}

static void engine_arm(struct end *end)
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
	clock_at(host->clock, at_ns, engine_timer, end, (void *)(uintptr_t)deadline_ns);
}

static void engine_receive(struct device_burst *burst, const uint8_t *bytes, uint32_t len,
			   bool trusted)
{
	struct qp *qp;

	device_receive_next(burst, bytes, len, trusted ? FRAME_TRUSTED : 0, &qp);
	if (qp == NULL)
		return;
	engine_ready(qp_user(qp));
	age_check(qp_user(qp));
}

static void put_in(struct sim_engine *engine, struct frame *frame)
{
	TAILQ_INSERT_TAIL(&engine->arrived, frame, link);
	engine_want_poll(engine);
}

/* Return the engine that a frame is for; NULL: all of them, because it is to a group. */
static struct sim_engine *engine_of(struct host *host, const uint8_t *bytes, uint32_t len)
{
	uint32_t qpn;

	if (host->engine_count == 1 || !packet_peek_qpn(bytes, len, &qpn))
		return &host->engines[0];
	if (qpn == WIRE_QPN_MULTICAST)
		return NULL;
	return &host->engines[device_engine_of_qpn(host->device, qpn)];
}

/* Give the engines behind the first one copies of a frame to the group. */
static void spread(struct host *host, const struct frame *frame)
{
	for (uint32_t i = 1; i < host->engine_count; i++)
		put_in(&host->engines[i], frame_make(frame->bytes, frame->len, frame->trusted));
}

/* SIM_BREAK=cross: the first engine keeps the frames of the others. */
static bool is_broken(const struct sim *sim)
{
	return sim->breaks != NULL && strcmp(sim->breaks, "cross") == 0;
}

/* The first engine gives a frame that the port has received to its engine. Returns false if the
 * first engine must process it (too). */
static bool give_away(struct sim_engine *first, struct frame *frame)
{
	struct host *host = first->host;
	struct sim_engine *to;

	if (first->home->number != 0 || frame->trusted)
		return false;
	to = engine_of(host, frame->bytes, frame->len);
	if (to == NULL && host->device->group_count > 0)
		spread(host, frame);
	if (to == NULL || to == first || is_broken(host->sim))
		return false;
	host->sim->stats_crossed++;
	put_in(to, frame);
	return true;
}

static uint32_t take_in(struct sim_engine *engine)
{
	struct host *host = engine->host;
	const uint64_t most = rng_range(&host->rng, 1, host->pace.receive_burst);
	struct device_burst burst;
	struct frame *frame;
	uint32_t n = 0;

	device_burst_begin(&burst, engine->home, host->clock->now_ns);
	while (n < most && (frame = TAILQ_FIRST(&engine->arrived)) != NULL) {
		TAILQ_REMOVE(&engine->arrived, frame, link);
		n++;
		if (frame->way != NULL)
			frame->way->taken++;
		frame->way = NULL;
		if (give_away(engine, frame))
			continue;
		engine_receive(&burst, frame->bytes, frame->len, frame->trusted);
		free(frame);
	}
	return n;
}

/* Each queue pair that is ready now runs once. */
static void run_ready(struct sim_engine *engine)
{
	struct end *last = TAILQ_LAST(&engine->ready, end_list);
	struct host *host = engine->host;
	struct end *end;

	while ((end = TAILQ_FIRST(&engine->ready)) != NULL) {
		const unsigned int budget =
			(unsigned int)rng_range(&host->rng, 1, host->pace.budget);
		const bool is_last = end == last;

		TAILQ_REMOVE(&engine->ready, end, ready_link);
		end->is_ready = false;
		engine->running = end;
		if (qp_run(end->qp, host->clock->now_ns, &engine->sink, budget))
			engine_ready(end);
		sim_check(host->sim, !engine->out_taken,
			  "host %d: a packet was taken and never put", host->number);
		engine_arm(end);
		if (is_last)
			break;
	}
}

static void wake(struct qp *qp, void *arg)
{
	struct end *end = qp_user(qp);

	(void)arg;
	engine_ready(end);
	engine_want_poll(end->engine);
}

/* Give all queue pairs another congestion control, as a user can at any time. */
static void change_cc(struct host *host)
{
	const enum cc_kind kind = (enum cc_kind)rng_below(&host->change_rng, CC_KINDS);

	sim_check(host->sim, device_change_cc(host->device, 0, kind, wake, NULL) == 0,
		  "device_change_cc");
}

/* Return true if the host has no CPU. It loses it for 1 us to 1 s, and all of its engines do. */
static bool is_stalled(struct host *host)
{
	if (host->clock->now_ns >= host->stalled_until_ns &&
	    rng_chance(&host->stall_rng, host->sim->variant.stall))
		host->stalled_until_ns =
			host->clock->now_ns +
			rng_range(&host->stall_rng, 1000,
				  1ull << rng_range(&host->stall_rng, 10, STALL_LOG_MAX));
	return host->clock->now_ns < host->stalled_until_ns;
}

static void engine_poll(void *context, void *argument)
{
	struct sim_engine *engine = context;
	struct host *host = engine->host;
	uint64_t took;

	(void)argument;
	if (is_stalled(host)) {
		clock_at(host->clock, host->stalled_until_ns, engine_poll, engine, NULL);
		return;
	}
	sim_check(host->sim, !engine->locked, "host %d: a poll while locked", host->number);
	if (rng_chance(&host->change_rng, host->sim->variant.change))
		change_cc(host);
	engine->poll_due = false;
	engine->tx_room = (uint32_t)rng_range(&host->rng, 0, host->pace.transmit_burst);
	took = take_in(engine);
	took += engine->tx_room;
	run_ready(engine);
	took -= engine->tx_room;
	if (!TAILQ_EMPTY(&engine->arrived) || !TAILQ_EMPTY(&engine->ready))
		want_poll_after(engine, host->pace.poll_ns + took * host->pace.packet_ns);
	app_wake(host);
}

void engines_pages_came(struct host *host)
{
	for (uint32_t i = 0; i < host->engine_count; i++)
		qp_wake_waiting(&host->engines[i].home->waiting, wake, NULL);
}

void engine_kick(struct end *end)
{
	device_engine_kick(end->engine->home, end->qp);
}

void engines_inject(struct host *host, const uint8_t *bytes, uint32_t len)
{
	struct device_burst burst;
	struct sim_engine *engine = engine_of(host, bytes, len);

	device_burst_begin(&burst, engine->home, host->clock->now_ns);
	engine_receive(&burst, bytes, len, false);
	engine_want_poll(engine);
}

void engines_deliver(struct host *host, struct frame *frame)
{
	struct sim_engine *to = &host->engines[0];

	if (frame->trusted)
		to = engine_of(host, frame->bytes, frame->len);
	if (to == NULL) {
		spread(host, frame);
		to = &host->engines[0];
	}
	put_in(to, frame);
}

static void engine_start(struct sim_engine *engine)
{
	engine->home->ops = &sim_engine_ops;
	engine->home->driver = engine;
	engine->locked = false;
	engine->poll_due = false;
	TAILQ_INIT(&engine->arrived);
	TAILQ_INIT(&engine->ready);
	send_start(engine);
}

void engines_start(struct host *host)
{
	host->device->net = &net_ops;
	host->device->net_user = &host->engines[0];
	for (uint32_t i = 0; i < host->engine_count; i++) {
		host->engines[i].host = host;
		host->engines[i].home = host->device->engines[i];
		engine_start(&host->engines[i]);
	}
}

static void drop(struct frame_list *frames)
{
	struct frame *frame;

	while ((frame = TAILQ_FIRST(frames)) != NULL) {
		TAILQ_REMOVE(frames, frame, link);
		free(frame);
	}
}

void engines_stop(struct host *host)
{
	for (uint32_t i = 0; i < host->engine_count; i++)
		drop(&host->engines[i].arrived);
}

void engines_fini(struct host *host)
{
	for (uint32_t i = 0; i < HOST_ENGINES_MAX; i++)
		free(host->engines[i].out.frame);
}
