/* SPDX-License-Identifier: BSD-3-Clause */
/* Execution of the table of transitions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "cm_internal.h"

void cm_send(struct cm *cm, const struct gsi_address *to, const uint8_t *mad)
{
	cm->stats.sent++;
	cm->config.sink->send(cm->config.sink, to, mad);
}

/*
 * Return the message that a REJ or MRA is about. On the passive side this is always the REQ: an
 * active side that has lost the REP knows no id except its own.
 */
static uint8_t about(const struct cm_conn *conn, enum cm_input input)
{
	if (!conn->active)
		return CM_ABOUT_REQ;
	if (conn->state == CM_STATE_REP_RCVD || conn->state == CM_STATE_MRA_REP_SENT ||
	    input == CM_INPUT_REP_STALE)
		return CM_ABOUT_REP;
	return CM_ABOUT_OTHER;
}

/* Fill in the fields that the caller does not give, and a default REJ or SIDR_REP if the caller
 * gives none. */
static void complete(const struct cm_conn *conn, const struct cm_transition *row,
		     enum cm_input input, bool said, struct cm_mad *mad)
{
	switch (mad->message) {
	case CM_MRA:
		mad->mra.about = about(conn, input);
		mad->mra.service_timeout = CM_MRA_EXPONENT;
		break;
	case CM_REJ:
		mad->rej.about = about(conn, input);
		if (said)
			break;
		mad->rej.reason = row->reason;
		/* 12.6.7: a peer that has not received our answer knows us by our GUID and
		 * id. */
		if (row->reason == CM_REJ_TIMEOUT) {
			mad->rej.info = (const uint8_t *)&conn->cm->guid_be;
			mad->rej.info_len = sizeof(conn->cm->guid_be);
		}
		break;
	case CM_DREQ:
		mad->tid = conn->tid + 1;
		mad->dreq_qpn = conn->agreed.remote_qpn;
		break;
	case CM_DREP:
		mad->tid = conn->peer_tid;
		break;
	case CM_SIDR_REP:
		mad->local_id = conn->remote_id;
		mad->sidr_rep.service_id = conn->service_id;
		if (!said)
			mad->sidr_rep.status = CM_SIDR_REJECTED;
		break;
	default:
		break;
	}
}

static int build(const struct cm_conn *conn, const struct cm_transition *row, enum cm_input input,
		 const struct cm_mad *say, uint8_t *bytes)
{
	struct cm_mad mad = {0};

	if (say)
		mad = *say;
	mad.message = (enum cm_message)row->send;
	mad.tid = conn->tid;
	mad.local_id = conn->local_id;
	if (conn->remote_id != 0)
		mad.remote_id = conn->remote_id;
	complete(conn, row, input, say != NULL, &mad);
	return cm_mad_build(&mad, bytes);
}

static void send_as_told(struct cm_conn *conn, const struct cm_transition *row,
			 const uint8_t *bytes)
{
	if (row->send == CM_SEND_AGAIN) {
		conn->cm->stats.resent++;
		conn->cm->config.sink->send(conn->cm->config.sink, &conn->peer, conn->kept);
	} else if (row->send != 0) {
		/* Do not keep a DREP: each DREQ gets a new one. */
		if (row->send == CM_DREP)
			conn->has_answered_dreq = true;
		else
			memcpy(conn->kept, bytes, MAD_LEN);
		cm_send(conn->cm, &conn->peer, bytes);
	}
}

static void set_timer(struct cm_conn *conn, enum cm_timer timer, uint64_t now_ns)
{
	struct cm_timers *timers = &conn->cm->timers;

	switch (timer) {
	case CM_TIMER_KEEP:
		return;
	case CM_TIMER_OFF:
		timers_disarm(timers, &conn->timer);
		return;
	case CM_TIMER_FIRST:
		conn->retries = conn->max_retries;
		timers_arm(timers, &conn->timer, now_ns + conn->response_ns);
		return;
	case CM_TIMER_AGAIN:
		conn->retries--;
		timers_arm(timers, &conn->timer, now_ns + conn->response_ns);
		return;
	case CM_TIMER_MRA:
		timers_arm(timers, &conn->timer, now_ns + conn->mra_ns + conn->life_ns);
		return;
	case CM_TIMER_WAIT:
		conn->retries = 0;
		timers_arm(timers, &conn->timer, now_ns + conn->wait_ns);
		return;
	case CM_TIMER_LINGER:
		conn->retries = 0;
		timers_arm(timers, &conn->timer, now_ns + conn->linger_ns);
		return;
	}
}

static bool is_half_open(const struct cm_conn *conn)
{
	switch (conn->state) {
	case CM_STATE_REQ_RCVD:
	case CM_STATE_MRA_REQ_SENT:
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
	case CM_STATE_SIDR_REQ_RCVD:
		return true;
	default:
		return false;
	}
}

static bool is_lingering(const struct cm_conn *conn)
{
	return conn->state == CM_STATE_REJ_SENT || conn->state == CM_STATE_SIDR_REP_SENT;
}

