/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells why calls fail, to a user who wants to know. */
#include <stdio.h>
#include <string.h>

#include <rte_jhash.h>

#include "base/log.h"
#include "verbs_internal.h"

#define PREFIX	  "ibv_"
#define SUFFIX	  "_op"
#define TOLD_LAST 16

/* What begins the name of a function that implements a call: calls of later releases (later.h), and
 * those of a parent's device. */
static const char *const beginnings[] = {"_", PREFIX, "later_", "child_", "closed_"};

/* What is said of a failure that no check has explained. */
static const char *usual_reason(int error)
{
	switch (error) {
	case EINVAL:
		return "an argument is wrong, see its manual page";
	case ENOMEM:
		return "there is not enough memory, or a limit of the device is reached";
	case EOPNOTSUPP:
		return "the device cannot do this";
	case ENODEV:
		return "the device is gone, or belongs to a parent of this process";
	case ENETUNREACH:
		return "no route leads to the destination's address";
	case ETIMEDOUT:
		return "no host answers at the destination's address (ARP, neighbour discovery)";
	default:
		return NULL;
	}
}

/* Return true if this was told before: a program may try the same call again and again. */
static bool was_told(const char *line)
{
	static __thread struct {
		uint32_t hashes[TOLD_LAST];
		unsigned int next;
	} told;
	const uint32_t hash = rte_jhash(line, (uint32_t)strlen(line), 1) | 1;

	for (unsigned int i = 0; i < TOLD_LAST; i++) {
		if (told.hashes[i] == hash)
			return true;
	}
	told.hashes[told.next++ % TOLD_LAST] = hash;
	return false;
}

/* Add the reason to the name of a call, and print both. */
static void tell(const char *prefix, int name_length, const char *name, const char *reason)
{
	char line[640];

	snprintf(line, sizeof(line), "%s%.*s: %s", prefix, name_length, name, reason);
	if (!was_told(line))
		log_error("%s", line);
}

/* Let a failure have a reason, if one is known. */
static void say_usual(int error)
{
	const char *usual = usual_reason(error);

	if (usual && !reason_is_said(error))
		reason_say(error, "%s", usual);
}

void face_explain(int error, const char *function)
{
	unsigned int depth;
	const char *reason;
	size_t length;

	say_usual(error);
	if (reason_call(&depth))
		return;
	reason = reason_take(error);
	if (!reason)
		return;
	for (size_t i = 0; i < RTE_DIM(beginnings); i++) {
		length = strlen(beginnings[i]);
		if (strncmp(function, beginnings[i], length) == 0)
			function += length;
	}
	length = strlen(function);
	if (length > strlen(SUFFIX) && strcmp(function + length - strlen(SUFFIX), SUFFIX) == 0)
		length -= strlen(SUFFIX);
	tell(PREFIX, (int)length, function, reason);
}

void face_explain_call(int error)
{
	const int saved_errno = errno;
	unsigned int depth;
	const char *call = reason_call(&depth), *reason;

	say_usual(error);
	reason = call && depth == 1 ? reason_take(error) : NULL;
	if (reason)
		tell("", (int)strlen(call), call, reason);
	errno = saved_errno;
}
