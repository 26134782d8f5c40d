/* SPDX-License-Identifier: BSD-3-Clause */
/* Applications: they ask, accept, reject, disconnect and destroy, sooner or later. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_names.h"
#include "cm_sim.h"

#define FIRST_QPN 1000
#define SLOWEST_LOOK_NS \
	UINT64_C(32000000) /* from the end of a query's time to the engine poll that reports it */

/* The private data of a REQ and a REP: the endpoint that has sent it, and its queue pair. */
struct card {
	uint32_t number;
	uint32_t qpn;
};

#define MRA_EXPONENT \
	24 /* the longest time for which one side can keep the other waiting, for each message */

typedef void (*act_fn)(struct endpoint *endpoint);

struct act {
	struct endpoint *endpoint;
	struct cm_conn *conn; /* the handle still belongs to this endpoint */
	act_fn act;
};

/* Choose a queue pair of the host whose connection is over for its application, though perhaps not
 * for its peer, or else a new one. */
static uint32_t choose_qpn(const struct cm_host *host)
{
	struct cm_sim *sim = host->sim;
	const struct endpoint *old;

	if (sim->endpoints == 0 || !rng_chance(&sim->rng, sim->reuse_ppm))
		return FIRST_QPN + sim->endpoints;
	old = &sim->endpoint[rng_below(&sim->rng, sim->endpoints)];
	if (old->host != host)
		return FIRST_QPN + sim->endpoints;
	for (unsigned int i = 0; i < sim->endpoints; i++) {
		if (sim->endpoint[i].host == host && sim->endpoint[i].qpn == old->qpn &&
		    (sim->endpoint[i].conn || sim->endpoint[i].resolving))
			return FIRST_QPN + sim->endpoints;
	}
	return old->qpn;
}

static struct endpoint *add_endpoint(struct cm_host *host)
{
	struct cm_sim *sim = host->sim;
	struct endpoint *endpoint = &sim->endpoint[sim->endpoints];

	cm_check(sim, sim->endpoints < CM_ENDPOINTS_MAX, "too many endpoints");
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->number = sim->endpoints;
	endpoint->sim = sim;
	endpoint->host = host;
	endpoint->qpn = choose_qpn(host);
	sim->endpoints++;
	endpoint->since_ns = sim->clock.now_ns;
	return endpoint;
}

static struct card card_of(const struct endpoint *endpoint)
{
	return (struct card){endpoint->number, endpoint->qpn};
}

/* Return the endpoint that has sent a REQ or REP with this private data and this queue pair. */
static struct endpoint *sender_of(struct cm_sim *sim, const struct cm_event *event, uint32_t qpn)
{
	struct card card;

	memcpy(&card, event->private_data, sizeof(card));
	cm_check(sim, card.number < sim->endpoints && card.qpn == qpn,
		 "private data of another message");
	return &sim->endpoint[card.number];
}

static void run_act(void *context, void *argument)
{
	struct act *act = argument;
	struct endpoint *endpoint = act->endpoint;

	(void)context;
	if (endpoint->conn != NULL && endpoint->conn == act->conn) {
		act->act(endpoint);
		cm_host_look(endpoint->host);
	}
	free(act);
}

/* Schedule an action, unless the connection is gone by then. */
static void later(struct endpoint *endpoint, act_fn fn)
{
	struct cm_sim *sim = endpoint->sim;
	struct act *act = malloc(sizeof(*act));

	*act = (struct act){endpoint, endpoint->conn, fn};
	clock_at(&sim->clock, sim->clock.now_ns + rng_below(&sim->rng, sim->think_ns + 1), run_act,
		 sim, act);
}

void app_destroy(struct endpoint *endpoint)
{
	struct cm_conn *conn = endpoint->conn;

	if (!conn)
		return;
	endpoint->conn = NULL;
	if (endpoint->outcome == OUTCOME_NONE)
		endpoint->outcome = OUTCOME_DESTROYED;
	if (endpoint->host->device)
		cm_device_forget(endpoint->host, conn);
	cm_conn_destroy(conn, endpoint->sim->clock.now_ns);
}

