/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing an interface with the kernel: the kernel must not answer RoCE packets, and we must not
 * receive the kernel's packets. */
#ifndef NETDEV_MUTE_H
#define NETDEV_MUTE_H

#include <stddef.h>
#include <stdint.h>

/**
 * Keep the kernel from answering RoCE packets to an interface with "port unreachable": hold its UDP
 * port with a socket that drops everything. MT-safe. Several processes of one user may do so at
 * once. No other user can bind to the port meanwhile, and so receive RoCE packets.
 *
 * @return
 *   The socket, to be kept open; -EADDRINUSE: another user or the kernel has the port; or another
 *   -errno (logged).
 */
int mute_kernel(const char *ifname);

/**
 * Restrict an AF_PACKET socket on a shared interface to our packets: RoCE, and answers to our
 * address resolution. It receives nothing that this host sends. MT-safe. 0 or -errno.
 */
int mute_packet_socket(int fd);

#define HOLDER_TEXT_MAX 128

/** Describe who holds a UDP port in this thread's network namespace, as far as this user can see.
 * MT-safe. */
void holder_of_udp_port(uint16_t port, char *text, size_t size);

#endif
