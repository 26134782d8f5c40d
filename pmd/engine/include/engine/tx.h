/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet sink of an engine: packets are built in the port's buffers, and sent in bursts. */
#ifndef ENGINE_TX_H
#define ENGINE_TX_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "port/port.h"
#include "transport/sink.h"

struct counters;
struct dma;
struct engine;

#define TX_BATCH 32
#define TX_LOOP_MAX \
	512 /* packets to ourselves that wait for the next engine poll; a power of two */

/* Engine's thread. */
struct tx {
	struct packet_sink sink; /* first: the sink is found from it */
	struct packet_out out;
	struct port *port;
	struct counters *counters;
	struct engine *engine;	/* that sends; NULL in tests of this file alone */
	struct dma *dma;	/* memory from which packets may be sent in place; NULL: none */
	const uint32_t *groups; /* number of multicast groups that we have joined, or NULL */
	bool connected;	     /* false: packets reach nobody and are dropped, as without a cable */
	bool offers;	     /* the port may offer places for short packets, in this pass */
	bool stuck;	     /* a packet was requested since tx_begin, but there was no room */
	bool given_up;	     /* a wait for room timed out, and the port has taken nothing since */
	uint16_t next_ip_id; /* IPv4 identification of the next packet */
	uint32_t count;	     /* packets not yet taken by the port */
	uint32_t placed;     /* packets built in the port's own memory, not sent yet */
	uint64_t placed_bytes;
	uint32_t stored[STORE_WAYS]; /* placed packets, by the way their payload is stored */
	uint32_t store_trials;	     /* port.place_trials at the last push */
	uint64_t pending_bytes;
	struct rte_mbuf *current;	  /* returned by get, not yet passed to put */
	uint32_t spares;		  /* buffers in which the next packets are built */
	struct rte_mbuf *spare[TX_BATCH]; /* the last element is used next */
	struct rte_mbuf *pending[TX_BATCH];
	/* what the port has dropped, as counted */
	struct port_drops too_long, refused, unconnected;
	uint32_t loop_head, loop_tail; /* free-running */
	struct rte_mbuf *loop[TX_LOOP_MAX];
};

/** Return how many packets to ourselves wait for tx_loop_burst. */
static inline uint32_t tx_loop_count(const struct tx *tx)
{
	return tx->loop_tail - tx->loop_head;
}

static inline bool tx_loop_full(const struct tx *tx)
{
	return tx_loop_count(tx) == TX_LOOP_MAX;
}

/** Return how many packets the port has not sent. */
static inline uint32_t tx_left(const struct tx *tx)
{
	return tx->count + tx->port->tx_held;
}

/** Return true if packets wait for room in the port. Packets in the loopback queue wait for an
 * engine poll only.
 */
static inline bool tx_waits_for_port(const struct tx *tx)
{
	return tx->count > 0 || (tx->stuck && !tx_loop_full(tx));
}

/** Return true if a port that holds packets back wants no more of them to a queue pair at its own
 * address. */
static inline bool tx_must_wait(const struct tx *tx, uint32_t qpn)
{
	return tx->port->tx_held > 0 && tx->port->ops->waits(tx->port->ops_arg, qpn);
}

void tx_init(struct tx *tx, struct port *port, struct counters *counters);

/** Free all buffers; they may belong to another process. */
void tx_give_back(struct tx *tx);

/** Let the port send packets that it holds back. */
void tx_send_held(struct tx *tx);

/** Begin a pass: ask the port again, which may have been full. */
static inline void tx_begin(struct tx *tx)
{
	tx->offers = tx->port->ops->offer && tx->port->spares_icrc && tx->connected;
	tx->stuck = false;
	if (unlikely(tx->port->tx_held > 0))
		tx_send_held(tx);
}

/** Do what tx_flush does, if there are packets. */
void tx_flush_some(struct tx *tx);

/** Give the pending packets to the port. Packets that it does not take stay pending. */
static inline void tx_flush(struct tx *tx)
{
	if (tx->placed + tx->count > 0)
		tx_flush_some(tx);
}

/** Count packets that the port took and has dropped since: they count as not sent. */
void tx_count_late_drops(struct tx *tx);

/** Send a frame that no host receives: a driver returns the buffers of sent packets only when it
 * sends. */
void tx_send_dummy(struct tx *tx);

/** Return a buffer for a frame that is not a RoCE packet, or NULL. */
struct rte_mbuf *tx_alloc(struct tx *tx);

/** Send such a frame. It is dropped if there is no room. */
void tx_send(struct tx *tx, struct rte_mbuf *mbuf, uint32_t len);

/** Take up to `n` packets that we sent to ourselves. Returns how many. */
uint16_t tx_loop_burst(struct tx *tx, struct rte_mbuf **mbufs, uint16_t n);

#endif
