/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one work request fail on purpose. */
#include "mishap.h"

#include "sim.h"

static const struct mishap_info infos[MISHAPS] = {
	[MISHAP_NONE] = {"none", IBV_WC_SUCCESS, IBV_WC_SUCCESS, -1, false, false},
	[MISHAP_BAD_RKEY] = {"bad rkey", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS,
			     IBV_EVENT_QP_ACCESS_ERR, true, false},
	[MISHAP_OUT_OF_RANGE] = {"out of range", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS,
				 IBV_EVENT_QP_ACCESS_ERR, true, false},
	[MISHAP_REGION_ACCESS] = {"region access", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS,
				  IBV_EVENT_QP_ACCESS_ERR, true, false},
	[MISHAP_QP_ACCESS] = {"qp access", IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS,
			      IBV_EVENT_QP_REQ_ERR, true, false},
	[MISHAP_RECEIVE_SHORT] = {"receive short", IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, -1,
				  true, false},
	[MISHAP_RECEIVE_KEY] = {"receive key", IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, -1, true,
				false},
	[MISHAP_RECEIVE_ACCESS] = {"receive access", IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, -1,
				   true, false},
	[MISHAP_SEND_KEY] = {"send key", IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, -1, false, false},
	[MISHAP_SEND_RANGE] = {"send range", IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, -1, false, false},
	[MISHAP_LANDING_KEY] = {"landing key", IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS, -1, false,
				true},
	[MISHAP_NOT_READY] = {"not ready", IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SUCCESS, -1, false,
			      false},
	[MISHAP_STALE_WINDOW] = {"stale window", IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS,
				 IBV_EVENT_QP_ACCESS_ERR, true, false},
	[MISHAP_BIND] = {"bind", IBV_WC_MW_BIND_ERR, IBV_WC_SUCCESS, -1, false, false},
};

const struct mishap_info *mishap_info(enum mishap mishap)
{
	return &infos[mishap];
}

const struct work *mishap_stale(const struct flow *flow, const struct work *work)
{
	while (work-- > flow->works) {
		if (work->opcode == IBV_WR_SEND_WITH_INV)
			return work;
	}
	return NULL;
}

/* Choose an entry of its list whose address can be wrong. */
static bool has_memory(const struct flow *flow, const struct work *work)
{
	for (uint32_t i = 0; i < work->spans; i++) {
		const struct span *span = &flow->spans[work->first_span + i];

		if (span->len > 0 && !span->region->is_null)
			return true;
	}
	return false;
}

/* Return true for faults of the peer that no completion reports, or whose receive request is not
 * known before. */
static bool is_told(const struct flow *flow, enum mishap mishap)
{
	switch (mishap) {
	case MISHAP_RECEIVE_SHORT:
	case MISHAP_RECEIVE_KEY:
	case MISHAP_RECEIVE_ACCESS:
	case MISHAP_NOT_READY:
		return flow_reliable(flow) && flow->pool == NULL;
	case MISHAP_SEND_KEY:
	case MISHAP_SEND_RANGE:
		return true;
	default:
		return flow_reliable(flow);
	}
}

static bool applies(const struct flow *flow, const struct work *work, enum mishap mishap)
{
	if (!is_told(flow, mishap))
		return false;
	switch (mishap) {
	case MISHAP_OUT_OF_RANGE:
		if (work->whole || work->episode >= 0)
			return false;
		/* fallthrough */
	case MISHAP_BAD_RKEY:
	case MISHAP_REGION_ACCESS:
		/* A zero-length access has no key to check (IBTA C9-88). */
		return work->root >= 0 && work->length > 0;
	case MISHAP_QP_ACCESS:
		return work->root >= 0;
	case MISHAP_RECEIVE_SHORT:
	case MISHAP_RECEIVE_KEY:
	case MISHAP_RECEIVE_ACCESS:
		return work_sends(work) && work->length > 0;
	case MISHAP_SEND_KEY:
	case MISHAP_SEND_RANGE:
		/* The data of an ATOMIC WRITE may be inline, without a key. */
		return !work_lands(work) && !work_flushes(work) &&
		       work->opcode != IBV_WR_ATOMIC_WRITE && has_memory(flow, work) &&
		       !(work->flags & IBV_SEND_INLINE);
	case MISHAP_LANDING_KEY:
		return work_lands(work) && work->length > 0;
	case MISHAP_NOT_READY:
		return work->receive >= 0;
	case MISHAP_STALE_WINDOW:
		return work->root >= 0 && work->length > 0 && mishap_stale(flow, work) != NULL;
	case MISHAP_BIND:
		return work->opcode == IBV_WR_BIND_MW && !work->whole;
	default:
		return false;
	}
}

