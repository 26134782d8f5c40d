/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash of bytes. */
#include "base/host.h"

uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}
