/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair of an id, its state changes with the values that both sides agreed on, and the
 * shared receive queue of an id. */
#include "id.h"

#include <string.h>

#define NO_ATTR	    "the attributes are NULL"
#define DEVICE_LOST "the id's device is lost: destroy the id"
#define NO_PEER	    "the peer's queue pair is not known: the peer has not answered, or has rejected"

static void fill_path(const struct cm_id *id, const struct cm_agreed *agreed,
		      struct ibv_ah_attr *ah)
{
	*ah = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = (uint8_t)id->sgid_index,
			.hop_limit = agreed->hop_limit > 1 ? agreed->hop_limit : id->path.hop_limit,
			.traffic_class = agreed->tclass,
			.flow_label = agreed->flow_label},
	};
	memcpy(ah->grh.dgid.raw, agreed->address.remote, GID_LEN);
}

static int fill_init(const struct cm_id *id, const struct cm_agreed *agreed,
		     struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->pkey_index = 0;
	attr->port_num = 1;
	if (id->public.qp_type == IBV_QPT_UD) {
		attr->qkey = id->qkey;
		*mask |= IBV_QP_QKEY;
		return 0;
	}
	*mask |= IBV_QP_ACCESS_FLAGS;
	attr->qp_access_flags = 0;
	if (agreed)
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (agreed && agreed->max_dest_rd_atomic > 0)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return 0;
}

static int fill_rtr(const struct cm_id *id, const struct cm_agreed *agreed,
		    struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE;
	if (id->public.qp_type == IBV_QPT_UD)
		return 0;
	if (!agreed)
		return explain_argument(NO_PEER);
	*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	fill_path(id, agreed, &attr->ah_attr);
	attr->path_mtu = (enum ibv_mtu)agreed->mtu;
	attr->dest_qp_num = agreed->remote_qpn;
	attr->rq_psn = agreed->rq_psn.v;
	if (id->public.qp_type == IBV_QPT_RC || id->public.qp_type == IBV_QPT_XRC_RECV) {
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = agreed->max_dest_rd_atomic;
		attr->min_rnr_timer = 0;
	}
	return 0;
}

/* Return the ACK timeout that the program has set, or else the one that both sides agreed on. */
static uint8_t ack_timeout(const struct cm_id *id, const struct cm_agreed *agreed)
{
	return id->ack_timeout > 0 ? id->ack_timeout : agreed->ack_timeout;
}

static int fill_rts(const struct cm_id *id, const struct cm_agreed *agreed,
		    struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = 0;
	if (id->public.qp_type == IBV_QPT_UD)
		return 0;
	if (!agreed)
		return explain_argument(NO_PEER);
	attr->sq_psn = agreed->sq_psn.v;
	if (id->public.qp_type == IBV_QPT_RC || id->public.qp_type == IBV_QPT_XRC_SEND) {
		*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_MAX_QP_RD_ATOMIC;
		attr->timeout = ack_timeout(id, agreed);
		attr->retry_cnt = agreed->retry_count;
		attr->rnr_retry = agreed->rnr_retry_count;
		attr->max_rd_atomic = agreed->max_rd_atomic;
	} else if (id->public.qp_type == IBV_QPT_XRC_RECV) {
		*mask |= IBV_QP_TIMEOUT;
		attr->timeout = ack_timeout(id, agreed);
	}
	return 0;
}

/* Return true if the peer's queue pair is known, and the connection is not over. */
static bool knows_peer(enum cm_state state)
{
	switch (state) {
	case CM_STATE_REP_RCVD:
	case CM_STATE_MRA_REP_SENT:
	case CM_STATE_REQ_RCVD:
	case CM_STATE_MRA_REQ_SENT:
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
	case CM_STATE_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

/* The agreed values of an id's connection. */
struct terms {
	bool asked; /* there is a connection */
	bool known; /* and its peer has answered */
	struct cm_agreed agreed;
};

static void find_terms(struct cm_id *id, struct terms *terms)
{
	const struct cm_private *calls = cm_calls();
	uint64_t now_ns;

	calls->agent_enter(id->device->agent, &now_ns);
	terms->asked = id->conn != NULL;
	terms->known = id->conn && knows_peer(calls->cm_conn_state(id->conn));
	if (terms->asked)
		calls->cm_conn_agreed(id->conn, &terms->agreed);
	calls->agent_leave(id->device->agent);
}

static int fill(struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct terms terms;

	if (!id->device)
		return explain_argument("the id is bound to no device");
	find_terms(id, &terms);
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		return fill_init(id, terms.asked ? &terms.agreed : NULL, attr, mask);
	case IBV_QPS_RTR:
		return fill_rtr(id, terms.known ? &terms.agreed : NULL, attr, mask);
	case IBV_QPS_RTS:
		return fill_rts(id, terms.known ? &terms.agreed : NULL, attr, mask);
	default:
		return explain_argument("qp_state must be INIT, RTR or RTS");
	}
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0 || !qp_attr || !qp_attr_mask)
		return id_result(rc != 0 ? rc : explain_argument("qp_attr or its mask is NULL"));
	return id_result(fill(cm_id_of(id), qp_attr, qp_attr_mask));
}

