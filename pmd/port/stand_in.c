/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a DPDK port without a network, which is shown the packets of a port that is not DPDK's. */
#include "stand_in.h"

#include <stdio.h>

#define DESCRIPTORS 64

int stand_in_make(const char *ifname, struct rte_mempool *pool, uint16_t *id)
{
	const struct rte_eth_conf conf = {0};
	char name[RTE_ETH_NAME_MAX_LEN];
	int rc;

	snprintf(name, sizeof(name), "net_null_%s", ifname);
	rc = rte_eal_hotplug_add("vdev", name, "no-rx=1");
	if (rc == 0)
		rc = rte_eth_dev_get_port_by_name(name, id);
	if (rc == 0)
		rc = rte_eth_dev_configure(*id, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(*id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(*id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	return rc == 0 ? rte_eth_dev_start(*id) : rc;
}

uint16_t stand_in_received(uint16_t id, struct rte_mbuf **mbufs, uint16_t n, uint16_t max)
{
	void *const watcher =
		__atomic_load_n((void **)&rte_eth_fp_ops[id].rxq.clbk[0], __ATOMIC_RELAXED);

	return watcher ? rte_eth_call_rx_callbacks(id, 0, mbufs, n, max, watcher) : n;
}

uint16_t stand_in_sends(uint16_t id, struct rte_mbuf **mbufs, uint16_t n)
{
	void *const watcher =
		__atomic_load_n((void **)&rte_eth_fp_ops[id].txq.clbk[0], __ATOMIC_RELAXED);

	return watcher ? rte_eth_call_tx_callbacks(id, 0, mbufs, n, watcher) : n;
}
