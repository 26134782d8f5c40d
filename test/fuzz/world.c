/* SPDX-License-Identifier: BSD-3-Clause */
/* The device that a fuzzer attacks: create it, and check its invariants after each step. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/verbs_later.h"
#include "coverage.h"
#include "device/device.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "wire/packet.h"
#include "queues.h"
#include "raise_qp.h"

#define CANARY_BYTES 256
#define REGION_BYTES 8192
#define BLOCK_BYTES  (WORLD_REGIONS * (CANARY_BYTES + REGION_BYTES) + CANARY_BYTES)
#define CQE	     1024
#define SRQ_NUMBER   77
#define REMOTE_ACCESS                                                                  \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 LATER_ACCESS_FLUSH_GLOBAL)
#define XRC_DOMAIN ((void *)(uintptr_t)0x1234)

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t peer_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t our_ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t peer_ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
static const uint8_t our_ipv6[16] = {0xfd, [15] = 1};
static const uint8_t peer_ipv6[16] = {0xfd, [15] = 2};

/* The queue pairs of the world. */
static const struct {
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	enum ibv_mtu mtu;
	bool shared; /* receives from the shared queue */
	bool ipv6;
} kinds[WORLD_QPS] = {
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_MTU_256, false, false},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_MTU_256, false, false},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_MTU_256, false, false},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_MTU_1024, false, true},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_MTU_4096, true, false},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_MTU_512, false, false},
	{IBV_QPT_RC, IBV_QPS_ERR, IBV_MTU_1024, false, false},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_MTU_256, false, false},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_MTU_1024, true, false},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_MTU_1024, false, false},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_MTU_256, false, false},
	{IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_MTU_256, false, false},
};

/* Replace getrandom(2), from which the stack takes keys and numbers, by the same values for each
 * input, so that a finding can be replayed. This definition precedes the C library's. */
static uint64_t entropy;

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	uint8_t *to = buffer;

	(void)flags;
	for (size_t i = 0; i < length; i++) {
		entropy = entropy * 6364136223846793005u + 1442695040888963407u;
		to[i] = (uint8_t)(entropy >> 56);
	}
	return (ssize_t)length;
}

