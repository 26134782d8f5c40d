/* SPDX-License-Identifier: BSD-3-Clause */
/* Bitmaps of packets in flight that are missing, were sent again, or have come. */
#include "transport/scoreboard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "transport/sack.h"
#include "wire/packet.h"

#define MISSING RANGE_MISSING
#define AGAIN	RANGE_SENT_AGAIN
#define CAME	RANGE_CAME

static_assert(SCOREBOARD_LIMIT <= UINT16_MAX / 2, "16 bits identify a PSN, and a place");

/* Packets whose bits are in one word. */
struct stretch {
	uint32_t word;
	uint64_t mask;
	struct psn zero; /* PSN of the word's bit 0 */
};

void scoreboard_init(struct scoreboard *board)
{
	*board = (struct scoreboard){.tail = psn_none()};
	board->packets = SCOREBOARD_FEW;
	for (int state = MISSING; state < RANGE_STATES; state++)
		board->bits[state] = board->few[state - 1];
}

/* Forget the order in which packets were sent again. */
static void forget_order(struct scoreboard *board)
{
	for (int kind = 0; kind < AGAIN_KINDS; kind++)
		board->first[kind] = board->order;
}

void scoreboard_begin(struct scoreboard *board, struct psn una)
{
	board->base = una;
	board->end = una;
	forget_order(board);
	for (int kind = 0; kind < AGAIN_KINDS; kind++) {
		board->came[kind] = una;
		board->newest[kind] = board->order;
	}
}

void scoreboard_fini(struct scoreboard *board)
{
	if (board->bits[MISSING] != board->few[0])
		free(board->bits[MISSING]);
	free(board->again);
	scoreboard_init(board);
}

/* Take the next packets of [*psn, to), all those in one word. Return false if there are none. */
static bool stretch_next(struct scoreboard *board, struct psn *psn, struct psn to,
			 struct stretch *stretch)
{
	const int32_t left = psn_diff(to, *psn);
	const uint32_t at = psn->v % board->packets, bit = at % 64;
	const uint32_t count = RTE_MIN(64 - bit, (uint32_t)left);

	if (left <= 0)
		return false;
	*stretch = (struct stretch){.word = at / 64,
				    .mask = UINT64_MAX >> (64 - count) << bit,
				    .zero = psn_add(*psn, -(int32_t)bit)};
	*psn = psn_add(*psn, (int32_t)count);
	board->steps++;
	return true;
}

static uint64_t bits_at(const struct scoreboard *board, enum range_state state, uint32_t word)
{
	return board->bits[state][word];
}

/* Return the bits of packets of which something is known. */
static uint64_t known_at(const struct scoreboard *board, uint32_t word)
{
	return bits_at(board, MISSING, word) | bits_at(board, AGAIN, word) |
	       bits_at(board, CAME, word);
}

/* Set bits that are not set. */
static void give(struct scoreboard *board, enum range_state state, uint32_t word, uint64_t bits)
{
	board->bits[state][word] |= bits;
	board->count[state] += (uint32_t)__builtin_popcountll(bits);
}

/* Clear bits. Return those that were set. */
static uint64_t take(struct scoreboard *board, enum range_state state, uint32_t word, uint64_t mask)
{
	const uint64_t bits = board->bits[state][word] & mask;

	board->bits[state][word] &= ~mask;
	board->count[state] -= (uint32_t)__builtin_popcountll(bits);
	return bits;
}

static void take_all(struct scoreboard *board, uint32_t word, uint64_t mask)
{
	take(board, MISSING, word, mask);
	take(board, AGAIN, word, mask);
	take(board, CAME, word, mask);
}

static void forget(struct scoreboard *board, struct psn from, struct psn to)
{
	struct stretch stretch;

	while (stretch_next(board, &from, to, &stretch))
		take_all(board, stretch.word, stretch.mask);
}

void scoreboard_clear(struct scoreboard *board)
{
	forget(board, board->base, board->end);
	board->end = board->base;
	forget_order(board);
}

void scoreboard_forget(struct scoreboard *board, struct psn psn)
{
	forget(board, board->base, psn_before(psn, board->end) ? psn : board->end);
	board->base = psn;
	if (psn_before(board->end, psn))
		board->end = psn;
}

/* Allocate the memory for the order in which packets are sent again. */
static bool reserve_order(struct scoreboard *board)
{
	if (board->again != NULL)
		return true;
	board->again = calloc(board->packets, sizeof(*board->again) + sizeof(*board->place));
	if (board->again == NULL)
		return false;
	board->place = (uint16_t *)(board->again + board->packets);
	forget_order(board);
	return true;
}

