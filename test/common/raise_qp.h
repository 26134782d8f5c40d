/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings a queue pair of any type up, for programs with any library. */
#ifndef TEST_COMMON_RAISE_QP_H
#define TEST_COMMON_RAISE_QP_H

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
