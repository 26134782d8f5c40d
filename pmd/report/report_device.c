/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a device and its objects into a report. */
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "device/gsi.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "report/write.h"

static void write_qp(struct qp *qp, void *arg)
{
	struct report_record record = {.kind = REPORT_QP};
	struct qp_view view;

	qp_look(qp, &view);
	record.number = view.qpn;
	record.qp = (struct report_qp){
		.dest_qpn = view.dest_qpn,
		.type = view.type,
		.state = view.state,
		.path_mtu = view.path_mtu,
		.sq_psn = view.sq_psn,
		.rq_psn = view.rq_psn,
		.sends = view.sends,
		.receives = view.receives,
		.pd = view.pd,
		.send_cq = view.send_cq,
		.recv_cq = view.recv_cq,
		.cc = view.cc,
		.waits = view.waits,
	};
	memcpy(record.qp.dgid, view.dgid, sizeof(record.qp.dgid));
	report_add(arg, &record);
}

static void write_mr(const struct mr *mr, uint32_t key, void *arg)
{
	const struct report_record record = {
		.kind = REPORT_MR,
		.number = key,
		.mr = {.length = mr->length,
		       .iova = mr->iova,
		       .pd = mr->pd ? mr->pd->number : 0,
		       .access = mr->access,
		       .kind = mr->kind},
	};

	report_add(arg, &record);
}

static void write_cq(const struct device_object *object, void *arg)
{
	const struct cq *cq = object->what;
	const struct report_record record = {
		.kind = REPORT_CQ,
		.number = object->number,
		.cq = {.cqe = cq->capacity,
		       .users = __atomic_load_n(&cq->users, __ATOMIC_RELAXED),
		       .waiting = __atomic_load_n(&cq->prod, __ATOMIC_RELAXED) -
				  __atomic_load_n(&cq->cons, __ATOMIC_RELAXED)},
	};

	report_add(arg, &record);
}

static void write_pd(const struct device_object *object, void *arg)
{
	const struct pd *pd = object->what;
	const struct report_record record = {
		.kind = REPORT_PD,
		.number = object->number,
		.pd = {.users = __atomic_load_n(&pd->users, __ATOMIC_RELAXED)},
	};

	report_add(arg, &record);
}

static void write_srq(const struct device_object *object, void *arg)
{
	const struct srq *srq = object->what;
	const struct report_record record = {
		.kind = REPORT_SRQ,
		.number = object->number,
		.srq = {.is_xrc = srq->domain != NULL,
			.xrc_number = srq->number,
			.max_wr = srq->rq.max_wr,
			.limit = srq_limit(srq),
			.receives = rq_waiting(&srq->rq),
			.users = __atomic_load_n(&srq->users, __ATOMIC_RELAXED),
			.pd = srq->pd->number,
			.cq = srq->cq ? srq->cq->number : 0},
	};

	report_add(arg, &record);
}

static void write_ctx(const struct device_object *object, void *arg)
{
	const struct report_record record = {.kind = REPORT_CTX, .number = object->number};

	report_add(arg, &record);
}

static void write_cm_id(const struct gsi_conn *conn, void *arg)
{
	struct report_record record = {
		.kind = REPORT_CM_ID,
		.number = conn->number,
		.cm_id = {.service_id = conn->service_id, .qpn = conn->qpn, .active = conn->active},
	};

	memcpy(record.cm_id.local, conn->local, sizeof(record.cm_id.local));
	memcpy(record.cm_id.remote, conn->remote, sizeof(record.cm_id.remote));
	snprintf(record.cm_id.state, sizeof(record.cm_id.state), "%s", conn->state);
	report_add(arg, &record);
}

void report_write_device(struct report *report, struct device *device)
{
	report_begin(report);
	report->facts.link_up = __atomic_load_n(&device->link_up, __ATOMIC_RELAXED);
	report->facts.cc = (uint8_t)device_cc_kind(device);
	report->cc_params = device->cc_params;
	for (int i = 0; i < COUNTER_COUNT; i++)
		report_add_stat(report, counter_name((enum counter)i),
				device_counter(device, (enum counter)i));
	device_each_qp(device, write_qp, report);
	objects_each(device, DEVICE_OBJECT_CQ, write_cq, report);
	key_table_each(device->keys, write_mr, report);
	objects_each(device, DEVICE_OBJECT_PD, write_pd, report);
	objects_each(device, DEVICE_OBJECT_SRQ, write_srq, report);
	objects_each(device, DEVICE_OBJECT_CTX, write_ctx, report);
	gsi_each_conn(device, write_cm_id, report);
	report_end(report);
}
