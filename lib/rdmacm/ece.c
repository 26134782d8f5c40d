/* SPDX-License-Identifier: BSD-3-Clause */
/* Enhanced connection establishment: options of a vendor's queue pairs, which travel in REQ and
 * REP. Our own queue pairs have none: programs that bring theirs set and read them. */
#include "id.h"

/* Set options. An id with a queue pair takes them from the queue pair, and ours have none. */
int rdma_set_local_ece(struct rdma_cm_id *public, struct ibv_ece *ece)
{
	struct cm_id *id = cm_id_of(public);
	const int rc = id_check(public);

	if (rc != 0)
		return id_result(rc);
	if (qp_exists(id) || !ece || ece->vendor_id == 0 || ece->comp_mask != 0)
		return id_result(-EINVAL);
	id->local_ece = (struct cm_ece){.vendor_id = ece->vendor_id, .options = ece->options};
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *public, struct ibv_ece *ece)
{
	struct cm_id *id = cm_id_of(public);
	const int rc = id_check(public);

	if (rc != 0)
		return id_result(rc);
	if (qp_exists(id) || !ece)
		return id_result(-EINVAL);
	pthread_mutex_lock(&id->lock);
	*ece = (struct ibv_ece){
		.vendor_id = id->remote_ece.vendor_id,
		.options = id->remote_ece.options,
	};
	pthread_mutex_unlock(&id->lock);
	return 0;
}
