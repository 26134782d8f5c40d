/* SPDX-License-Identifier: BSD-3-Clause */
/* The passive side of a test. */
#include "passive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_conn.h"
#include "mode.h"
#include "nic.h"
#include "pattern.h"

#define POLL_MAX 32
#define QP_SHIFT 32 /* of wr_id: queue pair above, number of the receive request below */

void passive_init(struct passive *passive, struct nic *nic)
{
	memset(passive, 0, sizeof(*passive));
	passive->nic = nic;
}

void passive_close(struct passive *passive)
{
	if (!passive->open)
		return;
	nic_set_loss(passive->nic, 0, 0);
	endpoint_destroy(&passive->endpoint);
	free(passive->expected);
	free(passive->state);
	passive_init(passive, passive->nic);
}

static void passive_shape(const struct plan *plan, struct endpoint_config *config)
{
	struct endpoint_config active = {.qps = (uint32_t)plan->qps};

	*config = (struct endpoint_config){.qps = (uint32_t)plan->qps,
					   .send_wr = 1,
					   .timeout = plan_timeout(plan),
					   .path_mtu_bytes = (uint32_t)plan->path_mtu_bytes};
	modes[plan->mode]->shape(plan, &active, config);
}

static int passive_open(struct passive *passive, struct control_message *message)
{
	const struct plan *plan = &message->u.open.plan;
	struct endpoint_config config;
	struct plan sized = *plan;
	int rc;

	if (passive->open)
		return -EBUSY;
	if (plan->threads != 1)
		return -EPROTO;
	rc = plan_check(plan, message->text, sizeof(message->text));
	if (rc != 0)
		return rc;
	if (nic_set_loss(passive->nic, plan->loss_ppm, plan->seed) != 0) {
		snprintf(message->text, sizeof(message->text), LOSS_REFUSED);
		return -ENOTSUP;
	}
	passive->open = true;
	nic_without(passive->nic, plan->without);
	passive->plan = *plan;
	passive->mode = modes[plan->mode];
	passive->peer = message->u.open.facts;
	passive->expected = calloc(plan->qps, sizeof(passive->expected[0]));
	if (!passive->expected)
		return -ENOMEM;
	passive_shape(plan, &config);
	if (config.shared_receive)
		sized.qps = 1;
	passive->slots = plan_slots(&sized, config.recv_wr > 0 ? config.recv_wr : plan->depth + 1);
	rc = endpoint_create(&passive->endpoint, passive->nic, &config, message->text,
			     sizeof(message->text));
	if (rc == 0 && passive->mode->serve_begin)
		rc = passive->mode->serve_begin(passive);
	if (rc == 0)
		endpoint_tell(&passive->endpoint, &message->u.open.facts);
	return rc;
}

static int passive_join_one(struct passive *passive, uint32_t *qpn)
{
	const uint32_t qp = passive->endpoint.qp_count;
	int rc = endpoint_add_qp(&passive->endpoint);

	/* Prepare the queue pair before the peer learns its QPN, so that no message arrives without
	 * a receive request. */
	if (rc == 0)
		rc = endpoint_connect(&passive->endpoint, qp, &passive->peer.gid, *qpn);
	if (rc == 0 && passive->mode->serve_qp)
		rc = passive->mode->serve_qp(passive, qp);
	if (rc != 0)
		return rc;
	*qpn = passive->endpoint.qps[qp]->qp_num;
	passive->connected++;
	return 0;
}

static int passive_join(struct passive *passive, struct control_message *message)
{
	int rc = 0;

	if (!passive->open || message->u.join.count > CONTROL_QPS_MAX ||
	    message->u.join.first != passive->endpoint.qp_count)
		return -EPROTO;
	for (uint32_t i = 0; rc == 0 && i < message->u.join.count; i++)
		rc = passive_join_one(passive, &message->u.join.qpns[i]);
	return rc;
}

