/* SPDX-License-Identifier: BSD-3-Clause */
/* From what a port says of itself to how it is set up: nothing is assumed that it does not say. */
#include "port/ethdev_plan.h"

#include <string.h>

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
 * Frames over several buffers are put together by the engine. Drivers take of a buffer what their
 * hardware counts in, the power of two below: so the port is asked to scatter what is longer than
 * that, and only where it cannot, buffers are as long as its longest frame.
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
	/* That of IPv4's header is three additions to a prebuilt one: it is left to no port. */
	plan->sums_udp = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	if (plan->sums_udp)
		tx |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	plan->gathers = wish->dma && plan_can_gather(info);
	/* Freed fast are only buffers of one pool that nobody else has. */
	tx |= plan->gathers ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS
			    : info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	plan->conf.txmode.offloads = tx;
}

void ethdev_plan_make(const struct rte_eth_dev_info *info, const struct ethdev_plan_wish *wish,
		      struct ethdev_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	plan_mtu(info, wish, plan);
	plan_buffers(info, wish, plan);
	plan_offloads(info, wish, plan);
	plan->conf.intr_conf.rxq = wish->interrupts;
}

bool ethdev_plan_reduce(const struct rte_eth_dev_info *info, struct ethdev_plan *plan)
{
	if (plan->conf.intr_conf.rxq) {
		plan->conf.intr_conf.rxq = 0;
		return true;
	}
	if (plan->mtu_bytes > ETHDEV_PLAN_MTU_DEFAULT && info->min_mtu <= ETHDEV_PLAN_MTU_DEFAULT) {
		plan->mtu_bytes = ETHDEV_PLAN_MTU_DEFAULT;
		plan->conf.rxmode.mtu = ETHDEV_PLAN_MTU_DEFAULT;
		return true;
	}
	return false;
}
