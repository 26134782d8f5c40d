/* SPDX-License-Identifier: BSD-3-Clause */
/* New requests from peers: REQ and SIDR_REQ. */
#include <string.h>

#include <rte_common.h>
#include <rte_jhash.h>

#include "cm_internal.h"
#include "wire/gid.h"
#include "wire/headers.h"

#define MTU_MIN 1 /* enum ibv_mtu */
#define MTU_MAX 5

void request_reject(struct cm *cm, const struct cm_mad *mad, const struct gsi_address *to,
		    enum cm_rej_reason reason, const void *info, uint8_t info_len)
{
	const struct cm_mad rej = {
		.message = CM_REJ,
		.tid = mad->tid,
		.remote_id = mad->local_id,
		.rej = {.about = CM_ABOUT_REQ,
			.reason = (uint16_t)reason,
			.info = info,
			.info_len = info_len},
	};
	uint8_t bytes[MAD_LEN];

	if (cm_mad_build(&rej, bytes) == 0)
		cm_send(cm, to, bytes);
}

static void sidr_refuse(struct cm *cm, const struct cm_mad *mad, const struct gsi_address *to,
			enum cm_sidr_status status)
{
	const struct cm_mad rep = {
		.message = CM_SIDR_REP,
		.tid = mad->tid,
		.local_id = mad->local_id,
		.sidr_rep = {.status = (uint8_t)status, .service_id = mad->sidr_req.service_id},
	};
	uint8_t bytes[MAD_LEN];

	if (cm_mad_build(&rep, bytes) == 0)
		cm_send(cm, to, bytes);
}

static void refuse(struct cm *cm, const struct cm_mad *mad, const struct gsi_address *to,
		   enum cm_rej_reason reason, enum cm_sidr_status status)
{
	if (mad->message == CM_REQ)
		request_reject(cm, mad, to, reason, NULL, 0);
	else
		sidr_refuse(cm, mad, to, status);
}

static bool is_transport(const struct cm_req *req)
{
	switch (req->transport) {
	case CM_TRANSPORT_RC:
	case CM_TRANSPORT_UC:
		return true;
	case CM_TRANSPORT_EXTENDED:
		return req->extended_type == CM_EXTENDED_XRC;
	default:
		return false;
	}
}

/* Check the connection that a REQ asks for. Return 0, or the reason of the REJ. */
static int check_req(const struct cm_req *req, const struct gsi_address *from)
{
	if (!is_transport(req))
		return CM_REJ_INVALID_TRANSPORT_TYPE;
	if (req->mtu < MTU_MIN || req->mtu > MTU_MAX)
		return CM_REJ_INVALID_MTU;
	if (!wire_is_our_pkey(req->pkey))
		return CM_REJ_UNSUPPORTED_REQUEST;
	/* The connection's packets must go to the sender of the REQ, and to nobody else. */
	if (memcmp(req->primary.local_gid, from->remote, GID_LEN) != 0 ||
	    memcmp(req->primary.remote_gid, from->local, GID_LEN) != 0)
		return CM_REJ_INVALID_GID;
	return 0;
}

/* Check that a REQ asks for the transport service that the listener's queue pairs have. */
static int check_transport(const struct cm_listener *listener, const struct cm_mad *mad)
{
	if (listener->attr.datagrams || mad->req.transport == listener->attr.transport)
		return 0;
	return CM_REJ_INVALID_TRANSPORT_TYPE;
}

/* Check that the IP header, if the listener's requests have one, has the packet's addresses. */
static int check_ip(const struct cm_listener *listener, const struct cm_mad *mad,
		    const struct gsi_address *from)
{
	struct cm_ip ip;

	if (!listener->attr.ip)
		return 0;
	if (cm_ip_parse(mad->private_data, mad->private_len, &ip) != 0)
		return CM_REJ_CONSUMER_DEFINED;
	return cm_ip_fits(&ip, from->remote, from->local) ? 0 : CM_REJ_INVALID_GID;
}

/* Find the address that a request is for. It is the packet's destination, except for a loopback
 * address, which no packet can have: a request of this host to itself has it in the IP header. */
static void find_target(const struct cm_mad *mad, const struct gsi_address *from,
			struct gsi_address *target)
{
	struct cm_ip ip;

