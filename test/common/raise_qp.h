/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates a queue pair and brings it up, for programs with any library. */
#ifndef TEST_COMMON_RAISE_QP_H
#define TEST_COMMON_RAISE_QP_H

#include <stdint.h>

#include <infiniband/verbs.h>

/**
 * Return the attributes, with IBV_QP_STATE, that ibv_modify_qp(3) requires for the step to INIT,
 * RTR or RTS.
 */
static inline int raise_mask(enum ibv_qp_type type, enum ibv_qp_state state)
{
	const int responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int requester = IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	int init = IBV_QP_ACCESS_FLAGS;
	int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts = IBV_QP_SQ_PSN;

	switch (type) {
	case IBV_QPT_UD:
		init = IBV_QP_QKEY;
		rtr = 0;
		break;
	case IBV_QPT_UC:
		break;
	case IBV_QPT_XRC_SEND:
		rts |= IBV_QP_TIMEOUT | requester;
		break;
	case IBV_QPT_XRC_RECV:
		rtr |= responder;
		rts |= IBV_QP_TIMEOUT;
		break;
	default:
		rtr |= responder;
		rts |= IBV_QP_TIMEOUT | requester;
	}
	if (state == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | init;
	return IBV_QP_STATE | (state == IBV_QPS_RTR ? rtr : rts);
}

/**
 * Return the attributes of a connection to a queue pair at an address, by which raise_qp brings it
 * up. Peers may not access memory: set qp_access_flags for that.
 */
static inline struct ibv_qp_attr raise_attr(const union ibv_gid *gid, uint32_t dest_qpn,
					    uint32_t psn)
{
	return (struct ibv_qp_attr){
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = psn,
		.sq_psn = psn,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}},
	};
}

/**
 * Create a queue pair that may have `depth` requests in each of its queues, of one element each,
 * and completes all of them. `srq` may be NULL. Return NULL if that fails.
 */
static inline struct ibv_qp *raise_create(struct ibv_pd *pd, enum ibv_qp_type type,
					  struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
					  struct ibv_srq *srq, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.srq = srq,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = srq ? 0 : depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = type,
		.sq_sig_all = 1,
	};

	return ibv_create_qp(pd, &init);
}

/**
 * Move from RESET to `to`, which is INIT, RTR or RTS. All attributes except the state are set in
 * *attr. Return 0, or the error of the first step that fails.
 */
static inline int raise_qp_to(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state to)
{
	int rc = 0;

	for (int state = IBV_QPS_INIT; rc == 0 && state <= (int)to; state++) {
		attr->qp_state = (enum ibv_qp_state)state;
		rc = ibv_modify_qp(qp, attr, raise_mask(qp->qp_type, attr->qp_state));
	}
	return rc;
}

/** Move from RESET to RTS. */
static inline int raise_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	return raise_qp_to(qp, attr, IBV_QPS_RTS);
}

#endif
