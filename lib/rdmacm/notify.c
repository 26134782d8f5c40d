/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts an agent's reports into the program's events. Runs with the engine's lock held. */
#include <stdlib.h>
#include <string.h>

#include "id.h"

/* Pass a message's private data to the program. */
static void put_private(struct id_event *event, const struct cm_event *told,
			const void **private_data, uint8_t *len)
{
	*private_data = event_put_data(event, told->private_data, told->private_len);
	*len = told->private_len;
}

static void put_conn(struct id_event *event, const struct cm_event *told)
{
	struct rdma_conn_param *conn = &event->public.param.conn;

	put_private(event, told, &conn->private_data, &conn->private_data_len);
	if (told->mad.message == CM_REQ) {
		/* Swap them: they are the values as the other side sees them. */
		conn->responder_resources = told->mad.req.initiator_depth;
		conn->initiator_depth = told->mad.req.responder_resources;
		conn->flow_control = told->mad.req.flow_control;
		conn->retry_count = told->mad.req.retry_count;
		conn->rnr_retry_count = told->mad.req.rnr_retry_count;
		conn->srq = told->mad.req.srq;
		conn->qp_num = told->mad.req.qpn;
	} else if (told->mad.message == CM_REP) {
		conn->responder_resources = told->mad.rep.initiator_depth;
		conn->initiator_depth = told->mad.rep.responder_resources;
		conn->flow_control = told->mad.rep.flow_control;
		conn->rnr_retry_count = told->mad.rep.rnr_retry_count;
		conn->srq = told->mad.rep.srq;
		conn->qp_num = cm_rep_qpn(&told->mad.rep);
	}
}

static void take_ece(struct cm_id *id, const struct cm_event *told)
{
	pthread_mutex_lock(&id->lock);
	id->remote_ece = told->mad.message == CM_REQ ? told->mad.req.ece : told->mad.rep.ece;
	pthread_mutex_unlock(&id->lock);
}

static void put_datagram(struct id_event *event, struct cm_id *id, const struct cm_event *told)
{
	struct rdma_ud_param *ud = &event->public.param.ud;

	put_private(event, told, &ud->private_data, &ud->private_data_len);
	if (told->type != CM_EVENT_SIDR_REP || told->status != CM_SIDR_VALID)
		return;
	ud->qp_num = told->mad.sidr_rep.qpn;
	ud->qkey = told->mad.sidr_rep.qkey;
	ud->ah_attr.is_global = 1;
	ud->ah_attr.port_num = 1;
	ud->ah_attr.grh.sgid_index = (uint8_t)id->sgid_index;
	ud->ah_attr.grh.hop_limit = id->path.hop_limit;
	ud->ah_attr.grh.traffic_class = id->path.traffic_class;
	memcpy(ud->ah_attr.grh.dgid.raw, id->peer.remote, GID_LEN);
}

/* Take both addresses from the request's IP header, or, for AF_IB, from its packet. */
static void take_addresses(struct cm_id *id, const struct cm_event *told,
			   const struct sockaddr *listener)
{
	struct rdma_addr *addr = &id->public.route.addr;
	const struct sockaddr_ib *at = (const struct sockaddr_ib *)listener;

	if (told->has_ip) {
		address_from_gid(AF_UNSPEC, told->ip.dst, &addr->src_storage);
		address_set_port(&addr->src_addr, address_port(listener));
		address_from_gid(AF_UNSPEC, told->ip.src, &addr->dst_storage);
		address_set_port(&addr->dst_addr, rte_cpu_to_be_16(told->ip.port));
		/* The peer does not know the name of our link. */
		address_set_scope(&addr->src_addr, id->sgid.ndev_ifindex);
		address_set_scope(&addr->dst_addr, id->sgid.ndev_ifindex);
	} else {
		address_from_gid(AF_IB, id->peer.local, &addr->src_storage);
		((struct sockaddr_ib *)&addr->src_storage)->sib_sid = at->sib_sid;
		((struct sockaddr_ib *)&addr->src_storage)->sib_sid_mask = at->sib_sid_mask;
		address_from_gid(AF_IB, id->peer.remote, &addr->dst_storage);
	}
	memcpy(addr->addr.ibaddr.dgid.raw, id->peer.remote, GID_LEN);
}

