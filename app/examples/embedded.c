/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that forwards between two ports, and serves RDMA on the first of them:
 *
 *     embedded EAL-OPTIONS -- ADDR/LEN SOCKET
 *
 * uroce takes RoCE frames, and the frames by which other hosts resolve its address. The application
 * forwards all others. A thread waits at SOCKET for a program that writes into its memory
 * (remote_write), and verifies the written data.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <uroce/port.h>

#include "two_ports.h"
#include "meet.h"

#define BURST  32
#define ROUNDS 8 /* the default of remote_write */

static void forward(struct uroce_port *uroce)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n;

	while (forward_goes_on()) {
		n = rte_eth_rx_burst(0, 0, mbufs, BURST);
		n = uroce_port_input(uroce, mbufs, n);
		forward_send(1, mbufs, n);
		n = rte_eth_rx_burst(1, 0, mbufs, BURST);
		forward_send(0, mbufs, n);
		n = uroce_port_output(uroce, mbufs, BURST);
		forward_send(0, mbufs, n);
	}
}

static void *serve(void *path)
{
	struct meet meet;

	meet_serve(&meet, path);
	meet_wait(&meet);
	for (uint32_t i = 0; i < MEET_BYTES; i++) {
		if (meet.memory[i] != meet_byte(i, ROUNDS))
			rte_exit(EXIT_FAILURE, "byte %u is wrong\n", i);
	}
	meet_post(&meet, IBV_WR_SEND);
	meet_wait(&meet);
	printf("%d bytes were written correctly\n", MEET_BYTES);
	fflush(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	struct uroce_port_config config = {.rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE};
	struct uroce_port *uroce;
	struct rte_mempool *pool;
	pthread_t thread;
	const int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used != 3)
		rte_exit(EXIT_FAILURE, "usage: embedded EAL-OPTIONS -- ADDR/LEN SOCKET\n");
	pool = forward_prepare(2);
	forward_start_port(0, 1, pool);
	forward_start_port(1, 1, pool);
	config.ips = argv[used + 1];
	if (uroce_attach_port(&config, &uroce) != 0)
		return EXIT_FAILURE;
	pthread_create(&thread, NULL, serve, argv[used + 2]);
	forward(uroce);
	return EXIT_SUCCESS;
}
