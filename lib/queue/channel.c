/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels: the pipe holds one unit for every event in the list of sources, up to a limit. */
#include "queue/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/cancel.h"
#include "base/own.h"

#define ORDER_BITS 4u
#define ORDER_MASK ((1u << ORDER_BITS) - 1)

/* Most units: every pipe has room for so many, also one of a user who has many pipes (pipe(7)). */
#define UNITS_MAX 4096u

static_assert(CHANNEL_KINDS < ORDER_MASK && CHANNEL_KINDS * ORDER_BITS <= 32,
	      "each kind has a number, and a place in the order");

/*
 * Under the lock, `units` is the sum of `events` and `owed`, but at most UNITS_MAX. So a reader
 * that has taken a unit finds an event; or, if that event was forgotten meanwhile, it finds `owed`
 * above 0. No source is forgotten while a thread raises its event (the engine's or the object's
 * lock), because the unit would then come later, and a program that polls the descriptor would wake
 * for nothing.
 */

/*
 * Open the pipe of a descriptor for reading and writing. A pipe that has this end open always has a
 * reader, so a write raises no SIGPIPE after the program has closed its own end. -1 if there is no
 * /proc.
 */
static int open_both_ways(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

int channel_init(struct channel *channel)
{
	struct stat pipe_stat;
	int ends[2], both;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	both = open_both_ways(ends[1]);
	if (both >= 0)
		close(ends[1]);
	else
		both = ends[1];
	if (fcntl(both, F_SETFL, O_NONBLOCK) != 0 || fstat(ends[0], &pipe_stat) != 0) {
		const int rc = -errno;

		close(ends[0]);
		close(both);
		return rc;
	}
	*channel = (struct channel){.fd = ends[0],
				    .doorbell_fd = both,
				    .dev = pipe_stat.st_dev,
				    .ino = pipe_stat.st_ino};
	own_mark(channel->doorbell_fd);
	pthread_mutex_init(&channel->lock, NULL);
	TAILQ_INIT(&channel->ready);
	return 0;
}

/* Return true if the program has not closed its descriptor. It has no mark of ours (base/own.h),
 * because its signal is the program's. */
static bool is_open(const struct channel *channel)
{
	struct stat now;

	return fstat(channel->fd, &now) == 0 && now.st_ino == channel->ino &&
	       now.st_dev == channel->dev;
}

void channel_fini(struct channel *channel)
{
	if (is_open(channel))
		close(channel->fd);
	if (own_is(channel->doorbell_fd))
		close(channel->doorbell_fd);
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
	channel->events++;
	return true;
}

/* Count a further unit, if there is an event for it. Return true if the caller must write it. */
static bool add_unit_locked(struct channel *channel)
{
	if (channel->units == UNITS_MAX || channel->units == channel->events + channel->owed)
		return false;
	channel->units++;
	return true;
}

/* Write a unit to the pipe, which has room for it. The thread cannot be cancelled here. */
static void write_unit(const struct channel *channel)
{
	const uint8_t unit = 0;

	/* The program has closed all descriptors, and may use the number for a file of its own. A
	 * call that asks for events finds them in the list. */
	if (!own_is(channel->doorbell_fd))
		return;
	while (write(channel->doorbell_fd, &unit, sizeof(unit)) < 0 && errno == EINTR)
		;
}

static void raise_event(struct channel *channel, struct channel_source *source, uint32_t kind)
{
	const int saved_errno = errno;
	/* A thread cancelled in the write would leave an event without its unit. */
	const int cancel_state = cancel_disable();
	bool writes;

	pthread_mutex_lock(&channel->lock);
	writes = raise_locked(channel, source, kind) && add_unit_locked(channel);
	pthread_mutex_unlock(&channel->lock);
	/* The event is in the list already, where a reader of the unit looks for it. Write without
	 * the lock: the thread that wakes may take this thread's CPU, and needs the lock. */
	if (writes)
		write_unit(channel);
	cancel_restore(cancel_state);
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
	channel->events--;
	source->taken++;
	*object = source->object;
	return true;
}

/* Read an event from the list alone. The program has closed the descriptor, so no thread can sleep
 * on it, but the events are still reported. `units` counts no more. */
static int read_list(struct channel *channel, void **object, int *code)
{
	bool taken;

	pthread_mutex_lock(&channel->lock);
	channel->owed = 0;
	taken = take_locked(channel, object, code);
	pthread_mutex_unlock(&channel->lock);
	return taken ? 0 : -EBADF;
}

/* Use a unit that was read: take an event for it. Return false as take_locked. */
static bool use_unit(struct channel *channel, void **object, int *code)
{
	const int cancel_state = cancel_disable();
	bool taken;

	pthread_mutex_lock(&channel->lock);
	if (channel->units > 0)
		channel->units--;
	taken = take_locked(channel, object, code);
	/* There were more events than units. */
	if (add_unit_locked(channel))
		write_unit(channel);
	pthread_mutex_unlock(&channel->lock);
	cancel_restore(cancel_state);
	return taken;
}

/* Sleep until the thread is cancelled or the process ends. */
static _Noreturn void sleep_for_ever(void)
{
	for (;;)
		poll(NULL, 0, -1);
}

int channel_read(struct channel *channel, void **object, int *code)
{
	uint8_t unit;
	ssize_t got;

	do {
		if (!is_open(channel))
			return read_list(channel, object, code);
		got = read(channel->fd, &unit, sizeof(unit));
		if (got < 0)
			return -errno;
		/* Another thread has destroyed the channel, and its struct may be gone. With
		 * Linux's descriptors this thread would not wake; rping counts on that. */
		if (got == 0)
			sleep_for_ever();
	} while (!use_unit(channel, object, code));
	return 0;
}

/* Take a unit out of the pipe without sleeping. Return false if a reader has it already, or if
 * there was no /proc to open the pipe both ways. */
static bool take_unit(const struct channel *channel)
{
	uint8_t unit;
	ssize_t got;

	if (!own_is(channel->doorbell_fd))
		return false;
	do {
		got = read(channel->doorbell_fd, &unit, sizeof(unit));
	} while (got < 0 && errno == EINTR);
	return got == sizeof(unit);
}

uint32_t channel_forget(struct channel *channel, struct channel_source *source)
{
	const int cancel_state = cancel_disable();
	struct channel_several *several;
	uint32_t forgotten;

	pthread_mutex_lock(&channel->lock);
	several = several_of(source);
	forgotten = source->pending;
	if (forgotten > 0) {
		TAILQ_REMOVE(&channel->ready, source, link);
		source->pending = 0;
		channel->events -= forgotten;
	}
	if (several) {
		several->order = 0;
		memset(several->pending, 0, sizeof(several->pending));
	}
	while (channel->units > channel->events + channel->owed) {
		if (take_unit(channel))
			channel->units--;
		else
			channel->owed++;
	}
	pthread_mutex_unlock(&channel->lock);
	cancel_restore(cancel_state);
	return forgotten;
}

uint32_t channel_pending(struct channel *channel, const struct channel_source *source)
{
	const int cancel_state = cancel_disable();
	uint32_t pending;

	pthread_mutex_lock(&channel->lock);
	pending = source->pending;
	pthread_mutex_unlock(&channel->lock);
	cancel_restore(cancel_state);
	return pending;
}
