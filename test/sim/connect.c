/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates queue pairs and moves them through their states, as an application does through verbs. */
#include <errno.h>

#include "device/device.h"
#include "device/device_share.h"
#include "device/limits.h"
#include "device/mcast.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "raise_qp.h"
#include "sim.h"
#include "wire/headers.h"

static bool receives(const struct end *end)
{
	return end->type != IBV_QPT_XRC_SEND && end->type != IBV_QPT_XRC_RECV;
}

static void fill_init(const struct end *end, struct qp_init *init)
{
	const struct host *host = end->host;

	init->queues = &host->rings.domain;
	if (end->type == IBV_QPT_XRC_RECV) {
		init->pd = xrcd_pd(host->xrcd);
		init->find_srq = xrcd_find_srq;
		init->domain = host->xrcd;
		return;
	}
	init->pd = host->pd;
	init->send_cq = host->cqs[end->send_cq].cq;
	if (receives(end)) {
		init->recv_cq = host->cqs[end->recv_cq].cq;
		init->srq = host->pools[POOL_SHARED].srq;
	}
}

/* Return the engine of a new queue pair (lib/verbs/home.c). */
static struct device_engine *home_of(const struct end *end)
{
	const struct host *host = end->host;

	return end->type == IBV_QPT_XRC_RECV ? device_first(host->device)
					     : host->cqs[end->send_cq].home;
}

/* Let the queues of a new queue pair serve its engine. */
static void join(const struct end *end, const struct qp_init *init)
{
	struct host *host = end->host;
	const uint32_t own = init->send_cq == init->recv_cq ? 2 : 1;

	if (init->send_cq != NULL)
		device_share_cq(init->send_cq, &host->cqs[end->send_cq].home, init->home, own);
	if (init->recv_cq != NULL)
		device_share_cq(init->recv_cq, &host->cqs[end->recv_cq].home, init->home, own);
	if (init->srq != NULL)
		device_share_srq(init->srq, &host->pools[POOL_SHARED].home, init->home);
}

static void connect_create(struct end *end)
{
	struct host *host = end->host;
	struct device *device = host->device;
	struct sim *sim = host->sim;
	struct device_engine *home = home_of(end);
	const int qpn = device_alloc_qpn(home);
	struct qp_init init = {.cap = end->cap,
			       .type = end->type,
			       .sig_all = end->sig_all,
			       .qpn = (uint32_t)qpn,
			       .home = home,
			       .counters = &home->counters,
			       .ooo = host->keeps ? home->ooo : NULL,
			       .max_rd_atomic = DEVICE_MAX_RD_ATOMIC,
			       .max_dest_rd_atomic = DEVICE_MAX_RD_ATOMIC,
			       .window_max = (uint16_t)sim->variant.window,
			       .cc = device_engine_cc(home),
			       .sack = host->sack,
			       .waiting = &home->waiting,
			       .max_rate_kbps = UINT32_MAX,
			       .port_mtu = device->mtu,
			       .event = check_event,
			       .user = end};
	struct ibv_qp_cap granted;

	sim_check(sim, qpn > 0, "device_alloc_qpn: %d", qpn);
	fill_init(end, &init);
	sim_check(sim, qp_create(&init, &granted, &end->qp) == 0, "qp_create");
	sim_check(sim,
		  end->type == IBV_QPT_XRC_RECV ||
			  (granted.max_send_wr >= end->cap.max_send_wr &&
			   granted.max_send_sge >= end->cap.max_send_sge &&
			   granted.max_inline_data >= end->cap.max_inline_data),
		  "qp_create grants less to send than asked for");
	sim_check(sim,
		  !receives(end) || init.srq != NULL ||
			  (granted.max_recv_wr >= end->cap.max_recv_wr &&
			   granted.max_recv_sge >= end->cap.max_recv_sge),
		  "qp_create grants less to receive than asked for");
	end->qpn = (uint32_t)qpn;
	device_lock(device);
	if (end->type == IBV_QPT_XRC_RECV) {
		end->member.qp = end->qp;
		xrcd_add_qp(host->xrcd, &end->member);
	}
	device_set_qp(device, end->qpn, end->qp);
	if (device->engine_count > 1)
		join(end, &init);
	home->ops->attach(home->driver, end->qp);
	device_unlock(device);
	if (end->in_group)
		sim_check(sim, mcast_attach(device, &sim->group, end->qp, false) >= 0,
			  "mcast_attach");
}

