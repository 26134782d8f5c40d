/* SPDX-License-Identifier: BSD-3-Clause */
/* An interface has one connection manager: two would both answer each request for its addresses. */
#ifndef NETDEV_MANAGER_H
#define NETDEV_MANAGER_H

/**
 * Take the right to be the connection manager of an interface. The right ends when the descriptor
 * is closed, so with the process at the latest. MT-safe.
 *
 * @return
 *   A descriptor, to be kept open; -EADDRINUSE: another process of this network namespace has it;
 *   -ENODEV: no such interface; -errno.
 */
int manager_take(const char *ifname);

#endif