struct ibv_qp *qp_lock(struct cm_id *id, int *cancel_state)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
	pthread_mutex_lock(&id->qp_lock);
	return id->public.qp;
}

void qp_unlock(struct cm_id *id, int cancel_state)
{
	pthread_mutex_unlock(&id->qp_lock);
	pthread_setcancelstate(cancel_state, NULL);
}

bool qp_exists(struct cm_id *id)
{
	int cancel_state;
	const bool exists = qp_lock(id, &cancel_state) != NULL;

	qp_unlock(id, cancel_state);
	return exists;
}

static int modify_locked(struct cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;
	int rc = fill(id, &attr, &mask);

	return rc == 0 ? -ibv_modify_qp(id->public.qp, &attr, mask) : rc;
}

int qp_to_rtr_locked(struct cm_id *id, uint8_t responder_resources)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask;
	int rc;

	/* Set INIT once more: the peer's access rights are known only now. */
	rc = modify_locked(id, IBV_QPS_INIT);
	if (rc == 0)
		rc = fill(id, &attr, &mask);
	if (rc != 0)
		return rc;
	if (responder_resources != RDMA_MAX_RESP_RES)
		attr.max_dest_rd_atomic = responder_resources;
	return -ibv_modify_qp(id->public.qp, &attr, mask);
}

int qp_to_rts_locked(struct cm_id *id, uint8_t initiator_depth)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	int mask;
	const int rc = fill(id, &attr, &mask);

	if (rc != 0)
		return rc;
	if (initiator_depth != RDMA_MAX_INIT_DEPTH)
		attr.max_rd_atomic = initiator_depth;
	return -ibv_modify_qp(id->public.qp, &attr, mask);
}

void qp_to_error_locked(struct cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	(void)ibv_modify_qp(id->public.qp, &attr, IBV_QP_STATE);
}

void qp_to_error(struct cm_id *id)
{
	int cancel_state;

	if (qp_lock(id, &cancel_state))
		qp_to_error_locked(id);
	qp_unlock(id, cancel_state);
}

/* Prepare a new queue pair. For a connection it stays in INIT until there is a peer; for datagrams
 * it can send at once. */
static int prepare_locked(struct cm_id *id)
{
	int rc = modify_locked(id, IBV_QPS_INIT);

	if (id->public.qp_type != IBV_QPT_UD)
		return rc;
	if (rc == 0)
		rc = modify_locked(id, IBV_QPS_RTR);
	if (rc == 0)
		rc = modify_locked(id, IBV_QPS_RTS);
	return rc;
}

/* Destroy a completion queue and its channel. If a shared receive queue of XRC still uses the
 * completion queue, both stay until that queue is destroyed. */
static void end_queue(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if (*cq && ibv_destroy_cq(*cq) != 0)
		return;
	*cq = NULL;
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*channel = NULL;
}

/* Create the completion queues that an id lacks; 0 entries: none wanted. 0 or -errno. */
static void qp_destroy_cqs(struct cm_id *id)
{
	end_queue(&id->public.recv_cq, &id->public.recv_cq_channel);
	end_queue(&id->public.send_cq, &id->public.send_cq_channel);
}

static int create_queue(struct cm_id *id, uint32_t entries, struct ibv_cq **cq,
			struct ibv_comp_channel **channel)
{
	if (entries == 0)
		return 0;
	*channel = ibv_create_comp_channel(id->public.verbs);
	if (*channel)
		*cq = ibv_create_cq(id->public.verbs, (int)entries, &id->public, *channel, 0);
	return *cq ? 0 : -errno;
}

