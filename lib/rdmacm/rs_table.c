/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all rsockets of the process by descriptor, and their reference counts. */
#include <stdlib.h>
#include <string.h>

#include "rs.h"

#define SIZE_FIRST 64

static struct {
	pthread_mutex_t lock;
	pthread_cond_t dropped; /* some rsocket has one reference left */
	struct rsocket **list;
	size_t size;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .dropped = PTHREAD_COND_INITIALIZER};

/* Hold the lock during fork(). Otherwise another thread could hold it, and that thread does not
 * exist in the child. */
static void lock_table(void)
{
	pthread_mutex_lock(&table.lock);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&table.lock);
}

static void __attribute__((constructor)) prepare_fork(void)
{
	pthread_atfork(lock_table, unlock_table, unlock_table);
}

static int grow_locked(size_t wanted)
{
	size_t size = table.size ? table.size : SIZE_FIRST;
	struct rsocket **list;

	while (size < wanted)
		size *= 2;
	if (size == table.size)
		return 0;
	list = realloc(table.list, size * sizeof(*list));
	if (!list)
		return -ENOMEM;
	memset(&list[table.size], 0, (size - table.size) * sizeof(struct rsocket *));
	table.list = list;
	table.size = size;
	return 0;
}

/* The calls of this thread in progress. A call may make another call. */
static __thread struct {
	unsigned int depth;
	int cancel_state; /* the state before the outermost call */
} calls;

int rs_table_add(struct rsocket *s)
{
	int rc;

	lock_table();
	rc = grow_locked((size_t)s->fd + 1);
	if (rc == 0) {
		table.list[s->fd] = s;
		s->refs++;
	}
	unlock_table();
	return rc;
}

struct rsocket *rs_table_get(int fd)
{
	struct rsocket *s = NULL;

	lock_table();
	if (fd >= 0 && (size_t)fd < table.size)
		s = table.list[fd];
	if (s)
		s->refs++;
	unlock_table();
	/* Disable cancellation: a cancelled thread would leave locks held. */
	if (s && calls.depth++ == 0)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calls.cancel_state);
	return s;
}

void rs_table_put(struct rsocket *s)
{
	rs_table_drop(s);
	if (--calls.depth == 0)
		pthread_setcancelstate(calls.cancel_state, NULL);
}

struct rsocket *rs_table_lock(int fd)
{
	struct rsocket *s = rs_table_get(fd);

	if (s)
		pthread_mutex_lock(&s->lock);
	return s;
}

void rs_table_unlock(struct rsocket *s)
{
	pthread_mutex_unlock(&s->lock);
	rs_table_put(s);
}

void rs_table_hold(struct rsocket *s)
{
	lock_table();
	s->refs++;
	unlock_table();
}

void rs_table_drop(struct rsocket *s)
{
	bool last;

	lock_table();
	last = --s->refs == 0;
	if (s->refs == 1)
		pthread_cond_broadcast(&table.dropped);
	unlock_table();
	if (last)
		rs_socket_free(s);
}

bool rs_table_remove(struct rsocket *s)
{
	bool removed;

	lock_table();
	removed = table.list[s->fd] == s;
	if (removed)
		table.list[s->fd] = NULL;
	unlock_table();
	if (removed)
		rs_table_drop(s);
	return removed;
}

void rs_table_await(struct rsocket *s)
{
	if (calls.depth > 1)
		return;
	lock_table();
	while (s->refs > 1)
		pthread_cond_wait(&table.dropped, &table.lock);
	unlock_table();
}
