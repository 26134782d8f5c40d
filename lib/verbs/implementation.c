/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what this library implements, for libibverbs.so.1. */
#include "implementation.h"

#include "cm/private.h"
#include "inject.h"
#include "verbs_internal.h"

/* The linker defines these in each library. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

const struct implementation uroce_implementation = {
	.version = UROCE_VERSION,
	.size = sizeof(uroce_implementation),
	.begin = __ehdr_start,
	.end = _end,
	.get_device_list = get_device_list_op,
	.private_cm = uroce_private_cm,
	.injecting = inject_implementation,
	.inject_add = inject_api_add,
	.inject_end = inject_api_end,
	.inject_count = inject_api_count,
#define CALL(type, function, parameters, arguments) .function = function,
#include "inject/calls.def"
#undef CALL
};
