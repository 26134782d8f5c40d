/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of a program, which its seed alone does not determine. With all zeros, the program is
 * the one of the seed. Each option is a number, so that a failing program can be made smaller
 * option by option (shrink.h), and so that one line repeats it.
 */
#ifndef SIM_VARIANT_H
#define SIM_VARIANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define VARIANT_TEXT_MAX 512
#define WORKS_USUAL	 40 /* the most works of a flow without options */

/* field, name, its value in the usage text, meaning */
#define VARIANTS(X)                                                                               \
	X(works, "works", "N", "up to N works a flow")                                            \
	X(bytes, "bytes", "N", "messages of up to N bytes")                                       \
	X(age, "age", "N", "let connected queue pairs be N PSNs of READs old")                    \
	X(forge, "forge", "N", "answer N of a million frames with a forged or old one")           \
	X(starve, "starve", "1", "post receive requests late, and few of them")                   \
	X(local, "local", "1", "bind and invalidate windows wherever that can be")                \
	X(window, "window", "N", "let requesters have up to N packets in flight")                 \
	X(plain, "plain", "1", "no host takes part in selective acknowledgements")                \
	X(without, "without", "LIST", "do without these optimisations (base/tuning.h)")           \
	X(cc, "cc", "N", "congestion control: 0 none, 1 DCQCN, 2 Swift")                          \
	X(change, "change", "N", "change congestion control in N of a million polls")             \
	X(engines, "engines", "N", "each host has N engines, at most 4; 0: draw it")              \
	X(absent, "absent", "N", "find pages absent at N of a million accesses")                  \
	X(stall, "stall", "N", "take a host's CPU away in N of a million polls; nothing is lost") \
	X(calm, "calm", "LIST", "a wire without: loss, burst, duplicate, ghost, damage, reorder") \
	X(mild, "mild", "N", "wires that misbehave N percent less often")                         \
	X(idle, "idle", "MASK", "let these flows, a bit each, send nothing")                      \
	X(first, "first", "N", "only the first N works of each flow")

struct variant {
#define VARIANT_FIELD(field, name, value, meaning) uint32_t field;
	VARIANTS(VARIANT_FIELD)
#undef VARIANT_FIELD
};

/* The numbers of the options. */
enum {
#define VARIANT_NUMBER(field, name, value, meaning) VARIANT_##field,
	VARIANTS(VARIANT_NUMBER)
#undef VARIANT_NUMBER
		VARIANTS_COUNT,
};

/* Bits of variant.calm. */
enum calm {
	CALM_LOSS = 1 << 0,
	CALM_BURST = 1 << 1,
	CALM_DUPLICATE = 1 << 2,
	CALM_GHOST = 1 << 3,
	CALM_DAMAGE = 1 << 4,
	CALM_REORDER = 1 << 5,
	CALM_ALL = (1 << 6) - 1,
};

/** Draw the options from the seed, but for those that only make a program smaller and those that
 * the command line sets (a bit of `given` each). */
void variant_draw(struct variant *variant, uint32_t given, uint64_t seed);

/** Return the address of an option's value. */
uint32_t *variant_field(struct variant *variant, unsigned int index);

/** Set an option from the command line. Exit if the value is invalid. */
void variant_parse(struct variant *variant, unsigned int index, const char *value);

/** Write the options that repeat a program: "" or " --name value ...". */
void variant_print(const struct variant *variant, char text[VARIANT_TEXT_MAX]);

/** Print a line of the usage text for each option. */
void variant_usage(FILE *to);

/** Switch the library's optimisations on, but for those that the variant does without. */
void variant_tune(const struct variant *variant);

#endif
