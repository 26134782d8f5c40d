/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of a kernel Ethernet interface. */
#ifndef NETDEV_NETDEV_H
#define NETDEV_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "netdev/addresses.h"

struct netdev {
	unsigned int ifindex;
	uint8_t mac[6];
	uint32_t mtu_bytes;
	uint64_t mbps;		    /* 0: unknown, as on virtual interfaces */
	struct addresses addresses; /* IPv6 link-local first, then the others in the kernel's order,
				       then those of the VLANs on it */
};

/**
 * Query an interface. MT-safe. Logs errors.
 *
 * @return
 *   0; -ENODEV: no such interface; -EINVAL: it is not Ethernet; -errno.
 */
int netdev_query(const char *name, struct netdev *netdev);

/** Lower the MTU of an interface, unless it is as low already. MT-safe. 0 or -errno. */
int netdev_limit_mtu(const char *name, uint32_t mtu_bytes);

/** Return true if the interface is up and has a carrier. MT-safe. */
bool netdev_running(const char *name);

/** Get the MAC address of the interface of this host that has this address. An address in a VRF is
 * not found here; it is resolved as a neighbour's address is. MT-safe. 0 or -ENOENT. */
int netdev_mac_of(const uint8_t gid[GID_LEN], uint8_t mac[6]);

#endif
