/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet socket as a port of mbufs. The kernel takes and gives a run of packets as one long
 * packet (psock/packet_run.h).
 *
 * Frames are received from a ring, whose slots have room for the longest run. They are sent by
 * system calls; one call takes all packets that wait, and a run is one packet to it. The interface
 * segments a run, or the kernel does it for the interface. If the kernel cannot, packets leave one
 * by one.
 */
#ifndef PSOCK_PSOCK_H
#define PSOCK_PSOCK_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;
struct psock;

/*
 * A value of `port` in an mbuf to send: this packet is never part of a run, so that a receiver
 * which does not understand runs receives it.
 */
#define PSOCK_ALONE (UINT16_MAX - 3)

/* A value of `port` in a received mbuf: its ICRC is verified. */
#define PSOCK_VERIFIED (UINT16_MAX - 2)

/* A value of `port` in a received mbuf: the kernel has joined this packet to one that the socket
 * was to receive, but this one is for a queue pair that does not belong to the socket
 * (psock_expect).
 */
#define PSOCK_STRAY (UINT16_MAX - 4)

/* All functions: one thread at a time, unless said otherwise. */

/**
 * Make a socket that receives nothing yet, so that a filter can be put on it, and its ring.
 *
 * @param pool
 *   Pool of the mbufs that psock_rx_burst returns.
 * @return
 *   0 or -errno: the kernel has no such sockets, or the process may not open one.
 */
int psock_open(struct psock **psock, struct rte_mempool *pool);

/**
 * Make only the socket, for another process to adopt. That process needs no privilege.
 *
 * @return
 *   The socket or -errno.
 */
int psock_socket(void);

/** Bind a socket of psock_socket to an interface. 0 or -errno. */
int psock_bind(int fd, unsigned int ifindex);

/** Do as psock_open with a socket of psock_socket, which belongs to the psock then, and is closed
 * if this fails. If it is bound, it receives and sends from now on. 0 or -errno. */
int psock_adopt(struct psock **psock, struct rte_mempool *pool, int fd);

/** Give a psock that was made without a pool (psock_adopt with NULL) its pool, before it receives.
 */
void psock_use_pool(struct psock *psock, struct rte_mempool *pool);

/** Mark received packets that are for other queue pairs than a block's (PSOCK_STRAY), as the
 * socket's filter cannot tell them apart in a run. The block's numbers differ in their lowest
 * `shift` bits only. */
void psock_expect(struct psock *psock, uint32_t qpn_first, unsigned int shift);

/** Do the same for a share of the queue pair numbers, or, after psock_expect, of the block's: those
 * that have the remainder `share` when divided by `count`. Management queue pairs (0 and 1) and
 * groups are in no share. */
void psock_expect_share(struct psock *psock, uint32_t share, uint32_t count);

/** Return the descriptor, which is readable while packets wait; -1 after psock_stop. MT-safe. */
int psock_fd(const struct psock *psock);

/** Receive and send on an interface from now on. 0 or -errno. */
int psock_start(struct psock *psock, unsigned int ifindex);

/** Receive as rte_eth_rx_burst does. A dropped frame counts as one of the `n`, so that nobody can
 * keep this function busy with such frames. */
uint16_t psock_rx_burst(struct psock *psock, struct rte_mbuf **mbufs, uint16_t n);

/** Return how many frames the kernel has dropped so far because the ring was full, as known when
 * the newest frame was received. */
uint64_t psock_missed(const struct psock *psock);

/** Return how many frames psock_rx_burst has dropped so far: each was too long for the ring or for
 * a buffer, or was a run that cannot be split. */
uint64_t psock_dropped(const struct psock *psock);

/** Tell how many packets, and bytes of them, psock_tx_burst has dropped so far because the kernel's
 * interface did not take them. */
void psock_refused(const struct psock *psock, uint64_t *packets, uint64_t *bytes);

/** Send as rte_eth_tx_burst does. Each packet has one segment. */
uint16_t psock_tx_burst(struct psock *psock, struct rte_mbuf **mbufs, uint16_t n);

/** Return true if packets wait that the descriptor does not report. MT-safe. */
bool psock_holds(const struct psock *psock);

/** Free the packets that it holds: the pool is about to lose its buffers. */
void psock_forget(struct psock *psock);

/** Close the socket, and free its resources. MT-safe functions may still be called. */
void psock_stop(struct psock *psock);

/** Do the same, and free the psock. No function may be called after it. */
void psock_close(struct psock *psock);

#endif
