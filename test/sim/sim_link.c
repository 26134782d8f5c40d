/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a link, with the faults of real ones. */
#include "sim_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "wire/headers.h"

#define ETHERNET_MIN_BYTES   60 /* without FCS; senders pad shorter frames */
#define ETHERNET_EXTRA_BYTES 24 /* preamble, FCS and gap take time on the link, too */
#define BITS_FLIPPED_MAX     3 /* every CRC-32 of frames this short detects up to three bit errors */

/* Return a frame with a copy of these bytes, and zeros behind them. */
static struct frame *make(const uint8_t *bytes, uint32_t len, uint32_t padded, bool trusted)
{
	struct frame *frame = malloc(sizeof(*frame) + padded);

	if (frame == NULL) {
		perror("sim: frame");
		exit(1);
	}
	frame->way = NULL;
	frame->len = padded;
	frame->trusted = trusted;
	memcpy(frame->bytes, bytes, len);
	memset(frame->bytes + len, 0, padded - len);
	return frame;
}

struct frame *frame_make(const uint8_t *bytes, uint32_t len, bool trusted)
{
	return make(bytes, len, len, trusted);
}

static struct frame *link_copy(const struct link *link, const uint8_t *bytes, uint32_t len)
{
	const uint32_t padded =
		len < ETHERNET_MIN_BYTES && !link->attr.inside ? ETHERNET_MIN_BYTES : len;

	return make(bytes, len, padded, link->attr.inside);
}

static void link_count(struct link *link, enum link_fate fate, const uint8_t *bytes, uint32_t len)
{
	link->fates[fate]++;
	if (link->trace != NULL)
		link->trace(link, fate, bytes, len);
}

/* Return true for the one frame that shall be lost. */
static bool link_loses_this(struct link *link)
{
	if (!link->loses_one || link->lose_after-- > 0)
		return false;
	link->loses_one = false;
	return true;
}

static bool link_loses(struct link *link, uint64_t now_ns)
{
	const struct link_attr *attr = &link->attr;

	if (link_loses_this(link))
		return true;
	if (link->cut || now_ns < link->down_until_ns)
		return true;
	if (rng_chance(&link->rng, attr->burst_ppm)) {
		link->down_until_ns = now_ns + rng_range(&link->rng, 1, attr->burst_ns);
		return true;
	}
	return rng_chance(&link->rng, attr->loss_ppm);
}

static void link_damage(struct link *link, struct frame *frame)
{
	const uint64_t flips = rng_range(&link->rng, 1, BITS_FLIPPED_MAX);

	for (uint64_t i = 0; i < flips; i++) {
		const uint64_t bit = rng_below(&link->rng, 8 * (uint64_t)frame->len);

		frame->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* Mark the frame if it is ECN-capable, as a congested switch does. */
static void link_mark(uint8_t *bytes)
{
	const struct rte_ether_hdr *ether = (const struct rte_ether_hdr *)bytes;
	const bool tagged = ether->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
	uint8_t *l3 = bytes + sizeof(*ether) + (tagged ? sizeof(struct rte_vlan_hdr) : 0);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)l3;
	const rte_be32_t ce = rte_cpu_to_be_32((uint32_t)ECN_EXPERIENCED << RTE_IPV6_HDR_TC_SHIFT);
	uint32_t word;

	if (ip->version_ihl != RTE_IPV4_VHL_DEF) {
		memcpy(&word, l3, sizeof(word));
		word |= (word & ce) != 0 ? ce : 0;
		memcpy(l3, &word, sizeof(word));
	} else if ((ip->type_of_service & ECN_MASK) != ECN_NOT_CAPABLE) {
		ip->type_of_service |= ECN_EXPERIENCED;
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
}

static void link_repeat(struct link *link, enum link_fate fate, uint64_t at_ns,
			const uint8_t *bytes, uint32_t len)
{
	link_count(link, fate, bytes, len);
	clock_at(link->clock, at_ns, link->deliver, link->receiver, link_copy(link, bytes, len));
}

void link_send(struct link *link, const uint8_t *bytes, uint32_t len)
{
	const struct link_attr *attr = &link->attr;
	const uint64_t now_ns = link->clock->now_ns;
	enum link_fate fate = LINK_SENT;
	struct frame *frame;
	uint64_t at_ns;

	if (link->busy_until_ns < now_ns)
		link->busy_until_ns = now_ns;
	link->given++;
	link->busy_until_ns += (len + ETHERNET_EXTRA_BYTES) * 8000ull / attr->mbps;
	if (link_loses(link, now_ns)) {
		link->taken++;
		link_count(link, LINK_LOST, bytes, len);
		return;
	}
	at_ns = link->busy_until_ns + attr->latency_ns + rng_range(&link->rng, 0, attr->jitter_ns);
	if (rng_chance(&link->rng, attr->reorder_ppm)) {
		fate = LINK_HELD_BACK;
		at_ns += rng_range(&link->rng, 1, attr->reorder_ns);
	} else {
		if (at_ns <= link->newest_ns)
			at_ns = link->newest_ns + 1;
		link->newest_ns = at_ns;
	}
	frame = link_copy(link, bytes, len);
	frame->way = link;
	if (attr->mark_ppm != 0 && rng_chance(&link->rng, attr->mark_ppm))
		link_mark(frame->bytes);
	if (rng_chance(&link->rng, attr->corrupt_ppm)) {
		fate = LINK_DAMAGED;
		link_damage(link, frame);
	}
	link_count(link, fate, bytes, len);
	clock_at(link->clock, at_ns, link->deliver, link->receiver, frame);
	if (rng_chance(&link->rng, attr->duplicate_ppm))
		link_repeat(link, LINK_DUPLICATED,
			    at_ns + rng_range(&link->rng, 0, attr->reorder_ns), bytes, len);
	if (rng_chance(&link->rng, attr->ghost_ppm))
		link_repeat(link, LINK_GHOST, at_ns + rng_range(&link->rng, 0, attr->ghost_ns),
			    bytes, len);
}