#define QKEY 0x1ee7cafeu

static void fill_av(const struct end *end, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	attr->grh.dgid = end->out->group ? end->host->sim->group : end->peer->host->gid;
	attr->grh.hop_limit = 64;
	attr->grh.flow_label = end->qpn & 0xfffff;
	attr->grh.traffic_class = (uint8_t)(end->number << 2);
}

static int fill_init_state(const struct end *end, struct ibv_qp_attr *attr)
{
	attr->qp_access_flags = end->access;
	attr->qkey = QKEY;
	return raise_mask(end->type, IBV_QPS_INIT);
}

static int fill_rtr(const struct end *end, struct ibv_qp_attr *attr)
{
	attr->path_mtu = end->mtu;
	attr->dest_qp_num = end->peer->qpn;
	attr->rq_psn = end->peer->sq_psn;
	attr->max_dest_rd_atomic = end->max_dest_rd_atomic;
	attr->min_rnr_timer = end->min_rnr_timer;
	fill_av(end, &attr->ah_attr);
	return raise_mask(end->type, IBV_QPS_RTR);
}

static int fill_rts(const struct end *end, struct ibv_qp_attr *attr)
{
	attr->sq_psn = end->sq_psn;
	attr->max_rd_atomic = end->max_rd_atomic;
	attr->timeout = end->timeout;
	attr->retry_cnt = end->retry_cnt;
	attr->rnr_retry = end->rnr_retry;
	return raise_mask(end->type, IBV_QPS_RTS);
}

static int fill(struct end *end, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	int mask;

	*attr = (struct ibv_qp_attr){.qp_state = state, .port_num = 1};
	switch (state) {
	case IBV_QPS_INIT:
		return fill_init_state(end, attr);
	case IBV_QPS_RTR:
		return fill_rtr(end, attr);
	case IBV_QPS_RTS:
		/* The change from SQD needs no attribute. */
		if (qp_state(end->qp) == IBV_QPS_SQD)
			return IBV_QP_STATE;
		mask = fill_rts(end, attr);
		if (end->type == IBV_QPT_XRC_RECV)
			return mask;
		attr->rate_limit = end->rate_kbps;
		end->paced_bytes = 0;
		return mask | IBV_QP_RATE_LIMIT;
	case IBV_QPS_SQD:
		attr->en_sqd_async_notify = 1;
		return IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;
	default:
		return IBV_QP_STATE;
	}
}

/* Return the headers of the path to the peer. */
static void make_path(const struct end *end, const struct ibv_ah_attr *attr, struct path *path)
{
	struct device *device = end->host->device;
	struct sim *sim = end->host->sim;
	uint8_t mac[6];
	int err = host_resolve(end->host, &attr->grh.dgid, mac);

	sim_check(sim, err == 0, "resolve: %d", err);
	err = device_make_path(device, attr, mac,
			       (uint16_t)(WIRE_UDP_SPORT_MIN | (end->qpn & 0x3fff)), path);
	sim_check(sim, err == 0, "device_make_path: %d", err);
}

void connect_modify(struct end *end, enum ibv_qp_state state)
{
	struct device *device = end->host->device;
	struct sim *sim = end->host->sim;
	struct ibv_qp_attr attr;
	const int mask = fill(end, state, &attr);
	struct path path = {0};
	int err;

	if (mask & IBV_QP_AV)
		make_path(end, &attr.ah_attr, &path);
	device_lock(device);
	err = qp_modify(end->qp, &attr, mask, &path);
	device_unlock(device);
	sim_check(sim, err == 0, "qp %06x: modify to state %d: %d", end->qpn, (int)state, err);
	sim_check(sim, qp_state(end->qp) == state, "qp %06x: not in state %d", end->qpn,
		  (int)state);
	engine_kick(end);
}

