/* SPDX-License-Identifier: BSD-3-Clause */
/* The stacks of objects, in a hash table by the objects' addresses. */
#include "base/origin.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "symbol.h"

#define BUCKETS	   1024
#define FRAMES_MAX 24 /* ours among them */
#define SHOWN_MAX  3

struct origin {
	LIST_ENTRY(origin) next;
	const void *object;
	int count;
	void *frames[FRAMES_MAX]; /* return addresses, the innermost first */
};

static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, origin) buckets[BUCKETS];
} origins = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned int bucket_of(const void *object)
{
	return (unsigned int)(((uintptr_t)object >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
	       BUCKETS;
}

static struct origin *find_locked(const void *object)
{
	struct origin *origin;

	LIST_FOREACH (origin, &origins.buckets[bucket_of(object)], next) {
		if (origin->object == object)
			return origin;
	}
	return NULL;
}

void origin_keep(const void *object)
{
	struct origin *origin = malloc(sizeof(*origin));

	/* Without memory the object has no origin. */
	if (!origin)
		return;
	origin->object = object;
	origin->count = backtrace(origin->frames, FRAMES_MAX);
	origin_drop(object);
	pthread_mutex_lock(&origins.lock);
	LIST_INSERT_HEAD(&origins.buckets[bucket_of(object)], origin, next);
	pthread_mutex_unlock(&origins.lock);
}

void origin_drop(const void *object)
{
	struct origin *origin;

	pthread_mutex_lock(&origins.lock);
	origin = find_locked(object);
	if (origin)
		LIST_REMOVE(origin, next);
	pthread_mutex_unlock(&origins.lock);
	free(origin);
}

/* Return true for an address in one of our libraries. */
static bool is_ours(const void *address)
{
	static const char *const names[] = {"libibverbs.so", "librdmacm.so", "liburoce"};
	const char *name;
	Dl_info info;

	if (dladdr(address, &info) == 0 || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < RTE_DIM(names); i++) {
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

/* Return true for a function that is the beginning of a program or thread, and not its own. */
static bool is_beginning(const char *text)
{
	return strncmp(text, "__libc_start", strlen("__libc_start")) == 0 ||
	       strncmp(text, "_start", strlen("_start")) == 0 ||
	       strncmp(text, "start_thread", strlen("start_thread")) == 0 ||
	       strncmp(text, "libc.so", strlen("libc.so")) == 0;
}

const char *origin_write(const void *object, const char *what, char text[ORIGIN_TEXT_MAX])
{
	struct origin copy = {.count = 0};
	const struct origin *origin;
	char place[ORIGIN_TEXT_MAX];
	size_t length = 0;
	int shown = 0;

	text[0] = '\0';
	pthread_mutex_lock(&origins.lock);
	origin = find_locked(object);
	if (origin)
		copy = *origin;
	pthread_mutex_unlock(&origins.lock);
	for (int i = 0; i < copy.count && shown < SHOWN_MAX; i++) {
		if (is_ours(copy.frames[i]))
			continue;
		/* The call is before the return address. */
		symbol_write((uintptr_t)copy.frames[i] - 1, place, sizeof(place));
		if (is_beginning(place))
			break;
		if (shown == 0)
			length = (size_t)snprintf(text, ORIGIN_TEXT_MAX, "; %s was created by: %s",
						  what, place);
		else
			length += (size_t)snprintf(text + length, ORIGIN_TEXT_MAX - length, " < %s",
						   place);
		if (length >= ORIGIN_TEXT_MAX)
			break;
		shown++;
	}
	return text;
}
