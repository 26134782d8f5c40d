/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds packets in place and transmits them, to the port or back to ourselves. */
#include "engine/tx.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_udp.h>

#include "base/copy.h"
#include "base/prefetch.h"
#include "base/tuning.h"
#include "device/device.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "port/dma.h"
#include "psock/psock.h"
#include "telemetry/counters.h"
#include "wire/opcode.h"

static_assert(PORT_OFFER_BYTES == SINK_OFFER_BYTES, "what fits into an offer fits into its place");

#define IN_PLACE_MIN  1024 /* bytes: below this, two more buffers cost as much as the copy saves */
#define HEADERS_AHEAD 4	   /* buffers whose first lines are being prefetched for writing */
#define PLACES_AHEAD  2	   /* after a long packet: all lines; the next is probably long */
/* bytes of a buffer that are prefetched in advance; the copy itself prefetches the rest */
#define BODY_AHEAD (PACKET_HDR_MAX + COPY_PIECE_BYTES)
#define BODY_MIN   1024 /* bytes: a shorter packet needs no prefetch */
#define PLACE_MIN  1024 /* bytes of payload: a shorter packet is copied once more */

static void tx_drop_pending(struct tx *tx)
{
	rte_pktmbuf_free_bulk(tx->pending, tx->count);
	tx->count = 0;
	tx->pending_bytes = 0;
}

/* Count how the placed packets were stored. */
static void tx_count_stores(struct tx *tx)
{
	const uint32_t trials = tx->port->place_trials;

	counters_add(tx->counters, COUNTER_tx_stored_round, tx->stored[STORE_ROUND]);
	counters_add(tx->counters, COUNTER_tx_stored_past_caches, tx->stored[STORE_PAST]);
	memset(tx->stored, 0, sizeof(tx->stored));
	counters_add(tx->counters, COUNTER_store_trials, trials - tx->store_trials);
	tx->store_trials = trials;
}

static void tx_push(struct tx *tx)
{
	const struct port *port = tx->port;

	port->ops->push(port->ops_arg);
	tx->given_up = false;
	counters_add(tx->counters, COUNTER_tx_packets, tx->placed);
	counters_add(tx->counters, COUNTER_tx_bytes, tx->placed_bytes);
	tx->placed = 0;
	tx->placed_bytes = 0;
	if (tx->stored[STORE_ROUND] + tx->stored[STORE_PAST] > 0)
		tx_count_stores(tx);
}

static void tx_count_kind(struct tx *tx, enum counter counter, const struct port_drops *now,
			  struct port_drops *counted, struct port_drops *sum)
{
	if (likely(now->packets == counted->packets))
		return;
	counters_add(tx->counters, counter, now->packets - counted->packets);
	sum->packets += now->packets - counted->packets;
	sum->bytes += now->bytes - counted->bytes;
	*counted = *now;
}

/* Count what the port has dropped instead of sending, since the last call. Returns the sum. */
static struct port_drops tx_count_drops(struct tx *tx)
{
	const struct port *port = tx->port;
	struct port_drops sum = {0};

	tx_count_kind(tx, COUNTER_tx_too_long, &port->tx_too_long, &tx->too_long, &sum);
	tx_count_kind(tx, COUNTER_tx_refused, &port->tx_refused, &tx->refused, &sum);
	tx_count_kind(tx, COUNTER_tx_unconnected, &port->tx_unconnected, &tx->unconnected, &sum);
	return sum;
}

void tx_count_late_drops(struct tx *tx)
{
	const struct port_drops drops = tx_count_drops(tx);

	if (likely(drops.packets == 0))
		return;
	counters_add(tx->counters, COUNTER_tx_packets, -drops.packets);
	counters_add(tx->counters, COUNTER_tx_bytes, -drops.bytes);
}

/* Give a burst to the port, and count the sent packets. Returns how many packets the port took. */
static uint32_t tx_burst(struct tx *tx)
{
	const uint64_t before_bytes = tx->pending_bytes;
	const uint32_t sent = port_tx_burst(tx->port, tx->pending, (uint16_t)tx->count);
	struct port_drops drops;

	tx->count -= sent;
	tx->pending_bytes = 0;
	if (tx->count > 0) {
		memmove(tx->pending, tx->pending + sent, tx->count * sizeof(tx->pending[0]));
		for (uint32_t i = 0; i < tx->count; i++)
			tx->pending_bytes += tx->pending[i]->pkt_len;
	}
	drops = tx_count_drops(tx);
	counters_add(tx->counters, COUNTER_tx_packets, sent - drops.packets);
	counters_add(tx->counters, COUNTER_tx_bytes,
		     before_bytes - tx->pending_bytes - drops.bytes);
	return sent;
}

