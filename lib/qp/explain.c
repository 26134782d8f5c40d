/* SPDX-License-Identifier: BSD-3-Clause */
/* Says why a queue pair fails, to a user who wants to know (base/reason.h). */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/origin.h"
#include "base/reason.h"
#include "base/verbs_later.h"
#include "qp_internal.h"

#define PEER_MAX (INET6_ADDRSTRLEN + 32)

static const char *operation_name(uint8_t opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE with immediate data",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND with immediate data",
		[IBV_WR_RDMA_READ] = "READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[IBV_WR_LOCAL_INV] = "local invalidation",
		[IBV_WR_BIND_MW] = "binding of a window",
		[IBV_WR_SEND_WITH_INV] = "SEND with invalidation",
		[LATER_WR_FLUSH] = "FLUSH",
		[IBV_WR_ATOMIC_WRITE] = "ATOMIC WRITE",
	};

	return opcode < RTE_DIM(names) && names[opcode] ? names[opcode] : "work request";
}

static const char *status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
#define WC_STATUS(value, name) [value] = (name),
#include "base/wc_status.def"
#undef WC_STATUS
	};

	return names[status];
}

static void write_peer(const struct qp *qp, char peer[PEER_MAX])
{
	const struct path *path = &qp->peer.path;
	const uint8_t *ip = path->hdr + path->l3_off;
	char address[INET6_ADDRSTRLEN];

	inet_ntop(path->ipv6 ? AF_INET6 : AF_INET,
		  ip + (path->ipv6 ? PATH_IPV6_DST : PATH_IPV4_DST), address, sizeof(address));
	snprintf(peer, PEER_MAX, "%s queue pair 0x%x", address, qp->peer.qpn);
}

void qp_explain_oldest(const struct qp *qp, char text[QP_EXPLAIN_REQUEST_MAX])
{
	const struct send_wqe *wqe =
		qp->sq.cons != sq_prod(&qp->sq) ? sq_at(&qp->sq, qp->sq.cons) : NULL;
	char bytes[32] = "", peer[PEER_MAX] = "";

	if (!wqe) {
		snprintf(text, QP_EXPLAIN_REQUEST_MAX, "queue pair 0x%x", qp->init.qpn);
		return;
	}
	if (!sq_is_local((enum ibv_wr_opcode)sq_posted_opcode(wqe))) {
		snprintf(bytes, sizeof(bytes), " of %u bytes", wqe->length);
		if (qp_is_datagram(qp))
			snprintf(peer, sizeof(peer), "queue pair 0x%x", wqe->remote_qpn);
		else
			write_peer(qp, peer);
	}
	snprintf(text, QP_EXPLAIN_REQUEST_MAX, "%s%s (wr_id %" PRIu64 ") by queue pair 0x%x%s%s",
		 operation_name(sq_posted_opcode(wqe)), bytes, wqe->wr_id, qp->init.qpn,
		 peer[0] ? " to " : "", peer);
}

static const char *write_origin(const struct qp *qp, char text[ORIGIN_TEXT_MAX])
{
	return origin_write(qp, "the queue pair", text);
}

/* The oldest send request is at fault. */
static void explain_request(const struct qp *qp, const char *status, const char *reason)
{
	char what[QP_EXPLAIN_REQUEST_MAX], origin[ORIGIN_TEXT_MAX];

	qp_explain_oldest(qp, what);
	log_error("%s: %s: %s%s", what, status, reason, write_origin(qp, origin));
}

/* Return the name of the event that a fault raises, in brackets; "" if it raises none. */
static const char *event_of(const struct fault_info *info)
{
	switch (info->event) {
	case IBV_EVENT_QP_FATAL:
		return " (IBV_EVENT_QP_FATAL)";
	case IBV_EVENT_QP_REQ_ERR:
		return " (IBV_EVENT_QP_REQ_ERR)";
	case IBV_EVENT_QP_ACCESS_ERR:
		return " (IBV_EVENT_QP_ACCESS_ERR)";
	default:
		return "";
	}
}

/* The peer's request is refused. */
static void explain_refusal(const struct qp *qp, const struct fault_info *info, const char *reason)
{
	char peer[PEER_MAX], origin[ORIGIN_TEXT_MAX];

	write_peer(qp, peer);
	write_origin(qp, origin);
	if (info->nak == FAULT_SILENT)
		log_error(
			"queue pair 0x%x: a message of %s has come, and cannot be completed: %s%s",
			qp->init.qpn, peer, reason, origin);
	else
		log_error("queue pair 0x%x refuses a request of %s, PSN 0x%06x: %s%s: %s%s",
			  qp->init.qpn, peer, qp->replies.nak_psn.v,
			  status_name(fault_info(fault_of_nak((uint8_t)info->nak))->status),
			  event_of(info), reason, origin);
}

void qp_explain(const struct qp *qp, enum fault fault)
{
	const struct fault_info *info = fault_info(fault);
	const char *reason = reason_take(REASON_FAULT);
	char origin[ORIGIN_TEXT_MAX];

	if (!reason)
		reason = "nothing more is known";
	if (fault == FAULT_CQ_OVERRUN)
		log_error("queue pair 0x%x: its completion queue is full%s: it must have room for "
			  "all that may complete before the program polls%s",
			  qp->init.qpn, event_of(info),
			  origin_write(qp->completer.cq, "the queue", origin));
	else if (fault == FAULT_RECEIVE_PROTECTION)
		log_error("queue pair 0x%x: a receive request of it: %s: %s%s", qp->init.qpn,
			  status_name(info->status), reason, write_origin(qp, origin));
	else if (info->nak == FAULT_NO_NAK)
		explain_request(qp, status_name(info->status), reason);
	else
		explain_refusal(qp, info, reason);
}
