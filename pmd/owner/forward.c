/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between the port and the processes, and between processes. */
#include "forward.h"

#include <string.h>

#include <rte_ether.h>

#include "capture.h"
#include "isolated.h"
#include "kernel.h"
#include "direct.h"
#include "mads.h"
#include "psock/psock.h"
#include "resume.h"
#include "server.h"
#include "share/steer.h"
#include "slot.h"
#include "wire/mad.h"
#include "wire/qpn_block.h"

#define RETURN_BURST 64
#define REFILL_MIN   16 /* fewer buffers are not worth an access to the pool */
#define CACHE_PART   3	/* at most 1/CACHE_PART of the buffers that a process may hold wait empty */
#define RECEIVE_MIN  128

static uint8_t *mbuf_frame(const struct rte_mbuf *mbuf)
{
	return rte_pktmbuf_mtod(mbuf, uint8_t *);
}

/* Put back a VLAN tag that the driver stripped. rte_vlan_insert refuses mbufs with external
 * buffers, as ours are. */
static bool mbuf_put_tag(struct rte_mbuf *mbuf)
{
	const size_t macs = 2 * RTE_ETHER_ADDR_LEN;
	const rte_be16_t tag[] = {RTE_BE16(RTE_ETHER_TYPE_VLAN), rte_cpu_to_be_16(mbuf->vlan_tci)};
	uint8_t *frame;

	if (mbuf->data_len < macs || !rte_pktmbuf_prepend(mbuf, sizeof(tag)))
		return false;
	frame = mbuf_frame(mbuf);
	memmove(frame, frame + sizeof(tag), macs);
	memcpy(frame + macs, tag, sizeof(tag));
	return true;
}

bool forward_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags)
{
	struct slot *slot = &server->slots.all[number];
	const struct share_packet packet = {
		.buffer = arena_buffer(server, mbuf),
		.flags = flags,
		.offset = mbuf->data_off,
		.len = mbuf->data_len,
	};
	const uint64_t word = share_pack(&packet);

	if (slot->isolated)
		return isolated_give(server, number, mbuf, flags);
	if (slot->state != SLOT_LIVE ||
	    !ownership_give(&server->arena.ownership, packet.buffer, number))
		return false;
	if (share_ring_put(&slot->rings[SHARE_RING_RX], &word, 1) == 0) {
		ownership_take(&server->arena.ownership, packet.buffer, number);
		return false;
	}
	slot->rx_packets++;
	transmit_timeout_reset(&slot->transmit_timeout);
	slot->touched = true;
	return true;
}

/* Give a packet to a process, or drop it if the process takes no more. */
static void forward_give_or_drop(struct server *server, uint16_t number, struct rte_mbuf *mbuf,
				 uint8_t flags)
{
	if (forward_give(server, number, mbuf, flags))
		return;
	server->slots.all[number].rx_dropped++;
	rte_pktmbuf_free(mbuf);
}

/* Count a copy to a process of the sender's tenant; of the copies to others' processes, count one:
 * anybody may join a group, and must not make the sender's packets dear. */
static void forward_count_copy(const struct server *server, int sender, uint16_t receiver,
			       uint32_t len, struct tenants_take *take, bool *others)
{
	const struct slot *slots = server->slots.all;

	if (slots[receiver].tenant != slots[sender].tenant) {
		if (*others)
			return;
		*others = true;
	}
	tenants_take_copy(take, len);
}

/* Give a copy to each process in the group except the sender, and count copies in `take`, unless
 * that is NULL. Returns false if there is none. */
static bool forward_multicast(struct server *server, const uint8_t gid[GID_LEN],
			      const struct rte_mbuf *mbuf, int sender, uint8_t flags,
			      struct tenants_take *take)
{
	const struct server_group *group;
	bool any = false, others = false;

	LIST_FOREACH (group, &server->groups, link) {
		struct rte_mbuf *copy;

		if (group->slot == sender || memcmp(group->gid, gid, GID_LEN) != 0)
			continue;
		any = true;
		if (take)
			forward_count_copy(server, sender, group->slot, mbuf->data_len, take,
					   &others);
		copy = rte_pktmbuf_copy(mbuf, server->uplink.link.port.pool, 0, UINT32_MAX);
		if (copy)
			forward_give_or_drop(server, group->slot, copy, flags);
		else
			server->totals.no_buffer++;
	}
	return any;
}