static int qp_create_cqs(struct cm_id *id, uint32_t send_entries, uint32_t recv_entries)
{
	int rc = create_queue(id, recv_entries, &id->public.recv_cq, &id->public.recv_cq_channel);

	if (rc == 0)
		rc = create_queue(id, send_entries, &id->public.send_cq,
				  &id->public.send_cq_channel);
	if (rc != 0)
		qp_destroy_cqs(id);
	return rc;
}

static struct ibv_pd *qp_choose_pd(struct cm_id *id, struct ibv_pd *pd)
{
	if (!pd)
		pd = id->public.pd;
	if (pd && pd->context == id->public.verbs)
		return pd;
	errno = EINVAL;
	(void)explain_argument(
		"the protection domain is not of the id's device (id->verbs): the id "
		"was bound or resolved to another one");
	return NULL;
}

/* Return the domain for an object of an id; our own if the program gives none. NULL: errno. */
static struct ibv_xrcd *qp_choose_xrcd(struct cm_id *id, struct ibv_xrcd *xrcd)
{
	if (xrcd)
		return xrcd;
	if (id->uses_default_xrcd)
		return id->device->xrcd;
	xrcd = device_get_xrcd(id->device);
	id->uses_default_xrcd = xrcd != NULL;
	return xrcd;
}

/* Set the attributes of an XRC receiver: it has a domain and no queues. */
static int fill_xrc_recv(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_xrcd *given = attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ? attr->xrcd : NULL;

	attr->xrcd = qp_choose_xrcd(id, given);
	attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return attr->xrcd ? 0 : -errno;
}

/* Create the completion queues that the program has not given. */
static int fill_queues(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *public = &id->public;
	const bool receives = attr->qp_type != IBV_QPT_XRC_SEND;
	int rc;

	if (!attr->srq && receives)
		attr->srq = public->srq;
	rc = qp_create_cqs(id, attr->send_cq || public->send_cq ? 0 : attr->cap.max_send_wr,
			   attr->recv_cq || public->recv_cq || !receives ? 0
									 : attr->cap.max_recv_wr);
	if (rc != 0)
		return rc;
	if (!attr->send_cq)
		attr->send_cq = public->send_cq ? public->send_cq : public->recv_cq;
	if (!attr->recv_cq && receives)
		attr->recv_cq = public->recv_cq ? public->recv_cq : public->send_cq;
	return 0;
}

static int make_qp_locked(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *public = &id->public;
	int rc;

	rc = attr->qp_type == IBV_QPT_XRC_RECV ? fill_xrc_recv(id, attr) : fill_queues(id, attr);
	if (rc != 0)
		return rc;
	public->qp_type = attr->qp_type;
	public->qp = ibv_create_qp_ex(public->verbs, attr);
	rc = public->qp ? prepare_locked(id) : -errno;
	if (rc == 0)
		return 0;
	if (public->qp)
		ibv_destroy_qp(public->qp);
	public->qp = NULL;
	qp_destroy_cqs(id);
	return rc;
}

static int create_qp_locked(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *public = &id->public;
	struct ibv_pd *pd;
	int rc;

	if (!public->verbs)
		return explain_state(id,
				     "a state with a device (rdma_bind_addr, rdma_resolve_addr)");
	if (public->qp)
		return explain_argument("the id has a queue pair already");
	if ((attr->qp_type == IBV_QPT_UD) != id_is_datagram(id))
		return explain_argument("qp_type must be IBV_QPT_UD for ids of RDMA_PS_UDP and "
					"RDMA_PS_IPOIB, and not for others");
	if (id_state(id) == ID_REMOVED)
		return ID_REASON(-ENODEV, DEVICE_LOST);
	pd = qp_choose_pd(id, attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL);
	if (!pd)
		return -errno;
	attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	attr->pd = pd;
	rc = make_qp_locked(id, attr);
	if (rc != 0)
		return rc;
	public->pd = pd;
	return 0;
}

