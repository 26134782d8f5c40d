/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends to and receives from another isolated process: in order, and only what it may send. */
#include "direct_peer.h"

#include <stdlib.h>
#include <time.h>

#include <rte_ether.h>

#include "memif/socket.h"
#include "net/link.h"
#include "port/memif_direct.h"
#include "share/vet.h"
#include "wire/qpn_block.h"

/* Receive into buffers of this process's own port. */
static int peer_share_pool(struct port *port)
{
	port->pool = port->make_pool_arg;
	return 0;
}

void direct_peer_refuse(const int *fds)
{
	memif_socket_end(-1, fds[SHARE_MEMIF_FD_SOCKET]);
	memif_socket_discard(fds[SHARE_MEMIF_FD_DOORBELL]);
}

static int peer_open(struct direct_peer *peer, const struct share_offer *offer, const int *fds)
{
	const struct memif_direct_config config = {
		.is_server = offer->side != 0,
		.socket_fd = fds[SHARE_MEMIF_FD_SOCKET],
		.doorbell_fd = fds[SHARE_MEMIF_FD_DOORBELL],
		.wake_epoll_fd = port_wake_fd(peer->main),
		.mac = peer->main->mac,
		.mtu_bytes = peer->main->mtu_bytes,
	};
	int rc = memif_prepare_direct(&peer->port, &config);

	if (rc != 0) {
		direct_peer_refuse(fds);
		return rc;
	}
	peer->port.make_pool = peer_share_pool;
	peer->port.make_pool_arg = peer->main->pool;
	rc = port_open(&peer->port);
	if (rc != 0)
		port_destroy(&peer->port);
	return rc;
}

struct direct_peer *direct_peer_create(const struct share_offer *offer, const int *fds,
				       struct link *link, const void *below)
{
	struct direct_peer *peer = calloc(1, sizeof(*peer));

	if (!peer) {
		direct_peer_refuse(fds);
		return NULL;
	}
	peer->main = &link->port;
	peer->link = link;
	peer->below = below;
	peer->qpn_first = offer->qpn_first;
	peer->qpn_count = offer->qpn_count;
	if (peer_open(peer, offer, fds) == 0)
		return peer;
	free(peer);
	return NULL;
}

static void peer_drop(struct direct_peer *peer, struct rte_mbuf **mbufs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		peer->main->tx_refused.packets++;
		peer->main->tx_refused.bytes += mbufs[i]->pkt_len;
	}
	rte_pktmbuf_free_bulk(mbufs, n);
}

static void peer_drop_held(struct direct_peer *peer)
{
	peer->dropped += peer->held.count;
	peer_drop(peer, peer->held.mbufs, peer->held.count);
	held_remove(&peer->held, peer->main, peer->held.count);
}

void direct_peer_destroy(struct direct_peer *peer)
{
	peer_drop_held(peer);
	port_close(&peer->port);
	port_destroy(&peer->port);
	free(peer);
}

bool direct_peer_takes(struct direct_peer *peer, uint32_t qpn)
{
	if (unlikely(qpn - peer->qpn_first >= peer->qpn_count))
		return false;
	if (likely(peer->state != DIRECT_CONNECTS))
		return true;
	if (!port_connected(&peer->port))
		return false;
	peer->state = DIRECT_SWITCHES;
	peer->sent = memif_caller_sent(peer->below);
	return true;
}

bool direct_peer_is_open(struct direct_peer *peer)
{
	if (likely(peer->state == DIRECT_OPEN))
		return true;
	if (peer->state == DIRECT_SWITCHES && memif_caller_has_taken(peer->below, &peer->sent))
		peer->state = DIRECT_OPEN;
	return peer->state == DIRECT_OPEN;
}

