/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a program: parsed, printed, or drawn from its seed. */
#include "variant.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tuning.h"
#include "rng.h"
#include "transport/cc.h"
#include "transport/loss.h"

#define WINDOW_LOG 13

static_assert(1 << WINDOW_LOG == LOSS_WINDOW_LIMIT, "the longest window is drawn, too");

static const struct {
	const char *name;
	const char *value;
	const char *meaning;
	size_t offset;
} infos[] = {
#define VARIANT_INFO(field, name, value, meaning) \
	{name, value, meaning, offsetof(struct variant, field)},
	VARIANTS(VARIANT_INFO)};

static const char calm_names[] = "loss,burst,duplicate,ghost,damage,reorder";
/* The optimisations that lib/ has (base/tuning.h). */
static const char tuning_choices[] = "key-cache,fused-copy,short-icrc";
#define TUNING_CHOICES 3

uint32_t *variant_field(struct variant *variant, unsigned int index)
{
	return (uint32_t *)(void *)((uint8_t *)variant + infos[index].offset);
}

/* Return the names that the bits of an option stand for, or NULL if it is a number. */
static const char *names_of(unsigned int index)
{
	if (index == VARIANT_without)
		return tuning_choices;
	return index == VARIANT_calm ? calm_names : NULL;
}

/* Return the bit of a name of `len` bytes, or 0. */
static uint32_t bit_of(const char *names, const char *name, size_t len)
{
	for (uint32_t bit = 1;; bit <<= 1) {
		const size_t n = strcspn(names, ",");

		if (n == len && strncmp(names, name, n) == 0)
			return bit;
		if (names[n] == '\0')
			return 0;
		names += n + 1;
	}
}

static void refuse(unsigned int index, const char *value)
{
	const char *names = names_of(index);

	fprintf(stderr, "sim: --%s %s: expected %s\n", infos[index].name, value,
		names != NULL ? names : "a number");
	exit(2);
}

static uint32_t parse_list(unsigned int index, const char *value)
{
	const char *at = value;
	uint32_t mask = 0;

	while (*at != '\0') {
		const size_t len = strcspn(at, ",");
		const uint32_t bit = bit_of(names_of(index), at, len);

		if (bit == 0)
			refuse(index, value);
		mask |= bit;
		at += len + (at[len] == ',');
	}
	return mask;
}

void variant_parse(struct variant *variant, unsigned int index, const char *value)
{
	uint32_t *field = variant_field(variant, index);
	unsigned long number;
	char *end;

	if (names_of(index) != NULL) {
		*field = parse_list(index, value);
		return;
	}
	number = strtoul(value, &end, 0);
	if (*value == '\0' || *end != '\0' || number > UINT32_MAX)
		refuse(index, value);
	*field = (uint32_t)number;
}

static int print_list(char *to, size_t room, const char *names, uint32_t mask)
{
	int len = 0;

	for (; mask != 0; mask >>= 1) {
		const size_t n = strcspn(names, ",");

		if (mask & 1)
			len += snprintf(to + len, room - (size_t)len, "%s%.*s", len > 0 ? "," : "",
					(int)n, names);
		names += n + (names[n] == ',');
	}
	return len;
}

void variant_print(const struct variant *variant, char text[VARIANT_TEXT_MAX])
{
	int len = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < VARIANTS_COUNT; i++) {
		const uint32_t v = *variant_field((struct variant *)(uintptr_t)variant, i);

		if (v == 0)
			continue;
		len += snprintf(text + len, VARIANT_TEXT_MAX - (size_t)len, " --%s ",
				infos[i].name);
		if (names_of(i) != NULL)
			len += print_list(text + len, VARIANT_TEXT_MAX - (size_t)len, names_of(i),
					  v);
		else
			len += snprintf(text + len, VARIANT_TEXT_MAX - (size_t)len,
					i == VARIANT_idle ? "0x%x" : "%u", v);
	}
}

void variant_usage(FILE *to)
{
	for (unsigned int i = 0; i < VARIANTS_COUNT; i++)
		fprintf(to, "  --%-8s %-5s %s\n", infos[i].name, infos[i].value, infos[i].meaning);
}

void variant_tune(const struct variant *variant)
{
	char text[VARIANT_TEXT_MAX] = "";

	print_list(text, sizeof(text), tuning_choices, variant->without);
	tuning_without(text);
}

/* Draw a number of PSNs after which old PSNs seem to be near. */
static uint32_t draw_age(struct rng *rng)
{
	switch (rng_below(rng, 5)) {
	case 0:
		return (1u << 23) - 1;
	case 1:
		return 1u << 23;
	case 2:
		return (1u << 24) - 10;
	case 3:
		return (1u << 24) - (uint32_t)rng_range(rng, 1, 300);
	default:
		return (uint32_t)rng_range(rng, 1, (1u << 24) - 1);
	}
}

static void draw(struct variant *variant, uint64_t seed)
{
	struct rng rng = rng_fork(seed, 500);

	/* Small works are executed fastest. */
	if (rng_chance(&rng, 300000)) {
		variant->works = (uint32_t)rng_range(&rng, 100, 2000);
		variant->bytes = (uint32_t)1 << rng_range(&rng, 4, 10);
	}
	if (rng_chance(&rng, 400000))
		variant->age = draw_age(&rng);
	if (rng_chance(&rng, 400000))
		variant->forge = (uint32_t)rng_range(&rng, 1000, 100000);
	variant->starve = rng_chance(&rng, 250000);
	variant->local = rng_chance(&rng, 250000);
	/* 1 to LOSS_WINDOW_LIMIT, small ones as often as large ones. */
	if (rng_chance(&rng, 600000))
		variant->window =
			(uint32_t)rng_range(&rng, 1, 1ull << rng_range(&rng, 0, WINDOW_LOG));
	if (rng_chance(&rng, 300000))
		variant->without = (uint32_t)rng_range(&rng, 1, (1u << TUNING_CHOICES) - 1);
}

/* Use a separate random stream, so that the other options of a seed stay as they were before this
 * one existed. */
static void draw_absent(struct variant *variant, uint64_t seed)
{
	struct rng rng = rng_fork(seed, 503);

	if (rng_chance(&rng, 300000))
		variant->absent = (uint32_t)rng_range(&rng, 1, 1ull << rng_range(&rng, 10, 16));
}

static void draw_cc(struct variant *variant, uint64_t seed)
{
	struct rng rng = rng_fork(seed, 505);

	variant->cc = (uint32_t)rng_below(&rng, CC_KINDS);
	if (rng_chance(&rng, 300000))
		variant->change = (uint32_t)rng_range(&rng, 1000, 100000);
}

static void draw_plain(struct variant *variant, uint64_t seed)
{
	struct rng rng = rng_fork(seed, 504);

	variant->plain = rng_chance(&rng, 200000);
}

static void draw_stall(struct variant *variant, uint64_t seed)
{
	struct rng rng = rng_fork(seed, 506);

	if (rng_chance(&rng, 200000))
		variant->stall = (uint32_t)rng_range(&rng, 1, 1ull << rng_range(&rng, 6, 13));
}

void variant_draw(struct variant *variant, uint32_t given, uint64_t seed)
{
	struct variant drawn = {0};

	draw(&drawn, seed);
	draw_plain(&drawn, seed);
	draw_absent(&drawn, seed);
	draw_cc(&drawn, seed);
	draw_stall(&drawn, seed);
	for (unsigned int i = 0; i < VARIANTS_COUNT; i++) {
		if (!(given >> i & 1))
			*variant_field(variant, i) = *variant_field(&drawn, i);
	}
}
