/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads decimal numbers without strtod, which depends on the program's locale. */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECIMAL_ONE UINT64_C(1000000000) /* numbers are in billionths */

struct decimal_unit {
	const char *name;
	uint64_t size;
};

/** Read a number in billionths, below a billion and one. Sets `end` to what follows it. False: the
 * text does not begin with one. MT-safe. */
bool decimal_read(const char *text, uint64_t *billionths, const char **end);

/** Read a number and its unit, and nothing behind it. `value` is the product. False: it is none of
 * these. MT-safe. */
bool decimal_read_unit(const char *text, const struct decimal_unit *units, size_t count,
		       uint64_t *value);

#endif
