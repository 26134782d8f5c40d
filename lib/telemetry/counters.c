/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and meanings of the counters, from the same list as the enum. */
#include "telemetry/counters.h"

#include <stddef.h>
#include <string.h>

static const char *const counter_names[COUNTER_COUNT] = {
#define COUNTER(name, meaning) [COUNTER_##name] = #name,
#include "telemetry/counters.def"
#undef COUNTER
};

const char *counter_name(enum counter counter)
{
	return counter < COUNTER_COUNT ? counter_names[counter] : "?";
}

const char *counter_meaning(const char *name)
{
	static const struct {
		const char *name, *meaning;
	} meanings[COUNTER_COUNT] = {
#define COUNTER(name, meaning) [COUNTER_##name] = {#name, meaning},
#include "telemetry/counters.def"
#undef COUNTER
	};

	for (int i = 0; i < COUNTER_COUNT; i++) {
		if (strcmp(meanings[i].name, name) == 0)
			return meanings[i].meaning;
	}
	return NULL;
}
