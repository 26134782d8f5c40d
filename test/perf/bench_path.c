/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a message in the library, stage by stage, without engine and port. Two devices run in
 * one thread, and packets between them stay in the cache. The program prints cycles of the time
 * stamp counter for each message, as medians over many batches, which other load of the machine
 * hardly changes.
 *
 *     bench_path [-n BATCHES] [-q QPS] [-w LIST] [-c ALGORITHM] [BYTES...]
 *
 * With several queue pairs, the messages of a batch use them in turn. LIST names the optimisations
 * to switch off (base/tuning.h), and ALGORITHM the congestion control: the link is idle, so it
 * limits nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/tuning.h"
#include "device/device.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "raise_qp.h"
#include "wire/headers.h"

#define FRAMES_MAX   128
#define FRAME_BYTES  RTE_ALIGN_CEIL(PACKET_FRAME_MAX, RTE_CACHE_LINE_SIZE)
#define BATCH_MAX    32
#define AHEAD	     2 /* packets in a burst, as in engines */
#define MANY_QPS     64
#define REGION_BYTES (512u * 1024)
#define RIGHTS	     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

enum stage { POST, REQUEST, RECEIVE, ACKNOWLEDGE, COMPLETE, POLL, STAGES };

static const char *const stage_names[STAGES] = {"post",	       "request",  "receive",
						"acknowledge", "complete", "poll"};

/* One end, and the frames that it has sent. */
struct node {
	struct packet_sink sink;
	struct packet_out out;
	struct device *device;
	struct pd *pd;
	struct cq *cq;
	struct qp **qp;
	uint32_t *qpn;
	struct mr *mr;
	uint8_t *memory;
	uint32_t frames;
	uint32_t len[FRAMES_MAX];
	uint8_t frame[FRAMES_MAX][FRAME_BYTES];
};

static struct node nodes[2] __rte_cache_aligned;
static uint64_t now_ns = 1000;
static uint32_t qps = 1;
static enum cc_kind cc;
static uint32_t turn; /* the queue pair with which the next batch begins */

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "bench_path: %s failed\n", what);
	exit(1);
}

static struct packet_out *node_get(struct packet_sink *sink)
{
	struct node *node = (struct node *)(void *)sink;

	if (node->frames == FRAMES_MAX)
		return NULL;
	node->out.frame = node->frame[node->frames];
	return &node->out;
}

static int node_put(struct packet_sink *sink, struct packet_out *out)
{
	struct node *node = (struct node *)(void *)sink;
	const int len = packet_seal(out);

	require(len > 0, "packet_seal");
	node->len[node->frames++] = (uint32_t)len;
	return 0;
}

static void node_make_qp(struct node *node, uint32_t i)
{
	struct qp_init init = {.type = IBV_QPT_RC,
			       .cap = {.max_send_wr = BATCH_MAX, .max_send_sge = 1}};
	struct ibv_qp_cap granted;

	node->qpn[i] = (uint32_t)device_alloc_qpn(device_first(node->device));
	init.pd = node->pd;
	init.send_cq = init.recv_cq = node->cq;
	init.qpn = node->qpn[i];
	init.counters = &device_first(node->device)->counters;
	init.ooo = device_first(node->device)->ooo;
	init.port_mtu = node->device->mtu;
	init.cc = device_engine_cc(device_first(node->device));
	require(qp_create(&init, &granted, &node->qp[i]) == 0, "qp_create");
	device_set_qp(node->device, node->qpn[i], node->qp[i]);
}