void tx_send_held(struct tx *tx)
{
	const struct port *port = tx->port;

	port->ops->send_held(port->ops_arg);
	tx_count_late_drops(tx);
}

static __rte_noinline void tx_flush_pending(struct tx *tx)
{
	if (!tx->connected) {
		counters_add(tx->counters, COUNTER_tx_unconnected, tx->count);
		tx_drop_pending(tx);
		return;
	}
	if (tx_burst(tx) > 0)
		tx->given_up = false;
}

void tx_flush_some(struct tx *tx)
{
	if (tx->placed > 0)
		tx_push(tx);
	if (tx->count > 0)
		tx_flush_pending(tx);
}

static void tx_fetch(const struct rte_mbuf *mbuf, uint32_t from, uint32_t to)
{
	prefetch_write_bytes(rte_pktmbuf_mtod_offset(mbuf, const char *, from), to - from);
}

/*
 * Prefetch the header lines of a buffer, some packets before it is used. If another process used
 * the buffer last, they are in the cache of that process's CPU.
 */
static void tx_fetch_headers(const struct tx *tx, uint32_t ahead)
{
	if (ahead < tx->spares && likely(tuning.prefetch))
		tx_fetch(tx->spare[tx->spares - 1 - ahead], 0, PACKET_HDR_MAX);
}

static void tx_take_spares(struct tx *tx)
{
	if (rte_pktmbuf_alloc_bulk(tx->port->pool, tx->spare, TX_BATCH) != 0)
		return;
	tx->spares = TX_BATCH;
	for (uint32_t ahead = 0; ahead < HEADERS_AHEAD; ahead++)
		tx_fetch_headers(tx, ahead);
}

/* Return the next buffer. Buffers are taken from the pool in batches, so that it is asked less
 * often. If the pool is nearly empty, they are taken one by one. */
static __rte_noinline struct rte_mbuf *tx_next_buffer(struct tx *tx)
{
	if (tx->spares == 0 && tuning.buffer_cache)
		tx_take_spares(tx);
	tx_fetch_headers(tx, HEADERS_AHEAD);
	return likely(tx->spares > 0) ? tx->spare[--tx->spares] : rte_pktmbuf_alloc(tx->port->pool);
}

static bool tx_places(const struct tx *tx)
{
	return tx->port->ops->place && tx->connected;
}

/* Return true if a port that takes no mbufs instead has no room. */
static bool tx_is_full(struct tx *tx)
{
	const struct port *port = tx->port;

	if (!port->ops->has_room || !tx_places(tx) || likely(port->ops->has_room(port->ops_arg)))
		return false;
	tx_flush(tx);
	return !port->ops->has_room(port->ops_arg);
}

/* Return a place for the next packet. The port and the loopback must both have room, because the
 * packet's destination is known only when it is built. */
static struct packet_out *tx_get(struct packet_sink *sink)
{
	struct tx *tx = (struct tx *)(void *)sink;

	if (tx->count == TX_BATCH || tx->placed == TX_BATCH)
		tx_flush(tx);
	if (tx->count == TX_BATCH || tx_loop_full(tx) || tx_is_full(tx))
		goto stuck;
	if (!tx->current)
		tx->current = tx_next_buffer(tx);
	if (unlikely(!tx->current))
		goto stuck;
	if (likely(tuning.prefetch))
		port_expect(tx->port, tx->count, PACKET_HDR_MAX);
	tx->out.frame = rte_pktmbuf_mtod(tx->current, uint8_t *);
	return &tx->out;
stuck:
	if (!tx->stuck)
		counters_add(tx->counters, COUNTER_tx_no_buffer, 1);
	tx->stuck = true;
	return NULL;
}

/* Return true if the headers that a frame begins with stay on this host. */
static bool tx_is_local(const struct tx *tx, const uint8_t *headers)
{
	return memcmp(headers, tx->port->mac, RTE_ETHER_ADDR_LEN) == 0;
}

/* Return the port's place for a short packet to another process of this host. Packets that wait in
 * buffers must be sent first. */
static uint8_t *tx_offer(struct packet_sink *sink, const struct path *path, uint32_t qpn)
{
	struct tx *tx = (struct tx *)(void *)sink;

	if (!tx->offers || tx->count > 0 || !tx_is_local(tx, path->hdr))
		return NULL;
	if (unlikely(tx->placed == TX_BATCH))
		tx_flush(tx);
	return tx->port->ops->offer(tx->port->ops_arg, qpn);
}

