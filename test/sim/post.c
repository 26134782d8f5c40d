/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts the requests of the applications, in lists, as soon as there is room. */
#include <string.h>

#include <rte_common.h>

#include "qp/qp.h"
#include "sim.h"

#define POST_BATCH_MAX	 4
#define LIST_MAX	 32
#define INLINE_MAX_BYTES 1024

/* Requests as a post call takes them: work requests and the lists that they point to. */
struct batch {
	uint32_t count;
	bool built; /* one of them can only be posted in this way */
	struct ibv_send_wr send[POST_BATCH_MAX];
	struct ibv_recv_wr recv[POST_BATCH_MAX];
	struct ibv_sge sge[POST_BATCH_MAX][LIST_MAX];
	uint8_t data[POST_BATCH_MAX][INLINE_MAX_BYTES]; /* inline; reused after posting */
};

struct ibv_sge post_entry(const struct span *span)
{
	/* Address and key of an empty entry are ignored. */
	if (span->len == 0)
		return (struct ibv_sge){.addr = 0xdeadbeef, .lkey = 0x12345678};
	return (struct ibv_sge){
		.addr = span_iova(span), .length = span->len, .lkey = span_key(span)};
}

static void fill_list(const struct flow *flow, uint32_t first, uint32_t spans, struct ibv_sge *sge)
{
	for (uint32_t i = 0; i < spans; i++)
		sge[i] = post_entry(&flow->spans[first + i]);
}

/* Make the entry with the given byte wrong: its key, or its address. */
static void spoil_list(struct flow *flow, const struct work *work, struct ibv_sge *sge)
{
	uint32_t entry = (uint32_t)rng_below(&flow->rng, work->spans);

	while (sge[entry].length == 0 || (work->mishap == MISHAP_SEND_RANGE &&
					  flow->spans[work->first_span + entry].region->is_null))
		entry = (entry + 1) % work->spans;
	if (work->mishap == MISHAP_SEND_RANGE) {
		const struct span *span = &flow->spans[work->first_span + entry];

		sge[entry].addr = span->region->iova + span->region->size - span->len + 1;
	} else {
		sge[entry].lkey ^= 1u << rng_below(&flow->rng, 32);
	}
}

static void fill_remote(struct flow *flow, const struct work *work, struct ibv_send_wr *wr)
{
	uint64_t addr = 0;
	uint32_t key = 0;

	if (work->root < 0 && work->word == NULL)
		return;
	if (work->remote.region != NULL) {
		addr = span_iova(&work->remote);
		key = span_key(&work->remote);
	}
	if (work->episode >= 0)
		window_aim(flow, work, &addr, &key);
	if (work->mishap == MISHAP_STALE_WINDOW)
		key = window_invalidates(flow, mishap_stale(flow, work));
	if (work->mishap == MISHAP_BAD_RKEY)
		key ^= 1u << rng_below(&flow->rng, 32);
	if (work->mishap == MISHAP_OUT_OF_RANGE) {
		const struct region *region = work->remote.region;
		const uint64_t align =
			work_is_atomic(work) || work->opcode == IBV_WR_ATOMIC_WRITE ? 8 : 1;

		/* The range is a little too long, at the end or at the beginning. */
		if (rng_chance(&flow->rng, 500000))
			addr = region->iova - align;
		else
			addr = (region->iova + region->size - work->length + align) / align * align;
	}
	if (work_is_atomic(work)) {
		const bool swaps = work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = key;
		wr->wr.atomic.compare_add = swaps ? work->compare : work->operand;
		wr->wr.atomic.swap = swaps ? work->operand : 0;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = key;
	}
}

/* The post call copies inline data: it comes from memory without a key, which changes right
 * afterwards. */
static void fill_inline(const struct flow *flow, const struct work *work, struct ibv_sge *sge,
			uint8_t *data)
{
	for (uint32_t i = 0; i < work->spans; i++) {
		const struct span *span = &flow->spans[work->first_span + i];

		if (span->len > 0)
			memcpy(data, span_actual(span), span->len);
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)data, .length = span->len, .lkey = 0xbad};
		data += span->len;
	}
}

static bool wants_signal(struct flow *flow, const struct work *work)
{
	const uint32_t index = (uint32_t)(work - flow->works);

	/* Slots of the queue become free with a later signaled completion. Other requests wait for
	 * what is done with a window. */
	return flow->from->sig_all || work->episode >= 0 || index + 1 == flow->limit ||
	       flow->unsignaled + 1 >= flow->from->cap.max_send_wr ||
	       rng_chance(&flow->rng, 400000);
}

