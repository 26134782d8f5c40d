/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels: a pollable descriptor and a list of pending events. Completion and asynchronous
 * events use them. */
#ifndef QUEUE_CHANNEL_H
#define QUEUE_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#define CHANNEL_PENDING_MAX ((1u << 24) - 1)
#define CHANNEL_KINDS	    6	 /* most kinds of events of one source */
#define CHANNEL_SEVERAL	    0x80 /* least code of a source that has several kinds */

/* A source of events. It is embedded in the object that the events are about, so that raising an
 * event allocates nothing. All under channel->lock. */
struct channel_source {
	TAILQ_ENTRY(channel_source) link;
	uint32_t pending : 24; /* events raised and not yet read; the count stops at its maximum */
	uint32_t code : 8; /* the kind of event, less than CHANNEL_SEVERAL; returned together with
			      object */
	uint32_t taken;	   /* events that were read, and must be acknowledged before the object is
			      destroyed */
	void *object;	   /* what channel_read returns */
};

/* A source of several kinds of events of one object, for objects that there are many of: a source
 * for each kind would take four times the memory. All under channel->lock. */
struct channel_several {
	/* `pending` counts the events of all kinds. `code` is at least CHANNEL_SEVERAL:
	 * channel_read returns the sum of it and the kind. */
	struct channel_source source;
	uint32_t order; /* kinds with events, plus 1, in four bits each: the oldest one is lowest */
	uint16_t pending[CHANNEL_KINDS]; /* events of each kind; the count stops at its maximum */
};

/* Something that should not last; for a user who wants to know (queue/cq.h: cq_watch). */
struct queue_watch {
	uint64_t since_ns;
	bool is_so;
	bool told;
};

/*
 * The user's descriptor is the reading end of a pipe, because Linux's descriptors of events are
 * readable only, and signal a program that sets O_ASYNC. An eventfd is always writable, and never
 * signals.
 */
struct channel {
	int fd;		 /* readable while events are pending; the user sets its O_NONBLOCK */
	int doorbell_fd; /* the same pipe for us: it never blocks */
	dev_t dev;	 /* the pipe's, by which we know whether `fd` is still ours */
	ino_t ino;
	pthread_mutex_t lock;
	/* under lock */
	TAILQ_HEAD(, channel_source) ready; /* sources with pending > 0, oldest first */
	uint64_t events;		    /* the sum of all `pending` */
	uint32_t units; /* bytes in the pipe, those that readers have taken and wait for the lock
			   with, and those that threads are about to write */
	uint32_t owed;	/* units of forgotten events that readers had already taken */
	/* while reasons are wanted */
	struct {
		uint32_t sleepers; /* threads that sleep until there is an event; atomic */
		uint64_t alive; /* the last look at which a queue of the channel could raise one */
		struct queue_watch sleep;
	} watch;
};

/** Create the descriptors (close-on-exec). Not MT-safe per channel. 0 or -errno. */
int channel_init(struct channel *channel);

/** Close the descriptors. Not MT-safe; no source is pending. */
void channel_fini(struct channel *channel);

/** Raise an event; wakes readers. MT-safe. */
void channel_raise(struct channel *channel, struct channel_source *source);

/** Do the same for one kind of a source that has several. */
void channel_raise_kind(struct channel *channel, struct channel_several *several, uint32_t kind);

/**
 * Read an event; blocks unless the descriptor is non-blocking. Sources with events take turns, and
 * so do the kinds of one source, each in the order in which their first events came. MT-safe. A
 * thread that is blocked here when another one ends the channel never returns, as with Linux's
 * descriptors; it can be cancelled.
 *
 * @return
 *   0, -EAGAIN from a non-blocking descriptor, or -EINTR.
 */
int channel_read(struct channel *channel, void **object, int *code);

/** Forget a source's unread events, of all its kinds, because its object is being destroyed.
 * MT-safe. Returns their number. */
uint32_t channel_forget(struct channel *channel, struct channel_source *source);

/** Return how many events of a source are raised and not yet read. MT-safe. */
uint32_t channel_pending(struct channel *channel, const struct channel_source *source);

#endif
