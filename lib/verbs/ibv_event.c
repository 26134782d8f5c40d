/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: completion channels, a descriptor to sleep on and its events; and asynchronous events,
 * which are raised, read, and acknowledged before their object is destroyed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "check.h"
#include "queue/cq.h"
#include "verbs_internal.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ibv)
{
	struct face_context *context = face_context(ibv);
	struct face_channel *channel;
	int rc;

	if (context_is_orphan(ibv))
		return face_null(-ENODEV);
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return face_null(-ENOMEM);
	rc = channel_init(&channel->channel);
	if (rc != 0) {
		free(channel);
		return face_null(rc);
	}
	channel->ibv.context = ibv;
	channel->ibv.fd = channel->channel.fd;
	context_add(context, FACE_CHANNEL, &channel->object);
	handles_add(&channel->ibv);
	return &channel->ibv;
}

void channel_end(struct face_object *object)
{
	channel_fini(&container_of(object, struct face_channel, object)->channel);
}

static int end_channel(void *handle)
{
	struct ibv_comp_channel *ibv = handle;
	struct face_channel *channel = face_channel(ibv);

	if (context_is_orphan(ibv->context))
		return -ENODEV;
	if (__atomic_load_n(&ibv->refcnt, __ATOMIC_ACQUIRE) != 0)
		return -EBUSY;
	channel_fini(&channel->channel);
	context_remove(face_context(ibv->context), &channel->object);
	free(channel);
	return 0;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	return handles_end(ibv, end_channel);
}

static void end_sleep(void *arg)
{
	struct channel *channel = arg;

	__atomic_sub_fetch(&channel->watch.sleepers, 1, __ATOMIC_RELAXED);
}

/* Read an event, and show the engine that a thread sleeps here (cq_watch). The thread may be
 * cancelled. */
static int read_watched(struct channel *channel, void **object, int *code)
{
	int rc;

	__atomic_add_fetch(&channel->watch.sleepers, 1, __ATOMIC_RELAXED);
	pthread_cleanup_push(end_sleep, channel);
	rc = channel_read(channel, object, code);
	pthread_cleanup_pop(1);
	return rc;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct channel *channel = &face_channel(ibv)->channel;
	void *object;
	int code, rc;

	if (context_is_orphan(ibv->context))
		return face_minus_one(-ENODEV);
	if (unlikely(check_wanted))
		check_sleep(ibv);
	home_wait_channel(face_channel(ibv));
	rc = unlikely(reason_wanted) ? read_watched(channel, &object, &code)
				     : channel_read(channel, &object, &code);
	if (rc != 0)
		return face_minus_one(rc);
	*cq = &((struct face_cq *)object)->ibv;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int nevents)
{
	/* In a child of fork(), a thread that exists only in the parent may hold the lock. */
	if (context_is_orphan(ibv->context))
		return;
	pthread_mutex_lock(&ibv->mutex);
	ibv->comp_events_completed += nevents;
	pthread_cond_signal(&ibv->cond);
	pthread_mutex_unlock(&ibv->mutex);
}

/* Events of a queue pair; those of path migration are missing, because paths do not migrate
 * here. */
static const enum ibv_event_type qp_events[CHANNEL_KINDS] = {
	IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
	IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED,
};

static const enum ibv_event_type srq_events[FACE_SRQ_EVENTS] = {
	IBV_EVENT_SRQ_ERR,
	IBV_EVENT_SRQ_LIMIT_REACHED,
};

static const enum ibv_event_type port_events[FACE_PORT_EVENTS] = {
	IBV_EVENT_DEVICE_FATAL,	     IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR,
	IBV_EVENT_LID_CHANGE,	     IBV_EVENT_PKEY_CHANGE, IBV_EVENT_SM_CHANGE,
	IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_GID_CHANGE,
};

