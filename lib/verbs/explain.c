/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells why calls fail, to a user who wants to know. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "verbs_internal.h"

#define PREFIX "ibv_"
#define LATER  "later_" /* calls of later releases (later.h) */
#define SUFFIX "_op"

/* What is said of a failure that no check has explained. */
static const char *usual_reason(int error)
{
	switch (error) {
	case EOPNOTSUPP:
		return "the device cannot do this";
	case ENODEV:
		return "the device is gone, or belongs to a parent of this process";
	case ENETUNREACH:
		return "no route leads to the destination's address";
	case ETIMEDOUT:
		return "no host answers at the destination's address (ARP, neighbour discovery)";
	case EBUSY:
		return "other objects still use it";
	default:
		return NULL;
	}
}

void face_explain(int error, const char *function)
{
	/* A program may try the same call again and again. */
	static __thread struct {
		const char *function;
		char reason[64];
	} last;
	const char *name = function + (*function == '_');
	const char *reason = reason_take(error);
	size_t length;

	if (!reason)
		reason = usual_reason(error);
	if (!reason || (function == last.function &&
			strncmp(reason, last.reason, sizeof(last.reason) - 1) == 0))
		return;
	last.function = function;
	snprintf(last.reason, sizeof(last.reason), "%s", reason);
	if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
		name += strlen(PREFIX);
	else if (strncmp(name, LATER, strlen(LATER)) == 0)
		name += strlen(LATER);
	length = strlen(name);
	if (length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0)
		length -= strlen(SUFFIX);
	log_warn(PREFIX "%.*s: %s", (int)length, name, reason);
}
