/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles packets to QP 1 of a shared device, and the ports of its connection managers, as the
 * arbiter decides. */
#include "mads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "forward.h"
#include "netdev/manager.h"
#include "owner/arbiter.h"
#include "server.h"
#include "share/blocks.h"
#include "share/message.h"
#include "share/steer.h"
#include "slot.h"
#include "wire/build.h"
#include "wire/gid.h"
#include "wire/mad.h"
#include "wire/packet.h"
#include "wire/vlan.h"

#define FRAME_MAX (PACKET_HDR_MAX + MAD_LEN + PACKET_TAIL_MAX + RTE_ETHER_MIN_LEN)

bool mads_manage(struct server *server)
{
	if (server->gsi.netdev[0] == '\0')
		return true;
	if (!server->gsi.is_manager)
		server->gsi.is_manager =
			manager_take(&server->gsi.manager_fd, server->gsi.netdev) == 0;
	return server->gsi.is_manager;
}

static bool mads_are_ours(const struct server *server)
{
	return server->gsi.netdev[0] == '\0' || server->gsi.is_manager;
}

/* A packet to QP 1. The frame is a copy: its sender may go on writing into the buffer. */
struct mads_packet {
	uint8_t frame[FRAME_MAX];
	struct packet packet;
};

static bool mads_read(const uint8_t *frame, size_t len, bool sums_good, struct mads_packet *read)
{
	const struct packet *packet = &read->packet;

	if (len > sizeof(read->frame))
		return false;
	memcpy(read->frame, frame, len);
	return packet_parse(read->frame, len, sums_good, &read->packet) == PACKET_OK &&
	       packet->opcode == (OPCODE_UD | OPCODE_SEND_ONLY) && packet->dest_qpn == GSI_QPN &&
	       packet->src_qpn == GSI_QPN && packet->qkey == GSI_QKEY &&
	       wire_is_our_pkey(packet->pkey);
}

static struct arbiter_mad mads_of(const struct packet *packet, bool local)
{
	struct arbiter_mad mad = {
		.bytes = packet->payload,
		.len = packet->payload_len,
		.sgid = packet->sgid,
		.dgid = packet->dgid,
		.vlan_tci = packet->vlan_tci,
		.local = local,
	};

	memcpy(mad.mac, packet->src_mac, sizeof(mad.mac));
	return mad;
}

/* Return a MAD that a process sends, with the MAC address of its next hop. */
static struct arbiter_mad mads_sent(const struct mads_packet *sent)
{
	struct arbiter_mad mad = mads_of(&sent->packet, true);

	memcpy(mad.mac, sent->frame, sizeof(mad.mac));
	return mad;
}

static bool mads_is_ours(const struct server *server, const struct arbiter_mad *mad)
{
	return addresses_have(&server->uplink.link.addresses, vlan_of_tci(mad->vlan_tci),
			      mad->dgid);
}

/* Build a packet to the other side of a path. Returns its length, or 0 if it cannot be built. */
static size_t mads_build(struct server *server, const struct connections_path *to,
			 const uint8_t *mad, uint8_t *frame)
{
	struct path_attr attr = {.vlan_tci = to->vlan_tci,
				 .hop_limit = WIRE_HOP_LIMIT,
				 .udp_sport = WIRE_UDP_SPORT_MIN};
	struct packet_out out = {.frame = frame};
	struct path path;
	int len;

	memcpy(attr.src_mac, server->uplink.link.port.mac, sizeof(attr.src_mac));
	memcpy(attr.dst_mac, to->mac, sizeof(attr.dst_mac));
	memcpy(attr.sgid, to->ours, sizeof(attr.sgid));
	memcpy(attr.dgid, to->theirs, sizeof(attr.dgid));
	if (path_init(&path, &attr) != 0)
		return 0;
	mad_put(&out, &path, server->gsi.psn, mad);
	len = packet_seal(&out);
	server->gsi.psn = psn_add(server->gsi.psn, 1);
	return len > 0 ? (size_t)len : 0;
}