void world_broken(const char *what)
{
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

/* Make undefined behaviour a finding, not only a message. The sanitizer reads this when it
 * starts. */
const char *__ubsan_default_options(void);

const char *__ubsan_default_options(void)
{
	return "halt_on_error=1:print_stacktrace=1";
}

static void must(bool condition, const char *what)
{
	if (!condition)
		world_broken(what);
}

static void nothing(void *engine)
{
	(void)engine;
}

static void nothing_polled(void *engine, int n)
{
	(void)engine;
	(void)n;
}

static void about_qp(void *engine, struct qp *qp)
{
	(void)engine;
	(void)qp;
}

static const struct engine_ops ops = {
	.lock = nothing,
	.unlock = nothing,
	.attach = about_qp,
	.detach = about_qp,
	.kick = about_qp,
	.poll = nothing,
	.polled = nothing_polled,
	.wait = nothing,
};

static struct packet_out *world_get(struct packet_sink *sink)
{
	struct world *world = (struct world *)((char *)sink - offsetof(struct world, sink));

	must(!world->out_taken, "a packet was taken and never put");
	if (world->room == 0)
		return NULL;
	world->room--;
	world->out_taken = true;
	return &world->out;
}

/* Every packet that we send in reply must be valid. */
static int world_put(struct packet_sink *sink, struct packet_out *out)
{
	struct world *world = (struct world *)((char *)sink - offsetof(struct world, sink));
	const int len = packet_seal(out);
	struct packet packet;

	must(world->out_taken, "a packet was put and not taken");
	world->out_taken = false;
	must(len > 0 && len <= PACKET_FRAME_MAX, "a frame that does not fit its buffer");
	must(packet_parse(out->frame, (size_t)len, false, &packet) == PACKET_OK,
	     "a frame of our own does not parse");
	must(packet_icrc_ok(&packet), "a frame of our own has a bad ICRC");
	must(memcmp(out->frame, peer_mac, 6) == 0, "a frame to somebody else");
	return 0;
}

static struct srq *find_srq(void *domain, uint32_t number)
{
	const struct world *world = domain;

	return number == SRQ_NUMBER ? world->srq : NULL;
}

/* The initial contents of all memory; made once. */
static const uint8_t *pattern(void)
{
	static uint8_t bytes[BLOCK_BYTES];
	static bool made;

	for (size_t i = 0; !made && i < BLOCK_BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	made = true;
	return bytes;
}

static void make_memory(struct world *world)
{
	static const unsigned int all = IBV_ACCESS_LOCAL_WRITE | REMOTE_ACCESS;
	static const unsigned int access[WORLD_REGIONS] = {
		[REGION_OPEN] = all | IBV_ACCESS_MW_BIND | IBV_ACCESS_RELAXED_ORDERING,
		[REGION_READABLE] = IBV_ACCESS_REMOTE_READ,
		[REGION_INBOX] = IBV_ACCESS_LOCAL_WRITE,
		[REGION_SOURCE] = 0,
		[REGION_FOREIGN] = all,
	};

	world->block = aligned_alloc(64, BLOCK_BYTES);
	must(world->block != NULL, "out of memory");
	memcpy(world->block, pattern(), BLOCK_BYTES);
	for (unsigned int i = 0; i < WORLD_REGIONS; i++) {
		uint8_t *addr;

		world->offset[i] = CANARY_BYTES + i * (CANARY_BYTES + REGION_BYTES);
		addr = world->block + world->offset[i];
		must(mr_register(i == REGION_FOREIGN ? world->foreign_pd : world->pd, addr,
				 REGION_BYTES, (uintptr_t)addr, access[i], &world->mr[i]) == 0,
		     "mr_register");
	}
}

/* Only two regions may change at all, and the memory between regions never does. */
static void check_memory(const struct world *world)
{
	const uint8_t *image = pattern();
	size_t from = 0;

	for (unsigned int i = 0; i < WORLD_REGIONS; i++) {
		if (i != REGION_OPEN && i != REGION_INBOX)
			continue;
		must(memcmp(world->block + from, image + from, world->offset[i] - from) == 0,
		     "memory was written that nobody may write");
		from = world->offset[i] + REGION_BYTES;
	}
	must(memcmp(world->block + from, image + from, BLOCK_BYTES - from) == 0,
	     "memory was written that nobody may write");
}

void world_bind(struct world *world, unsigned int qp)
{
	const struct mw *mw = world->windows[qp];
	const struct mr *mr = world->mr[REGION_OPEN];
	const struct mw_binding binding = {.window = mw->view.key,
					   .rkey = ibv_inc_rkey(mw->view.key),
					   .lkey = mr->key,
					   .addr = mr->iova + 1024,
					   .length = 1024,
					   .access = REMOTE_ACCESS};

	/* The binding refuses this. */
	mw_bind(world->pd, world->qps[qp].qpn, &world->qps[qp].bound, &binding);
}

static void make_qp(struct world *world, unsigned int i)
{
	struct world_qp *qp = &world->qps[i];
	const int qpn = device_alloc_qpn(device_first(world->device));
	struct qp_init init = {.pd = world->pd,
			       .type = kinds[i].type,
			       .srq = kinds[i].shared ? world->srq : NULL,
			       .find_srq = find_srq,
			       .domain = world,
			       .qpn = (uint32_t)qpn,
			       .counters = &device_first(world->device)->counters,
			       .ooo = device_first(world->device)->ooo,
			       .sack = SACK_ALWAYS,
			       .max_rd_atomic = 16,
			       .max_dest_rd_atomic = 16,
			       .port_mtu = world->device->mtu,
			       .cap = {.max_send_wr = 16,
				       .max_recv_wr = 8,
				       .max_send_sge = 4,
				       .max_recv_sge = 4,
				       .max_inline_data = 128},
			       .user = qp};
	struct ibv_qp_cap cap;

	must(qpn > 0, "device_alloc_qpn");
	must(cq_create(CQE, NULL, NULL, NULL, &qp->cq) == 0, "cq_create");
	init.send_cq = qp->cq;
	init.recv_cq = qp->cq;
	must(qp_create(&init, &cap, &qp->qp) == 0, "qp_create");
	qp->qpn = (uint32_t)qpn;
	qp->type = kinds[i].type;
	qp->state = kinds[i].state;
	device_set_qp(world->device, qp->qpn, qp->qp);
}

static int rtr_attr(const struct world *world, unsigned int i, struct ibv_qp_attr *attr)
{
	(void)world;
	if (kinds[i].type == IBV_QPT_UD)
		return IBV_QP_STATE;
	attr->path_mtu = kinds[i].mtu;
	attr->dest_qp_num = 0x1000 + i;
	attr->rq_psn = 0xfffff0;
	attr->max_dest_rd_atomic = (uint8_t)(1 + i % 4);
	attr->min_rnr_timer = 1;
	attr->ah_attr.is_global = 1;
	attr->ah_attr.port_num = 1;
	attr->ah_attr.grh.sgid_index = kinds[i].ipv6;
	attr->ah_attr.grh.hop_limit = 64;
	memcpy(attr->ah_attr.grh.dgid.raw, kinds[i].ipv6 ? peer_ipv6 : peer_ipv4, 16);
	return raise_mask(kinds[i].type, IBV_QPS_RTR);
}

static int rts_attr(unsigned int i, struct ibv_qp_attr *attr)
{
	attr->sq_psn = 0xfffffa;
	attr->max_rd_atomic = 4;
	attr->timeout = 10;
	attr->retry_cnt = 3;
	attr->rnr_retry = 3;
	return raise_mask(kinds[i].type, IBV_QPS_RTS);
}

static void modify(struct world *world, unsigned int i, struct ibv_qp_attr *attr, int mask)
{
	struct path path = {0};

	if (mask & IBV_QP_AV)
		must(device_make_path(world->device, &attr->ah_attr, peer_mac,
				      (uint16_t)(0xc000 + i), &path) == 0,
		     "device_make_path");
	must(qp_modify(world->qps[i].qp, attr, mask, &path) == 0, "qp_modify");
	world->qps[i].ready = true;
}

void world_connect(struct world *world, struct world_qp *qp)
{
	const unsigned int i = (unsigned int)(qp - world->qps);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11111111};

	attr.qp_access_flags = REMOTE_ACCESS;
	if (qp->type == IBV_QPT_UC)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	modify(world, i, &attr,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (qp->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	if (qp->state == IBV_QPS_INIT)
		return;
	attr.qp_state = IBV_QPS_RTR;
	modify(world, i, &attr, rtr_attr(world, i, &attr));
	if (qp->state == IBV_QPS_RTR)
		return;
	attr.qp_state = IBV_QPS_RTS;
	modify(world, i, &attr, rts_attr(i, &attr));
	if (qp->state != IBV_QPS_RTS) {
		attr.qp_state = qp->state;
		modify(world, i, &attr, IBV_QP_STATE);
	}
}

void world_modify(struct world *world, struct world_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	const struct path path = {0};

	(void)world;
	/* RESET drops the posted requests: they will not complete. */
	qp_modify(qp->qp, &attr, IBV_QP_STATE, &path);
	qp->ready = true;
}

/* Post requests everywhere: messages, READs, atomics, receives. */
static void post_first(struct world *world)
{
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		struct world_qp *qp = &world->qps[i];

		/* One queue pair never has a receive request. */
		for (unsigned int n = 0; n < 4 && i != 3; n++)
			world_post_recv(world, qp, (uint16_t)(3000 - n * 700));
		for (uint8_t n = 0; n < 10 && qp->type != IBV_QPT_UD; n++)
			world_post_send(world, qp, n, (uint16_t)(n * 130));
	}
}

void world_set_up(struct world *world)
{
	struct device_config config = {.name = "fuzz", .port_mtu_bytes = 9000, .unique = "fuzz"};
	union ibv_gid gid;

	memset(world, 0, sizeof(*world));
	entropy = 0;
	memcpy(config.mac, our_mac, 6);
	must(device_create(&config, &world->device) == 0, "device_create");
	device_first(world->device)->ops = &ops;
	memcpy(gid.raw, our_ipv4, 16);
	must(device_add_gid(world->device, &gid, -1, 0) == 0, "device_add_gid");
	memcpy(gid.raw, our_ipv6, 16);
	must(device_add_gid(world->device, &gid, -1, 0) == 1, "device_add_gid");
	must(pd_create(world->device->keys, &world->pd) == 0, "pd_create");
	must(pd_create(world->device->keys, &world->foreign_pd) == 0, "pd_create");
	make_memory(world);
	must(srq_create(8, 4, world->pd, &world->srq) == 0, "srq_create");
	world->now_ns = 1000000;
	world->sink = (struct packet_sink){.get = world_get, .put = world_put};
	world->out.frame = malloc(PACKET_FRAME_MAX);
	world->posted = calloc(65536 / 64, sizeof(*world->posted));
	must(world->out.frame != NULL && world->posted != NULL, "out of memory");
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		make_qp(world, i);
		world_connect(world, &world->qps[i]);
		must(mw_create(world->pd, IBV_MW_TYPE_2, &world->windows[i]) == 0, "mw_create");
		world_bind(world, i);
		must(world->windows[i]->region != NULL, "mw_bind");
	}
	world->srq->cq = world->qps[10].cq;
	post_first(world);
	world_poll(world, 64);
}

void world_tear_down(struct world *world)
{
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		device_set_qp(world->device, world->qps[i].qpn, NULL);
		qp_retire(world->qps[i].qp);
		qp_destroy(world->qps[i].qp);
		device_free_qpn(world->device, world->qps[i].qpn);
		must(cq_destroy(world->qps[i].cq) == 0, "cq_destroy");
	}
	must(srq_destroy(world->srq) == 0, "srq_destroy");
	for (unsigned int i = 0; i < WORLD_QPS; i++)
		mw_destroy(world->windows[i]);
	for (unsigned int i = 0; i < WORLD_REGIONS; i++)
		mr_deregister(world->mr[i]);
	must(pd_destroy(world->pd) == 0, "pd_destroy");
	must(pd_destroy(world->foreign_pd) == 0, "pd_destroy");
	device_destroy(world->device);
	free(world->block);
	free(world->out.frame);
	free(world->posted);
}

