/* SPDX-License-Identifier: BSD-3-Clause */
/* Enhanced connection establishment: options of vendors. Our queue pairs have none. */
#include "id.h"

/* Set options: an id that has a queue pair passes them to it. */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || ece->vendor_id == 0 || ece->comp_mask != 0)
		return id_result(-EINVAL);
	return id_result(-EOPNOTSUPP);
}

/* Return the peer's options: none, because we do not read them from its messages. */
int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return id_result(-EINVAL);
	*ece = (struct ibv_ece){0};
	return 0;
}
