/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest reasons of each thread: one of a call, and one of a fault. */
#include "base/reason.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX 512

bool reason_wanted;

static __thread struct reason {
	bool said;
	int of;
	char text[TEXT_MAX];
} newest_of_call, newest_of_fault;

static __thread struct {
	const char *call; /* the outermost one */
	unsigned int depth;
} entered;

static struct reason *newest(int of)
{
	return of == REASON_FAULT ? &newest_of_fault : &newest_of_call;
}

void reason_say(int of, const char *format, ...)
{
	struct reason *reason = newest(of);
	const int saved_errno = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(reason->text, sizeof(reason->text), format, args);
	va_end(args);
	reason->of = abs(of);
	reason->said = true;
	errno = saved_errno;
}

const char *reason_take(int of)
{
	struct reason *reason = newest(of);
	const bool is_it = reason_is_said(of);

	reason->said = false;
	return is_it ? reason->text : NULL;
}

bool reason_is_said(int of)
{
	const struct reason *reason = newest(of);

	return reason->said && reason->of == abs(of);
}

void reason_enter(const char *call)
{
	if (entered.depth++ > 0)
		return;
	entered.call = call;
	newest_of_call.said = false;
}

void reason_leave(void)
{
	entered.depth--;
}

const char *reason_call(unsigned int *depth)
{
	*depth = entered.depth;
	return entered.depth > 0 ? entered.call : NULL;
}
