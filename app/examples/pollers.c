/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A storage server in SPDK's manner: one thread that polls everything, on a port of its own EAL:
 *
 *     pollers EAL-OPTIONS -- ADDR/LEN
 *     rping -c -a ADDR -C 10 -V
 *
 * The port's poller exchanges frames with uroce, and runs uroce's poll by polling the completion
 * queue: there is no other thread. All memory is DPDK's, and becomes a region when DPDK's heap
 * grows (regions.c). The server READs what a client offers and WRITEs it back, as a target does
 * with blocks (block_server.c). It ends with the clients' last connection after SIGTERM, EAL first.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <uroce/port.h>

#include "block_server.h"
#include "two_ports.h"
#include "regions.h"

#define BURST	   32
#define RPING_PORT 7174

static void poll_port(struct uroce_port *uroce)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t n;

	n = rte_eth_rx_burst(0, 0, mbufs, BURST);
	n = uroce_port_input(uroce, mbufs, n);
	/* This application has no use for other frames. */
	rte_pktmbuf_free_bulk(mbufs, n);
	n = uroce_port_output(uroce, mbufs, BURST);
	forward_send(0, mbufs, n);
}

static void poll_connections(struct rdma_event_channel *channel)
{
	struct pollfd poll_fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	if (poll(&poll_fd, 1, 0) == 1 && rdma_get_cm_event(channel, &event) == 0)
		blocks_on_event(event);
}

static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel, const char *address)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	char host[64], port[8];
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	snprintf(host, sizeof(host), "%.*s", (int)strcspn(address, "/"), address);
	snprintf(port, sizeof(port), "%d", RPING_PORT);
	if (rdma_getaddrinfo(host, port, &hints, &info) != 0 ||
	    rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(id, info->ai_src_addr) != 0 || rdma_listen(id, 8) != 0)
		rte_exit(EXIT_FAILURE, "cannot listen at %s\n", host);
	rdma_freeaddrinfo(info);
	return id;
}

static void serve(struct uroce_port *uroce, const char *address)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = channel ? listen_at(channel, address) : NULL;
	struct ibv_pd *pd = id ? ibv_alloc_pd(id->verbs) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(id->verbs, 256, NULL, NULL, 0) : NULL;

	if (!cq || regions_begin(pd) != 0)
		rte_exit(EXIT_FAILURE, "no device, or no memory\n");
	blocks_begin(pd, cq);
	printf("serving %s\n", address);
	fflush(stdout);
	while (forward_goes_on() || blocks_in_use() > 0) {
		poll_port(uroce);
		poll_connections(channel);
		blocks_poll();
	}
	printf("%lu pings, %u regions registered while the heap grew\n", blocks_served(),
	       regions_grown());
	regions_end();
	ibv_destroy_cq(cq);
	rdma_destroy_id(id);
	ibv_dealloc_pd(pd);
	rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv)
{
	/* Our poller runs uroce's polls: uroce needs no thread. */
	struct uroce_port_config config = {
		.rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE, .progress = "inline"};
	struct uroce_port *uroce;
	const int used = rte_eal_init(argc, argv);

	if (used < 0 || argc - used != 2)
		rte_exit(EXIT_FAILURE, "usage: pollers EAL-OPTIONS -- ADDR/LEN\n");
	forward_start_port(0, 1, forward_prepare(1));
	config.ips = argv[used + 1];
	if (uroce_attach_port(&config, &uroce) != 0)
		return EXIT_FAILURE;
	serve(uroce, config.ips);
	/* End EAL first, as SPDK does: it is gone when uroce's own exit handler runs. */
	rte_eth_dev_stop(0);
	rte_eal_cleanup();
	return EXIT_SUCCESS;
}
