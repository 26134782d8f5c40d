/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans a port's configuration from its capabilities only. */
#include "port/ethdev_plan.h"

#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_ether.h>

/* Return the bytes of a frame besides its IP packet, by ethdev's rule for this port. */
static uint32_t plan_overhead(const struct rte_eth_dev_info *info)
{
	if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
		return info->max_rx_pktlen - info->max_mtu;
	return RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
}

static void plan_mtu(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
		     struct ethdev_plan *plan)
{
	uint32_t mtu = wish->mtu_bytes ? wish->mtu_bytes : ETHDEV_PLAN_MTU_DEFAULT;

	if (wish->keeps_mtu)
		return;
	if (info->max_mtu != 0)
		mtu = RTE_MIN(mtu, (uint32_t)info->max_mtu);
	plan->mtu_bytes = RTE_MAX(mtu, (uint32_t)info->min_mtu);
	plan->conf.rxmode.mtu = plan->mtu_bytes;
}

/*
 * Choose the buffers' size. The engine joins frames that are spread over several buffers. Drivers
 * use a power of two of each buffer, the unit of their hardware. So the port is asked to scatter
 * frames longer than that. If it cannot, buffers are as long as its longest frame.
 */
static void plan_buffers(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
			 struct ethdev_plan *plan)
{
	const uint32_t frame = plan->mtu_bytes ? plan->mtu_bytes + plan_overhead(info) : 0;
	const uint32_t longest = UINT16_MAX - RTE_PKTMBUF_HEADROOM;

	plan->mbuf_bytes = RTE_MAX(wish->mbuf_bytes, info->min_rx_bufsize);
	if (frame > rte_align32prevpow2(plan->mbuf_bytes)) {
		if (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)
			plan->conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
		else
			plan->mbuf_bytes = RTE_MAX(plan->mbuf_bytes, frame);
	}
	plan->mbuf_bytes =
		RTE_MIN(RTE_ALIGN_CEIL(plan->mbuf_bytes, (uint32_t)RTE_CACHE_LINE_SIZE), longest);
}

static bool plan_can_gather(const struct rte_eth_dev_info *info)
{
	const uint16_t max = info->tx_desc_lim.nb_mtu_seg_max;

	return (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) &&
	       (max == 0 || max >= ETHDEV_PLAN_GATHER_PARTS);
}

static void plan_offloads(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
			  struct ethdev_plan *plan)
{
	const uint64_t rx_sums = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	uint64_t tx = 0;

	plan->checks_sums = (info->rx_offload_capa & rx_sums) == rx_sums;
	if (plan->checks_sums)
		plan->conf.rxmode.offloads |= rx_sums;
	/* The IPv4 header's checksum is never left to the port: it costs three additions to a
	 * prebuilt sum. */
	plan->sums_udp = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	if (plan->sums_udp)
		tx |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	plan->gathers = wish->dma && plan_can_gather(info);
	/* The driver may use fast free only if all buffers are of one pool and have one reference.
	 */
	tx |= plan->gathers ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS
			    : info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	plan->conf.txmode.offloads = tx;
}

/* Plan as many queues as are wished, or one. Flow rules divide packets among them, so RSS is off.
 */
static void plan_queues(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
			struct ethdev_plan *plan)
{
	plan->conf.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	plan->queues = 1;
	if (wish->queues > 1 && wish->queues <= info->max_rx_queues &&
	    wish->queues <= info->max_tx_queues)
		plan->queues = (uint16_t)wish->queues;
}

void ethdev_plan_make(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
		      struct ethdev_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	plan_mtu(info, wish, plan);
	plan_buffers(info, wish, plan);
	plan_offloads(info, wish, plan);
	plan_queues(info, wish, plan);
	plan->conf.intr_conf.rxq = wish->interrupts;
}

bool ethdev_plan_reduce(const struct rte_eth_dev_info *info, struct ethdev_plan *plan)
{
	if (plan->conf.intr_conf.rxq) {
		plan->conf.intr_conf.rxq = 0;
		return true;
	}
	if (plan->queues > 1) {
		plan->queues = 1;
		return true;
	}
	if (plan->mtu_bytes > ETHDEV_PLAN_MTU_DEFAULT && info->min_mtu <= ETHDEV_PLAN_MTU_DEFAULT) {
		plan->mtu_bytes = ETHDEV_PLAN_MTU_DEFAULT;
		plan->conf.rxmode.mtu = ETHDEV_PLAN_MTU_DEFAULT;
		return true;
	}
	return false;
}
