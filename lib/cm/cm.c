/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager: creation and destruction, timers and events. */
#include "cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cm_internal.h"

#define NO_MEMORY_RETRY_NS \
	UINT64_C(1000000000) /* time after which a timer runs again whose event found no memory */

int cm_create(const struct cm_config *config, struct cm **cm)
{
	struct cm *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->config = *config;
	made->guid_be = rte_cpu_to_be_64(config->ca_guid);
	if (made->config.half_open_max == 0)
		made->config.half_open_max = CM_HALF_OPEN_DEFAULT;
	if (made->config.lingering_max == 0)
		made->config.lingering_max = CM_LINGERING_DEFAULT;
	TAILQ_INIT(&made->events);
	TAILQ_INIT(&made->lingering);
	if (getrandom(&made->hash_seed, sizeof(made->hash_seed), 0) !=
	    (ssize_t)sizeof(made->hash_seed)) {
		free(made);
		return -EIO;
	}
	*cm = made;
	return 0;
}

void cm_destroy(struct cm *cm)
{
	for (uint32_t i = 0; i < CM_BUCKETS; i++) {
		while (!LIST_EMPTY(&cm->by_local[i]))
			conn_free(LIST_FIRST(&cm->by_local[i]));
	}
	while (!LIST_EMPTY(&cm->listeners)) {
		struct cm_listener *listener = LIST_FIRST(&cm->listeners);

		LIST_REMOVE(listener, next);
		free(listener);
	}
	timers_fini(&cm->timers);
	grey_fini(&cm->grey);
	free(cm);
}

uint64_t cm_deadline_ns(const struct cm *cm)
{
	const struct cm_timer_entry *first = timers_first(&cm->timers);

	return first ? first->at_ns : UINT64_MAX;
}

void cm_expire(struct cm *cm, uint64_t now_ns)
{
	struct cm_timer_entry *first;

	while ((first = timers_first(&cm->timers)) != NULL && first->at_ns <= now_ns) {
		struct cm_conn *conn = container_of(first, struct cm_conn, timer);
		const enum cm_input input = conn->retries > 0 ? CM_INPUT_TIMEOUT : CM_INPUT_EXPIRED;
		const int status = conn->state == CM_STATE_TIMEWAIT ? 0 : -ETIMEDOUT;

		if (conn_step(conn, input, NULL, status, NULL, now_ns) != 0)
			timers_arm(&cm->timers, first, now_ns + NO_MEMORY_RETRY_NS);
	}
}

const struct cm_stats *cm_stats(const struct cm *cm)
{
	return &cm->stats;
}

uint32_t cm_conn_count(const struct cm *cm)
{
	return cm->conns;
}

static void tell_listener(const struct cm_listener *listener, gsi_tell_conn *tell, void *arg)
{
	struct gsi_conn view = {
		.number = listener->number,
		.state = "LISTEN",
		.service_id = listener->attr.service_id,
	};

	if (!listener->attr.any_address)
		memcpy(view.local, listener->attr.address, sizeof(view.local));
	tell(&view, arg);
}

static void tell_conn(const struct cm_conn *conn, gsi_tell_conn *tell, void *arg)
{
	struct gsi_conn view = {
		.number = conn->local_id,
		.state = cm_state_name(conn->state),
		.service_id = conn->service_id,
		.qpn = conn->agreed.local_qpn,
		.active = conn->active,
	};

	memcpy(view.local, conn->peer.local, sizeof(view.local));
	memcpy(view.remote, conn->peer.remote, sizeof(view.remote));
	tell(&view, arg);
}

void cm_each(const struct cm *cm, gsi_tell_conn *tell, void *arg)
{
	const struct cm_listener *listener;
	const struct cm_conn *conn;

	LIST_FOREACH (listener, &cm->listeners, next)
		tell_listener(listener, tell, arg);
	for (uint32_t i = 0; i < CM_BUCKETS && cm->conns > 0; i++) {
		LIST_FOREACH (conn, &cm->by_local[i], by_local)
			tell_conn(conn, tell, arg);
	}
}

static bool is_request(const struct cm_event *event)
{
	return event->type == CM_EVENT_REQ || event->type == CM_EVENT_SIDR_REQ;
}

/* Fill in an event's message, and the fields of it that are for the user. */
static void tell_mad(const struct cm_conn *conn, struct cm_event *event)
{
	/* cm_receive has parsed it before; now the pointers must point into the event. */
	if (cm_mad_parse(event->bytes, sizeof(event->bytes), &event->mad) != CM_MAD_OK)
		return;
	event->private_data = event->mad.private_data;
	event->private_len = event->mad.private_len;
	if (!is_request(event) || !conn->has_ip ||
	    cm_ip_parse(event->private_data, event->private_len, &event->ip) != 0)
		return;
	event->has_ip = true;
	event->private_data += CM_IP_LEN;
	event->private_len -= CM_IP_LEN;
}

bool cm_next_event(struct cm *cm, struct cm_event *event)
{
	struct cm_pending *pending = TAILQ_FIRST(&cm->events);
	struct cm_conn *conn;

	if (!pending)
		return false;
	TAILQ_REMOVE(&cm->events, pending, next);
	conn = pending->conn;
	conn->pendings--;
	memset(event, 0, sizeof(*event));
	event->type = pending->type;
	event->conn = conn;
	event->user = is_request(event) ? conn->listener->attr.user : conn->user;
	event->status = pending->status;
	event->tries = conn->max_retries + 1;
	event->try_ns = conn->response_ns;
	event->active = conn->active;
	event->has_mad = pending->has_mad;
	if (event->has_mad) {
		memcpy(event->bytes, pending->mad, sizeof(event->bytes));
		tell_mad(conn, event);
	}
	conn->told |= is_request(event);
	free(pending);
	return true;
}
