/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Assertions that hold for a queue pair between two calls of its engine. They cover every struct
 * that keeps indices, PSNs or lists. They exist only in builds with assertions (checked_lib in
 * lib/meson.build). The check of each struct is in the file of that struct.
 */
#include "qp_internal.h"

#ifndef NDEBUG

#include <assert.h>

#include "transport/check.h"

/* Check the sending side if it is connected and sends. In other states its fields have no
 * meaning. */
static void qp_check_requester(const struct qp *qp)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	loss_check(&qp->loss);
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
