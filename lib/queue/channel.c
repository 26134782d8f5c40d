/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels: one unit in the descriptor for every event that waits in the list of sources. */
#include "queue/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/own.h"

/*
 * Under the lock, the sum of all `pending` and `owed` is the descriptor's count plus the readers
 * that have taken a unit and wait for the lock. Whoever took a unit therefore finds an event, or,
 * where it was forgotten meanwhile, a unit owed.
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

static void raise_locked(struct channel *channel, struct channel_source *source)
{
	if (source->pending == CHANNEL_PENDING_MAX)
		return;
	if (source->pending++ == 0)
		TAILQ_INSERT_TAIL(&channel->ready, source, link);
	/* The program has closed it, and may have the number for a file of its own: who asks for
	 * events finds them in the list. */
	if (!own_is(channel->fd))
		return;
	/* Under the lock, or an early reader would find its event forgotten by nobody. Cannot fail
	 * below 2^64 events. */
	while (eventfd_write(channel->fd, 1) != 0 && errno == EINTR)
		;
}

void channel_raise(struct channel *channel, struct channel_source *source)
{
	const int saved_errno = errno;
	int cancel_state;

	/* A thread that is cancelled as it writes would take the lock with it. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&channel->lock);
	raise_locked(channel, source);
	pthread_mutex_unlock(&channel->lock);
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
}

/* Take the oldest event. False where the caller's unit was owed to channel_forget. */
static bool take_locked(struct channel *channel, void **object, int *code)
{
	struct channel_source *source = TAILQ_FIRST(&channel->ready);

	if (channel->owed > 0) {
		channel->owed--;
		return false;
	}
	/* Without its descriptor the sum does not hold. */
	if (!source)
		return false;
	TAILQ_REMOVE(&channel->ready, source, link);
	/* Behind the others: no source that is raised faster than it is read hides them. */
	if (--source->pending > 0)
		TAILQ_INSERT_TAIL(&channel->ready, source, link);
	source->taken++;
	*object = source->object;
	*code = (int)source->code;
	return true;
}

/* The program has closed the descriptor: nobody can sleep on it, but what happened is told. */
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

/* Take a unit without sleeping, whatever the descriptor's O_NONBLOCK is (Linux 5.8). */
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
