/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The resume table: what the next owner of a port must know of the processes of this one, so that
 * they can attach to it with the same numbers. It is a memory file that somebody keeps while no
 * owner runs (the service manager, or the next owner). Each entry is whole or not there, at
 * whichever instruction the owner is killed.
 *
 * The table says only which numbers belong to whom. All else a process tells the next owner itself.
 */
#ifndef OWNER_RESUME_TABLE_H
#define OWNER_RESUME_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "share/message.h"

#define RESUME_ENTRIES 256

struct resume_entry {
	/* known to the process alone; good for one attachment */
	uint8_t token[SHARE_TOKEN_BYTES];
	uint64_t user; /* user_t */
	uint32_t qpn_first;
	uint32_t qpn_count;
	uint32_t id_value;
	uint32_t engines; /* of the process's device */
	uint32_t isolated;
	uint32_t sum;  /* of the members before it */
	uint32_t used; /* 1: the entry is whole; 0: it is free; atomic */
	uint32_t zero;
};

struct resume_table {
	uint64_t magic;
	uint32_t version;
	uint32_t sum;	/* of the members from `mac` up to `entries` */
	uint32_t times; /* that an owner has gone on with it */
	uint32_t zero;
	uint8_t mac[8];
	char unique[SHARE_UNIQUE_MAX];
	struct resume_entry entries[RESUME_ENTRIES];
};

/** Make a table without entries, for a port with this name and address. Returns its descriptor, or
 * -errno. */
int resume_table_create(const char *unique, const uint8_t mac[6], struct resume_table **table);

/** Map a table that another process has made. Its length cannot change. 0 or -errno. */
int resume_table_map(int fd, struct resume_table **table);

void resume_table_unmap(struct resume_table *table);

/**
 * Check a copy of a table as if it came from an attacker.
 *
 * @return
 *   NULL: it is right; else what is wrong in it.
 */
const char *resume_table_check(const struct resume_table *copy, const char *unique,
			       const uint8_t mac[6]);

/** Add an entry, whose `sum` and `used` are set here. Returns its index, or -ENOSPC. */
int resume_table_put(struct resume_table *table, const struct resume_entry *entry);

/** Remove an entry. */
void resume_table_clear(struct resume_table *table, uint32_t index);

/** Return true if two tokens are equal, in a time that does not depend on them. */
bool resume_table_same(const uint8_t a[SHARE_TOKEN_BYTES], const uint8_t b[SHARE_TOKEN_BYTES]);

#endif
