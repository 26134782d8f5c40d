/* SPDX-License-Identifier: BSD-3-Clause */
/* A host of the simulated network. */
#include "net_host.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "device/device.h"
#include "mem/mr.h"
#include "mem/pd.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "raise_qp.h"
#include "wire/gid.h"
#include "wire/headers.h"
#include "wire/opcode.h"

#define PORT_MTU_BYTES	9000
#define CQE		4096
#define POLL_MAX	32
#define DEPTH		4
#define RNR_TIMER	1 /* 0.01 ms */
#define RETRIES		7
#define NIC_QUEUE_BYTES 3000 /* the NIC builds the next packet while less than this is queued */
#define UDP_SPORT_COUNT 0x4000

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "net: %s\n", what);
	exit(3);
}

static struct host *host_of(struct packet_sink *sink)
{
	return (struct host *)((char *)sink - offsetof(struct host, sink));
}

static struct packet_out *host_get(struct packet_sink *sink)
{
	struct host *host = host_of(sink);

	return host->port.queued_bytes < NIC_QUEUE_BYTES ? &host->out : NULL;
}

/* Return a hash of the source, the destination and the UDP source port. */
static uint32_t hash_flow(uint32_t from, uint32_t to, uint16_t sport)
{
	return (from * 0x85ebca6bu) ^ (to * 0xc2b2ae35u) ^ (sport * 0x27d4eb2fu);
}

static uint16_t gid_host(const uint8_t gid[16])
{
	return (uint16_t)(gid[14] << 8 | gid[15]);
}

/* Return how many bytes of a packet the fabric keeps. */
static uint16_t bytes_kept(const struct packet_out *out, uint32_t len)
{
	const uint8_t opcode = out->frame[out->l4_off + sizeof(struct rte_udp_hdr)];

	return opcode == OPCODE_SACK ? (uint16_t)len : out->hdr_len;
}

static int host_put(struct packet_sink *sink, struct packet_out *out)
{
	struct host *host = host_of(sink);
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;
	struct frame *frame;
	uint8_t gid[16];
	int len;

	/* No link damages a frame, so nobody checks an ICRC. */
	out->unsealed = true;
	len = packet_seal(out);
	if (len < 0)
		return len;
	ip = (struct rte_ipv4_hdr *)(out->frame + out->l3_off);
	udp = (struct rte_udp_hdr *)(out->frame + out->l4_off);
	gid_from_ipv4((const uint8_t *)&ip->dst_addr, gid);
	frame = fabric_frame(host->fabric, out->frame, bytes_kept(out, (uint32_t)len),
			     (uint32_t)len);
	frame->to = gid_host(gid);
	frame->flow_hash = hash_flow(host->number, frame->to, rte_be_to_cpu_16(udp->src_port));
	port_send(&host->port, frame);
	return 0;
}

static void conn_make_ready(struct conn *conn)
{
	if (conn->is_ready)
		return;
	conn->is_ready = true;
	TAILQ_INSERT_TAIL(&conn->host->ready, conn, ready);
}

static void host_turn(struct host *host);

static void conn_timer(void *context, void *argument)
{
	struct conn *conn = context;
	const uint64_t now_ns = conn->host->fabric->clock.now_ns;
	uint64_t deadline_ns;

	if (conn->timer_ns != (uint64_t)(uintptr_t)argument)
		return; /* an earlier event took its place */
	conn->timer_ns = UINT64_MAX;
	deadline_ns = qp_deadline_ns(conn->qp);
	if (deadline_ns <= now_ns)
		qp_timeout(conn->qp, now_ns, &conn->host->sink);
	/* The turn schedules the next event. */
	conn_make_ready(conn);
	host_turn(conn->host);
}

/* Schedule an event no later than the deadline. A deadline usually moves to later times; then the
 * event finds that it is early, and is scheduled again. */
static void conn_schedule(struct conn *conn)
{
	const uint64_t deadline_ns = qp_deadline_ns(conn->qp);

	if (deadline_ns >= conn->timer_ns)
		return;
	conn->timer_ns = deadline_ns;
	clock_at(&conn->host->fabric->clock, deadline_ns, conn_timer, conn,
		 (void *)(uintptr_t)deadline_ns);
}

static void host_poll(struct host *host)
{
	struct ibv_wc wc[POLL_MAX];
	int n;

	while ((n = cq_poll(host->cq, POLL_MAX, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS) {
				fprintf(stderr,
					"net: host %u, queue pair %u: a work request failed: "
					"status %d at %" PRIu64 " ns\n",
					host->number, wc[i].qp_num, wc[i].status,
					host->fabric->clock.now_ns);
				exit(3);
			}
			host->complete(host, &wc[i]);
		}
	}
}

