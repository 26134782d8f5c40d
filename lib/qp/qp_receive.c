/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair passes received packets to its roles. */
#include "qp_internal.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "wire/qpn_block.h"

/* Before a request is received: look if what was kept or waits is still there. */
static __rte_noinline void qp_before_request(struct qp *qp, uint64_t now_ns)
{
	qp_await_pages(qp, now_ns);
	if (qp->unusual & QP_KEEPS)
		responder_forget_old(&qp->responder, now_ns);
	if (qp->responder.ooo.count == 0)
		qp->unusual &= (uint8_t)~QP_KEEPS;
}

/* After a request was received and packets are missing, or a role met an absent page. */
static __rte_noinline void qp_after_request(struct qp *qp, const struct packet *packet,
					    uint64_t now_ns)
{
	if (qp->responder.ooo.count > 0) {
		ooo_stamp(&qp->responder.ooo, packet->psn, now_ns);
		qp->unusual |= QP_KEEPS;
	}
	qp_await_pages(qp, now_ns);
}

/* Process the answer of another process to a request that was passed on. */
static void qp_receive_passed(struct qp *qp, const struct packet *packet)
{
	struct pass *pass = qp->responder.pass;

	if (pass->link == NULL ||
	    !path_is_between(&pass->link->path, packet->ipv6, packet->dgid, packet->sgid) ||
	    packet->vlan_id != pass->link->path.vlan_id ||
	    !wire_sender_may_be(packet->src_mac, pass->link->qpn)) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_qpn, 1);
		return;
	}
	/* Also in ERR: the responses that are owed are sent before the NAK. RESET forgets the
	 * link. */
	if (pass_answer(pass, packet))
		qp->unusual |= QP_PASSES;
}

/* A request has come in another state than RTS. Return true if the state lets it be received. */
static __rte_noinline bool qp_admits(struct qp *qp)
{
	if (!qp_receives(qp)) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return false;
	}
	if (qp->state == IBV_QPS_RTR && !qp->established) {
		qp->established = true;
		qp_raise(qp, IBV_EVENT_COMM_EST);
	}
	return true;
}

/* Inline in both callers: almost every packet comes here. */
static __rte_always_inline void qp_receive_request(struct qp *qp, const struct packet *packet,
						   uint64_t now_ns)
{
	enum fault fault;

	if (unlikely(qp->state != IBV_QPS_RTS) && !qp_admits(qp))
		return;
	if (unlikely(qp->unusual & (QP_MET_ABSENT | QP_KEEPS)))
		qp_before_request(qp, now_ns);
	fault = responder_receive(&qp->responder, packet);
	if (unlikely(qp->responder.gap != GAP_NONE) || unlikely(qp->unusual & QP_MET_ABSENT))
		qp_after_request(qp, packet, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

static void qp_receive_response(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	enum fault fault;

	if (!qp_requests(qp)) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	fault = completer_receive(&qp->completer, packet, now_ns);
	if (unlikely(qp->completer.refused)) {
		qp->completer.refused = false;
		qp->sched.acks_at_once = true;
	}
	if (unlikely(qp->completer.page_absent))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

static void qp_receive_datagram(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	enum fault fault;

	if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	fault = datagram_receive(&qp->datagram, packet);
	if (unlikely(qp->datagram.ooo.count > 0))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

/*
 * Return true if the packet is from the peer, to the address of our path (IBTA 9.6.1.1.3). The same
 * addresses in another VLAN belong to somebody else. Programs that share a port have the same
 * addresses; of those that are not trusted the owner of the port has said which one sent the
 * packet.
 */
static __rte_always_inline bool is_of_path(const struct qp *qp, const struct packet *packet)
{
	const struct path *path = &qp->peer.path;

	return path_is_between(path, packet->ipv6, packet->dgid, packet->sgid) &&
	       packet->vlan_id == path->vlan_id &&
	       wire_sender_may_be(packet->src_mac, qp->peer.qpn);
}

/* Give a packet of the queue pair's service, and of its path, to its role. */
static __rte_always_inline void qp_give(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	if ((packet->op->flags & OPCODE_REQUEST) && qp->kind->type != IBV_QPT_XRC_SEND)
		qp_receive_request(qp, packet, now_ns);
	else if (!(packet->op->flags & OPCODE_REQUEST) && qp->kind->sends)
		qp_receive_response(qp, packet, now_ns);
	else
		counters_add(qp->init.counters, COUNTER_rx_wrong_opcode, 1);
}

/* Process a packet of the queue pair's service. */
static __rte_always_inline void qp_take(struct qp *qp, const struct packet *packet, uint8_t service,
					uint64_t now_ns)
{
	if (service == OPCODE_UD)
		qp_receive_datagram(qp, packet, now_ns);
	else if (qp->state >= IBV_QPS_RTR && !is_of_path(qp, packet))
		counters_add(qp->init.counters, COUNTER_rx_wrong_qpn, 1);
	else
		qp_give(qp, packet, now_ns);
}

/* Process a congestion notification. It may come from any vendor's adapter, but only from the
 * peer. */
static void qp_receive_notification(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	struct counters *counters = qp->init.counters;
	struct cc *cc = qp->pacer.cc;

	if (qp_is_datagram(qp)) {
		counters_add(counters, COUNTER_rp_cnp_ignored, 1);
	} else if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR) {
		counters_add(counters, COUNTER_rx_qp_state, 1);
	} else if (!is_of_path(qp, packet)) {
		counters_add(counters, COUNTER_rx_wrong_qpn, 1);
	} else if (cc != NULL && packet->becn && cc_notified(cc, now_ns)) {
		qp->unusual |= QP_SLOWED;
		counters_add(counters, COUNTER_rp_cnp_handled, 1);
	} else {
		counters_add(counters, COUNTER_rp_cnp_ignored, 1);
	}
}

/* Process a selective acknowledgement. Its opcode is of no service. */
static void qp_receive_sack(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	struct cc *cc = qp->pacer.cc;
	enum fault fault;

	if (!qp->kind->answers || !qp->kind->sends) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_opcode, 1);
		return;
	}
	if (!qp_requests(qp)) {
		counters_add(qp->init.counters, COUNTER_rx_qp_state, 1);
		return;
	}
	if (!is_of_path(qp, packet)) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_qpn, 1);
		return;
	}
	if (cc != NULL)
		cc_told(cc, packet, now_ns);
	fault = completer_sack(&qp->completer, packet, now_ns);
	if (unlikely(qp->completer.page_absent))
		qp_await_pages(qp, now_ns);
	if (fault != FAULT_NONE)
		qp_fail(qp, fault);
}

