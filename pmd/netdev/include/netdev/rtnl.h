/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of the kernel's interface, routing and neighbour tables: rtnetlink(7). */
#ifndef NETDEV_RTNL_H
#define NETDEV_RTNL_H

#include <stdbool.h>
#include <stdint.h>

#include "netdev/netdev.h"

/**
 * Find the route from an interface to a destination. MT-safe.
 *
 * @param next_hop
 *   The router, or the destination itself.
 * @return
 *   0 or -ENETUNREACH.
 */
int rtnl_route(unsigned int ifindex, const uint8_t dgid[GID_LEN], uint8_t next_hop[GID_LEN]);

/**
 * Find the interface of this host that has an address, in the kernel's table of local addresses.
 * The cost does not depend on the number of interfaces. MT-safe.
 *
 * @return
 *   0 or -ENOENT.
 */
int rtnl_local(const uint8_t gid[GID_LEN], unsigned int *ifindex);

/**
 * Look up a neighbour on an interface. MT-safe.
 *
 * @param confirmed
 *   True: the kernel has confirmed the entry recently. False: the entry is old, and the caller may
 *   ask for the address
 * again.
 * @return
 *   0, -ENOENT, or -errno.
 */
int rtnl_neigh(unsigned int ifindex, const uint8_t gid[GID_LEN], uint8_t mac[6], bool *confirmed);

/**
 * Get the lower interface and the id of an 802.1Q VLAN interface. MT-safe.
 *
 * @param lower
 *   Set to the index of the interface below.
 * @param vlan
 *   Set to the VLAN's id.
 * @return
 *   0; -ENOENT: it is not a VLAN interface; -errno.
 */
int rtnl_vlan(unsigned int ifindex, unsigned int *lower, int32_t *vlan);

/** Start to watch. MT-safe. Returns a close-on-exec descriptor, which the caller closes, or
 * -errno. */
int watch_open(void);

/** Return true if an address of any interface was added or removed since the last call. Reads the
 * pending notifications. One thread at a time; does not block. */
bool watch_changed(int fd);

#endif