static void init_sources(struct channel_source *sources, const enum ibv_event_type *types, int n,
			 void *object)
{
	for (int i = 0; i < n; i++)
		sources[i] = (struct channel_source){.object = object, .code = types[i]};
}

/* Return the place of an event in a list, or `n` if it is not there. */
static int place_of(const enum ibv_event_type *types, int n, enum ibv_event_type type)
{
	int i = 0;

	while (i < n && types[i] != type)
		i++;
	return i;
}

static struct channel_source *find_source(struct channel_source *sources,
					  const enum ibv_event_type *types, int n,
					  enum ibv_event_type type)
{
	const int i = place_of(types, n, type);

	return i < n ? &sources[i] : NULL;
}

void event_init_qp(struct face_qp *qp)
{
	qp->events = (struct channel_several){.source = {.object = qp, .code = CHANNEL_SEVERAL}};
}

void event_init_srq(struct face_srq *srq)
{
	init_sources(srq->events, srq_events, FACE_SRQ_EVENTS, srq);
}

void event_init_cq(struct face_cq *cq)
{
	cq->error = (struct channel_source){.object = cq, .code = IBV_EVENT_CQ_ERR};
}

void event_init_context(struct face_context *context)
{
	init_sources(context->port_events, port_events, FACE_PORT_EVENTS, NULL);
}

void event_raise_qp(void *user, enum ibv_event_type type)
{
	struct face_qp *qp = user;
	const int kind = place_of(qp_events, CHANNEL_KINDS, type);

	if (kind < CHANNEL_KINDS)
		channel_raise_kind(&face_context(qp->ibv.context)->async, &qp->events,
				   (uint32_t)kind);
}

void event_raise_target(void *user, enum ibv_event_type type)
{
	struct face_target *target = user;
	struct face_qp *qp;

	TAILQ_FOREACH (qp, &target->handles, target_link)
		event_raise_qp(qp, type);
}

void event_raise_srq_limit(void *user)
{
	struct face_srq *srq = user;

	channel_raise(
		&face_context(srq->ibv.context)->async,
		find_source(srq->events, srq_events, FACE_SRQ_EVENTS, IBV_EVENT_SRQ_LIMIT_REACHED));
}

void event_raise_cq(void *user)
{
	struct face_cq *cq = user;

	channel_raise(&face_context(cq->ibv.context)->async, &cq->error);
}

/* Raise the event on every open context. */
void event_raise_device(void *user, enum ibv_event_type type)
{
	struct face_device *face = user;
	struct face_context *context;

	pthread_mutex_lock(&face->lock);
	TAILQ_FOREACH (context, &face->contexts, link) {
		struct channel_source *source =
			find_source(context->port_events, port_events, FACE_PORT_EVENTS, type);

		if (source && context->open)
			channel_raise(&context->async, source);
	}
	pthread_mutex_unlock(&face->lock);
}

/* Drop unread events. Return how many were read. */
static uint32_t forget_sources(struct face_context *context, struct channel_source *sources, int n)
{
	uint32_t taken = 0;

	for (int i = 0; i < n; i++) {
		channel_forget(&context->async, &sources[i]);
		taken += sources[i].taken;
	}
	return taken;
}

/* Wait on the condition. Tell a user who wants reasons or checks once if it takes longer than 2 s;
 * `call` is the one that waits. */
