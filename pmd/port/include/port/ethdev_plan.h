/* SPDX-License-Identifier: BSD-3-Clause */
/* How a port is set up, as far as it tells what it can do. */
#ifndef PORT_ETHDEV_PLAN_H
#define PORT_ETHDEV_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

#define ETHDEV_PLAN_MTU_DEFAULT	 1500
#define ETHDEV_PLAN_GATHER_PARTS 3 /* headers, payload in its place, pad and ICRC */

/* What is wanted of a port. */
struct ethdev_plan_wish {
	uint32_t mtu_bytes;  /* largest IP packet; 0: the port's own, or ETHDEV_PLAN_MTU_DEFAULT */
	uint32_t mbuf_bytes; /* room of a buffer that holds any of our own frames */
	bool keeps_mtu;	     /* the driver knows no MTU, and carries more than it says */
	bool dma;	     /* the port reads memory by itself: packets may be sent in parts */
	bool interrupts;     /* frames shall wake a sleeper */
};

/* What it becomes. */
struct ethdev_plan {
	struct rte_eth_conf conf;
	uint32_t mtu_bytes; /* 0: left as it is */
	uint32_t mbuf_bytes;
	bool checks_sums; /* the port verifies IPv4 and UDP checksums */
	bool sums_udp;	  /* the port computes UDP checksums */
	bool gathers;	  /* a packet may be ETHDEV_PLAN_GATHER_PARTS buffers */
};

/** Make a plan. MT-safe. What is wanted and not to be had is left out: no port is refused. */
void ethdev_plan_make(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
		      struct ethdev_plan *plan);

/**
 * Ask for less, where a driver has refused a plan that it said it can do. MT-safe.
 *
 * @return
 *   Whether there is less to ask for.
 */
bool ethdev_plan_reduce(const struct rte_eth_dev_info *info, struct ethdev_plan *plan);

#endif