/* Return true if the peer may use the queue pair for another connection. In timewait it may, as
 * with Linux: the peer's own timewait may be over before ours. */
static bool is_free_of_qp(const struct cm_conn *conn)
{
	switch (conn->state) {
	case CM_STATE_IDLE:
	case CM_STATE_REJ_SENT:
	case CM_STATE_TIMEWAIT:
		return true;
	default:
		return false;
	}
}

static void set_state(struct cm_conn *conn, enum cm_state state)
{
	struct cm *cm = conn->cm;

	cm->half_open -= is_half_open(conn);
	if (is_lingering(conn)) {
		TAILQ_REMOVE(&cm->lingering, conn, in_lingering);
		cm->lingering_count--;
	}
	conn->state = state;
	cm->half_open += is_half_open(conn);
	if (is_lingering(conn)) {
		TAILQ_INSERT_TAIL(&cm->lingering, conn, in_lingering);
		cm->lingering_count++;
	}
	if (is_free_of_qp(conn))
		conn_leave_qpn(conn);
	if (state == CM_STATE_IDLE)
		conn_leave_remote(conn);
}

static void raise_event(struct cm_conn *conn, struct cm_pending *pending, enum cm_event_type type,
			const uint8_t *cause, int status)
{
	pending->conn = conn;
	pending->type = type;
	pending->status = status;
	pending->has_mad = cause != NULL;
	if (cause)
		memcpy(pending->mad, cause, MAD_LEN);
	TAILQ_INSERT_TAIL(&conn->cm->events, pending, next);
	conn->pendings++;
}

/* Drop the oldest kept answers if there are too many. */
static void evict(struct cm *cm, uint64_t now_ns)
{
	while (cm->lingering_count > cm->config.lingering_max)
		conn_command(TAILQ_FIRST(&cm->lingering), CM_INPUT_EXPIRED, NULL, now_ns);
}

int conn_step(struct cm_conn *conn, enum cm_input input, const uint8_t *cause, int status,
	      const struct cm_mad *say, uint64_t now_ns)
{
	const struct cm_transition *row = cm_transition(conn->state, input);
	struct cm_pending *pending = NULL;
	struct cm *cm = conn->cm;
	uint8_t bytes[MAD_LEN];

	if (!row->defined)
		return -EINVAL;
	if (row->send > CM_SEND_AGAIN && build(conn, row, input, say, bytes) != 0)
		return -EINVAL;
	if (row->event != CM_EVENT_NONE && conn->owned) {
		pending = malloc(sizeof(*pending));
		if (!pending)
			return -ENOMEM;
	}
	set_state(conn, (enum cm_state)row->next);
	send_as_told(conn, row, bytes);
	set_timer(conn, (enum cm_timer)row->timer, now_ns);
	if (pending)
		raise_event(conn, pending, (enum cm_event_type)row->event, cause, status);
	if (conn->state == CM_STATE_IDLE && !conn->owned)
		conn_free(conn);
	evict(cm, now_ns);
	return 0;
}

/* Say why a command fails: the table has no transition, or the private data has no room. */
static int refuse(const struct cm_conn *conn, enum cm_input input, const struct cm_mad *say)
{
	static const char *const inputs[] = {
#define INPUT(name) #name,
		CM_INPUTS(INPUT)
#undef INPUT
	};
	const struct cm_transition *row = cm_transition(conn->state, input);

	if (!row->defined)
		return CALL_REASON(-EINVAL,
				   "the connection is in %s, where %s is not possible (IBTA 12.9)",
				   cm_state_name(conn->state), inputs[input]);
	return CALL_REASON(-EINVAL, CM_SAY_PRIVATE_LONG, say ? say->private_len : 0,
			   cm_private_len(row->send), cm_message_name(row->send), "");
}

int conn_command(struct cm_conn *conn, enum cm_input input, const struct cm_mad *say,
		 uint64_t now_ns)
{
	const int rc = conn_step(conn, input, NULL, 0, say, now_ns);

	return rc == -EINVAL ? refuse(conn, input, say) : rc;
}

void events_drop(struct cm_conn *conn)
{
	struct cm_pending_list *events = &conn->cm->events;
	struct cm_pending *pending = TAILQ_FIRST(events);

	while (conn->pendings > 0) {
		struct cm_pending *next = TAILQ_NEXT(pending, next);

		if (pending->conn == conn) {
			TAILQ_REMOVE(events, pending, next);
			free(pending);
			conn->pendings--;
		}
		pending = next;
	}
}

void conn_enter_backlog(struct cm_conn *conn, struct cm_listener *listener)
{
	conn->listener = listener;
	LIST_INSERT_HEAD(&listener->backlog, conn, in_backlog);
}

void conn_leave_backlog(struct cm_conn *conn)
{
	if (!conn->listener)
		return;
	LIST_REMOVE(conn, in_backlog);
	listener_give_place(conn->listener);
	conn->listener = NULL;
}