	*target = *from;
	if (cm_ip_parse(mad->private_data, mad->private_len, &ip) == 0 && gid_is_loopback(ip.dst) &&
	    cm_ip_fits(&ip, from->remote, from->local))
		memcpy(target->local, ip.dst, sizeof(target->local));
}

/* Process a request whose id its sender already uses: the request is repeated, or is another
 * one. */
static void receive_again(struct cm_conn *conn, const uint8_t *bytes, const struct cm_mad *mad,
			  const struct gsi_address *from, uint64_t now_ns)
{
	const enum cm_input input = conn->sidr ? CM_INPUT_SIDR_REQ_AGAIN : CM_INPUT_REQ_AGAIN;
	const bool same = !conn->active && conn->tid == mad->tid && conn_is_peer(conn, from) &&
			  (conn->sidr || conn->agreed.remote_qpn == mad->req.qpn);

	if (same && conn_step(conn, input, bytes, 0, NULL, now_ns) == 0)
		return;
	conn->cm->stats.unexpected++;
	if (!same && mad->message == CM_REQ)
		request_reject(conn->cm, mad, from, CM_REJ_DUPLICATE_LOCAL_COMM_ID, NULL, 0);
}

/* Return true, and reject the REQ, if we still have a connection with its queue pair (12.9). */
static bool is_stale(struct cm *cm, const struct cm_mad *mad, const struct gsi_address *from,
		     uint64_t now_ns)
{
	struct cm_conn *old;

	if (mad->message != CM_REQ)
		return false;
	old = conn_find_qpn(cm, from, mad->req.qpn);
	if (!old)
		return false;
	request_reject(cm, mad, from, CM_REJ_STALE_CONNECTION, NULL, 0);
	conn_command(old, CM_INPUT_STALE, NULL, now_ns);
	return true;
}

static bool came_before(struct cm *cm, const struct cm_mad *mad, const struct gsi_address *from,
			uint64_t now_ns)
{
	uint32_t words[8] = {mad->local_id, (uint32_t)(mad->tid >> 32), (uint32_t)mad->tid,
			     (uint32_t)from->vlan_id};
	uint32_t high = cm->hash_seed, low = ~cm->hash_seed;

	memcpy(words + 4, from->remote, sizeof(from->remote));
	rte_jhash_32b_2hashes(words, RTE_DIM(words), &high, &low);
	return grey_seen(&cm->grey, (uint64_t)high << 32 | low, now_ns);
}

/*
 * Take a place for one more request. Return false if there is no room.
 *
 * The backlog is for everybody, as with Linux. Two more parts are only for requests that come for
 * the second time, because a real peer repeats its request, and the invented peers of a flood do
 * not: a quarter on top of a full backlog, and the last quarter of all half-open connections.
 *
 * A REQ that finds no room is dropped, too: its peer repeats it, and a burst of connects succeeds
 * in the end. A REJ would make them fail. Linux does the same.
 */
static bool take_place(struct cm *cm, struct cm_listener *listener, const struct cm_mad *mad,
		       const struct gsi_address *from, uint64_t now_ns)
{
	const uint32_t backlog = listener->attr.backlog;
	const bool crowded =
		cm->half_open >= cm->config.half_open_max - cm->config.half_open_max / 4;
	const bool full = mad->message == CM_REQ && listener_waiting(listener) >= backlog;
	bool again;

	if (cm->half_open >= cm->config.half_open_max) {
		cm->stats.no_room++;
		return false;
	}
	again = (crowded || full) && came_before(cm, mad, from, now_ns);
	if (crowded && !again) {
		cm->stats.grey++;
		return false;
	}
	if (!listener_take_place(listener, full && again ? backlog + backlog / 4 : backlog)) {
		cm->stats.full++;
		if (mad->message == CM_SIDR_REQ)
			sidr_refuse(cm, mad, from, CM_SIDR_REJECTED);
		return false;
	}
	return true;
}

