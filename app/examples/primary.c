/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that forwards between two ports, and lets RDMA programs attach to the first of
 * them:
 *
 *     primary EAL-OPTIONS -- ADDR/LEN SOCKET
 *     uroce-run --socket SOCKET -- PROGRAM
 *
 * Frames that are RoCE's, or look for its address, go to the programs and to uroce; all others go
 * through.
 */
#include <signal.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <uroce/primary.h>

#define BURST	    32
#define DESCRIPTORS 512
#define MBUFS	    8191

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void start_port(uint16_t id, struct rte_mempool *pool)
{
	const struct rte_eth_conf conf = {0};

	if (rte_eth_dev_configure(id, 1, 1, &conf) != 0 ||
	    rte_eth_rx_queue_setup(id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool) != 0 ||
	    rte_eth_tx_queue_setup(id, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL) != 0 ||
	    rte_eth_dev_start(id) != 0)
		rte_exit(EXIT_FAILURE, "port %u does not start\n", id);
	rte_eth_promiscuous_enable(id);
}

static void send_all(uint16_t id, struct rte_mbuf **mbufs, uint16_t n)
{
	const uint16_t sent = rte_eth_tx_burst(id, 0, mbufs, n);

	rte_pktmbuf_free_bulk(mbufs + sent, n - sent);
}

static void forward(struct uroce_primary *primary)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n;

	while (!stop) {
		n = rte_eth_rx_burst(0, 0, mbufs, BURST);
		n = uroce_primary_input(primary, mbufs, n);
		send_all(1, mbufs, n);
		n = rte_eth_rx_burst(1, 0, mbufs, BURST);
		send_all(0, mbufs, n);
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
	if (rte_eth_dev_count_avail() < 2)
		rte_exit(EXIT_FAILURE, "two ports are needed\n");
	pool = rte_pktmbuf_pool_create("frames", MBUFS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	if (!pool)
		rte_exit(EXIT_FAILURE, "no memory for frames\n");
	config.ips = argv[used + 1];
	config.socket = argv[used + 2];
	if (uroce_primary_create(&config, &primary) != 0)
		return EXIT_FAILURE;
	start_port(0, uroce_primary_pool(primary));
	start_port(1, pool);
	signal(SIGTERM, on_signal);
	forward(primary);
	rte_eth_dev_stop(0);
	uroce_primary_destroy(primary);
	return EXIT_SUCCESS;
}
