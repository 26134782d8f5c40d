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

void scoreboard_forget(struct scoreboard *board, struct psn psn)
{
	const uint32_t gone = scoreboard_seek(board, psn);

	board->first += gone;
	board->count -= gone;
	if (board->count == 0)
		board->first = 0;
	else if (psn_before(begin(board)->from, psn))
		begin(board)->from = psn;
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

/* Append a range to a list of new ones; to the last of them if it continues it. */
static void append(struct scoreboard_range *list, uint32_t *count, struct scoreboard_range range)
{
	struct scoreboard_range *last = *count > 0 ? &list[*count - 1] : NULL;

	if (range.state == RANGE_SENT || !psn_before(range.from, range.to))
		return;
	if (last != NULL && last->state == range.state && psn_eq(last->to, range.from))
		last->to = range.to;
	else
		list[(*count)++] = range;
}

bool scoreboard_mark(struct scoreboard *board, struct psn from, struct psn to,
		     enum range_state state)
{
	const bool spares = state == RANGE_CAME || state == RANGE_SENT;
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
	append(list, &count, (struct scoreboard_range){.from = from, .to = to, .state = state});
	for (uint32_t i = at; i < end; i++) {
		struct scoreboard_range right = ranges[i];

		if (!psn_before(to, right.to))
			continue;
		if (psn_before(right.from, to))
			right.from = to;
		append(list, &count, right);
	}
	if (!scoreboard_reserve(board, board->count - (end - at) + count +
					       (spares ? SCOREBOARD_SPARE : 0)))
		return false;
	scoreboard_splice(board, at, end - at, list, count);
	return true;
}

void scoreboard_replace(struct scoreboard *board, enum range_state state, enum range_state by)
{
	struct scoreboard_range *ranges = begin(board);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < board->count; i++) {
		struct scoreboard_range range = ranges[i];

		if (range.state == state)
			range.state = by;
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
