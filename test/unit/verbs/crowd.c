/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of one device that many threads use at once. */
#include "crowd.h"

#include <fcntl.h>
#include <unistd.h>

#include "live.h"
#include "raise_qp.h"
#include "test.h"

struct crowd crowd;

static bool connect_shared(void)
{
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = CROWD_QKEY};
	struct ibv_qp_ex *ex;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = crowd.cq,
		.recv_cq = crowd.cq,
		.cap = {.max_send_wr = CROWD_WR,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 8},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = crowd.pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	crowd.a = ibv_create_qp_ex(crowd.context, &init);
	/* The engine of B is that of its send queue. */
	init.send_cq = crowd.other_cq;
	init.srq = crowd.srq;
	crowd.b = ibv_create_qp_ex(crowd.context, &init);
	init.send_cq = crowd.cq;
	init.qp_type = IBV_QPT_UD;
	init.srq = NULL;
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	crowd.ud = ibv_create_qp_ex(crowd.context, &init);
	if (!crowd.a || !crowd.b || !crowd.ud)
		return false;
	ex = ibv_qp_to_qp_ex(crowd.a);
	if (!ex || !live_connect(crowd.a, crowd.b->qp_num, 0) ||
	    !live_connect(crowd.b, crowd.a->qp_num, 0))
		return false;
	return raise_qp(crowd.ud, &attr) == 0;
}

int crowd_open(TEST_STATE)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = CROWD_WR, .max_sge = 1}};
	struct ibv_cq_init_attr_ex cq_ex = {.cqe = CROWD_CQE};
	int vectors;

	crowd.context = live_open("1500");
	if (!crowd.context)
		return -1;
	/* If there are several engines, use all kinds of sharing between them. */
	vectors = crowd.context->num_comp_vectors;
	cq_ex.comp_vector = 1 % (uint32_t)vectors;
	crowd.channel = ibv_create_comp_channel(crowd.context);
	crowd.fd = open(".", O_RDONLY | O_CLOEXEC);
	if (!crowd.channel || crowd.fd < 0 || fcntl(crowd.channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    fcntl(crowd.context->async_fd, F_SETFL, O_NONBLOCK) != 0)
		return -1;
	cq_ex.channel = crowd.channel;
	crowd.pd = ibv_alloc_pd(crowd.context);
	crowd.cq = ibv_create_cq(crowd.context, CROWD_CQE, NULL, crowd.channel, 0);
	crowd.other_cq = ibv_create_cq(crowd.context, 1, NULL, NULL, vectors - 1);
	crowd.cq_ex = ibv_create_cq_ex(crowd.context, &cq_ex);
	crowd.srq = ibv_create_srq(crowd.pd, &srq);
	crowd.mr = ibv_reg_mr(crowd.pd, crowd.bytes, CROWD_BYTES, CROWD_ACCESS);
	return crowd.cq && crowd.other_cq && crowd.cq_ex && crowd.srq && crowd.mr &&
			       connect_shared()
		       ? 0
		       : -1;
}

int crowd_close(TEST_STATE)
{
	if (ibv_destroy_qp(crowd.a) != 0 || ibv_destroy_qp(crowd.b) != 0 ||
	    ibv_destroy_qp(crowd.ud) != 0)
		return -1;
	if (ibv_dereg_mr(crowd.mr) != 0 || ibv_destroy_srq(crowd.srq) != 0 ||
	    ibv_destroy_cq(crowd.cq) != 0 || ibv_destroy_cq(crowd.other_cq) != 0 ||
	    ibv_destroy_cq(ibv_cq_ex_to_cq(crowd.cq_ex)) != 0)
		return -1;
	if (ibv_dealloc_pd(crowd.pd) != 0 || ibv_destroy_comp_channel(crowd.channel) != 0)
		return -1;
	close(crowd.fd);
	return ibv_close_device(crowd.context);
}
