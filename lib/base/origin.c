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

/* A place in the code, from which an object was created. It stays for ever: there are few. */
struct place {
	LIST_ENTRY(place) next;
	const void *address; /* a return address */
	bool is_ours;	     /* in one of our libraries */
	bool is_rdmacm;	     /* in librdmacm.so.1 */
	bool is_beginning;   /* of the program or a thread, and no function of its own */
	char text[ORIGIN_TEXT_MAX];
};

/* Held while a file is read, so only threads that create objects wait for it. */
static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, place) buckets[BUCKETS];
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct origin {
	LIST_ENTRY(origin) next;
	const void *object;
	bool is_of_rdmacm;
	unsigned int count;
	const struct place *places[SHOWN_MAX]; /* the innermost first */
};

/* Held for short times: the engine takes it. */
static struct {
	pthread_mutex_t lock;
	LIST_HEAD(, origin) buckets[BUCKETS];
} origins = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned int bucket_of(const void *address)
{
	return (unsigned int)((uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 32) % BUCKETS;
}

/* Find out if the address is in one of our libraries. */
static void look_at_library(struct place *place)
{
	static const char *const names[] = {"librdmacm.so", "libibverbs.so", "liburoce"};
	const char *name;
	Dl_info info;

	if (dladdr(place->address, &info) == 0 || !info.dli_fname)
		return;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < RTE_DIM(names) && !place->is_ours; i++) {
		place->is_ours = strncmp(name, names[i], strlen(names[i])) == 0;
		place->is_rdmacm = place->is_ours && i == 0;
	}
}

/* Return true for a function that is the beginning of a program or thread, and not its own. */
static bool is_beginning(const char *text)
{
	static const char *const functions[] = {
		"__libc_start_main",	  "__libc_start_call_main",
		"__libc_start_main_impl", "_start",
		"start_thread",		  "clone3",
	};
	const size_t length = strcspn(text, "(+");

	for (size_t i = 0; i < RTE_DIM(functions); i++) {
		if (strlen(functions[i]) == length && strncmp(text, functions[i], length) == 0)
			return true;
	}
	return strncmp(text, "libc.so", strlen("libc.so")) == 0;
}

/* Return the place of a return address, or NULL without memory. The first time it reads the
 * program's file, which takes some milliseconds. */
static const struct place *find_place(const void *address)
{
	struct place *place;

	pthread_mutex_lock(&places.lock);
	LIST_FOREACH (place, &places.buckets[bucket_of(address)], next) {
		if (place->address == address)
			break;
	}
	if (!place)
		place = calloc(1, sizeof(*place));
	if (place && !place->address) {
		place->address = address;
		look_at_library(place);
		/* The call is before the return address. */
		if (!place->is_ours)
			symbol_write((uintptr_t)address - 1, place->text, sizeof(place->text));
		place->is_beginning = is_beginning(place->text);
		LIST_INSERT_HEAD(&places.buckets[bucket_of(address)], place, next);
	}
	pthread_mutex_unlock(&places.lock);
	return place;
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
	struct origin *origin = calloc(1, sizeof(*origin));
	void *frames[FRAMES_MAX];
	int count;

	/* Without memory the object has no origin. */
	if (!origin)
		return;
	origin->object = object;
	count = backtrace(frames, FRAMES_MAX);
	for (int i = 0; i < count && origin->count < SHOWN_MAX; i++) {
		const struct place *place = find_place(frames[i]);

		if (!place || place->is_beginning)
			break;
		if (!place->is_ours)
			origin->places[origin->count++] = place;
		else if (origin->count == 0)
			origin->is_of_rdmacm |= place->is_rdmacm;
	}
	origin_drop(object);
	origin_settle(origin, true);
}

struct origin *origin_take_kept(const void *object)
{
	struct origin *origin;

	pthread_mutex_lock(&origins.lock);
	origin = find_locked(object);
	if (origin)
		LIST_REMOVE(origin, next);
	pthread_mutex_unlock(&origins.lock);
	return origin;
}

void origin_settle(struct origin *origin, bool stays)
{
	if (!origin || !stays) {
		free(origin);
		return;
	}
	pthread_mutex_lock(&origins.lock);
	LIST_INSERT_HEAD(&origins.buckets[bucket_of(origin->object)], origin, next);
	pthread_mutex_unlock(&origins.lock);
}

void origin_drop(const void *object)
{
	origin_settle(origin_take_kept(object), false);
}

const char *origin_write(const void *object, const char *what, char text[ORIGIN_TEXT_MAX])
{
	const struct origin *origin;
	size_t length = 0;

	text[0] = '\0';
	pthread_mutex_lock(&origins.lock);
	origin = find_locked(object);
	for (unsigned int i = 0; origin && i < origin->count && length < ORIGIN_TEXT_MAX; i++) {
		if (i == 0)
			length = (size_t)snprintf(text, ORIGIN_TEXT_MAX, "; %s was created by: %s",
						  what, origin->places[i]->text);
		else
			length += (size_t)snprintf(text + length, ORIGIN_TEXT_MAX - length, " < %s",
						   origin->places[i]->text);
	}
	pthread_mutex_unlock(&origins.lock);
	return text;
}

bool origin_is_of_rdmacm(const void *object)
{
	const struct origin *origin;
	bool is_so;

	pthread_mutex_lock(&origins.lock);
	origin = find_locked(object);
	is_so = origin && origin->is_of_rdmacm;
	pthread_mutex_unlock(&origins.lock);
	return is_so;
}

void origin_before_fork(void)
{
	pthread_mutex_lock(&places.lock);
	pthread_mutex_lock(&origins.lock);
}

void origin_after_fork(void)
{
	pthread_mutex_unlock(&origins.lock);
	pthread_mutex_unlock(&places.lock);
}
