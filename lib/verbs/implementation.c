/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what this library implements, for libibverbs.so.1. */
#include "implementation.h"

#include "cm/private.h"
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
#define CALL(type, function, parameters, arguments) .function = function,
#include "calls.def"
#undef CALL
};