/* Let queue pairs send in turn, one packet each, while the NIC's queue has room. */
static void host_turn(struct host *host)
{
	const uint64_t now_ns = host->fabric->clock.now_ns;
	struct conn *conn;

	/* Sending a frame calls for the next one (host_sent). */
	if (host->turns)
		return;
	host->turns = true;
	while (host->port.queued_bytes < NIC_QUEUE_BYTES &&
	       (conn = TAILQ_FIRST(&host->ready)) != NULL) {
		TAILQ_REMOVE(&host->ready, conn, ready);
		conn->is_ready = false;
		if (qp_run(conn->qp, now_ns, &host->sink, 1))
			conn_make_ready(conn);
		conn_schedule(conn);
	}
	host_poll(host);
	host->turns = false;
}

static void host_sent(void *node, struct port *port, const struct frame *frame)
{
	(void)port;
	(void)frame;
	host_turn(node);
}

static void host_take(struct host *host, struct frame *frame)
{
	struct qp *qp = NULL;

	memcpy(host->received, frame->bytes, frame->kept);
	device_receive(device_first(host->device), host->received, frame->len, FRAME_TRUSTED,
		       host->fabric->clock.now_ns, &qp);
	/* The other bytes of the next frame are zeros, too. */
	memset(host->received, 0, frame->kept);
	fabric_frame_free(host->fabric, frame);
	if (qp != NULL) {
		conn_schedule(qp_user(qp));
		conn_make_ready(qp_user(qp));
		host_turn(host);
	}
	host_poll(host);
}

/* Take the oldest frame of a slow host. */
static void host_wake(void *context, void *argument)
{
	struct host *host = context;
	struct clock *clock = &host->fabric->clock;
	struct frame *frame = STAILQ_FIRST(&host->came);

	(void)argument;
	STAILQ_REMOVE_HEAD(&host->came, link);
	if (!STAILQ_EMPTY(&host->came))
		clock_at(clock, clock->now_ns + host->delay.packet_ns, host_wake, host, NULL);
	host_take(host, frame);
}

static void host_receive(void *node, struct port *port, struct frame *frame)
{
	struct host *host = node;
	struct clock *clock = &host->fabric->clock;
	const bool sleeps = STAILQ_EMPTY(&host->came);
	double wake_ns;

	(void)port;
	if (host->delay.wake_ns == 0) {
		host_take(host, frame);
		return;
	}
	STAILQ_INSERT_TAIL(&host->came, frame, link);
	if (!sleeps)
		return;
	wake_ns = (double)host->delay.wake_ns *
		  -log(1 - (double)(rng_next(&host->rng) >> 11) / (double)(1ull << 53));
	clock_at(clock, clock->now_ns + (uint64_t)wake_ns, host_wake, host, NULL);
}

static const struct node_ops host_ops = {.receive = host_receive, .sent = host_sent};

static void host_mac(uint32_t number, uint8_t mac[6])
{
	memcpy(mac, (const uint8_t[]){2, 0, 0, 0, (uint8_t)(number >> 8), (uint8_t)number}, 6);
}

static void host_gid(uint32_t number, union ibv_gid *gid)
{
	*gid = (union ibv_gid){
		.raw = {[10] = 0xff, 0xff, 10, 9, (uint8_t)(number >> 8), (uint8_t)number}};
}

void host_init(struct host *host, struct fabric *fabric, uint32_t number, uint64_t mbps,
	       enum cc_kind cc, const struct host_delay *delay)
{
	struct device_config config = {.port_mtu_bytes = PORT_MTU_BYTES,
				       .link_mbps = mbps,
				       .cc = cc,
				       .unique = config.name};
	union ibv_gid gid;

	*host = (struct host){
		.number = number, .fabric = fabric, .delay = *delay, .rng = rng_fork(number, 1)};
	TAILQ_INIT(&host->ready);
	STAILQ_INIT(&host->came);
	snprintf(config.name, sizeof(config.name), "host%u", number);
	host_mac(number, config.mac);
	host_gid(number, &gid);
	must(device_create(&config, &host->device) == 0, "device_create");
	must(device_add_gid(host->device, &gid, -1, 0) == 0, "device_add_gid");
	must(pd_create(host->device->keys, &host->pd) == 0, "pd_create");
	must(mr_create_null(host->pd, &host->mr) == 0, "mr_create_null");
	must(cq_create_in(&(struct cq_attr){.cqe = CQE}, &host->cq) == 0, "cq_create_in");
	host->sink = (struct packet_sink){.get = host_get, .put = host_put};
	host->out.frame = malloc(PACKET_FRAME_MAX);
	host->received = calloc(1, PACKET_FRAME_MAX);
	must(host->out.frame != NULL && host->received != NULL, "no memory");
	host->port.ops = &host_ops;
	host->port.node = host;
	host->port.number = number;
}

