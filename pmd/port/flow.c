/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes rules by address, which try the most exact one first, or by queue pair number. DPDK 22.11
 * has no item for the BTH (added in 23.07), so rules by queue pair number match the BTH's bytes.
 */
#include "port/flow.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_flow.h>

#include "base/log.h"
#include "wire/headers.h"

/* Ethernet, VLAN, IP, UDP or ICMPv6, BTH, end. */
#define ITEMS_MAX 6

/* Bytes of the BTH that rules match: the destination queue pair and the byte before it, because
 * some NICs match an even number of bytes, at an even offset. */
#define BTH_OFFSET (offsetof(struct bth, dest_qpn) - 1)
#define BTH_BYTES  4

static_assert(offsetof(struct bth, dest_qpn) == 5 && FLOW_RULES_MAX >= 4 * FLOW_QUEUES_MAX,
	      "the bytes begin at an even offset, and the table has room for all rules");

struct pattern {
	struct rte_flow_item items[ITEMS_MAX];
	size_t count;
	struct rte_flow_item_eth eth, eth_mask;
	struct rte_flow_item_vlan vlan, vlan_mask;
	struct rte_flow_item_ipv4 ipv4, ipv4_mask;
	struct rte_flow_item_ipv6 ipv6, ipv6_mask;
	struct rte_flow_item_udp udp, udp_mask;
	struct rte_flow_item_raw bth, bth_mask;
	uint8_t bth_bytes[BTH_BYTES], bth_bits[BTH_BYTES];
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
	memcpy(&pattern->ipv6.hdr.dst_addr, dst, sizeof(pattern->ipv6.hdr.dst_addr));
	memset(&pattern->ipv6_mask.hdr.dst_addr, 0xff, sizeof(pattern->ipv6_mask.hdr.dst_addr));
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_IPV6, &pattern->ipv6, &pattern->ipv6_mask);
}

static void pattern_add_udp(struct pattern *pattern)
{
	pattern->udp.hdr.dst_port = RTE_BE16(WIRE_UDP_PORT);
	pattern->udp_mask.hdr.dst_port = RTE_BE16(UINT16_MAX);
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_UDP, &pattern->udp, &pattern->udp_mask);
}

/* Match RoCE to that address; if not `exact`, to any address of its family in its VLAN. */
static void pattern_make(struct pattern *pattern, const struct address *address, bool exact)
{
	pattern_begin(pattern, address->vlan);
	if (gid_is_ipv4(address->gid))
		pattern_add_ipv4(pattern, exact ? address->gid + GID_IPV4_OFFSET : NULL);
	else
		pattern_add_ipv6(pattern, exact ? address->gid : NULL);
	pattern_add_udp(pattern);
}

/* Match the lowest bits of the destination queue pair's number. */
static void pattern_add_bth(struct pattern *pattern, uint8_t value, uint8_t bits)
{
	pattern->bth_bytes[BTH_BYTES - 1] = value;
	pattern->bth_bits[BTH_BYTES - 1] = bits;
	pattern->bth = (struct rte_flow_item_raw){
		.relative = 1,
		.offset = BTH_OFFSET,
		.length = BTH_BYTES,
		.pattern = pattern->bth_bytes,
	};
	pattern->bth_mask = rte_flow_item_raw_mask;
	pattern->bth_mask.pattern = pattern->bth_bits;
	pattern_add(pattern, RTE_FLOW_ITEM_TYPE_RAW, &pattern->bth, &pattern->bth_mask);
}

/* Add a rule. Return true if the port has accepted it. */
static bool flow_add(struct flow *flow, struct pattern *pattern, uint16_t queue_number)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_action_queue queue = {.index = queue_number};
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
		exact = flow_add(flow, &pattern, flow->queue);
		if (!exact) {
			pattern_make(&pattern, &own->list[i], false);
			plain[i] = flow_add(flow, &pattern, flow->queue);
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
	steered = flow_add(flow, &pattern, flow->queue);
	pattern_begin(&pattern, VLAN_NONE);
	pattern_add_ipv6(&pattern, NULL);
	pattern_add(&pattern, RTE_FLOW_ITEM_TYPE_ICMP6, NULL, NULL);
	return flow_add(flow, &pattern, flow->queue) && steered;
}

/* Remove the newest rules, until `count` are left. */
static void flow_remove(struct flow *flow, size_t count)
{
	struct rte_flow_error error;

	while (flow->count > count) {
		if (rte_flow_destroy(flow->port_id, flow->rules[--flow->count], &error) != 0)
			log_debug("port %u keeps a flow rule", flow->port_id);
	}
}

/* Make the rule for packets of one family to one of `count` queues. */
static void pattern_make_share(struct pattern *pattern, enum rte_flow_item_type family, bool tagged,
			       uint16_t number, uint16_t count)
{
	pattern_begin(pattern, VLAN_NONE);
	if (tagged)
		pattern_add(pattern, RTE_FLOW_ITEM_TYPE_VLAN, NULL, NULL);
	pattern_add(pattern, family, NULL, NULL);
	pattern_add_udp(pattern);
	pattern_add_bth(pattern, (uint8_t)number, (uint8_t)(count - 1));
}

/* Divide the RoCE packets of one family, with a VLAN tag or without. Return false if the port
 * refuses a rule: then none is left. */
static bool flow_divide_kind(struct flow *flow, enum rte_flow_item_type family, bool tagged,
			     uint16_t count)
{
	const size_t before = flow->count;

	for (uint16_t i = 0; i < count; i++) {
		struct pattern pattern;

		pattern_make_share(&pattern, family, tagged, i, count);
		if (flow_add(flow, &pattern, i))
			continue;
		flow_remove(flow, before);
		return false;
	}
	return true;
}

bool flow_can_divide(uint16_t port_id, uint32_t count)
{
	const struct rte_flow_attr attr = {.ingress = 1};
	const struct rte_flow_action_queue queue = {.index = 0};
	const struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_END},
	};
	struct rte_flow_error error = {0};
	struct pattern pattern;

	if (!rte_is_power_of_2(count) || count > FLOW_QUEUES_MAX)
		return false;
	pattern_make_share(&pattern, RTE_FLOW_ITEM_TYPE_IPV4, false, 0, (uint16_t)count);
	pattern_add(&pattern, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
	/* A driver may refuse any rule until the port has started. */
	return rte_flow_validate(port_id, &attr, pattern.items, actions, &error) != -ENOSYS;
}

bool flow_divide(struct flow *flow, uint32_t count)
{
	const enum rte_flow_item_type families[] = {RTE_FLOW_ITEM_TYPE_IPV4,
						    RTE_FLOW_ITEM_TYPE_IPV6};
	bool all = true;

	for (size_t i = 0; i < RTE_DIM(families); i++) {
		all = flow_divide_kind(flow, families[i], false, (uint16_t)count) && all;
		all = flow_divide_kind(flow, families[i], true, (uint16_t)count) && all;
	}
	return all;
}

void flow_end(struct flow *flow)
{
	flow_remove(flow, 0);
}
