/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing an interface with the kernel: it must not answer RoCE packets, nor we see what is its
 * own. */
#ifndef NETDEV_MUTE_H
#define NETDEV_MUTE_H

/**
 * Keep the kernel from answering RoCE packets to an interface with "port unreachable": hold its UDP
 * port with a socket that drops everything. MT-safe. Several processes may do so at once.
 *
 * @return
 *   The socket, to be kept open; or -errno (logged).
 */
int mute_kernel(const char *ifname);

/**
 * Let an AF_PACKET socket receive only what is for us on a shared interface: RoCE, and answers to
 * our own address resolution; nothing that this host sends. MT-safe. 0 or -errno.
 */
int mute_packet_socket(int fd);

#endif