void world_receive(struct world *world, const uint8_t *frame, size_t len)
{
	/*
	 * Copy the frame to memory of exactly its length, so that a read beyond it is a finding.
	 * Align it as ports do.
	 */
	uint8_t *copy = malloc(len);
	struct coverage_mark mark;
	struct packet packet;
	struct qp *qp;
	bool parsed;

	must(copy != NULL || len == 0, "out of memory");
	if (len > 0)
		memcpy(copy, frame, len);
	/* Pass it as a port that has verified the checksums. */
	parsed = packet_parse(copy, len, true, &packet) == PACKET_OK && packet_icrc_ok(&packet);
	if (parsed)
		mark = coverage_before(world, &packet);
	device_receive(device_first(world->device), copy, len, 0, world->now_ns, &qp);
	if (parsed)
		coverage_after(&mark, &packet);
	if (qp != NULL)
		((struct world_qp *)qp_user(qp))->ready = true;
	free(copy);
}

void world_wait(struct world *world, uint64_t ns)
{
	world->now_ns += ns;
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		struct world_qp *qp = &world->qps[i];

		if (qp_deadline_ns(qp->qp) > world->now_ns)
			continue;
		qp_timeout(qp->qp, world->now_ns, &world->sink);
		qp->ready = true;
	}
}

