/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of an ethdev, chosen from its capabilities. */
#ifndef PORT_ETHDEV_PLAN_H
#define PORT_ETHDEV_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

#define ETHDEV_PLAN_MTU_DEFAULT	 1500
#define ETHDEV_PLAN_GATHER_PARTS 3 /* headers; payload in place; pad and ICRC */

/* Wishes for the port's configuration. */
struct ethdev_plan_wish {
	uint32_t mtu_bytes;  /* largest IP packet; 0: the port's own, or ETHDEV_PLAN_MTU_DEFAULT */
	uint32_t mbuf_bytes; /* size of a buffer that holds any of our frames */
	bool keeps_mtu;	 /* the driver cannot set an MTU, and carries longer frames than it says */
	bool dma;	 /* the port reads memory by DMA: packets may have several segments */
	bool interrupts; /* frames shall wake a sleeping thread */
	uint32_t queues; /* queues in each direction, or one if there are fewer; 0: one */
};

/* The port's configuration. */
struct ethdev_plan {
	struct rte_eth_conf conf;
	uint32_t mtu_bytes; /* 0: unchanged */
	uint32_t mbuf_bytes;
	bool checks_sums; /* the port verifies IPv4 and UDP checksums */
	bool sums_udp;	  /* the port computes UDP checksums */
	bool gathers;	  /* a packet may have ETHDEV_PLAN_GATHER_PARTS segments */
	uint16_t queues;  /* in each direction */
};

/** Make a plan. MT-safe. Wishes that the port cannot fulfil are left out: no port is refused. */
void ethdev_plan_make(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
		      struct ethdev_plan *plan);

/**
 * Reduce a plan that a driver has refused although it fits its capabilities. MT-safe.
 *
 * @return
 *   False if the plan cannot be reduced further.
 */
bool ethdev_plan_reduce(const struct rte_eth_dev_info *info, struct ethdev_plan *plan);

#endif
