/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of packets in flight that are missing, were sent again, or have come. */
#include "transport/scoreboard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void scoreboard_init(struct scoreboard *board)
{
	board->ranges = board->few;
	board->room = SCOREBOARD_FEW;
	scoreboard_clear(board);
}

void scoreboard_fini(struct scoreboard *board)
{
	if (board->ranges != board->few)
		free(board->ranges);
	scoreboard_init(board);
}

static struct scoreboard_range *begin(const struct scoreboard *board)
{
	return board->ranges + board->first;
}

/* Return the index of the first range that ends behind `psn`, or the number of ranges. */
static uint32_t scoreboard_seek(const struct scoreboard *board, struct psn psn)
{
	const struct scoreboard_range *ranges = begin(board);
	uint32_t low = 0, high = board->count;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;

		if (psn_before(psn, ranges[middle].to))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Return the part of a range from `psn` on. */
static struct scoreboard_range range_from(struct scoreboard_range range, struct psn psn)
{
	if (range.order != 0)
		range.order += (uint32_t)psn_diff(psn, range.from);
	range.from = psn;
	return range;
}

void scoreboard_forget(struct scoreboard *board, struct psn psn)
{
	const uint32_t gone = scoreboard_seek(board, psn);

	board->first += gone;
	board->count -= gone;
	if (board->count == 0)
		board->first = 0;
	else if (psn_before(begin(board)->from, psn))
		*begin(board) = range_from(*begin(board), psn);
}

/* Allocate more memory. */
static bool scoreboard_grow(struct scoreboard *board)
{
	const uint32_t room = 2 * board->room;
	struct scoreboard_range *ranges;

	ranges = room > SCOREBOARD_LIMIT ? NULL : malloc(room * sizeof(*ranges));
	if (ranges == NULL)
		return false;
	memcpy(ranges, begin(board), board->count * sizeof(*ranges));
	if (board->ranges != board->few)
		free(board->ranges);
	board->ranges = ranges;
	board->room = room;
	board->first = 0;
	return true;
}

/* Make room for so many ranges, a few more than there are. */
static bool scoreboard_reserve(struct scoreboard *board, uint32_t count)
{
	if (board->first + count <= board->room)
		return true;
	/* Use the room before the first range, unless so little is left that this would be
	 * necessary again and again. */
	if (count > board->room / 2 && scoreboard_grow(board) && count <= board->room)
		return true;
	if (count > board->room)
		return false;
	memmove(board->ranges, begin(board), board->count * sizeof(*board->ranges));
	board->first = 0;
	return true;
}

/* Replace the ranges [at, at + old) by these. */
static void scoreboard_splice(struct scoreboard *board, uint32_t at, uint32_t old,
			      const struct scoreboard_range *by, uint32_t count)
{
	struct scoreboard_range *place = begin(board) + at;

	memmove(place + count, place + old, (board->count - at - old) * sizeof(*place));
	memcpy(place, by, count * sizeof(*place));
	board->count += count - old;
}

/* Return true if a range continues another one: the same is known about both. */
static bool continues(const struct scoreboard_range *range, const struct scoreboard_range *last)
{
	if (range->state != last->state || !psn_eq(last->to, range->from))
		return false;
	if (last->order == 0 && range->order == 0)
		return true;
	return last->order + (uint32_t)psn_diff(last->to, last->from) == range->order &&
	       psn_eq(last->next, range->next);
}

/* Append a range to a list of new ones; to the last of them if it continues it. */
static void append(struct scoreboard_range *list, uint32_t *count, struct scoreboard_range range)
{
	struct scoreboard_range *last = *count > 0 ? &list[*count - 1] : NULL;

	if (range.state == RANGE_SENT || !psn_before(range.from, range.to))
		return;
	if (last != NULL && continues(&range, last))
		last->to = range.to;
	else
		list[(*count)++] = range;
}

static bool scoreboard_put(struct scoreboard *board, struct scoreboard_range range)
{
	const bool spares = range.state == RANGE_CAME || range.state == RANGE_SENT;
	const struct psn from = range.from, to = range.to;
	const struct scoreboard_range *ranges = begin(board);
	struct scoreboard_range list[5];
	uint32_t at = scoreboard_seek(board, from), end = at, count = 0;

	/* Also look at the neighbours, which the new range may continue. */
	at -= at > 0;
	while (end < board->count && !psn_before(to, ranges[end].from))
		end++;
	for (uint32_t i = at; i < end && psn_before(ranges[i].from, from); i++) {
		struct scoreboard_range left = ranges[i];

		if (psn_before(from, left.to))
			left.to = from;
		append(list, &count, left);
	}
	append(list, &count, range);
	for (uint32_t i = at; i < end; i++) {
		struct scoreboard_range right = ranges[i];

		if (!psn_before(to, right.to))
			continue;
		if (psn_before(right.from, to))
			right = range_from(right, to);
		append(list, &count, right);
	}
	if (count > end - at && !scoreboard_reserve(board, board->count - (end - at) + count +
								   (spares ? SCOREBOARD_SPARE : 0)))
		return false;
	scoreboard_splice(board, at, end - at, list, count);
	return true;
}

bool scoreboard_mark(struct scoreboard *board, struct psn from, struct psn to,
		     enum range_state state)
{
	return scoreboard_put(board,
			      (struct scoreboard_range){.from = from, .to = to, .state = state});
}

bool scoreboard_mark_again(struct scoreboard *board, struct psn from, struct psn to, uint32_t order,
			   struct psn next)
{
	return scoreboard_put(board, (struct scoreboard_range){.from = from,
							       .to = to,
							       .state = RANGE_SENT_AGAIN,
							       .order = order,
							       .next = next});
}

void scoreboard_lose_again(struct scoreboard *board, struct psn came, uint32_t order)
{
	for (uint32_t i = 0; i < board->count; i++) {
		struct scoreboard_range *range = begin(board) + i;
		const int32_t later = (int32_t)(order - range->order);
		const struct psn from = range->from;

		if (range->state != RANGE_SENT_AGAIN || range->order == 0)
			continue;
		if (psn_before(range->next, came) || later >= psn_diff(range->to, from)) {
			*range = (struct scoreboard_range){
				.from = from, .to = range->to, .state = RANGE_MISSING};
		} else if (later > 0) {
			/* The rest follows as a range of its own, of which nothing is lost. Without
			 * memory the retransmission timer finds this loss. */
			scoreboard_mark(board, from, psn_add(from, later), RANGE_MISSING);
		}
	}
	/* Join those that are adjacent now. */
	scoreboard_replace(board, RANGE_MISSING, RANGE_MISSING);
}

void scoreboard_replace(struct scoreboard *board, enum range_state state, enum range_state by)
{
	struct scoreboard_range *ranges = begin(board);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < board->count; i++) {
		struct scoreboard_range range = ranges[i];

		if (range.state == state)
			range = (struct scoreboard_range){
				.from = range.from, .to = range.to, .state = by};
		append(ranges, &kept, range);
	}
	board->count = kept;
}