static void tx_placed(struct packet_sink *sink, uint32_t len)
{
	struct tx *tx = (struct tx *)(void *)sink;

	tx->port->ops->placed(tx->port->ops_arg, len);
	tx->placed++;
	tx->placed_bytes += len;
}

/* Copy a multicast packet to ourselves, because our own queue pairs may be in the group. Without a
 * buffer the copy is lost, as datagrams may be. */
static void tx_loop_copy(struct tx *tx, const struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, tx->port->pool, 0, UINT32_MAX);

	if (!copy) {
		counters_add(tx->counters, COUNTER_tx_loopback_no_buffer, 1);
		return;
	}
	tx->loop[tx->loop_tail++ % TX_LOOP_MAX] = copy;
}

static const struct bth *tx_bth(const struct packet_out *out)
{
	return (const struct bth *)(const void *)(out->frame + out->l4_off +
						  sizeof(struct rte_udp_hdr));
}

/* Return the number of the destination queue pair. */
static uint32_t tx_qpn(const struct packet_out *out)
{
	rte_be32_t word;

	memcpy(&word, &tx_bth(out)->ecn, sizeof(word));
	return rte_be_to_cpu_32(word) & WIRE_QPN_MASK;
}

/* Return true if a packet to our own address is for this device. Other processes on a shared port
 * have the same address. */
static bool tx_is_to_us(const struct port *port, uint32_t qpn)
{
	return port->own_qpn_count == 0 || qpn - port->own_qpn_first < port->own_qpn_count;
}

/* Ask the port to complete the checksum that packet_seal has begun. */
static void tx_ask_for_sum(const struct packet_out *out, struct rte_mbuf *mbuf)
{
	mbuf->ol_flags |= RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
	mbuf->l2_len = out->l3_off;
	mbuf->l3_len = (uint64_t)out->l4_off - out->l3_off;
}

/*
 * Return the region if the packet's payload can stay in place until the port has read it, which may
 * be after the request has completed. That is harmless if the packet is a duplicate by then. A
 * reliable request succeeds when the peer has received it, so a packet that is still in flight is a
 * duplicate: the peer drops it even if its ICRC fits. A request that fails may be in flight with
 * bytes written later, and then its ICRC does not fit. Memory that a peer READs may change at any
 * time, so the ICRC of a READ response would fit only by luck. The same holds for a request from
 * memory that is written all the time: its retransmitted packets are copied, and get through.
 */
static struct dma_region *tx_find_place(const struct tx *tx, const struct packet_out *out)
{
	const struct bth *bth;

	if (likely(!tx->dma || LIST_EMPTY(&tx->dma->regions)))
		return NULL;
	if (out->payload_len < IN_PLACE_MIN || out->frags != 1 || out->frag[0].kind != FRAG_COPY ||
	    out->again || (out->ipv6 && !out->udp_sum_by_port))
		return NULL;
	bth = tx_bth(out);
	if (!(opcode_info(bth->opcode)->flags & OPCODE_REQUEST) ||
	    (bth->opcode & OPCODE_SERVICE_MASK) != OPCODE_RC)
		return NULL;
	return dma_find(tx->dma, out->frag[0].addr, out->frag[0].len);
}

/* Seal the packet in place. Returns its bytes; 0 if it must be copied after all; or -EFAULT. */
static int tx_seal_in_place(struct tx *tx, struct packet_out *out, struct rte_mbuf *head)
{
	struct dma_region *region = tx_find_place(tx, out);
	uint8_t *tail = out->frame + PACKET_FRAME_MAX - PACKET_TAIL_MAX;
	struct rte_mbuf *parts[2];
	int len;

	if (likely(!region) || rte_pktmbuf_alloc_bulk(tx->dma->parts, parts, 2) != 0)
		return 0;
	len = packet_seal_in_place(out, tail);
	if (unlikely(len < 0)) {
		rte_pktmbuf_free_bulk(parts, 2);
		return len;
	}
	head->data_len = out->hdr_len;
	dma_chain(region, head, parts, out->frag[0].addr, (uint16_t)out->payload_len, tail,
		  (uint16_t)len);
	counters_add(tx->counters, COUNTER_tx_in_place_packets, 1);
	return (int)head->pkt_len;
}

static int tx_seal(struct tx *tx, struct packet_out *out, struct rte_mbuf *mbuf, bool to_wire)
{
	int len = to_wire ? tx_seal_in_place(tx, out, mbuf) : 0;

	if (likely(len == 0)) {
		len = packet_seal(out);
		mbuf->data_len = (uint16_t)len;
		mbuf->pkt_len = (uint32_t)len;
	}
	return len;
}

/* Prefetch the next buffer's body: a copy into lines that another CPU has stalls every few lines.
 * After a long packet the next is probably long, too. */