/* Let congestion control look at a packet before its role does. */
static void qp_look_at(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	const bool answers = !(packet->op->flags & OPCODE_REQUEST);
	struct cc *cc = qp->pacer.cc;

	if (!answers && !cc->ops->marks)
		return;
	if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR || !is_of_path(qp, packet))
		return;
	if (answers)
		cc_answered(cc, packet, now_ns);
	/* Slowing the peer down would not help against marks of acknowledgements. */
	if (!cc->ops->marks || (packet->tclass & ECN_MASK) != ECN_EXPERIENCED ||
	    !(packet->op->flags & OPCODE_PAYLOAD))
		return;
	counters_add(qp->init.counters, COUNTER_np_ecn_marked_roce_packets, 1);
	if (cc_marked(cc, now_ns))
		qp->unusual |= QP_OWES_CNP;
}

/* Receive a packet of an XRC target that may pass requests on to other processes. It gets their
 * answers at numbers that are not its own. */
static void qp_take_passing(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	if (!(packet->op->flags & OPCODE_REQUEST)) {
		qp_receive_passed(qp, packet);
		return;
	}
	if (packet->dest_qpn != qp->init.qpn) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_qpn, 1);
		return;
	}
	qp_take(qp, packet, OPCODE_XRC, now_ns);
	(void)qp_owes_pass(qp);
}

/* Receive a packet that is not of the queue pair's service, or that congestion control or an XRC
 * target looks at. */
static __rte_noinline bool qp_receive_unusual(struct qp *qp, const struct packet *packet,
					      uint64_t now_ns)
{
	if (packet->opcode == OPCODE_CNP) {
		qp_receive_notification(qp, packet, now_ns);
	} else if (packet->opcode == OPCODE_SACK) {
		qp_receive_sack(qp, packet, now_ns);
	} else if ((packet->opcode & OPCODE_SERVICE_MASK) != qp->kind->service) {
		counters_add(qp->init.counters, COUNTER_rx_wrong_opcode, 1);
	} else {
		if (qp->pacer.cc != NULL)
			qp_look_at(qp, packet, now_ns);
		if (qp->kind->type == IBV_QPT_XRC_RECV && qp->responder.pass != NULL)
			qp_take_passing(qp, packet, now_ns);
		else
			qp_take(qp, packet, qp->kind->service, now_ns);
	}
	qp_check(qp);
	return (qp->unusual & (QP_OWES_CNP | QP_PASSES)) || !qp_has_nothing_to_do(qp);
}

bool qp_receive(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	const uint8_t service = packet->opcode & OPCODE_SERVICE_MASK;

	if (unlikely(service != qp->kind->plain))
		return qp_receive_unusual(qp, packet, now_ns);
	qp_take(qp, packet, service, now_ns);
	qp_check(qp);
	return !qp_has_nothing_to_do(qp);
}

bool qp_expects(const struct qp *qp, const struct packet *packet)
{
	return (packet->opcode & OPCODE_SERVICE_MASK) == qp->kind->plain && !qp_is_datagram(qp) &&
	       qp->state >= IBV_QPS_RTR && is_of_path(qp, packet);
}

bool qp_receive_expected(struct qp *qp, const struct packet *packet, uint64_t now_ns)
{
	qp_give(qp, packet, now_ns);
	qp_check(qp);
	return !qp_has_nothing_to_do(qp);
}
