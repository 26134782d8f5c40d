/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading of a selective acknowledgement. */
#include "transport/sack.h"

#include <string.h>

#include <rte_bitops.h>
#include <rte_byteorder.h>
#include <rte_common.h>

#include "wire/packet.h"

uint32_t sack_span(const struct packet *packet, uint32_t most)
{
	/* Bit i stands for the packet i + 1 PSNs behind the expected one. */
	const uint32_t bits = RTE_MIN(8 * packet->payload_len, most - (most > 0));

	for (uint32_t bytes = (bits + 7) / 8; bytes > 0; bytes--) {
		const uint32_t before = 8 * (bytes - 1);
		uint32_t byte = packet->payload[bytes - 1];

		if (bits - before < 8)
			byte &= (1u << (bits - before)) - 1;
		if (byte != 0)
			return before + rte_fls_u32(byte) + 1;
	}
	return 0;
}

uint64_t sack_word(const struct packet *packet, uint32_t from)
{
	/* The expected packet itself is not kept, and has no bit. */
	const uint32_t bit = from - (from > 0), byte = bit / 8, shift = bit % 8;
	const uint32_t left = packet->payload_len - RTE_MIN(byte, packet->payload_len);
	rte_le64_t first = 0;
	uint64_t bits;

	if (left == 0)
		return 0;
	memcpy(&first, packet->payload + packet->payload_len - left,
	       RTE_MIN(left, (uint32_t)sizeof(first)));
	bits = rte_le_to_cpu_64(first) >> shift;
	if (shift > 0 && left > sizeof(first))
		bits |= (uint64_t)packet->payload[byte + sizeof(first)] << (64 - shift);
	return from > 0 ? bits : bits << 1;
}
