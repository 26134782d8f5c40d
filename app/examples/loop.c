/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs of one device, connected to each other. */
#include "loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

void loop_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

struct ibv_context *loop_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	if (!list || !list[0]) {
		fprintf(stderr, "there is no RDMA device; try uroce-run --port net_null0 "
				"--ip 10.0.0.1/24 -- PROGRAM\n");
		exit(1);
	}
	context = ibv_open_device(list[0]);
	if (!context)
		loop_fail("ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

/* Return the first GID for RoCEv2. */
static struct ibv_gid_entry first_gid(struct ibv_context *context)
{
	struct ibv_gid_entry gid;

	for (uint32_t i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(context, 1, i, &gid, 0) == 0 &&
		    gid.gid_type == IBV_GID_TYPE_ROCE_V2)
			return gid;
	}
	errno = ENOENT;
	loop_fail("ibv_query_gid_ex");
}

static void connect_to(struct ibv_qp *qp, uint32_t dest_qpn)
{
	const struct ibv_gid_entry gid = first_gid(qp->context);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = REMOTE_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = gid.gid,
				    .sgid_index = (uint8_t)gid.gid_index,
				    .hop_limit = 1}},
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) !=
	    0)
		loop_fail("ibv_modify_qp to INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER) != 0)
		loop_fail("ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		loop_fail("ibv_modify_qp to RTS");
}

void loop_connect(struct loop *loop, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	loop->pd = pd;
	if (!loop->cq)
		loop->cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
	if (!loop->cq)
		loop_fail("ibv_create_cq");
	init.send_cq = loop->cq;
	init.recv_cq = loop->cq;
	loop->a = ibv_create_qp(pd, &init);
	loop->b = ibv_create_qp(pd, &init);
	if (!loop->a || !loop->b)
		loop_fail("ibv_create_qp");
	connect_to(loop->a, loop->b->qp_num);
	connect_to(loop->b, loop->a->qp_num);
}

void loop_disconnect(struct loop *loop)
{
	if (ibv_destroy_qp(loop->a) != 0 || ibv_destroy_qp(loop->b) != 0 ||
	    ibv_destroy_cq(loop->cq) != 0)
		loop_fail("destroying the queue pairs");
}

void loop_recv(struct ibv_qp *qp, struct ibv_sge *list, int count)
{
	struct ibv_recv_wr wr = {.sg_list = list, .num_sge = count}, *bad;

	errno = ibv_post_recv(qp, &wr, &bad);
	if (errno != 0)
		loop_fail("ibv_post_recv");
}

void loop_send(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge *list, int count,
	       const void *remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.sg_list = list,
		.num_sge = count,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)remote_addr, .rkey = rkey},
	};
	struct ibv_send_wr *bad;

	errno = ibv_post_send(qp, &wr, &bad);
	if (errno != 0)
		loop_fail("ibv_post_send");
}

void loop_wait(const struct loop *loop, int count)
{
	struct ibv_wc wc;

	while (count > 0) {
		const int n = ibv_poll_cq(loop->cq, 1, &wc);

		if (n < 0)
			loop_fail("ibv_poll_cq");
		if (n == 1 && wc.status != IBV_WC_SUCCESS) {
			fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
			exit(1);
		}
		count -= n;
	}
}
