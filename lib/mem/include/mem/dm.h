/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): a small amount of memory that belongs to the device, and that is
 * accessed by copies and by keys only. Here it is memory of this process, but the program has no
 * pointer to it.
 */
#ifndef MEM_DM_H
#define MEM_DM_H

#include <stddef.h>
#include <stdint.h>

struct mr;
struct pd;

/* Device memory is allocated in blocks of this size, at multiples of it. */
#define DM_BLOCK_BYTES 64
#define DM_COPY_BYTES \
	4 /* copies begin at a multiple of this, and their length is a multiple of it */

/* A device's pool of it. */
struct dm_pool {
	uint64_t total_bytes;
	uint64_t used_bytes; /* atomic */
};

struct dm {
	struct dm_pool *pool;
	uint8_t *bytes;
	uint64_t length;     /* bytes, as asked for */
	uint64_t pool_bytes; /* bytes taken from the pool */
	uint32_t users;	     /* regions of it; atomic */
	uint32_t
		holders; /* references: 1 until it is destroyed, and one for each dm_hold; atomic */
};

/**
 * Allocate zeroed memory from the pool. MT-safe.
 *
 * @param log_align
 *   The address is a multiple of 2^log_align.
 * @return
 *   0; -EINVAL for a length of 0, or a length or alignment greater than the pool; -ENOMEM if the
 *   pool has too little left.
 */
int dm_create(struct dm_pool *pool, uint64_t length, uint32_t log_align, struct dm **dm);

/** Free it. MT-safe. 0, or -EBUSY while it has regions. */
int dm_destroy(struct dm *dm);

/** Hold the memory: until dm_release_hold it stays, even if it is destroyed. The caller holds it,
 * or it is not destroyed yet. MT-safe. */
void dm_hold(struct dm *dm);
void dm_release_hold(struct dm *dm);

/** Copy to or from it, in units of DM_COPY_BYTES. MT-safe; of two concurrent copies to one place
 * either may win. 0, or -EINVAL if the range is not in it. */
int dm_write(struct dm *dm, uint64_t offset, const void *from, size_t length);
int dm_read(const struct dm *dm, uint64_t offset, void *to, size_t length);

/**
 * Register a part of it as a zero-based region; mr_deregister deregisters it. MT-safe.
 *
 * @param access
 *   Must have IBV_ACCESS_ZERO_BASED, and may have local write and remote access. The optional range
 *   is ignored.
 * @return
 *   0; -EINVAL for other access flags or a range that is not in it; -ENOMEM.
 */
int dm_register(struct pd *pd, struct dm *dm, uint64_t offset, size_t length, unsigned int access,
		struct mr **mr);

#endif