/* Give a MAD to a process, behind those that wait for it. */
static void mads_give(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags)
{
	struct slot *slot = &server->slots.all[number];

	if (slot->mads.count == 0 && forward_give(server, number, mbuf, flags)) {
		server->totals.mads++;
		return;
	}
	if (mad_queue_put(server, number, mbuf, flags, false))
		return;
	slot->rx_dropped++;
	server->totals.mads_dropped++;
	rte_pktmbuf_free(mbuf);
}

/* Give a MAD of one process to another one, likewise. Returns false while the MAD should wait at
 * its sender. */
static bool mads_pass(struct server *server, uint16_t from, uint16_t number, struct rte_mbuf *mbuf)
{
	const uint8_t flags = forward_flags_of(server, from);

	if (server->slots.all[number].mads.count == 0 &&
	    forward_pass(server, number, mbuf, flags)) {
		server->totals.mads++;
		return true;
	}
	if (mad_queue_put(server, number, mbuf, flags, true))
		return true;
	if (!forward_drop_late(server, number, mbuf))
		return false;
	server->totals.mads_dropped++;
	return true;
}

/* Send a MAD of the owner's own: to a process of ours, or out of the port. */
static bool mads_send(struct server *server, const struct connections_path *to, uint16_t number,
		      const uint8_t *mad)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server->uplink.link.port.pool);
	size_t len;

	/* Connection managers retransmit a lost MAD when their timers expire. */
	if (!mbuf) {
		server->totals.no_buffer++;
		return false;
	}
	len = mads_build(server, to, mad, rte_pktmbuf_mtod(mbuf, uint8_t *));
	if (len == 0) {
		rte_pktmbuf_free(mbuf);
		return false;
	}
	if (number == BLOCK_NONE) {
		forward_send_own(server, mbuf, len);
		return true;
	}
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	mads_give(server, number, mbuf, 0);
	return true;
}

/* Answer a packet that is for no process. */
static void mads_answer(struct server *server, const struct packet *to, uint16_t number,
			const uint8_t *mad)
{
	struct connections_path back = {.vlan_tci = to->vlan_tci};

	memcpy(back.mac, to->src_mac, sizeof(back.mac));
	memcpy(back.ours, to->dgid, sizeof(back.ours));
	memcpy(back.theirs, to->sgid, sizeof(back.theirs));
	server->totals.mads_answered += mads_send(server, &back, number, mad);
}

/* Find who gets a packet, or answer it. BLOCK_NONE: nobody gets it. */
static uint16_t mads_route(struct server *server, const struct packet *packet, uint16_t sender)
{
	const struct arbiter_mad mad = mads_of(packet, sender != BLOCK_NONE);
	enum arbiter_verdict verdict = ARBITER_DROP;
	uint8_t answer[MAD_LEN];
	uint16_t number;

	if (mads_are_ours(server) && mads_is_ours(server, &mad))
		verdict = arbiter_route(server->gsi.arbiter, &mad, server->now_ns, &number, answer);
	switch (verdict) {
	case ARBITER_GIVE:
		return number;
	case ARBITER_ANSWER:
		mads_answer(server, packet, sender, answer);
		return BLOCK_NONE;
	case ARBITER_DROP:
		break;
	}
	server->totals.mads_dropped++;
	return BLOCK_NONE;
}

void mads_input(struct server *server, struct rte_mbuf *mbuf, uint8_t flags)
{
	struct mads_packet read;
	uint16_t number = BLOCK_NONE;

	/* Check the ICRC: a datagram that is answered or recorded here must be intact. The
	 * process that gets the packet checks it once more. */
	if (mads_read(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len,
		      flags & SHARE_FLAG_SUMS, &read) &&
	    packet_icrc_ok(&read.packet))
		number = mads_route(server, &read.packet, BLOCK_NONE);
	else
		server->totals.mads_dropped++;
	if (number == BLOCK_NONE) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	mads_give(server, number, mbuf, flags);
}

void mads_note(struct server *server, uint16_t number, const uint8_t *frame, size_t len)
{
	struct mads_packet read;
	struct arbiter_mad mad;

	if (!mads_read(frame, len, true, &read))
		return;
	mad = mads_sent(&read);
	arbiter_sent(server->gsi.arbiter, number, &mad);
}

