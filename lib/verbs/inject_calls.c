/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of calls in which each call may fail by a rule. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inject.h"
#include "verbs_internal.h"

#define CALL(type, function, parameters, arguments)                                 \
	static type call_##function parameters                                      \
	{                                                                           \
		const int error = inject_into_call(INJECT_##function);              \
                                                                                    \
		return unlikely(error != 0) ? INJECT_FAILURE(type, function, error) \
					    : function arguments;                   \
	}
#include "inject/calls.def"
#undef CALL

static struct implementation implementation;

static void read_rules(void)
{
	const char *rules = secure_getenv("UROCE_INJECT");
	char error[INJECT_ERROR_MAX];

	if (rules && strcmp(rules, "none") != 0 && inject_add(rules, error, sizeof(error)) < 0) {
		fprintf(stderr, "uroce: %s\n", error);
		_exit(1);
	}
	inject_wanted = true;
	implementation = uroce_implementation;
#define CALL(type, function, parameters, arguments) implementation.function = call_##function;
#include "inject/calls.def"
#undef CALL
}

const struct implementation *inject_implementation(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_rules);
	return &implementation;
}
