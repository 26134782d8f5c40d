/* SPDX-License-Identifier: BSD-3-Clause */
/* The newest reasons of each thread: one of a call, and one of a fault. */
#include "base/reason.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 320
#define KEPT_MAX 16

bool reason_wanted;

static __thread struct reason {
	bool said;
	int of;
	char text[TEXT_MAX];
} newest_of_call, newest_of_fault;

static struct {
	pthread_mutex_t lock;
	unsigned int next;
	struct {
		const void *who; /* NULL: none */
		char text[TEXT_MAX];
	} entries[KEPT_MAX];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
	const bool is_it = reason->said && reason->of == abs(of);

	reason->said = false;
	return is_it ? reason->text : NULL;
}

void reason_keep(const void *who)
{
	const char *text = reason_take(REASON_FAULT);
	unsigned int at;

	if (!text)
		return;
	pthread_mutex_lock(&kept.lock);
	at = kept.next++ % KEPT_MAX;
	kept.entries[at].who = who;
	memcpy(kept.entries[at].text, text, TEXT_MAX);
	pthread_mutex_unlock(&kept.lock);
}

void reason_restore(const void *who)
{
	pthread_mutex_lock(&kept.lock);
	for (unsigned int at = 0; at < KEPT_MAX; at++) {
		if (kept.entries[at].who != who)
			continue;
		kept.entries[at].who = NULL;
		reason_say(REASON_FAULT, "%s", kept.entries[at].text);
	}
	pthread_mutex_unlock(&kept.lock);
}
