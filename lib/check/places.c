/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that somebody may write, as ranges that do not overlap: ranges that do become one. */
#include "check/places.h"

#include <search.h>
#include <stdlib.h>

#include <rte_common.h>

struct place {
	uint64_t begin, end;
	uint64_t open; /* how many may write it */
	uint64_t openings;
};

static void *root;
static bool is_incomplete; /* there was no memory for a place */

/* Ranges that overlap are equal, so a tree with none of those has an order. */
static int compare(const void *one, const void *other)
{
	const struct place *a = one, *b = other;

	if (a->end <= b->begin)
		return -1;
	return b->end <= a->begin ? 1 : 0;
}

static struct place range_of(uint64_t begin, uint64_t length)
{
	return (struct place){.begin = begin,
			      .end = length > UINT64_MAX - begin ? UINT64_MAX : begin + length};
}

static struct place *find(const struct place *range)
{
	struct place **node = range->begin < range->end ? tfind(range, &root, compare) : NULL;

	return node ? *node : NULL;
}

void places_open(uint64_t begin, uint64_t length)
{
	struct place range = range_of(begin, length), *place = NULL, *other;

	if (range.begin >= range.end)
		return;
	while ((other = find(&range)) != NULL) {
		range.begin = RTE_MIN(range.begin, other->begin);
		range.end = RTE_MAX(range.end, other->end);
		range.open += other->open;
		range.openings += other->openings;
		tdelete(other, &root, compare);
		free(place);
		place = other;
	}
	if (!place)
		place = malloc(sizeof(*place));
	range.open++;
	range.openings++;
	if (place)
		*place = range;
	if (!place || !tsearch(place, &root, compare)) {
		free(place);
		is_incomplete = true;
	}
}

void places_close(uint64_t begin, uint64_t length)
{
	const struct place range = range_of(begin, length);
	struct place *place = find(&range);

	if (place && place->open > 0)
		place->open--;
}

void places_look(uint64_t begin, uint64_t length, struct places_seen *seen)
{
	const struct place range = range_of(begin, length);
	const struct place *place = find(&range);

	seen->open |= is_incomplete;
	if (!place)
		return;
	seen->open |= place->open > 0;
	seen->openings += place->openings;
	if (range.begin < place->begin)
		places_look(range.begin, place->begin - range.begin, seen);
	if (place->end < range.end)
		places_look(place->end, range.end - place->end, seen);
}

void places_forget(void)
{
	root = NULL;
	is_incomplete = false;
}
