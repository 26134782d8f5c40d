/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels: the descriptor holds one unit for every event in the list of sources. */
#include "queue/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/own.h"

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

/* Put an event into the list. Return false if there are too many. */
static bool raise_locked(struct channel *channel, struct channel_source *source)
{
	if (source->pending == CHANNEL_PENDING_MAX)
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

void channel_raise(struct channel *channel, struct channel_source *source)
{
	const int saved_errno = errno;
	int cancel_state;
	bool raised;

	/* Disable cancellation: a thread cancelled in the write would leave an event without its
	 * unit. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&channel->lock);
	raised = raise_locked(channel, source);
	pthread_mutex_unlock(&channel->lock);
	/* The event is in the list already, where a reader of the unit looks for it. Write without
	 * the lock: the thread that wakes may take this thread's CPU, and needs the lock. */
	if (raised)
		write_unit(channel);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

/* Take the oldest event. Return false if the event of the caller's unit was forgotten
 * (channel_forget). */
static bool take_locked(struct channel *channel, void **object, int *code)
{
	struct channel_source *source = TAILQ_FIRST(&channel->ready);

	if (channel->owed > 0) {
		channel->owed--;
		return false;
	}
	/* The sum does not hold if the program has closed the descriptor. */
	if (!source)
		return false;
	TAILQ_REMOVE(&channel->ready, source, link);
	/* Requeue at the tail, so that a source that is raised faster than it is read does not hide
	 * others. */
	if (--source->pending > 0)
		TAILQ_INSERT_TAIL(&channel->ready, source, link);
	source->taken++;
	*object = source->object;
	*code = (int)source->code;
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
	uint32_t forgotten;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&channel->lock);
	forgotten = source->pending;
	if (forgotten > 0) {
		TAILQ_REMOVE(&channel->ready, source, link);
		source->pending = 0;
	}
	for (uint32_t i = 0; i < forgotten; i++) {
		if (!take_unit(channel->fd))
			channel->owed++;
	}
	pthread_mutex_unlock(&channel->lock);
	pthread_setcancelstate(cancel_state, NULL);
	return forgotten;
}
