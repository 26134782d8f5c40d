/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode latency: one message at a time. For WRITE and SEND the peer sends a message back, and half
 * of the round-trip time counts. For READ and atomics the peer's device responds, and the whole
 * time counts. The receiver of a WRITE polls the last byte of the message in memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rte_cycles.h>

#include "histogram.h"
#include "mode.h"
#include "passive.h"
#include "pattern.h"
#include "run.h"

#define QUEUE_WR     64
#define RECEIVES     2
#define SIGNAL_EVERY 16
#define POLL_MAX     4
#define RECV_BIT     (UINT64_C(1) << 63) /* of wr_id: a receive request */

/* One of the two sides. Both do the same, in turn. */
struct pinger {
	struct endpoint *endpoint;
	const struct plan *plan;
	const struct endpoint_facts *peer;
	struct slots slots; /* of incoming messages; outgoing ones follow them in the region */
	uint64_t sent;	    /* messages; the n-th is on queue pair n % qps */
	uint64_t received;
	uint64_t arrived; /* completions of receive requests, READs and atomics */
	uint64_t begin_tsc;
	uint64_t wrong;
	int status;
};

static bool is_round_trip(const struct plan *plan)
{
	return plan->op == PLAN_OP_WRITE || plan->op == PLAN_OP_SEND;
}

static uint32_t qp_of(const struct pinger *pinger, uint64_t n)
{
	return (uint32_t)(n % pinger->plan->qps);
}

static uint8_t *in_of(const struct pinger *pinger, uint64_t n)
{
	return pinger->endpoint->memory + slot_of(&pinger->slots, qp_of(pinger, n), 0);
}

static uint8_t *out_of(const struct pinger *pinger, uint64_t n)
{
	return in_of(pinger, n) + slots_bytes(&pinger->slots);
}

/* Return the last byte of the n-th message. It differs between successive messages in one slot, and
 * from the 0 that the slot holds before the first message. */
static uint8_t last_byte(const struct pinger *pinger, uint64_t n)
{
	return (uint8_t)(1 + n / pinger->plan->qps % 255);
}

static int pinger_post_receive(const struct pinger *pinger, uint32_t qp)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)in_of(pinger, qp),
		.length = (uint32_t)pinger->plan->size_bytes,
		.lkey = pinger->endpoint->mr->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = RECV_BIT, .sg_list = &sge, .num_sge = 1}, *bad;

	return -ibv_post_recv(pinger->endpoint->qps[qp], &wr, &bad);
}

static struct pinger *pinger_new(struct endpoint *endpoint, const struct plan *plan,
				 const struct endpoint_facts *peer)
{
	struct pinger *pinger = calloc(1, sizeof(*pinger));

	if (!pinger)
		return NULL;
	pinger->endpoint = endpoint;
	pinger->plan = plan;
	pinger->peer = peer;
	pinger->slots = plan_slots(plan, RECEIVES);
	return pinger;
}

static void pinger_fill(const struct pinger *pinger, uint8_t *at, uint64_t n)
{
	const uint64_t size = pinger->plan->size_bytes;

	if (pinger->plan->verify && pinger->plan->op != PLAN_OP_ATOMIC)
		pattern_fill(at, size - 1, pinger->plan->seed, n);
	at[size - 1] = last_byte(pinger, n);
}

/* Check the content of a message. A READ returns what the first message of its queue pair would
 * hold. */
static void pinger_check(struct pinger *pinger, uint64_t n)
{
	const uint8_t *at = is_round_trip(pinger->plan) ? in_of(pinger, n) : out_of(pinger, n);
	const uint64_t wanted = pinger->plan->op == PLAN_OP_READ ? qp_of(pinger, n) : n;
	uint64_t tag;

	if (!pinger->plan->verify)
		return;
	if (pinger->plan->op == PLAN_OP_ATOMIC) {
		memcpy(&tag, at, sizeof(tag));
		pinger->wrong += tag != n / pinger->plan->qps;
	} else if (!pattern_check(at, pinger->plan->size_bytes - 1, pinger->plan->seed, &tag) ||
		   tag != wanted || at[pinger->plan->size_bytes - 1] != last_byte(pinger, wanted)) {
		pinger->wrong++;
	}
}

