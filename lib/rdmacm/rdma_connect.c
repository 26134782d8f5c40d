/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting, accepting, and disconnecting. */
#include <string.h>

#include "id.h"
#include "wire/headers.h"

#define RETRIES_MAX	 7  /* largest value in a REQ and in a queue pair */
#define RESPONSE_TIMEOUT 20 /* Linux's value, as the next one */
#define CM_RETRIES	 15

#define NEEDS_ROUTE "ROUTE_RESOLVED (rdma_resolve_route, and its event)"
#define NO_QP \
	"the id has no queue pair (rdma_create_qp), and conn_param, which would name one, is NULL"
#define NO_CONN "the id has no connection: it is over, or was never requested"

/* The program's parameters of a connection, or defaults. */
struct terms {
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool flow_control;
	bool srq;
	bool has_qp; /* the id has a queue pair */
	uint32_t qpn;
	uint8_t private_len;
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* Put ai_connect of rdma_getaddrinfo(3) in front of the program's private data. */
static int put_private(const struct cm_id *id, const struct rdma_conn_param *param,
		       struct terms *terms)
{
	const uint8_t len = param && param->private_data ? param->private_data_len : 0;

	if ((size_t)id->ep_data_len + len > sizeof(terms->private_data))
		return ID_REASON(-EINVAL,
				 "%u bytes of ai_connect and %u of private data are together more "
				 "than %u",
				 id->ep_data_len, len, CM_PRIVATE_MAX);
	if (id->ep_data_len > 0)
		memcpy(terms->private_data, id->ep_data, id->ep_data_len);
	if (len > 0)
		memcpy(terms->private_data + id->ep_data_len, param->private_data, len);
	terms->private_len = (uint8_t)(id->ep_data_len + len);
	return 0;
}

static uint8_t device_depth(int value)
{
	return (uint8_t)RTE_MIN(value, RDMA_MAX_RESP_RES - 1);
}

/* Limit a value to the device's limit and to what the peer has asked for. */
static uint8_t limit(uint8_t wanted, int device, uint8_t peer)
{
	return wanted == RDMA_MAX_RESP_RES ? RTE_MIN(device_depth(device), peer) : wanted;
}

static void take_qp(struct cm_id *id, struct terms *terms)
{
	int cancel_state;
	const struct ibv_qp *qp = qp_lock(id, &cancel_state);

	terms->has_qp = qp != NULL;
	if (qp) {
		terms->qpn = qp->qp_num;
		terms->srq = qp->srq != NULL;
	}
	qp_unlock(id, cancel_state);
}

static int make_terms(struct cm_id *id, const struct rdma_conn_param *param, struct terms *terms)
{
	const struct ibv_device_attr *attr = &id->device->attr;

	*terms = (struct terms){
		.responder_resources = param ? param->responder_resources : RDMA_MAX_RESP_RES,
		.initiator_depth = param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH,
		.retry_count = RTE_MIN(param ? param->retry_count : RETRIES_MAX, RETRIES_MAX),
		.rnr_retry_count =
			RTE_MIN(param ? param->rnr_retry_count : RETRIES_MAX, RETRIES_MAX),
	};
	if (param) {
		terms->flow_control = param->flow_control;
		terms->srq = param->srq;
		terms->qpn = param->qp_num & WIRE_QPN_MASK;
	}
	if (put_private(id, param, terms) != 0)
		return -EINVAL;
	terms->responder_resources =
		limit(terms->responder_resources, attr->max_qp_rd_atom, id->responder_resources);
	terms->initiator_depth =
		limit(terms->initiator_depth, attr->max_qp_init_rd_atom, id->initiator_depth);
	take_qp(id, terms);
	/* A datagram's peer wants no queue pair of ours. */
	if (!terms->has_qp && !param && !id_is_datagram(id))
		return explain_argument(NO_QP);
	if (id->public.ps == RDMA_PS_TCP &&
	    (terms->responder_resources > device_depth(attr->max_qp_rd_atom) ||
	     terms->initiator_depth > device_depth(attr->max_qp_init_rd_atom)))
		return ID_REASON(
			-EINVAL,
			"responder_resources is %u and initiator_depth %u; the device has at "
			"most %d and %d (max_qp_rd_atom, max_qp_init_rd_atom)",
			terms->responder_resources, terms->initiator_depth, attr->max_qp_rd_atom,
			attr->max_qp_init_rd_atom);
	return 0;
}

/* Return the IP header: the addresses that both programs see. They may be loopback addresses, which
 * no packet has. */
static struct cm_ip ip_of(const struct cm_id *id)
{
	const struct rdma_addr *addr = &id->public.route.addr;
	struct cm_ip ip = {.port = rte_be_to_cpu_16(address_port(&addr->src_addr))};

