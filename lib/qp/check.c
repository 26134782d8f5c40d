/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asserts what always holds of a queue pair between two calls of its engine: of every struct that
 * keeps indices, PSNs or lists. Only where assertions are on (checked_lib in lib/meson.build); each
 * struct's own check stands beside the struct.
 */
#include "internal.h"

#ifndef NDEBUG

#include <assert.h>

#include "transport/check.h"

/* Check a queue pair that sends to a peer. In other states nothing depends on what was in flight.
 */
static void qp_check_requester(const struct qp *qp)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	flight_check(&qp->flight);
	recovery_check(&qp->recovery, &qp->flight);
	requester_check(&qp->requester);
	completer_check(&qp->completer);
}

void qp_check(const struct qp *qp)
{
	if (!qp_is_datagram(qp) &&
	    (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD))
		responder_check(&qp->responder);
	if (!qp->kind->sends)
		return;
	sq_check(&qp->sq);
	if (qp_is_datagram(qp))
		assert(qp->sq.next == qp->sq.cons);
	else
		qp_check_requester(qp);
}

#endif
