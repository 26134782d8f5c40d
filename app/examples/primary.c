/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that forwards between two ports, and lets RDMA programs attach to the first of
 * them:
 *
 *     primary EAL-OPTIONS -- ADDR/LEN SOCKET
 *     uroce-run --socket SOCKET -- PROGRAM
 *
 * The programs and uroce take RoCE frames and requests to resolve their address; the application
 * forwards all other frames.
 */
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <uroce/primary.h>

#include "two_ports.h"

#define BURST 32

static void forward(struct uroce_primary *primary)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n;

	while (forward_goes_on()) {
		n = rte_eth_rx_burst(0, 0, mbufs, BURST);
		n = uroce_primary_input(primary, mbufs, n);
		forward_send(1, mbufs, n);
		n = rte_eth_rx_burst(1, 0, mbufs, BURST);
		forward_send(0, mbufs, n);
		uroce_primary_poll(primary);
	}
}

int main(int argc, char **argv)
{
	struct uroce_primary_config config = {.port_id = 0, .tx_queue = 0};
	struct uroce_primary *primary;
	struct rte_mempool *pool;
	const int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used != 3)
		rte_exit(EXIT_FAILURE, "usage: primary EAL-OPTIONS -- ADDR/LEN SOCKET\n");
	pool = forward_prepare(2);
	config.ips = argv[used + 1];
	config.socket = argv[used + 2];
	if (uroce_primary_create(&config, &primary) != 0)
		return EXIT_FAILURE;
	forward_start_port(0, 1, uroce_primary_pool(primary));
	forward_start_port(1, 1, pool);
	forward(primary);
	rte_eth_dev_stop(0);
	uroce_primary_destroy(primary);
	return EXIT_SUCCESS;
}
