/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP and ICMPv6 echo: answers pings, so that users can test a port. */
#ifndef NET_ECHO_H
#define NET_ECHO_H

#include <stddef.h>
#include <stdint.h>

#include "netdev/addresses.h"

/**
 * Build the reply to an echo request for one of our addresses in a VLAN. The frame has no tag.
 * MT-safe.
 *
 * @param reply
 *   Room for the reply, which is at most as long as the request.
 * @return
 *   Its length; 0: the frame is not an echo request for us, is malformed, or does not fit.
 */
size_t echo_reply(const struct addresses *own, int32_t vlan, const uint8_t mac[6],
		  const uint8_t *frame, size_t len, uint8_t *reply, size_t room);

#endif