static void node_set_up(struct node *node, uint8_t number)
{
	const struct device_config config = {.name = "bench",
					     .mac = {2, 0, 0, 0, 0, number},
					     .port_mtu_bytes = 4200,
					     .cc = cc,
					     .unique = "bench"};
	const union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, number}};

	require(device_create(&config, &node->device) == 0, "device_create");
	require(device_add_gid(node->device, &gid, -1, 0) == 0, "device_add_gid");
	require(pd_create(node->device->keys, &node->pd) == 0, "pd_create");
	require(cq_create_in(&(struct cq_attr){.cqe = BATCH_MAX}, &node->cq) == 0, "cq_create_in");
	node->memory = calloc(1, REGION_BYTES);
	require(node->memory != NULL, "calloc");
	require(mr_register(node->pd, node->memory, REGION_BYTES, (uintptr_t)node->memory, RIGHTS,
			    &node->mr) == 0,
		"mr_register");
	node->qp = calloc(qps, sizeof(struct qp *));
	node->qpn = calloc(qps, sizeof(*node->qpn));
	require(node->qp && node->qpn, "calloc");
	for (uint32_t i = 0; i < qps; i++)
		node_make_qp(node, i);
	node->sink = (struct packet_sink){.get = node_get, .put = node_put};
}

static void node_connect(struct node *node, const struct node *peer, uint32_t i)
{
	struct ibv_qp_attr attr = {.port_num = 1,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = peer->qpn[i],
				   .timeout = 14,
				   .retry_cnt = 7,
				   .qp_access_flags = RIGHTS & ~IBV_ACCESS_LOCAL_WRITE,
				   .ah_attr = {.is_global = 1, .port_num = 1}};
	struct path path;

	attr.ah_attr.grh.dgid = peer->device->gids[0].gid;
	attr.ah_attr.grh.hop_limit = 64;
	require(device_make_path(node->device, &attr.ah_attr, peer->device->config.mac,
				 WIRE_UDP_SPORT_MIN, &path) == 0,
		"device_make_path");
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		require(qp_modify(node->qp[i], &attr, raise_mask(IBV_QPT_RC, attr.qp_state),
				  &path) == 0,
			"qp_modify");
	}
}

static void post(uint32_t count, uint32_t bytes)
{
	static uint32_t at;
	struct ibv_send_wr wr[BATCH_MAX], *bad;
	struct ibv_sge sge[BATCH_MAX];

	for (uint32_t i = 0; i < count; i++) {
		at = at + 2 * bytes > REGION_BYTES ? 0 : at + bytes;
		sge[i] = (struct ibv_sge){.addr = (uintptr_t)nodes[0].memory + at,
					  .length = bytes,
					  .lkey = nodes[0].mr->key};
		wr[i] = (struct ibv_send_wr){.next = i + 1 < count ? &wr[i + 1] : NULL,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_RDMA_WRITE,
					     .send_flags = IBV_SEND_SIGNALED};
		wr[i].wr.rdma.remote_addr = (uintptr_t)nodes[1].memory + at;
		wr[i].wr.rdma.rkey = nodes[1].mr->key;
	}
	if (qps == 1) {
		require(qp_post_send(nodes[0].qp[0], wr, &bad) == 0, "qp_post_send");
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		wr[i].next = NULL;
		require(qp_post_send(nodes[0].qp[(turn + i) % qps], &wr[i], &bad) == 0,
			"qp_post_send");
	}
}

static bool prefetches(void)
{
	return qps > MANY_QPS && tuning.prefetch;
}

static void run(struct node *node, uint32_t count)
{
	for (uint32_t i = 0; i < RTE_MIN(count, qps); i++) {
		if (i + 2 < RTE_MIN(count, qps) && prefetches()) {
			qp_prefetch_run(node->qp[(turn + i + 2) % qps]);
			qp_prefetch_work(node->qp[(turn + i + 1) % qps]);
		}
		while (qp_run(node->qp[(turn + i) % qps], now_ns, &node->sink, 32))
			require(node->frames < FRAMES_MAX, "a batch within the frames there are");
	}
}

static void receive(struct node *node, struct node *from)
{
	struct device_burst burst;
	struct qp *qp;

	device_burst_begin(&burst, device_first(node->device), now_ns);
	for (uint32_t i = 0; i < from->frames && i < AHEAD && prefetches(); i++)
		device_prefetch(node->device, from->frame[i], from->len[i]);
	for (uint32_t i = 0; i < from->frames; i++) {
		if (i + AHEAD < from->frames && prefetches())
			device_prefetch(node->device, from->frame[i + AHEAD], from->len[i + AHEAD]);
		device_receive_next(&burst, from->frame[i], from->len[i], 0, &qp);
	}
	from->frames = 0;
}

