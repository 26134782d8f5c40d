/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing an RC queue pair to work through the verbs API: for programs with any library behind it.
 */
#ifndef TEST_COMMON_RAISE_RC_H
#define TEST_COMMON_RAISE_RC_H

#include <infiniband/verbs.h>

/* What ibv_modify_qp(3) asks for at each. */
static const struct {
	enum ibv_qp_state state;
	int mask;
} rc_steps[] = {
	{IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC},
};
#define RC_STEPS (sizeof(rc_steps) / sizeof(rc_steps[0]))

/**
 * From RESET by INIT and RTR to RTS. All attributes, but for the state, are set in *attr. 0, or the
 * error of the first step that fails.
 */
static inline int raise_rc(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	int rc = 0;

	for (unsigned int i = 0; rc == 0 && i < RC_STEPS; i++) {
		attr->qp_state = rc_steps[i].state;
		rc = ibv_modify_qp(qp, attr, rc_steps[i].mask);
	}
	return rc;
}

#endif
