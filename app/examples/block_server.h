/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side of rping: READ what a client offers, and WRITE it back. One thread. */
#ifndef EXAMPLES_BLOCK_SERVER_H
#define EXAMPLES_BLOCK_SERVER_H

#include <stdint.h>

#include <rdma/rdma_cma.h>

/** Use this domain and this completion queue, which has room for 16 connections. */
void blocks_begin(struct ibv_pd *pd, struct ibv_cq *cq);

/** Handle an event of the connection manager, and acknowledge it. */
void blocks_on_event(struct rdma_cm_event *event);

/** Poll once, and take the next step of each connection that has completed one. */
void blocks_poll(void);

/** Return the number of connections, and of blocks that were read and written back. */
unsigned int blocks_in_use(void);
uint64_t blocks_served(void);

#endif
