/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): a little memory that belongs to the device, reached by copying
 * and by keys only. Here it is memory of this process too, that the program has no pointer to.
 */
#ifndef MEM_DM_H
#define MEM_DM_H

#include <stddef.h>
#include <stdint.h>

struct mr;
struct pd;

/* It is given in blocks of this size, at multiples of it. */
#define DM_BLOCK_BYTES 64
#define DM_COPY_BYTES  4 /* copies begin at a multiple of it, and are as long as one */

/* What a device has of it. */
struct dm_pool {
	uint64_t total_bytes;
	uint64_t used_bytes; /* atomic */
};

struct dm {
	struct dm_pool *pool;
	uint8_t *bytes;
	uint64_t length;     /* bytes, as asked for */
	uint64_t pool_bytes; /* that it takes of the pool */
	uint32_t users;	     /* regions on it; atomic */
	uint32_t holders; /* who keeps the memory: 1, until it is destroyed, and dm_hold; atomic */
};

/**
 * Take memory of zeros from the pool. MT-safe.
 *
 * @param log_align
 *   Its address is a multiple of 2^log_align.
 * @return
 *   0; -EINVAL for no length, or a length or an alignment greater than the pool; -ENOMEM where the
 *   pool has no more.
 */
int dm_create(struct dm_pool *pool, uint64_t length, uint32_t log_align, struct dm **dm);

/** Give it back. MT-safe. 0, or -EBUSY while regions are on it. */
int dm_destroy(struct dm *dm);

/** Keep the memory of one that is not destroyed, until dm_release_hold. MT-safe. */
void dm_hold(struct dm *dm);
void dm_release_hold(struct dm *dm);

/** Copy to and from it, by DM_COPY_BYTES. MT-safe; two copies of one place at once give either. 0,
 * or -EINVAL for what is not in it. */
int dm_write(struct dm *dm, uint64_t offset, const void *from, size_t length);
int dm_read(const struct dm *dm, uint64_t offset, void *to, size_t length);

/**
 * Register a part of it as a zero-based region, to be deregistered with mr_deregister. MT-safe.
 *
 * @param access
 *   With IBV_ACCESS_ZERO_BASED; what else there may be is local write and remote access. The
 *   optional range is ignored.
 * @return
 *   0; -EINVAL for another access or what is not in it; -ENOMEM.
 */
int dm_register(struct pd *pd, struct dm *dm, uint64_t offset, size_t length, unsigned int access,
		struct mr **mr);

#endif
