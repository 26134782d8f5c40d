/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC: masking of the headers, choice of an implementation, and CRC-32 over zeros. */
#include "wire/icrc.h"

#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>

#include "wire/icrc_kernel.h"

#ifdef UROCE_BUNDLE
/* A bundle has no ISA-L: Debian has no static library of it. */
#define crc32_gzip_refl icrc_kernel_words.update
#else
#include <isa-l/crc.h>
#endif

/*
 * A state is the finished CRC of the bytes so far. As in zlib, each call does both inversions of
 * CRC-32; a call that continues a state first undoes the final inversion.
 */

/* CRC of eight bytes of ones: they stand for the LRH, which RoCEv2 does not have (A17.3.4). */
#define ICRC_AFTER_LRH 0x2144df1cu

/* Fields that 7.8.1 and A17.3.4 leave out are replaced by ones; all others are taken as they
 * are. */
#define UDP_AND_BTH_ONES(at) [(at) + 6] = 0xff, [(at) + 7] = 0xff, [(at) + 8 + 4] = 0xff

/* TOS, TTL, header checksum; UDP checksum; FECN, BECN and the reserved bits beside them. */
static const uint8_t ones_ipv4[ICRC_HEADERS_MAX] __attribute__((aligned(64))) = {
	[1] = 0xff, [8] = 0xff, [10] = 0xff, [11] = 0xff, UDP_AND_BTH_ONES(20),
};

/* Traffic class, flow label, hop limit; of UDP and BTH the same fields as above. */
static const uint8_t ones_ipv6[ICRC_HEADERS_MAX] __attribute__((aligned(64))) = {
	[0] = 0x0f, [1] = 0xff, [2] = 0xff, [3] = 0xff, [7] = 0xff, UDP_AND_BTH_ONES(40),
};

/*
 * ISA-L is used where none of our own implementations runs. Processors with AVX-512 always use
 * ours: ISA-L's AVX-512 code leaves the upper parts of the registers in use, and SSE code after it
 * runs several times slower.
 */
static bool supported_anywhere(void)
{
	return true;
}

static uint32_t update_portable(uint32_t state, const void *data, size_t len)
{
	return crc32_gzip_refl(state, data, len);
}

static uint32_t copy_portable(uint32_t state, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	/* Compute the CRC of the copy, because the application may change the source meanwhile. */
	return crc32_gzip_refl(state, dst, len);
}

static uint32_t masked_portable(uint32_t state, const uint8_t *data, const uint8_t *ones,
				size_t len)
{
	uint8_t masked[ICRC_HEADERS_MAX];
	size_t i;

	for (i = 0; i < len; i++)
		masked[i] = data[i] | ones[i];
	return crc32_gzip_refl(state, masked, len);
}

static uint32_t copy_masked_portable(uint32_t state, uint8_t *dst, const uint8_t *src,
				     const uint8_t *ones, size_t len)
{
	memcpy(dst, src, len);
	return masked_portable(state, dst, ones, len);
}

const struct icrc_kernel icrc_kernel_portable = {
	.name = "portable",
	.supported = supported_anywhere,
	.update = update_portable,
	.copy = copy_portable,
	.masked = masked_portable,
	.copy_masked = copy_masked_portable,
};

const struct icrc_kernel *const icrc_kernels[] = {
#ifdef __x86_64__
	&icrc_kernel_avx512, &icrc_kernel_pclmul,
#endif
#ifdef __aarch64__
	&icrc_kernel_pmull,  &icrc_kernel_crc32,
#endif
	&icrc_kernel_words,  &icrc_kernel_portable, NULL,
};

/* A copy of the best implementation, so that a call loads one pointer only. Constant from main
 * on. */
static struct icrc_kernel kernel = {
	.update = update_portable,
	.copy = copy_portable,
	.copy_past_caches = copy_portable,
	.masked = masked_portable,
	.copy_masked = copy_masked_portable,
};

__attribute__((constructor)) static void choose_kernel(void)
{
	const struct icrc_kernel *const *candidate = icrc_kernels;

	while (!(*candidate)->supported() || ((*candidate)->suits && !(*candidate)->suits()))
		candidate++;
	kernel = **candidate;
	if (!kernel.copy_past_caches)
		kernel.copy_past_caches = kernel.copy;
}

static const uint8_t *ones_of(size_t l3_len)
{
	return l3_len == sizeof(struct rte_ipv4_hdr) ? ones_ipv4 : ones_ipv6;
}

uint32_t icrc_headers(const uint8_t *l3, size_t l3_len, size_t headers_len)
{
	return kernel.masked(ICRC_AFTER_LRH, l3, ones_of(l3_len), headers_len);
}

uint32_t icrc_copy_headers(uint8_t *dst, const uint8_t *l3, size_t l3_len, size_t headers_len)
{
	return kernel.copy_masked(ICRC_AFTER_LRH, dst, l3, ones_of(l3_len), headers_len);
}

uint32_t icrc_update(uint32_t state, const void *data, size_t len)
{
	return kernel.update(state, data, len);
}

uint32_t icrc_copy(uint32_t state, void *dst, const void *src, size_t len)
{
	return kernel.copy(state, dst, src, len);
}

uint32_t icrc_copy_past_caches(uint32_t state, void *dst, const void *src, size_t len)
{
	return kernel.copy_past_caches(state, dst, src, len);
}

/*
 * x^(2^k) modulo the polynomial, bit-reflected: x^0 is the top bit. The list repeats after 32
 * entries, because x has the order 2^32 - 1, so x^(2^32) is x.
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

/* x^(8 * bytes) modulo the polynomial. A byte multiplies by x^8, which is x^(2^3). */
static uint32_t gf2_power(size_t bytes)
{
	uint32_t power = 0x80000000; /* x^0 */

	for (unsigned int k = 3; bytes != 0; bytes >>= 1, k++)
		if (bytes & 1)
			power = gf2_multiply(power_of_x[k & 31], power);
	return power;
}

uint32_t icrc_zeros(uint32_t state, size_t len)
{
	return ~gf2_multiply(gf2_power(len), ~state);
}

uint32_t icrc_distance(int32_t len)
{
	/* x has the order 2^32 - 1. */
	return gf2_power(len < 0 ? UINT32_MAX - (uint32_t)-len : (uint32_t)len);
}

uint32_t icrc_move(uint32_t difference, uint32_t distance)
{
	return gf2_multiply(distance, difference);
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
