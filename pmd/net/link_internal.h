/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a link share. */
#ifndef LINK_INTERNAL_H
#define LINK_INTERNAL_H

#include "net/link.h"

/** Initialise what a link without a port has. Not MT-safe. */
void link_init(struct link *link);

/** Keep the kernel silent on VLAN interfaces too: mute new ones, and close the sockets of those
 * that have gone. Returns 0, or the first error. */
int link_mute_vlans(struct link *link);

#endif