const struct scoreboard_range *scoreboard_first(const struct scoreboard *board,
						enum range_state state)
{
	const struct scoreboard_range *ranges = begin(board);

	for (uint32_t i = 0; i < board->count; i++) {
		if (ranges[i].state == state)
			return &ranges[i];
	}
	return NULL;
}

uint32_t scoreboard_settled(const struct scoreboard *board)
{
	const struct scoreboard_range *ranges = begin(board);
	uint32_t count = 0;

	for (uint32_t i = 0; i < board->count; i++) {
		if (ranges[i].state != RANGE_SENT_AGAIN)
			count += (uint32_t)psn_diff(ranges[i].to, ranges[i].from);
	}
	return count;
}

const struct scoreboard_range *scoreboard_last_open(const struct scoreboard *board)
{
	const struct scoreboard_range *ranges = begin(board);

	for (uint32_t i = board->count; i > 0; i--) {
		if (ranges[i - 1].state != RANGE_CAME)
			return &ranges[i - 1];
	}
	return NULL;
}

const struct scoreboard_range *scoreboard_look(const struct scoreboard *board, struct psn psn,
					       struct psn to, struct psn *end)
{
	static const struct scoreboard_range sent = {.state = RANGE_SENT};
	const uint32_t i = scoreboard_seek(board, psn);
	const struct scoreboard_range *range = begin(board) + i;

	*end = to;
	if (i == board->count)
		return &sent;
	if (psn_before(psn, range->from)) {
		if (psn_before(range->from, to))
			*end = range->from;
		return &sent;
	}
	if (psn_before(range->to, to))
		*end = range->to;
	return range;
}

enum range_state scoreboard_at(const struct scoreboard *board, struct psn psn)
{
	const uint32_t i = scoreboard_seek(board, psn);

	if (i == board->count || psn_before(psn, begin(board)[i].from))
		return RANGE_SENT;
	return begin(board)[i].state;
}

void scoreboard_check(const struct scoreboard *board, struct psn una, struct psn top)
{
#ifndef NDEBUG
	const struct scoreboard_range *ranges = begin(board);
	struct psn end = una;

	assert(board->first + board->count <= board->room);
	for (uint32_t i = 0; i < board->count; i++) {
		assert(ranges[i].state != RANGE_SENT);
		assert(!psn_before(ranges[i].from, end));
		assert(psn_before(ranges[i].from, ranges[i].to));
		end = ranges[i].to;
	}
	assert(!psn_before(top, end));
#else
	(void)board;
	(void)una;
	(void)top;
#endif
}