	address_gid(&addr->src_addr, ip.src);
	address_gid(&addr->dst_addr, ip.dst);
	ip.version = gid_is_ipv4(ip.dst) ? 4 : 6;
	return ip;
}

static uint64_t service_of(const struct cm_id *id)
{
	return address_service(id->public.ps, &id->public.route.addr.dst_addr);
}

uint8_t connect_transport(const struct cm_id *id)
{
	switch (id->public.qp_type) {
	case IBV_QPT_UC:
		return CM_TRANSPORT_UC;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return CM_TRANSPORT_EXTENDED;
	default:
		return CM_TRANSPORT_RC;
	}
}

static int ask_connection(struct cm_id *id, struct cm *cm, const struct terms *terms,
			  const struct cm_ip *ip, uint64_t now_ns)
{
	const uint8_t transport = connect_transport(id);
	const struct cm_connect_attr attr = {
		.to = id->peer,
		.service_id = service_of(id),
		.ip = ip,
		.qpn = terms->qpn,
		.transport = transport,
		.extended_type = transport == CM_TRANSPORT_EXTENDED ? CM_EXTENDED_XRC : 0,
		.srq = terms->srq,
		.flow_control = terms->flow_control,
		.responder_resources = terms->responder_resources,
		.initiator_depth = terms->initiator_depth,
		.retry_count = terms->retry_count,
		.rnr_retry_count = terms->rnr_retry_count,
		.mtu = id->path.mtu,
		.packet_life_time = id->path.packet_life_time,
		.response_timeout = RESPONSE_TIMEOUT,
		.max_cm_retries = CM_RETRIES,
		.hop_limit = id->path.hop_limit,
		.tclass = id->path.traffic_class,
		.ece = id->local_ece,
		.private_data = terms->private_data,
		.private_len = terms->private_len,
		.user = id,
	};

	return cm_calls()->cm_connect(cm, &attr, now_ns, &id->conn);
}

static int ask_service(struct cm_id *id, struct cm *cm, const struct terms *terms,
		       const struct cm_ip *ip, uint64_t now_ns)
{
	const struct cm_resolve_attr attr = {
		.to = id->peer,
		.service_id = service_of(id),
		.ip = ip,
		.response_timeout = RESPONSE_TIMEOUT,
		.max_cm_retries = CM_RETRIES,
		.private_data = terms->private_data,
		.private_len = terms->private_len,
		.user = id,
	};

	return cm_calls()->cm_resolve(cm, &attr, now_ns, &id->conn);
}

/* Send the request, unless the device was lost since the id's state was changed. */
static int ask(struct cm_id *id, struct cm *cm, const struct terms *terms, const struct cm_ip *ip,
	       uint64_t now_ns)
{
	if (id_state(id) != ID_CONNECTING)
		return explain_state(id, "CONNECTING");
	if (id_is_datagram(id))
		return ask_service(id, cm, terms, ip, now_ns);
	return ask_connection(id, cm, terms, ip, now_ns);
}

static int start(struct cm_id *id, const struct terms *terms)
{
	const struct cm_private *calls = cm_calls();
	const bool has_ip = id->public.route.addr.dst_addr.sa_family != AF_IB;
	const struct cm_ip header = ip_of(id), *ip = has_ip ? &header : NULL;
	uint64_t now_ns;
	struct cm *cm;
	int rc;

	if (!id_move(id, ID_ROUTE_RESOLVED, ID_CONNECTING))
		return explain_state(id, NEEDS_ROUTE);
	cm = calls->agent_enter(id->device->agent, &now_ns);
	rc = ask(id, cm, terms, ip, now_ns);
	calls->agent_leave(id->device->agent);
	if (rc != 0)
		id_move(id, ID_CONNECTING, ID_ROUTE_RESOLVED);
	return rc;
}

static int connect_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct terms terms;
	int rc;