static uint64_t peer_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Send packets of which the other process takes as many as it has room for. */
static uint16_t peer_put(struct direct_peer *peer, struct rte_mbuf **mbufs, uint16_t n)
{
	const struct port_drops before = peer->port.tx_too_long;
	uint16_t sent;

	if (!direct_peer_is_open(peer))
		return 0;
	/* The connection has just ended, and its thread has not seen that yet. */
	if (unlikely(!port_connected(&peer->port))) {
		peer_drop(peer, mbufs, n);
		return n;
	}
	sent = port_tx_burst(&peer->port, mbufs, n);
	peer->main->tx_too_long.packets += peer->port.tx_too_long.packets - before.packets;
	peer->main->tx_too_long.bytes += peer->port.tx_too_long.bytes - before.bytes;
	return sent;
}

void direct_peer_send_held(struct direct_peer *peer)
{
	struct held *held = &peer->held;
	uint64_t now_ns;

	if (held->count == 0)
		return;
	now_ns = peer_now_ns();
	held_remove(held, peer->main, peer_put(peer, held->mbufs, held->count));
	if (held->tried_ns == 0 || now_ns - held->tried_ns > HELD_PAUSE_NS)
		held->since_ns = now_ns;
	held->tried_ns = now_ns;
	if (held->count > 0 && now_ns - held->since_ns >= HELD_NS) {
		held->given_up = true;
		peer_drop_held(peer);
	}
}

void direct_peer_send(struct direct_peer *peer, struct rte_mbuf **mbufs, uint16_t n)
{
	struct held *held = &peer->held;
	uint16_t sent = direct_peer_waits(peer) ? 0 : peer_put(peer, mbufs, n);

	if (likely(sent == n && !held->given_up))
		return;
	held->given_up &= sent == 0;
	if (held->count == 0)
		held->tried_ns = 0;
	if (!held->given_up)
		sent = (uint16_t)(sent +
				  held_add(held, peer->main, mbufs + sent, (uint16_t)(n - sent)));
	peer->dropped += n - (uint32_t)sent;
	peer_drop(peer, mbufs + sent, (uint16_t)(n - sent));
}

/* Return true if packets of the direct memif may be received. The packets that the other process
 * sent through the owner before were in our ring when it put anything here. So look at that ring
 * after this one. */
static bool peer_may_receive(struct direct_peer *peer)
{
	if (likely(peer->hears == DIRECT_HEARS_PEER))
		return true;
	if (peer->hears == DIRECT_HEARS_NOTHING) {
		if (!memif_direct_waits(&peer->port))
			return false;
		peer->hears = DIRECT_HEARS_OWNER;
		peer->arrived = memif_caller_arrived(peer->below);
	}
	if (memif_caller_has_received(peer->below, &peer->arrived))
		peer->hears = DIRECT_HEARS_PEER;
	return peer->hears == DIRECT_HEARS_PEER;
}

/* Return true if the other process may send this packet, and not through the owner only. */
static bool peer_may_send(const struct direct_peer *peer, const struct rte_mbuf *mbuf)
{
	const struct vet vet = {
		.mac = peer->main->mac,
		/* Only the engine's thread changes them. */
		.addresses = &peer->link->addresses,
		.qpn_first = peer->qpn_first,
		.qpn_count = peer->qpn_count,
		.mtu_bytes = peer->main->mtu_bytes,
	};

	return vet_frame(&vet, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len) ==
	       VET_PASSES;
}

uint16_t direct_peer_receive(struct direct_peer *peer, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint64_t too_long = peer->port.rx_too_long;
	uint16_t received, kept = 0;

	if (!peer_may_receive(peer))
		return 0;
	received = port_rx_burst(&peer->port, mbufs, n);
	peer->main->rx_too_long += peer->port.rx_too_long - too_long;
	for (uint16_t i = 0; i < received; i++) {
		if (likely(peer_may_send(peer, mbufs[i]))) {
			wire_mark_sender(
				rte_pktmbuf_mtod_offset(mbufs[i], uint8_t *, RTE_ETHER_ADDR_LEN),
				peer->qpn_first);
			mbufs[kept++] = mbufs[i];
			continue;
		}
		rte_pktmbuf_free(mbufs[i]);
		peer->main->rx_refused++;
	}
	return kept;
}
