/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that executes itself again and again while it has a device:
 *
 *   again TIMES
 *
 * Each time it gets a device, writes from one queue pair of its own to another one, and checks what
 * was written.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"
#include "raise_qp.h"

#define BYTES	3000
#define PSN	5
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define SECONDS 60 /* a process that takes longer for one time hangs */

static uint8_t from[BYTES], to[BYTES];

static void connect_to(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t qpn)
{
	struct ibv_qp_attr attr = raise_attr(gid, qpn, PSN);

	attr.qp_access_flags = ACCESS;
	MUST(raise_qp(qp, &attr) == 0);
}

static void write_and_check(struct ibv_context *context, uint8_t value)
{
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp *writer, *target;
	struct ibv_mr *from_mr, *to_mr;
	struct ibv_send_wr wr, *bad;
	union ibv_gid gid;
	struct ibv_sge sge;
	struct ibv_wc wc;
	int n;

	MUST(pd && cq && ibv_query_gid(context, 1, 0, &gid) == 0);
	from_mr = ibv_reg_mr(pd, from, BYTES, ACCESS);
	to_mr = ibv_reg_mr(pd, to, BYTES, ACCESS);
	writer = raise_create(pd, IBV_QPT_RC, cq, cq, NULL, 1);
	target = raise_create(pd, IBV_QPT_RC, cq, cq, NULL, 1);
	MUST(from_mr && to_mr && writer && target);
	connect_to(writer, &gid, target->qp_num);
	connect_to(target, &gid, writer->qp_num);
	memset(from, value, BYTES);
	sge = (struct ibv_sge){(uintptr_t)from, BYTES, from_mr->lkey};
	wr = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.rdma = {(uintptr_t)to, to_mr->rkey}};
	MUST(ibv_post_send(writer, &wr, &bad) == 0);
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS && memcmp(from, to, BYTES) == 0);
}

int main(int argc, char **argv)
{
	const unsigned long left = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	struct ibv_device **list;
	struct ibv_context *context;
	char less[32];

	if (argc != 2) {
		fputs("usage: again TIMES\n", stderr);
		return 2;
	}
	alarm(SECONDS);
	list = ibv_get_device_list(NULL);
	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context);
	write_and_check(context, (uint8_t)(left % 255 + 1));
	if (left == 0)
		return 0;
	snprintf(less, sizeof(less), "%lu", left - 1);
	execl("/proc/self/exe", argv[0], less, (char *)NULL);
	MUST(!"execl");
	return 1;
}
