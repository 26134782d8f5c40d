/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels: a descriptor to sleep on, and its events. */
#include <stdlib.h>

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

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	void *object;
	int code, rc;

	if (context_is_orphan(ibv->context))
		return face_minus_one(-ENODEV);
	home_wait_channel(face_channel(ibv));
	rc = channel_read(&face_channel(ibv)->channel, &object, &code);
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
