/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#include <stdlib.h>

#include "device/limits.h"
#include "device/quota.h"
#include "queue/cq.h"

#include "unfold.h"
#include "verbs_internal.h"

static int check_attr(struct face_context *context, uint32_t cqe, struct ibv_comp_channel *channel,
		      uint32_t comp_vector)
{
	struct ibv_device_attr_ex limits = {0};

	device_query(context->device, &limits);
	if (cqe == 0 || cqe > (uint32_t)limits.orig_attr.max_cqe)
		return CALL_REASON(-EINVAL, "cqe is %u; it must be 1 to %d", cqe,
				   limits.orig_attr.max_cqe);
	if (comp_vector >= context->device->engine_count)
		return CALL_REASON(-EINVAL,
				   "comp_vector is %u; the device has %u (num_comp_vectors)",
				   comp_vector, context->device->engine_count);
	if (channel && channel->context != &context->verbs.context)
		return CALL_REASON(-EINVAL, "the completion channel is of another context");
	return 0;
}

/* Return the size to report: a ring may have more entries than a queue may report. */
static int told_cqe(const struct cq *cq)
{
	return (int)like_most(LIKE_max_cqe, RTE_MIN(cq->capacity, (uint32_t)DEVICE_MAX_CQE));
}

static struct queue_domain domain_of(const struct cq_wants *wants)
{
	struct queue_domain domain = {.allocator = NULL};

	if (wants->pd)
		domain = *face_queues(wants->pd);
	domain.single_threaded |= wants->single_threaded;
	return domain;
}

int cq_open(struct face_context *context, uint32_t cqe, void *cq_context,
	    struct ibv_comp_channel *channel, uint32_t comp_vector, const struct cq_wants *wants,
	    struct face_cq **created)
{
	struct device_engine *home = home_of_cq(context->device, comp_vector,
						wants->pd ? face_pd(wants->pd)->parent : NULL);
	struct queue_domain domain;
	struct cq_attr attr = {
		.cqe = cqe,
		.channel = channel ? &face_channel(channel)->channel : NULL,
		.moderator = &home->moderator,
		.overrun = event_raise_cq,
		.stamp_ns = wants->stamps ? home->now_ns : NULL,
		.domain = &domain,
	};
	struct face_cq *cq;
	int rc;

	if (context_is_orphan(&context->verbs.context))
		return -ENODEV;
	rc = check_attr(context, cqe, channel, comp_vector);
	if (rc != 0)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	domain = domain_of(wants);
	rc = quota_take(context->device, DEVICE_QUOTA_CQ);
	if (rc == 0) {
		attr.user = cq;
		rc = cq_create_in(&attr, &cq->cq);
		if (rc != 0)
			quota_give(context->device, DEVICE_QUOTA_CQ);
	}
	if (rc != 0) {
		free(cq);
		return rc;
	}
	if (channel)
		__atomic_add_fetch(&channel->refcnt, 1, __ATOMIC_RELAXED);
	cq->device = context->device;
	cq->home = home;
	cq->single_threaded = domain.single_threaded;
	if (wants->pd)
		cq->parent = parent_get(wants->pd);
	cq->ibv.context = &context->verbs.context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = context_handle(context);
	cq->ibv.cqe = told_cqe(cq->cq);
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->iterator_lock, NULL);
	home_begin_cq(cq);
	event_init_cq(cq);
	origin_note(cq->cq);
	cq->cq->number = objects_add(cq->device, DEVICE_OBJECT_CQ, &cq->listed, cq->cq);
	if (unlikely(unfold_wanted))
		unfold_cq_created(cq);
	context_add(context, FACE_CQ, &cq->object);
	handles_add(&cq->ibv);
	*created = cq;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct face_cq *cq;
	int rc;

	if (cqe < 0 || comp_vector < 0)
		return face_null(-EINVAL);
	rc = cq_open(face_context(ibv), (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector,
		     &(struct cq_wants){.pd = NULL}, &cq);
	return rc == 0 ? &cq->ibv : face_null(rc);
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct face_context *context = face_context(ibv->context);
	struct face_cq *cq = face_cq(ibv);
	struct cq_ring ring;
	int rc;

	if (context_is_orphan(ibv->context))
		return face_errno(-ENODEV);
	if (cqe < 0)
		return face_errno(-EINVAL);
	rc = like_refuses(LIKE_LACKS_resize_cq);
	if (rc == 0)
		rc = check_attr(context, (uint32_t)cqe, NULL, 0);
	/* Allocate while the engine runs: the allocator may be the application's code. */
	if (rc == 0)
		rc = cq_make_ring(cq->cq, (uint32_t)cqe, &ring);
	if (rc != 0)
		return face_errno(rc);
	rc = context_lock(context);
	if (rc == 0) {
		rc = cq_change_ring(cq->cq, &ring);
		if (rc == 0)
			ibv->cqe = told_cqe(cq->cq);
		context_unlock(context);
	}
	ring_free(&ring.memory);
	return face_errno(rc);
}

