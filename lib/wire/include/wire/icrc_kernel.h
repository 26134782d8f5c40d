/* SPDX-License-Identifier: BSD-3-Clause */
/* Implementations of the ICRC's inner loops, one for each instruction set; icrc.c chooses one at
 * start. */
#ifndef WIRE_ICRC_KERNEL_H
#define WIRE_ICRC_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct icrc_kernel {
	const char *name;
	/** Return true if this processor has the instructions. */
	bool (*supported)(void);
	/** Return true if it should be chosen where it is supported; NULL: always. */
	bool (*suits)(void);
	/** Do what icrc_update does. */
	uint32_t (*update)(uint32_t state, const void *data, size_t len);
	/** Do what icrc_copy does. The CRC is of the written bytes, even if another thread changes
	 * the source. */
	uint32_t (*copy)(uint32_t state, void *dst, const void *src, size_t len);
	/** Do what `copy` does, and store whole cache lines with non-temporal stores; NULL: this
	 * kernel has none. */
	uint32_t (*copy_past_caches)(uint32_t state, void *dst, const void *src, size_t len);
	/** update over `data | ones`; len is from 1 to ICRC_HEADERS_MAX, which is also the size of
	 * `ones`. */
	uint32_t (*masked)(uint32_t state, const uint8_t *data, const uint8_t *ones, size_t len);
	/** Copy, and do what masked does; the CRC is of the written bytes. */
	uint32_t (*copy_masked)(uint32_t state, uint8_t *dst, const uint8_t *src,
				const uint8_t *ones, size_t len);
};

/** All implementations in this build, the best first, NULL last. The last one runs on any
 * processor. */
extern const struct icrc_kernel *const icrc_kernels[];

extern const struct icrc_kernel icrc_kernel_words;
extern const struct icrc_kernel icrc_kernel_portable;
#ifdef __x86_64__
extern const struct icrc_kernel icrc_kernel_avx512;
extern const struct icrc_kernel icrc_kernel_pclmul;
#endif
#ifdef __aarch64__
extern const struct icrc_kernel icrc_kernel_pmull;
extern const struct icrc_kernel icrc_kernel_crc32;
#endif

#endif
