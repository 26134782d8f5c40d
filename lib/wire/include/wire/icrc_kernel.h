/* SPDX-License-Identifier: BSD-3-Clause */
/* The inner loops of the ICRC, one set an instruction set: chosen once at start by icrc.c. */
#ifndef WIRE_ICRC_KERNEL_H
#define WIRE_ICRC_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct icrc_kernel {
	const char *name;
	/** Whether this processor has the instructions. */
	bool (*supported)(void);
	/** Whether it is to be chosen where it is supported; NULL: it is. */
	bool (*suits)(void);
	/** As icrc_update. */
	uint32_t (*update)(uint32_t state, const void *data, size_t len);
	/** As icrc_copy. The CRC is of what is written, though another thread changes the source.
	 */
	uint32_t (*copy)(uint32_t state, void *dst, const void *src, size_t len);
	/** As update over `data | ones`; len from 1 to ICRC_HEADERS_MAX, which is also the size of
	 * `ones`. */
	uint32_t (*masked)(uint32_t state, const uint8_t *data, const uint8_t *ones, size_t len);
	/** masked of what is copied meanwhile; the CRC is of what is written, as copy's. */
	uint32_t (*copy_masked)(uint32_t state, uint8_t *dst, const uint8_t *src,
				const uint8_t *ones, size_t len);
};

/** All kernels that were built, best first, NULL last; the last one runs anywhere. */
extern const struct icrc_kernel *const icrc_kernels[];

extern const struct icrc_kernel icrc_kernel_words;
extern const struct icrc_kernel icrc_kernel_portable;
#ifdef __x86_64__
extern const struct icrc_kernel icrc_kernel_avx512;
extern const struct icrc_kernel icrc_kernel_pclmul;
#endif

#endif
