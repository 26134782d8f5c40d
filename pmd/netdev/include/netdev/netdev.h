/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of a kernel Ethernet interface, and lists of addresses. */
#ifndef NETDEV_NETDEV_H
#define NETDEV_NETDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/gid.h"

#define ADDRESSES_MAX	  128
#define VLAN_NONE	  (-1) /* untagged */
#define LINK_LOCAL_PREFIX 64

/* An IPv4 address is ::ffff:a.b.c.d (A17.4.5.1.2). Its prefix length counts the bits of IPv4. */
struct address {
	uint8_t gid[GID_LEN];
	uint8_t prefix_len;
	int32_t vlan;	      /* 802.1Q VLAN id, or VLAN_NONE */
	unsigned int ifindex; /* the kernel's interface that has it, or 0 */
};

struct addresses {
	struct address list[ADDRESSES_MAX];
	size_t count;
};

/** Make the link-local address of a MAC address (RFC 4291, appendix A). MT-safe. */
void address_link_local(const uint8_t mac[6], uint8_t gid[GID_LEN]);

/** Get the MAC address of a multicast group (RFC 1112, 6.4; RFC 2464, 7). MT-safe. */
void address_multicast_mac(const uint8_t gid[GID_LEN], uint8_t mac[6]);

/** Append an address, unless the list has it in the same VLAN. Not MT-safe. 0, -EEXIST, -ENOSPC. */
int addresses_add(struct addresses *addresses, const struct address *address);

/** Return true if an address is one of the port's own in a VLAN. */
bool addresses_have(const struct addresses *addresses, int32_t vlan, const uint8_t gid[GID_LEN]);

/** Return true if an address is one of the port's own in any VLAN. */
bool addresses_have_anywhere(const struct addresses *addresses, const uint8_t gid[GID_LEN]);

/** Return true if both have the same addresses in the same order. */
bool addresses_same(const struct addresses *a, const struct addresses *b);

/** Return true if an address is reached without a router: it is link-local, or in the prefix of an
 * own address in that VLAN. */
bool addresses_on_link(const struct addresses *addresses, int32_t vlan, const uint8_t gid[GID_LEN]);

/** Return true if the address at an index is the first of its VLAN. A loop uses it to visit each
 * VLAN once. */
bool addresses_first_of_vlan(const struct addresses *addresses, size_t index);

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
