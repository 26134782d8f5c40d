/* SPDX-License-Identifier: BSD-3-Clause */
/* Generates the work requests of one flow, and the receive requests that they consume. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SURPLUS_RECEIVES_MAX 6
#define LIST_PIECES_MAX	     32
#define DATAGRAM_BYTES	     4096 /* the path MTU of all ports */

/* The work requests of a kind of flow, in parts of their sum. */
struct style {
	uint8_t send, send_imm, write, write_imm, read, swap, add, atomic_write, flush;
};

static const struct style styles[] = {
	{10, 10, 10, 10, 10, 10, 10, 10, 10}, /* everything */
	{10, 10, 0, 0, 0, 0, 0, 0, 0},	      /* messages */
	{0, 0, 10, 3, 0, 0, 0, 0, 0},	      {0, 0, 0, 0, 10, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 10, 10, 0, 0},	      {0, 0, 10, 0, 10, 2, 2, 2, 2}, /* one-sided */
	{0, 0, 10, 0, 0, 0, 0, 5, 5},	      {10, 0, 5, 0, 5, 0, 0, 0, 0},
};

static void *grow(void *array, uint32_t count, size_t size)
{
	/* Choose a length near a power of two. */
	if (count != 0 && (count & (count - 1)) != 0)
		return array;
	array = realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * size);
	if (array == NULL) {
		perror("sim: flow");
		exit(1);
	}
	return array;
}

uint32_t flow_add_span(struct flow *flow, struct span span)
{
	flow->spans = grow(flow->spans, flow->span_count, sizeof(span));
	flow->spans[flow->span_count] = span;
	return flow->span_count++;
}

static int32_t add_root(struct flow *flow, uint32_t len, bool is_word)
{
	struct region *region = flow->target[rng_below(&flow->rng, 2)];

	flow->roots = grow(flow->roots, flow->root_count, sizeof(*flow->roots));
	flow->roots[flow->root_count] =
		(struct root){.span = region_take(region, len, is_word ? 8 : 1, &flow->rng),
			      .is_word = is_word,
			      .newest = -1};
	return (int32_t)flow->root_count++;
}

static enum ibv_wr_opcode choose_opcode(const struct style *style, struct rng *rng)
{
	const struct {
		uint8_t weight;
		enum ibv_wr_opcode opcode;
	} choices[] = {
		{style->send, IBV_WR_SEND},
		{style->send_imm, IBV_WR_SEND_WITH_IMM},
		{style->write, IBV_WR_RDMA_WRITE},
		{style->write_imm, IBV_WR_RDMA_WRITE_WITH_IMM},
		{style->read, IBV_WR_RDMA_READ},
		{style->swap, IBV_WR_ATOMIC_CMP_AND_SWP},
		{style->add, IBV_WR_ATOMIC_FETCH_AND_ADD},
		{style->atomic_write, IBV_WR_ATOMIC_WRITE},
		{style->flush, (enum ibv_wr_opcode)LATER_WR_FLUSH},
	};
	uint64_t sum = 0, drawn;
	unsigned int i;

	for (i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		sum += choices[i].weight;
	drawn = rng_below(rng, sum);
	for (i = 0; drawn >= choices[i].weight; i++)
		drawn -= choices[i].weight;
	return choices[i].opcode;
}

/* Return true if a queue pair of this type can send such a request. */
static struct style choose_style(struct flow *flow)
{
	struct style style = styles[rng_below(&flow->rng, sizeof(styles) / sizeof(styles[0]))];