	if (id_state(id) != ID_ROUTE_RESOLVED)
		return explain_state(id, NEEDS_ROUTE);
	rc = make_terms(id, param, &terms);
	if (rc == 0)
		rc = start(id, &terms);
	return rc == 0 ? event_complete(id) : rc;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	ID_CALL();
	const int rc = id_check(id);

	return id_result(rc == 0 ? connect_id(cm_id_of(id), conn_param) : rc);
}

static int answer_connection(struct cm_id *id, const struct terms *terms, uint64_t now_ns)
{
	const struct cm_accept_attr attr = {
		.qpn = terms->qpn,
		.srq = terms->srq,
		.flow_control = terms->flow_control,
		.responder_resources = terms->responder_resources,
		.initiator_depth = terms->initiator_depth,
		.rnr_retry_count = terms->rnr_retry_count,
		.ece = id->local_ece,
		.private_data = terms->private_data,
		.private_len = terms->private_len,
		.user = id,
	};

	return cm_calls()->cm_accept(id->conn, &attr, now_ns);
}

static int answer_service(struct cm_id *id, const struct terms *terms, uint64_t now_ns)
{
	const struct cm_reply_attr attr = {
		.status = CM_SIDR_VALID,
		.qpn = terms->qpn,
		.qkey = id->qkey,
		.private_data = terms->private_data,
		.private_len = terms->private_len,
	};

	return cm_calls()->cm_reply(id->conn, &attr, now_ns);
}

static int answer(struct cm_id *id, const struct terms *terms)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;
	int rc;

	calls->agent_enter(id->device->agent, &now_ns);
	if (!id->conn)
		rc = explain_argument(NO_CONN);
	else if (id_is_datagram(id))
		rc = answer_service(id, terms, now_ns);
	else
		rc = answer_connection(id, terms, now_ns);
	calls->agent_leave(id->device->agent);
	return rc;
}

/* Make the queue pair ready to receive requests before the peer learns that it may send some. */
static int make_ready(struct cm_id *id, const struct terms *terms)
{
	int cancel_state, rc;

	if (!terms->has_qp || id_is_datagram(id))
		return 0;
	/* Another thread may have destroyed it meanwhile. */
	if (qp_lock(id, &cancel_state))
		rc = qp_to_rtr_locked(id, terms->responder_resources);
	else
		rc = explain_argument("the queue pair was destroyed meanwhile");
	if (rc == 0)
		rc = qp_to_rts_locked(id, terms->initiator_depth);
	qp_unlock(id, cancel_state);
	return rc;
}

/* Make the queue pair ready, then answer. Check the length first, so that a call with too much
 * private data leaves the queue pair as it was. */
static int answer_ready(struct cm_id *id, const struct terms *terms)
{
	const uint8_t room = id_is_datagram(id) ? CM_SIDR_REP_PRIVATE : CM_REP_PRIVATE;
	int rc;

	if (terms->private_len > room)
		return ID_REASON(-EINVAL, CM_SAY_PRIVATE_LONG, terms->private_len, room,
				 id_is_datagram(id) ? "SIDR_REP" : "REP", "");
	rc = make_ready(id, terms);
	if (rc != 0)
		return rc;
	rc = answer(id, terms);
	if (rc != 0 && !id_is_datagram(id))
		qp_to_error(id);
	return rc;
}

static int accept_id(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct terms terms;
	int rc;

	if (!id_move(id, ID_REQUESTED, ID_CONNECTING))
		return explain_state(id, "REQUESTED: the id of an RDMA_CM_EVENT_CONNECT_REQUEST, "
					 "which was not answered yet");
	rc = make_terms(id, param, &terms);
	if (rc == 0 && id_is_datagram(id) && !terms.has_qp && !param)
		rc = explain_argument(NO_QP);
	/* Neither side may use more than the other side has. */
	if (rc == 0 && !id_is_datagram(id)) {
		terms.responder_resources =
			RTE_MIN(terms.responder_resources, id->responder_resources);
		terms.initiator_depth = RTE_MIN(terms.initiator_depth, id->initiator_depth);
	}
	if (rc == 0)
		rc = answer_ready(id, &terms);
	if (rc != 0) {
		id_move(id, ID_CONNECTING, ID_REQUESTED);
		return rc;
	}
	return id_is_datagram(id) ? 0 : event_complete(id);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	ID_CALL();
	const int rc = id_check(id);

	return id_result(rc == 0 ? accept_id(cm_id_of(id), conn_param) : rc);
}

