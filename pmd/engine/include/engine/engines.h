/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engines of a device that has several, and packets between them. Each engine receives and
 * sends by a queue of the port that is its own. A packet crosses by the other engine's inbox if it
 * goes from a queue pair to one of another engine, if it is for a group, or if it has arrived in
 * the queue of the wrong engine (PORT_STRAY).
 */
#ifndef ENGINE_ENGINES_H
#define ENGINE_ENGINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct engine;
struct engines;

/** Make the set of a device's engines, of which the first exists. Not MT-safe. 0 or -errno
 * (logged). */
int engines_create(struct engine *first);

/** Make a further engine of the device, and open its queue of the port. All engines are made before
 * any of them runs. Not MT-safe. 0 or -errno (logged). */
int engines_add(struct engine *first, uint32_t number);

/** Free the set, with all engines but the first and their queues. No thread runs any of the
 * engines. NULL is allowed. Not MT-safe. */
void engines_destroy(struct engines *engines);

/**
 * Pass a packet on that an engine sends to its own address, if the queue pair is another engine's.
 * Sender's thread.
 *
 * @return
 *   False if the queue pair is the sender's own: nothing has happened. Else the packet has been
 *   passed on or freed.
 */
bool engines_pass(struct engine *from, uint32_t qpn, struct rte_mbuf *mbuf);

/** Give all other engines a copy of a packet to a group that `from` has sent or received. Thread of
 * `from`. */
void engines_spread(struct engine *from, const struct rte_mbuf *mbuf, bool received);

/**
 * Give a frame that an engine's queue has received to the engine of its queue pair. Thread of
 * `from`.
 *
 * @return
 *   True if the frame was given away or freed; false if `from` must process it (too).
 */
bool engines_give(struct engine *from, const uint8_t *frame, size_t len, struct rte_mbuf *mbuf);

/** Take up to `n` packets that other engines have for this one. Thread of `engine`. */
uint16_t engines_take(struct engine *engine, struct rte_mbuf **mbufs, uint16_t n);

/** Return true if engines_take would find packets. Thread of `engine`. */
bool engines_has_more(const struct engine *engine);

/** For a thread that has polled an engine in vain, and for a device without helpers: run a poll of
 * each other engine. MT-safe. */
void engines_poll_others(struct engine *engine);

/** Return true if the device's port is lost, as its first engine knows. MT-safe. */
bool engines_lost_port(const struct engine *engine);

/** Stop all engines but the first, or let them run again; NULL: there are none. First engine's
 * thread. Returns false if one of them has ended: it never runs again, but a thread may still be in
 * it. */
bool engines_stop_others(struct engines *engines);
void engines_start_others(struct engines *engines);

/** Call `each` for all engines but the first, until it returns another value than 0; NULL: there
 * are none. MT-safe. Returns the last value. */
int engines_each_other(struct engines *engines, int (*each)(struct engine *engine, void *arg),
		       void *arg);

#endif
