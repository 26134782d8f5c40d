/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a link share. */
#ifndef LINK_INTERNAL_H
#define LINK_INTERNAL_H

#include "net/icmp.h"
#include "net/link.h"
#include "netdev/netdev.h"

/** Initialise what a link without a port has. Not MT-safe. */
void link_init(struct link *link);

/** Take the interface's addresses. Of a UDP socket's packets the kernel has the VLAN tags, too. */
void link_take_addresses(struct link *link, const struct netdev *netdev);

/** Log the addresses that have come and gone. */
void link_tell_addresses(const struct link *link, const struct addresses *before);

/** Log what else has changed at the interface since the last call. */
void link_tell_interface(struct link *link, const struct netdev *netdev);

/** Log that packets to a destination are longer than a router lets pass. */
void link_tell_too_long(const struct link *link, const struct icmp_notice *notice);

/** Keep the kernel silent on VLAN interfaces too: mute new ones, and close the sockets of those
 * that have gone. Returns 0, or the first error. */
int link_mute_vlans(struct link *link);

#endif
