/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK application that gives uroce a queue of its port. rte_flow rules steer RoCE to that queue:
 *
 *     steered EAL-OPTIONS -- ADDR/LEN SOCKET
 *
 * The application uses queue 0, uroce uses queue 1. The application passes frames of queue 0 that
 * are for uroce, such as ARP, to uroce. A thread waits at SOCKET for a program that writes into its
 * memory (remote_write). The example uses the last port. It starts the other ports too, because
 * they may be parts of a software NIC.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <uroce/port.h>

#include "two_ports.h"
#include "meet.h"

#define BURST	  32
#define ROCE_PORT 4791
#define HEADERS	  (RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr))

static uint64_t frames, roce; /* frames received on queue 0, and those of them that are RoCE */

static bool is_roce(const struct rte_mbuf *mbuf)
{
	const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const void *)(ether + 1);
	const struct rte_udp_hdr *udp = (const void *)(ip + 1);

	return mbuf->data_len >= HEADERS && ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) &&
	       ip->next_proto_id == IPPROTO_UDP && udp->dst_port == RTE_BE16(ROCE_PORT);
}

/* Poll queue 0. The application only counts its own frames. */
static void look(struct uroce_port *uroce, uint16_t port)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n;

	while (forward_goes_on()) {
		n = rte_eth_rx_burst(port, 0, mbufs, BURST);
		for (uint16_t i = 0; i < n; i++) {
			frames++;
			roce += is_roce(mbufs[i]);
		}
		n = uroce_port_input(uroce, mbufs, n);
		rte_pktmbuf_free_bulk(mbufs, n);
	}
	printf("queue 0 had %lu frames, %lu of them RoCE\n", frames, roce);
}

static void *serve(void *path)
{
	struct meet meet = {0};

	meet_serve(&meet, path);
	/* Wait for the message that the peer has written all data. */
	meet_wait(&meet);
	meet_post(&meet, IBV_WR_SEND);
	meet_wait(&meet);
	return NULL;
}

int main(int argc, char **argv)
{
	struct uroce_port_config config = {.rx_queue = 1, .tx_queue = 1};
	struct uroce_port *uroce;
	struct rte_mempool *pool;
	pthread_t thread;
	const int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used != 3)
		rte_exit(EXIT_FAILURE, "usage: steered EAL-OPTIONS -- ADDR/LEN SOCKET\n");
	pool = forward_prepare(2);
	config.port_id = (uint16_t)(rte_eth_dev_count_avail() - 1);
	for (uint16_t id = 0; id < config.port_id; id++)
		forward_start_port(id, 1, pool);
	forward_start_port(config.port_id, 2, pool);
	config.ips = argv[used + 1];
	if (uroce_attach_port(&config, &uroce) != 0)
		return EXIT_FAILURE;
	printf("queue 1 is uroce's\n");
	fflush(stdout);
	pthread_create(&thread, NULL, serve, argv[used + 2]);
	look(uroce, config.port_id);
	return EXIT_SUCCESS;
}