static int pinger_send(struct pinger *pinger)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[PLAN_OP_WRITE] = IBV_WR_RDMA_WRITE,
		[PLAN_OP_READ] = IBV_WR_RDMA_READ,
		[PLAN_OP_SEND] = IBV_WR_SEND,
		[PLAN_OP_ATOMIC] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	const struct plan *plan = pinger->plan;
	const uint64_t n = pinger->sent++;
	uint8_t *out = out_of(pinger, n);
	struct ibv_sge sge = {
		.addr = (uintptr_t)out,
		.length = (uint32_t)plan->size_bytes,
		.lkey = pinger->endpoint->mr->lkey,
	};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcodes[plan->op]}, *bad;

	if (is_round_trip(plan)) {
		pinger_fill(pinger, out, n);
		if (plan->size_bytes <= plan->inline_bytes)
			wr.send_flags |= IBV_SEND_INLINE;
	} else if (plan->verify) {
		memset(out, 0xff, plan->size_bytes);
	}
	if (!is_round_trip(plan) || n / plan->qps % SIGNAL_EVERY == SIGNAL_EVERY - 1)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (plan->op == PLAN_OP_ATOMIC) {
		wr.wr.atomic.remote_addr =
			pinger->peer->addr + slot_of(&pinger->slots, qp_of(pinger, n), 0);
		wr.wr.atomic.rkey = (uint32_t)pinger->peer->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr =
			pinger->peer->addr + slot_of(&pinger->slots, qp_of(pinger, n), 0);
		wr.wr.rdma.rkey = (uint32_t)pinger->peer->rkey;
	}
	return -ibv_post_send(pinger->endpoint->qps[qp_of(pinger, n)], &wr, &bad);
}

static int pinger_poll(struct pinger *pinger)
{
	struct ibv_wc wc[POLL_MAX];
	const int n = ibv_poll_cq(pinger->endpoint->cq, POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			pinger->status = (int)wc[i].status;
			return -EIO;
		}
		pinger->arrived += (wc[i].wr_id & RECV_BIT) || !is_round_trip(pinger->plan);
	}
	return n < 0 ? -EIO : 0;
}

/* Look for the next message, and check it. Returns 1 if it has come, 0 if not, or -errno. */
static int pinger_take(struct pinger *pinger)
{
	const uint64_t n = pinger->received;
	const uint8_t *last = in_of(pinger, n) + pinger->plan->size_bytes - 1;
	int rc = pinger_poll(pinger);

	if (rc != 0)
		return rc;
	/* Acquire: the other bytes of a message are read after its last one. */
	if (pinger->plan->op == PLAN_OP_WRITE
		    ? __atomic_load_n(last, __ATOMIC_ACQUIRE) != last_byte(pinger, n)
		    : pinger->arrived == n)
		return 0;
	pinger->received++;
	pinger_check(pinger, n);
	if (pinger->plan->op == PLAN_OP_SEND)
		rc = pinger_post_receive(pinger, qp_of(pinger, n));
	return rc == 0 ? 1 : rc;
}

static int latency_begin(struct run *run)
{
	struct pinger *pinger = pinger_new(&run->endpoint, &run->plan, &run->peer);
	int rc = 0;

	if (!pinger)
		return -ENOMEM;
	run->state = pinger;
	for (uint32_t qp = 0; rc == 0 && run->plan.op == PLAN_OP_SEND && qp < run->plan.qps; qp++)
		rc = pinger_post_receive(pinger, qp);
	return rc;
}

