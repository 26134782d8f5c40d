/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread domains, parent domains, and queues that are made with them. */
#include "domains.h"

struct ibv_td *domains_td(struct ibv_context *context)
{
	struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){.comp_mask = 0});

	assert_non_null(td);
	assert_ptr_equal(td->context, context);
	return td;
}

struct ibv_pd *domains_parent(struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(pd->context, &attr);

	assert_non_null(parent);
	return parent;
}

struct ibv_cq *domains_cq(struct ibv_pd *parent, uint32_t flags, uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD | IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
		.parent_domain = parent,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(parent->context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

struct ibv_qp *domains_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(pd, &init);
}

struct ibv_srq *domains_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};

	return ibv_create_srq(pd, &init);
}
