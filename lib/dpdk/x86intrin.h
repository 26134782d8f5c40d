/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The intrinsics that DPDK's headers use, in place of all that the compiler has. DPDK includes
 * <x86intrin.h> for the vectors of SSE, the clock and transactions. With AVX-512, which no header
 * of DPDK uses unless the compiler may generate it, that takes longer to read than DPDK, this
 * project and the C library together.
 */
#pragma GCC system_header

#ifdef __AVX__
#include_next <x86intrin.h>
#else
#include <nmmintrin.h>
#include <x86gprintrin.h>
#endif
