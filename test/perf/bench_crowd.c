/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many threads of one device: bench_crowd [-t THREADS] [-n REQUESTS] [-s BYTES] [-d DEPTH]
 * [-o read|write|send] [-e]. Each thread makes its own queue pairs, queues and memory, so that it
 * has an engine to itself if there are enough (uroce-run --engines). It executes so many requests
 * between two queue pairs of its own. A SEND uses a receive request of the same thread's shared
 * queue. With -e a thread that finds no completion sleeps on a channel of its own (not with inline
 * progress, where nothing happens meanwhile). The program prints requests a second of all threads,
 * the times when the first thread, half of them and the last one have finished (if they share
 * fairly, they finish at the same time), and the longest time that a thread with requests waited
 * for a completion: of the thread that waited longest, and the median of all threads. The program
 * uses verbs only.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "raise_qp.h"

static struct {
	unsigned int threads;
	unsigned long requests; /* queue pairs of a thread */
	uint32_t bytes;
	uint32_t depth;
	enum ibv_wr_opcode opcode;
	bool sleeps;
} wanted = {
	.threads = 16, .requests = 100000, .bytes = 8192, .depth = 16, .opcode = IBV_WR_RDMA_READ};

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static enum ibv_mtu mtu;
static pthread_barrier_t begin;

/* Defined if lines.c is loaded, which counts the cache lines that threads have in common. */
void __attribute__((weak)) lines_begin(void);
void __attribute__((weak)) lines_end(uint64_t messages);

/* Each thread has a lane. No two lanes share a cache line. */
struct lane {
	pthread_t thread;
	struct ibv_comp_channel *channel; /* with -e */
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *from;
	struct ibv_qp *to;
	struct ibv_mr *mr;
	uint8_t *memory;
	double done_s; /* time since the start */
	double wait_s; /* the longest between two polls that found completions */
} __attribute__((aligned(64)));

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "bench_crowd: ");
	perror(what);
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	require(list && list[0], "no RDMA device");
	context = ibv_open_device(list[0]);
	require(context != NULL, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	require(pd && ibv_query_gid(context, 1, 0, &gid) == 0 &&
			ibv_query_port(context, 1, &port) == 0,
		"a domain");
	mtu = port.active_mtu;
}

static void connect_to(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = mtu,
		.dest_qp_num = dest_qpn,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};

	require(raise_qp(qp, &attr) == 0, "ibv_modify_qp");
}

static void open_lane(struct lane *lane)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = wanted.depth, .max_sge = 1}};
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = wanted.depth, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	lane->memory = calloc(2, wanted.bytes);
	lane->channel = wanted.sleeps ? ibv_create_comp_channel(context) : NULL;
	require(lane->channel || !wanted.sleeps, "ibv_create_comp_channel");
	lane->cq = ibv_create_cq(context, (int)wanted.depth * 2, NULL, lane->channel, 0);
	lane->srq = ibv_create_srq(pd, &srq);
	require(lane->memory && lane->cq && lane->srq, "queues");
	lane->mr = ibv_reg_mr(pd, lane->memory, 2 * (size_t)wanted.bytes,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				      IBV_ACCESS_REMOTE_WRITE);
	require(lane->mr != NULL, "ibv_reg_mr");
	init.send_cq = init.recv_cq = lane->cq;
	init.srq = lane->srq;
	lane->from = ibv_create_qp(pd, &init);
	lane->to = ibv_create_qp(pd, &init);
	require(lane->from && lane->to, "ibv_create_qp");
	connect_to(lane->from, lane->to->qp_num);
	connect_to(lane->to, lane->from->qp_num);
}

static void post_receive(const struct lane *lane)
{
	struct ibv_sge sge = {(uintptr_t)lane->memory + wanted.bytes, wanted.bytes, lane->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	require(ibv_post_srq_recv(lane->srq, &wr, &bad) == 0, "ibv_post_srq_recv");
}

static void post_request(const struct lane *lane)
{
	struct ibv_sge sge = {(uintptr_t)lane->memory, wanted.bytes, lane->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = wanted.opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)lane->memory + wanted.bytes,
			    .rkey = lane->mr->rkey},
	};
	struct ibv_send_wr *bad;

	require(ibv_post_send(lane->from, &wr, &bad) == 0, "ibv_post_send");
}

