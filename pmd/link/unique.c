/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashing of this host's identity with a text. */
#include "unique.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t unique_hash(const char *text)
{
	const int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char host[256] = "";
	ssize_t len;

	if (fd >= 0) {
		len = read(fd, host, sizeof(host));
		if (len > 0)
			hash = hash_bytes(hash, host, (size_t)len);
		close(fd);
	}
	/* Containers made from one image share the machine's id. */
	if (gethostname(host, sizeof(host)) == 0)
		hash = hash_bytes(hash, host, strnlen(host, sizeof(host)));
	hash = hash_bytes(hash, text, strlen(text));
	/* The last bytes have not reached the lower bits evenly: mix once more (MurmurHash3's
	 * finish). */
	hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ (hash >> 33);
}