	if (flow->from->type == IBV_QPT_UD)
		style = (struct style){.send = style.send + 1, .send_imm = style.send_imm};
	else if (flow->from->type == IBV_QPT_UC)
		style = (struct style){.send = style.send + 1,
				       .send_imm = style.send_imm,
				       .write = style.write,
				       .write_imm = style.write_imm};
	return style;
}

static uint32_t choose_length(struct rng *rng, uint32_t mtu, uint32_t max)
{
	uint64_t len;

	switch (rng_below(rng, 12)) {
	case 0:
		len = 0;
		break;
	case 1:
	case 2:
	case 3:
		len = rng_range(rng, 1, 64);
		break;
	case 4:
	case 5:
		len = rng_range(rng, 1, mtu);
		break;
	case 6:
	case 7: /* whole packets, and a byte more or less */
		len = mtu * rng_range(rng, 1, 4) + rng_range(rng, 0, 2) - 1;
		break;
	case 8:
	case 9:
		len = rng_range(rng, 1, 4 * (uint64_t)mtu);
		break;
	case 10:
		len = rng_range(rng, 1, 12 * (uint64_t)mtu);
		break;
	default:
		len = rng_range(rng, 1, max);
		break;
	}
	return len > max ? max : (uint32_t)len;
}

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Cut a length into up to `max` pieces, some of them empty. Return how many. */
uint32_t flow_cut(struct rng *rng, uint32_t len, uint32_t max, uint32_t *pieces)
{
	uint32_t n = rng_chance(rng, 400000) ? 1 : (uint32_t)rng_range(rng, 1, max);
	uint32_t before = 0;

	if (len == 0)
		n = (uint32_t)rng_below(rng, max < 3 ? max + 1 : 4);
	for (uint32_t i = 0; i + 1 < n; i++)
		pieces[i] = (uint32_t)rng_below(rng, (uint64_t)len + 1);
	if (n > 1)
		qsort(pieces, n - 1, sizeof(pieces[0]), by_value);
	if (n > 0)
		pieces[n - 1] = len;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t end = pieces[i];

		pieces[i] = end - before;
		before = end;
	}
	return n;
}

/* Take some of the constant source memory, or zeros of the null region. */
static struct span choose_source(struct flow *flow, uint32_t len)
{
	const struct span *source = &flow->source[rng_below(&flow->rng, 2)];
	const uint32_t at = (uint32_t)rng_below(&flow->rng, (uint64_t)source->len - len + 1);

	if (len == 0)
		return (struct span){0};
	if (rng_chance(&flow->rng, 20000))
		return memory_take_null(&flow->from->host->memory, len, &flow->rng);
	return span_part(source, at, len);
}

/* Make a gather list; its pieces may overlap. */
static uint32_t add_sources(struct flow *flow, uint32_t len, uint32_t max)
{
	uint32_t pieces[LIST_PIECES_MAX];
	const uint32_t n = flow_cut(&flow->rng, len, max, pieces);

	for (uint32_t i = 0; i < n; i++)
		flow_add_span(flow, choose_source(flow, pieces[i]));
	return n;
}

/* Take fresh memory, or none. The memory shows what an unreliable flow has delivered. */
static struct span choose_place(struct flow *flow, struct region *region, uint32_t len)
{
	if (len == 0)
		return (struct span){0};
	if (flow_reliable(flow) && rng_chance(&flow->rng, 20000))
		return memory_take_null(region->memory, len, &flow->rng);
	return region_take(region, len, 1, &flow->rng);
}

/* Make a scatter list. */
static uint32_t add_places(struct flow *flow, struct region *region, uint32_t len, uint32_t max)
{
	uint32_t pieces[LIST_PIECES_MAX];
	const uint32_t n = flow_cut(&flow->rng, len, max, pieces);

	for (uint32_t i = 0; i < n; i++)
		flow_add_span(flow, choose_place(flow, region, pieces[i]));
	return n;
}

/* Posting may copy the data of a request, but not from the null region, which only a key
 * identifies. */
static void maybe_inline(struct flow *flow, struct work *work)
{
	if (work->length > flow->from->cap.max_inline_data || !rng_chance(&flow->rng, 500000))
		return;
	for (uint32_t i = 0; i < work->spans; i++) {
		const struct span *span = &flow->spans[work->first_span + i];

		if (span->len > 0 && span->region->is_null)
			return;
	}
	work->flags |= IBV_SEND_INLINE;
}

static void fence(struct flow *flow, struct work *work)
{
	work->flags |= IBV_SEND_FENCE;
	for (uint32_t i = 0; i < flow->root_count; i++)
		flow->roots[i].read = flow->roots[i].swapped = false;
}

/* Send the result of an earlier READ, behind a fence. Return false if there is none. */
static bool forward_read(struct flow *flow, struct work *work)
{
	for (struct work *read = work; read-- > flow->works;) {
		if (read->opcode != IBV_WR_RDMA_READ || !rng_chance(&flow->rng, 500000))
			continue;
		work->length = read->length;
		work->first_span = read->first_span;
		work->spans = read->spans;
		fence(flow, work);
		return true;
	}
	return false;
}

static void make_payload(struct flow *flow, struct work *work, uint32_t max)
{
	const struct ibv_qp_cap *cap = &flow->from->cap;

	if (rng_chance(&flow->rng, 100000) && forward_read(flow, work))
		return;
	work->length = choose_length(&flow->rng, 128u << flow->from->mtu, max);
	work->first_span = flow->span_count;
	work->spans = add_sources(flow, work->length, cap->max_send_sge);
	maybe_inline(flow, work);
}

