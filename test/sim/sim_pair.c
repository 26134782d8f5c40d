/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices with a queue pair each, and a link between them, in virtual time. */
#include "sim_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/limits.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "raise_qp.h"
#include "wire/headers.h"
#include "wire/opcode.h"

#define POLL_NS	  300 /* time from the arrival of a packet to the engine poll that answers it */
#define BUDGET	  64
#define TIMEOUT	  14 /* 67 ms */
#define PORT_MTU  9000
#define DEPTH	  512
#define RESOURCES 16
#define POLL_MAX  16

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "pair: %s\n", what);
	exit(1);
}

static struct packet_out *node_get(struct packet_sink *sink)
{
	return &((struct node *)((char *)sink - offsetof(struct node, sink)))->out;
}

static int node_put(struct packet_sink *sink, struct packet_out *out)
{
	struct node *node = (struct node *)((char *)sink - offsetof(struct node, sink));
	const int len = packet_seal(out);

	if (len < 0)
		return len;
	/* A selective acknowledgement may harm a peer that does not understand it. */
	must(out->frame[out->l4_off + 8] != OPCODE_SACK ||
		     (node->pair->attr.keeps && node->pair->attr.sack != SACK_NEVER),
	     "a selective acknowledgement between others than uroce peers");
	node->packets++;
	link_send(&node->link, out->frame, (uint32_t)len);
	return 0;
}

static void node_poll(void *context, void *argument);

static void node_want_poll(struct node *node)
{
	struct clock *clock = &node->pair->clock;

	if (node->poll_due)
		return;
	node->poll_due = true;
	clock_at(clock, clock->now_ns + POLL_NS, node_poll, node, NULL);
}

static void node_timer(void *context, void *argument)
{
	const uint64_t at_ns = (uint64_t)(uintptr_t)argument;
	struct node *node = context;

	if (node->timer_ns != at_ns)
		return; /* the node did work */
	node->timer_ns = UINT64_MAX;
	qp_timeout(node->qp, node->pair->clock.now_ns, &node->sink);
	node_want_poll(node);
}

static void node_poll(void *context, void *argument)
{
	struct node *node = context;
	struct clock *clock = &node->pair->clock;
	uint64_t deadline_ns;

	(void)argument;
	node->poll_due = false;
	if (qp_run(node->qp, clock->now_ns, &node->sink, BUDGET))
		node_want_poll(node);
	deadline_ns = qp_deadline_ns(node->qp);
	if (deadline_ns == node->timer_ns)
		return;
	node->timer_ns = deadline_ns;
	if (deadline_ns != UINT64_MAX)
		clock_at(clock, deadline_ns, node_timer, node, (void *)(uintptr_t)deadline_ns);
}

static void node_deliver(void *context, void *argument)
{
	struct node *node = context;
	struct frame *frame = argument;
	struct qp *qp;

	device_receive(device_first(node->device), frame->bytes, frame->len, 0,
		       node->pair->clock.now_ns, &qp);
	free(frame);
	if (node->pair->attr.took != NULL)
		node->pair->attr.took(node->pair, node->number);
	node_want_poll(node);
}

static void node_gid(const struct node *node, union ibv_gid *gid)
{
	*gid = (union ibv_gid){.raw = {[10] = 0xff, 0xff, 10, 9, 0, (uint8_t)(node->number + 1)}};
}

static void node_mac(const struct node *node, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[]){2, 0, 0, 0, 7, (uint8_t)(node->number + 1)}, 6);
}

static void node_make_memory(struct node *node)
{
	const struct pair_attr *attr = &node->pair->attr;
	struct rng rng = rng_fork(attr->seed, 10 + (uint64_t)node->number);
	const unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	node->memory = malloc(attr->bytes);
	must(node->memory != NULL, "out of memory");
	for (size_t i = 0; i < attr->bytes; i++)
		node->memory[i] = (uint8_t)rng_next(&rng);
	must(mr_register(node->pd, node->memory, attr->bytes, (uintptr_t)node->memory,
			 all | attr->access, &node->mr) == 0,
	     "mr_register");
}

static void node_set_up(struct node *node)
{
	struct pair *pair = node->pair;
	struct device_config config = {
		.name = "pair", .port_mtu_bytes = PORT_MTU, .link_mbps = 100000, .unique = "pair"};
	struct qp_init init = {.type = IBV_QPT_RC,
			       .cap = {.max_send_wr = DEPTH,
				       .max_recv_wr = DEPTH,
				       .max_send_sge = 1,
				       .max_recv_sge = 1},
			       .max_rd_atomic = DEVICE_MAX_RD_ATOMIC,
			       .max_dest_rd_atomic = DEVICE_MAX_RD_ATOMIC};
	struct ibv_qp_cap granted;
	union ibv_gid gid;

	node_mac(node, config.mac);
	node_gid(node, &gid);
	must(device_create(&config, &node->device) == 0, "device_create");
	must(device_add_gid(node->device, &gid, -1, 0) == 0, "device_add_gid");
	must(pd_create(node->device->keys, &node->pd) == 0, "pd_create");
	must(cq_create_in(&(struct cq_attr){.cqe = DEPTH}, &node->cq) == 0, "cq_create_in");
	node_make_memory(node);
	node->qpn = (uint32_t)device_alloc_qpn(device_first(node->device));
	init.pd = node->pd;
	init.send_cq = node->cq;
	init.recv_cq = node->cq;
	init.qpn = node->qpn;
	init.counters = &device_first(node->device)->counters;
	init.ooo = pair->attr.keeps ? device_first(node->device)->ooo : NULL;
	init.port_mtu = node->device->mtu;
	init.window_max = pair->attr.window_max;
	init.sack = pair->attr.sack;
	must(qp_create(&init, &granted, &node->qp) == 0, "qp_create");
	device_set_qp(node->device, node->qpn, node->qp);
	node->sink = (struct packet_sink){.get = node_get, .put = node_put};
	node->out.frame = malloc(PACKET_FRAME_MAX);
	must(node->out.frame != NULL, "out of memory");
	node->timer_ns = UINT64_MAX;
	node->link = (struct link){.clock = &pair->clock,
				   .rng = rng_fork(pair->attr.seed, 20 + (uint64_t)node->number),
				   .attr = pair->attr.link,
				   .deliver = node_deliver,
				   .receiver = &pair->node[1 - node->number]};
}

