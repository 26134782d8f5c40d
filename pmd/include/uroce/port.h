/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA on a port of an application that runs DPDK itself.
 *
 * uroce_attach_port makes a port, or one pair of its queues, an RDMA device of this process. The
 * application continues to use its port, and calls verbs. Link with uroce's liburoce.so.0 and
 * libibverbs.so.1: `pkg-config --libs uroce`.
 *
 *     rte_eal_init(...); the port is configured and started
 *     uroce_attach_port(&(struct uroce_port_config){
 *             .port_id = 0, .rx_queue = UROCE_NO_QUEUE, .tx_queue = UROCE_NO_QUEUE,
 *             .ips = "10.0.0.1/24"}, &port);
 *     in the loop: n = rte_eth_rx_burst(...); n = uroce_port_input(port, mbufs, n);
 *                  what is left is the application's
 *                  n = uroce_port_output(port, mbufs, 32); rte_eth_tx_burst(...)
 *
 * Complete examples: app/examples/embedded.c; with a queue for uroce alone, app/examples/steered.c.
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
	/* A queue for uroce alone. If the port supports rte_flow, rules direct RoCE to it, from
	 * uroce_attach_port on and while the port runs. The application passes uroce's frames of
	 * other queues, such as ARP, to uroce_port_input. UROCE_NO_QUEUE: the application passes
	 * all frames that way. */
	uint16_t rx_queue;
	/* A queue for uroce alone. UROCE_NO_QUEUE: the application fetches frames with
	 * uroce_port_output. */
	uint16_t tx_queue;
	const char *ips;  /* the device's addresses: "10.0.0.1/24,fd00::1/64,10.0.5.1/24@5" (@: in
			     that VLAN) */
	const char *name; /* the device's name; NULL: "uroce0", of the second port "uroce1", ... */
	/* NULL or "hybrid": a thread of uroce continues the work while the application does not
	 * poll its completion queues; "inline": there is no such thread; "dedicated": only that
	 * thread does the work. */
	const char *progress;
	/* The pool of transmit frames. A buffer must have room for the port's MTU and headers.
	 * NULL: a pool of uroce. */
	struct rte_mempool *pool;
};

/**
 * Make a port an RDMA device. Not MT-safe. Call it after EAL's start and before the first
 * ibv_get_device_list, once for each port, up to 16. The devices are in the order of the calls.
 * Errors are also written to stderr; after an error nothing is left of the attempt, and the
 * application may try again. A device ends with the process. An application that calls
 * rte_eal_cleanup before it exits chooses progress "inline" and destroys its queue pairs first; it
 * calls no verbs afterwards.
 *
 * @return
 *   0; -EINVAL: no such port or queue, a port that is not started, a pool with small buffers, an
 *   invalid address, or the name of another device; -EBUSY: the port has a device already, or the
 *   application has asked for devices before; -ENOSPC: there are 16 devices; or another -errno.
 */
int uroce_attach_port(const struct uroce_port_config *config, struct uroce_port **port);

/**
 * Pass received frames to uroce. MT-safe. uroce takes and then owns the frames that it needs. It
 * copies frames that both need, such as ARP replies.
 *
 * @return
 *   The number of frames left for the application. They are at the start of `mbufs`, in their
 *   order.
 */
uint16_t uroce_port_input(struct uroce_port *port, struct rte_mbuf **mbufs, uint16_t n);

/** Fetch up to `n` frames to be sent; the caller then owns them. One thread at a time. Returns how
 * many. */
uint16_t uroce_port_output(struct uroce_port *port, struct rte_mbuf **mbufs, uint16_t n);

#ifdef __cplusplus
}
#endif

#endif
