/* SPDX-License-Identifier: BSD-3-Clause */
/* Start two ports and send frames. */
#include "two_ports.h"

#include <signal.h>
#include <stdlib.h>

#include <rte_debug.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#define DESCRIPTORS 512
#define MBUFS	    8191

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

struct rte_mempool *forward_prepare(uint16_t ports)
{
	struct rte_mempool *pool;

	if (rte_eth_dev_count_avail() < ports)
		rte_exit(EXIT_FAILURE, "%u ports are needed\n", ports);
	pool = rte_pktmbuf_pool_create("frames", MBUFS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	if (!pool)
		rte_exit(EXIT_FAILURE, "no memory for frames\n");
	signal(SIGTERM, on_signal);
	return pool;
}

void forward_start_port(uint16_t id, uint16_t queues, struct rte_mempool *pool)
{
	const struct rte_eth_conf conf = {0};
	int rc = rte_eth_dev_configure(id, queues, queues, &conf);

	for (uint16_t queue = 0; rc == 0 && queue < queues; queue++) {
		rc = rte_eth_rx_queue_setup(id, queue, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(id, queue, DESCRIPTORS, SOCKET_ID_ANY, NULL);
	}
	if (rc != 0 || rte_eth_dev_start(id) != 0)
		rte_exit(EXIT_FAILURE, "port %u does not start\n", id);
	rte_eth_promiscuous_enable(id);
}

bool forward_goes_on(void)
{
	return !stop;
}

void forward_send(uint16_t id, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t sent = rte_eth_tx_burst(id, 0, mbufs, n);

	rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
}