void app_disconnect(struct endpoint *endpoint)
{
	/* -EINVAL: the peer was first, or the connection is over already. */
	if (endpoint->conn)
		cm_disconnect(endpoint->conn, NULL, 0, endpoint->sim->clock.now_ns);
}

/* Check that both sides of a connection have agreed on the same values. */
static void check_agreed(const struct endpoint *a, const struct endpoint *b)
{
	struct cm_agreed ours, theirs;

	if (!a->conn || !b->conn || !a->established || !b->established || a->peer != b ||
	    b->peer != a)
		return;
	cm_conn_agreed(a->conn, &ours);
	cm_conn_agreed(b->conn, &theirs);
	cm_check(a->sim, ours.sq_psn.v == theirs.rq_psn.v && ours.rq_psn.v == theirs.sq_psn.v,
		 "PSNs differ");
	cm_check(a->sim, ours.remote_qpn == theirs.local_qpn && ours.local_qpn == theirs.remote_qpn,
		 "queue pairs differ");
	cm_check(a->sim,
		 ours.max_rd_atomic <= theirs.max_dest_rd_atomic &&
			 theirs.max_rd_atomic <= ours.max_dest_rd_atomic,
		 "more READs than resources");
}

static void become_established(struct endpoint *endpoint)
{
	endpoint->established = true;
	endpoint->sim->stats_established++;
	check_agreed(endpoint, endpoint->peer);
	if (!endpoint->keeper)
		later(endpoint, rng_chance(&endpoint->sim->rng, endpoint->sim->destroy_ppm)
					? app_destroy
					: app_disconnect);
}

static void accept_it(struct endpoint *endpoint)
{
	const struct card card = card_of(endpoint);
	const struct cm_accept_attr attr = {
		.qpn = endpoint->qpn,
		.responder_resources = (uint8_t)rng_below(&endpoint->sim->rng, 20),
		.initiator_depth = (uint8_t)rng_below(&endpoint->sim->rng, 20),
		.private_data = &card,
		.private_len = sizeof(card),
		.user = endpoint,
	};

	/* -EINVAL: the peer has given up. */
	cm_accept(endpoint->conn, &attr, endpoint->sim->clock.now_ns);
}

static void reject_it(struct endpoint *endpoint)
{
	if (cm_reject(endpoint->conn, CM_REJ_CONSUMER_DEFINED, NULL, 0,
		      endpoint->sim->clock.now_ns) == 0 &&
	    endpoint->outcome == OUTCOME_NONE)
		endpoint->outcome = OUTCOME_DESTROYED;
	later(endpoint, app_destroy);
}

static void reply_it(struct endpoint *endpoint)
{
	const struct cm_reply_attr attr = {.qpn = endpoint->qpn, .qkey = endpoint->qpn + 1};

	cm_check(endpoint->sim, cm_reply(endpoint->conn, &attr, endpoint->sim->clock.now_ns) == 0,
		 "cm_reply");
	endpoint->outcome = OUTCOME_RESOLVED;
	later(endpoint, app_destroy);
}

/* The first packet of data overtakes the RTU. */
static void data_arrives(struct endpoint *endpoint)
{
	struct cm_agreed agreed;

	if (!endpoint->conn || endpoint->established)
		return;
	cm_conn_agreed(endpoint->conn, &agreed);
	if (agreed.remote_qpn == endpoint->peer->qpn)
		cm_data_arrived(endpoint->conn, endpoint->sim->clock.now_ns);
}

static void establish_it(struct endpoint *endpoint)
{
	struct endpoint *peer = endpoint->peer;

	if (cm_establish(endpoint->conn, NULL, 0, endpoint->sim->clock.now_ns) != 0)
		return;
	become_established(endpoint);
	if (peer->conn && peer->peer == endpoint &&
	    rng_chance(&endpoint->sim->rng, endpoint->sim->data_ppm)) {
		data_arrives(peer);
		cm_host_look(peer->host);
	}
}

