/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that cross from one engine of a device to another. The first engine has the device's
 * port. If the port has a queue for another engine, that engine receives and sends by itself, and
 * only strays cross: packets that arrived in the queue of the wrong engine. Otherwise the first
 * engine gives it the packets to its queue pairs, and sends what it wants to send. Packets from a
 * queue pair to one of another engine of the same device cross directly.
 */
#ifndef ENGINE_CROSSING_H
#define ENGINE_CROSSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct crossing;
struct device;
struct engine;
struct relay;

/** Make the crossing of a device whose first engine exists. Not MT-safe. 0 or -ENOMEM. */
int crossing_create(struct engine *first);

/** Make a further engine of the device, and its port. All engines are made before any of them runs.
 * Not MT-safe. 0 or -errno (logged). */
int crossing_add(struct engine *first, uint32_t number);

/** Free a crossing, with all engines but the first and their ports. No thread runs any of the
 * engines. NULL is allowed. Not MT-safe. */
void crossing_destroy(struct crossing *crossing);

/**
 * Pass a packet on that an engine sends to its own address, if the queue pair is another engine's.
 * Sender's thread.
 *
 * @return
 *   False if the queue pair is the sender's own: nothing has happened. Else the packet has been
 *   passed on or freed.
 */
bool crossing_pass(struct engine *from, uint32_t qpn, struct rte_mbuf *mbuf);

/** Give all other engines a copy of a packet to a group that `from` has sent or received. Thread of
 * `from`. */
void crossing_spread(struct engine *from, const struct rte_mbuf *mbuf, bool received);

/**
 * Give a frame that an engine's port has received to the engine of its queue pair. Thread of
 * `from`.
 *
 * @return
 *   True if the frame was given away or freed; false if `from` must process it (too).
 */
bool crossing_give(struct engine *from, const uint8_t *frame, size_t len, struct rte_mbuf *mbuf);

/** Take up to `n` packets to the first engine's queue pairs that other engines sent, or received in
 * its place. First engine's thread. */
uint16_t crossing_take(struct crossing *crossing, struct rte_mbuf **mbufs, uint16_t n);

/**
 * Send what other engines want to send, as far as the port takes it. The first engine calls the one
 * function before its own packets in each pass, and the other one behind them: so both sides go
 * first in turn, and a port that is always full serves both. First engine's thread. Returns how
 * many packets left.
 */
unsigned int crossing_begin(struct engine *first);
unsigned int crossing_finish(struct engine *first);

/** Send as much as the port takes now. The caller has stopped all engines. */
void crossing_make_room(struct crossing *crossing);

/** Return true if packets of other engines wait for the port. First engine's thread. */
bool crossing_sends(const struct crossing *crossing);

/** Return true if other engines have packets to send, or crossing_take would find some. First
 * engine's thread. */
bool crossing_has_left(const struct crossing *crossing);

/** Return true if an engine has called the first one since crossing_begin. MT-safe. */
bool crossing_is_called(const struct crossing *crossing);

/** For a thread that has polled an engine in vain, run a poll of each engine whose queue receives
 * packets for that one: of the first engine if the other one has no queue of its own, and of
 * engines that have given it packets of a port that cannot tell queue pairs apart (port.rx_mixed).
 * Without helpers (inline progress), run a poll of all other engines. MT-safe. */
void crossing_poll_others(struct engine *engine);

/** Call `each` for the other engines whose queues receive packets for this one: those of which
 * crossing_poll_others runs an engine poll if there are helpers. MT-safe. */
void crossing_each_source(struct engine *engine, void (*each)(struct engine *source));

/** Stop all engines but the first, or let them run again; NULL: there are none. First engine's
 * thread. Returns false if one of them has ended: it never runs again, but a thread may still be in
 * it. */
bool crossing_stop_others(struct crossing *crossing);
void crossing_start_others(struct crossing *crossing);

/** Call `each` for all engines but the first, until it returns another value than 0; NULL: there
 * are none. MT-safe. Returns the last value. */
int crossing_each_other(struct crossing *crossing, int (*each)(struct engine *engine, void *arg),
			void *arg);

#endif
