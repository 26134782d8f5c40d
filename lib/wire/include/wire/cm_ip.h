/* SPDX-License-Identifier: BSD-3-Clause */
/* IP addressing of the connection manager (annex A11): service ids of port spaces, and the header
 * before the user's private data in REQ and SIDR_REQ. */
#ifndef WIRE_CM_IP_H
#define WIRE_CM_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CM_IP_LEN                                                                                 \
	36 /* before the user's private data; this leaves 56 bytes in a REQ and 180 in a SIDR_REQ \
	    */

/* Port spaces, A11: a service id is 0x0000000001, an IP protocol number and a port. The values are
 * those of Linux's rdma_port_space. */
enum cm_port_space {
	CM_PS_IPOIB = 0x0002,
	CM_PS_TCP = 0x0106,
	CM_PS_UDP = 0x0111,
	CM_PS_IB = 0x013f,
};

/* The header, A11, in host order. */
struct cm_ip {
	uint8_t version; /* of IP: 4 or 6 */
	uint16_t port;	 /* the sender's */
	uint8_t src[16]; /* an IPv4 address as GID, ::ffff:a.b.c.d */
	uint8_t dst[16];
};

/** Return the service id of a port. MT-safe. */
static inline uint64_t cm_service_id(enum cm_port_space space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

/**
 * Parse the header at the beginning of private data. MT-safe.
 *
 * @return
 *   0, or -EBADMSG if the header's version is not 0.0, it is neither IPv4 nor IPv6, or says IPv6
 *   for an IPv4 address.
 */
int cm_ip_parse(const uint8_t *private_data, size_t len, struct cm_ip *ip);

/** Return true if the header has the addresses of its packet. A packet from a host to itself may
 * have loopback addresses in the header. MT-safe. */
bool cm_ip_fits(const struct cm_ip *ip, const uint8_t sgid[16], const uint8_t dgid[16]);

/** Write CM_IP_LEN bytes. MT-safe. 0, or -EINVAL for an IP version that does not exist or does not
 * fit the addresses. */
int cm_ip_build(const struct cm_ip *ip, uint8_t *private_data);

#endif
