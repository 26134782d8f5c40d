/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries rules from the most exact to the plainest, until the port accepts one. DPDK 22.11 has no
 * item for the BTH (added in 23.07), so no rule distinguishes queue pairs. None is needed: a device
 * has one engine and one queue.
 */
#include "port/flow.h"

#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>
#include <rte_flow.h>

#include "base/log.h"
#include "wire/headers.h"

/* Ethernet, VLAN, IP, UDP or ICMPv6, end. */
#define ITEMS_MAX 5

struct pattern {
	struct rte_flow_item items[ITEMS_MAX];
	size_t count;
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_vlan vlan, vlan_mask;
	struct rte_flow_item_ipv4 ipv4, ipv4_mask;
	struct rte_flow_item_ipv6 ipv6, ipv6_mask;
	struct rte_flow_item_udp udp, udp_mask;
};

static void pattern_add(struct pattern *pattern, enum rte_flow_item_type type, const void *spec,
			const void *mask)
{
	pattern->items[pattern->count++] =
		(struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
}

/* Begin a pattern that matches a frame of that VLAN, or an untagged one. */
static void pattern_begin(struct pattern *pattern, int32_t vlan)
{
	memset(pattern, 0, sizeof(*pattern));
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_ETH, NULL, NULL);
	if (vlan == VLAN_NONE)
		return;
	pattern->vlan.tci = rte_cpu_to_be_16((uint16_t)vlan);
	pattern->vlan_mask.tci = RTE_BE16(0xfff);
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_VLAN, &pattern->vlan, &pattern->vlan_mask);
}

static void pattern_add_ipv4(struct pattern *pattern, const uint8_t *dst)
{
	if (!dst) {
		pattern_add(pattern, RTE_FLOW_ITEM_TYPE_IPV4, NULL, NULL);
		return;
	}
	memcpy(&pattern->ipv4.hdr.dst_addr, dst, sizeof(pattern->ipv4.hdr.dst_addr));
	pattern->ipv4_mask.hdr.dst_addr = RTE_BE32(UINT32_MAX);
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_IPV4, &pattern->ipv4, &pattern->ipv4_mask);
}

static void pattern_add_ipv6(struct pattern *pattern, const uint8_t *dst)
{
	if (!dst) {
		pattern_add(pattern, RTE_FLOW_ITEM_TYPE_IPV6, NULL, NULL);
		return;
	}
	memcpy(pattern->ipv6.hdr.dst_addr, dst, sizeof(pattern->ipv6.hdr.dst_addr));
	memset(pattern->ipv6_mask.hdr.dst_addr, 0xff, sizeof(pattern->ipv6_mask.hdr.dst_addr));
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_IPV6, &pattern->ipv6, &pattern->ipv6_mask);
}

/* Match RoCE to that address; if not `exact`, to any address of its family in its VLAN. */
static void pattern_make(struct pattern *pattern, const struct address *address, bool exact)
{
	pattern_begin(pattern, address->vlan);
	if (gid_is_ipv4(address->gid))
		pattern_add_ipv4(pattern, exact ? address->gid + GID_IPV4_OFFSET : NULL);
	else
		pattern_add_ipv6(pattern, exact ? address->gid : NULL);
	pattern->udp.hdr.dst_port = RTE_BE16(WIRE_UDP_PORT);
	pattern->udp_mask.hdr.dst_port = RTE_BE16(UINT16_MAX);
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_UDP, &pattern->udp, &pattern->udp_mask);
}

/* Add a rule. Return true if the port has accepted it. */
static bool flow_add(struct flow *flow, struct pattern *pattern)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_action_queue queue = {.index = flow->queue};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error error = {0};
	struct rte_flow *rule = NULL;

	if (flow->count == FLOW_RULES_MAX)
		return false;
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
	if (rte_flow_validate(flow->port_id, &attr, pattern->items, actions, &error) == 0)
		rule = rte_flow_create(flow->port_id, &attr, pattern->items, actions, &error);
	if (!rule) {
		log_debug("port %u does not support this flow rule: %s", flow->port_id,
			  error.message ? error.message : "no reason given");
		return false;
	}
	flow->rules[flow->count++] = rule;
	return true;
}

static bool is_alike(const struct address *a, const struct address *b)
{
	return a->vlan == b->vlan && gid_is_ipv4(a->gid) == gid_is_ipv4(b->gid);
}

/* Return true if a plain rule for an earlier address also matches this one. */
static bool flow_has_plain(const bool plain[ADDRESSES_MAX], const struct addresses *own,
			   size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (plain[i] && is_alike(&own->list[i], &own->list[index]))
			return true;
	}
	return false;
}

size_t flow_steer(struct flow *flow, const struct addresses *own)
{
	bool plain[ADDRESSES_MAX] = {false};
	struct pattern pattern;
	size_t steered = 0;

	for (size_t i = 0; i < own->count; i++) {
		bool exact;

		if (flow_has_plain(plain, own, i)) {
			steered++;
			continue;
		}
		pattern_make(&pattern, &own->list[i], true);
		exact = flow_add(flow, &pattern);
		if (!exact) {
			pattern_make(&pattern, &own->list[i], false);
			plain[i] = flow_add(flow, &pattern);
		}
		steered += exact || plain[i];
	}
	return steered;
}

bool flow_steer_neighbours(struct flow *flow)
{
	struct pattern pattern;
	bool steered;

	pattern_begin(&pattern, VLAN_NONE);
	pattern.eth.type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	pattern.eth_mask.type = RTE_BE16(UINT16_MAX);
	pattern.items[0].spec = &pattern.eth;
	pattern.items[0].mask = &pattern.eth_mask;
	steered = flow_add(flow, &pattern);
	pattern_begin(&pattern, VLAN_NONE);
	pattern_add_ipv6(&pattern, NULL);
	pattern_add(&pattern, RTE_FLOW_ITEM_TYPE_ICMP6, NULL, NULL);
	return flow_add(flow, &pattern) && steered;
}

void flow_end(struct flow *flow)
{
	struct rte_flow_error error;

	while (flow->count > 0) {
		if (rte_flow_destroy(flow->port_id, flow->rules[--flow->count], &error) != 0)
			log_debug("port %u keeps a flow rule", flow->port_id);
	}
}
