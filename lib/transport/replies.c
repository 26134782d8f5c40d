/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers that a responder owes its requester, and the last requests that it stores. */
#include "transport/replies.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "replies_ring.h"
#include "transport/sack.h"
#include "wire/headers.h"

/* A stored request is forgotten when the expected PSN is this far beyond its last PSN: from there
 * on PSNs do not tell which of two is older. */
#define REPLIES_REACH (1u << 23)
/* Entries of a new ring, unless fewer are asked for. */
#define REPLIES_FIRST 2

static void replies_push(struct replies *replies, const struct reply *reply)
{
	assert(replies->tail - replies->head < 2 * (replies->mask + 1));
	*replies_pending(replies, replies->tail++) = *reply;
	replies->repeats += reply->repeated;
}

static void replies_remember(struct replies *replies, const struct reply *reply)
{
	*replies_resource(replies, replies->newest++) = *reply;
	if (replies->remembered < replies->resources)
		replies->remembered++;
}

/* Take over what `from` owes and stores, as far as there is room. */
static void replies_take_over(struct replies *replies, const struct replies *from)
{
	for (uint32_t i = from->newest - from->remembered; i != from->newest; i++)
		replies_remember(replies, replies_resource(from, i));
	for (uint32_t i = from->head;
	     i != from->tail && replies->tail - replies->head < 2 * (replies->mask + 1); i++) {
		const struct reply *owed = replies_pending(from, i);

		/* Duplicates may use only their half of the ring, because new requests rely on the
		 * other half. */
		if (!owed->repeated || replies->repeats <= replies->mask)
			replies_push(replies, owed);
	}
}

/* Allocate both rings in one piece, the second one with twice as many entries. */
static int replies_resize(struct replies *replies, uint32_t entries, uint32_t resources)
{
	struct replies old = *replies;
	struct reply *resource = calloc(3 * (size_t)entries, sizeof(*resource));

	if (resource == NULL)
		return -ENOMEM;
	replies_clear(replies);
	replies->resource = resource;
	replies->pending = resource + entries;
	replies->resources = (uint16_t)resources;
	replies->mask = entries - 1;
	replies->ack_due = old.ack_due;
	replies->nak_due = old.nak_due;
	replies->absent = old.absent;
	replies->page_wait = old.page_wait;
	replies->notice_due = old.notice_due;
	replies->introduces = old.introduces;
	replies_take_over(replies, &old);
	replies_fini(&old);
	return 0;
}

/* Return the number of READs and atomics at a time, if the attribute of the queue pair is `said`.
 */
static uint32_t replies_resources(const struct replies *replies, uint32_t said)
{
	return replies_sack(replies) ? sack_resources(said) : said;
}

void replies_set_capability(struct replies *replies, uint8_t capability)
{
	replies->capability = capability;
	replies->resources = (uint16_t)replies_resources(replies, replies->said);
	replies->remembered = RTE_MIN(replies->remembered, (uint32_t)replies->resources);
}

int replies_init(struct replies *replies, uint32_t said)
{
	const uint32_t resources = replies_resources(replies, said);
	const uint32_t full = rte_align32pow2(RTE_MAX(resources, 1u));

	replies->said = (uint16_t)said;
	if (replies->resource == NULL) {
		replies->resources = (uint16_t)resources;
		replies->mask = RTE_MIN(full, (uint32_t)REPLIES_FIRST) - 1;
		return 0;
	}
	return replies_resize(replies, RTE_MIN(full, replies->mask + 1), resources);
}

bool replies_grow(struct replies *replies)
{
	const uint32_t now = replies->mask + 1;

	return replies_resize(replies, replies->resource == NULL ? now : 2 * now,
			      replies->resources) == 0;
}

void replies_fini(struct replies *replies)
{
	free(replies->resource);
	replies->resource = NULL;
	replies->pending = NULL;
	replies->resources = 0;
}

void replies_clear(struct replies *replies)
{
	replies->newest = 0;
	replies->remembered = 0;
	replies->head = 0;
	replies->tail = 0;
	replies->repeats = 0;
	replies->ack_due = false;
	replies->nak_due = false;
	replies->absent = false;
	replies->notice_due = false;
	replies->introduces = false;
	page_wait_end(&replies->page_wait);
}

void replies_forget_pd(struct replies *replies, const struct pd *pd, const struct pd *instead)
{
	for (uint32_t i = 1; i <= replies->remembered; i++) {
		struct reply *reply = replies_resource(replies, replies->newest - i);

		if (reply->pd == pd)
			reply->pd = instead;
	}
	for (uint32_t i = replies->head; i != replies->tail; i++) {
		struct reply *reply = replies_pending(replies, i);

		if (reply->pd == pd)
			reply->pd = instead;
	}
}

void replies_forget_old(struct replies *replies, struct psn expected)
{
	/* Drop the oldest first. */
	while (replies->remembered > 0 &&
	       psn_since(expected,
			 replies_resource(replies, replies->newest - replies->remembered)->last) >=
		       REPLIES_REACH)
		replies->remembered--;
	replies->introduces = replies->introduces && psn_since(expected, replies->introduction) <
							     SACK_INTRODUCTION_PSNS / 2;
}

