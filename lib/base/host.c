/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash that identifies this host. */
#include "base/host.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The id alone is not enough: containers and clones of one image share it. */
uint64_t hash_host(uint64_t hash)
{
	const int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t len = 0;

	if (fd >= 0) {
		len = read(fd, text, sizeof(text));
		close(fd);
	}
	if (len > 0)
		hash = hash_bytes(hash, text, (size_t)len);
	if (gethostname(text, sizeof(text)) == 0)
		hash = hash_bytes(hash, text, strnlen(text, sizeof(text)));
	return hash;
}

uint64_t hash_unique(const char *text)
{
	uint64_t hash = hash_bytes(hash_host(HASH_START), text, strlen(text));

	/* The last bytes have not reached the lower bits evenly: mix once more (MurmurHash3's
	 * finish). */
	hash = (hash ^ (hash >> 33)) * UINT64_C(0xff51afd7ed558ccd);
	return hash ^ (hash >> 33);
}
