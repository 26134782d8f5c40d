/* SPDX-License-Identifier: BSD-3-Clause */
/* GIDs of RoCEv2: they are IP addresses, IPv4 as ::ffff:a.b.c.d (A17.4.5.1.2). All functions are
 * MT-safe. */
#ifndef WIRE_GID_H
#define WIRE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#define GID_LEN		16
#define GID_IPV4_OFFSET 12 /* offset of the IPv4 address in its GID */
#define GID_IPV4_LEN	4
#define GID_IPV4_BITS	(8 * GID_IPV4_OFFSET) /* before the address */
#define GID_TEXT_MAX	46		      /* INET6_ADDRSTRLEN */

static inline bool gid_is_zero(const uint8_t gid[GID_LEN])
{
	uint64_t halves[2];

	memcpy(halves, gid, sizeof(halves));
	return (halves[0] | halves[1]) == 0;
}

static inline bool gid_is_ipv4(const uint8_t gid[GID_LEN])
{
	static const uint8_t prefix[GID_IPV4_OFFSET] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

/** Make the GID of an IPv4 address, whose four bytes need not be aligned. */
static inline void gid_from_ipv4(const void *ipv4, uint8_t gid[GID_LEN])
{
	typedef uint64_t halves __attribute__((vector_size(GID_LEN)));
	rte_be32_t address;
	halves whole;

	/* Write it by one store: the GID is next loaded in larger pieces to be compared, and such a
	 * load stalls on several smaller stores. */
	memcpy(&address, ipv4, sizeof(address));
	whole = (halves){0, RTE_BE64(UINT64_C(0xffff) << 32) |
				    (uint64_t)address
					    << (RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN ? 32 : 0)};
	memcpy(gid, &whole, sizeof(whole));
}

/** Return true if the first bits of two GIDs are the same; at most 8 * GID_LEN. */
static inline bool gid_same_prefix(const uint8_t a[GID_LEN], const uint8_t b[GID_LEN],
				   unsigned int bits)
{
	const unsigned int bytes = bits / 8;
	const uint8_t mask = (uint8_t)(0xff00 >> (bits % 8));

	return memcmp(a, b, bytes) == 0 && (bits % 8 == 0 || ((a[bytes] ^ b[bytes]) & mask) == 0);
}

/** Return true for ::1 and 127.0.0.0/8, which no packet may have. */
static inline bool gid_is_loopback(const uint8_t gid[GID_LEN])
{
	static const uint8_t ipv6[GID_LEN] = {[GID_LEN - 1] = 1};

	return memcmp(gid, ipv6, sizeof(ipv6)) == 0 ||
	       (gid_is_ipv4(gid) && gid[GID_IPV4_OFFSET] == 127);
}

/** Return true for an IPv6 address that is valid on one link only: fe80::/10. */
static inline bool gid_is_link_local(const uint8_t gid[GID_LEN])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/** Return true for a group's GID: IPv6 ff00::/8, or IPv4 224.0.0.0/4. */
static inline bool gid_is_multicast(const uint8_t gid[GID_LEN])
{
	return gid[0] == 0xff || (gid_is_ipv4(gid) && (gid[GID_IPV4_OFFSET] & 0xf0) == 0xe0);
}

/** Write the address of a GID as people write it. */
void gid_text(const uint8_t gid[GID_LEN], char text[GID_TEXT_MAX]);

#endif
