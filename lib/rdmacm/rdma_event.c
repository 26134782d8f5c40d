/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events: their channels, and their path from the raising thread to acknowledgement.
 *
 * An event stays in its owner's list until it is acknowledged. `source.pending` is 0 once a reader
 * has taken it from the channel.
 */
#include "id.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "later.h"

struct rdma_event_channel *rdma_create_event_channel(void)
{
	ID_CALL();
	const struct cm_private *calls = cm_calls();
	struct cm_device *const *devices;
	struct event_channel *channel;
	int rc = devices_get(&devices);

	if (rc < 0) {
		(void)id_result(rc);
		return NULL;
	}
	channel = calloc(1, sizeof(*channel));
	rc = channel ? calls->channel_init(&channel->queue) : -ENOMEM;
	if (rc != 0) {
		free(channel);
		(void)id_result(rc);
		return NULL;
	}
	channel->public.fd = channel->queue.fd;
	channel->users = 1;
	channel->generation = devices_generation;
	return &channel->public;
}

struct rdma_event_channel *event_channel_get(struct rdma_event_channel *channel)
{
	__atomic_add_fetch(&channel_of(channel)->users, 1, __ATOMIC_RELAXED);
	return channel;
}

void event_channel_put(struct rdma_event_channel *channel)
{
	if (__atomic_sub_fetch(&channel_of(channel)->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	cm_calls()->channel_fini(&channel_of(channel)->queue);
	free(channel);
}

/* Drop the program's reference. The channel stays until its ids are destroyed, because they raise
 * their events in it. */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (channel)
		event_channel_put(channel);
}

struct id_event *event_create(struct cm_id *owner, struct cm_id *id, enum rdma_cm_event_type type,
			      int status)
{
	struct id_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->owner = owner;
	event->public.id = &id->public;
	event->public.listen_id = owner != id ? &owner->public : NULL;
	event->public.event = type;
	event->public.status = status;
	event->source.object = event;
	return event;
}

void event_free(struct id_event *event)
{
	if (event)
		free(event->why);
	free(event);
}

/* Give the id of a request the channel of its listener, which may have been migrated since the id
 * was created. */
static void follow_locked(struct cm_id *child, struct rdma_event_channel *channel)
{
	struct rdma_event_channel *old;

	pthread_mutex_lock(&child->lock);
	old = child->public.channel;
	child->public.channel = event_channel_get(channel);
	pthread_mutex_unlock(&child->lock);
	event_channel_put(old);
}

void event_raise(struct id_event *event)
{
	struct cm_id *owner = event->owner;

	pthread_mutex_lock(&owner->lock);
	if (event->public.id != &owner->public)
		follow_locked(cm_id_of(event->public.id), owner->public.channel);
	TAILQ_INSERT_TAIL(&owner->events, event, next);
	cm_calls()->channel_raise(&channel_of(owner->public.channel)->queue, &event->source);
	pthread_mutex_unlock(&owner->lock);
}

bool event_is_read_locked(const struct id_event *event)
{
	struct event_channel *channel = channel_of(event->owner->public.channel);

	return cm_calls()->channel_pending(&channel->queue, &event->source) == 0;
}

int event_tell(struct cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct id_event *event = event_create(id, id, type, status);

	if (!event)
		return -ENOMEM;
	explain_event(event, NULL);
	event_raise(event);
	return 0;
}

const void *event_put_data(struct id_event *event, const void *data, uint8_t len)
{
	const size_t room = sizeof(event->private_data);

	if (len == 0)
		return NULL;
	memcpy(event->private_data, data, RTE_MIN((size_t)len, room));
	return event->private_data;
}

/* Drop an unread event, and what belongs to it. */
static void drop(struct id_event *event)
{
	if (event->public.id != &event->owner->public)
		id_destroy(cm_id_of(event->public.id));
	event_free(event);
}

/* Take the first unread event from the channel and the list. */
static struct id_event *take_unread_locked(struct cm_id *id)
{
	struct channel *queue = &channel_of(id->public.channel)->queue;
	struct id_event *event;

	TAILQ_FOREACH (event, &id->events, next) {
		if (cm_calls()->channel_forget(queue, &event->source) > 0) {
			TAILQ_REMOVE(&id->events, event, next);
			return event;
		}
	}
	return NULL;
}

void event_wait_locked(struct cm_id *id)
{
	int cancel_state;

	/* A thread that is cancelled in the wait would end with the lock held. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (likely(!explain_wanted) || !explain_wait_locked(id))
		pthread_cond_wait(&id->acked, &id->lock);
	pthread_setcancelstate(cancel_state, NULL);
}

void event_drain(struct cm_id *id)
{
	struct id_event *event;

	pthread_mutex_lock(&id->lock);
	while ((event = take_unread_locked(id)) != NULL) {
		pthread_mutex_unlock(&id->lock);
		drop(event);
		pthread_mutex_lock(&id->lock);
	}
	while (!TAILQ_EMPTY(&id->events))
		event_wait_locked(id);
	pthread_mutex_unlock(&id->lock);
}

int rdma_ack_cm_event(struct rdma_cm_event *public)
{
	ID_CALL();
	struct id_event *event = (struct id_event *)public;
	struct cm_id *owner;
	int rc;

	if (!public)
		return id_result(explain_argument("the event is NULL"));
	owner = event->owner;
	rc = id_check(&owner->public);
	if (rc != 0)
		return id_result(rc);
	pthread_mutex_lock(&owner->lock);
	TAILQ_REMOVE(&owner->events, event, next);
	pthread_cond_broadcast(&owner->acked);
	pthread_mutex_unlock(&owner->lock);
	event_free(event);
	return 0;
}

/* Return true if an event is the last one of a connection, except TIMEWAIT_EXIT. */
static bool is_last(const struct id_event *event)
{
	switch (event->public.event) {
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_DISCONNECTED:
		return true;
	default:
		return false;
	}
}

/* Drop an unread last event. Else poll(2) would announce an event that the program does not get. */
static void drop_unread_last(struct cm_id *id)
{
	struct channel *queue;
	struct id_event *event;

	pthread_mutex_lock(&id->lock);
	queue = &channel_of(id->public.channel)->queue;
	TAILQ_FOREACH (event, &id->events, next) {
		if (is_last(event) && cm_calls()->channel_forget(queue, &event->source) > 0) {
			TAILQ_REMOVE(&id->events, event, next);
			event_free(event);
			break;
		}
	}
	pthread_mutex_unlock(&id->lock);
}

/* Return false if the program has the connection's last event already. */
static bool end_locked(struct cm_id *id)
{
	const bool first = !id->over;

	id->over = true;
	return first;
}

static int establish_locked(struct cm_id *id)
{
	int rc = qp_to_rtr_locked(id, RDMA_MAX_RESP_RES);

	if (rc == 0)
		rc = qp_to_rts_locked(id, RDMA_MAX_INIT_DEPTH);
	return rc == 0 ? connect_establish(id) : rc;
}

/* Make the queue pair ready and send the RTU. If this fails, for example because the peer has
 * rejected meanwhile, CONNECT_ERROR is the last event: the peer's REJECTED is dropped. */
static bool respond_locked(struct id_event *event)
{
	struct rdma_cm_event *public = &event->public;
	struct cm_id *id = cm_id_of(public->id);
	const int rc = establish_locked(id);

	if (rc == 0) {
		public->event = RDMA_CM_EVENT_ESTABLISHED;
		return true;
	}
	public->event = RDMA_CM_EVENT_CONNECT_ERROR;
	public->status = rc;
	explain_by_reason(event, rc);
	connect_refuse(id);
	qp_to_error_locked(id);
	drop_unread_last(id);
	return end_locked(id);
}

/* Process the peer's acceptance, if the id has a queue pair. */
static bool take_response(struct id_event *event)
{
	struct cm_id *id = cm_id_of(event->public.id);
	bool wanted = true;
	int cancel_state;

	if (qp_lock(id, &cancel_state))
		wanted = respond_locked(event);
	qp_unlock(id, cancel_state);
	return wanted;
}

static bool take_last(const struct rdma_cm_event *public)
{
	struct cm_id *id = cm_id_of(public->id);
	int cancel_state;
	bool wanted;

	if (qp_lock(id, &cancel_state) && public->event == RDMA_CM_EVENT_REJECTED)
		qp_to_error_locked(id);
	wanted = end_locked(id);
	qp_unlock(id, cancel_state);
	return wanted;
}

/* Give back the request's place in the backlog. A thread that is cancelled meanwhile would end with
 * the engine's lock. */
static void leave_backlog(const struct cm_id *id)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	calls->agent_enter(id->device->agent, &now_ns);
	/* A connection of a lost device has no place any more. */
	if (id->conn)
		calls->cm_conn_take(id->conn);
	calls->agent_leave(id->device->agent);
	pthread_setcancelstate(cancel_state, NULL);
}

static bool is_sync(struct cm_id *id)
{
	bool sync;

	pthread_mutex_lock(&id->lock);
	sync = id->sync;
	pthread_mutex_unlock(&id->lock);
	return sync;
}

/* Take a request out of the backlog. If its listener is synchronous, its id becomes so, too. */
static void take_request(struct id_event *event)
{
	leave_backlog(cm_id_of(event->public.id));
	if (is_sync(event->owner) && rdma_migrate_id(event->public.id, NULL) != 0)
		event->public.status = -errno;
}

static void take_join(struct id_event *event)
{
	const int rc = multicast_attach(cm_id_of(event->public.id), event->group);

	if (rc == 0)
		return;
	event->public.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	event->public.status = rc;
	explain_by_reason(event, rc);
}

/* Do what must be done in the program's thread before it gets the event. Return false if the
 * program must not get it. */
static bool take(struct id_event *event)
{
	switch (event->public.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		take_request(event);
		return true;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return take_response(event);
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		take_join(event);
		return true;
	default:
		return !is_last(event) || take_last(&event->public);
	}
}

/* Return true if a call sleeps until there is an event. */
static bool is_blocking(const struct rdma_event_channel *channel)
{
	return (fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0;
}

/*
 * Read an event. A call that does not sleep reads first, and tells the engine about a sleep only if
 * there is none: the helper would take this CPU, receive the completions of a connection and its
 * end at once, and this call would report the end. The program, which has found no completion a
 * moment before, would destroy the queue pair with its completions.
 */
static int read_event(struct rdma_event_channel *channel, struct id_event **event)
{
	const bool sleeps = is_blocking(channel);
	void *object;
	int code, rc;

	if (sleeps)
		devices_wait();
	rc = cm_calls()->channel_read(&channel_of(channel)->queue, &object, &code);
	if (rc == 0)
		*event = object;
	else if (!sleeps)
		devices_wait();
	return rc;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **public)
{
	ID_CALL();
	struct id_event *event;
	bool wanted;
	int rc;

	if (!channel || !public)
		return id_result(explain_argument("the channel or the event is NULL"));
	if (channel_of(channel)->generation != devices_generation)
		return id_result(ID_REASON(-ENODEV, "the channel is of the parent process"));
	do {
		rc = read_event(channel, &event);
		if (rc != 0)
			return id_result(rc);
		wanted = take(event);
		*public = &event->public;
	} while (!wanted && rdma_ack_cm_event(*public) == 0);
	explain_taken(event);
	return 0;
}

void event_ack_kept(struct rdma_cm_id *public)
{
	if (public->event)
		rdma_ack_cm_event(public->event);
	public->event = NULL;
}

/* Wait for the event that is the result of a synchronous call. ADDR_CHANGE is no result. */
static int wait_for_result(struct rdma_cm_id *public)
{
	do {
		event_ack_kept(public);
		while (rdma_get_cm_event(public->channel, &public->event) != 0) {
			if (errno != EINTR)
				return -errno;
		}
	} while (public->event->event == RDMA_CM_EVENT_ADDR_CHANGE);
	return 0;
}

/* Return the error of a synchronous call that ends with an event, or 0. */
static int error_of(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return -ENODEV;
	if (event->status == 0)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

int event_complete(struct cm_id *id)
{
	struct rdma_cm_id *public = &id->public;
	int rc;

	if (!id->sync)
		return 0;
	rc = wait_for_result(public);
	if (rc != 0)
		return rc;
	rc = error_of(public->event);
	return rc == 0 ? 0 : explain_result(public->event, rc);
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(event) [event] = #event
	static const char *const names[] = {
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
		NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),
		NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),
		NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
		NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),
		NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
		[LATER_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[LATER_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[LATER_EVENT_USER] = "RDMA_CM_EVENT_USER",
		[LATER_EVENT_INTERNAL] = "RDMA_CM_EVENT_INTERNAL",
	};
#undef NAME

	return (unsigned int)event < RTE_DIM(names) ? names[event] : "UNKNOWN EVENT";
}