static void forward_own(struct server *server, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *answer = rte_pktmbuf_alloc(server->uplink.link.port.pool);
	size_t len;

	if (!answer) {
		server->totals.no_buffer++;
		return;
	}
	len = link_input(&server->uplink.link, mbuf_frame(mbuf), mbuf->data_len, server->now_ns,
			 mbuf_frame(answer));
	if (len > 0)
		forward_send_own(server, answer, len);
	else
		rte_pktmbuf_free(answer);
}

bool forward_must_wait(const struct server *server, const struct rte_mbuf *mbuf)
{
	struct steering steering;
	const struct slot *slot;
	enum steer steer;
	uint16_t number;

	if (mbuf->nb_segs > 1)
		return false;
	steer = steer_frame(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, &steering);
	if (steer != STEER_QP || steering.qpn == GSI_QPN)
		return steer != STEER_OTHER;
	number = slot_of(server, steering.qpn);
	if (number == BLOCK_NONE)
		return resume_awaits(server, steering.qpn);
	slot = &server->slots.all[slot_engine_first(server, number)];
	return slot->returns || (slot->isolated && !isolated_is_connected(slot));
}

void forward_input(struct server *server, struct rte_mbuf *mbuf)
{
	const uint64_t good = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	const uint8_t flags = (mbuf->ol_flags & good) == good ? SHARE_FLAG_SUMS : 0;
	struct steering steering;
	enum steer steer;
	uint16_t number;

	if ((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && !mbuf_put_tag(mbuf)) {
		server->totals.rx_dropped++;
		goto drop;
	}
	/* A frame that does not fit into one buffer is longer than any RoCE frame. */
	if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf) != 0)
		steer = STEER_OTHER;
	else
		steer = steer_frame(mbuf_frame(mbuf), mbuf->data_len, &steering);
	if (steer == STEER_OTHER && server->kernel.is_open) {
		kernel_give(server, mbuf);
		return;
	}
	/* Processes believe the source of what they get from us (FRAME_SOURCE_GOOD). */
	if (steer != STEER_OTHER &&
	    unlikely(addresses_have_anywhere(&server->uplink.link.addresses, steering.sgid))) {
		server->totals.own_source++;
		goto drop;
	}
	switch (steer) {
	case STEER_QP:
		if (unlikely(steering.qpn == GSI_QPN)) {
			mads_input(server, mbuf, flags);
			return;
		}
		number = slot_of(server, steering.qpn);
		if (number != BLOCK_NONE) {
			forward_give_or_drop(server, number, mbuf, flags);
			return;
		}
		server->totals.unknown_qpn++;
		break;
	case STEER_MULTICAST:
		if (!forward_multicast(server, steering.dgid, mbuf, -1, flags, NULL))
			server->totals.unknown_group++;
		break;
	case STEER_OTHER:
		if (mbuf->nb_segs == 1)
			forward_own(server, mbuf);
		else
			server->totals.rx_dropped++;
		break;
	}
drop:
	rte_pktmbuf_free(mbuf);
}

/* Return how many packets a port has dropped of what it was given to send. */
static uint64_t forward_port_drops(const struct port *port)
{
	return port->tx_too_long.packets + port->tx_refused.packets + port->tx_unconnected.packets;
}

/* Count what the port has dropped since the last call: those packets count as not sent. */
static void forward_count_drops(struct server *server)
{
	const uint64_t now = forward_port_drops(&server->uplink.link.port);
	const uint64_t drops = now - server->uplink.drops;

	server->uplink.drops = now;
	server->totals.tx_packets -= drops;
	server->totals.tx_dropped += drops;
}

void forward_flush(struct server *server)
{
	const struct port *port = &server->uplink.link.port;
	uint32_t sent;

	/* A bad network sends while it is polled, and the port may drop then, too. */
	forward_count_drops(server);
	if (server->uplink.pending_count == 0)
		return;
	if (!server->uplink.connected) {
		rte_pktmbuf_free_bulk(server->uplink.pending, server->uplink.pending_count);
		server->totals.tx_dropped += server->uplink.pending_count;
		server->uplink.pending_count = 0;
		return;
	}
	sent = port_tx_burst(port, server->uplink.pending, (uint16_t)server->uplink.pending_count);
	server->totals.tx_packets += sent;
	forward_count_drops(server);
	server->uplink.pending_count -= sent;
	memmove(server->uplink.pending, server->uplink.pending + sent,
		server->uplink.pending_count * sizeof(server->uplink.pending[0]));
}

/* Return true if the port has room for one more packet. */
static bool forward_has_room(struct server *server)
{
	if (server->uplink.pending_count == SERVER_BURST)
		forward_flush(server);
	return server->uplink.pending_count < SERVER_BURST;
}

