/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading of a selective acknowledgement. */
#include "transport/sack.h"

#include <rte_common.h>

#include "wire/packet.h"

/* Return a byte of the bitmap in which the expected packet is bit 0: it is not kept. */
static unsigned int byte_at(const struct packet *packet, uint32_t i)
{
	const unsigned int before = i > 0 ? packet->payload[i - 1] >> 7 : 0;

	return (i < packet->payload_len ? (packet->payload[i] << 1) & 0xff : 0) | before;
}

uint32_t sack_span(const struct packet *packet)
{
	uint32_t bytes = packet->payload_len;

	while (bytes > 0 && packet->payload[bytes - 1] == 0)
		bytes--;
	/* Bit i stands for the packet i + 1 PSNs behind the expected one. */
	return bytes == 0 ? 0 : 8 * (bytes - 1) + rte_fls_u32(packet->payload[bytes - 1]) + 1;
}

bool sack_run(const struct packet *packet, uint32_t from, uint32_t *to)
{
	const uint32_t span = sack_span(packet);
	const bool kept = byte_at(packet, from / 8) >> from % 8 & 1;
	const unsigned int same = kept ? 0xff : 0;
	uint32_t i = from + 1;

	while (i < span) {
		const unsigned int bits = byte_at(packet, i / 8);

		if (i % 8 == 0 && bits == same)
			i += 8;
		else if ((bits >> i % 8 & 1) == kept)
			i++;
		else
			break;
	}
	*to = RTE_MIN(i, span);
	return kept;
}
