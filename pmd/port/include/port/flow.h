/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow rules (rte_flow) that direct RoCE to a port's queues. */
#ifndef PORT_FLOW_H
#define PORT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/netdev.h"

struct rte_flow;

#define FLOW_RULES_MAX	(ADDRESSES_MAX + 2)
#define FLOW_QUEUES_MAX 16

/* All zero except port and queue: no rules. flow_divide uses no `queue`. */
struct flow {
	uint16_t port_id;
	uint16_t queue;
	struct rte_flow *rules[FLOW_RULES_MAX];
	size_t count;
};

/**
 * Make rules for RoCE to these addresses. A rule matches the address and the UDP port, or only the
 * UDP port if the NIC supports no more. Other packets still arrive at the other queues. Not
 * MT-safe.
 *
 * @return
 *   The number of addresses that have a rule.
 */
size_t flow_steer(struct flow *flow, const struct addresses *own);

/** Make rules for ARP and ICMPv6 (neighbour discovery). Return true if the NIC accepted both. Not
 * MT-safe. */
bool flow_steer_neighbours(struct flow *flow);

/** Return false if flow_divide is impossible: the driver of a configured port has no rules, or
 * `count` is not a power of two, at most FLOW_QUEUES_MAX. Not MT-safe. */
bool flow_can_divide(uint16_t port_id, uint32_t count);

/**
 * Make rules that divide RoCE among `count` queues: the packets to a queue pair arrive at the queue
 * whose number is the queue pair's, modulo `count`. The port must have started. Not MT-safe.
 *
 * @return
 *   False if some packets have no rule: over IPv4 or IPv6, with a VLAN tag or without.
 */
bool flow_divide(struct flow *flow, uint32_t count);

/** Remove all rules. The port must not have been stopped since they were made. Not MT-safe. */
void flow_end(struct flow *flow);

#endif