/* Return the number of the oldest entry that may count. */
static uint32_t oldest(const struct scoreboard *board)
{
	const uint32_t a = board->first[AGAIN_REQUEST], b = board->first[AGAIN_RESPONSE];

	return board->order - a > board->order - b ? a : b;
}

/* Take over the order from a scoreboard with less room. Without memory there is no order. */
static void move_order(struct scoreboard *board, const struct scoreboard *from)
{
	board->again = NULL;
	if (from->again == NULL || !reserve_order(board))
		return;
	memcpy(board->first, from->first, sizeof(board->first));
	for (uint32_t i = oldest(board); i != from->order; i++)
		board->again[i % board->packets] = from->again[i % from->packets];
	for (struct psn psn = from->base; psn_before(psn, from->end); psn = psn_add(psn, 1))
		board->place[psn.v % board->packets] = from->place[psn.v % from->packets];
}

/* Allocate memory for so many packets. */
static bool grow(struct scoreboard *board, uint32_t packets)
{
	const struct scoreboard old = *board;
	const uint32_t words = packets / 64;
	uint64_t *bits = calloc((RANGE_STATES - 1) * words, sizeof(*bits));
	struct psn psn = board->base;

	if (bits == NULL)
		return false;
	board->packets = packets;
	for (int state = MISSING; state < RANGE_STATES; state++)
		board->bits[state] = bits + (state - 1) * words;
	/* The old words are as many words of the new ones, from this word on. */
	for (uint32_t i = 0; i <= old.packets / 64; i++) {
		const uint32_t to = psn.v % packets / 64, from = psn.v % old.packets / 64;
		const bool again = i == old.packets / 64;
		const uint32_t bit = psn.v % 64;
		/* The word of `base` has the bits of the first packets, and of the last. */
		const uint64_t part = again    ? ~(UINT64_MAX << bit)
				      : i == 0 ? UINT64_MAX << bit
					       : UINT64_MAX;

		for (int state = MISSING; state < RANGE_STATES; state++)
			board->bits[state][to] |= old.bits[state][from] & part;
		psn = psn_add(psn, 64);
	}
	move_order(board, &old);
	if (old.bits[MISSING] != board->few[0])
		free(old.bits[MISSING]);
	free(old.again);
	return true;
}

/* Make room for the packets before *to. Without memory, reduce *to. */
static bool reserve(struct scoreboard *board, struct psn *to)
{
	const uint32_t psns = (uint32_t)psn_diff(*to, board->base);

	if (likely(psn_diff(*to, board->base) <= (int32_t)board->packets))
		return true;
	if (psns <= SCOREBOARD_LIMIT && grow(board, rte_align32pow2(psns)))
		return true;
	*to = psn_add(board->base, (int32_t)board->packets);
	return false;
}

/* Let the bits before `to` be valid. */
static void reach(struct scoreboard *board, struct psn to)
{
	if (psn_before(board->end, to))
		board->end = to;
}

bool scoreboard_mark(struct scoreboard *board, struct psn from, struct psn to,
		     enum range_state state)
{
	const bool fits = reserve(board, &to);
	struct stretch stretch;

	while (stretch_next(board, &from, to, &stretch)) {
		take_all(board, stretch.word, stretch.mask);
		if (state != RANGE_SENT)
			give(board, state, stretch.word, stretch.mask);
	}
	if (state != RANGE_SENT)
		reach(board, to);
	return fits;
}

/* Note the number of a packet that is sent again. */
static void note_order(struct scoreboard *board, struct psn psn, struct psn next,
		       enum again_kind kind)
{
	/* If the oldest entry still counts, only a timer finds that its packet is lost. */
	for (int k = 0; k < AGAIN_KINDS; k++)
		board->first[k] += board->order - board->first[k] == board->packets;
	board->again[board->order % board->packets] = (struct scoreboard_again){
		.psn = (uint16_t)psn.v, .next = (uint16_t)next.v, .kind = (uint8_t)kind};
	board->place[psn.v % board->packets] = (uint16_t)board->order++;
	board->steps++;
}

bool scoreboard_mark_again(struct scoreboard *board, struct psn from, struct psn to,
			   struct psn next, enum again_kind kind)
{
	const bool fits = reserve(board, &to);

	scoreboard_mark(board, from, to, RANGE_SENT_AGAIN);
	if (!reserve_order(board))
		return false;
	for (; psn_before(from, to); from = psn_add(from, 1))
		note_order(board, from, next, kind);
	return fits;
}

/* Return the PSN from `base` on that has these last 16 bits. */
static struct psn psn_of(const struct scoreboard *board, uint16_t bits)
{
	return psn_add(board->base, (uint16_t)(bits - board->base.v));
}

/* Return true if the entry with this number counts: its packet was not sent again since, and is not
 * known to have come or to be lost. */
