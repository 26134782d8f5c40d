/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: not built, so none can be made, and no call can meet one of ours. */
#include "verbs_internal.h"

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd __rte_unused,
			       struct ibv_srq_init_attr *attr __rte_unused)
{
	return face_null(-EOPNOTSUPP);
}

int ibv_modify_srq(struct ibv_srq *srq __rte_unused, struct ibv_srq_attr *attr __rte_unused,
		   int mask __rte_unused)
{
	return EOPNOTSUPP;
}

int ibv_query_srq(struct ibv_srq *srq __rte_unused, struct ibv_srq_attr *attr __rte_unused)
{
	return EOPNOTSUPP;
}

int ibv_destroy_srq(struct ibv_srq *srq __rte_unused)
{
	return EOPNOTSUPP;
}
