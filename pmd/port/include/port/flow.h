/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of a port (rte_flow) that bring RoCE to one of its queues. */
#ifndef PORT_FLOW_H
#define PORT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netdev/addresses.h"

struct rte_flow;

#define FLOW_RULES_MAX (ADDRESSES_MAX + 2)

/* All zeros but for port and queue: no rules. */
struct flow {
	uint16_t port_id;
	uint16_t queue;
	struct rte_flow *rules[FLOW_RULES_MAX];
	size_t count;
};

/**
 * Make rules for RoCE to these addresses: each as exact as the port takes it, by address and UDP
 * port, or by UDP port alone. What no rule is for comes by the port's other queues as before. Not
 * MT-safe.
 *
 * @return
 *   How many of the addresses have a rule.
 */
size_t flow_steer(struct flow *flow, const struct addresses *own);

/** The same for ARP and ICMPv6, which neighbours are found by. Whether the port took a rule for
 * each. Not MT-safe. */
bool flow_steer_neighbours(struct flow *flow);

/** Take all rules away. The port has not been stopped since. Not MT-safe. */
void flow_end(struct flow *flow);

#endif
