/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC: masking of the headers, and CRC-32 over bytes, copies and zeros. */
#include "wire/icrc.h"

#include <string.h>

#include <isa-l/crc.h>
#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/headers.h"

/*
 * A state is the finished CRC of the bytes so far: both inversions of CRC-32 are inside each call,
 * as in zlib, and a call that is given a state undoes the final inversion first.
 */

/* CRC of eight bytes of ones: they stand for the LRH, which RoCEv2 does not have (A17.3.4). */
#define ICRC_AFTER_LRH 0x2144df1cu

static void mask_ipv4(uint8_t *l3)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)l3;

	ip->type_of_service = 0xff;
	ip->time_to_live = 0xff;
	ip->hdr_checksum = 0xffff;
}

static void mask_ipv6(uint8_t *l3)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)l3;

	/* All but the version: traffic class and flow label. */
	ip->vtc_flow |= rte_cpu_to_be_32(0x0fffffff);
	ip->hop_limits = 0xff;
}

uint32_t icrc_headers(const uint8_t *l3, size_t l3_len, size_t headers_len)
{
	uint8_t masked[ICRC_HEADERS_MAX];
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(masked + l3_len);
	struct bth *bth = (struct bth *)(udp + 1);

	memcpy(masked, l3, headers_len);
	if (l3_len == sizeof(struct rte_ipv4_hdr))
		mask_ipv4(masked);
	else
		mask_ipv6(masked);
	udp->dgram_cksum = 0xffff;
	bth->ecn = 0xff;
	return icrc_update(ICRC_AFTER_LRH, masked, headers_len);
}

uint32_t icrc_update(uint32_t state, const void *data, size_t len)
{
	return crc32_gzip_refl(state, data, len);
}

uint32_t icrc_copy(uint32_t state, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	/* Of the copy: the application may be changing the source. */
	return icrc_update(state, dst, len);
}

/*
 * x^(2^k) modulo the polynomial, bit-reflected: x^0 is the top bit. Squaring the last gives the
 * first again, for x has order 2^32 - 1.
 */
static const uint32_t power_of_x[32] = {
	0x40000000, 0x20000000, 0x08000000, 0x00800000, 0x00008000, 0xedb88320, 0xb1e6b092,
	0xa06a2517, 0xed627dae, 0x88d14467, 0xd7bbfe6a, 0xec447f11, 0x8e7ea170, 0x6427800e,
	0x4d47bae0, 0x09fe548f, 0x83852d0f, 0x30362f1a, 0x7b5a9cc3, 0x31fec169, 0x9fec022a,
	0x6c8dedc4, 0x15d6874d, 0x5fde7a4e, 0xbad90e37, 0x2e4e5eef, 0x4eaba214, 0xa8a472c0,
	0x429a969e, 0x148d302a, 0xc40ba6d0, 0xc4e22c3c,
};

/* Product of two polynomials over GF(2), modulo CRC-32's, all bit-reflected. */
static uint32_t gf2_multiply(uint32_t a, uint32_t b)
{
	const uint32_t polynomial = 0xedb88320;
	uint32_t product = 0;

	for (; a != 0; a <<= 1) {
		product ^= b & (0u - (a >> 31));
		b = b >> 1 ^ (polynomial & (0u - (b & 1)));
	}
	return product;
}

uint32_t icrc_zeros(uint32_t state, size_t len)
{
	uint32_t remainder = ~state;
	unsigned int k = 3; /* a byte is a factor of x^(2^3) */

	for (; len != 0; len >>= 1, k++)
		if (len & 1)
			remainder = gf2_multiply(power_of_x[k & 31], remainder);
	return ~remainder;
}

void icrc_store(uint32_t state, uint8_t dst[4])
{
	const rte_le32_t wire = rte_cpu_to_le_32(state);

	memcpy(dst, &wire, sizeof(wire));
}

uint32_t icrc_load(const uint8_t src[4])
{
	rte_le32_t wire;

	memcpy(&wire, src, sizeof(wire));
	return rte_le_to_cpu_32(wire);
}
