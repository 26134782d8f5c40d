/* SPDX-License-Identifier: BSD-3-Clause */
/* The names by which both ends of a connection tell how many engines they have. */
#include "memif/pairs.h"

#include <stdio.h>
#include <string.h>

#define NAME "uroce"

void memif_pairs_write_name(char name[MEMIF_NAME_LEN], uint32_t queues)
{
	if (queues == 0)
		snprintf(name, MEMIF_NAME_LEN, NAME);
	else
		snprintf(name, MEMIF_NAME_LEN, NAME ", engines: %u", queues);
}

uint32_t memif_pairs_read_name(const char name[MEMIF_NAME_LEN])
{
	char expected[MEMIF_NAME_LEN];

	/* Compare with the few names that we write, so that nothing needs to be parsed. */
	for (uint32_t queues = 1; queues <= MEMIF_QUEUES_MAX; queues++) {
		memif_pairs_write_name(expected, queues);
		if (strncmp(name, expected, MEMIF_NAME_LEN) == 0)
			return queues;
	}
	return 0;
}
