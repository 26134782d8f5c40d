/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels: a pollable descriptor and a queue of what it tells of. Completion and
 * asynchronous events use it. */
#ifndef QUEUE_CHANNEL_H
#define QUEUE_CHANNEL_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#define CHANNEL_PENDING_MAX ((1u << 24) - 1)

/* A thing that events are about: embedded in its object, so that raising an event allocates
 * nothing. Each queue pair has several: it is kept small. All under channel->lock. */
struct channel_source {
	TAILQ_ENTRY(channel_source) link;
	uint32_t pending : 24; /* events raised and not yet read; of more no more is told */
	uint32_t code : 8;     /* what kind of event; returned beside object */
	uint32_t taken;	       /* events read, which must be acknowledged before the object goes */
	void *object;	       /* what channel_read returns */
};

struct channel {
	int fd; /* eventfd in semaphore mode: readable while events wait; its O_NONBLOCK is the
		   user's to set */
	pthread_mutex_t lock;
	TAILQ_HEAD(, channel_source) ready; /* sources with pending > 0, oldest first */
	uint32_t owed; /* units of forgotten events that readers had taken already; under lock */
};

/** Create the descriptor (close-on-exec). Not MT-safe per channel. 0 or -errno. */
int channel_init(struct channel *channel);

/** Close the descriptor. Not MT-safe; no source is pending. */
void channel_fini(struct channel *channel);

/** Raise an event; wakes readers. MT-safe. */
void channel_raise(struct channel *channel, struct channel_source *source);

/**
 * Read the oldest event; blocks unless the descriptor is non-blocking. MT-safe.
 *
 * @return
 *   0, -EAGAIN from a non-blocking descriptor, or -EINTR.
 */
int channel_read(struct channel *channel, void **object, int *code);

/** Forget a source's unread events (its object is being destroyed). MT-safe. Returns how many there
 * were. */
uint32_t channel_forget(struct channel *channel, struct channel_source *source);

#endif
