/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells why asynchronous events were raised, to a user who wants to know. What fails a queue pair
 * is told when it fails, together with its event (lib/qp/explain.c). */
#include "base/log.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "verbs_internal.h"

static void explain_cq(const struct face_cq *cq)
{
	char origin[ORIGIN_TEXT_MAX];

	log_error("IBV_EVENT_CQ_ERR of completion queue %u: it was full with %d completions, "
		  "and one more is lost: it needs as many entries (cqe) as there can be "
		  "completions before the program polls%s",
		  cq->cq->number, cq->ibv.cqe, origin_write(cq->cq, "the queue", origin));
}

static void explain_srq(const struct face_srq *srq)
{
	char origin[ORIGIN_TEXT_MAX];

	log_error("IBV_EVENT_SRQ_LIMIT_REACHED of shared receive queue %u: fewer receive "
		  "requests were left than its srq_limit; %u are now: post more, and arm the "
		  "limit again (ibv_modify_srq(3))%s",
		  srq->listed.number, rq_waiting(&srq->srq->rq),
		  origin_write(srq->srq, "the queue", origin));
}

/* A device that is lost without a known reason has lost its port. */
static void explain_lost(const struct face_device *face)
{
	const char *why = __atomic_load_n(&face->device->lost_why, __ATOMIC_ACQUIRE);

	log_error("IBV_EVENT_DEVICE_FATAL of %s: %s: its queue pairs have failed, and the "
		  "program must start again",
		  face->ibv.name, why ? why : "its port is lost");
}

void face_explain_event(const struct face_context *context, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		explain_cq(face_cq(event->element.cq));
		break;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		explain_srq(face_srq(event->element.srq));
		break;
	case IBV_EVENT_DEVICE_FATAL:
		explain_lost(context->face);
		break;
	case IBV_EVENT_PORT_ERR:
		log_error("IBV_EVENT_PORT_ERR of %s: its port has no link: the cable, the "
			  "interface or uroced behind it is down; packets are lost until "
			  "IBV_EVENT_PORT_ACTIVE",
			  context->face->ibv.name);
		break;
	default:
		break;
	}
}
