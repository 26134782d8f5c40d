/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet socket as a port of mbufs, by which the kernel gives and takes runs of packets in one
 * piece (psock/run.h).
 *
 * Received: a ring whose frames have room for the longest run. Sent: by system calls, each of which
 * takes all that there is to send, and a run is one packet to it. Where the interface does not part
 * runs, the kernel does; where the kernel does not, packets leave one by one.
 */
#ifndef PSOCK_PSOCK_H
#define PSOCK_PSOCK_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;
struct psock;

/*
 * In the port of an mbuf that is sent: in no run, whatever surrounds it. A reader at the other end
 * that does not understand runs gets it all the same.
 */
#define PSOCK_ALONE (UINT16_MAX - 3)

/* In the port of an mbuf that was received: its ICRC was computed on the way, and is right. */
#define PSOCK_VERIFIED (UINT16_MAX - 2)

/* One thread at a time, unless said otherwise. */

/**
 * Make a socket that receives nothing yet, so that a filter can be put on it.
 *
 * @param pool
 *   For what is received.
 * @return
 *   0 or -errno: the kernel has no such sockets, or the process may not open one.
 */
int psock_open(struct psock **psock, struct rte_mempool *pool);

/** Its descriptor: readable while packets wait. MT-safe. */
int psock_fd(const struct psock *psock);

/** Receive and send on an interface from now on. 0 or -errno. */
int psock_start(struct psock *psock, unsigned int ifindex);

/** As rte_eth_rx_burst. */
uint16_t psock_rx_burst(struct psock *psock, struct rte_mbuf **mbufs, uint16_t n);

/** Return how many frames the kernel has dropped so far because the ring was full, as known when
 * the newest frame was received. */
uint64_t psock_missed(const struct psock *psock);

/** Tell how many packets, and bytes of them, psock_tx_burst has dropped so far because the kernel's
 * interface did not take them. */
void psock_refused(const struct psock *psock, uint64_t *packets, uint64_t *bytes);

/** As rte_eth_tx_burst; each packet in one buffer. */
uint16_t psock_tx_burst(struct psock *psock, struct rte_mbuf **mbufs, uint16_t n);

/** Whether packets wait that the descriptor does not tell of. MT-safe. */
bool psock_holds(const struct psock *psock);

void psock_close(struct psock *psock);

#endif