static void add_send(struct flow *flow, struct work *work, struct batch *batch)
{
	const int32_t index = (int32_t)(work - flow->works);
	const uint32_t n = batch->count++;
	struct ibv_send_wr *wr = &batch->send[n];

	if (wants_signal(flow, work)) {
		flow->unsignaled = 0;
		work->flags |= IBV_SEND_SIGNALED;
	} else {
		flow->unsignaled++;
	}
	/* Requests behind a failure are not executed. An unreliable WRITE that fails may have
	 * begun. */
	if (flow_executes(flow, index) || (!flow_reliable(flow) && index == flow->mishap_at))
		model_apply(flow, work);
	if (work->root >= 0 && work->opcode != IBV_WR_RDMA_READ)
		flow->roots[work->root].newest = index;
	*wr = (struct ibv_send_wr){
		.wr_id = check_id((unsigned int)flow->number, false, (uint32_t)index),
		.sg_list = batch->sge[n],
		.num_sge = (int)work->spans,
		.opcode = work->opcode,
		.send_flags = work->flags,
		.imm_data = work->imm};
	/* With sq_sig_all the flag is not needed. */
	if (flow->from->sig_all && rng_chance(&flow->rng, 500000))
		wr->send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	fill_remote(flow, work, wr);
	connect_address(flow->from, wr);
	if (work_is_local(work) || work->opcode == IBV_WR_SEND_WITH_INV)
		window_fill(flow, work, wr);
	if (work->flags & IBV_SEND_INLINE)
		fill_inline(flow, work, batch->sge[n], batch->data[n]);
	else
		fill_list(flow, work->first_span, work->spans, batch->sge[n]);
	if (work->mishap == MISHAP_SEND_KEY || work->mishap == MISHAP_SEND_RANGE ||
	    work->mishap == MISHAP_LANDING_KEY)
		spoil_list(flow, work, batch->sge[n]);
	if (n > 0)
		batch->send[n - 1].next = wr;
	batch->built |= work_flushes(work);
}

/* The post call has copied what it needs: fill the batch with random bytes. */
static void spoil(struct batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		const uint32_t entries =
			(uint32_t)RTE_MAX(batch->send[i].num_sge, batch->recv[i].num_sge);

		if (batch->send[i].send_flags & IBV_SEND_INLINE)
			memset(batch->data[i], 0xee, sizeof(batch->data[i]));
		memset(batch->sge[i], 0xee, entries * sizeof(batch->sge[i][0]));
	}
}

/* A program posts call by call, or in a list. */
static int give(struct flow *flow, struct batch *batch)
{
	struct ibv_send_wr *bad = NULL;

	if (batch->built || rng_chance(&flow->rng, 300000))
		return build_sends(flow, batch->send);
	return qp_post_send(flow->from->qp, &batch->send[0], &bad);
}

bool post_sends(struct flow *flow)
{
	const uint64_t wanted = rng_range(&flow->rng, 1, POST_BATCH_MAX);
	static struct batch batch;
	int err;

	/* The queue pair is not connected yet: it refuses to post before RTS. */
	if (flow->sim->holding || !end_sends(flow->from))
		return false;
	batch.count = 0;
	batch.built = false;
	while (batch.count < wanted && flow->posted < flow->limit &&
	       flow->posted - flow->closed < flow->from->cap.max_send_wr &&
	       window_lets(flow, &flow->works[flow->posted]))
		add_send(flow, &flow->works[flow->posted++], &batch);
	if (batch.count == 0)
		return false;
	err = give(flow, &batch);
	sim_check(flow->sim, err == 0, "flow %d: posting up to work %u is refused: %s",
		  flow->number, flow->posted, strerror(err));
	spoil(&batch);
	flow->posted_ns = flow->sim->clock.now_ns;
	engine_kick(flow->from);
	return true;
}

static void add_receive(struct flow *flow, uint32_t index, struct batch *batch)
{
	const struct receive *receive = &flow->receives[index];
	const uint32_t n = batch->count++;
	struct ibv_sge *sge = batch->sge[n];

	fill_list(flow, receive->first_span, receive->spans, sge);
	if (receive->mishap == MISHAP_RECEIVE_KEY) {
		while (sge->length == 0)
			sge++;
		sge->lkey ^= 1u << rng_below(&flow->rng, 32);
	}
	batch->recv[n] =
		(struct ibv_recv_wr){.wr_id = check_id((unsigned int)flow->number, true, index),
				     .sg_list = batch->sge[n],
				     .num_sge = (int)receive->spans};
	if (n > 0)
		batch->recv[n - 1].next = &batch->recv[n];
}

static bool may_post_receive(const struct flow *flow)
{
	return flow->receives_posted < flow->receive_count &&
	       flow->receives[flow->receives_posted].mishap != MISHAP_NOT_READY &&
	       flow->receives_posted - flow->received < flow->to->cap.max_recv_wr;
}

static bool post_receives(struct flow *flow, uint64_t wanted)
{
	struct ibv_recv_wr *bad = NULL;
	static struct batch batch;
	int err;

	batch.count = 0;
	while (batch.count < wanted && may_post_receive(flow))
		add_receive(flow, flow->receives_posted++, &batch);
	if (batch.count == 0)
		return false;
	err = qp_post_recv(flow->to->qp, &batch.recv[0], &bad);
	sim_check(flow->sim, err == 0, "flow %d: post_recv refuses: %s", flow->number,
		  strerror(err));
	spoil(&batch);
	if (qp_state(flow->to->qp) == IBV_QPS_ERR)
		engine_kick(flow->to);
	return true;
}

bool post_due_receives(struct flow *flow)
{
	const uint64_t now_ns = flow->sim->clock.now_ns;
	bool posted = false;

	if (flow->pool != NULL)
		return false;
	if (flow->receive_gap_ns == 0) {
		while (post_receives(flow, POST_BATCH_MAX))
			posted = true;
		return posted;
	}
	if (now_ns < flow->next_receive_ns)
		return false;
	flow->next_receive_ns = now_ns + rng_range(&flow->rng, 1, flow->receive_gap_ns);
	return post_receives(flow, rng_range(&flow->rng, 1, POST_BATCH_MAX));
}