void host_fini(struct host *host)
{
	struct frame *frame;

	while ((frame = STAILQ_FIRST(&host->came)) != NULL) {
		STAILQ_REMOVE_HEAD(&host->came, link);
		fabric_frame_free(host->fabric, frame);
	}
	must(cq_destroy(host->cq) == 0, "cq_destroy");
	must(mr_deregister(host->mr) == 0, "mr_deregister");
	must(pd_destroy(host->pd) == 0, "pd_destroy");
	device_destroy(host->device);
	free(host->out.frame);
	free(host->received);
}

static void conn_init(struct conn *conn, struct host *host, const struct conn_attr *attr)
{
	struct qp_init init = {
		.pd = host->pd,
		.send_cq = host->cq,
		.recv_cq = host->cq,
		.type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.home = device_first(host->device),
		.counters = &device_first(host->device)->counters,
		.ooo = attr->peer != CONN_PEER_DROPS ? device_first(host->device)->ooo : NULL,
		.sack = attr->peer == CONN_PEER_UROCE ? SACK_INTRODUCED : SACK_NEVER,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.window_max = attr->window_max,
		.cc = device_engine_cc(device_first(host->device)),
		.port_mtu = host->device->mtu,
		.user = conn};
	struct ibv_qp_cap granted;

	*conn = (struct conn){.host = host, .timer_ns = UINT64_MAX};
	conn->qpn = (uint32_t)device_alloc_qpn(device_first(host->device));
	init.qpn = conn->qpn;
	must(qp_create(&init, &granted, &conn->qp) == 0, "qp_create");
	device_set_qp(host->device, conn->qpn, conn->qp);
}

static void conn_modify(struct conn *conn, struct ibv_qp_attr *attr, enum ibv_qp_state state,
			const struct path *path)
{
	attr->qp_state = state;
	must(qp_modify(conn->qp, attr, raise_mask(IBV_QPT_RC, state), path) == 0, "qp_modify");
}

static void conn_connect(struct conn *conn, const struct conn *peer, const struct conn_attr *with)
{
	struct ibv_qp_attr attr = {.port_num = 1,
				   .path_mtu = with->mtu,
				   .dest_qp_num = peer->qpn,
				   .max_rd_atomic = 1,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = RNR_TIMER,
				   .timeout = with->timeout,
				   .retry_cnt = RETRIES,
				   .rnr_retry = RETRIES,
				   .ah_attr = {.is_global = 1, .port_num = 1}};
	struct path path;
	uint8_t mac[6];

	attr.ah_attr.grh.hop_limit = 64;
	host_gid(peer->host->number, &attr.ah_attr.grh.dgid);
	host_mac(peer->host->number, mac);
	must(device_make_path(conn->host->device, &attr.ah_attr, mac,
			      (uint16_t)(WIRE_UDP_SPORT_MIN + conn->qpn % UDP_SPORT_COUNT),
			      &path) == 0,
	     "device_make_path");
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++)
		conn_modify(conn, &attr, (enum ibv_qp_state)state, &path);
}

void conn_open(struct conn *a, struct host *host_a, struct conn *b, struct host *host_b,
	       const struct conn_attr *attr)
{
	conn_init(a, host_a, attr);
	conn_init(b, host_b, attr);
	conn_connect(a, b, attr);
	conn_connect(b, a, attr);
}

void conn_close(struct conn *conn)
{
	struct host *host = conn->host;

	if (conn->is_ready)
		TAILQ_REMOVE(&host->ready, conn, ready);
	device_set_qp(host->device, conn->qpn, NULL);
	qp_retire(conn->qp);
	qp_destroy(conn->qp);
	device_free_qpn(host->device, conn->qpn);
}

uint32_t conn_expected(const struct conn *conn)
{
	struct qp_view view;

	qp_look(conn->qp, &view);
	return view.rq_psn;
}

void conn_send(struct conn *conn, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = {.length = bytes, .lkey = conn->host->mr->key};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	must(qp_post_send(conn->qp, &wr, &bad) == 0, "qp_post_send");
	conn_make_ready(conn);
	host_turn(conn->host);
}

void conn_receive(struct conn *conn, uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = {.length = bytes, .lkey = conn->host->mr->key};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	must(qp_post_recv(conn->qp, &wr, &bad) == 0, "qp_post_recv");
}

uint64_t host_counted(const struct host *host, enum counter counter)
{
	return device_counter(host->device, counter);
}