static int latency_poll(struct run *run)
{
	struct pinger *pinger = run->state;
	uint64_t tsc;
	int rc = 0;

	if (pinger->sent == pinger->received) {
		if (run->stopping || (run->plan.messages > 0 && run->posted == run->plan.messages))
			return 0;
		run->posted++;
		pinger->begin_tsc = rte_rdtsc();
		rc = pinger_send(pinger);
	}
	if (rc == 0)
		rc = pinger_take(pinger);
	if (rc == 1) {
		tsc = rte_rdtsc() - pinger->begin_tsc;
		run_add_latency(run, is_round_trip(&run->plan) ? tsc / 2 : tsc);
		count_add(&run->completed, 1);
	}
	count_set(&run->wrong, pinger->wrong);
	run->status = pinger->status;
	return rc < 0 ? rc : 0;
}

/* Return the completed messages of a queue pair. The queue pairs take turns. */
static uint64_t latency_qp_messages(const struct run *run, uint32_t qp)
{
	return (count_get(&run->completed) + run->plan.qps - 1 - qp) / run->plan.qps;
}

static void latency_end(struct run *run)
{
	free(run->state);
	run->state = NULL;
}

static int latency_check(const struct plan *plan, char *error, size_t error_size)
{
	if (plan->op == PLAN_OP_ATOMIC && plan->size_bytes != sizeof(uint64_t)) {
		snprintf(error, error_size, "an atomic operation has a size of 8");
		return -EINVAL;
	}
	if (plan->verify && plan->op != PLAN_OP_ATOMIC && plan->size_bytes <= PATTERN_MIN_BYTES) {
		snprintf(error, error_size, "verified messages of this mode have at least %d bytes",
			 PATTERN_MIN_BYTES + 1);
		return -EINVAL;
	}
	return 0;
}

static void latency_shape(const struct plan *plan, struct endpoint_config *active,
			  struct endpoint_config *passive)
{
	const struct slots slots = plan_slots(plan, RECEIVES);

	active->send_wr = QUEUE_WR;
	active->recv_wr = RECEIVES;
	active->region_bytes = 2 * slots_bytes(&slots);
	passive->send_wr = QUEUE_WR;
	passive->recv_wr = RECEIVES;
	passive->inline_bytes = (uint32_t)plan->inline_bytes;
	passive->region_bytes = 2 * slots_bytes(&slots);
}

static int latency_serve_begin(struct passive *passive)
{
	passive->state = pinger_new(&passive->endpoint, &passive->plan, &passive->peer);
	return passive->state ? 0 : -ENOMEM;
}

static int latency_serve_qp(struct passive *passive, unsigned int qp)
{
	struct pinger *pinger = passive->state;

	if (passive->plan.op == PLAN_OP_READ)
		pinger_fill(pinger, in_of(pinger, qp), qp);
	return passive->plan.op == PLAN_OP_SEND ? pinger_post_receive(pinger, qp) : 0;
}

static int latency_serve_poll(struct passive *passive)
{
	struct pinger *pinger = passive->state;
	int rc;

	if (!is_round_trip(&passive->plan))
		return 0;
	rc = pinger_take(pinger);
	return rc == 1 ? pinger_send(pinger) : rc;
}

static void latency_serve_end(struct passive *passive)
{
	const struct pinger *pinger = passive->state;

	passive->wrong = pinger->wrong;
	passive->messages = pinger->received;
	if (is_round_trip(&passive->plan))
		passive_count_messages(passive);
}

const struct mode mode_latency = {
	.name = "latency",
	.check = latency_check,
	.shape = latency_shape,
	.begin = latency_begin,
	.poll = latency_poll,
	.qp_messages = latency_qp_messages,
	.end = latency_end,
	.serve_begin = latency_serve_begin,
	.serve_qp = latency_serve_qp,
	.serve_poll = latency_serve_poll,
	.serve_end = latency_serve_end,
};
