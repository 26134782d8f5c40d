/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks every completion and event against the promises of the program. */
#include <stdlib.h>
#include <string.h>

#include "qp/qp.h"
#include "sim.h"
#include "wire/headers.h"

#define ID_MAGIC 0x51f0ull

uint64_t check_id(unsigned int flow, bool receives, uint32_t index)
{
	return ID_MAGIC << 48 | (uint64_t)flow << 32 | (receives ? 1ull << 31 : 0) | index;
}

static void check_spans(struct flow *flow, uint32_t first, uint32_t spans, const char *what,
			uint32_t index)
{
	for (uint32_t i = 0; i < spans; i++) {
		const int64_t at = span_compare(&flow->spans[first + i]);

		sim_check(flow->sim, at < 0,
			  "flow %d: %s %u: entry %u of its list is wrong at byte %lld",
			  flow->number, what, index, i, (long long)at);
	}
}

#define BREAK_BYTES 300 /* bytes of a READ that SIM_BREAK damages, at least */

/* Fake a fault of the stack, if the environment asks for it: a test of the supervisor needs
 * programs that fail. */
static void maybe_break(const struct flow *flow, const struct work *work)
{
	const char *how = flow->sim->breaks;

	if (how == NULL || work->opcode != IBV_WR_RDMA_READ || work->length < BREAK_BYTES)
		return;
	if (strcmp(how, "crash") == 0)
		abort();
	for (uint32_t i = 0; i < work->spans && strcmp(how, "read") == 0; i++) {
		const struct span *span = &flow->spans[work->first_span + i];

		if (span->len > 0 && !span->region->is_null)
			span_actual(span)[0] ^= 1;
	}
}

/* Check that the changes of a completed work request are visible. */
static void check_work_done(struct flow *flow, struct work *work)
{
	const uint32_t index = (uint32_t)(work - flow->works);

	work->status = IBV_WC_SUCCESS;
	flow->sim->stats_works++;
	flow->sim->stats_bytes += work->length;
	maybe_break(flow, work);
	if (work->word != NULL)
		memcpy(&work->word->seen, span_actual(&flow->spans[work->first_span]), 8);
	else if (work_lands(work))
		check_spans(flow, work->first_span, work->spans, "landing of work", index);
	/* The request was sent, but may not have arrived. */
	if (!flow_reliable(flow))
		return;
	if (work->root >= 0 && flow->roots[work->root].newest == (int32_t)index)
		sim_check(flow->sim, span_compare(&work->remote) < 0,
			  "flow %d: work %u is complete, its remote memory is wrong at byte %lld",
			  flow->number, index, (long long)span_compare(&work->remote));
	if (work->receive >= 0) {
		const struct receive *receive = &flow->receives[work->receive];

		check_spans(flow, receive->first_span, receive->spans, "receive",
			    (uint32_t)work->receive);
	}
}

/* Work requests before `index` are complete too, without completions: they must have been
 * unsignaled. */
static void close_before(struct flow *flow, uint32_t index)
{
	for (; flow->closed < index; flow->closed++) {
		struct work *work = &flow->works[flow->closed];

		sim_check(flow->sim, !(work->flags & IBV_SEND_SIGNALED),
			  "flow %d: completion of signaled work %u is missing, that of %u came",
			  flow->number, flow->closed, index);
		check_work_done(flow, work);
	}
}

static enum ibv_wc_opcode send_opcode(const struct work *work)
{
	switch (work->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return work_flushes(work) ? (enum ibv_wc_opcode)LATER_WC_FLUSH : IBV_WC_SEND;
	}
}

static void check_success(struct flow *flow, uint32_t index, const struct ibv_wc *wc)
{
	struct work *work = &flow->works[index];
	struct sim *sim = flow->sim;

	sim_check(sim, flow->failed < 0, "flow %d: work %u succeeds behind failed work %lld",
		  flow->number, index, (long long)flow->failed);
	sim_check(sim, flow->mishap_at < 0 || (int32_t)index < flow->mishap_at,
		  "flow %d: work %u succeeds in spite of the mishap (%s) at work %d", flow->number,
		  index, mishap_info(flow->works[flow->mishap_at].mishap)->name, flow->mishap_at);
	sim_check(sim, work->flags & IBV_SEND_SIGNALED,
		  "flow %d: work %u is unsignaled, and got a completion", flow->number, index);
	sim_check(sim, wc->opcode == send_opcode(work), "flow %d: work %u: completion opcode %d",
		  flow->number, index, (int)wc->opcode);
	if (work_lands(work))
		sim_check(sim, wc->byte_len == work->length, "flow %d: work %u: byte_len %u of %u",
			  flow->number, index, wc->byte_len, work->length);
	close_before(flow, index);
	check_work_done(flow, work);
	flow->closed = index + 1;
}

