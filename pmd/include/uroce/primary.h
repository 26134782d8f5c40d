/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets an application that runs DPDK itself serve processes that use uroce, as uroced does, from
 * its own poll loop. Programs attach with `uroce-run --socket PATH -- PROGRAM`. Link with uroce's
 * liburoce.so.0: `pkg-config --libs uroce`.
 *
 *     uroce_primary_create(&(struct uroce_primary_config){
 *             .port_id = 0, .tx_queue = 0, .ips = "10.0.0.1/24",
 *             .socket = "/run/uroce/uroced.sock"}, &primary);
 *     rte_eth_rx_queue_setup(..., uroce_primary_pool(primary)); rte_eth_dev_start(...)
 *     in the loop: n = rte_eth_rx_burst(...); n = uroce_primary_input(primary, mbufs, n);
 *                  the rest is the application's
 *                  uroce_primary_poll(primary)
 *
 * Complete example: app/examples/primary.c.
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
	/* The queue that uroce_primary_poll uses; the application may use it as well, from the same
	 * thread. UROCE_NO_QUEUE: the application fetches frames with uroce_primary_output. */
	uint16_t tx_queue;
	const char *ips;      /* the port's addresses, as in uroce_port_config */
	const char *socket;   /* where programs attach; NULL: /run/uroce/uroced.sock */
	uint32_t socket_mode; /* its permissions; 0: 0660 */
};

/**
 * Begin to serve. Not MT-safe. Call it after EAL's start, once per process. One thread at a time
 * may call the other functions. Errors are also written to stderr. Packet buffers are ordinary
 * memory: the port's driver must not do DMA from them.
 *
 * @return
 *   0; -EINVAL: no such port, or an invalid address; -EOPNOTSUPP: the port does DMA; -EBUSY: it
 *   serves already; -EADDRINUSE: another process answers at the socket; or another -errno.
 */
int uroce_primary_create(const struct uroce_primary_config *config, struct uroce_primary **primary);

/** Return the pool whose buffers the processes share. Frames received into them are handed on
 * without a copy; all others are copied. */
struct rte_mempool *uroce_primary_pool(const struct uroce_primary *primary);

/**
 * Pass received frames to uroce, which takes those that it and its processes need; as
 * uroce_port_input.
 *
 * @return
 *   The number of frames left for the application. They are at the start of `mbufs`, in their
 *   order.
 */
uint16_t uroce_primary_input(struct uroce_primary *primary, struct rte_mbuf **mbufs, uint16_t n);

/** Forward the packets that processes send, and handle the processes' requests. Call it as often as
 * the port is polled. Returns the amount of work done. */
unsigned int uroce_primary_poll(struct uroce_primary *primary);

/** Fetch up to `n` frames to be sent; the caller then owns them. Returns how many. */
uint16_t uroce_primary_output(struct uroce_primary *primary, struct rte_mbuf **mbufs, uint16_t n);

/** Detach all processes, which get a fatal event. The port remains the application's. It must have
 * been stopped, because the pool's memory is freed. */
void uroce_primary_destroy(struct uroce_primary *primary);

#ifdef __cplusplus
}
#endif

#endif
