/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of one device that many threads use at once. */
#ifndef TEST_VERBS_CROWD_H
#define TEST_VERBS_CROWD_H

#include <infiniband/verbs.h>

#define CROWD_BYTES 4096
#define CROWD_WR    256 /* requests of the shared queues */
#define CROWD_CQE   4096
#define CROWD_QKEY  0x11111111
#define CROWD_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

struct crowd {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_cq *other_cq; /* send queue of B, which sends nothing */
	struct ibv_cq_ex *cq_ex;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *a, *b; /* RC, connected with each other; B receives from the shared queue */
	struct ibv_qp *ud;
	uint8_t bytes[CROWD_BYTES];
	int fd;		     /* of the XRC domain */
	unsigned int posted; /* signaled requests of A, and the receive requests that they consume;
				atomic */
	unsigned int completed; /* atomic */
	unsigned int running;	/* threads that make work; atomic */
};

extern struct crowd crowd;

/* Set up and tear down the crowd, as cmocka's fixtures. */
int crowd_open(void **state);
int crowd_close(void **state);

#endif
