/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion counters (ibv_create_comp_cntr(3)), which a program attaches to queue pairs. */
#include <stdlib.h>
#include <string.h>

#include "device/limits.h"
#include "device/quota.h"
#include "qp/qp.h"
#include "queue/comp_cntr.h"

#include "later.h"
#include "verbs_internal.h"

struct face_comp_cntr {
	struct later_comp_cntr ibv;
	struct face_object object;
	struct comp_cntr cntr;
	uint32_t users;	  /* operations of queue pairs that it counts; atomic */
	uint32_t engines; /* bits of the engines of these queue pairs; atomic */
};

/* What the engine knows of a queue pair's counters, and the users to release. */
struct face_qp_cntrs {
	struct comp_cntrs counted;
	struct face_comp_cntr *held[COMP_CNTR_OPS];
};

static struct face_comp_cntr *face_comp_cntr(struct later_comp_cntr *ibv)
{
	return (struct face_comp_cntr *)ibv;
}

int later_query_comp_cntr_caps(struct ibv_context *ibv, struct later_comp_cntr_caps *caps,
			       size_t caps_bytes)
{
	const struct later_comp_cntr_caps answer = {
		.max_value = UINT64_MAX,
		.max_counters = DEVICE_MAX_COMP_CNTR,
		.supported_qp_attach_ops = COMP_CNTR_SUPPORTED,
	};
	int rc = context_is_orphan(ibv) ? -ENODEV : like_refuses(LIKE_LACKS_comp_cntr);

	if (rc != 0)
		return face_errno(rc);
	/* The caller's struct may be older or newer than ours. */
	memset(caps, 0, caps_bytes);
	memcpy(caps, &answer, RTE_MIN(caps_bytes, sizeof(answer)));
	return 0;
}

struct later_comp_cntr *later_create_comp_cntr(struct ibv_context *ibv,
					       struct later_comp_cntr_init_attr *attr)
{
	struct face_context *context = face_context(ibv);
	struct face_comp_cntr *cntr;
	int rc;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	rc = like_refuses(LIKE_LACKS_comp_cntr);
	if (rc != 0)
		return face_null(rc);
	if (attr->comp_mask != 0)
		return face_null(-EOPNOTSUPP);
	if (attr->flags != 0 || attr->type > LATER_COMP_CNTR_BYTES)
		return face_null(-EINVAL);
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return face_null(-ENOMEM);
	rc = quota_take(context->device, DEVICE_QUOTA_COMP_CNTR);
	if (rc != 0) {
		free(cntr);
		return face_null(rc);
	}
	cntr->ibv = (struct later_comp_cntr){.context = ibv, .handle = context_handle(context)};
	cntr->cntr.bytes = attr->type == LATER_COMP_CNTR_BYTES;
	context_add(context, FACE_COMP_CNTR, &cntr->object);
	handles_add(&cntr->ibv);
	return &cntr->ibv;
}

void comp_cntr_end(struct face_object *object)
{
	const struct face_comp_cntr *cntr = container_of(object, struct face_comp_cntr, object);

	quota_give(face_context(cntr->ibv.context)->device, DEVICE_QUOTA_COMP_CNTR);
}

