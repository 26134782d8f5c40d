/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashing of this host's identity with a text. */
#include "unique.h"

#include <string.h>

#include "base/host.h"

uint64_t unique_hash(const char *text)
{
	uint64_t hash = hash_bytes(hash_host(HASH_START), text, strlen(text));

	/* The last bytes have not reached the lower bits evenly: mix once more (MurmurHash3's
	 * finish). */
	hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ (hash >> 33);
}
