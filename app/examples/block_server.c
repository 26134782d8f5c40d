/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves rping's clients: each block's memory is from DPDK's heap, which grows for it. */
#include "block_server.h"

#include <stdio.h>
#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_malloc.h>

#include "regions.h"

#define BLOCK_BYTES (UINT32_C(4) << 20) /* more than the heap has: it grows in whole huge pages */
#define WORKS	    8
#define BURST	    16

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

void blocks_begin(struct ibv_pd *pd, struct ibv_cq *cq)
{
	blocks_pd = pd;
	blocks_cq = cq;
}

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

void blocks_on_event(struct rdma_cm_event *event)
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

void blocks_poll(void)
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

unsigned int blocks_in_use(void)
{
	return in_use;
}

uint64_t blocks_served(void)
{
	return served;
}
