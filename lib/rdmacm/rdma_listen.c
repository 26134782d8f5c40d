/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening, and the requests of a synchronous listener. */
#include <string.h>

#include "id.h"

#define BACKLOG_MAX 1024 /* Linux's value */

static struct cm_listen_attr attr_of(const struct cm_id *id, int backlog)
{
	const struct sockaddr *src = &id->public.route.addr.src_addr;
	struct cm_listen_attr attr = {
		.service_id = address_service(id->public.ps, src),
		.datagrams = id_is_datagram(id),
		.transport = connect_transport(id),
		.ip = src->sa_family != AF_IB,
		.any_address = id->sgid_index < 0,
		.backlog = backlog <= 0 || backlog > BACKLOG_MAX ? BACKLOG_MAX : (uint32_t)backlog,
	};

	if (id->is_loopback) {
		address_gid(src, attr.address);
		attr.ip_version = gid_is_ipv4(attr.address) ? 4 : 6;
	} else if (!attr.any_address) {
		attr.ip_version = gid_is_ipv4(id->sgid.gid.raw) ? 4 : 6;
		memcpy(attr.address, id->sgid.gid.raw, sizeof(attr.address));
		attr.vlan_id = id->sgid.vlan_id;
	} else if (src->sa_family == AF_INET) {
		attr.ip_version = 4;
	} else if (id->af_only) {
		attr.ip_version = 6;
	}
	return attr;
}

static int listen_at(struct cm_id *id, struct id_listener *slot, struct cm_device *device,
		     struct cm_listen_attr attr)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;
	struct cm *cm;
	int rc;

	slot->id = id;
	slot->device = device;
	attr.user = slot;
	attr.waiting = &id->waiting;
	cm = calls->agent_enter(device->agent, &now_ns);
	rc = calls->cm_listen(cm, &attr, &slot->listener);
	calls->agent_leave(device->agent);
	return rc;
}

static int listen_at_all(struct cm_id *id, const struct cm_listen_attr *attr)
{
	struct cm_device *const *devices;
	const int count = devices_get(&devices);
	int rc = count < 0 ? count : 0;

	for (int i = 0; i < count && rc == 0; i++) {
		if ((!id->device || id->device == devices[i]) && !device_is_lost(devices[i]))
			rc = listen_at(id, &id->listeners[i], devices[i], *attr);
	}
	return rc;
}

static int claim_listen(struct cm_id *id)
{
	int rc = 0;

	for (size_t i = 0; i < id->claim_count && rc == 0; i++)
		rc = id->claims[i].ops->listen(id->claims[i].user, id->claims[i].id);
	return rc;
}

void listen_end(struct cm_id *id)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;

	for (size_t i = 0; i < ID_DEVICES_MAX; i++) {
		struct id_listener *slot = &id->listeners[i];

		if (!slot->listener)
			continue;
		calls->agent_enter(slot->device->agent, &now_ns);
		calls->cm_unlisten(slot->listener, now_ns);
		slot->listener = NULL;
		calls->agent_leave(slot->device->agent);
	}
}

static int start(struct cm_id *id, int backlog)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	struct cm_listen_attr attr;
	int rc = 0;

	if (id_state(id) == ID_IDLE)
		rc = bind_address(id, (const struct sockaddr *)&any);
	if (rc != 0)
		return rc;
	if (!id_move(id, ID_BOUND, ID_LISTENING))
		return explain_state(id, "BOUND (rdma_bind_addr)");
	rc = claim_listen(id);
	if (rc == 0) {
		attr = attr_of(id, backlog);
		rc = listen_at_all(id, &attr);
	}
	if (rc != 0) {
		listen_end(id);
		id_move(id, ID_LISTENING, ID_BOUND);
	}
	return rc;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0)
		return id_result(rc);
	return id_result(start(cm_id_of(id), backlog));
}

static int take_request(struct cm_id *listener, struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr attr;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return explain_result(event, -ENODEV);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return ID_REASON(-EINVAL, "the listener got %s instead of a request",
				 rdma_event_str(event->event));
	if (event->status != 0)
		return event->status;
	if (!listener->ep_attr)
		return 0;
	attr = *listener->ep_attr;
	attr.qp_type = event->id->qp_type;
	return rdma_create_qp(event->id, listener->ep_pd, &attr) == 0 ? 0 : -errno;
}

/* Return true if the listener's device is lost, and the program has read all its events. */
static bool has_ended(struct cm_id *listener)
{
	const struct id_event *event;
	bool ended;

	pthread_mutex_lock(&listener->lock);
	ended = listener->state == ID_REMOVED;
	TAILQ_FOREACH (event, &listener->events, next)
		ended &= event_is_read_locked(event);
	pthread_mutex_unlock(&listener->lock);
	return ended;
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	ID_CALL();
	struct rdma_cm_event *event;
	struct rdma_cm_id *child;
	int rc = id_check(listen);

	if (rc != 0)
		return id_result(rc);
	if (!id || !cm_id_of(listen)->sync)
		return id_result(
			explain_argument("id is NULL, or the listener has an event channel: "
					 "only a synchronous one has requests to get"));
	event_ack_kept(listen);
	if (has_ended(cm_id_of(listen)))
		return id_result(ID_REASON(-ENODEV, "the listener's device is lost"));
	do {
		if (rdma_get_cm_event(listen->channel, &event) != 0)
			return id_result(-errno);
		/* A change of the listener's address is no request, and no failure. */
	} while (event->event == RDMA_CM_EVENT_ADDR_CHANGE && rdma_ack_cm_event(event) == 0);
	child = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
	rc = take_request(cm_id_of(listen), event);
	if (rc != 0) {
		rdma_ack_cm_event(event);
		if (child) {
			rdma_destroy_qp(child);
			rdma_destroy_id(child);
		}
		return id_result(rc);
	}
	/* Keep the event: the program reads the request's private data there. */
	child->event = event;
	*id = child;
	return 0;
}
