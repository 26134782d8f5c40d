/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An application that runs DPDK itself serves processes that use uroce, as uroced does, from its
 * own poll loop: programs attach with `uroce-run --socket PATH -- PROGRAM`. Link with uroce's
 * libibverbs.so.1.
 *
 *     uroce_primary_create(&(struct uroce_primary_config){
 *             .port_id = 0, .tx_queue = 0, .ips = "10.0.0.1/24",
 *             .socket = "/run/uroce/uroced.sock"}, &primary);
 *     rte_eth_rx_queue_setup(..., uroce_primary_pool(primary)); rte_eth_dev_start(...)
 *     in the loop: n = rte_eth_rx_burst(...); n = uroce_primary_input(primary, mbufs, n);
 *                  the rest is the application's
 *                  uroce_primary_poll(primary)
 *
 * A whole example: app/examples/primary.c.
 */
#ifndef UROCE_PRIMARY_H
#define UROCE_PRIMARY_H

#include <stdint.h>

#include <uroce/port.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uroce_primary;

struct uroce_primary_config {
	uint16_t port_id; /* a configured port, which need not be started yet */
	/* Used by uroce_primary_poll; the application may use it as well, from the same thread. Or
	 * UROCE_NO_QUEUE: the application fetches frames with uroce_primary_output. */
	uint16_t tx_queue;
	const char *ips;      /* the port's addresses, as in uroce_port_config */
	const char *socket;   /* where programs attach; NULL: /run/uroce/uroced.sock */
	uint32_t socket_mode; /* its permissions; 0: 0660 */
};

/**
 * Begin to serve. Not MT-safe. After EAL's start; once a process. All other functions are for one
 * thread at a time. What is wrong is also said on stderr. Packet buffers are ordinary memory: the
 * port's driver must not do DMA from them.
 *
 * @return
 *   0; -EINVAL for what is no such port or address, -EOPNOTSUPP for a port that does DMA, -EBUSY
 *   where it serves already, -EADDRINUSE where somebody answers at the socket, or another -errno.
 */
int uroce_primary_create(const struct uroce_primary_config *config, struct uroce_primary **primary);

/** The pool whose buffers processes share: frames received into them are handed on without a copy,
 * all others are copied. */
struct rte_mempool *uroce_primary_pool(const struct uroce_primary *primary);

/**
 * Give uroce what it and its processes need of received frames; as uroce_port_input.
 *
 * @return
 *   How many frames are left, which are the application's, in their order at the begin of `mbufs`.
 */
uint16_t uroce_primary_input(struct uroce_primary *primary, struct rte_mbuf **mbufs, uint16_t n);

/** Move what processes send, and do what they ask for. As often as the port is polled. Returns how
 * much there was to do. */
unsigned int uroce_primary_poll(struct uroce_primary *primary);

/** Fetch up to `n` frames to be sent, which are the caller's then. Returns how many. */
uint16_t uroce_primary_output(struct uroce_primary *primary, struct rte_mbuf **mbufs, uint16_t n);

/** Let go of all processes, which get a fatal event. The port is the application's as before, and
 * has been stopped: the pool's memory goes. */
void uroce_primary_destroy(struct uroce_primary *primary);

#ifdef __cplusplus
}
#endif

#endif