/* Poll, and return how many requests have completed. */
static unsigned int take(const struct lane *lane)
{
	unsigned int requests = 0;
	struct ibv_wc wc[16];
	const int n = ibv_poll_cq(lane->cq, 16, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "bench_crowd: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		if (wc[i].opcode & IBV_WC_RECV)
			post_receive(lane);
		else
			requests++;
	}
	return requests;
}

/* Sleep until there is a completion. Return how many requests have completed. */
static unsigned int take_later(const struct lane *lane)
{
	unsigned int requests;
	struct ibv_cq *cq;
	void *cq_context;

	require(ibv_req_notify_cq(lane->cq, 0) == 0, "ibv_req_notify_cq");
	/* A completion from before the arming may have an event, too: take it without a sleep. */
	requests = take(lane);
	if (requests > 0)
		return requests;
	require(ibv_get_cq_event(lane->channel, &cq, &cq_context) == 0, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return take(lane);
}

static void *run(void *arg)
{
	unsigned long posted = 0, completed = 0;
	struct lane *lane = arg;
	double start_s, last_s, found_s;
	unsigned int found;

	open_lane(lane);
	for (uint32_t i = 0; i < wanted.depth; i++)
		post_receive(lane);
	pthread_barrier_wait(&begin);
	if (lines_begin)
		lines_begin();
	start_s = last_s = now_s();
	while (completed < wanted.requests) {
		for (; posted < wanted.requests && posted - completed < wanted.depth; posted++)
			post_request(lane);
		found = take(lane);
		if (found == 0 && wanted.sleeps)
			found = take_later(lane);
		completed += found;
		if (found == 0)
			continue;
		found_s = now_s();
		if (found_s - last_s > lane->wait_s)
			lane->wait_s = found_s - last_s;
		last_s = found_s;
	}
	lane->done_s = now_s() - start_s;
	if (lines_end)
		lines_end(wanted.requests);
	return NULL;
}

static int by_end(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;

	return (x->done_s > y->done_s) - (x->done_s < y->done_s);
}

static int by_wait(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;

	return (x->wait_s > y->wait_s) - (x->wait_s < y->wait_s);
}

static enum ibv_wr_opcode opcode_of(const char *name)
{
	if (strcmp(name, "send") == 0)
		return IBV_WR_SEND;
	if (strcmp(name, "write") == 0)
		return IBV_WR_RDMA_WRITE;
	if (strcmp(name, "read") == 0)
		return IBV_WR_RDMA_READ;
	exit(2);
}

static void read_options(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "t:n:s:d:o:e")) != -1) {
		switch (option) {
		case 't':
			wanted.threads = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			wanted.requests = strtoul(optarg, NULL, 10);
			break;
		case 's':
			wanted.bytes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'd':
			wanted.depth = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'o':
			wanted.opcode = opcode_of(optarg);
			break;
		case 'e':
			wanted.sleeps = true;
			break;
		default:
			exit(2);
		}
	}
	if (wanted.threads == 0 || wanted.depth == 0)
		exit(2);
}

int main(int argc, char **argv)
{
	struct lane *lanes;
	double last_s;

	read_options(argc, argv);
	lanes = aligned_alloc(_Alignof(struct lane), wanted.threads * sizeof(*lanes));
	require(lanes != NULL, "memory");
	memset(lanes, 0, wanted.threads * sizeof(*lanes));
	open_device();
	pthread_barrier_init(&begin, NULL, wanted.threads);
	for (unsigned int i = 0; i < wanted.threads; i++)
		require(pthread_create(&lanes[i].thread, NULL, run, &lanes[i]) == 0, "a thread");
	for (unsigned int i = 0; i < wanted.threads; i++)
		pthread_join(lanes[i].thread, NULL);
	qsort(lanes, wanted.threads, sizeof(*lanes), by_end);
	last_s = lanes[wanted.threads - 1].done_s;
	printf("%.0f requests/s, first %.2f s, median %.2f s, last %.2f s",
	       (double)wanted.threads * (double)wanted.requests / last_s, lanes[0].done_s,
	       lanes[wanted.threads / 2].done_s, last_s);
	qsort(lanes, wanted.threads, sizeof(*lanes), by_wait);
	printf(", longest wait %.1f ms, median %.1f ms\n", lanes[wanted.threads - 1].wait_s * 1e3,
	       lanes[wanted.threads / 2].wait_s * 1e3);
	return 0;
}