static int create_qp(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int cancel_state, rc;

	qp_lock(id, &cancel_state);
	rc = create_qp_locked(id, attr);
	qp_unlock(id, cancel_state);
	return rc;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0 || !qp_init_attr)
		return id_result(rc != 0 ? rc : explain_argument(NO_ATTR));
	return id_result(create_qp(cm_id_of(id), qp_init_attr));
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	ID_CALL();
	struct ibv_qp_init_attr_ex attr = {0};
	int rc = id_check(id);

	if (rc != 0 || !qp_init_attr)
		return id_result(rc != 0 ? rc : explain_argument(NO_ATTR));
	/* The smaller struct is the beginning of the larger one. */
	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
	attr.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0;
	attr.pd = pd;
	rc = create_qp(cm_id_of(id), &attr);
	if (rc == 0)
		memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return id_result(rc);
}

/* Take the queue pair from the id, so that no other thread begins to use it. */
static struct ibv_qp *take_qp(struct cm_id *id)
{
	int cancel_state;
	struct ibv_qp *qp = qp_lock(id, &cancel_state);

	if (qp)
		multicast_detach_all_locked(id);
	id->public.qp = NULL;
	qp_unlock(id, cancel_state);
	return qp;
}

/* Destroy the queue pair without the lock: ibv_destroy_qp may wait for a thread that has an
 * asynchronous event of the queue pair, and is about to take an event of the id. */
void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp = id_check(id) == 0 ? take_qp(cm_id_of(id)) : NULL;

	if (!qp)
		return;
	ibv_destroy_qp(qp);
	qp_destroy_cqs(cm_id_of(id));
}

/* Complete the attributes of an XRC queue, which has a domain and its own completion queue. Use our
 * own objects for those that the program leaves NULL. */
static int fill_xrc(struct cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_xrcd *xrcd = attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD ? attr->xrcd : NULL;
	struct ibv_cq *cq = attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ ? attr->cq : NULL;
	int rc = 0;

	attr->xrcd = qp_choose_xrcd(id, xrcd);
	if (!attr->xrcd)
		return -errno;
	if (!cq && !id->public.recv_cq)
		rc = qp_create_cqs(id, 0, attr->attr.max_wr);
	attr->cq = cq ? cq : id->public.recv_cq;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return rc;
}

static int create_srq(struct cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	const bool xrc =
		(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type == IBV_SRQT_XRC;
	struct rdma_cm_id *public = &id->public;
	struct ibv_pd *pd;
	int rc;

	if (!public->verbs)
		return explain_state(id,
				     "a state with a device (rdma_bind_addr, rdma_resolve_addr)");
	if (public->srq)
		return explain_argument("the id has a shared receive queue already");
	if (id_state(id) == ID_REMOVED)
		return ID_REASON(-ENODEV, DEVICE_LOST);
	pd = qp_choose_pd(id, attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL);
	if (!pd)
		return -errno;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	attr->pd = pd;
	rc = xrc ? fill_xrc(id, attr) : 0;
	if (rc != 0)
		return rc;
	public->srq = ibv_create_srq_ex(public->verbs, attr);
	if (!public->srq) {
		rc = -errno;
		if (!qp_exists(id))
			qp_destroy_cqs(id);
		return rc;
	}
	public->pd = pd;
	return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	ID_CALL();
	const int rc = id_check(id);

	if (rc != 0 || !attr)
		return id_result(rc != 0 ? rc : explain_argument(NO_ATTR));
	return id_result(create_srq(cm_id_of(id), attr));
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	ID_CALL();
	struct ibv_srq_init_attr_ex ex = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
	};
	int rc = id_check(id);

	if (rc != 0 || !attr)
		return id_result(rc != 0 ? rc : explain_argument(NO_ATTR));
	if (id->qp_type == IBV_QPT_XRC_RECV)
		ex.srq_type = IBV_SRQT_XRC;
	ex.srq_context = attr->srq_context;
	ex.attr = attr->attr;
	if (pd) {
		ex.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		ex.pd = pd;
	}
	rc = create_srq(cm_id_of(id), &ex);
	if (rc == 0)
		attr->attr = ex.attr;
	return id_result(rc);
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id_check(id) != 0 || !id->srq || ibv_destroy_srq(id->srq) != 0)
		return;
	id->srq = NULL;
	if (!qp_exists(cm_id_of(id)))
		qp_destroy_cqs(cm_id_of(id));
}
