/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching of queue pairs to multicast groups. */
#include "device/mcast.h"

#include "verbs_internal.h"

/* Attach a queue pair to a group. The LID has a meaning on InfiniBand only; on Ethernet the group's
 * link address follows from the GID. */
int ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid __rte_unused)
{
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	int rc;

	if (ibv->qp_type != IBV_QPT_UD)
		return face_errno(-EINVAL);
	rc = context_lock(context);
	if (rc != 0)
		return face_errno(rc);
	rc = mcast_attach(qp->device, gid, qp->qp, qp->blocks_own_mcast);
	if (rc > 0)
		qp->groups++;
	context_unlock(context);
	return face_errno(RTE_MIN(rc, 0));
}

int ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid __rte_unused)
{
	struct face_context *context = face_context(ibv->context);
	struct face_qp *qp = face_qp(ibv);
	int rc = context_lock(context);

	if (rc != 0)
		return face_errno(rc);
	rc = mcast_detach(qp->device, gid, qp->qp);
	if (rc == 0)
		qp->groups--;
	context_unlock(context);
	return face_errno(rc);
}