bool mads_send_on(struct server *server, uint16_t number, struct rte_mbuf *mbuf)
{
	struct mads_packet read;
	struct arbiter_mad mad;
	uint16_t to = BLOCK_NONE;

	if (mads_read(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, true, &read)) {
		mad = mads_sent(&read);
		arbiter_sent(server->gsi.arbiter, number, &mad);
		to = mads_route(server, &read.packet, number);
	} else {
		server->totals.mads_dropped++;
	}
	if (to == BLOCK_NONE) {
		rte_pktmbuf_free(mbuf);
		return true;
	}
	return mads_pass(server, number, to, mbuf);
}

bool mads_may_send(const struct server *server, uint16_t number, const uint8_t *frame, size_t len)
{
	const struct slot *slot = &server->slots.all[number];
	const struct arbiter_sender sender = {
		.slot = number, .qpn_first = slot->qpn_first, .qpn_count = slot->qpn_count};
	struct mads_packet read;
	struct arbiter_mad mad;

	if (!mads_read(frame, len, false, &read))
		return false;
	mad = mads_of(&read.packet, true);
	return arbiter_may_send(server->gsi.arbiter, &sender, &mad);
}

bool mads_may_ask(struct server *server, uint16_t number, const uint8_t *frame, size_t len)
{
	const uint16_t tenant = server->slots.all[number].tenant;
	struct mads_packet read;
	struct arbiter_mad mad;

	if (tenants_limits_of(&server->tenants, tenant)->connection_rate == 0 ||
	    !mads_read(frame, len, false, &read))
		return true;
	mad = mads_of(&read.packet, true);
	return !arbiter_asks(&mad) || tenants_may_connect(&server->tenants, tenant, server->now_ns);
}

/* Find the process of ours that an orphan disconnect is for. BLOCK_NONE: that process has ended,
 * too. The arbiter's answer in its place is then given back to the arbiter. */
static uint16_t mads_receiver(struct server *server, const struct connections_path *to,
			      const uint8_t *bytes)
{
	struct arbiter_mad mad = {.bytes = bytes,
				  .len = MAD_LEN,
				  .sgid = to->ours,
				  .dgid = to->theirs,
				  .vlan_tci = to->vlan_tci,
				  .local = true};
	uint8_t answer[MAD_LEN], nothing[MAD_LEN];
	enum arbiter_verdict verdict;
	uint16_t number;

	memcpy(mad.mac, to->mac, sizeof(mad.mac));
	verdict = arbiter_route(server->gsi.arbiter, &mad, server->now_ns, &number, answer);
	if (verdict == ARBITER_GIVE)
		return number;
	mad.bytes = answer;
	mad.sgid = to->theirs;
	mad.dgid = to->ours;
	if (verdict == ARBITER_ANSWER)
		(void)arbiter_route(server->gsi.arbiter, &mad, server->now_ns, &number, nothing);
	return BLOCK_NONE;
}

void mads_disconnect_orphans(struct server *server)
{
	struct connections_path to;
	uint8_t mad[MAD_LEN];
	uint16_t number;

	/* Send only as many as there is room for, so that none is lost here. */
	for (uint32_t n = server->uplink.pending_count; n < SERVER_BURST; n++) {
		if (!arbiter_disconnect_orphan(server->gsi.arbiter, server->now_ns, &to, mad))
			return;
		server->totals.mads_farewell++;
		number = BLOCK_NONE;
		if (addresses_have(&server->uplink.link.addresses, vlan_of_tci(to.vlan_tci),
				   to.theirs)) {
			number = mads_receiver(server, &to, mad);
			if (number == BLOCK_NONE)
				continue;
		}
		mads_send(server, &to, number, mad);
	}
}

static int mads_claim(struct server *server, uint16_t number, struct share_claim *asked)
{
	struct cm_port_claim claim = {
		.space = (enum cm_port_space)asked->space,
		.port = asked->port,
		.ip_version = asked->ip_version,
		.any_address = asked->any_address != 0,
		.vlan_id = asked->vlan_id,
		.reuse = asked->reuse != 0,
	};
	int rc;

	if (!mads_manage(server))
		return -EADDRINUSE;
	memcpy(claim.address, asked->address, sizeof(claim.address));
	if (gid_is_loopback(claim.address))
		claim.vlan_id = VLAN_NONE;
	else if (!claim.any_address &&
		 !addresses_have(&server->uplink.link.addresses, claim.vlan_id, claim.address))
		return -EADDRNOTAVAIL;
	rc = arbiter_claim(server->gsi.arbiter, number, &claim, &asked->id);
	if (rc == 0)
		asked->port = claim.port;
	return rc;
}