static bool may_fail(const struct flow *flow, uint32_t index, enum ibv_wc_status status)
{
	const struct sim *sim = flow->sim;

	if (flow->loose && (sim->scenario == SCENARIO_GONE || sim->scenario == SCENARIO_LOST) &&
	    status == IBV_WC_REM_ACCESS_ERR)
		return true;
	/* The memory is our own, or the peer's in which it receives. */
	if (flow->loose && sim->scenario == SCENARIO_LOST &&
	    (status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_REM_OP_ERR))
		return true;
	/* The user of a window could not invalidate it. */
	if (flow->loose && flow->works[index].opcode == IBV_WR_BIND_MW &&
	    status == IBV_WC_MW_BIND_ERR)
		return true;
	if (flow->loose)
		return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR;
	if (flow->mishap_at < 0)
		return false;
	if (flow->may_give_up && (int32_t)index <= flow->mishap_at &&
	    status == IBV_WC_RETRY_EXC_ERR)
		return true;
	return (int32_t)index == flow->mishap_at &&
	       status == mishap_info(flow->works[index].mishap)->sender;
}

/*
 * Each timeout uses up one retry (IBTA 9.7.6.1.3), counted from the newest response or the newest
 * request, whichever came later. If nothing was lost before the cut, no retry was used up before
 * it. An absent page, or a host without a CPU, may delay all of this by any time.
 */
static void check_patience(const struct flow *flow, enum ibv_wc_status status)
{
	struct sim *sim = flow->sim;
	const struct end *from = flow->from;
	const uint64_t timeout_ns = 4096ull << from->timeout;
	const uint64_t now_ns = sim->clock.now_ns;
	const uint64_t posted_ns =
		flow->posted_ns > sim->struck_ns ? flow->posted_ns : sim->struck_ns;

	if (sim->scenario != SCENARIO_CUT || status != IBV_WC_RETRY_EXC_ERR || !sim->lossless ||
	    sim->tight || flow->receive_gap_ns > 0 || sim->variant.absent > 0 ||
	    sim->variant.stall > 0)
		return;
	sim_check(sim, now_ns >= sim->struck_ns + from->retry_cnt * timeout_ns,
		  "flow %d: gave up %llu ns after the cut, with timeouts of %llu ns", flow->number,
		  (unsigned long long)(now_ns - sim->struck_ns), (unsigned long long)timeout_ns);
	sim_check(sim,
		  now_ns <= posted_ns + (from->retry_cnt + 1ull) * (timeout_ns + sim->est_ns / 8) +
				    10 * sim->est_ns + rnr_timer_ns(flow->to->min_rnr_timer),
		  "flow %d: gave up only %llu ns after the cut, with timeouts of %llu ns",
		  flow->number, (unsigned long long)(now_ns - sim->struck_ns),
		  (unsigned long long)timeout_ns);
}

static void check_failure(struct flow *flow, uint32_t index, const struct ibv_wc *wc)
{
	struct sim *sim = flow->sim;

	if (flow->failed < 0) {
		sim_check(sim, may_fail(flow, index, wc->status), "flow %d: work %u fails: %s",
			  flow->number, index, status_text(wc->status));
		close_before(flow, index);
		check_patience(flow, wc->status);
		flow->failed = index;
	} else {
		sim_check(sim, index == flow->closed, "flow %d: work %u is flushed before work %u",
			  flow->number, index, flow->closed);
		sim_check(sim, wc->status == IBV_WC_WR_FLUSH_ERR,
			  "flow %d: work %u behind failed work %lld: %s", flow->number, index,
			  (long long)flow->failed, status_text(wc->status));
	}
	flow->works[index].status = wc->status;
	flow->closed = index + 1;
}

static void check_send(struct flow *flow, uint32_t index, const struct ibv_wc *wc)
{
	sim_check(flow->sim, index < flow->posted, "flow %d: work %u completes, never posted",
		  flow->number, index);
	sim_check(flow->sim, index >= flow->closed, "flow %d: work %u completes twice",
		  flow->number, index);
	if (wc->status == IBV_WC_SUCCESS)
		check_success(flow, index, wc);
	else
		check_failure(flow, index, wc);
}