static bool take_peer(struct cm_id *id, const struct id_listener *slot, const struct cm_event *told)
{
	const struct cm_private *calls = cm_calls();
	struct cm_agreed agreed;
	struct device_gid found;
	int index;

	calls->cm_conn_agreed(told->conn, &agreed);
	index = calls->agent_find_own(slot->device->agent, &agreed.address, &found);
	if (index < 0)
		return false;
	id->peer = agreed.address;
	if (bind_gid(id, slot->device, index, &found) != 0)
		return false;
	resolve_fill_route(id);
	take_addresses(id, told, &slot->id->public.route.addr.src_addr);
	return true;
}

static struct cm_id *create_child(struct cm_id *listener)
{
	struct rdma_event_channel *channel;

	pthread_mutex_lock(&listener->lock);
	channel = listener->public.channel;
	pthread_mutex_unlock(&listener->lock);
	return id_create(channel, listener->public.context, listener->public.ps,
			 listener->public.qp_type);
}

static struct id_event *request_event(const struct id_listener *slot, const struct cm_event *told)
{
	struct cm_id *id = create_child(slot->id);
	struct id_event *event;

	if (!id)
		return NULL;
	event = event_create(slot->id, id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!event || !take_peer(id, slot, told)) {
		event_free(event);
		/* Do not tell the agent, which still has the connection. */
		(void)id_set_device(id, NULL);
		id_destroy(id);
		return NULL;
	}
	if (told->type == CM_EVENT_REQ) {
		put_conn(event, told);
		take_ece(id, told);
		id->responder_resources = event->public.param.conn.responder_resources;
		id->initiator_depth = event->public.param.conn.initiator_depth;
	} else {
		put_datagram(event, id, told);
	}
	id->conn = told->conn;
	id->state = ID_REQUESTED;
	cm_calls()->cm_conn_set_user(told->conn, id);
	return event;
}

static void tell_request(const struct cm_event *told, uint64_t now_ns)
{
	struct id_event *event = request_event(told->user, told);

	/* If there is no memory, destroy the connection: the peer repeats its request, or learns
	 * that nobody accepts. */
	if (event)
		event_raise(event);
	else
		cm_calls()->cm_conn_destroy(told->conn, now_ns);
}

/* Return the program's event for all events except requests. */
static enum rdma_cm_event_type type_of(const struct cm_event *told)
{
	switch (told->type) {
	case CM_EVENT_REP:
		return RDMA_CM_EVENT_CONNECT_RESPONSE;
	case CM_EVENT_SIDR_REP:
		return told->status == CM_SIDR_VALID ? RDMA_CM_EVENT_ESTABLISHED
						     : RDMA_CM_EVENT_UNREACHABLE;
	case CM_EVENT_ESTABLISHED:
		return RDMA_CM_EVENT_ESTABLISHED;
	case CM_EVENT_REJECTED:
		return RDMA_CM_EVENT_REJECTED;
	case CM_EVENT_DISCONNECTED:
		return RDMA_CM_EVENT_DISCONNECTED;
	case CM_EVENT_TIMEWAIT_EXIT:
		return RDMA_CM_EVENT_TIMEWAIT_EXIT;
	default:
		return RDMA_CM_EVENT_UNREACHABLE;
	}
}

static void tell(const struct cm_event *told, uint64_t now_ns)
{
	struct cm_id *id = told->user;
	struct id_event *event;

	if (told->type == CM_EVENT_REQ || told->type == CM_EVENT_SIDR_REQ) {
		tell_request(told, now_ns);
		return;
	}
	event = event_create(id, id, type_of(told), told->status);
	if (!event)
		return;
	if (told->type == CM_EVENT_REP)
		take_ece(id, told);
	if (told->type == CM_EVENT_SIDR_REP)
		put_datagram(event, id, told);
	else if (told->type == CM_EVENT_REP || told->type == CM_EVENT_REJECTED)
		put_conn(event, told);
	explain_event(event, told);
	event_raise(event);
}

const struct agent_notify notify_agent = {
	.event = tell,
	.resolved = resolve_finish,
	.lost = device_event_lost,
	.addresses = device_event_addresses,
};
