/* SPDX-License-Identifier: BSD-3-Clause */
/* A real device on a port without a wire. */
#include "live.h"

#include <stdio.h>

#include "config/settings.h"
#include "raise_qp.h"
#include "test.h"

#define PSN_STEP      0x12345
#define PSN_MASK      0xffffff
#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct ibv_context *live_context;

static bool give_settings(const char *mtu)
{
	const char *engines = getenv("LIVE_ENGINES");
	struct settings settings;
	char error[256];

	settings_init(&settings);
	return settings_set(&settings, "port", "net_null0", error, sizeof(error)) == 0 &&
	       settings_set(&settings, "ip", "10.0.0.1/24", error, sizeof(error)) == 0 &&
	       settings_set(&settings, "mtu", mtu, error, sizeof(error)) == 0 &&
	       settings_set(&settings, "engines", engines ? engines : "1", error, sizeof(error)) ==
		       0 &&
	       settings_export(&settings) == 0;
}

struct ibv_context *live_open(const char *mtu)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;

	if (!give_settings(mtu))
		return NULL;
	list = ibv_get_device_list(NULL);
	if (list && list[0])
		context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return context;
}

int live_set_up(TEST_STATE)
{
	live_context = live_open("1500");
	return live_context ? 0 : -1;
}

int live_tear_down(TEST_STATE)
{
	return ibv_close_device(live_context);
}

bool live_connect(struct ibv_qp *qp, uint32_t dest_qpn, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = REMOTE_ACCESS,
		.dest_qp_num = dest_qpn,
		.rq_psn = psn,
		.sq_psn = psn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1},
	};
	struct ibv_port_attr port;

	if (ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid) != 0 ||
	    ibv_query_port(qp->context, 1, &port) != 0)
		return false;
	attr.path_mtu = port.active_mtu;
	return raise_qp(qp, &attr) == 0;
}

/* Connect with other PSNs each time: packets of the last connection may still be on their way. */
static bool connect_both(struct lane *lane)
{
	const uint32_t psn = lane->psn;

	lane->psn = (psn + PSN_STEP) & PSN_MASK;
	return live_connect(lane->a, lane->b->qp_num, psn) &&
	       live_connect(lane->b, lane->a->qp_num, psn);
}

bool lane_open(struct lane *lane, struct ibv_context *context)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = LIVE_WR_MAX,
			.max_recv_wr = LIVE_WR_MAX,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	lane->psn = 0;
	lane->pd = ibv_alloc_pd(context);
	lane->cq = ibv_create_cq(context, 4 * LIVE_WR_MAX, NULL, NULL, 0);
	if (!lane->pd || !lane->cq)
		return false;
	init.send_cq = lane->cq;
	init.recv_cq = lane->cq;
	lane->a = ibv_create_qp(lane->pd, &init);
	lane->b = ibv_create_qp(lane->pd, &init);
	return lane->a && lane->b && connect_both(lane);
}

bool lane_close(struct lane *lane)
{
	return ibv_destroy_qp(lane->a) == 0 && ibv_destroy_qp(lane->b) == 0 &&
	       ibv_destroy_cq(lane->cq) == 0 && ibv_dealloc_pd(lane->pd) == 0;
}

bool lane_again(struct lane *lane)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	return ibv_modify_qp(lane->a, &reset, IBV_QP_STATE) == 0 &&
	       ibv_modify_qp(lane->b, &reset, IBV_QP_STATE) == 0 && connect_both(lane);
}

bool lane_send(struct lane *lane, struct ibv_send_wr wr, struct ibv_sge *sge)
{
	struct ibv_send_wr *bad;

	wr.send_flags |= IBV_SEND_SIGNALED;
	wr.sg_list = sge;
	wr.num_sge = sge != NULL;
	return ibv_post_send(lane->a, &wr, &bad) == 0;
}

bool lane_recv(struct lane *lane, struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 1}, *bad;

	return ibv_post_recv(lane->b, &wr, &bad) == 0;
}

int lane_wait(struct lane *lane, unsigned int count)
{
	struct ibv_wc wc;
	int successes = 0;

	while (count > 0) {
		const int n = ibv_poll_cq(lane->cq, 1, &wc);

		if (n < 0)
			return -1;
		if (n > 0) {
			successes += wc.status == IBV_WC_SUCCESS;
			count--;
		}
	}
	return successes;
}