void connect_path(const struct end *end, struct path *path)
{
	struct ibv_ah_attr attr;

	fill_av(end, &attr);
	make_path(end, &attr, path);
}

bool end_sends(const struct end *end)
{
	const enum ibv_qp_state state = qp_state(end->qp);

	return state != IBV_QPS_RESET && state != IBV_QPS_INIT && state != IBV_QPS_RTR;
}

void connect_create_all(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct end *end = &sim->end[i];
		struct ibv_ah_attr attr;

		connect_create(end);
		if (end->type != IBV_QPT_UD)
			continue;
		fill_av(end, &attr);
		make_path(end, &attr, &end->ah.path);
	}
}

void connect_address(const struct end *end, struct ibv_send_wr *wr)
{
	if (end->type == IBV_QPT_XRC_SEND)
		wr->qp_type.xrc.remote_srqn = end->peer->host->pools[POOL_XRC].srq->number;
	if (end->type != IBV_QPT_UD)
		return;
	wr->wr.ud.ah = (struct ibv_ah *)(uintptr_t)&end->ah.ibv;
	wr->wr.ud.remote_qpn = end->out->group ? WIRE_QPN_MULTICAST : end->peer->qpn;
	wr->wr.ud.remote_qkey = QKEY;
}

/* Return the next state on the way to RTS. */
static void connect_advance(void *context, void *argument)
{
	struct end *end = context;
	struct sim *sim = end->host->sim;

	(void)argument;
	if (sim->halted)
		return;
	if (qp_state(end->qp) == IBV_QPS_INIT) {
		connect_modify(end, IBV_QPS_RTR);
		clock_at(&sim->clock, sim->clock.now_ns + rng_below(&sim->rng, sim->est_ns),
			 connect_advance, end, NULL);
		return;
	}
	connect_modify(end, IBV_QPS_RTS);
	end->unconnected = false;
}

/*
 * A peer that is in RTS already may send. A packet that comes in RTR is received; one that comes in
 * INIT is dropped, and retransmitted if the sender has a timer.
 */
static bool connect_later(struct sim *sim, struct end *end)
{
	if (sim->scenario != SCENARIO_SOUND || sim->tight || end->in->exact ||
	    !rng_chance(&sim->rng, 100000))
		return false;
	if (end->peer->timeout == 0 || rng_chance(&sim->rng, 500000))
		connect_modify(end, IBV_QPS_RTR);
	clock_at(&sim->clock, sim->clock.now_ns + rng_below(&sim->rng, sim->est_ns),
		 connect_advance, end, NULL);
	return true;
}

void connect_all(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		connect_modify(&sim->end[i], IBV_QPS_INIT);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		struct end *end = &sim->end[i];

		end->unconnected = connect_later(sim, end);
		end->late = end->unconnected;
		if (!end->unconnected)
			connect_modify(end, IBV_QPS_RTR);
	}
	for (unsigned int i = 0; i < 2 * sim->pairs; i++) {
		if (!sim->end[i].unconnected)
			connect_modify(&sim->end[i], IBV_QPS_RTS);
	}
}

void connect_destroy(struct end *end)
{
	struct device *device = end->host->device;

	if (end->in_group)
		sim_check(end->host->sim,
			  mcast_detach(device, &end->host->sim->group, end->qp) == 0,
			  "mcast_detach");
	device_lock(device);
	end->engine->home->ops->detach(end->engine, end->qp);
	device_set_qp(device, end->qpn, NULL);
	if (end->type == IBV_QPT_XRC_RECV)
		xrcd_remove_qp(&end->member);
	qp_retire(end->qp);
	qp_destroy(end->qp);
	device_unlock(device);
	device_free_qpn(device, end->qpn);
	end->qp = NULL;
}