void forward_send_own(struct server *server, struct rte_mbuf *mbuf, size_t len)
{
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	/* Drop the frame if there is no room: the side that asked will ask again. */
	if (forward_has_room(server)) {
		server->uplink.pending[server->uplink.pending_count++] = mbuf;
		return;
	}
	rte_pktmbuf_free(mbuf);
	server->totals.own_dropped++;
}

bool forward_send_copy(struct server *server, const uint8_t *frame, size_t len)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server->uplink.link.port.pool);

	if (!mbuf) {
		server->totals.no_buffer++;
		return false;
	}
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), frame, len);
	forward_send_own(server, mbuf, len);
	return true;
}

uint8_t forward_flags_of(const struct server *server, uint16_t from)
{
	return server->directs.spares_icrc && !server->slots.all[from].isolated ? SHARE_FLAG_LOCAL
										: 0;
}

bool forward_pass(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags)
{
	/* Copy the packet before it is given: afterwards it belongs to the process. */
	struct rte_mbuf *copy = capture_copy(server, mbuf);

	if (!forward_give(server, number, mbuf, flags)) {
		rte_pktmbuf_free(copy);
		return false;
	}
	capture_send(server, copy);
	server->totals.handed_over++;
	return true;
}

bool forward_drop_late(struct server *server, uint16_t number, struct rte_mbuf *mbuf)
{
	struct slot *slot = &server->slots.all[number];

	if (slot->state == SLOT_LIVE &&
	    transmit_timeout_waits(&slot->transmit_timeout, server->now_ns))
		return false;
	slot->rx_dropped++;
	rte_pktmbuf_free(mbuf);
	return true;
}

/* Count a dropped packet of a process, and tell the process: it uses up no retry for this packet
 * (transport/backlog.h). */
static void forward_tell_dropped(struct slot *slot)
{
	slot->dropped++;
	if (slot->isolated)
		isolated_tell_dropped(slot);
	else
		__atomic_store_n(&slot->page->dropped, slot->dropped, __ATOMIC_RELAXED);
}

/* Give a packet of one process to another, and note that they talk to each other. Returns false
 * while the packet should wait. An isolated process could send into connections of others, which
 * have the same addresses, so the receiver is told who sent the packet. */
static bool forward_hand_over(struct server *server, uint16_t from, uint16_t number,
			      struct rte_mbuf *mbuf)
{
	struct slot *slot = &server->slots.all[from];

	if (slot->isolated)
		wire_mark_sender(mbuf_frame(mbuf) + RTE_ETHER_ADDR_LEN, slot->qpn_first);
	if (!forward_pass(server, number, mbuf, forward_flags_of(server, from))) {
		if (server->resume.gathers || !forward_drop_late(server, number, mbuf))
			return false;
		/* A receiver that has left is no reason to wait for it. */
		if (server->slots.all[number].state == SLOT_LIVE)
			forward_tell_dropped(slot);
		return true;
	}
	unread_note(&server->unread_looks, &server->slots.all[number].unread, from);
	directs_note(server, from, number);
	return true;
}

bool forward_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf,
		     struct tenants_take *take)
{
	const uint8_t flags = server->slots.all[number].isolated ? 0 : SHARE_FLAG_LOCAL;
	struct steering steering = {0};
	uint16_t to = BLOCK_NONE;
	enum steer steer;

	if (memcmp(mbuf_frame(mbuf), server->uplink.link.port.mac, RTE_ETHER_ADDR_LEN) != 0) {
		if (!forward_has_room(server))
			return false;
		steer = mbuf_frame(mbuf)[0] & RTE_ETHER_GROUP_ADDR
				? steer_frame(mbuf_frame(mbuf), mbuf->data_len, &steering)
				: STEER_QP;
		if (steer == STEER_MULTICAST && unlikely(server->resume.gathers))
			return false;
		if (steer == STEER_MULTICAST)
			forward_multicast(server, steering.dgid, mbuf,
					  slot_engine_first(server, number), flags, take);
		else if (unlikely(steer_is_mad(mbuf_frame(mbuf), mbuf->data_len)))
			mads_note(server, number, mbuf_frame(mbuf), mbuf->data_len);
		server->uplink.pending[server->uplink.pending_count++] = mbuf;
		return true;
	}
	if (steer_frame(mbuf_frame(mbuf), mbuf->data_len, &steering) == STEER_QP) {
		if (unlikely(steering.qpn == GSI_QPN))
			return !server->resume.gathers && mads_send_on(server, number, mbuf);
		to = slot_of(server, steering.qpn);
	}
	if (to != BLOCK_NONE)
		return forward_hand_over(server, number, to, mbuf);
	/* Its process may come back, and uses up no retry meanwhile. */
	if (unlikely(resume_awaits(server, steering.qpn))) {
		if (server->resume.gathers)
			return false;
		forward_tell_dropped(&server->slots.all[number]);
	}
	server->totals.unknown_qpn++;
	rte_pktmbuf_free(mbuf);
	return true;
}