/* Take remote memory for a WRITE or READ: an earlier request's again, or fresh. */
static void make_remote(struct flow *flow, struct work *work)
{
	const bool reads = work->opcode == IBV_WR_RDMA_READ;
	struct root *root;
	uint32_t at;

	work->root = -1;
	/*
	 * The effect of an unreliable WRITE is only known if no other request can have changed the
	 * memory.
	 */
	if (flow->root_count > 0 && flow_reliable(flow) &&
	    rng_chance(&flow->rng, reads ? 600000 : 250000)) {
		work->root = (int32_t)rng_below(&flow->rng, flow->root_count);
		if (flow->roots[work->root].span.len < work->length)
			work->root = -1;
	}
	if (work->root < 0)
		work->root = add_root(flow, work->length, false);
	root = &flow->roots[work->root];
	at = (uint32_t)rng_below(&flow->rng, (uint64_t)root->span.len - work->length + 1);
	work->remote = span_part(&root->span, at, work->length);
	/* A request that changes memory waits for READs of it, and a WRITE also for an atomic (IBTA
	 * 10.8.3.3). */
	if (!reads && (root->read || root->swapped))
		fence(flow, work);
	if (reads)
		root->read = true;
}

static void make_read(struct flow *flow, struct work *work, uint32_t max)
{
	work->length = choose_length(&flow->rng, 128u << flow->from->mtu, max);
	make_remote(flow, work);
	work->first_span = flow->span_count;
	work->spans = add_places(flow, flow->landing, work->length, flow->from->cap.max_send_sge);
}

static int32_t choose_own_word(struct flow *flow)
{
	int32_t root = -1;

	for (uint32_t i = 0; i < flow->root_count && rng_chance(&flow->rng, 800000); i++) {
		if (flow->roots[i].is_word)
			root = (int32_t)i;
	}
	return root < 0 ? add_root(flow, 8, true) : root;
}

static void make_atomic_write(struct flow *flow, struct work *work)
{
	const struct root *root;

	work->length = 8;
	work->first_span = flow->span_count;
	work->spans = add_sources(flow, 8, flow->from->cap.max_send_sge);
	maybe_inline(flow, work);
	work->root = choose_own_word(flow);
	root = &flow->roots[work->root];
	if (root->read || root->swapped)
		fence(flow, work);
	work->remote = root->span;
}

/* FLUSH changes nothing, so its range may be any. */
static void make_flush(struct flow *flow, struct work *work, uint32_t max)
{
	const struct root *root;
	uint32_t at;

	if (flow->root_count > 0 && rng_chance(&flow->rng, 900000))
		work->root = (int32_t)rng_below(&flow->rng, flow->root_count);
	else
		work->root = add_root(flow, (uint32_t)rng_below(&flow->rng, max), false);
	root = &flow->roots[work->root];
	at = (uint32_t)rng_below(&flow->rng, (uint64_t)root->span.len + 1);
	work->length = root->span.len - at;
	work->remote = span_part(&root->span, at, work->length);
	work->whole = rng_chance(&flow->rng, 300000);
}

static struct word *choose_word(struct flow *flow, bool adds)
{
	struct sim *sim = flow->sim;

	if (sim->words == 0 || !rng_chance(&flow->rng, 400000) ||
	    sim->word_region->memory != &flow->to->host->memory)
		return NULL;
	return &sim->word[adds ? 0 : 1];
}

