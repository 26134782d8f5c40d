/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs wait for, as their reports say it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "ctl_show.h"
#include "qp/qp.h"
#include "wire/gid.h"

/* Print what the send requests of a queue pair wait for. Return false if they wait for nothing. */
static bool tell_qp(const struct report_view *view, const struct report_record *record)
{
	const struct report_qp *qp = &record->qp;
	char peer[GID_TEXT_MAX + 32] = "the peer", address[GID_TEXT_MAX];

	if (!qp_waits_name(qp->waits))
		return false;
	if (qp->dest_qpn != 0) {
		gid_text(qp->dgid, address);
		snprintf(peer, sizeof(peer), "%s queue pair 0x%x", address, qp->dest_qpn);
	}
	printf("queue pair 0x%x of %s (pid %d): ", record->number, view->comm, (int)view->pid);
	if (qp->waits == QP_WAITS_PAGE) {
		puts("it waits for a page of the process's memory");
		return true;
	}
	printf("%u send requests wait for ", qp->sends);
	switch (qp->waits) {
	case QP_WAITS_ANSWER:
		printf("an answer of %s\n", peer);
		break;
	case QP_WAITS_ANSWER_AGAIN:
		printf("an answer of %s, which has not come: they were sent again\n", peer);
		break;
	case QP_WAITS_RECEIVE:
		printf("a receive request of %s: its program must post one\n", peer);
		break;
	case QP_WAITS_RATE:
		puts("the rate that its limit or congestion control allows");
		break;
	default:
		puts("a thread that runs the device: with progress inline, the program must poll");
		break;
	}
	return true;
}

static bool tell_cq(const struct report_view *view, const struct report_record *record)
{
	if (record->cq.waiting == 0)
		return false;
	printf("completion queue %u of %s (pid %d): %u completions wait for the program to poll "
	       "them\n",
	       record->number, view->comm, (int)view->pid, record->cq.waiting);
	return true;
}

static bool tell_cm_id(const struct report_view *view, const struct report_record *record)
{
	static const struct {
		const char *state;
		const char *what;
	} waits[] = {
		{"REQ_SENT", "the peer to answer its request"},
		{"MRA_REQ_RCVD", "the peer, which has asked for more time"},
		{"REP_RCVD", "this program to take the answer (rdma_get_cm_event)"},
		{"MRA_REP_SENT", "this program to take the answer (rdma_get_cm_event)"},
		{"REQ_RCVD", "this program to accept or to reject it (rdma_get_cm_event)"},
		{"MRA_REQ_SENT", "this program to accept or to reject it (rdma_get_cm_event)"},
		{"REP_SENT", "the peer to confirm the acceptance"},
		{"MRA_REP_RCVD", "the peer, which has asked for more time"},
		{"DREQ_SENT", "the peer to agree to its end"},
		{"DREQ_RCVD", "this program to end it, too (rdma_disconnect)"},
		{"SIDR_REQ_SENT", "the peer to name its queue pair"},
		{"SIDR_REQ_RCVD", "this program to accept or to reject it (rdma_get_cm_event)"},
	};
	char address[GID_TEXT_MAX];

	for (size_t i = 0; i < RTE_DIM(waits); i++) {
		if (strncmp(record->cm_id.state, waits[i].state, sizeof(record->cm_id.state)) != 0)
			continue;
		gid_text(record->cm_id.remote, address);
		printf("connection 0x%x of %s (pid %d) with %s: it waits for %s: %s\n",
		       record->number, view->comm, (int)view->pid, address, waits[i].what,
		       waits[i].state);
		return true;
	}
	return false;
}

static bool tell(const struct report_view *view, const struct report_record *record)
{
	switch (record->kind) {
	case REPORT_QP:
		return tell_qp(view, record);
	case REPORT_CQ:
		return tell_cq(view, record);
	case REPORT_CM_ID:
		return tell_cm_id(view, record);
	default:
		return false;
	}
}

void why_show(const struct report_devices *devices, const struct report_filter *filter)
{
	uint32_t next = 0, told = 0;

	for (const struct report_view *view; (view = devices_next_view(devices, filter, &next));) {
		for (uint32_t i = 0; i < view->record_count; i++)
			told += tell(view, &view->records[i]);
	}
	if (told == 0)
		puts("nothing waits");
}
