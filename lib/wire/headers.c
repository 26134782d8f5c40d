/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoding of times on the wire: RNR NAK timers and local ACK timeouts. */
#include "wire/headers.h"

/* Table 46, in units of 10 us; code 0 is the longest time. */
/* clang-format off */
static const uint32_t rnr_timers_10us[] = {
	65536, 1, 2, 3, 4, 6, 8, 12,
	16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};
/* clang-format on */
static_assert(sizeof(rnr_timers_10us) / sizeof(rnr_timers_10us[0]) == AETH_VALUE_MASK + 1,
	      "one timer a code");

#define RNR_TIMER_UNIT_NS   10000
#define ACK_TIMEOUT_UNIT_NS 4096
#define ACK_TIMEOUT_MAX	    31 /* a 5-bit field, 9.7.6.1.3 */

uint64_t rnr_timer_ns(uint8_t code)
{
	return (uint64_t)RNR_TIMER_UNIT_NS * rnr_timers_10us[code & AETH_VALUE_MASK];
}

uint8_t rnr_timer_code(uint64_t ns)
{
	for (uint8_t code = 1; code <= AETH_VALUE_MASK; code++) {
		if (rnr_timer_ns(code) >= ns)
			return code;
	}
	return 0;
}

uint64_t ack_timeout_ns(uint8_t exponent)
{
	if (exponent == 0)
		return 0;
	return (uint64_t)ACK_TIMEOUT_UNIT_NS
	       << (exponent < ACK_TIMEOUT_MAX ? exponent : ACK_TIMEOUT_MAX);
}
