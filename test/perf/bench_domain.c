/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gain of a thread domain: nanoseconds of the program's thread for posting a send request and
 * polling its completion, with and without the locks of queue pair and completion queue. The engine
 * completes requests at once and sends nothing, so only the queues and the calls are measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/registry.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/sq.h"
#include "raise_qp.h"
#include "verbs_internal.h"

#define RUNS	  31
#define RUN_POSTS 200000u

static struct device *device;
static struct cq *completes; /* the queue that the engine completes to */

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "bench_domain: %s failed\n", what);
	exit(1);
}

static void engine_nothing(void *engine)
{
	(void)engine;
}

static void engine_polled(void *engine, int n)
{
	(void)engine;
	(void)n;
}

static void engine_ignore(void *engine, struct qp *qp)
{
	(void)engine;
	(void)qp;
}

static void engine_complete(void *engine, struct qp *qp)
{
	struct sq *sq = qp_sq(qp);
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND};

	(void)engine;
	while (sq->cons != sq_prod(sq)) {
		wc.wr_id = sq_at(sq, sq->cons)->wr_id;
		cq_push(completes, &wc, false);
		sq_pop(sq);
	}
}

static int engine_resolve(void *engine, uint8_t sgid_index, const union ibv_gid *dgid,
			  uint8_t mac[6])
{
	(void)engine;
	(void)sgid_index;
	(void)dgid;
	memset(mac, 2, 6);
	return 0;
}

static int start(struct device **devices, size_t max)
{
	static const struct engine_ops ops = {
		.lock = engine_nothing,
		.unlock = engine_nothing,
		.attach = engine_ignore,
		.detach = engine_ignore,
		.kick = engine_complete,
		.poll = engine_nothing,
		.polled = engine_polled,
		.wait = engine_nothing,
	};
	static const struct device_net_ops net = {.resolve = engine_resolve};
	const struct device_config config = {
		.name = "bench0", .mac = {2}, .port_mtu_bytes = 1500, .unique = "bench"};
	const union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, 1}};

	(void)max;
	require(device_create(&config, &device) == 0, "device_create");
	require(device_add_gid(device, &gid, -1, 0) == 0, "device_add_gid");
	device_first(device)->ops = &ops;
	device->net = &net;
	devices[0] = device;
	return 1;
}

static void connect_to_itself(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.dgid = device->gids[0].gid},
	};

	require(raise_qp(qp, &attr) == 0, "ibv_modify_qp");
}

struct queues {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
};

static struct queues make_queues(struct ibv_pd *pd, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr parent = {.pd = pd, .td = td};
	struct ibv_cq_init_attr_ex cq = {.cqe = 64, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
	struct ibv_qp_init_attr_ex qp = {
		.cap = {.max_send_wr = 64, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct queues queues;

	cq.parent_domain = qp.pd = ibv_alloc_parent_domain(pd->context, &parent);
	require(qp.pd != NULL, "ibv_alloc_parent_domain");
	queues.cq = ibv_create_cq_ex(pd->context, &cq);
	require(queues.cq != NULL, "ibv_create_cq_ex");
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(queues.cq);
	queues.qp = ibv_create_qp_ex(pd->context, &qp);
	require(queues.qp != NULL, "ibv_create_qp_ex");
	queues.ex = ibv_qp_to_qp_ex(queues.qp);
	connect_to_itself(queues.qp);
	return queues;
}

/* Post and poll by the original calls. */
static void post_and_poll(const struct queues *queues)
{
	struct ibv_sge sge = {.addr = 4096, .length = 64};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	require(ibv_post_send(queues->qp, &wr, &bad) == 0, "ibv_post_send");
	require(ibv_poll_cq(ibv_cq_ex_to_cq(queues->cq), 1, &wc) == 1, "ibv_poll_cq");
}

/* Do the same by ibv_wr_* and the iterator. */
static void build_and_iterate(const struct queues *queues)
{
	struct ibv_poll_cq_attr attr = {0};

	ibv_wr_start(queues->ex);
	queues->ex->wr_id = 1;
	ibv_wr_send(queues->ex);
	ibv_wr_set_sge(queues->ex, 0, 4096, 64);
	require(ibv_wr_complete(queues->ex) == 0, "ibv_wr_complete");
	require(ibv_start_poll(queues->cq, &attr) == 0, "ibv_start_poll");
	ibv_end_poll(queues->cq);
}

/* Measure this thread's CPU time, which depends less on other load of the machine. */
static double run_ns(void (*once)(const struct queues *queues), const struct queues *queues)
{
	struct timespec from, to;

	completes = face_cq(ibv_cq_ex_to_cq(queues->cq))->cq;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (unsigned int i = 0; i < RUN_POSTS; i++)
		once(queues);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
	       RUN_POSTS;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Measure both in turns, so that a change of the machine's speed affects both. */
static void measure(const char *name, void (*once)(const struct queues *queues),
		    const struct queues *locked, const struct queues *single)
{
	double with[RUNS], without[RUNS];

	for (int run = 0; run < RUNS; run++) {
		with[run] = run_ns(once, locked);
		without[run] = run_ns(once, single);
	}
	qsort(with, RUNS, sizeof(with[0]), compare);
	qsort(without, RUNS, sizeof(without[0]), compare);
	printf("%-34s%8.1f ns%14.1f ns%8.1f ns\n", name, with[RUNS / 2], without[RUNS / 2],
	       with[RUNS / 2] - without[RUNS / 2]);
}

int main(void)
{
	static const struct device_provider provider = {.start = start};
	struct ibv_device **list;
	struct ibv_context *context;
	struct queues locked, single;
	struct ibv_pd *pd;
	struct ibv_td *td;

	registry_set_provider(&provider);
	list = ibv_get_device_list(NULL);
	require(list && list[0], "ibv_get_device_list");
	context = ibv_open_device(list[0]);
	require(context != NULL, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	td = ibv_alloc_td(context, &(struct ibv_td_init_attr){.comp_mask = 0});
	require(pd && td, "ibv_alloc_pd, ibv_alloc_td");
	locked = make_queues(pd, NULL);
	single = make_queues(pd, td);
	printf("%-34s%11s%17s%11s   medians of %d\n", "one request, one completion", "locks",
	       "thread domain", "saved", RUNS);
	measure("ibv_post_send, ibv_poll_cq", post_and_poll, &locked, &single);
	measure("ibv_wr_*, ibv_start_poll", build_and_iterate, &locked, &single);
	return 0;
}
