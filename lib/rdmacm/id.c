/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and destruction of ids. */
#include <stdlib.h>
#include <string.h>

#include "id.h"

struct cm_id *id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
			enum ibv_qp_type qp_type)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id) {
		errno = ENOMEM;
		return NULL;
	}
	id->generation = devices_generation;
	id->sync = channel == NULL;
	id->public.channel = channel ? event_channel_get(channel) : rdma_create_event_channel();
	if (!id->public.channel) {
		free(id);
		return NULL;
	}
	id->public.context = context;
	id->public.ps = ps;
	id->public.qp_type = qp_type;
	id->sgid_index = -1;
	id->qkey = RDMA_UDP_QKEY;
	id->responder_resources = RDMA_MAX_RESP_RES;
	id->initiator_depth = RDMA_MAX_INIT_DEPTH;
	pthread_mutex_init(&id->qp_lock, NULL);
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked, NULL);
	TAILQ_INIT(&id->events);
	LIST_INIT(&id->groups);
	return id;
}

bool id_move(struct cm_id *id, enum id_state from, enum id_state to)
{
	bool moved;

	pthread_mutex_lock(&id->lock);
	moved = id->state == from;
	if (moved)
		id->state = to;
	pthread_mutex_unlock(&id->lock);
	return moved;
}

enum id_state id_state(struct cm_id *id)
{
	enum id_state state;

	pthread_mutex_lock(&id->lock);
	state = id->state;
	pthread_mutex_unlock(&id->lock);
	return state;
}

int id_set_device(struct cm_id *id, struct cm_device *device)
{
	int rc = 0;

	if (!device) {
		id_unlist(id);
	} else if (!id_list(id, device)) {
		device = NULL;
		rc = -ENODEV;
	}
	id->device = device;
	id->public.verbs = device ? device->verbs : NULL;
	id->public.pd = device ? device->pd : NULL;
	id->public.port_num = device != NULL;
	return rc;
}

/* Make all agents forget the id. */
static void leave_agents(struct cm_id *id)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;

	listen_end(id);
	if (!id->device)
		return;
	calls->agent_enter(id->device->agent, &now_ns);
	calls->agent_forget(&id->query);
	if (id->conn)
		calls->cm_conn_destroy(id->conn, now_ns);
	id->conn = NULL;
	calls->agent_leave(id->device->agent);
}

void id_destroy(struct cm_id *id)
{
	int cancel_state;

	/* A thread that is cancelled half-way would leave an id that nobody can destroy. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	leave_agents(id);
	id_unlist(id);
	event_drain(id);
	/* Leave the groups after the last event has gone, because events point to groups. */
	multicast_leave_all(id);
	bind_release(id);
	if (id->uses_default_xrcd)
		device_put_xrcd(id->device);
	event_channel_put(id->public.channel);
	pthread_cond_destroy(&id->acked);
	pthread_mutex_destroy(&id->lock);
	pthread_mutex_destroy(&id->qp_lock);
	rdma_freeaddrinfo(id->addrinfo);
	free(id->ep_attr);
	free(id->ep_data);
	free(id);
	pthread_setcancelstate(cancel_state, NULL);
}

static bool is_port_space(enum rdma_port_space ps)
{
	return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	ID_CALL();
	const bool datagram = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
	struct cm_device *const *devices;
	struct cm_id *made;
	int rc;

	if (!id || !is_port_space(ps))
		return id_result(explain_argument(
			"id is NULL, or ps is not RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB or "
			"RDMA_PS_IB"));
	rc = id_inject(__func__);
	if (rc != 0)
		return id_result(rc);
	/* Start the devices: at this call programs learn if there are RDMA devices at all. */
	rc = devices_get(&devices);
	if (rc < 0)
		return id_result(rc);
	made = id_create(channel, context, ps, datagram ? IBV_QPT_UD : IBV_QPT_RC);
	if (!made)
		return id_result(-errno);
	*id = &made->public;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0)
		return id_result(rc);
	event_ack_kept(id);
	id_destroy(cm_id_of(id));
	return 0;
}

static void move_unread_locked(struct cm_id *id, struct rdma_event_channel *to);

/* Move the id of an unread request, and the events that it has got since. */
static void move_child(struct cm_id *id, struct rdma_event_channel *to)
{
	pthread_mutex_lock(&id->lock);
	move_unread_locked(id, to);
	pthread_mutex_unlock(&id->lock);
}

/* Move unread events, and all later ones, to another channel. */
static void move_unread_locked(struct cm_id *id, struct rdma_event_channel *to)
{
	const struct cm_private *calls = cm_calls();
	struct rdma_event_channel *const from = id->public.channel;
	struct id_event *event;

	id->public.channel = event_channel_get(to);
	TAILQ_FOREACH (event, &id->events, next) {
		if (calls->channel_forget(&channel_of(from)->queue, &event->source) == 0)
			continue;
		/* Move the child first: from channel_raise on, the program may read its event. */
		if (event->public.id != &id->public)
			move_child(cm_id_of(event->public.id), to);
		calls->channel_raise(&channel_of(to)->queue, &event->source);
	}
	event_channel_put(from);
}

static bool has_read_event_locked(const struct cm_id *id)
{
	const struct id_event *event;

	TAILQ_FOREACH (event, &id->events, next) {
		if (event_is_read_locked(event))
			return true;
	}
	return false;
}

static void migrate(struct cm_id *id, struct rdma_event_channel *to, bool sync)
{
	/* The program may still use the old channel for the events that it has. */
	struct rdma_event_channel *const from = event_channel_get(id->public.channel);

	pthread_mutex_lock(&id->lock);
	id->sync = sync;
	move_unread_locked(id, to);
	while (has_read_event_locked(id))
		event_wait_locked(id);
	pthread_mutex_unlock(&id->lock);
	event_channel_put(from);
}

int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
	ID_CALL();
	struct cm_id *id = cm_id_of(public);
	const int rc = id_check(public);
	struct rdma_event_channel *to;

	if (rc != 0)
		return id_result(rc);
	event_ack_kept(public);
	if (!channel && id->sync)
		return 0;
	to = channel ? event_channel_get(channel) : rdma_create_event_channel();
	if (!to)
		return id_result(-errno);
	migrate(id, to, channel == NULL);
	event_channel_put(to);
	return 0;
}
