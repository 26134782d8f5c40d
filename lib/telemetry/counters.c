/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and meanings of the counters, from the same list as the enum. */
#include "telemetry/counters.h"

static const struct {
	const char *name;
	const char *meaning;
} counter_texts[COUNTER_COUNT] = {
#define COUNTER(name, meaning) [COUNTER_##name] = {#name, meaning},
#include "telemetry/counters.def"
#undef COUNTER
};

const char *counter_name(enum counter counter)
{
	return counter < COUNTER_COUNT ? counter_texts[counter].name : "?";
}

const char *counter_meaning(enum counter counter)
{
	return counter < COUNTER_COUNT ? counter_texts[counter].meaning : "?";
}