int mads_ports(struct server *server, uint16_t number, struct share_message *message)
{
	switch (message->type) {
	case SHARE_CLAIM:
		return mads_claim(server, number, &message->claim);
	case SHARE_LISTEN:
		return arbiter_listen(server->gsi.arbiter, number, message->claim.id);
	case SHARE_CHANGE:
		return arbiter_change(server->gsi.arbiter, number, message->claim.id,
				      message->claim.ip_version, message->claim.reuse != 0);
	default:
		return arbiter_release(server->gsi.arbiter, number, message->claim.id);
	}
}

#define LOOK_MS	  1
#define RING_PART 4 /* 1/RING_PART of a process's ring is left for other packets */

struct waiting_mad {
	uint16_t len;
	uint8_t flags;
	bool local;
	uint8_t frame[STEER_MAD_FRAME_MAX];
};

bool mad_queue_put(struct server *server, uint16_t number, struct rte_mbuf *mbuf, uint8_t flags,
		   bool local)
{
	struct slot *slot = &server->slots.all[number];
	struct mad_queue *queue = &slot->mads;
	struct waiting_mad *mad;

	if (slot->state != SLOT_LIVE || slot->isolated || queue->count == MAD_QUEUE_MAX ||
	    mbuf->data_len > sizeof(mad->frame))
		return false;
	if (!queue->all) {
		queue->all = malloc(MAD_QUEUE_MAX * sizeof(queue->all[0]));
		if (!queue->all)
			return false;
		queue->moved_ns = server->now_ns;
	}
	mad = &queue->all[(queue->first + queue->count++) % MAD_QUEUE_MAX];
	mad->len = mbuf->data_len;
	mad->flags = flags;
	mad->local = local;
	memcpy(mad->frame, rte_pktmbuf_mtod(mbuf, const uint8_t *), mad->len);
	rte_pktmbuf_free(mbuf);
	return true;
}

static void mad_queue_free(struct mad_queue *queue)
{
	free(queue->all);
	memset(queue, 0, sizeof(*queue));
}

/* Give a waiting MAD to a process. Return false if the process takes no more, or there is no
 * buffer. */
static bool mad_queue_give(struct server *server, uint16_t number, const struct waiting_mad *mad)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(server->uplink.link.port.pool);

	if (!mbuf)
		return false;
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), mad->frame, mad->len);
	mbuf->data_len = mad->len;
	mbuf->pkt_len = mad->len;
	if (mad->local ? forward_pass(server, number, mbuf, mad->flags)
		       : forward_give(server, number, mbuf, mad->flags))
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

uint32_t mad_queue_serve(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];
	struct mad_queue *queue = &slot->mads;
	uint32_t given = 0, room;

	room = share_ring_room(&slot->rings[SHARE_RING_RX]);
	while (queue->count > 0 && room > SHARE_RX_WORDS / RING_PART &&
	       mad_queue_give(server, number, &queue->all[queue->first])) {
		queue->first = (queue->first + 1) % MAD_QUEUE_MAX;
		queue->count--;
		room--;
		given++;
	}
	server->totals.mads += given;
	if (given > 0)
		queue->moved_ns = server->now_ns;
	else if (server->now_ns - queue->moved_ns >= MAD_QUEUE_NS)
		mad_queue_drop(server, number);
	if (queue->count == 0)
		mad_queue_free(queue);
	return given;
}

void mad_queue_drop(struct server *server, uint16_t number)
{
	struct slot *slot = &server->slots.all[number];

	slot->rx_dropped += slot->mads.count;
	server->totals.mads_dropped += slot->mads.count;
	mad_queue_free(&slot->mads);
}

int mad_queue_longest_ms(const struct server *server, int ms)
{
	for (uint16_t i = 0; i < server->slots.live_count; i++) {
		if (server->slots.all[server->slots.live[i]].mads.count > 0)
			return RTE_MIN(ms, LOOK_MS);
	}
	return ms;
}