static void poll_all(struct world *world)
{
	struct ibv_wc wc[16];

	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		int n;

		while ((n = cq_poll(world->qps[i].cq, 16, wc)) > 0) {
			for (int k = 0; k < n; k++) {
				const uint64_t id = wc[k].wr_id;

				must(id < world->next_wr, "a completion of nothing");
				must(world->posted[id / 64] >> (id % 64) & 1,
				     "a second completion of one request");
				world->posted[id / 64] &= ~(1ull << (id % 64));
				must(wc[k].status <= IBV_WC_TM_RNDV_INCOMPLETE,
				     "a status that is none");
			}
		}
	}
}

void world_poll(struct world *world, unsigned int budget)
{
	for (unsigned int i = 0; i < WORLD_QPS; i++) {
		struct world_qp *qp = &world->qps[i];

		if (!qp->ready)
			continue;
		world->room = budget;
		qp->ready = qp_run(qp->qp, world->now_ns, &world->sink, budget);
		must(!world->out_taken, "a packet was taken and never put");
	}
	poll_all(world);
	check_memory(world);
}

void world_peer_path(bool ipv6, struct path *path)
{
	struct path_attr attr = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc123};

	memcpy(attr.src_mac, peer_mac, 6);
	memcpy(attr.dst_mac, our_mac, 6);
	memcpy(attr.sgid, ipv6 ? peer_ipv6 : peer_ipv4, 16);
	memcpy(attr.dgid, ipv6 ? our_ipv6 : our_ipv4, 16);
	must(path_init(path, &attr) == 0, "path_init");
}
