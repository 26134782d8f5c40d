/* SPDX-License-Identifier: BSD-3-Clause */
/* The resume table of an owner: a memory file, and the check of one that another owner has left. */
#include "owner/resume_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owner/ids.h"
#include "share/blocks.h"
#include "share/layout.h"

#define RESUME_MAGIC   UINT64_C(0x656d757365726f75)
#define RESUME_VERSION 1
#define RESUME_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* FNV-1a. It finds what a fault has changed; whoever writes the table can write the sum too. */
static uint32_t sum_of(const void *bytes, size_t count)
{
	const uint8_t *at = bytes;
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < count; i++)
		sum = (sum ^ at[i]) * 16777619u;
	return sum;
}

static uint32_t sum_of_head(const struct resume_table *table)
{
	return sum_of(table->mac,
		      offsetof(struct resume_table, entries) - offsetof(struct resume_table, mac));
}

static uint32_t sum_of_entry(const struct resume_entry *entry)
{
	return sum_of(entry, offsetof(struct resume_entry, sum));
}

static struct resume_table *map(int fd)
{
	void *memory =
		mmap(NULL, sizeof(struct resume_table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* A core file must not have tokens. */
	madvise(memory, sizeof(struct resume_table), MADV_DONTDUMP);
	return memory;
}

int resume_table_create(const char *unique, const uint8_t mac[6], struct resume_table **out)
{
	const int fd = memfd_create("uroced-resume", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct resume_table *table = NULL;
	int rc;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(*table)) == 0 && fcntl(fd, F_ADD_SEALS, RESUME_SEALS) == 0)
		table = map(fd);
	if (!table) {
		rc = -errno;
		close(fd);
		return rc;
	}
	memcpy(table->mac, mac, 6);
	snprintf(table->unique, sizeof(table->unique), "%s", unique);
	table->version = RESUME_VERSION;
	table->sum = sum_of_head(table);
	__atomic_store_n(&table->magic, RESUME_MAGIC, __ATOMIC_RELEASE);
	*out = table;
	return fd;
}

int resume_table_map(int fd, struct resume_table **table)
{
	struct stat file;
	const int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) ||
	    fstat(fd, &file) != 0 || file.st_size != (off_t)sizeof(**table))
		return -EINVAL;
	*table = map(fd);
	return *table ? 0 : -errno;
}

void resume_table_unmap(struct resume_table *table)
{
	if (table)
		munmap(table, sizeof(*table));
}

static const char *check_entry(const struct resume_entry *entry)
{
	static const uint8_t none[SHARE_TOKEN_BYTES];
	const uint32_t block = blocks_index(entry->qpn_first);

	if (entry->used != 1 || entry->zero != 0 || entry->sum != sum_of_entry(entry))
		return "an entry's sum";
	if (memcmp(entry->token, none, sizeof(none)) == 0)
		return "a token";
	if (entry->qpn_first != block << BLOCK_SHIFT || !blocks_may_give(block) ||
	    entry->qpn_count - 1 >= BLOCK_QPNS)
		return "queue pair numbers";
	if (entry->id_value & ~IDS_MASK)
		return "communication ids";
	if (entry->isolated > 1 || (entry->isolated != 0) != (entry->user != USER_TRUSTED))
		return "a user";
	if (entry->engines - 1 >= SHARE_ENGINES_MAX || (entry->isolated && entry->engines > 1))
		return "a number of engines";
	return NULL;
}

static bool overlap(const struct resume_entry *a, const struct resume_entry *b)
{
	return a->qpn_first == b->qpn_first || a->id_value == b->id_value ||
	       memcmp(a->token, b->token, sizeof(a->token)) == 0;
}

const char *resume_table_check(const struct resume_table *copy, const char *unique,
			       const uint8_t mac[6])
{
	if (copy->magic != RESUME_MAGIC || copy->version != RESUME_VERSION)
		return "its version";
	if (copy->sum != sum_of_head(copy))
		return "its sum";
	if (strncmp(copy->unique, unique, sizeof(copy->unique)) != 0 ||
	    memcmp(copy->mac, mac, 6) != 0)
		return "the port";
	for (uint32_t i = 0; i < RESUME_ENTRIES; i++) {
		const struct resume_entry *entry = &copy->entries[i];
		const char *wrong = entry->used == 0 ? NULL : check_entry(entry);

		if (wrong)
			return wrong;
		for (uint32_t j = 0; entry->used && j < i; j++) {
			if (copy->entries[j].used && overlap(entry, &copy->entries[j]))
				return "numbers that two programs have";
		}
	}
	return NULL;
}

int resume_table_put(struct resume_table *table, const struct resume_entry *entry)
{
	for (uint32_t i = 0; i < RESUME_ENTRIES; i++) {
		struct resume_entry *free = &table->entries[i];

		if (__atomic_load_n(&free->used, __ATOMIC_RELAXED) != 0)
			continue;
		memcpy(free, entry, offsetof(struct resume_entry, sum));
		free->sum = sum_of_entry(entry);
		free->zero = 0;
		/* Release: the rest is there before. */
		__atomic_store_n(&free->used, 1, __ATOMIC_RELEASE);
		return (int)i;
	}
	return -ENOSPC;
}

void resume_table_clear(struct resume_table *table, uint32_t index)
{
	__atomic_store_n(&table->entries[index].used, 0, __ATOMIC_RELEASE);
	/* The next entry here is written after that. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool resume_table_same(const uint8_t a[SHARE_TOKEN_BYTES], const uint8_t b[SHARE_TOKEN_BYTES])
{
	volatile uint8_t different = 0;

	for (int i = 0; i < SHARE_TOKEN_BYTES; i++)
		different = (uint8_t)(different | (a[i] ^ b[i]));
	return different == 0;
}
