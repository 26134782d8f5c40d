/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ordinary UDP socket as a port of mbufs: RoCEv2 without any right. The kernel has the Ethernet,
 * IP and UDP headers: they are taken off what is sent, and written in front of what is received.
 *
 * The ICRC covers two fields of these headers that a sender does not choose here: the UDP source
 * port, which is the socket's, and the IPv4 identification. Linux sends the identification 0 if DF
 * is set, and counts up from it in a run (psock/packet_run.h). So the ICRC of each frame is changed
 * by what these fields differ. The identification of a received packet is unknown. It has 16 of the
 * 32 bits of the ICRC, so it is computed from the ICRC, and the other 16 bits check the packet.
 */
#ifndef UDP_UDP_SOCKET_H
#define UDP_UDP_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;
struct udp_socket;

/* A value of `port` in a received mbuf: its ICRC is verified. */
#define UDP_VERIFIED (UINT16_MAX - 2)

struct udp_counts {
	uint64_t missed;	  /* the kernel's buffer was full */
	uint64_t dropped;	  /* received: too short or too long for RoCE */
	uint64_t refused_packets; /* not sent: the kernel did not take them */
	uint64_t refused_bytes;
};

/* All functions: one thread at a time, unless said otherwise. */

/**
 * Open a socket on the UDP port of RoCE, of all addresses of this network namespace.
 *
 * @param pool
 *   Pool of the mbufs that udp_rx_burst returns.
 * @param mac
 *   The destination of received frames, and `gateway` their source.
 * @param ifindex
 *   The interface by which packets to groups and to link-local addresses leave.
 * @return
 *   0, -EADDRINUSE or another -errno.
 */
int udp_open(struct udp_socket **udp, struct rte_mempool *pool, const uint8_t mac[6],
	     const uint8_t gateway[6], unsigned int ifindex);

/** Return the descriptor, which is readable while packets wait; -1 after udp_stop. MT-safe. */
int udp_fd(const struct udp_socket *udp);

/** Receive as rte_eth_rx_burst does. A dropped packet counts as one of the `n`, so that nobody can
 * keep this function busy with such packets. */
uint16_t udp_rx_burst(struct udp_socket *udp, struct rte_mbuf **mbufs, uint16_t n);

/** Send as rte_eth_tx_burst does. Each packet has one segment. What is no UDP packet is refused. */
uint16_t udp_tx_burst(struct udp_socket *udp, struct rte_mbuf **mbufs, uint16_t n);

/** Return true if packets wait that the descriptor does not report. MT-safe. */
bool udp_holds(const struct udp_socket *udp);

/** Return what was lost so far. */
const struct udp_counts *udp_counts(const struct udp_socket *udp);

/** Close the socket. MT-safe functions may still be called. */
void udp_stop(struct udp_socket *udp);

/** Do the same, and free the memory. No function may be called after it. */
void udp_close(struct udp_socket *udp);

#endif