static void tx_fetch_body(const struct tx *tx, const struct packet_out *out)
{
	if (out->copy_len >= BODY_MIN && tx->port->spares_icrc && tx->spares > 0 &&
	    likely(tuning.prefetch))
		tx_fetch(tx->spare[tx->spares - 1], PACKET_HDR_MAX,
			 RTE_MIN(packet_length(out), (uint32_t)BODY_AHEAD));
}

/* Return the port's place for the next packet of `len` bytes, or NULL. Packets that wait in buffers
 * are sent first. */
static uint8_t *tx_find_room(struct tx *tx, uint32_t len)
{
	const struct port *port = tx->port;
	uint8_t *place = port->ops->place(port->ops_arg, len);

	if (!place || likely(tx->count == 0))
		return place;
	tx_flush(tx);
	return tx->count == 0 ? port->ops->place(port->ops_arg, len) : NULL;
}

/*
 * Build the rest of a packet in the port's own buffer, from which the port sends it. The headers
 * are copied there from a buffer of our own, because the other end can change the port's buffer.
 * Returns bytes; 0 if the packet must go another way; or -EFAULT. Packets that wait in buffers are
 * sent first.
 *
 * A short packet is built in a buffer of our own, and copied when all packets of the burst are
 * built. The CRC reads the bytes just written. If these wait behind stores to another CPU's cache
 * lines, each packet waits for those lines, one after the other.
 */
static int tx_put_in_place(struct tx *tx, struct packet_out *out)
{
	const struct port *port = tx->port;
	uint8_t *place;
	int len;

	if (!tx_places(tx))
		return 0;
	place = tx_find_room(tx, RTE_MAX(packet_length(out), (uint32_t)PACKET_HDR_MAX));
	if (unlikely(!place))
		return 0;
	memcpy(place, out->frame, PACKET_HDR_MAX);
	out->frame = place;
	out->past_caches = port->place_way == STORE_PAST;
	len = packet_seal(out);
	out->past_caches = false;
	out->frame = rte_pktmbuf_mtod(tx->current, uint8_t *);
	if (unlikely(len < 0))
		return len;
	port->ops->placed(port->ops_arg, (uint32_t)len);
	tx->placed++;
	tx->placed_bytes += (uint32_t)len;
	tx->stored[port->place_way]++;
	if (likely(tuning.prefetch))
		port_expect(port, PLACES_AHEAD - 1, (uint32_t)len);
	return len;
}

/* Return true if a packet may be built in the port's own buffers. */
static bool tx_may_place(const struct tx *tx, const struct packet_out *out, bool is_local,
			 uint32_t qpn)
{
	const struct port_ops *ops = tx->port->ops;

	if (likely(!ops->aim))
		return !is_local;
	if (!ops->steers)
		return ops->aim(tx->port->ops_arg, qpn);
	return !is_local && ops->aim(tx->port->ops_arg, tx_qpn(out));
}

/* Return true if a packet should be built in the port's own buffers, if it may. A packet
 * without a CRC need not wait for their cache lines, so it is built there whenever it is too long
 * for an offer. */
static bool tx_wants_place(const struct tx *tx, const struct packet_out *out)
{
	return out->payload_len >= PLACE_MIN ||
	       (out->unsealed && tx->port->ops->offer && packet_length(out) > PORT_OFFER_BYTES);
}

/*
 * Return the IPv4 identification. Consecutive packets count up, as the kernel numbers the packets
 * into which it splits a run (psock/packet_run.h). A retransmitted packet follows none, and none
 * follows it: the peer may not accept runs.
 */
static uint16_t tx_next_id(struct tx *tx, bool again)
{
	const uint16_t id = (uint16_t)(tx->next_ip_id + again);

	tx->next_ip_id = (uint16_t)(id + 1 + again);
	return id;
}

/* Return true if the device has further engines. */
static bool tx_crosses(const struct tx *tx)
{
	return tx->engine && tx->engine->engines;
}