/* This is the time that all retries can take if each is postponed by an MRA. */
static uint64_t patience_ns(const struct cm_sim *sim)
{
	return sim->lag_ns + sim->resolve_ns + SLOWEST_LOOK_NS +
	       (sim->max_cm_retries + 2u) *
		       (cm_time_ns(sim->response_timeout) + 3 * cm_time_ns(sim->packet_life_time) +
			cm_time_ns(MRA_EXPONENT));
}

/* Return the address that a request goes to. */
static struct gsi_address peer_of(const struct endpoint *endpoint)
{
	return endpoint->host->device ? endpoint->query.address
				      : cm_address(endpoint->host->index, endpoint->to);
}

static void resolve(struct endpoint *endpoint)
{
	struct cm_sim *sim = endpoint->sim;
	const struct cm_resolve_attr attr = {
		.to = peer_of(endpoint),
		.service_id = CM_UDP_SERVICE,
		.response_timeout = sim->response_timeout,
		.max_cm_retries = sim->max_cm_retries,
		.user = endpoint,
	};

	cm_check(sim,
		 cm_resolve(endpoint->host->cm, &attr, sim->clock.now_ns, &endpoint->conn) == 0,
		 "cm_resolve");
}

static void connect_it(struct endpoint *endpoint)
{
	struct cm_sim *sim = endpoint->sim;
	const struct card card = card_of(endpoint);
	const struct cm_connect_attr attr = {
		.to = peer_of(endpoint),
		.service_id = CM_TCP_SERVICE,
		.qpn = endpoint->qpn,
		.responder_resources = (uint8_t)rng_below(&sim->rng, 20),
		.initiator_depth = (uint8_t)rng_below(&sim->rng, 20),
		.mtu = 5,
		.packet_life_time = sim->packet_life_time,
		.response_timeout = sim->response_timeout,
		.max_cm_retries = sim->max_cm_retries,
		.private_data = &card,
		.private_len = sizeof(card),
		.user = endpoint,
	};

	cm_check(sim,
		 cm_connect(endpoint->host->cm, &attr, sim->clock.now_ns, &endpoint->conn) == 0,
		 "cm_connect");
}

static void call(struct endpoint *endpoint)
{
	struct cm_sim *sim = endpoint->sim;

	if (endpoint->sidr)
		resolve(endpoint);
	else
		connect_it(endpoint);
	if (rng_chance(&sim->rng, sim->destroy_ppm))
		later(endpoint, app_destroy);
	cm_host_look(endpoint->host);
}

void app_resolved(struct endpoint *endpoint, int status)
{
	if (!endpoint->resolving)
		return;
	endpoint->resolving = false;
	if (status == 0) {
		call(endpoint);
		return;
	}
	cm_check(endpoint->sim, !endpoint->sim->sure, "a neighbour is not found");
	endpoint->outcome = OUTCOME_UNREACHABLE;
	endpoint->due_ns = 0;
}

/* Resolve the peer's link address first; the application may give up meanwhile. */
static void resolve_neighbour(struct endpoint *endpoint)
{
	struct cm_sim *sim = endpoint->sim;
	const int rc = cm_device_resolve(endpoint, endpoint->to, sim->resolve_ns);

	if (rc == 0) {
		call(endpoint);
		return;
	}
	cm_check(sim, rc == -EINPROGRESS, "agent_resolve: %d", rc);
	if (rng_chance(&sim->rng, sim->destroy_ppm)) {
		agent_forget(&endpoint->query);
		endpoint->outcome = OUTCOME_DESTROYED;
		endpoint->due_ns = 0;
	} else {
		endpoint->resolving = true;
	}
	cm_host_look(endpoint->host);
}

void app_connect(struct cm_sim *sim, unsigned int from, unsigned int to, bool sidr)
{
	struct endpoint *endpoint = add_endpoint(&sim->host[from]);

	endpoint->active = true;
	endpoint->sidr = sidr;
	endpoint->keeper = rng_chance(&sim->rng, 200000);
	endpoint->due_ns = sim->clock.now_ns + patience_ns(sim);
	endpoint->to = to;
	sim->stats_connects++;
	if (endpoint->host->device)
		resolve_neighbour(endpoint);
	else
		call(endpoint);
}

