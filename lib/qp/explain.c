/* SPDX-License-Identifier: BSD-3-Clause */
/* Says why a queue pair fails, to a user who wants to know (base/reason.h). */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/reason.h"
#include "qp_internal.h"

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
	};

	return opcode < RTE_DIM(names) && names[opcode] ? names[opcode] : "work request";
}

static const char *status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_MW_BIND_ERR] = "memory window binding error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
	};

	return (size_t)status < RTE_DIM(names) && names[status] ? names[status] : "error";
}

/* What a peer is told. */
static const char *nak_name(int nak)
{
	switch (nak) {
	case NAK_INVALID_REQUEST:
		return "remote invalid request error";
	case NAK_REMOTE_ACCESS:
		return "remote access error";
	case NAK_REMOTE_OPERATIONAL:
		return "remote operation error";
	default:
		return "nothing";
	}
}

struct peer_text {
	char at[INET6_ADDRSTRLEN + 32];
};

static struct peer_text peer_text(const struct qp *qp)
{
	const struct path *path = &qp->peer.path;
	const uint8_t *ip = path->hdr + path->l3_off;
	char address[INET6_ADDRSTRLEN] = "nobody";
	struct peer_text text;

	if (path->len > 0)
		inet_ntop(path->ipv6 ? AF_INET6 : AF_INET,
			  ip + (path->ipv6 ? PATH_IPV6_DST : PATH_IPV4_DST), address,
			  sizeof(address));
	snprintf(text.at, sizeof(text.at), "%s queue pair 0x%x", address, qp->peer.qpn);
	return text;
}

/* A request of our own is at fault: the oldest one. */
static void explain_request(const struct qp *qp, const struct fault_info *info, const char *reason)
{
	const struct send_wqe *wqe =
		qp->sq.cons != sq_prod(&qp->sq) ? sq_at(&qp->sq, qp->sq.cons) : NULL;
	const struct peer_text peer = peer_text(qp);

	if (wqe == NULL)
		return;
	if (qp_is_datagram(qp))
		log_warn("%s of %u bytes (wr_id %" PRIu64
			 ") by queue pair 0x%x to queue pair 0x%x: %s\n  %s",
			 operation_name(wqe->opcode), wqe->length, wqe->wr_id, qp->init.qpn,
			 wqe->remote_qpn, status_name(info->status), reason);
	else
		log_warn("%s of %u bytes (wr_id %" PRIu64 ") by queue pair 0x%x to %s: %s\n  %s",
			 operation_name(wqe->opcode), wqe->length, wqe->wr_id, qp->init.qpn,
			 peer.at, status_name(info->status), reason);
}

void qp_explain(struct qp *qp, enum fault fault)
{
	const struct fault_info *info = fault_info(fault);
	const char *reason;

	reason_restore(&qp->requester);
	reason = reason_take(REASON_FAULT);
	if (!reason)
		reason = "nothing more is known";
	if (fault == FAULT_CQ_OVERRUN)
		log_warn("queue pair 0x%x: its completion queue is full\n  %s", qp->init.qpn,
			 "it needs room for all work requests that may complete before the "
			 "program polls (ibv_create_cq(3))");
	else if (info->nak == FAULT_NO_NAK)
		explain_request(qp, info, reason);
	else if (info->nak == FAULT_SILENT)
		log_warn("queue pair 0x%x: a message of %s is received, and then fails\n  %s",
			 qp->init.qpn, peer_text(qp).at, reason);
	else
		log_warn("queue pair 0x%x refuses a request of %s, PSN 0x%06x: %s\n  %s",
			 qp->init.qpn, peer_text(qp).at, qp->replies.nak_psn.v, nak_name(info->nak),
			 reason);
}
