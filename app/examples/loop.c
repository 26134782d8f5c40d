/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs of one device, connected to each other. */
#include "loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

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

void loop_connect(struct loop *loop, struct ibv_pd *pd)
{
	const struct ibv_gid_entry gid = first_gid(pd->context);
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
	rc_init(loop->a, REMOTE_ACCESS);
	rc_init(loop->b, REMOTE_ACCESS);
	rc_connect(loop->a, loop->b->qp_num, &gid.gid, (uint8_t)gid.gid_index);
	rc_connect(loop->b, loop->a->qp_num, &gid.gid, (uint8_t)gid.gid_index);
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