static void take_req(struct cm_conn *conn, const struct cm_req *req)
{
	const uint8_t ack_timeout = req->primary.ack_timeout;

	conn->remote_guid = req->ca_guid;
	conn->service_id = req->service_id;
	conn->offered_resources = req->responder_resources;
	conn->offered_depth = req->initiator_depth;
	conn->extended = req->transport == CM_TRANSPORT_EXTENDED;
	conn->alternate = !gid_is_zero(req->alternate.local_gid);
	conn->agreed.remote_qpn = req->qpn;
	conn->agreed.remote_qkey = req->qkey;
	conn->agreed.remote_srq = req->srq;
	conn->agreed.sq_psn = req->psn;
	conn->agreed.max_rd_atomic = req->responder_resources;
	conn->agreed.max_dest_rd_atomic = req->initiator_depth;
	conn->agreed.ack_timeout = ack_timeout;
	conn->agreed.retry_count = req->retry_count;
	conn->agreed.rnr_retry_count = req->rnr_retry_count;
	conn->agreed.mtu = req->mtu;
	conn->agreed.flow_label = req->primary.flow_label;
	conn->agreed.hop_limit = req->primary.hop_limit;
	conn->agreed.tclass = req->primary.tclass;
	conn->max_retries = req->max_cm_retries;
	conn->response_ns = conn_bounded_ns(req->local_response_timeout);
	conn->life_ns = conn_bounded_ns(RTE_MAX(ack_timeout, 1) - 1);
	conn->wait_ns = conn_bounded_ns(ack_timeout);
	conn->linger_ns = 2 * (conn_bounded_ns(req->remote_response_timeout) + 2 * conn->life_ns);
}

static void take_sidr_req(struct cm_conn *conn, const struct cm_sidr_req *req)
{
	conn->sidr = true;
	conn->service_id = req->service_id;
	conn->linger_ns = 2 * cm_time_ns(CM_RESPONSE_EXPONENT);
}

/* Make a connection of a request that has a place in the backlog. */
static void take(struct cm_listener *listener, const uint8_t *bytes, const struct cm_mad *mad,
		 const struct gsi_address *from, uint64_t now_ns)
{
	struct cm *cm = listener->cm;
	struct cm_conn *conn = conn_create(cm, from);

	if (!conn) {
		listener_give_place(listener);
		cm->stats.no_room++;
		return;
	}
	conn->remote_id = mad->local_id;
	conn->tid = mad->tid;
	conn->has_ip = listener->attr.ip;
	if (mad->message == CM_REQ)
		take_req(conn, &mad->req);
	else
		take_sidr_req(conn, &mad->sidr_req);
	if (conn_step(conn, mad->message == CM_REQ ? CM_INPUT_REQ : CM_INPUT_SIDR_REQ, bytes, 0,
		      NULL, now_ns) != 0) {
		listener_give_place(listener);
		cm->stats.no_room++;
		conn_free(conn);
		return;
	}
	conn_enter_backlog(conn, listener);
	conn_enter_remote(conn);
}

void request_receive(struct cm *cm, const uint8_t *bytes, const struct cm_mad *mad,
		     const struct gsi_address *from, uint64_t now_ns)
{
	const bool sidr = mad->message == CM_SIDR_REQ;
	const uint64_t service_id = sidr ? mad->sidr_req.service_id : mad->req.service_id;
	struct cm_conn *conn = conn_find_remote(cm, from, mad->local_id, sidr);
	struct cm_listener *listener;
	struct gsi_address target;
	int reason;

	if (conn) {
		receive_again(conn, bytes, mad, from, now_ns);
		return;
	}
	reason = sidr ? 0 : check_req(&mad->req, from);
	if (reason != 0) {
		request_reject(cm, mad, from, (enum cm_rej_reason)reason, from->local,
			       reason == CM_REJ_INVALID_GID ? sizeof(from->local) : 0);
		return;
	}
	if (is_stale(cm, mad, from, now_ns))
		return;
	find_target(mad, from, &target);
	listener = listener_find(cm, service_id, sidr, &target);
	if (!listener) {
		refuse(cm, mad, from, CM_REJ_INVALID_SERVICE_ID, CM_SIDR_UNSUPPORTED_SERVICE);
		return;
	}
	reason = check_transport(listener, mad);
	if (reason == 0)
		reason = check_ip(listener, mad, from);
	if (reason != 0) {
		refuse(cm, mad, from, (enum cm_rej_reason)reason, CM_SIDR_REJECTED);
		return;
	}
	if (take_place(cm, listener, mad, from, now_ns))
		take(listener, bytes, mad, from, now_ns);
}