static void make_atomic(struct flow *flow, struct work *work)
{
	struct root *root = NULL;

	work->length = 8;
	work->spans = 1;
	work->first_span = flow_add_span(flow, region_take(flow->landing, 8, 1, &flow->rng));
	work->operand = rng_next(&flow->rng);
	work->guess_wrong = rng_chance(&flow->rng, 300000);
	work->root = -1;
	work->word = choose_word(flow, work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
	if (work->word != NULL) {
		/* In a chain of sums that cannot wrap, each addend occurs once. */
		if (work->word->adds)
			work->operand = 1 + (work->operand & 0xffff);
		work->remote = work->word->span;
		return;
	}
	work->root = choose_own_word(flow);
	root = &flow->roots[work->root];
	if (root->read)
		fence(flow, work);
	root->swapped = true;
	work->remote = root->span;
}

static void make_work(struct flow *flow, struct work *work, const struct style *style, uint32_t max)
{
	*work = (struct work){.opcode = choose_opcode(style, &flow->rng),
			      .imm = (uint32_t)rng_next(&flow->rng),
			      .root = -1,
			      .receive = -1,
			      .episode = -1};
	if (rng_chance(&flow->rng, 50000))
		fence(flow, work);
	if (work->opcode == IBV_WR_RDMA_READ) {
		make_read(flow, work, max);
	} else if (work_is_atomic(work)) {
		make_atomic(flow, work);
	} else if (work->opcode == IBV_WR_ATOMIC_WRITE) {
		make_atomic_write(flow, work);
	} else if (work_flushes(work)) {
		make_flush(flow, work, max);
	} else {
		make_payload(flow, work, max);
		if (work->opcode == IBV_WR_RDMA_WRITE || work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			make_remote(flow, work);
	}
	/* A READ through the window may still be in flight. */
	if (work->opcode == IBV_WR_SEND && window_close(flow, work))
		fence(flow, work);
	else
		window_use(flow, work);
	if (work_receives(work) &&
	    (flow_reliable(flow) ? rng_chance(&flow->rng, 300000) : flow->solicits))
		work->flags |= IBV_SEND_SOLICITED;
	if (work_receives(work))
		work->receive = (int32_t)flow->consumed_count++;
}

static void make_receives(struct flow *flow)
{
	const uint32_t max = flow->to->cap.max_recv_sge;

	flow->receive_count = flow->consumed_count;
	if (flow->pool == NULL && flow->to->type != IBV_QPT_XRC_SEND)
		flow->receive_count += (uint32_t)rng_below(&flow->rng, SURPLUS_RECEIVES_MAX + 1);
	flow->receives = calloc(flow->receive_count + 1, sizeof(*flow->receives));
	if (flow->receives == NULL)
		exit(1);
	for (uint32_t i = 0, w = 0; i < flow->receive_count; i++) {
		struct receive *receive = &flow->receives[i];
		uint32_t room = 0;

		receive->work = -1;
		if (i < flow->consumed_count) {
			while (flow->works[w].receive < 0)
				w++;
			receive->work = (int32_t)w++;
			if (flow->works[receive->work].opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
				room = flow->works[receive->work].length;
		}
		/*
		 * The memory of a shared queue's request is known only when the message is there.
		 */
		if (flow->pool != NULL)
			continue;
		if (flow->from->type == IBV_QPT_UD)
			room += SIM_GRH_BYTES;
		if (rng_chance(&flow->rng, 400000))
			room += (uint32_t)rng_below(&flow->rng, 200);
		receive->room = room;
		receive->first_span = flow->span_count;
		receive->spans = add_places(flow, flow->inbox, room, max);
	}
}

static unsigned int some_order(struct flow *flow)
{
	return rng_chance(&flow->rng, 400000) ? IBV_ACCESS_RELAXED_ORDERING : 0;
}

static void make_regions(struct flow *flow, uint32_t bytes)
{
	struct memory *from = &flow->from->host->memory;
	struct memory *to = &flow->to->host->memory;
	for (unsigned int i = 0; i < 2; i++) {
		struct region *region =
			memory_add_region(from, i == 0 ? 0 : IBV_ACCESS_REMOTE_READ);

		flow->source[i] = region_take(region, bytes, 1, &flow->rng);
		flow->target[i] =
			memory_add_region(to, ACCESS_ALL | IBV_ACCESS_MW_BIND | some_order(flow));
	}
	flow->landing = memory_add_region(from, IBV_ACCESS_LOCAL_WRITE | some_order(flow));
	flow->inbox = memory_add_region(to, IBV_ACCESS_LOCAL_WRITE);
}

/* Set the values that the other direction needs of this one. */
static bool plan_window(struct flow *flow)
{
	const uint32_t index = flow->work_count;

	if (!window_plan(flow->from->in, &flow->works[index], (int32_t)index))
		return false;
	flow->work_count++;
	return true;
}

void flow_make(struct flow *flow, uint32_t works, uint32_t bytes)
{
	const struct style style = choose_style(flow);

	if (flow->from->type == IBV_QPT_UD)
		bytes = DATAGRAM_BYTES;
	flow->solicits = rng_chance(&flow->rng, 300000);
	make_regions(flow, bytes);
	flow->works = calloc((size_t)works + 2 * EPISODES_MAX + 1, sizeof(*flow->works));
	if (flow->works == NULL)
		exit(1);
	while (works > 0) {
		if (rng_chance(&flow->rng, 200000) && plan_window(flow))
			continue;
		make_work(flow, &flow->works[flow->work_count++], &style, bytes);
		works--;
	}
	while (plan_window(flow))
		continue;
	make_receives(flow);
}
