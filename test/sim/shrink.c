/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a failing program smaller: option by option, while it fails in the same way. */
#include "shrink.h"

#include <string.h>
#include <time.h>

#include "program.h"

#define SHRINK_SECONDS 60 /* wall clock */

struct search {
	const struct options *options;
	const struct report *failure;
	int status; /* of its process */
	struct report *result;
	struct variant best;
	unsigned int tried;
	time_t until;
};

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Run a variant. If it fails as the first one did, it is the best one so far; return true. */
static bool fails(struct search *search, const struct variant *variant)
{
	struct outcome outcome;

	if (memcmp(variant, &search->best, sizeof(*variant)) == 0 || now() >= search->until)
		return false;
	search->tried++;
	outcome = supervise_try(search->options, search->result, search->failure->seed, variant,
				"/dev/null");
	if (!outcome.failed || outcome.status != search->status ||
	    search->result->kind != search->failure->kind)
		return false;
	search->best = *variant;
	return true;
}

/* Set an option to its usual value. */
static bool drop(struct search *search, uint32_t *field, struct variant *variant)
{
	*field = 0;
	return fails(search, variant);
}

/* Subtract a part of an option's value while the program fails. */
static bool take_away(struct search *search, unsigned int index, uint32_t usual, uint32_t part)
{
	bool smaller = false;

	for (;;) {
		struct variant variant = search->best;
		uint32_t *field = variant_field(&variant, index);
		const uint32_t from = *field == 0 ? usual : *field;

		*field = from - (from + part - 1) / part;
		if (*field == 0 || !fails(search, &variant))
			break;
		smaller = true;
	}
	return smaller;
}

/* Reduce an option towards its usual value: by halves, then by an eighth at a time. */
static bool halve(struct search *search, unsigned int index, uint32_t usual)
{
	const bool by_half = take_away(search, index, usual, 2);

	return take_away(search, index, usual, 8) || by_half;
}

/* Add bits one by one to a mask of features to switch off. */
static bool add_bits(struct search *search, unsigned int index, unsigned int bits)
{
	bool smaller = false;

	for (unsigned int bit = 0; bit < bits; bit++) {
		struct variant variant = search->best;

		*variant_field(&variant, index) |= 1u << bit;
		smaller |= fails(search, &variant);
	}
	return smaller;
}

/* Make the link's faults ten times, or twice, as rare. */
static bool soften(struct search *search, unsigned int index)
{
	static const uint32_t percents[] = {90, 50};

	for (unsigned int i = 0; i < 2; i++) {
		struct variant variant = search->best;
		uint32_t *field = variant_field(&variant, index);

		if (*field >= percents[i])
			return false;
		*field = percents[i];
		if (fails(search, &variant))
			return true;
	}
	return false;
}

/* Let all hosts have as few engines as the failure needs. */
static bool fewer_engines(struct search *search, uint32_t *field, struct variant *variant)
{
	const uint32_t from = *field != 0 ? *field : HOST_ENGINES_MAX + 1;

	for (uint32_t engines = 1; engines < from; engines *= 2) {
		*field = engines;
		if (fails(search, variant))
			return true;
	}
	return false;
}

static bool reduce(struct search *search, unsigned int index)
{
	struct variant variant = search->best;
	uint32_t *field = variant_field(&variant, index);
	const uint32_t works = search->best.works != 0 ? search->best.works : WORKS_USUAL;

	switch (index) {
	case VARIANT_idle:
		return add_bits(search, index, 2 * SIM_PAIRS_MAX);
	case VARIANT_engines:
		return fewer_engines(search, field, &variant);
	case VARIANT_calm:
		return add_bits(search, index, 6);
	case VARIANT_mild:
		return search->best.calm != CALM_ALL && soften(search, index);
	case VARIANT_first:
		return halve(search, index, works);
	case VARIANT_bytes:
		return halve(search, index, 1024);
	default:
		return *field != 0 && drop(search, field, &variant);
	}
}

unsigned int shrink(const struct options *options, const struct report *failure, int status,
		    struct variant *variant)
{
	struct search search = {.options = options,
				.failure = failure,
				.status = status,
				.result = report_create(),
				.best = failure->variant,
				.until = now() + SHRINK_SECONDS};
	bool smaller = true;

	while (smaller && now() < search.until) {
		smaller = false;
		for (unsigned int i = 0; i < VARIANTS_COUNT; i++)
			smaller |= reduce(&search, i);
	}
	*variant = search.best;
	report_destroy(search.result);
	return search.tried;
}
