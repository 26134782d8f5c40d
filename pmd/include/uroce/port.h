/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA on a port of an application that runs DPDK itself.
 *
 * uroce_attach_port makes a port, or a pair of its queues, an RDMA device of this process: the
 * application goes on with its port as before, and calls verbs. Link with uroce's libibverbs.so.1.
 *
 *     rte_eal_init(...); the port is configured and started
 *     uroce_attach_port(&(struct uroce_port_config){
 *             .port_id = 0, .rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE,
 *             .ips = "10.0.0.1/24"}, &port);
 *     in the loop: n = rte_eth_rx_burst(...); n = uroce_port_input(port, mbufs, n);
 *                  what is left is the application's
 *                  n = uroce_port_output(port, mbufs, 32); rte_eth_tx_burst(...)
 *
 * A whole example: app/examples/embedded.c; with a queue of uroce's, app/examples/steered.c.
 */
#ifndef UROCE_PORT_H
#define UROCE_PORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;
struct uroce_port;

#define UROCE_NO_QUEUE UINT16_MAX

struct uroce_port_config {
	uint16_t port_id; /* a started port */
	/* A queue that is uroce's alone: where the port has rte_flow, rules bring RoCE there from
	 * uroce_attach_port on, for as long as the port runs. What is uroce's of other queues, as
	 * ARP, the application gives with uroce_port_input. Or UROCE_NO_QUEUE: it gives all that
	 * way. */
	uint16_t rx_queue;
	/* A queue that is uroce's alone; or UROCE_NO_QUEUE: the application fetches frames with
	 * uroce_port_output. */
	uint16_t tx_queue;
	const char *ips;  /* the device's addresses: "10.0.0.1/24,fd00::1/64,10.0.5.1/24@5" (@: in
			     that VLAN) */
	const char *name; /* the device's; NULL: "uroce0" */
	/* NULL or "hybrid": a thread of uroce's goes on while the application does not poll its
	 * completion queues; "inline": none does; "dedicated": it alone does. */
	const char *progress;
	/* Where frames to be sent are made: room for the port's MTU and headers in one buffer.
	 * NULL: a pool of uroce's. */
	struct rte_mempool *pool;
};

/**
 * Make a port an RDMA device. Not MT-safe. After EAL's start and before the first
 * ibv_get_device_list; once a process. What is wrong is also said on stderr.
 *
 * @return
 *   0; -EINVAL for what is no such port or address, -EBUSY where there is a device already, or
 *   another -errno.
 */
int uroce_attach_port(const struct uroce_port_config *config, struct uroce_port **port);

/**
 * Give uroce what it needs of received frames. MT-safe. What it takes is its own then; of what both
 * need, as ARP replies, it takes a copy.
 *
 * @return
 *   How many frames are left, which are the application's, in their order at the begin of `mbufs`.
 */
uint16_t uroce_port_input(struct uroce_port *port, struct rte_mbuf **mbufs, uint16_t n);

/** Fetch up to `n` frames to be sent, which are the caller's then. One thread at a time. Returns
 * how many. */
uint16_t uroce_port_output(struct uroce_port *port, struct rte_mbuf **mbufs, uint16_t n);

#ifdef __cplusplus
}
#endif

#endif