/* The receive's list is a byte shorter than the message. */
static void shorten_receive(struct flow *flow, struct receive *receive, uint32_t length)
{
	uint32_t left = length - 1;

	for (uint32_t i = 0; i < receive->spans; i++) {
		struct span *span = &flow->spans[receive->first_span + i];

		if (span->len > left)
			span->len = left;
		left -= span->len;
	}
	receive->room = length - 1;
}

/* All of the receive's memory is not writable. */
static void seal_receive(struct flow *flow, struct receive *receive)
{
	struct region *region = memory_add_region(&flow->to->host->memory, 0);

	for (uint32_t i = 0; i < receive->spans; i++) {
		struct span *span = &flow->spans[receive->first_span + i];

		if (span->len > 0)
			*span = region_take(region, span->len, 1, &flow->rng);
	}
}

static unsigned int access_of(const struct work *work)
{
	if (work->root < 0)
		return 0;
	if (work_is_atomic(work))
		return IBV_ACCESS_REMOTE_ATOMIC;
	if (work_flushes(work))
		return LATER_ACCESS_FLUSH_GLOBAL;
	return work->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

/* The work request's remote memory grants every right but the needed one. */
static void seal_remote(struct flow *flow, struct work *work)
{
	work->episode = -1;
	work->remote = region_take(
		memory_add_region(&flow->to->host->memory, ACCESS_ALL & ~access_of(work)),
		work->length, 8, &flow->rng);
}

/* The peer's queue pair does not grant the needed right, and no request before this one needs
 * it. */
static bool forbid(struct flow *flow, int32_t at)
{
	const unsigned int need = access_of(&flow->works[at]);

	for (int32_t i = 0; i < at; i++) {
		if (access_of(&flow->works[i]) == need)
			return false;
	}
	flow->to->access &= ~need;
	return true;
}

/* All receives before the missing one are posted before the first SEND. */
static void not_ready(struct flow *flow)
{
	flow->receive_gap_ns = 0;
	flow->to->cap.max_recv_wr = flow->receive_count + 1;
	flow->from->rnr_retry = (uint8_t)rng_below(&flow->rng, 7);
	flow->to->min_rnr_timer = (uint8_t)rng_range(&flow->rng, 1, 14);
}

static bool spoil(struct flow *flow, int32_t at, enum mishap mishap)
{
	struct work *work = &flow->works[at];

	switch (mishap) {
	case MISHAP_REGION_ACCESS:
		seal_remote(flow, work);
		break;
	case MISHAP_QP_ACCESS:
		return forbid(flow, at);
	case MISHAP_RECEIVE_SHORT:
		shorten_receive(flow, &flow->receives[work->receive], work->length);
		break;
	case MISHAP_RECEIVE_ACCESS:
		seal_receive(flow, &flow->receives[work->receive]);
		break;
	case MISHAP_NOT_READY:
		/* An absent page before it may use up as few RNR retries. */
		if (flow->sim->variant.absent > 0)
			return false;
		not_ready(flow);
		break;
	default:
		break; /* posting spoils the request */
	}
	return true;
}

bool mishap_inflict(struct flow *flow, enum mishap mishap, struct rng *rng)
{
	uint32_t candidates = 0;

	for (uint32_t i = 0; i < flow->work_count; i++)
		candidates += applies(flow, &flow->works[i], mishap);
	if (candidates == 0)
		return false;
	candidates = (uint32_t)rng_below(rng, candidates);
	for (uint32_t i = 0; i < flow->work_count; i++) {
		struct work *work = &flow->works[i];

		if (!applies(flow, work, mishap) || candidates-- > 0)
			continue;
		if (!spoil(flow, (int32_t)i, mishap))
			return false;
		work->mishap = mishap;
		if (work->receive >= 0)
			flow->receives[work->receive].mishap = mishap;
		flow->mishap_at = (int32_t)i;
		return true;
	}
	return false;
}