static void wait_told(pthread_cond_t *cond, pthread_mutex_t *mutex, bool *told, const char *call,
		      const struct face_object *object, uint32_t number)
{
	char text[192], origin[ORIGIN_TEXT_MAX], cause[ORIGIN_TEXT_MAX + 32];
	struct timespec until;

	if (likely(!reason_wanted && !check_wanted) || *told) {
		pthread_cond_wait(cond, mutex);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	if (pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT)
		return;
	*told = true;
	snprintf(text, sizeof(text),
		 "%s of number 0x%x waits for events that the program has taken, and has not "
		 "acknowledged (ibv_ack_async_event, ibv_ack_cq_events)",
		 call, number);
	if (!check_wanted) {
		log_error("%s", text);
		return;
	}
	snprintf(cause, sizeof(cause), "%s%s", call, origin_write(object, "it", origin));
	check_finding(CHECK_UNACKNOWLEDGED, cause, "%s%s", text, origin);
}

static void wait_acknowledged(pthread_mutex_t *mutex, pthread_cond_t *cond,
			      const uint32_t *completed, uint32_t taken, const char *call,
			      const struct face_object *object, uint32_t number)
{
	bool told = false;

	pthread_mutex_lock(mutex);
	while (*completed != taken)
		wait_told(cond, mutex, &told, call, object, number);
	pthread_mutex_unlock(mutex);
}

void event_drain_qp(struct face_qp *qp)
{
	const uint32_t taken = forget_sources(face_context(qp->ibv.context), &qp->events.source, 1);

	wait_acknowledged(&qp->ibv.mutex, &qp->ibv.cond, &qp->ibv.events_completed, taken,
			  "ibv_destroy_qp", &qp->object, qp->ibv.qp_num);
}

void event_drain_srq(struct face_srq *srq)
{
	const uint32_t taken =
		forget_sources(face_context(srq->ibv.context), srq->events, FACE_SRQ_EVENTS);

	wait_acknowledged(&srq->ibv.mutex, &srq->ibv.cond, &srq->ibv.events_completed, taken,
			  "ibv_destroy_srq", &srq->object, srq->listed.number);
}

void event_drain_cq(struct face_cq *cq)
{
	struct ibv_cq *ibv = &cq->ibv;
	bool told = false;

	if (ibv->channel)
		channel_forget(&face_channel(ibv->channel)->channel, &cq->cq->source);
	channel_forget(&face_context(ibv->context)->async, &cq->error);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->cq->source.taken ||
	       ibv->async_events_completed != cq->error.taken)
		wait_told(&ibv->cond, &ibv->mutex, &told, "ibv_destroy_cq", &cq->object,
			  cq->cq->number);
	pthread_mutex_unlock(&ibv->mutex);
}

void event_drop_context(struct face_context *context)
{
	for (int i = 0; i < FACE_PORT_EVENTS; i++)
		channel_forget(&context->async, &context->port_events[i]);
}

int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
	void *object;
	int code, rc;

	if (context_is_orphan(ibv))
		return face_minus_one(-ENODEV);
	rc = channel_read(&face_context(ibv)->async, &object, &code);
	if (rc != 0)
		return face_minus_one(rc);
	if (code >= CHANNEL_SEVERAL)
		code = qp_events[code - CHANNEL_SEVERAL];
	*event = (struct ibv_async_event){.event_type = (enum ibv_event_type)code};
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		event->element.cq = &((struct face_cq *)object)->ibv;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		event->element.srq = &((struct face_srq *)object)->ibv;
		break;
	default:
		if (object)
			event->element.qp = &((struct face_qp *)object)->ibv;
		else
			event->element.port_num = FACE_PORT;
		break;
	}
	if (unlikely(reason_wanted))
		face_explain_event(face_context(ibv), event);
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *completed;
	struct ibv_context *ibv;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		ibv = event->element.cq->context;
		mutex = &event->element.cq->mutex;
		cond = &event->element.cq->cond;
		completed = &event->element.cq->async_events_completed;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ibv = event->element.srq->context;
		mutex = &event->element.srq->mutex;
		cond = &event->element.srq->cond;
		completed = &event->element.srq->events_completed;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		ibv = event->element.qp->context;
		mutex = &event->element.qp->mutex;
		cond = &event->element.qp->cond;
		completed = &event->element.qp->events_completed;
		break;
	default:
		return;
	}
	/* In a child of fork(), a thread that exists only in the parent may hold the object's
	 * lock. */
	if (context_is_orphan(ibv))
		return;
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}
