/* SPDX-License-Identifier: BSD-3-Clause */
/* Creating queue pairs and moving them through their states, as an application does through verbs.
 */
#include <errno.h>

#include "device/device.h"
#include "qp/qp.h"
#include "queue/cq.h"
#include "sim.h"
#include "wire/headers.h"

static void connect_create(struct end *end)
{
	struct host *host = end->host;
	struct device *device = host->device;
	struct sim *sim = host->sim;
	const int qpn = device_alloc_qpn(device);
	struct qp_init init = {.pd = host->pd,
			       .send_cq = host->cqs[end->send_cq].cq,
			       .recv_cq = host->cqs[end->recv_cq].cq,
			       .srq = host->pool.srq,
			       .cap = end->cap,
			       .type = IBV_QPT_RC,
			       .sig_all = end->sig_all,
			       .qpn = (uint32_t)qpn,
			       .counters = &device->counters,
			       .early = host->keeps ? device->early : NULL,
			       .max_rd_atomic = 16,
			       .max_dest_rd_atomic = 16,
			       .port_mtu = device->mtu,
			       .event = check_event,
			       .user = end};
	struct ibv_qp_cap granted;

	sim_check(sim, qpn > 0, "device_alloc_qpn: %d", qpn);
	sim_check(sim, qp_create(&init, &granted, &end->qp) == 0, "qp_create");
	sim_check(sim,
		  granted.max_send_wr >= end->cap.max_send_wr &&
			  granted.max_send_sge >= end->cap.max_send_sge &&
			  (host->pool.in_use || (granted.max_recv_wr >= end->cap.max_recv_wr &&
						 granted.max_recv_sge >= end->cap.max_recv_sge)) &&
			  granted.max_inline_data >= end->cap.max_inline_data,
		  "qp_create grants less than asked for");
	end->qpn = (uint32_t)qpn;
	device->ops->lock(device->engine);
	device_set_qp(device, end->qpn, end->qp);
	device->ops->attach(device->engine, end->qp);
	device->ops->unlock(device->engine);
}

static void fill_rtr(const struct end *end, struct ibv_qp_attr *attr)
{
	attr->path_mtu = end->mtu;
	attr->dest_qp_num = end->peer->qpn;
	attr->rq_psn = end->peer->sq_psn;
	attr->max_dest_rd_atomic = end->max_dest_rd_atomic;
	attr->min_rnr_timer = end->min_rnr_timer;
	attr->ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	attr->ah_attr.grh.dgid = end->peer->host->gid;
	attr->ah_attr.grh.hop_limit = 64;
	attr->ah_attr.grh.flow_label = end->qpn & 0xfffff;
	attr->ah_attr.grh.traffic_class = (uint8_t)(end->number << 2);
}

static int fill(const struct end *end, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){.qp_state = state, .port_num = 1};
	switch (state) {
	case IBV_QPS_INIT:
		attr->qp_access_flags = end->access;
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	case IBV_QPS_RTR:
		fill_rtr(end, attr);
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPS_RTS:
		/* From SQD nothing is needed. */
		if (qp_state(end->qp) == IBV_QPS_SQD)
			return IBV_QP_STATE;
		attr->sq_psn = end->sq_psn;
		attr->max_rd_atomic = end->max_rd_atomic;
		attr->timeout = end->timeout;
		attr->retry_cnt = end->retry_cnt;
		attr->rnr_retry = end->rnr_retry;
		return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
		       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	case IBV_QPS_SQD:
		attr->en_sqd_async_notify = 1;
		return IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;
	default:
		return IBV_QP_STATE;
	}
}

void connect_modify(struct end *end, enum ibv_qp_state state)
{
	struct device *device = end->host->device;
	struct sim *sim = end->host->sim;
	struct ibv_qp_attr attr;
	const int mask = fill(end, state, &attr);
	struct path path = {0};
	uint8_t mac[6];
	int err;

	if (mask & IBV_QP_AV) {
		err = device->ops->resolve(device->engine, 0, &attr.ah_attr.grh.dgid, mac);
		sim_check(sim, err == 0, "resolve: %d", err);
		err = device_make_path(device, &attr.ah_attr, mac,
				       (uint16_t)(WIRE_UDP_SPORT_MIN | (end->qpn & 0x3fff)), &path);
		sim_check(sim, err == 0, "device_make_path: %d", err);
	}
	device->ops->lock(device->engine);
	err = qp_modify(end->qp, &attr, mask, &path);
	device->ops->unlock(device->engine);
	sim_check(sim, err == 0, "qp %06x: modify to state %d: %d", end->qpn, (int)state, err);
	sim_check(sim, qp_state(end->qp) == state, "qp %06x: not in state %d", end->qpn,
		  (int)state);
	host_kick(end);
}

bool end_sends(const struct end *end)
{
	const enum ibv_qp_state state = qp_state(end->qp);

	return state != IBV_QPS_RESET && state != IBV_QPS_INIT && state != IBV_QPS_RTR;
}

void connect_create_all(struct sim *sim)
{
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		connect_create(&sim->end[i]);
}

/* The next state on the way to RTS. */
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
 * A peer that is in RTS already may send: what comes in RTR is received, what comes in INIT is
 * dropped, and sent again where the sender has a timer.
 */
static bool connect_later(struct sim *sim, struct end *end)
{
	if (sim->scenario != SCENARIO_SOUND || sim->tight || !rng_chance(&sim->rng, 100000))
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

	device->ops->lock(device->engine);
	device->ops->detach(device->engine, end->qp);
	device_set_qp(device, end->qpn, NULL);
	qp_destroy(end->qp);
	device->ops->unlock(device->engine);
	device_free_qpn(device, end->qpn);
	end->qp = NULL;
}