static void poll_all(uint32_t count)
{
	struct ibv_wc wc[BATCH_MAX];

	require(cq_poll(nodes[0].cq, BATCH_MAX, wc) == (int)count, "a completion a message");
	for (uint32_t i = 0; i < count; i++)
		require(wc[i].status == IBV_WC_SUCCESS, "a message");
}

static void run_batch(uint32_t count, uint32_t bytes, uint64_t *ticks)
{
	uint64_t at[STAGES + 1];

	now_ns += 1000;
	at[POST] = rte_rdtsc_precise();
	post(count, bytes);
	at[REQUEST] = rte_rdtsc_precise();
	run(&nodes[0], count);
	at[RECEIVE] = rte_rdtsc_precise();
	receive(&nodes[1], &nodes[0]);
	at[ACKNOWLEDGE] = rte_rdtsc_precise();
	run(&nodes[1], count);
	at[COMPLETE] = rte_rdtsc_precise();
	receive(&nodes[0], &nodes[1]);
	run(&nodes[0], count);
	at[POLL] = rte_rdtsc_precise();
	poll_all(count);
	at[STAGES] = rte_rdtsc_precise();
	turn = (turn + count) % qps;
	for (int i = 0; i < STAGES; i++)
		ticks[i] = at[i + 1] - at[i];
}

/* Let the window of congestion control grow until it holds a batch. */
static void warm_up(void)
{
	uint64_t ticks[STAGES];

	for (uint32_t i = 0; i < qps; i++) {
		for (uint32_t count = 1; count <= BATCH_MAX; count++)
			run_batch(count, 8, ticks);
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void measure(uint32_t bytes, uint32_t batches)
{
	const uint32_t packets = bytes > WIRE_MTU_MAX ? bytes / WIRE_MTU_MAX : 1;
	const uint32_t count = RTE_MIN((uint32_t)BATCH_MAX, RTE_MAX(32 / packets, 1u));
	uint64_t *ticks[STAGES], total = 0, each[STAGES];

	for (int i = 0; i < STAGES; i++) {
		ticks[i] = calloc(batches, sizeof(*ticks[i]));
		require(ticks[i] != NULL, "calloc");
	}
	for (uint32_t batch = 0; batch < batches; batch++) {
		run_batch(count, bytes, each);
		for (int i = 0; i < STAGES; i++)
			ticks[i][batch] = each[i];
	}
	printf("%-10u", bytes);
	for (int i = 0; i < STAGES; i++) {
		qsort(ticks[i], batches, sizeof(*ticks[i]), compare);
		total += ticks[i][batches / 2];
		printf("%12.1f", (double)ticks[i][batches / 2] / count);
		free(ticks[i]);
	}
	printf("%12.1f\n", (double)total / count);
}

int main(int argc, char **argv)
{
	static char *standard[] = {"8", "4096", "65536"};
	uint32_t batches = 20000;
	int option;

	while ((option = getopt(argc, argv, "n:q:w:c:")) != -1) {
		if (option == 'n')
			batches = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'q')
			qps = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'w')
			require(tuning_without(optarg) == 0, "finding these optimisations");
		else if (option == 'c')
			require((cc = cc_find(optarg)) != CC_KINDS, "finding this algorithm");
		else
			return 2;
	}
	if (optind == argc) {
		argv = standard;
		argc = (int)RTE_DIM(standard);
		optind = 0;
	}
	for (uint8_t i = 0; i < 2; i++)
		node_set_up(&nodes[i], (uint8_t)(i + 1));
	for (uint32_t i = 0; i < qps; i++) {
		node_connect(&nodes[0], &nodes[1], i);
		node_connect(&nodes[1], &nodes[0], i);
	}
	if (cc != CC_NONE)
		warm_up();
	printf("WRITE     ");
	for (int i = 0; i < STAGES; i++)
		printf("%12s", stage_names[i]);
	printf("%12s   cycles a message\n", "all");
	for (int i = optind; i < argc; i++)
		measure((uint32_t)strtoul(argv[i], NULL, 10), batches);
	return 0;
}
