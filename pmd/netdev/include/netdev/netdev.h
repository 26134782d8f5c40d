/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of one of its Ethernet interfaces. */
#ifndef NETDEV_NETDEV_H
#define NETDEV_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "netdev/addresses.h"

struct netdev {
	unsigned int ifindex;
	uint8_t mac[6];
	uint32_t mtu_bytes;
	uint64_t mbps;		    /* 0: not known, as on virtual interfaces */
	struct addresses addresses; /* IPv6 link-local first, then the others in the kernel's order,
				       then those of the VLANs on it */
};

/**
 * Ask for an interface. MT-safe. Says on the log what is wrong.
 *
 * @return
 *   0; -ENODEV where there is no such interface, -EINVAL where it is not Ethernet, or -errno.
 */
int netdev_query(const char *name, struct netdev *netdev);

/** Whether the interface is up and has a carrier. MT-safe. */
bool netdev_running(const char *name);

/** The MAC address of the interface of this host that has the address. Only the addresses that the
 * main table leads to: those of a VRF are found as any neighbour's. MT-safe. 0 or -ENOENT. */
int netdev_mac_of(const uint8_t gid[GID_LEN], uint8_t mac[6]);

#endif
