/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps that bring a reliable queue pair up. A call that fails ends the program with one line.
 */
#ifndef EXAMPLES_RC_H
#define EXAMPLES_RC_H

#include <stdint.h>

#include <infiniband/verbs.h>

/* Each state needs its own attributes; ibv_modify_qp(3) lists them. */
#define RC_INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RC_RTR_MASK                                                                     \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS_MASK                                                                            \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/** Move a new queue pair to INIT: receive requests can be posted now. `access` is what the peer may
 * do with our memory. */
void rc_init(struct ibv_qp *qp, int access);

/** Move it to RTR and RTS: connected to the queue pair `peer_qpn` at `peer_gid`, from the address
 * with this index. */
void rc_connect(struct ibv_qp *qp, uint32_t peer_qpn, const union ibv_gid *peer_gid,
		uint8_t sgid_index);

#endif