void replies_add(struct replies *replies, const struct reply *reply)
{
	replies_forget_old(replies, reply->first);
	replies_remember(replies, reply);
	replies_push(replies, reply);
}

static bool reply_contains(const struct reply *reply, struct psn psn)
{
	return !psn_before(psn, reply->first) && !psn_before(reply->last, psn);
}

const struct reply *replies_find(const struct replies *replies, struct psn psn)
{
	for (uint32_t i = 1; i <= replies->remembered; i++) {
		const struct reply *reply = replies_resource(replies, replies->newest - i);

		if (reply_contains(reply, psn))
			return reply;
	}
	return NULL;
}

/* Return true if a response is still to be sent, or, to a requester that sends requests twice, if
 * the same responses are being sent. */
static bool replies_owe(const struct replies *replies, const struct reply *reply)
{
	for (uint32_t i = replies->head; i != replies->tail; i++) {
		const struct reply *owed = replies_pending(replies, i);
		const struct psn next = psn_add(owed->first, (int32_t)owed->sent);

		if (!reply_contains(owed, reply->first))
			continue;
		if (!psn_before(reply->first, next) ||
		    (replies_sack(replies) && psn_eq(owed->first, reply->first) &&
		     psn_eq(owed->last, reply->last)))
			return true;
	}
	return false;
}

bool replies_owe_read(const struct replies *replies, uint32_t rkey)
{
	for (uint32_t i = replies->head; i != replies->tail; i++) {
		const struct reply *owed = replies_pending(replies, i);

		if (owed->kind == REPLY_READ && owed->rkey == rkey)
			return true;
	}
	return false;
}

bool replies_owe_passed(const struct replies *replies)
{
	for (uint32_t i = replies->head; i != replies->tail; i++) {
		const struct reply *owed = replies_pending(replies, i);

		if (owed->srqn != 0 && !owed->repeated)
			return true;
	}
	return false;
}

static void replies_push_repeated(struct replies *replies, struct reply reply)
{
	reply.sent = 0;
	reply.repeated = true;
	replies_push(replies, &reply);
}

/*
 * A requester that understands selective acknowledgements takes responses in any order, and its
 * oldest ones keep it waiting. So a reply that is owed again goes before all that is owed for the
 * first time, and behind the others that are owed again.
 */
static void replies_hurry(struct replies *replies)
{
	const struct reply hurried = *replies_pending(replies, replies->tail - 1);
	uint32_t place = replies->head, i;

	while (replies_pending(replies, place)->hurried)
		place++;
	for (i = replies->tail - 1; i != place; i--)
		*replies_pending(replies, i) = *replies_pending(replies, i - 1);
	*replies_pending(replies, place) = hurried;
	replies_pending(replies, place)->hurried = true;
}

void replies_repeat(struct replies *replies, const struct reply *reply)
{
	const struct reply again = *reply; /* a copy, because it may be in a ring that grows */

	if (replies->repeats < replies->resources && !replies_owe(replies, &again) &&
	    replies_reserve_among(replies, replies->resources)) {
		replies_push_repeated(replies, again);
		/* While the oldest one waits for a page, the others wait in their order. */
		if (replies_sack(replies) && !replies->absent)
			replies_hurry(replies);
	}
}

void replies_empty_read(struct replies *replies, struct psn psn, uint32_t msn)
{
	const struct reply empty = {
		.kind = REPLY_EMPTY_READ, .first = psn, .last = psn, .msn = msn};

	if (!replies_owe(replies, &empty) && replies_reserve_empty_read(replies))
		replies_push_repeated(replies, empty);
}

void replies_repeat_empty_read(struct replies *replies, struct psn psn, uint32_t msn)
{
	if (replies->repeats < RTE_MAX(replies->resources, 1u))
		replies_empty_read(replies, psn, msn);
}

void replies_ack(struct replies *replies, struct psn psn, uint32_t msn)
{
	replies->ack_due = true;
	replies->ack_psn = psn;
	replies->ack_msn = msn;
}

void replies_nak(struct replies *replies, uint8_t syndrome, struct psn psn, uint32_t msn)
{
	replies->nak_due = true;
	replies->nak_syndrome = syndrome;
	replies->nak_psn = psn;
	replies->nak_msn = msn;
}

bool replies_withdraw_ack(struct replies *replies)
{
	const bool due = replies->ack_due;

	replies->ack_due = false;
	return due;
}

void replies_check(const struct replies *replies)
{
#ifndef NDEBUG
	uint32_t repeats = 0;

	assert(replies->tail - replies->head <= 2 * (replies->mask + 1));
	assert(replies->remembered <= replies->mask + 1);
	assert(replies->remembered <= replies->resources);
	assert(replies->resource != NULL || replies->head == replies->tail);
	assert(replies->resource != NULL || replies->remembered == 0);
	for (uint32_t i = replies->head; i != replies->tail; i++) {
		const struct reply *reply = replies_pending(replies, i);

		assert(reply->sent <= psn_since(reply->last, reply->first));
		repeats += reply->repeated;
	}
	assert(repeats == replies->repeats);
	assert(repeats <= replies->mask + 1);
#else
	(void)replies;
#endif
}