static void check_received(struct flow *flow, uint32_t index, const struct ibv_wc *wc)
{
	struct receive *receive = &flow->receives[index];
	struct sim *sim = flow->sim;
	const struct work *work;
	unsigned int flags = IBV_WC_WITH_IMM;
	enum ibv_wc_opcode opcode = IBV_WC_RECV;

	if (!flow_reliable(flow)) {
		receive->solicited =
			deliver(flow, &flow->spans[receive->first_span], receive->spans, wc);
		receive->delivered = true;
		return;
	}
	sim_check(sim, receive->work >= 0 && receive->work < (int32_t)flow->posted,
		  "flow %d: receive %u got a message that nobody sent", flow->number, index);
	sim_check(sim, flow->receive_failed < 0 && flow_executes(flow, receive->work),
		  "flow %d: receive %u succeeds behind a failure", flow->number, index);
	work = &flow->works[receive->work];
	if (work->opcode == IBV_WR_SEND)
		flags = 0;
	if (work->opcode == IBV_WR_SEND_WITH_INV)
		flags = IBV_WC_WITH_INV;
	if (work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		opcode = IBV_WC_RECV_RDMA_WITH_IMM;
	sim_check(sim, wc->opcode == opcode, "flow %d: receive %u: opcode %d", flow->number, index,
		  (int)wc->opcode);
	sim_check(sim, wc->byte_len == work->length, "flow %d: receive %u: byte_len %u of %u",
		  flow->number, index, wc->byte_len, work->length);
	sim_check(sim, wc->wc_flags == flags, "flow %d: receive %u: flags %x", flow->number, index,
		  wc->wc_flags);
	sim_check(sim, flags != IBV_WC_WITH_IMM || wc->imm_data == work->imm,
		  "flow %d: receive %u: immediate", flow->number, index);
	sim_check(sim,
		  flags != IBV_WC_WITH_INV ||
			  wc->invalidated_rkey == window_invalidates(flow, work),
		  "flow %d: receive %u: invalidated key", flow->number, index);
	check_spans(flow, receive->first_span, receive->spans, "receive", index);
	if (work->root >= 0 && flow->roots[work->root].newest == receive->work)
		sim_check(sim, span_compare(&work->remote) < 0,
			  "flow %d: receive %u tells of a WRITE that is not there", flow->number,
			  index);
}

static bool may_fail_receive(const struct flow *flow, uint32_t index, enum ibv_wc_status status)
{
	if (flow->mishap_at >= 0 && flow->works[flow->mishap_at].receive == (int32_t)index) {
		const struct mishap_info *info = mishap_info(flow->works[flow->mishap_at].mishap);

		if (status == info->receiver)
			return true;
		/*
		 * A WRITE with immediate data has its receive request already when it is refused.
		 */
		if (info->peer_fails && info->receiver == IBV_WC_SUCCESS &&
		    info->sender == IBV_WC_REM_ACCESS_ERR && status == IBV_WC_LOC_ACCESS_ERR)
			return true;
	}
	if (flow->loose && status == IBV_WC_LOC_ACCESS_ERR &&
	    (flow->sim->scenario == SCENARIO_GONE || flow->sim->scenario == SCENARIO_LOST))
		return true;
	if (flow->loose && flow->sim->scenario == SCENARIO_LOST && status == IBV_WC_LOC_PROT_ERR)
		return true;
	if (status != IBV_WC_WR_FLUSH_ERR)
		return false;
	/*
	 * The request was flushed, because another one failed this queue pair, or because the
	 * program is over.
	 */
	return flow->sim->flushing || flow->loose || flow->mishap_at >= 0;
}

void check_receive(struct flow *flow, uint32_t index, const struct ibv_wc *wc)
{
	struct sim *sim = flow->sim;

	sim_check(sim, index < flow->receives_posted, "flow %d: receive %u completes, never posted",
		  flow->number, index);
	sim_check(sim, index == flow->received, "flow %d: receive %u completes, %u is next",
		  flow->number, index, flow->received);
	if (wc->status == IBV_WC_SUCCESS) {
		check_received(flow, index, wc);
	} else {
		const bool first = flow->receive_failed < 0;

		sim_check(sim,
			  first ? may_fail_receive(flow, index, wc->status)
				: wc->status == IBV_WC_WR_FLUSH_ERR,
			  "flow %d: receive %u fails: %s", flow->number, index,
			  status_text(wc->status));
		if (first)
			flow->receive_failed = index;
	}
	flow->received = index + 1;
}

static bool check_pooled(struct pool *pool, uint32_t index, const struct ibv_wc *wc)
{
	const struct host *host = pool->host;
	struct sim *sim = host->sim;

	if (sim->verbose)
		printf("%12llu host %d: shared receive %u, qp %06x: %s\n",
		       (unsigned long long)sim->clock.now_ns, host->number, index, wc->qp_num,
		       status_text(wc->status));
	sim_check(sim, pool->in_use, "host %d: shared receive %u completes", host->number, index);
	sim->progress_ns = sim->clock.now_ns;
	sim->works_closed++;
	return pool_complete(pool, index, wc);
}

bool check_completion(struct host *host, const struct ibv_wc *wc)
{
	const uint32_t index = (uint32_t)(wc->wr_id & 0x7fffffff);
	const unsigned int number = (wc->wr_id >> 32) & 0xffff;
	const bool receives = wc->wr_id >> 31 & 1;
	struct sim *sim = host->sim;
	const struct end *end;
	struct flow *flow;

	if (wc->wr_id >> 48 == ID_MAGIC && number >= POOL_FLOW &&
	    (number - POOL_FLOW) / POOLS == (unsigned int)host->number)
		return check_pooled(&host->pools[(number - POOL_FLOW) % POOLS], index, wc);
	sim_check(sim, wc->wr_id >> 48 == ID_MAGIC && number < 2 * sim->pairs,
		  "host %d: completion with wr_id %llx", host->number,
		  (unsigned long long)wc->wr_id);
	flow = &sim->flow[number];
	end = receives ? flow->to : flow->from;
	if (sim->verbose)
		printf("%12llu host %d: flow %u %s %u: %s\n", (unsigned long long)sim->clock.now_ns,
		       host->number, number, receives ? "receive" : "work", index,
		       status_text(wc->status));
	sim_check(sim, end->host == host && wc->qp_num == end->qpn,
		  "flow %u: %s %u completes at host %d, qp %06x", number,
		  receives ? "receive" : "work", index, host->number, wc->qp_num);
	/* Nobody waits for the flush of receives behind a failure, nor for messages that may be
	 * lost. */
	sim_check(
		sim,
		!sim->draining || sim->flushing ||
			(receives && (flow->loose || flow->mishap_at >= 0 || !flow_reliable(flow))),
		"flow %u: %s %u completes when all was done", number, receives ? "receive" : "work",
		index);
	sim->progress_ns = sim->clock.now_ns;
	sim->works_closed++;
	if (receives)
		check_receive(flow, index, wc);
	else
		check_send(flow, index, wc);
	/* An error always counts as solicited (ibv_req_notify_cq(3)). */
	if (wc->status != IBV_WC_SUCCESS)
		return true;
	if (!receives)
		return false;
	if (!flow_reliable(flow))
		return flow->receives[index].solicited;
	return flow->works[flow->receives[index].work].flags & IBV_SEND_SOLICITED;
}

void check_event(void *user, enum ibv_event_type type)
{
	struct end *end = user;
	struct sim *sim = end->host->sim;
	const struct flow *flow = end->in;
	bool expected = type == IBV_EVENT_SQ_DRAINED;

	if (type == IBV_EVENT_QP_LAST_WQE_REACHED)
		expected = flow->pool != NULL && flow->pool->kind == POOL_SHARED &&
			   qp_state(end->qp) == IBV_QPS_ERR;

	if (sim->verbose)
		printf("%12llu host %d: qp %06x: event %d\n", (unsigned long long)sim->clock.now_ns,
		       end->host->number, end->qpn, (int)type);
	/* The event reports the first packet that comes in RTR, once. */
	if (type == IBV_EVENT_COMM_EST)
		expected = end->late && qp_state(end->qp) == IBV_QPS_RTR && end->events[type] == 0;
	/* A peer whose memory was taken away refuses requests. */
	if (type == IBV_EVENT_QP_ACCESS_ERR)
		expected = flow->loose &&
			   (sim->scenario == SCENARIO_GONE || sim->scenario == SCENARIO_LOST);
	if (flow->mishap_at >= 0)
		expected |= type ==
			    (enum ibv_event_type)mishap_info(flow->works[flow->mishap_at].mishap)
				    ->event;
	sim_check(sim, expected && type < HOST_EVENTS, "qp %06x: unexpected event %d", end->qpn,
		  (int)type);
	end->events[type]++;
	if (type == IBV_EVENT_SQ_DRAINED)
		pause_drained(end);
}