static bool is_open(const struct scoreboard *board, uint32_t number, struct psn *psn)
{
	*psn = psn_of(board, board->again[number % board->packets].psn);
	return scoreboard_at(board, *psn) == RANGE_SENT_AGAIN &&
	       board->place[psn->v % board->packets] == (uint16_t)number;
}

/* Note that a packet that was sent again has come; or perhaps its first transmission, which was
 * late. */
static void note_again(struct scoreboard *board, struct psn psn, enum again_kind kind)
{
	uint32_t first, number;

	board->steps++;
	if (board->again == NULL)
		return;
	first = oldest(board);
	number = first + (uint16_t)(board->place[psn.v % board->packets] - (uint16_t)first);
	if (number - first >= board->order - first ||
	    board->again[number % board->packets].psn != (uint16_t)psn.v)
		return;
	if ((int32_t)(number - board->newest[kind]) > 0)
		board->newest[kind] = number;
}

static void note_end(struct scoreboard *board, struct psn end, enum again_kind kind)
{
	if (psn_before(board->came[kind], end))
		board->came[kind] = end;
}

/* Note that these packets of a word have come, and that those in `again` were sent again. */
static void note(struct scoreboard *board, const struct stretch *stretch, uint64_t bits,
		 uint64_t again, enum again_kind kind)
{
	const uint64_t once = bits & ~again;

	for (; again != 0; again &= again - 1)
		note_again(board, psn_add(stretch->zero, __builtin_ctzll(again)), kind);
	if (once != 0)
		note_end(board, psn_add(stretch->zero, 64 - __builtin_clzll(once)), kind);
}

void scoreboard_note_came(struct scoreboard *board, struct psn from, struct psn to,
			  enum again_kind kind)
{
	struct stretch stretch;

	/* Packets behind `end` were sent once. */
	if (psn_before(from, to) && psn_before(board->end, to)) {
		note_end(board, to, kind);
		to = board->end;
	}
	while (stretch_next(board, &from, to, &stretch))
		note(board, &stretch, stretch.mask,
		     bits_at(board, AGAIN, stretch.word) & stretch.mask, kind);
}

/* Let packets of a word be missing. */
static void lose(struct scoreboard *board, uint32_t word, uint64_t bits)
{
	if (bits == 0)
		return;
	board->missed = true;
	board->dropped |= take(board, CAME, word, bits) != 0;
	give(board, MISSING, word, bits);
}

/* Return which packets of a word were sent once, or, if `drops`, have come. */
static uint64_t may_be_lost(const struct scoreboard *board, const struct stretch *stretch,
			    bool drops)
{
	const uint64_t open =
		bits_at(board, MISSING, stretch->word) | bits_at(board, AGAIN, stretch->word);

	return stretch->mask & ~(open | (drops ? 0 : bits_at(board, CAME, stretch->word)));
}

void scoreboard_tell(struct scoreboard *board, const struct packet *sack, struct psn from,
		     struct psn to, bool drops)
{
	struct stretch stretch;

	reserve(board, &to);
	reach(board, to);
	for (struct psn psn = from; stretch_next(board, &psn, to, &stretch);) {
		const uint32_t word = stretch.word;
		const int bit = __builtin_ctzll(stretch.mask);
		const uint32_t behind = (uint32_t)psn_diff(psn_add(stretch.zero, bit), sack->psn);
		const uint64_t kept = sack_word(sack, behind) << bit & stretch.mask;
		const uint64_t came = kept & ~bits_at(board, CAME, word);

		note(board, &stretch, came, take(board, AGAIN, word, came), AGAIN_REQUEST);
		take(board, MISSING, word, came);
		give(board, CAME, word, came);
		lose(board, word, may_be_lost(board, &stretch, drops) & ~kept);
	}
}

void scoreboard_miss(struct scoreboard *board, struct psn from, struct psn to, bool drops)
{
	struct stretch stretch;

	reserve(board, &to);
	reach(board, to);
	while (stretch_next(board, &from, to, &stretch))
		lose(board, stretch.word, may_be_lost(board, &stretch, drops));
}

/* Do what scoreboard_lose_again does, for packets of a kind. */
static void lose_again(struct scoreboard *board, enum again_kind kind)
{
	uint32_t *first = &board->first[kind];
	struct psn psn;

	for (; *first != board->order; ++*first) {
		const struct scoreboard_again *again = &board->again[*first % board->packets];

		board->steps++;
		if (again->kind != kind || !is_open(board, *first, &psn))
			continue;
		/* The numbers grow, and so does `next`: nothing behind is lost, either. */
		if ((int32_t)(board->newest[kind] - *first) <= 0 &&
		    !psn_before(psn_of(board, again->next), board->came[kind]))
			return;
		take(board, AGAIN, psn.v % board->packets / 64, UINT64_C(1) << psn.v % 64);
		give(board, MISSING, psn.v % board->packets / 64, UINT64_C(1) << psn.v % 64);
	}
}