/* Drain the queues and report the counts. The peer already has acknowledgements for the messages in
 * them. */
static int passive_end(struct passive *passive, struct control_message *message)
{
	int rc;

	if (!passive->open)
		return -EPROTO;
	passive_poll(passive);
	passive->sent_by_peer = message->u.close.messages;
	if (passive->failed == 0 && passive->mode->serve_end)
		passive->mode->serve_end(passive);
	message->u.close.messages = passive->messages;
	message->u.close.wrong = passive->wrong;
	rc = passive->failed;
	passive_close(passive);
	return rc;
}

void passive_answer(struct passive *passive, struct control_message *message)
{
	int rc = -EPROTO;

	switch (message->kind) {
	case CONTROL_OPEN:
		rc = passive_open(passive, message);
		break;
	case CONTROL_JOIN:
		rc = passive_join(passive, message);
		break;
	case CONTROL_CLOSE:
		rc = passive_end(passive, message);
		break;
	default:
		break;
	}
	message->status = rc;
	if (rc != 0 && message->text[0] == '\0')
		snprintf(message->text, sizeof(message->text), "the server: %s", strerror(-rc));
	if (rc != 0)
		passive_close(passive);
}

/* A mode uses all queue pairs of its plan, and a message may arrive before all have joined. */
void passive_poll(struct passive *passive)
{
	if (!passive->open || passive->failed != 0 || !passive->mode->serve_poll ||
	    passive->connected < passive->plan.qps)
		return;
	passive->failed = passive->mode->serve_poll(passive);
}

static int passive_post_receive(struct passive *passive, uint32_t qp, uint32_t number)
{
	const struct endpoint *endpoint = &passive->endpoint;
	struct ibv_sge sge = {
		.addr = (uintptr_t)endpoint->memory + slot_of(&passive->slots, qp, number),
		.length = (uint32_t)passive->plan.size_bytes,
		.lkey = endpoint->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = (uint64_t)qp << QP_SHIFT | number, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return endpoint->srq ? -ibv_post_srq_recv(endpoint->srq, &wr, &bad)
			     : -ibv_post_recv(endpoint->qps[qp], &wr, &bad);
}

int passive_post_receives(struct passive *passive, unsigned int qp)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < passive->endpoint.config.recv_wr; i++)
		rc = passive_post_receive(passive, qp, i);
	return rc;
}

int passive_receive(struct passive *passive)
{
	const struct endpoint *endpoint = &passive->endpoint;
	struct ibv_wc wc[POLL_MAX];
	int n, rc = 0;

	do {
		n = ibv_poll_cq(endpoint->cq, POLL_MAX, wc);
		for (int i = 0; rc == 0 && i < n; i++) {
			const uint32_t qp = (uint32_t)(wc[i].wr_id >> QP_SHIFT);
			const uint32_t number = (uint32_t)wc[i].wr_id;

			if (wc[i].status != IBV_WC_SUCCESS)
				return -EIO;
			passive->messages++;
			if (wc[i].byte_len != passive->plan.size_bytes)
				passive->wrong++;
			if (passive->plan.verify && passive->mode->check_message)
				passive->mode->check_message(
					passive, qp,
					endpoint->memory + slot_of(&passive->slots, qp, number));
			rc = passive_post_receive(passive, qp, number);
		}
	} while (rc == 0 && n == POLL_MAX);
	return n < 0 ? -EIO : rc;
}

void passive_check_message(struct passive *passive, uint32_t qp, void *bytes)
{
	uint64_t tag;

	if (!pattern_check(bytes, passive->plan.size_bytes, passive->plan.seed, &tag) ||
	    tag != pattern_tag(qp, passive->expected[qp]))
		passive->wrong++;
	passive->expected[qp]++;
}

void passive_count_messages(struct passive *passive)
{
	if (passive->messages != passive->sent_by_peer)
		passive->wrong++;
}
