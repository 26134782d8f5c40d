/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the counters, from the same list as the enum. */
#include "telemetry/counters.h"

static const char *const counter_names[COUNTER_COUNT] = {
#define COUNTER(name, meaning) [COUNTER_##name] = #name,
#include "telemetry/counters.def"
#undef COUNTER
};

const char *counter_name(enum counter counter)
{
	return counter < COUNTER_COUNT ? counter_names[counter] : "?";
}
