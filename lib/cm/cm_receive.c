/* SPDX-License-Identifier: BSD-3-Clause */
/* Received MADs: each goes to its connection; if it has none, it is answered or dropped. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "cm_internal.h"

/* Pass a message to its connection. */
static int give(struct cm_conn *conn, enum cm_input input, const uint8_t *bytes, int status,
		uint64_t now_ns)
{
	struct cm_stats *stats = &conn->cm->stats;
	const int ret = conn_step(conn, input, bytes, status, NULL, now_ns);

	stats->unexpected += ret == -EINVAL;
	stats->no_room += ret == -ENOMEM;
	return ret;
}

/* Return true if the connection has this peer's id. An active connection has none before the
 * REP. */
static bool has_id(const struct cm_conn *conn, uint32_t remote_id)
{
	return !conn->in_remote || conn->remote_id == remote_id;
}

/* Find the connection that a message names by both ids, if the message is from its peer. */
static struct cm_conn *find(const struct cm *cm, const struct cm_mad *mad,
			    const struct gsi_address *from)
{
	struct cm_conn *conn = conn_find_local(cm, mad->remote_id);

	return conn && !conn->sidr && conn->remote_id == mad->local_id && conn_is_peer(conn, from)
		       ? conn
		       : NULL;
}

/* Find a connection that has sent a REQ or SIDR_REQ by its own id: it may not know the peer's id
 * yet. */
static struct cm_conn *find_active(const struct cm *cm, uint32_t local_id, bool sidr,
				   const struct gsi_address *from)
{
	struct cm_conn *conn = conn_find_local(cm, local_id);

	return conn && conn->active && conn->sidr == sidr && conn_is_peer(conn, from) ? conn : NULL;
}

/* Return true if no other process of this host can have this id. */
static bool is_our_id(const struct cm *cm, uint32_t id)
{
	return (id & cm->config.id_mask) == cm->config.id_value;
}

/* Answer a message for a connection that is over, so that its peer does not wait in vain. */
static void answer_unknown(struct cm *cm, const struct cm_mad *mad, enum cm_message message,
			   const struct gsi_address *from)
{
	struct cm_mad answer = {
		.message = message,
		.tid = mad->tid,
		.local_id = mad->remote_id,
		.remote_id = mad->local_id,
	};
	uint8_t bytes[MAD_LEN];

	cm->stats.unknown++;
	if (!is_our_id(cm, mad->remote_id))
		return;
	if (message == CM_REJ)
		answer.rej =
			(struct cm_rej){.about = CM_ABOUT_REP, .reason = CM_REJ_INVALID_COMM_ID};
	if (cm_mad_build(&answer, bytes) == 0)
		cm_send(cm, from, bytes);
}

static void receive_mra(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			const struct gsi_address *from, uint64_t now_ns)
{
	const bool of_req = mad->mra.about == CM_ABOUT_REQ;
	struct cm_conn *conn =
		of_req ? find_active(cm, mad->remote_id, false, from) : find(cm, mad, from);

	if (!conn || mad->mra.about == CM_ABOUT_OTHER) {
		cm->stats.unknown++;
		return;
	}
	/* A peer that asks for more time than this gets our message again, and can ask again. */
	conn->mra_ns = cm_time_ns(RTE_MIN(mad->mra.service_timeout, CM_MRA_EXPONENT));
	give(conn, of_req ? CM_INPUT_MRA_OF_REQ : CM_INPUT_MRA_OF_REP, bytes, 0, now_ns);
}

/* Find a connection whose peer does not know our id, by the peer's id and GUID. */
static struct cm_conn *find_timed_out(const struct cm *cm, const struct cm_mad *mad,
				      const struct gsi_address *from)
{
	struct cm_conn *conn = conn_find_remote(cm, from, mad->local_id, false);
	rte_be64_t guid_be;

	if (!conn || conn->active || mad->rej.info_len < sizeof(guid_be))
		return NULL;
	memcpy(&guid_be, mad->rej.info, sizeof(guid_be));
	return rte_be_to_cpu_64(guid_be) == conn->remote_guid ? conn : NULL;
}

static void receive_rej(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			const struct gsi_address *from, uint64_t now_ns)
{
	struct cm_conn *conn;
	int status;

	if (mad->rej.reason == CM_REJ_TIMEOUT && mad->remote_id == 0)
		conn = find_timed_out(cm, mad, from);
	else
		conn = conn_find_local(cm, mad->remote_id);
	if (!conn || conn->sidr || !conn_is_peer(conn, from) || !has_id(conn, mad->local_id)) {
		cm->stats.unknown++;
		return;
	}
	/* A peer that rejects a DREQ has no connection to us, which is what the DREQ asked for. */
	status = conn->state == CM_STATE_DREQ_SENT ? 0 : mad->rej.reason;
	give(conn, mad->rej.reason == CM_REJ_STALE_CONNECTION ? CM_INPUT_REJ_STALE : CM_INPUT_REJ,
	     bytes, status, now_ns);
}

static void take_rep(struct cm_conn *conn, const struct cm_mad *mad)
{
	const struct cm_rep *rep = &mad->rep;
	struct cm_agreed *agreed = &conn->agreed;

	conn->remote_id = mad->local_id;
	agreed->remote_qpn = cm_rep_qpn(rep);
	agreed->remote_qkey = rep->qkey;
	agreed->remote_srq = rep->srq;
	agreed->sq_psn = rep->psn;
	agreed->max_rd_atomic = RTE_MIN(agreed->max_rd_atomic, rep->responder_resources);
	agreed->max_dest_rd_atomic = RTE_MIN(agreed->max_dest_rd_atomic, rep->initiator_depth);
	agreed->rnr_retry_count = rep->rnr_retry_count;
	agreed->ack_timeout =
		cm_ack_timeout(rep->target_ack_delay, (uint8_t)(agreed->ack_timeout - 1));
	conn->wait_ns = conn_bounded_ns(agreed->ack_timeout);
	conn_enter_remote(conn);
}

