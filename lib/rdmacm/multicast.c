/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of datagram ids. A group's GID is its IP address, as with Linux on RoCEv2. */
#include <stdlib.h>
#include <string.h>

#include "id.h"
#include "wire/headers.h"

#define ALL_QPS 0xffffff /* 10.5.2: the destination of a datagram to a group */

static bool has_address(const struct id_group *group, const struct sockaddr *address)
{
	uint8_t gid[GID_LEN];

	return address_gid(address, gid) && memcmp(gid, group->mgid.raw, GID_LEN) == 0;
}

static struct id_group *find_locked(struct cm_id *id, const struct sockaddr *address)
{
	struct id_group *group;

	LIST_FOREACH (group, &id->groups, next) {
		if (has_address(group, address))
			return group;
	}
	return NULL;
}

static struct id_event *join_event(struct cm_id *id, struct id_group *group)
{
	struct id_event *event = event_create(id, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	struct rdma_ud_param *ud;

	if (!event)
		return NULL;
	event->group = group;
	ud = &event->public.param.ud;
	ud->private_data = group->context;
	ud->qp_num = ALL_QPS;
	ud->qkey = id->qkey;
	ud->ah_attr.is_global = 1;
	ud->ah_attr.port_num = 1;
	ud->ah_attr.grh.dgid = group->mgid;
	ud->ah_attr.grh.sgid_index = (uint8_t)id->sgid_index;
	ud->ah_attr.grh.hop_limit = WIRE_HOP_LIMIT;
	ud->ah_attr.grh.traffic_class = id->tos;
	return event;
}

static bool may_join(struct cm_id *id)
{
	bool may;

	pthread_mutex_lock(&id->lock);
	may = id->state == ID_BOUND || id->state == ID_ADDR_RESOLVED ||
	      id->state == ID_ROUTE_RESOLVED;
	pthread_mutex_unlock(&id->lock);
	return may && id->sgid_index >= 0;
}

static void add_group(struct cm_id *id, struct id_group *group)
{
	int cancel_state;

	qp_lock(id, &cancel_state);
	pthread_mutex_lock(&id->lock);
	LIST_INSERT_HEAD(&id->groups, group, next);
	pthread_mutex_unlock(&id->lock);
	qp_unlock(id, cancel_state);
}

static int join(struct cm_id *id, const struct sockaddr *address, bool send_only, void *context)
{
	struct id_group *group;
	struct id_event *event;

	if (address_len(address) == 0)
		return explain_argument(WRONG_FAMILY);
	if (!id_is_datagram(id))
		return explain_argument("the id is not of RDMA_PS_UDP or RDMA_PS_IPOIB");
	if (!may_join(id))
		return explain_state(id, "BOUND to an address of a device, ADDR_RESOLVED or "
					 "ROUTE_RESOLVED");
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	memcpy(&group->address, address, address_len(address));
	address_gid(address, group->mgid.raw);
	group->context = context;
	group->send_only = send_only;
	event = gid_is_multicast(group->mgid.raw) ? join_event(id, group) : NULL;
	if (!event) {
		const int rc =
			gid_is_multicast(group->mgid.raw)
				? -ENOMEM
				: explain_argument("the address is not of a group (224.0.0.0/4, "
						   "ff00::/8)");

		free(group);
		return rc;
	}
	add_group(id, group);
	event_raise(event);
	return event_complete(id);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0 || !addr)
		return id_result(rc != 0 ? rc : explain_argument("addr is NULL"));
	return id_result(join(cm_id_of(id), addr, false, context));
}

/* Join a group. A send-only member gets the event, but its queue pair is not attached, and the
 * network is not told. */
int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
			   void *context)
{
	ID_CALL();
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	const int rc = id_check(id);

	if (rc != 0 || !attr)
		return id_result(rc != 0 ? rc : explain_argument("attr is NULL"));
	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return id_result(-ENOTSUP);
	if (attr->comp_mask != needed || !attr->addr ||
	    attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return id_result(
			explain_argument("comp_mask must have RDMA_CM_JOIN_MC_ATTR_ADDRESS and "
					 "_JOIN_FLAGS, addr must not be NULL, and join_flags must "
					 "be a known value"));
	return id_result(join(cm_id_of(id), attr->addr,
			      attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context));
}

static int attach_locked(struct ibv_qp *qp, struct id_group *group)
{
	const int rc = -ibv_attach_mcast(qp, &group->mgid, 0);

	group->attached = rc == 0;
	return rc;
}

int multicast_attach(struct cm_id *id, struct id_group *group)
{
	int cancel_state;
	struct ibv_qp *qp = qp_lock(id, &cancel_state);
	const bool may = qp && !group->send_only && !group->left;
	const int rc = may ? attach_locked(qp, group) : 0;

	qp_unlock(id, cancel_state);
	return rc;
}

static void detach_locked(struct cm_id *id, struct id_group *group)
{
	if (group->attached && id->public.qp)
		ibv_detach_mcast(id->public.qp, &group->mgid, 0);
	group->attached = false;
}

void multicast_detach_all_locked(struct cm_id *id)
{
	struct id_group *group;

	LIST_FOREACH (group, &id->groups, next)
		detach_locked(id, group);
}

void multicast_leave_all(struct cm_id *id)
{
	struct id_group *group;
	int cancel_state;

	qp_lock(id, &cancel_state);
	multicast_detach_all_locked(id);
	qp_unlock(id, cancel_state);
	while ((group = LIST_FIRST(&id->groups)) != NULL) {
		LIST_REMOVE(group, next);
		free(group);
	}
}

/* Return true if there is an event of the group that the program has not acknowledged. */
static bool is_told_locked(const struct cm_id *id, const struct id_group *group)
{
	const struct id_event *event;

	TAILQ_FOREACH (event, &id->events, next) {
		if (event->group == group)
			return true;
	}
	return false;
}

static void forget_unread_locked(struct cm_id *id, const struct id_group *group)
{
	struct channel *queue = &channel_of(id->public.channel)->queue;
	struct id_event *event;

	TAILQ_FOREACH (event, &id->events, next) {
		if (event->group == group &&
		    cm_calls()->channel_forget(queue, &event->source) > 0) {
			TAILQ_REMOVE(&id->events, event, next);
			event_free(event);
			return;
		}
	}
}

/* Remove a group from the id's list. From then on no thread attaches the queue pair to it. */
static struct id_group *take_group(struct cm_id *id, const struct sockaddr *address)
{
	struct id_group *group;
	int cancel_state;

	qp_lock(id, &cancel_state);
	pthread_mutex_lock(&id->lock);
	group = find_locked(id, address);
	if (group)
		LIST_REMOVE(group, next);
	pthread_mutex_unlock(&id->lock);
	if (group) {
		group->left = true;
		detach_locked(id, group);
	}
	qp_unlock(id, cancel_state);
	return group;
}

int rdma_leave_multicast(struct rdma_cm_id *public, struct sockaddr *addr)
{
	ID_CALL();
	struct cm_id *id = cm_id_of(public);
	const int rc = id_check(public);
	struct id_group *group;

	if (rc != 0 || !addr || address_len(addr) == 0)
		return id_result(rc != 0 ? rc : explain_argument(WRONG_FAMILY));
	group = take_group(id, addr);
	if (!group)
		return id_result(ID_REASON(-EADDRNOTAVAIL, "the id is not a member of this group"));
	pthread_mutex_lock(&id->lock);
	forget_unread_locked(id, group);
	while (is_told_locked(id, group))
		event_wait_locked(id);
	pthread_mutex_unlock(&id->lock);
	free(group);
	return 0;
}