struct endpoint *app_admit(struct cm_host *host, const struct cm_event *event)
{
	struct endpoint *endpoint = add_endpoint(host);

	endpoint->conn = event->conn;
	endpoint->sidr = event->type == CM_EVENT_SIDR_REQ;
	endpoint->events = 1u << event->type;
	cm_conn_set_user(event->conn, endpoint);
	return endpoint;
}

static void on_request(struct cm_host *host, const struct cm_event *event)
{
	struct cm_sim *sim = host->sim;
	struct endpoint *endpoint = host->device ? event->user : app_admit(host, event);

	cm_conn_take(event->conn);
	if (endpoint->sidr) {
		later(endpoint, rng_chance(&sim->rng, sim->destroy_ppm) ? app_destroy : reply_it);
		return;
	}
	endpoint->peer = sender_of(sim, event, event->mad.req.qpn);
	endpoint->keeper = endpoint->peer->keeper;
	if (rng_chance(&sim->rng, sim->reject_ppm))
		later(endpoint, reject_it);
	else
		later(endpoint, accept_it);
	if (rng_chance(&sim->rng, sim->destroy_ppm))
		later(endpoint, app_destroy);
}

static void on_rep(struct endpoint *endpoint, const struct cm_event *event)
{
	struct cm_sim *sim = endpoint->sim;

	endpoint->peer = sender_of(sim, event, event->mad.rep.qpn);
	cm_check(sim, endpoint->peer->peer == endpoint, "a REP of another connection");
	later(endpoint, rng_chance(&sim->rng, sim->reject_ppm) ? reject_it : establish_it);
}

static void end(struct endpoint *endpoint, enum outcome outcome)
{
	cm_check(endpoint->sim, endpoint->outcome == OUTCOME_NONE, "ended twice");
	endpoint->outcome = outcome;
	endpoint->established = false;
	/* The application answers a DREQ by disconnecting, or by destroying the connection. */
	if (rng_chance(&endpoint->sim->rng, 500000))
		app_disconnect(endpoint);
	later(endpoint, app_destroy);
}

static void count_stale(struct cm_sim *sim, const struct cm_event *event)
{
	if (event->type == CM_EVENT_REJECTED && event->status == CM_REJ_STALE_CONNECTION)
		sim->stats_stale++;
}

static enum outcome outcome_of(const struct cm_event *event)
{
	switch (event->type) {
	case CM_EVENT_REJECTED:
		return OUTCOME_REJECTED;
	case CM_EVENT_UNREACHABLE:
		return OUTCOME_UNREACHABLE;
	case CM_EVENT_SIDR_REP:
		return OUTCOME_RESOLVED;
	default:
		return event->status == 0 ? OUTCOME_DISCONNECTED : OUTCOME_TIMED_OUT;
	}
}

static void on_event(struct endpoint *endpoint, const struct cm_event *event)
{
	struct cm_sim *sim = endpoint->sim;

	cm_check(sim, endpoint->conn == event->conn, "an event of another connection");
	cm_check(sim, endpoint->events < 1u << event->type, "%s after %x",
		 cm_event_name(event->type), endpoint->events);
	endpoint->events |= 1u << event->type;
	cm_check(sim, endpoint->due_ns == 0 || sim->clock.now_ns <= endpoint->due_ns,
		 "%s after all timers", cm_event_name(event->type));
	endpoint->due_ns = 0;
	switch (event->type) {
	case CM_EVENT_REP:
		on_rep(endpoint, event);
		return;
	case CM_EVENT_ESTABLISHED:
		cm_check(sim, !endpoint->active, "established by itself");
		become_established(endpoint);
		return;
	case CM_EVENT_TIMEWAIT_EXIT:
		return;
	default:
		count_stale(sim, event);
		end(endpoint, outcome_of(event));
		return;
	}
}

void app_event(struct cm_host *host, const struct cm_event *event)
{
	cm_say(host->sim, "%u %s %d", host->index, cm_event_name(event->type), event->status);
	if (event->type == CM_EVENT_REQ || event->type == CM_EVENT_SIDR_REQ)
		on_request(host, event);
	else
		on_event(event->user, event);
}
