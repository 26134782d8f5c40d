/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads decimal numbers. */
#include "base/decimal.h"

#include <ctype.h>
#include <string.h>

bool decimal_read(const char *text, uint64_t *billionths, const char **end)
{
	uint64_t whole = 0, part = 0, scale = DECIMAL_ONE;

	if (!isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text); text++) {
		whole = whole * 10 + (uint64_t)(*text - '0');
		if (whole > DECIMAL_ONE)
			return false;
	}
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text) && scale > 1; text++) {
			scale /= 10;
			part += (uint64_t)(*text - '0') * scale;
		}
		if (scale == DECIMAL_ONE)
			return false;
	}
	*billionths = whole * DECIMAL_ONE + part;
	*end = text;
	return true;
}

bool decimal_read_unit(const char *text, const struct decimal_unit *units, size_t count,
		       uint64_t *value)
{
	uint64_t billionths;
	const char *end;

	if (!decimal_read(text, &billionths, &end))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		*value = (uint64_t)((unsigned __int128)billionths * units[i].size / DECIMAL_ONE);
		return true;
	}
	return false;
}