static int reject_locked(struct cm_id *id, uint16_t reason, const void *private_data,
			 uint8_t private_len, uint64_t now_ns)
{
	const struct cm_reply_attr reply = {
		.status = CM_SIDR_REJECTED,
		.private_data = private_data,
		.private_len = private_len,
	};

	if (!id->conn)
		return explain_argument(NO_CONN);
	if (id_is_datagram(id))
		return cm_calls()->cm_reply(id->conn, &reply, now_ns);
	return cm_calls()->cm_reject(id->conn, reason, private_data, private_len, now_ns);
}

static int reject(struct cm_id *id, uint16_t reason, const void *private_data, uint8_t private_len)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;
	int rc;

	if (!id->device)
		return explain_argument(NO_CONN);
	calls->agent_enter(id->device->agent, &now_ns);
	rc = reject_locked(id, reason, private_data, private_data ? private_len : 0, now_ns);
	calls->agent_leave(id->device->agent);
	if (rc == 0)
		id_move(id, ID_REQUESTED, ID_CONNECTING);
	return rc;
}

static int reject_id(struct rdma_cm_id *id, uint16_t reason, const void *private_data,
		     uint8_t private_len)
{
	const int rc = id_check(id);

	return id_result(rc == 0 ? reject(cm_id_of(id), reason, private_data, private_len) : rc);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	ID_CALL();
	return reject_id(id, CM_REJ_CONSUMER_DEFINED, private_data, private_data_len);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	ID_CALL();
	return reject_id(id, CM_REJ_VENDOR_OPTION_NOT_SUPPORTED, private_data, private_data_len);
}

int connect_establish(struct cm_id *id)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;
	int rc;

	calls->agent_enter(id->device->agent, &now_ns);
	rc = id->conn ? calls->cm_establish(id->conn, NULL, 0, now_ns) : explain_argument(NO_CONN);
	calls->agent_leave(id->device->agent);
	return rc;
}

void connect_refuse(struct cm_id *id)
{
	(void)reject(id, CM_REJ_CONSUMER_DEFINED, NULL, 0);
}

/* Send the RTU for a program that has made its own queue pair ready. */
int rdma_establish(struct rdma_cm_id *id)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0)
		return id_result(rc);
	if (qp_exists(cm_id_of(id)))
		return id_result(explain_argument("the id has a queue pair: then rdma_get_cm_event "
						  "establishes the connection itself"));
	if (!cm_id_of(id)->device)
		return id_result(explain_argument(NO_CONN));
	return id_result(connect_establish(cm_id_of(id)));
}

static int notify(struct cm_id *id, enum ibv_event_type event)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;
	int rc;

	if (event != IBV_EVENT_COMM_EST)
		return explain_argument("the event is not IBV_EVENT_COMM_EST");
	if (!id->device)
		return explain_argument(NO_CONN);
	calls->agent_enter(id->device->agent, &now_ns);
	if (!id->conn)
		rc = explain_argument(NO_CONN);
	else if (calls->cm_conn_state(id->conn) == CM_STATE_ESTABLISHED)
		rc = ID_REASON(-EISCONN, "the connection is established already");
	else
		rc = calls->cm_data_arrived(id->conn, now_ns);
	calls->agent_leave(id->device->agent);
	return rc;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	ID_CALL();
	const int rc = id_check(id);

	return id_result(rc == 0 ? notify(cm_id_of(id), event) : rc);
}

/* Disconnect. A connection that is already over is no error, because either side may be first. */
static int disconnect(struct cm_id *id)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;
	bool connected;
	int rc;

	if (!id->device)
		return explain_argument(NO_CONN);
	calls->agent_enter(id->device->agent, &now_ns);
	connected = id->conn != NULL;
	id->disconnects = connected;
	calls->agent_leave(id->device->agent);
	if (!connected)
		return explain_argument(NO_CONN);
	if (!id_is_datagram(id))
		qp_to_error(id);
	calls->agent_enter(id->device->agent, &now_ns);
	rc = id->conn ? calls->cm_disconnect(id->conn, NULL, 0, now_ns) : -EINVAL;
	calls->agent_leave(id->device->agent);
	if (id_is_datagram(id))
		return 0;
	return rc == 0 ? event_complete(id) : 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	ID_CALL();
	const int rc = id_check(id);

	return id_result(rc == 0 ? disconnect(cm_id_of(id)) : rc);
}
