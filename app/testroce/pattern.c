/* SPDX-License-Identifier: BSD-3-Clause */
/* Message contents that identify the message: a tag, then words of a generator that the tag seeds.
 */
#include "pattern.h"

#include <string.h>

#include <rte_common.h>

#include "base/mix.h"

static uint64_t word_at(uint64_t start, size_t offset)
{
	return start + offset * UINT64_C(0x9e3779b97f4a7c15);
}

void pattern_fill(void *memory, size_t bytes, uint64_t seed, uint64_t tag)
{
	const uint64_t start = mix(seed ^ mix(tag));
	uint8_t *at = memory;

	memcpy(at, &tag, sizeof(tag));
	for (size_t offset = sizeof(tag); offset < bytes; offset += sizeof(uint64_t)) {
		const uint64_t word = word_at(start, offset);

		memcpy(at + offset, &word, RTE_MIN(bytes - offset, sizeof(word)));
	}
}

bool pattern_check(const void *memory, size_t bytes, uint64_t seed, uint64_t *tag)
{
	const uint8_t *at = memory;
	uint64_t start;

	memcpy(tag, at, sizeof(*tag));
	start = mix(seed ^ mix(*tag));
	for (size_t offset = sizeof(*tag); offset < bytes; offset += sizeof(uint64_t)) {
		const uint64_t word = word_at(start, offset);

		if (memcmp(at + offset, &word, RTE_MIN(bytes - offset, sizeof(word))) != 0)
			return false;
	}
	return true;
}
