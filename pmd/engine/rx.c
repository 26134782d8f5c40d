/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive path of an engine's poll: frames go to queue pairs or to the host's protocols. */
#include "rx.h"

#include <rte_ether.h>
#include <rte_prefetch.h>

#include "base/tuning.h"
#include "device/device.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "engine_poll.h"

#define BODIES_AHEAD 2	  /* long frames that are being prefetched as a whole */
#define BODY_MIN     1024 /* bytes of such a frame */
#define AHEAD	     2	  /* packets whose queue pairs are being prefetched */
#define FRAMES_AHEAD 8	  /* the same for headers; they may be in another CPU's cache */

/* Return a frame in one piece, also if the port has spread it over several buffers. NULL: it is
 * longer than the longest RoCE frame. */
static uint8_t *rx_frame(struct engine *engine, const struct rte_mbuf *mbuf)
{
	if (likely(mbuf->nb_segs == 1))
		return rte_pktmbuf_mtod(mbuf, uint8_t *);
	if (mbuf->pkt_len > sizeof(engine->linear))
		return NULL;
	/* The pointer is into the mbuf or into our buffer; link_input may write to both. */
	return (uint8_t *)(uintptr_t)rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, engine->linear);
}

/* Return true if the frame's checksums need no check. L4_CKSUM_NONE means that the frame has not
 * left this machine: the sending device would compute the checksum. */
static bool rx_sums_are_good(uint64_t flags)
{
	const uint64_t good = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;

	return (flags & good) == good ||
	       (flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

static unsigned int rx_knows(const struct engine *engine, const struct rte_mbuf *mbuf,
			     enum rx_source source)
{
	unsigned int known;

	/* Nobody asks for more about the frame of a trusted sender. */
	if (source == RX_LOOPED || mbuf->port == PORT_HANDED_OVER)
		return FRAME_TRUSTED;
	known = rx_sums_are_good(mbuf->ol_flags) ? FRAME_SUMS_GOOD : 0;
	if (mbuf->port == PORT_VERIFIED)
		known |= FRAME_ICRC_GOOD;
	if (mbuf->port == PORT_PASSED_ON || unlikely(engine->link->port.passed_on))
		known |= FRAME_SOURCE_GOOD;
	return known;
}

/* Give a frame that is not RoCE to the host functions, which may make system calls. */
static void rx_input_host(struct engine *engine, uint8_t *frame, uint32_t frame_len)
{
	struct rte_mbuf *answer = tx_alloc(&engine->tx);
	int cancel_state;
	size_t len;

	if (!answer)
		return;
	cancel_state = cancel_disable();
	len = link_input(engine->link, frame, frame_len, engine->now_ns,
			 rte_pktmbuf_mtod(answer, uint8_t *));
	cancel_restore(cancel_state);
	if (len > 0)
		tx_send(&engine->tx, answer, (uint32_t)len);
	else
		rte_pktmbuf_free(answer);
}

/* Process a frame. Returns false if it was given to another engine, which frees it. */
static bool rx_input(struct engine *engine, struct device_burst *burst, struct rte_mbuf *mbuf,
		     enum rx_source source)
{
	const unsigned int known = rx_knows(engine, mbuf, source);
	struct qp *qp = NULL;
	uint8_t *frame;

	/* A driver may have removed the VLAN tag; the code below expects it in the frame. */
	if ((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && rte_vlan_insert(&mbuf) != 0) {
		counters_add(&engine->home->counters, COUNTER_rx_vlan_errors, 1);
		return true;
	}
	frame = rx_frame(engine, mbuf);
	if (unlikely(!frame)) {
		counters_add(&engine->home->counters, COUNTER_rx_too_long, 1);
		return true;
	}
	if (unlikely(engine->engines) && source == RX_PORT &&
	    engines_give(engine, frame, mbuf->pkt_len, mbuf))
		return false;
	if (device_receive_next(burst, frame, mbuf->pkt_len, known, &qp)) {
		if (!qp)
			return true;
		engine_mark_ready(engine, qp);
		if (unlikely(qp_sched(qp)->acks_at_once) && qp_owes_ack_only(qp))
			engine->acks_at_once = true;
		return true;
	}
	/* Only the first engine is the host to others. */
	if (likely(engine_is_first(engine)))
		rx_input_host(engine, frame, mbuf->pkt_len);
	return true;
}

static void rx_prefetch_receiver(const struct engine *engine, const struct rte_mbuf *mbuf)
{
	device_prefetch(engine->device, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len);
}

/*
 * Prefetch the lines of a frame's headers, and with them all of a small message. They may be in
 * another CPU's cache; a message takes twice as long if two lines are fetched one after the other.
 */
static void rx_prefetch_frame(const struct rte_mbuf *mbuf)
{
	const char *frame = rte_pktmbuf_mtod(mbuf, const char *);

	rte_prefetch0(frame);
	if (mbuf->data_len > RTE_CACHE_LINE_SIZE)
		rte_prefetch0(frame + RTE_CACHE_LINE_SIZE);
}

/* Prefetch a long frame as a whole, into the second cache: it may be longer than the first has room
 * for. */
static void rx_prefetch_body(const struct rte_mbuf *mbuf)
{
	const char *frame = rte_pktmbuf_mtod(mbuf, const char *);

	if (mbuf->data_len < BODY_MIN)
		return;
	for (uint32_t at = 2 * RTE_CACHE_LINE_SIZE; at < mbuf->data_len; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch1(frame + at);
}

void rx_input_burst(struct engine *engine, struct rte_mbuf **mbufs, uint16_t n,
		    enum rx_source source)
{
	const uint16_t ahead = likely(tuning.prefetch) ? FRAMES_AHEAD : n;
	struct device_burst burst;
	bool prefetches, bodies;

	if (n == 0)
		return;
	device_burst_begin(&burst, engine->home, engine->now_ns);
	prefetches = engine_prefetches(engine);
	bodies = engine->tx.port->rx_bodies && source == RX_PORT && tuning.prefetch;
	for (uint16_t i = 1; i < ahead && i < n && likely(tuning.prefetch); i++)
		rx_prefetch_frame(mbufs[i]);
	for (uint16_t i = 0; i < AHEAD && i < n && unlikely(prefetches); i++)
		rx_prefetch_receiver(engine, mbufs[i]);
	for (uint16_t i = 0; i < n; i++) {
		if (i + ahead < n)
			rx_prefetch_frame(mbufs[i + ahead]);
		if (unlikely(bodies) && i + BODIES_AHEAD < n)
			rx_prefetch_body(mbufs[i + BODIES_AHEAD]);
		if (unlikely(prefetches) && i + AHEAD < n)
			rx_prefetch_receiver(engine, mbufs[i + AHEAD]);
		if (unlikely(!rx_input(engine, &burst, mbufs[i], source)))
			mbufs[i] = NULL;
		if (unlikely(!tuning.batch_ack))
			engine_run_ready(engine, false);
	}
	port_free_burst(mbufs, n);
}
