/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting of work requests: put them into the queue, and kick the engine. */
#include "qp/qp.h"
#include "queue/srq.h"

#include "verbs_internal.h"

static void kick(struct face_qp *qp)
{
	device_engine_kick(qp->home, qp->qp);
}

int post_send_op(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct face_qp *qp = face_qp(ibv);
	int rc = qp_post_send(qp->qp, wr, bad);

	/* Requests before a bad one are posted. */
	if (likely(rc == 0) || *bad != wr)
		kick(qp);
	return face_errno(-rc);
}

int post_recv_op(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct face_qp *qp = face_qp(ibv);
	int rc = qp_post_recv(qp->qp, wr, bad);

	/* Post the request before reading the state: the thread that sets the state looks for
	 * requests after it. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* A queue pair in error must flush the request now; in other states a packet will use
	 * it. */
	if (unlikely(qp_state(qp->qp) == IBV_QPS_ERR) && (rc == 0 || *bad != wr))
		kick(qp);
	return face_errno(-rc);
}

/* Post to a shared queue. The next queue pair that receives takes the request, so nobody is
 * kicked. */
int post_srq_recv_op(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return face_errno(-rq_post(&face_srq(ibv)->srq->rq, wr, bad));
}
