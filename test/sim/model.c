/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory semantics of verbs, executed on the expected images in the order of posting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void gather(const struct flow *flow, const struct work *work, uint8_t *to)
{
	for (uint32_t i = 0; i < work->spans; i++) {
		const struct span *span = &flow->spans[work->first_span + i];

		span_load_expected(span, to);
		to += span->len;
	}
}

static void scatter(const struct flow *flow, uint32_t first, uint32_t spans, const uint8_t *from,
		    uint32_t len)
{
	for (uint32_t i = 0; i < spans && len > 0; i++) {
		const struct span *span = &flow->spans[first + i];
		const uint32_t n = span->len < len ? span->len : len;

		span_store_expected(span, from, n);
		from += n;
		len -= n;
	}
}

void model_scatter(const struct flow *flow, const struct receive *receive, const uint8_t *bytes,
		   uint32_t len)
{
	scatter(flow, receive->first_span, receive->spans, bytes, len);
}

static uint64_t load(const struct span *span)
{
	uint64_t v;

	memcpy(&v, span_expected(span), sizeof(v));
	return v;
}

/* A word of this flow alone: its value is known. Values that shared words held are checked at the
 * end. */
static void apply_atomic(struct flow *flow, struct work *work)
{
	const struct span *landing = &flow->spans[work->first_span];
	uint64_t original, after;

	if (work->word != NULL) {
		work->compare = work->guess_wrong ? ~work->word->seen : work->word->seen;
		return;
	}
	original = load(&work->remote);
	work->compare = work->guess_wrong ? ~original : original;
	if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		after = original + work->operand;
	else
		after = work->guess_wrong ? original : work->operand;
	memcpy(span_expected(landing), &original, sizeof(original));
	memcpy(span_expected(&work->remote), &after, sizeof(after));
}

/* The message may arrive or not, so the old value may stay. Remember it. */
static void expect_perhaps(const struct flow *flow, struct work *work, uint8_t *bytes)
{
	work->bytes = bytes;
	if (work->root < 0)
		return;
	work->old = malloc((size_t)work->length + 1);
	sim_check(flow->sim, work->old != NULL, "out of memory");
	span_load_expected(&work->remote, work->old);
}

static void apply_payload(struct flow *flow, struct work *work)
{
	uint8_t *bytes = malloc((size_t)work->length + 1);

	if (bytes == NULL) {
		perror("sim: model");
		exit(1);
	}
	gather(flow, work, bytes);
	if (!flow_reliable(flow)) {
		expect_perhaps(flow, work, bytes);
		return;
	}
	if (work->root >= 0) {
		span_store_expected(&work->remote, bytes, work->length);
	} else if (flow->pool != NULL) {
		/* The address is known when the message is received. */
		work->bytes = bytes;
		return;
	} else {
		model_scatter(flow, &flow->receives[work->receive], bytes, work->length);
	}
	free(bytes);
}

void model_apply(struct flow *flow, struct work *work)
{
	/* FLUSH changes no memory. */
	if (work_flushes(work) || work_is_local(work))
		return;
	if (work_is_atomic(work))
		apply_atomic(flow, work);
	else if (work->opcode != IBV_WR_RDMA_READ)
		apply_payload(flow, work);
	else if (work->length > 0)
		scatter(flow, work->first_span, work->spans, span_expected(&work->remote),
			work->length);
}