static void node_modify(struct node *node, struct ibv_qp_attr *attr, enum ibv_qp_state state,
			const struct path *path)
{
	attr->qp_state = state;
	must(qp_modify(node->qp, attr, raise_mask(IBV_QPT_RC, state), path) == 0, "qp_modify");
}

static void node_connect(struct node *node)
{
	const struct node *peer = &node->pair->node[1 - node->number];
	const uint8_t resources =
		node->pair->attr.resources ? node->pair->attr.resources : RESOURCES;
	struct ibv_qp_attr attr = {.port_num = 1,
				   .path_mtu = node->pair->attr.mtu,
				   .dest_qp_num = peer->qpn,
				   .max_rd_atomic = resources,
				   .max_dest_rd_atomic = resources,
				   .min_rnr_timer = 1,
				   .timeout = TIMEOUT,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .ah_attr = {.is_global = 1, .port_num = 1}};
	struct path path;
	uint8_t mac[6];

	attr.qp_access_flags =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	attr.ah_attr.grh.hop_limit = 64;
	node_gid(peer, &attr.ah_attr.grh.dgid);
	node_mac(peer, mac);
	must(device_make_path(node->device, &attr.ah_attr, mac, WIRE_UDP_SPORT_MIN, &path) == 0,
	     "device_make_path");
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		node_modify(node, &attr, (enum ibv_qp_state)state, &path);
}

void pair_set_up(struct pair *pair, const struct pair_attr *attr)
{
	*pair = (struct pair){.attr = *attr, .clock = {.now_ns = 1000}};
	for (int i = 0; i < 2; i++) {
		pair->node[i].pair = pair;
		pair->node[i].number = i;
		node_set_up(&pair->node[i]);
	}
	for (int i = 0; i < 2; i++)
		node_connect(&pair->node[i]);
}

static void node_tear_down(struct node *node)
{
	device_set_qp(node->device, node->qpn, NULL);
	qp_destroy(node->qp);
	mr_deregister(node->mr);
	must(cq_destroy(node->cq) == 0 && pd_destroy(node->pd) == 0, "destroy");
	device_free_qpn(node->device, node->qpn);
	device_destroy(node->device);
	free(node->memory);
	free(node->out.frame);
}

void pair_tear_down(struct pair *pair)
{
	/* Free the frames in flight. */
	while (clock_step(&pair->clock))
		continue;
	for (int i = 0; i < 2; i++)
		node_tear_down(&pair->node[i]);
	clock_fini(&pair->clock);
}

void pair_post(struct pair *pair, enum ibv_wr_opcode opcode, size_t local, uint32_t len,
	       size_t remote)
{
	struct node *node = &pair->node[0];
	const struct node *peer = &pair->node[1];
	struct ibv_sge sge = {
		.addr = (uintptr_t)node->memory + local, .length = len, .lkey = node->mr->key};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (opcode == IBV_WR_SEND) {
		/* The receive request has the address. */
	} else if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->memory + remote;
		wr.wr.atomic.rkey = peer->mr->key;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + remote;
		wr.wr.rdma.rkey = peer->mr->key;
	}
	must(qp_post_send(node->qp, &wr, &bad) == 0, "qp_post_send");
	node_want_poll(node);
}

void pair_receive(struct pair *pair, size_t place, uint32_t len)
{
	struct node *node = &pair->node[1];
	struct ibv_sge sge = {
		.addr = (uintptr_t)node->memory + place, .length = len, .lkey = node->mr->key};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	must(qp_post_recv(node->qp, &wr, &bad) == 0, "qp_post_recv");
}

void pair_step(struct pair *pair)
{
	must(clock_step(&pair->clock), "nothing happens any more");
}

static unsigned int node_poll_cq(struct node *node)
{
	struct ibv_wc wc[POLL_MAX];
	unsigned int total = 0;
	int n;

	while ((n = cq_poll(node->cq, POLL_MAX, wc)) > 0) {
		for (int i = 0; i < n; i++)
			must(wc[i].status == IBV_WC_SUCCESS, "a request failed");
		total += (unsigned int)n;
	}
	return total;
}

unsigned int pair_poll(struct pair *pair)
{
	return node_poll_cq(&pair->node[0]);
}

unsigned int pair_poll_received(struct pair *pair)
{
	return node_poll_cq(&pair->node[1]);
}

uint64_t pair_counted(const struct pair *pair, int node, enum counter counter)
{
	return device_counter(pair->node[node].device, counter);
}
