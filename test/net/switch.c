/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with output queues in a shared buffer: admission, marking, pauses and routes. */
#include "switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "wire/headers.h"

#define PAUSE_LEEWAY_BYTES 4096 /* a paused input resumes when it is this far below its limit */

static uint32_t route_port(const struct net_switch *sw, const struct frame *frame)
{
	const struct route *route = &sw->route[frame->to];
	uint32_t hash = frame->flow_hash ^ (sw->number * 0x9e3779b9u);

	/* Mix the switch's number into the hash; otherwise all switches of a layer would make the
	 * same choice. */
	hash ^= hash >> 16;
	hash *= 0x7feb352du;
	hash ^= hash >> 15;
	return route->first + (uint32_t)((uint64_t)hash * route->count >> 32);
}

/* Return true if there is room for the frame. */
static bool admits(const struct net_switch *sw, const struct port *in, const struct port *out,
		   const struct frame *frame)
{
	const uint64_t all = (uint64_t)sw->ports * sw->attr->port_buffer_bytes;
	uint64_t free_bytes;

	if (sw->attr->alpha_percent == 0)
		return in->held_bytes + frame->wire_bytes <= sw->attr->port_buffer_bytes;
	if (sw->used_bytes + frame->wire_bytes > all)
		return false;
	free_bytes = all - sw->used_bytes;
	return out->queued_bytes <= free_bytes * sw->attr->alpha_percent / 100;
}

/* Return true if the switch must lose this frame on purpose. Only frames from hosts are lost. */
static bool loses(struct net_switch *sw, const struct port *in)
{
	if (in->number >= sw->host_ports)
		return false;
	sw->entered++;
	if ((sw->attr->lose_every != 0 && sw->entered % sw->attr->lose_every == 0) ||
	    rng_chance(&sw->rng, sw->attr->loss_ppm)) {
		sw->lost++;
		return true;
	}
	return false;
}

static bool is_to_mark(struct net_switch *sw, uint32_t queued_bytes)
{
	const struct switch_attr *attr = sw->attr;

	if (attr->kmax_bytes == 0 || queued_bytes <= attr->kmin_bytes)
		return false;
	if (queued_bytes >= attr->kmax_bytes)
		return true;
	return rng_chance(&sw->rng, (uint32_t)((uint64_t)(queued_bytes - attr->kmin_bytes) *
					       attr->pmax_percent * 10000 /
					       (attr->kmax_bytes - attr->kmin_bytes)));
}

/* Mark an ECN-capable frame (RFC 3168, 5). The simulator sends only IPv4. */
static void mark(struct port *out, struct frame *frame)
{
	struct rte_ipv4_hdr *ip =
		(struct rte_ipv4_hdr *)(frame->bytes + sizeof(struct rte_ether_hdr));

	if ((ip->type_of_service & ECN_MASK) == ECN_NOT_CAPABLE)
		return;
	ip->type_of_service |= ECN_EXPERIENCED;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	out->marks++;
}

static void switch_receive(void *node, struct port *in, struct frame *frame)
{
	struct net_switch *sw = node;
	struct port *out = &sw->port[route_port(sw, frame)];

	if (loses(sw, in)) {
		fabric_frame_free(sw->fabric, frame);
		return;
	}
	if (!admits(sw, in, out, frame)) {
		out->drops++;
		fabric_frame_free(sw->fabric, frame);
		return;
	}
	if (is_to_mark(sw, out->queued_bytes))
		mark(out, frame);
	frame->from = in;
	in->held_bytes += frame->wire_bytes;
	sw->used_bytes += frame->wire_bytes;
	if (sw->attr->pfc && !in->pauses &&
	    in->held_bytes + sw->attr->headroom_bytes > sw->attr->port_buffer_bytes)
		port_pause_peer(in, true);
	port_send(out, frame);
}

static void switch_sent(void *node, struct port *port, const struct frame *frame)
{
	struct net_switch *sw = node;
	struct port *in = frame->from;

	(void)port;
	in->held_bytes -= frame->wire_bytes;
	sw->used_bytes -= frame->wire_bytes;
	if (in->pauses && in->held_bytes + sw->attr->headroom_bytes + PAUSE_LEEWAY_BYTES <=
				  sw->attr->port_buffer_bytes)
		port_pause_peer(in, false);
}

static const struct node_ops switch_ops = {.receive = switch_receive, .sent = switch_sent};

void switch_init(struct net_switch *sw, struct fabric *fabric, const struct switch_attr *attr,
		 uint32_t number, uint32_t ports, uint32_t hosts, uint64_t seed)
{
	*sw = (struct net_switch){.attr = attr,
				  .fabric = fabric,
				  .rng = rng_fork(seed, 1000 + number),
				  .number = number,
				  .ports = ports,
				  .port = calloc(ports, sizeof(*sw->port)),
				  .route = calloc(hosts, sizeof(*sw->route))};
	if (sw->port == NULL || sw->route == NULL) {
		perror("net: switch");
		exit(1);
	}
}

void switch_own_port(struct net_switch *sw, uint32_t port)
{
	sw->port[port].ops = &switch_ops;
	sw->port[port].node = sw;
	sw->port[port].number = port;
}

void switch_fini(struct net_switch *sw)
{
	free(sw->port);
	free(sw->route);
}