/* Each entry is looked at once for each kind, so this costs no more than sending the packets
 * did. */
void scoreboard_lose_again(struct scoreboard *board)
{
	for (int kind = 0; kind < AGAIN_KINDS && board->again != NULL; kind++)
		lose_again(board, (enum again_kind)kind);
}

void scoreboard_replace(struct scoreboard *board, struct psn from, enum range_state state,
			enum range_state by)
{
	struct stretch stretch;

	if (board->count[state] == 0)
		return;
	while (stretch_next(board, &from, board->end, &stretch)) {
		const uint64_t bits = take(board, state, stretch.word, stretch.mask);

		if (by != RANGE_SENT)
			give(board, by, stretch.word, bits);
	}
}

bool scoreboard_first(struct scoreboard *board, enum range_state state, struct psn *from,
		      struct psn *to)
{
	struct psn psn = board->base;
	struct stretch stretch;

	if (board->count[state] == 0)
		return false;
	while (stretch_next(board, &psn, board->end, &stretch)) {
		const uint64_t bits = bits_at(board, state, stretch.word) & stretch.mask;

		if (bits == 0)
			continue;
		*from = psn_add(stretch.zero, __builtin_ctzll(bits));
		scoreboard_look(board, *from, board->end, to);
		return true;
	}
	return false;
}

bool scoreboard_last_open(struct scoreboard *board, struct psn *psn)
{
	struct psn end = board->end;

	if ((board->count[MISSING] | board->count[AGAIN]) == 0)
		return false;
	for (;;) {
		const struct psn last = psn_add(end, -1);
		const uint32_t bit = last.v % 64, word = last.v % board->packets / 64;
		const uint64_t bits =
			(bits_at(board, MISSING, word) | bits_at(board, AGAIN, word)) &
			UINT64_MAX >> (63 - bit);

		board->steps++;
		if (bits != 0) {
			*psn = psn_add(last, 63 - __builtin_clzll(bits) - (int32_t)bit);
			return true;
		}
		end = psn_add(last, -(int32_t)bit);
	}
}

enum range_state scoreboard_look(struct scoreboard *board, struct psn psn, struct psn to,
				 struct psn *end)
{
	const enum range_state state = scoreboard_at(board, psn);
	const struct psn known = psn_before(to, board->end) ? to : board->end;
	struct stretch stretch;

	while (stretch_next(board, &psn, known, &stretch)) {
		const uint64_t others = state == RANGE_SENT ? known_at(board, stretch.word)
							    : ~bits_at(board, state, stretch.word);

		if ((others & stretch.mask) != 0) {
			*end = psn_add(stretch.zero, __builtin_ctzll(others & stretch.mask));
			return state;
		}
	}
	*end = state == RANGE_SENT ? to : known;
	return state;
}

enum range_state scoreboard_at(const struct scoreboard *board, struct psn psn)
{
	const uint32_t word = psn.v % board->packets / 64;
	const uint64_t bit = UINT64_C(1) << psn.v % 64;

	if (psn_before(psn, board->base) || !psn_before(psn, board->end))
		return RANGE_SENT;
	for (int state = MISSING; state < RANGE_STATES; state++) {
		if (bits_at(board, (enum range_state)state, word) & bit)
			return (enum range_state)state;
	}
	return RANGE_SENT;
}

void scoreboard_check(const struct scoreboard *board, struct psn una, struct psn top)
{
#ifndef NDEBUG
	uint32_t count[RANGE_STATES] = {0};

	assert(psn_eq(board->base, una));
	assert(!psn_before(board->end, una) && !psn_before(top, board->end));
	assert(psn_diff(board->end, una) <= (int32_t)board->packets);
	for (uint32_t word = 0; word < board->packets / 64; word++) {
		assert((bits_at(board, MISSING, word) & bits_at(board, AGAIN, word)) == 0);
		assert(((bits_at(board, MISSING, word) | bits_at(board, AGAIN, word)) &
			bits_at(board, CAME, word)) == 0);
		for (int state = MISSING; state < RANGE_STATES; state++)
			count[state] += (uint32_t)__builtin_popcountll(
				bits_at(board, (enum range_state)state, word));
	}
	for (struct psn psn = una; psn_before(psn, board->end); psn = psn_add(psn, 1))
		count[scoreboard_at(board, psn)]--;
	for (int state = MISSING; state < RANGE_STATES; state++)
		assert(count[state] == 0 || state == RANGE_SENT);
	assert(board->order - oldest(board) <= board->packets);
#else
	(void)board;
	(void)una;
	(void)top;
#endif
}
