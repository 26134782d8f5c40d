/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps that bring a reliable queue pair up: INIT, RTR, RTS. */
#include "rc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READS	  4  /* READs and atomics at the same time, each way */
#define HOP_LIMIT 64 /* as Linux sets it */

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, const char *state)
{
	const int error = ibv_modify_qp(qp, attr, mask);

	if (error == 0)
		return;
	fprintf(stderr, "ibv_modify_qp to %s: %s\n", state, strerror(error));
	exit(1);
}

void rc_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned int)access};

	modify(qp, &attr, RC_INIT_MASK, "INIT");
}

void rc_connect(struct ibv_qp *qp, uint32_t peer_qpn, const union ibv_gid *peer_gid,
		uint8_t sgid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.max_dest_rd_atomic = READS,
		.max_rd_atomic = READS,
		.min_rnr_timer = 1,
		.timeout = 17, /* 4.096 us * 2^17: 0.5 s; a peer may wait that long for a CPU */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *peer_gid,
				    .sgid_index = sgid_index,
				    .hop_limit = HOP_LIMIT}},
	};

	modify(qp, &attr, RC_RTR_MASK, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	modify(qp, &attr, RC_RTS_MASK, "RTS");
}
