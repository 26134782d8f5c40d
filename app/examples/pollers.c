/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A storage server in SPDK's manner: one thread that polls everything, on a port of its own EAL:
 *
 *     pollers EAL-OPTIONS -- ADDR/LEN
 *     rping -c -a ADDR -C 10 -V
 *
 * The port's poller exchanges frames with uroce, and runs uroce's poll by polling the completion
 * queue: there is no other thread. All memory is DPDK's, and becomes a region when DPDK's heap
 * grows. The server READs what a client offers and WRITEs it back, as a target does
 * with blocks. It ends with the clients' last connection after SIGTERM, EAL first.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_memory.h>
#include <uroce/port.h>

#include "two_ports.h"

#define REGIONS_NAME "example_regions"
#define REGIONS_MAX  256
#define BLOCK_BYTES  (UINT32_C(4) << 20) /* more than the heap has: it grows in whole huge pages */
#define WORKS	     8
#define BURST	     32
#define RPING_PORT   7174

/* ---- DPDK's heap as regions ---- */

static struct ibv_pd *regions_pd;
static struct ibv_mr *regions[REGIONS_MAX];
static unsigned int grown;

static int add(const void *addr, size_t len)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (regions[i])
			continue;
		regions[i] = ibv_reg_mr(regions_pd, (void *)(uintptr_t)addr, len,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
		return regions[i] ? 0 : -errno;
	}
	return -ENOSPC;
}

/* Deregister the regions in a range: DPDK unmaps it after this. */
static void drop(const void *addr, size_t len)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (regions[i] && (uintptr_t)regions[i]->addr - (uintptr_t)addr < len &&
		    ibv_dereg_mr(regions[i]) == 0)
			regions[i] = NULL;
	}
}

static void on_memory(enum rte_mem_event event, const void *addr, size_t len, void *arg)
{
	(void)arg;
	if (event == RTE_MEM_EVENT_FREE)
		drop(addr, len);
	else if (add(addr, len) == 0)
		grown++;
}

static int add_present(const struct rte_memseg_list *list, const struct rte_memseg *seg, size_t len,
		       void *arg)
{
	(void)list;
	(void)arg;
	return add(seg->addr, len);
}

/* Register the heap, and from now on what it grows by: within DPDK's memory callback, with DPDK's
 * locks held. 0 or -errno. */
static int regions_begin(struct ibv_pd *pd)
{
	int rc;

	regions_pd = pd;
	rc = rte_memseg_contig_walk(add_present, NULL);
	if (rc == 0)
		rc = rte_mem_event_callback_register(REGIONS_NAME, on_memory, NULL);
	/* Without huge pages the heap has one size. */
	return rc < 0 && rte_eal_has_hugepages() ? rc : 0;
}

/* Deregister everything. */
static void regions_end(void)
{
	rte_mem_event_callback_unregister(REGIONS_NAME, NULL);
	drop(NULL, SIZE_MAX);
}

/* Return the local key of the region that contains an address; 0: there is none. */
static uint32_t regions_lkey(const void *addr)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (regions[i] &&
		    (uintptr_t)addr - (uintptr_t)regions[i]->addr < regions[i]->length)
			return regions[i]->lkey;
	}
	return 0;
}

/* ---- the target of blocks ---- */

/* The message that a client sends before each step: the place of its buffer. */
struct offer {
	rte_be64_t addr;
	rte_be32_t rkey;
	rte_be32_t size;
} __attribute__((packed));

struct connection {
	struct rdma_cm_id *id;
	struct offer *offer; /* the last one, received here */
	uint8_t *block;	     /* contains the client's bytes between the two steps */
	bool has_block;	     /* the next step WRITEs */
};

static struct ibv_pd *blocks_pd;
static struct ibv_cq *blocks_cq;
static unsigned int in_use;
static uint64_t served;

static void post_receive(struct connection *connection)
{
	struct ibv_sge sge = {.addr = (uintptr_t)connection->offer,
			      .length = sizeof(*connection->offer),
			      .lkey = regions_lkey(connection->offer)};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)connection, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(connection->id->qp, &wr, &bad) != 0)
		rdma_disconnect(connection->id);
}

/* Post the data and, behind it, the word that the step is done. */
static void post_step(struct connection *connection)
{
	const struct offer offer = *connection->offer;
	struct ibv_sge data = {.addr = (uintptr_t)connection->block,
			       .length = rte_be_to_cpu_32(offer.size),
			       .lkey = regions_lkey(connection->block)};
	struct ibv_sge word = {
		.addr = (uintptr_t)connection->block, .length = sizeof(offer), .lkey = data.lkey};
	struct ibv_send_wr done = {.wr_id = (uintptr_t)connection,
				   .sg_list = &word,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE};
	struct ibv_send_wr move = {.next = &done,
				   .sg_list = &data,
				   .num_sge = 1,
				   .opcode = connection->has_block ? IBV_WR_RDMA_WRITE
								   : IBV_WR_RDMA_READ,
				   .wr.rdma = {.remote_addr = rte_be_to_cpu_64(offer.addr),
					       .rkey = rte_be_to_cpu_32(offer.rkey)}};
	struct ibv_send_wr *bad;

	/* The receive request for the next offer must be there before the client may send it. */
	post_receive(connection);
	if (data.length > BLOCK_BYTES || ibv_post_send(connection->id->qp, &move, &bad) != 0) {
		rdma_disconnect(connection->id);
		return;
	}
	served += connection->has_block;
	connection->has_block = !connection->has_block;
}

static void destroy(struct connection *connection)
{
	if (connection->id->qp)
		rdma_destroy_qp(connection->id);
	rte_free(connection->offer);
	rte_free(connection->block);
	free(connection);
	in_use--;
}

static void accept_from(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.send_cq = blocks_cq,
					.recv_cq = blocks_cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = WORKS,
						.max_recv_wr = WORKS,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection) {
		rdma_destroy_id(id);
		return;
	}
	in_use++;
	id->context = connection;
	connection->id = id;
	connection->block = rte_malloc(NULL, BLOCK_BYTES, 0);
	connection->offer = rte_malloc(NULL, sizeof(*connection->offer), 0);
	if (!connection->block || !connection->offer || rdma_create_qp(id, blocks_pd, &init) != 0) {
		rdma_reject(id, NULL, 0);
		destroy(connection);
		rdma_destroy_id(id);
		return;
	}
	post_receive(connection);
	if (rdma_accept(id, &param) != 0) {
		perror("rdma_accept");
		destroy(connection);
		rdma_destroy_id(id);
	}
}

/* Handle an event of the connection manager, and acknowledge it. */
static void blocks_on_event(struct rdma_cm_event *event)
{
	const enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		accept_from(id);
	} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
		destroy(id->context);
		rdma_destroy_id(id);
	}
}

/* Poll once, and take the next step of each connection that has completed one. */
static void blocks_poll(void)
{
	struct ibv_wc wc[BURST];
	const int n = ibv_poll_cq(blocks_cq, BURST, wc);

	for (int i = 0; i < n; i++) {
		struct connection *connection = (struct connection *)(uintptr_t)wc[i].wr_id;

		/* DISCONNECTED follows every error, and ends the connection. */
		if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode == IBV_WC_RECV)
			post_step(connection);
	}
}

/* ---- the port and its connections ---- */

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
	blocks_pd = pd;
	blocks_cq = cq;
	printf("serving %s\n", address);
	fflush(stdout);
	while (forward_goes_on() || in_use > 0) {
		poll_port(uroce);
		poll_connections(channel);
		blocks_poll();
	}
	printf("%lu pings, %u regions registered while the heap grew\n", served, grown);
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
