/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that forwards between two ports, and serves RDMA on both:
 *
 *     embedded EAL-OPTIONS -- ADDR/LEN SOCKET ADDR/LEN SOCKET
 *
 * uroce takes RoCE frames, and the frames by which other hosts resolve its addresses. The
 * application forwards all others. A thread for each port waits at SOCKET for a program that writes
 * into its memory (remote_write), and verifies the written data.
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
#define PORTS  2

/* A port whose device serves. */
struct served {
	struct uroce_port *uroce;
	struct meet meet;
	const char *path;
};

static void forward(const struct served *served)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n;

	while (forward_goes_on()) {
		for (uint16_t id = 0; id < PORTS; id++) {
			n = rte_eth_rx_burst(id, 0, mbufs, BURST);
			n = uroce_port_input(served[id].uroce, mbufs, n);
			forward_send(!id, mbufs, n);
			n = uroce_port_output(served[id].uroce, mbufs, BURST);
			forward_send(id, mbufs, n);
		}
	}
}

static void *serve(void *arg)
{
	struct served *served = arg;
	struct meet *meet = &served->meet;

	meet_serve(meet, served->path);
	meet_wait(meet);
	for (uint32_t i = 0; i < MEET_BYTES; i++) {
		if (meet->memory[i] != meet_byte(i, ROUNDS))
			rte_exit(EXIT_FAILURE, "byte %u is wrong\n", i);
	}
	meet_post(meet, IBV_WR_SEND);
	meet_wait(meet);
	printf("port %d: %d bytes were written correctly\n", meet->device, MEET_BYTES);
	fflush(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	struct uroce_port_config config = {.rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE};
	struct served served[PORTS] = {0};
	struct rte_mempool *pool;
	pthread_t thread;
	const int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used != 1 + 2 * PORTS)
		rte_exit(EXIT_FAILURE, "usage: embedded EAL-OPTIONS -- ADDR/LEN SOCKET ADDR/LEN "
				       "SOCKET\n");
	pool = forward_prepare(PORTS);
	for (uint16_t id = 0; id < PORTS; id++) {
		forward_start_port(id, 1, pool);
		config.port_id = id;
		config.ips = argv[used + 1 + 2 * id];
		served[id].path = argv[used + 2 + 2 * id];
		served[id].meet.device = id;
		if (uroce_attach_port(&config, &served[id].uroce) != 0)
			return EXIT_FAILURE;
	}
	/* The first thread that asks for devices ends the time for attaching ports. */
	for (uint16_t id = 0; id < PORTS; id++)
		pthread_create(&thread, NULL, serve, &served[id]);
	forward(served);
	return EXIT_SUCCESS;
}
