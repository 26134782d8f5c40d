/* SPDX-License-Identifier: BSD-3-Clause */
/* An interface has one connection manager: two would both answer each request for its addresses. */
#ifndef NETDEV_MANAGER_H
#define NETDEV_MANAGER_H

/** Make the descriptor with which manager_take takes the right. The process needs CAP_NET_RAW here,
 * and not any more later. MT-safe. The descriptor or -errno. */
int manager_open(void);

/**
 * Take the right to be the connection manager of an interface. The right ends when the descriptor
 * is closed, so with the process at the latest. MT-safe. Needs Linux 5.11.
 *
 * @param fd
 *   From manager_open, in the network namespace of the interface. If the program has closed the
 *   descriptor, or there is none, it is made again.
 * @return
 *   0; -EADDRINUSE: another process of this network namespace has it; -ENODEV: no such interface;
 *   -errno.
 */
int manager_take(int *fd, const char *ifname);

/**
 * Keep a packet socket that will be given to a process without privilege from taking this right, on
 * any interface. It also stays bound to its interface for ever. MT-safe. Needs Linux 5.11.
 *
 * @param fd
 *   A socket that is bound to an interface.
 * @return
 *   0; -errno: older kernels refuse this while the interface is down.
 */
int manager_exclude(int fd);

#endif
