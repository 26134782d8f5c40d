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

#define TX_BATCH      32
#define TX_STREAM_MIN 4	  /* packets in a pass */
#define TX_LOOP_MAX   512 /* packets to ourselves that wait for the next turn; a power of two */

/* Engine's thread. */
struct tx {
	struct packet_sink sink; /* first: the sink is found from it */
	struct packet_out out;
	struct port *port;
	struct counters *counters;
	struct dma *dma;	/* memory that packets may be sent from in place; NULL: none */
	const uint32_t *groups; /* how many multicast groups we are in ourselves, or NULL */
	bool connected;	     /* else what is sent reaches nobody, and is dropped as a cable would */
	bool stuck;	     /* since tx_begin: a packet was asked for and could not be given */
	bool given_up;	     /* it was waited for in vain, and has taken nothing since */
	uint16_t next_ip_id; /* IPv4 identification of the next packet */
	uint32_t count;	     /* packets not yet taken by the port */
	uint32_t placed;     /* those built where the port sends them from, and not sent yet */
	uint64_t placed_bytes;
	uint64_t pending_bytes;
	struct rte_mbuf *current; /* given by get and not yet put */
	uint8_t *offer;	  /* get gave the port's place for short packets in its stead; or NULL */
	bool was_short;	  /* the packet put last could have been built there */
	bool streams;	  /* more than a few packets were sent in the last pass that sent some */
	uint32_t in_pass; /* packets since tx_begin */
	uint32_t spares;  /* buffers that the next packets are built in */
	struct rte_mbuf *spare[TX_BATCH]; /* the next one is the last */
	struct rte_mbuf *pending[TX_BATCH];
	uint32_t loop_head, loop_tail; /* free-running */
	struct rte_mbuf *loop[TX_LOOP_MAX];
};

/** How many packets that we sent to ourselves wait for tx_loop_burst. */
static inline uint32_t tx_loop_count(const struct tx *tx)
{
	return tx->loop_tail - tx->loop_head;
}

static inline bool tx_loop_full(const struct tx *tx)
{
	return tx_loop_count(tx) == TX_LOOP_MAX;
}

/** Return true if packets wait for room in the port. Packets in the loopback queue wait for a turn
 * only.
 */
static inline bool tx_waits_for_port(const struct tx *tx)
{
	return tx->count > 0 || (tx->stuck && !tx_loop_full(tx));
}

void tx_init(struct tx *tx, struct port *port, struct counters *counters);

/** Give back all buffers, which may be those of another process. Nothing is sent any more. */
void tx_fini(struct tx *tx);

/** At the begin of a pass: ask the port again, which may have been full. */
static inline void tx_begin(struct tx *tx)
{
	if (tx->in_pass > 0)
		tx->streams = tx->in_pass >= TX_STREAM_MIN;
	tx->in_pass = 0;
	tx->stuck = false;
}

/** Give the port what is pending; what it does not take stays. */
void tx_flush(struct tx *tx);

/** Send a frame that no host receives: a driver returns the buffers of sent packets only when it
 * sends. */
void tx_send_dummy(struct tx *tx);

/** A buffer for a frame that is no RoCE packet, or NULL. */
struct rte_mbuf *tx_alloc(struct tx *tx);

/** Send such a frame; it is dropped where there is no room. */
void tx_send(struct tx *tx, struct rte_mbuf *mbuf, uint32_t len);

/** Up to `n` packets that we sent to ourselves. */
uint16_t tx_loop_burst(struct tx *tx, struct rte_mbuf **mbufs, uint16_t n);

#endif