static __rte_noinline int tx_put_in_buffer(struct tx *tx, struct packet_out *out, bool is_local,
					   uint32_t qpn)
{
	const bool to_group = out->frame[0] & RTE_ETHER_GROUP_ADDR;
	struct rte_mbuf *mbuf = tx->current;
	int len;

	out->udp_sum_by_port = tx->port->sums_udp;
	if (tx_wants_place(tx, out) && !to_group && tx_may_place(tx, out, is_local, qpn)) {
		len = tx_put_in_place(tx, out);
		if (len != 0)
			return len < 0 ? len : 0;
	}
	tx_fetch_body(tx, out);
	len = tx_seal(tx, out, mbuf, !is_local && !to_group);
	if (unlikely(len < 0))
		return len;
	tx->current = NULL;
	if (out->udp_sum_by_port && out->ipv6)
		tx_ask_for_sum(out, mbuf);
	if (is_local && tx_is_to_us(tx->port, qpn)) {
		if (unlikely(tx_crosses(tx)) && engines_pass(tx->engine, qpn, mbuf))
			return 0;
		tx->loop[tx->loop_tail++ % TX_LOOP_MAX] = mbuf;
		return 0;
	}
	if (unlikely(to_group) && tx->groups && *tx->groups > 0) {
		tx_loop_copy(tx, mbuf);
		if (tx_crosses(tx))
			engines_spread(tx->engine, mbuf, false);
	}
	port_set_local_qpn(mbuf, qpn);
	/* IPv6 has no identification. */
	if (unlikely(out->again))
		mbuf->port = PSOCK_ALONE;
	tx->pending[tx->count++] = mbuf;
	tx->pending_bytes += (uint32_t)len;
	return 0;
}

static int tx_put(struct packet_sink *sink, struct packet_out *out)
{
	struct tx *tx = (struct tx *)(void *)sink;
	const struct port *port = tx->port;
	uint32_t qpn;

	out->ip_id = tx_next_id(tx, out->again);
	if (!tx_is_local(tx, out->frame))
		return tx_put_in_buffer(tx, out, false, 0);
	qpn = tx_qpn(out);
	out->unsealed = port->spares_icrc || port->own_qpn_count == 0;
	return tx_put_in_buffer(tx, out, true, qpn);
}

/* Tell how many packets to our own queue pairs were received. Nothing is known of those that
 * another engine receives. */
static enum sink_knows tx_ask_loop(const struct tx *tx, uint32_t qpn, struct sink_taken *taken)
{
	if (tx_crosses(tx) &&
	    device_engine_of_qpn(tx->engine->device, qpn) != tx->engine->home->number)
		return SINK_KNOWS_NOTHING;
	*taken = (struct sink_taken){.given = tx->loop_tail, .taken = tx->loop_head};
	return SINK_KNOWS_TAKEN;
}

static enum sink_knows tx_ask(struct packet_sink *sink, const struct path *path, uint32_t qpn,
			      struct sink_taken *taken)
{
	const struct tx *tx = (const struct tx *)(void *)sink;
	const struct port *port = tx->port;
	const bool is_local = memcmp(path->hdr, port->mac, RTE_ETHER_ADDR_LEN) == 0;
	struct port_taken of_port = {0};

	if (is_local && tx_is_to_us(port, qpn))
		return tx_ask_loop(tx, qpn, taken);
	if (!port->ops->taken || !tx->connected)
		return SINK_KNOWS_NOTHING;
	if (tx->count > 0 || (is_local && tx_must_wait(tx, qpn)))
		return SINK_KNOWS_FULL;
	if (!port->ops->taken(port->ops_arg, qpn, is_local, &of_port))
		return SINK_KNOWS_NOTHING;
	*taken = (struct sink_taken){
		.given = of_port.given,
		.taken = of_port.taken,
		.dropped = of_port.dropped,
		.unread = of_port.unread,
	};
	return SINK_KNOWS_TAKEN;
}

void tx_init(struct tx *tx, struct port *port, struct counters *counters)
{
	memset(tx, 0, sizeof(*tx));
	tx->sink.get = tx_get;
	tx->sink.put = tx_put;
	tx->sink.offer = tx_offer;
	tx->sink.placed = tx_placed;
	tx->sink.ask = tx_ask;
	tx->port = port;
	tx->counters = counters;
	tx->too_long = port->tx_too_long;
	tx->refused = port->tx_refused;
	tx->unconnected = port->tx_unconnected;
	tx->store_trials = port->place_trials;
}

uint16_t tx_loop_burst(struct tx *tx, struct rte_mbuf **mbufs, uint16_t n)
{
	uint16_t taken = 0;

	while (taken < n && tx->loop_head != tx->loop_tail)
		mbufs[taken++] = tx->loop[tx->loop_head++ % TX_LOOP_MAX];
	return taken;
}

void tx_give_back(struct tx *tx)
{
	tx_drop_pending(tx);
	rte_pktmbuf_free_bulk(tx->spare, tx->spares);
	tx->spares = 0;
	rte_pktmbuf_free(tx->current);
	tx->current = NULL;
	while (tx->loop_head != tx->loop_tail)
		rte_pktmbuf_free(tx->loop[tx->loop_head++ % TX_LOOP_MAX]);
}
