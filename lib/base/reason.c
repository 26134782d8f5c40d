/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest reasons of each thread: one of a call, and one of a fault. */
#include "base/reason.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX 512

bool reason_wanted;

struct reason {
	bool said;
	int of;
	char text[TEXT_MAX];
};

struct reasons {
	struct reason of_call, of_fault;
};

/* Allocated when the thread says its first reason: the C library has little room for variables of
 * threads in a library that a program loads late. */
static __thread struct reasons *newest_reasons;

static pthread_key_t key;
static bool key_is_there;

static __thread struct {
	const char *call; /* the outermost one */
	unsigned int depth;
} entered;

static void forget(void *reasons)
{
	newest_reasons = NULL;
	free(reasons);
}

static void create_key(void)
{
	key_is_there = pthread_key_create(&key, forget) == 0;
}

/* If there is no memory, the reason is dropped. */
static void make_room(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, create_key);
	if (!key_is_there)
		return;
	newest_reasons = calloc(1, sizeof(*newest_reasons));
	if (pthread_setspecific(key, newest_reasons) != 0)
		forget(newest_reasons);
}

/* Return NULL in a thread that has said nothing. */
static struct reason *newest(int of)
{
	if (!newest_reasons)
		return NULL;
	return of == REASON_FAULT ? &newest_reasons->of_fault : &newest_reasons->of_call;
}

void reason_say(int of, const char *format, ...)
{
	const int saved_errno = errno;
	struct reason *reason;
	va_list args;

	if (!newest_reasons)
		make_room();
	reason = newest(of);
	if (!reason) {
		errno = saved_errno;
		return;
	}
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

	if (reason)
		reason->said = false;
	return is_it ? reason->text : NULL;
}

bool reason_is_said(int of)
{
	const struct reason *reason = newest(of);

	return reason && reason->said && reason->of == abs(of);
}

void reason_enter(const char *call)
{
	if (entered.depth++ > 0)
		return;
	entered.call = call;
	if (newest_reasons)
		newest_reasons->of_call.said = false;
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