static int end_cntr(void *handle)
{
	struct later_comp_cntr *ibv = handle;
	struct face_comp_cntr *cntr = face_comp_cntr(ibv);
	struct face_context *context = face_context(ibv->context);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	if (__atomic_load_n(&cntr->users, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	comp_cntr_end(&cntr->object);
	context_remove(context, &cntr->object);
	free(cntr);
	return 0;
}

int later_destroy_comp_cntr(struct later_comp_cntr *ibv)
{
	return handles_end(ibv, end_cntr);
}

/* Return -EBUSY if a queue pair counts one of these operations already. */
static int check_free(const struct face_qp_cntrs *cntrs, uint32_t ops)
{
	for (uint32_t left = ops; left != 0; left &= left - 1) {
		if (cntrs->held[__builtin_ctz(left)])
			return -EBUSY;
	}
	return 0;
}

static void attach(struct face_qp *qp, struct face_comp_cntr *cntr, uint32_t ops)
{
	struct face_qp_cntrs *cntrs = qp->cntrs;

	for (uint32_t left = ops; left != 0; left &= left - 1) {
		cntrs->held[__builtin_ctz(left)] = cntr;
		cntrs->counted.of[__builtin_ctz(left)] = &cntr->cntr;
		__atomic_add_fetch(&cntr->users, 1, __ATOMIC_RELAXED);
	}
	__atomic_or_fetch(&cntr->engines, 1u << qp->home->number, __ATOMIC_RELAXED);
	qp_count(qp->qp, &cntrs->counted);
}

/* Engine's lock. */
static int attach_locked(struct face_qp *qp, struct face_comp_cntr *cntr, uint32_t ops)
{
	const enum ibv_qp_state state = qp_state(qp->qp);
	int rc;

	if (state != IBV_QPS_RESET && state != IBV_QPS_INIT)
		return -EINVAL;
	if (!qp->cntrs)
		qp->cntrs = calloc(1, sizeof(*qp->cntrs));
	if (!qp->cntrs)
		return -ENOMEM;
	rc = check_free(qp->cntrs, ops);
	if (rc == 0)
		attach(qp, cntr, ops);
	return rc;
}

int later_qp_attach_comp_cntr(struct ibv_qp *ibv, struct later_comp_cntr *cntr,
			      struct later_qp_attach_comp_cntr_attr *attr)
{
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	int rc;

	/* A queue pair of an XRC domain completes for many shared receive queues, of any program.
	 */
	if (attr->comp_mask != 0 || (attr->op_mask & ~COMP_CNTR_SUPPORTED) || qp->target ||
	    qp->is_away)
		return face_errno(-EOPNOTSUPP);
	if (attr->op_mask == 0 || cntr->context != ibv->context)
		return face_errno(-EINVAL);
	rc = context_lock(context);
	if (rc != 0)
		return face_errno(rc);
	rc = attach_locked(qp, face_comp_cntr(cntr), attr->op_mask);
	context_unlock(context);
	return face_errno(rc);
}

void comp_cntr_detach(struct face_qp *qp)
{
	if (!qp->cntrs)
		return;
	for (int op = 0; op < COMP_CNTR_OPS; op++) {
		if (qp->cntrs->held[op])
			__atomic_sub_fetch(&qp->cntrs->held[op]->users, 1, __ATOMIC_RELEASE);
	}
	free(qp->cntrs);
}

enum change {
	SET,
	ADD,
};

static int change_by(const struct later_comp_cntr *ibv, uint64_t *at, enum change how,
		     uint64_t value, const char *function)
{
	if (context_is_orphan(ibv->context))
		return face_fail(-ENODEV, function);
	if (how == SET)
		__atomic_store_n(at, value, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(at, value, __ATOMIC_RELAXED);
	return 0;
}

#define change(ibv, at, how, value) change_by(ibv, at, how, value, __func__)

int later_set_comp_cntr(struct later_comp_cntr *ibv, uint64_t value)
{
	return change(ibv, &face_comp_cntr(ibv)->cntr.done, SET, value);
}

int later_set_err_comp_cntr(struct later_comp_cntr *ibv, uint64_t value)
{
	return change(ibv, &face_comp_cntr(ibv)->cntr.failed, SET, value);
}

int later_inc_comp_cntr(struct later_comp_cntr *ibv, uint64_t amount)
{
	return change(ibv, &face_comp_cntr(ibv)->cntr.done, ADD, amount);
}

int later_inc_err_comp_cntr(struct later_comp_cntr *ibv, uint64_t amount)
{
	return change(ibv, &face_comp_cntr(ibv)->cntr.failed, ADD, amount);
}

/* A program may read counters and never poll a completion queue: run the engines that count. */
static int read_by(struct later_comp_cntr *ibv, const uint64_t *at, uint64_t *value,
		   const char *function)
{
	const struct face_comp_cntr *cntr = face_comp_cntr(ibv);
	const struct device *device = face_context(ibv->context)->device;

	if (context_is_orphan(ibv->context))
		return face_fail(-ENODEV, function);
	for (uint32_t left = __atomic_load_n(&cntr->engines, __ATOMIC_RELAXED); left != 0;
	     left &= left - 1)
		device_engine_poll(device->engines[__builtin_ctz(left)]);
	*value = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	return 0;
}

#define read_cntr(ibv, at, value) read_by(ibv, at, value, __func__)

int later_read_comp_cntr(struct later_comp_cntr *ibv, uint64_t *value)
{
	return read_cntr(ibv, &face_comp_cntr(ibv)->cntr.done, value);
}

int later_read_err_comp_cntr(struct later_comp_cntr *ibv, uint64_t *value)
{
	return read_cntr(ibv, &face_comp_cntr(ibv)->cntr.failed, value);
}
