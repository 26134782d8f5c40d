/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of an idle queue pair: qp_memory [-d DEPTH] [QPS]. The program creates many RC queue
 * pairs, each connected to itself, with queues of DEPTH requests and one READ or atomic at a time.
 * It prints how many bytes the process has grown by for each. The number is so large that a partly
 * used huge page hardly counts. The program uses verbs only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "raise_qp.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;

static void require(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* Return the bytes in memory; a partly used page counts as a whole one. */
static unsigned long resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long all, resident = 0;

	require(file && fscanf(file, "%lu %lu", &all, &resident) == 2, "qp_memory: statm");
	fclose(file);
	return resident * (unsigned long)sysconf(_SC_PAGESIZE);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	require(list && list[0], "qp_memory: no RDMA device");
	context = ibv_open_device(list[0]);
	require(context != NULL, "qp_memory: ibv_open_device");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	require(pd && cq && ibv_query_gid(context, 1, 0, &gid) == 0, "qp_memory: a domain");
}

static void make_qp(unsigned int depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	require(qp != NULL, "qp_memory: ibv_create_qp");
	attr.dest_qp_num = qp->qp_num;
	require(raise_qp(qp, &attr) == 0, "qp_memory: ibv_modify_qp");
}

int main(int argc, char **argv)
{
	unsigned long qps = 60000, depth = 1;
	unsigned long before;
	int option;

	while ((option = getopt(argc, argv, "d:")) != -1) {
		if (option != 'd')
			return 2;
		depth = strtoul(optarg, NULL, 10);
	}
	if (optind < argc)
		qps = strtoul(argv[optind], NULL, 10);
	if (qps == 0 || depth == 0)
		return 2;
	open_device();
	/*
	 * Create one queue pair first: what the first one allocates is not part of the cost of
	 * each.
	 */
	make_qp((unsigned int)depth);
	before = resident_bytes();
	for (unsigned long i = 0; i < qps; i++)
		make_qp((unsigned int)depth);
	printf("%lu\n", (resident_bytes() - before) / qps);
	return 0;
}
