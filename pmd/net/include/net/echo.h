/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP and ICMPv6 echo: the answer to a ping, so that users can try a port before they trust it. */
#ifndef NET_ECHO_H
#define NET_ECHO_H

#include <stddef.h>
#include <stdint.h>

#include "netdev/addresses.h"

/**
 * Build the answer to an echo request for one of our addresses of a VLAN, whose tag is off.
 * MT-safe.
 *
 * @param reply
 *   Room for the answer, which is at most as long as the request.
 * @return
 *   Its length; 0 where the frame is no echo request for us, or is malformed, or does not fit.
 */
size_t echo_reply(const struct addresses *own, int32_t vlan, const uint8_t mac[6],
		  const uint8_t *frame, size_t len, uint8_t *reply, size_t room);

#endif
