/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels: the descriptor holds one unit for every event in the list of sources. */
#include "queue/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/own.h"

#define ORDER_BITS 4u
#define ORDER_MASK ((1u << ORDER_BITS) - 1)

static_assert(CHANNEL_KINDS < ORDER_MASK && CHANNEL_KINDS * ORDER_BITS <= 32,
	      "each kind has a number, and a place in the order");

/*
 * Under the lock, the sum of all `pending` and `owed` equals the descriptor's count plus the number
 * of readers that have taken a unit and wait for the lock, plus the number of threads that have put
 * an event into the list and have not written its unit yet. So a reader that has taken a unit finds
 * an event; or, if that event was forgotten meanwhile, it finds `owed` above 0. No source is
 * forgotten while a thread raises its event (the engine's or the object's lock), because the unit
 * would then come later, and a program that polls the descriptor would wake for nothing.
 */

int channel_init(struct channel *channel)
{
	channel->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (channel->fd < 0)
		return -errno;
	own_mark(channel->fd);
	channel->owed = 0;
	pthread_mutex_init(&channel->lock, NULL);
	TAILQ_INIT(&channel->ready);
	return 0;
}

void channel_fini(struct channel *channel)
{
	if (own_is(channel->fd))
		close(channel->fd);
	pthread_mutex_destroy(&channel->lock);
}

/* Return the struct around a source, or NULL if the source has only one kind. */
static struct channel_several *several_of(struct channel_source *source)
{
	return source->code < CHANNEL_SEVERAL
		       ? NULL
		       : container_of(source, struct channel_several, source);
}

/* Let a kind be the newest one. It is not in the order yet. */
static void put_last(struct channel_several *several, uint32_t kind)
{
	uint32_t shift = 0;

	while (several->order >> shift != 0)
		shift += ORDER_BITS;
	several->order |= (kind + 1) << shift;
}

/* Count an event of a kind. Return false if there are too many. */
static bool add_kind(struct channel_several *several, uint32_t kind)
{
	if (several->pending[kind] == UINT16_MAX)
		return false;
	if (several->pending[kind]++ == 0)
		put_last(several, kind);
	return true;
}

/* Take an event of the oldest kind, which becomes the newest one if it has more. */
static uint32_t take_kind(struct channel_several *several)
{
	const uint32_t kind = (several->order & ORDER_MASK) - 1;

	several->order >>= ORDER_BITS;
	if (--several->pending[kind] > 0)
		put_last(several, kind);
	return kind;
}

/* Put an event into the list. `kind` is only used if the source has several. Return false if there
 * are too many. */
static bool raise_locked(struct channel *channel, struct channel_source *source, uint32_t kind)
{
	struct channel_several *several = several_of(source);

	if (source->pending == CHANNEL_PENDING_MAX || (several && !add_kind(several, kind)))
		return false;
	if (source->pending++ == 0)
		TAILQ_INSERT_TAIL(&channel->ready, source, link);
	return true;
}

/* Add the unit of an event to the descriptor. */
static void write_unit(const struct channel *channel)
{
	/* The program has closed the descriptor, and may use its number for a file of its own. A
	 * call that asks for events finds them in the list. */
	if (!own_is(channel->fd))
		return;
	/* The write cannot fail below 2^64 events. */
	while (eventfd_write(channel->fd, 1) != 0 && errno == EINTR)
		;
}

static void raise_event(struct channel *channel, struct channel_source *source, uint32_t kind)
{
	const int saved_errno = errno;
	int cancel_state;
	bool raised;

	/* Disable cancellation: a thread cancelled in the write would leave an event without its
	 * unit. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&channel->lock);
	raised = raise_locked(channel, source, kind);
	pthread_mutex_unlock(&channel->lock);
	/* The event is in the list already, where a reader of the unit looks for it. Write without
	 * the lock: the thread that wakes may take this thread's CPU, and needs the lock. */
	if (raised)
		write_unit(channel);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

void channel_raise(struct channel *channel, struct channel_source *source)
{
	raise_event(channel, source, 0);
}

void channel_raise_kind(struct channel *channel, struct channel_several *several, uint32_t kind)
{
	raise_event(channel, &several->source, kind);
}

/* Take the oldest event. Return false if the event of the caller's unit was forgotten
 * (channel_forget). */
static bool take_locked(struct channel *channel, void **object, int *code)
{
	struct channel_source *source = TAILQ_FIRST(&channel->ready);
	struct channel_several *several;

	if (channel->owed > 0) {
		channel->owed--;
		return false;
	}
	/* The sum does not hold if the program has closed the descriptor. */
	if (!source)
		return false;
	several = several_of(source);
	*code = (int)(source->code + (several ? take_kind(several) : 0));
	TAILQ_REMOVE(&channel->ready, source, link);
	/* Requeue at the tail, so that a source that is raised faster than it is read does not hide
	 * others. */
	if (--source->pending > 0)
		TAILQ_INSERT_TAIL(&channel->ready, source, link);
	source->taken++;
	*object = source->object;
	return true;
}

/* Read an event from the list alone. The program has closed the descriptor, so no thread can sleep
 * on it, but the events are still reported. */
static int read_list(struct channel *channel, void **object, int *code)
{
	bool taken;

	pthread_mutex_lock(&channel->lock);
	channel->owed = 0;
	taken = take_locked(channel, object, code);
	pthread_mutex_unlock(&channel->lock);
	return taken ? 0 : -EBADF;
}

int channel_read(struct channel *channel, void **object, int *code)
{
	bool taken;

	do {
		eventfd_t unit;

		if (!own_is(channel->fd))
			return read_list(channel, object, code);
		if (eventfd_read(channel->fd, &unit) != 0)
			return -errno;
		pthread_mutex_lock(&channel->lock);
		taken = take_locked(channel, object, code);
		pthread_mutex_unlock(&channel->lock);
	} while (!taken);
	return 0;
}

/* Take a unit without sleeping, whatever O_NONBLOCK of the descriptor is (Linux 5.8). */
static bool take_unit(int fd)
{
	eventfd_t unit;
	struct iovec iov = {.iov_base = &unit, .iov_len = sizeof(unit)};
	ssize_t got;

	if (!own_is(fd))
		return false;
	do {
		got = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(unit);
}

uint32_t channel_forget(struct channel *channel, struct channel_source *source)
{
	struct channel_several *several;
	uint32_t forgotten;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&channel->lock);
	several = several_of(source);
	forgotten = source->pending;
	if (forgotten > 0) {
		TAILQ_REMOVE(&channel->ready, source, link);
		source->pending = 0;
	}
	if (several) {
		several->order = 0;
		memset(several->pending, 0, sizeof(several->pending));
	}
	for (uint32_t i = 0; i < forgotten; i++) {
		if (!take_unit(channel->fd))
			channel->owed++;
	}
	pthread_mutex_unlock(&channel->lock);
	pthread_setcancelstate(cancel_state, NULL);
	return forgotten;
}