int modify_cq_op(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct face_context *context = face_context(ibv->context);
	const struct face_cq *face = face_cq(ibv);
	struct cq *cq = face->cq;
	int rc;

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return face_errno(-EINVAL);
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	if (attr->moderate.cq_count > like_most(LIKE_max_cq_count, DEVICE_MAX_CQ_MODERATION) ||
	    attr->moderate.cq_period > like_most(LIKE_max_cq_period, DEVICE_MAX_CQ_MODERATION))
		return face_errno(-EINVAL);
	rc = context_lock(context);
	if (rc != 0)
		return face_errno(rc);
	if (!cq->shared) {
		cq->now_ns = face->home->now_ns;
		moderator_set(cq, &face->home->moderator, attr->moderate.cq_count,
			      (uint64_t)attr->moderate.cq_period * 1000);
	}
	context_unlock(context);
	return 0;
}

/* Remove the queue from the engine. -EBUSY while queue pairs use it. */
static int retire(struct face_context *context, struct face_cq *cq)
{
	int rc = context_lock(context);

	if (rc != 0)
		return rc;
	if (__atomic_load_n(&cq->cq->users, __ATOMIC_ACQUIRE) != 0)
		rc = -EBUSY;
	else
		moderator_set(cq->cq, NULL, 0, 0);
	context_unlock(context);
	return rc;
}

static void unlist_ex(struct face_context *context, struct face_cq *cq)
{
	if (!cq->is_ex)
		return;
	pthread_mutex_lock(&context->face->lock);
	LIST_REMOVE(cq, ex_link);
	pthread_mutex_unlock(&context->face->lock);
}

/* End a completion queue. Its queue pairs have ended before. */
void cq_end(struct face_object *object)
{
	struct face_cq *cq = container_of(object, struct face_cq, object);
	struct face_context *context = face_context(cq->ibv.context);

	retire(context, cq);
	objects_remove(context->device, DEVICE_OBJECT_CQ, &cq->listed);
	origin_forget(cq->cq);
	cq_destroy(cq->cq);
	quota_give(context->device, DEVICE_QUOTA_CQ);
	unlist_ex(context, cq);
	parent_put(cq->parent);
}

static int end_cq(void *handle)
{
	struct ibv_cq *ibv = handle;
	struct face_context *context = face_context(ibv->context);
	struct face_cq *cq = face_cq(ibv);
	struct origin *origin;
	int rc = retire(context, cq);

	if (rc != 0)
		return rc;
	/* Wait for events that were read to be acknowledged. */
	event_drain_cq(cq);
	objects_remove(context->device, DEVICE_OBJECT_CQ, &cq->listed);
	origin = origin_take(cq->cq);
	rc = cq_destroy(cq->cq);
	origin_settle(origin, rc != 0);
	if (rc != 0) {
		objects_add(context->device, DEVICE_OBJECT_CQ, &cq->listed, cq->cq);
		return rc;
	}
	quota_give(context->device, DEVICE_QUOTA_CQ);
	unlist_ex(context, cq);
	home_end_cq(cq);
	if (ibv->channel)
		__atomic_sub_fetch(&ibv->channel->refcnt, 1, __ATOMIC_RELEASE);
	pthread_mutex_destroy(&cq->iterator_lock);
	pthread_cond_destroy(&ibv->cond);
	pthread_mutex_destroy(&ibv->mutex);
	parent_put(cq->parent);
	context_remove(context, &cq->object);
	free(cq);
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	return handles_end(ibv, end_cq);
}

/*
 * A thread that asks for more completions than there are has time to run the engine. A thread that
 * gets as many as it asks for should first take the others. But if this goes on, it must run the
 * engine too: engine_ops.polled decides when.
 */
int poll_cq_op(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct face_cq *cq = face_cq(ibv);
	int got;

	if (unlikely(n < 0))
		return -EINVAL;
	got = cq_poll(cq->cq, n, wc);
	if (got == n) {
		if (likely(n > 0))
			device_engine_polled(face_home(cq), n);
		return got;
	}
	device_engine_poll(face_home(cq));
	return got + cq_poll(cq->cq, n - got, wc + got);
}

/* Tell the engine that the thread is about to sleep, perhaps in a poll(2) that we cannot see. */
int req_notify_cq_op(struct ibv_cq *ibv, int solicited_only)
{
	struct face_cq *cq = face_cq(ibv);

	cq_arm(cq->cq, solicited_only != 0);
	if (ibv->channel)
		home_wait_cq(cq);
	return 0;
}