/* Reject a REP whose queue pair already has a connection with us. */
static void refuse_stale_rep(struct cm_conn *conn, struct cm_conn *old, const uint8_t *bytes,
			     const struct cm_mad *mad, uint64_t now_ns)
{
	const struct cm_mad say = {.remote_id = mad->local_id,
				   .rej = {.reason = CM_REJ_STALE_CONNECTION}};

	conn_step(conn, CM_INPUT_REP_STALE, bytes, CM_REJ_STALE_CONNECTION, &say, now_ns);
	conn_command(old, CM_INPUT_STALE, NULL, now_ns);
}

static void receive_rep(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			const struct gsi_address *from, uint64_t now_ns)
{
	struct cm_conn *conn = find_active(cm, mad->remote_id, false, from), *old;

	if (conn_find_local(cm, mad->remote_id) == NULL || (conn && conn->state == CM_STATE_IDLE)) {
		answer_unknown(cm, mad, CM_REJ, from);
		return;
	}
	if (!conn || !has_id(conn, mad->local_id)) {
		cm->stats.unknown++;
		return;
	}
	if (conn->in_remote) {
		give(conn, CM_INPUT_REP_AGAIN, bytes, 0, now_ns);
		return;
	}
	old = conn_find_qpn(cm, from, cm_rep_qpn(&mad->rep));
	if (old)
		refuse_stale_rep(conn, old, bytes, mad, now_ns);
	else if (conn_find_remote(cm, from, mad->local_id, false))
		cm->stats.unexpected++; /* the peer already uses this id with us */
	else if (give(conn, CM_INPUT_REP, bytes, 0, now_ns) == 0)
		take_rep(conn, mad);
}

static void receive_rtu(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			const struct gsi_address *from, uint64_t now_ns)
{
	struct cm_conn *conn = find(cm, mad, from);

	if (conn && !conn->active)
		give(conn, CM_INPUT_RTU, bytes, 0, now_ns);
	else
		cm->stats.unknown++;
}

static void receive_dreq(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			 const struct gsi_address *from, uint64_t now_ns)
{
	struct cm_conn *conn = find(cm, mad, from);

	if (conn_find_local(cm, mad->remote_id) == NULL) {
		answer_unknown(cm, mad, CM_DREP, from);
		return;
	}
	if (!conn || conn->agreed.local_qpn != mad->dreq_qpn) {
		cm->stats.unknown++;
		return;
	}
	/* The connection is over; only its user still has the pointer. */
	if (conn->state == CM_STATE_IDLE) {
		answer_unknown(cm, mad, CM_DREP, from);
		return;
	}
	conn->peer_tid = mad->tid;
	give(conn, CM_INPUT_DREQ, bytes, 0, now_ns);
}

static void receive_drep(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			 const struct gsi_address *from, uint64_t now_ns)
{
	struct cm_conn *conn = find(cm, mad, from);

	if (conn)
		give(conn, CM_INPUT_DREP, bytes, 0, now_ns);
	else
		cm->stats.unknown++;
}

static void receive_sidr_rep(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			     const struct gsi_address *from, uint64_t now_ns)
{
	struct cm_conn *conn = find_active(cm, mad->local_id, true, from);

	if (conn && conn->service_id == mad->sidr_rep.service_id)
		give(conn, CM_INPUT_SIDR_REP, bytes, mad->sidr_rep.status, now_ns);
	else
		cm->stats.unknown++;
}

static void receive_ours(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
			 const struct gsi_address *from, uint64_t now_ns)
{
	switch (mad->message) {
	case CM_REQ:
	case CM_SIDR_REQ:
		request_receive(cm, bytes, mad, from, now_ns);
		return;
	case CM_MRA:
		receive_mra(cm, bytes, mad, from, now_ns);
		return;
	case CM_REJ:
		receive_rej(cm, bytes, mad, from, now_ns);
		return;
	case CM_REP:
		receive_rep(cm, bytes, mad, from, now_ns);
		return;
	case CM_RTU:
		receive_rtu(cm, bytes, mad, from, now_ns);
		return;
	case CM_DREQ:
		receive_dreq(cm, bytes, mad, from, now_ns);
		return;
	case CM_DREP:
		receive_drep(cm, bytes, mad, from, now_ns);
		return;
	case CM_SIDR_REP:
		receive_sidr_rep(cm, bytes, mad, from, now_ns);
		return;
	case CM_LAP:
	case CM_APR:
		/* RoCE has no alternate paths; Linux drops these messages, too. */
		cm->stats.unexpected++;
		return;
	}
}

void cm_receive(struct cm *cm, const uint8_t *mad, size_t len, const struct gsi_address *from,
		uint64_t now_ns)
{
	struct cm_mad parsed;
	const enum cm_mad_status status = cm_mad_parse(mad, len, &parsed);
	uint8_t answer[MAD_LEN];

	cm->stats.received++;
	cm->stats.malformed += status != CM_MAD_OK;
	if (status == CM_MAD_OK)
		receive_ours(cm, mad, &parsed, from, now_ns);
	else if (cm_mad_answer(mad, status, answer))
		cm_send(cm, from, answer);
}