/*
 * Forward a packet that a process has sent. Its buffer still belongs to the process. Return false
 * if the packet must wait: it stays in the ring. The process may go on writing into the buffer, but
 * the headers that are read here decide only where the packet goes.
 */
static bool forward_output(struct server *server, uint16_t number,
			   const struct share_packet *packet, struct tenants_take *take)
{
	struct rte_mbuf *mbuf = server->arena.mbufs[packet->buffer];

	rte_pktmbuf_reset(mbuf);
	mbuf->data_off = packet->offset;
	mbuf->data_len = packet->len;
	mbuf->pkt_len = packet->len;
	if (packet->flags & SHARE_FLAG_ALONE)
		mbuf->port = PSOCK_ALONE;
	ownership_take(&server->arena.ownership, packet->buffer, number);
	if (unlikely(packet->flags & SHARE_FLAG_STRAY)) {
		if (!server->resume.gathers || !forward_must_wait(server, mbuf)) {
			forward_input(server, mbuf);
			return true;
		}
	} else if (forward_send_on(server, number, mbuf, take)) {
		return true;
	}
	ownership_give(&server->arena.ownership, packet->buffer, number);
	return false;
}

void forward_refuse(struct server *server, uint16_t number)
{
	server->totals.refused++;
	server->slots.all[number].broke_rule = true;
}

uint32_t forward_take_returns(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	struct rte_mbuf *mbufs[RETURN_BURST];
	uint64_t words[RETURN_BURST];
	uint32_t n, good;

	n = share_ring_take(&slot->rings[SHARE_RING_RETURN], words, RETURN_BURST);
	for (good = 0; good < n; good++) {
		const uint32_t buffer = share_unpack(words[good]).buffer;

		if (!ownership_take(&server->arena.ownership, buffer, number))
			break;
		mbufs[good] = server->arena.mbufs[buffer];
	}
	if (good > 0)
		rte_pktmbuf_free_bulk(mbufs, good);
	if (good < n)
		forward_refuse(server, number);
	return n;
}

uint32_t forward_take(struct server *server, uint16_t number, uint32_t most,
		      struct tenants_take *take)
{
	struct slot *slot = &server->slots.all[number];
	uint64_t words[SERVER_BURST];
	uint32_t taken, n;

	if (slot->isolated)
		return isolated_take(server, number, most, take);
	n = share_ring_peek(&slot->rings[SHARE_RING_TX], words,
			    RTE_MIN(most, (uint32_t)SERVER_BURST));
	for (taken = 0; taken < n && take->cost < take->credit; taken++) {
		const struct share_packet packet = share_unpack(words[taken]);

		if (!ownership_may_send(&server->arena.ownership, &packet, number)) {
			forward_refuse(server, number);
			return taken;
		}
		if (!forward_output(server, number, &packet, take))
			break;
		tenants_take_packet(take, packet.len);
	}
	if (taken > 0)
		share_ring_skip(&slot->rings[SHARE_RING_TX], taken);
	slot->tx_packets += taken;
	return taken;
}

void forward_refill(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	struct rte_mbuf *mbufs[SHARE_FREE_WORDS];
	uint64_t words[SHARE_FREE_WORDS];
	const uint32_t most = server->arena.ownership.quotas[number],
		       held = server->arena.ownership.held[number];
	const uint32_t waiting = SHARE_FREE_WORDS - share_ring_room(&slot->rings[SHARE_RING_FREE]);
	const uint32_t wanted = RTE_MIN((uint32_t)SHARE_FREE_WORDS, most / CACHE_PART);
	uint32_t n = 0;

	/* Leave RECEIVE_MIN buffers for packets that the process receives. */
	if (waiting < wanted && held + RECEIVE_MIN < most)
		n = RTE_MIN(wanted - waiting, most - held - RECEIVE_MIN);
	if (n < REFILL_MIN || rte_pktmbuf_alloc_bulk(server->uplink.link.port.pool, mbufs, n) != 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct share_packet packet = {.buffer = arena_buffer(server, mbufs[i])};

		/* This succeeds: it was checked above that the process may hold so many. */
		ownership_give(&server->arena.ownership, packet.buffer, number);
		words[i] = share_pack(&packet);
	}
	share_ring_put(&slot->rings[SHARE_RING_FREE], words, n);
}
