/* SPDX-License-Identifier: BSD-3-Clause */
/* IP addresses in the form of GIDs, and lists of a port's addresses. */
#ifndef NETDEV_ADDRESSES_H
#define NETDEV_ADDRESSES_H

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

#endif
