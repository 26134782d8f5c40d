/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a host, twice: as the stack leaves it, and as it should be. All bytes that no work
 * request names, between regions and inside them, are canaries: they must not change.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/verbs_later.h"
#include "rng.h"

/* The rights of regions for peers that may do everything. */
#define ACCESS_ALL                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | LATER_ACCESS_FLUSH_GLOBAL)

struct mr;
struct pd;
struct memory;

/* A memory region. It grows while a program is generated, and is then laid out and registered. */
struct region {
	struct region *next;
	struct memory *memory;
	unsigned int access; /* enum ibv_access_flags */
	uint32_t size;	     /* bytes */
	size_t offset;	     /* in the memory */
	uint64_t iova;	     /* address of its first byte, as users of its keys give it */
	uint32_t key;
	struct mr *mr; /* NULL when deregistered */
	bool alone;    /* on its own pages, which can be taken away */
	bool is_null;  /* no memory: it reads as zeros, and ignores writes */
};

/* Some bytes of a region. */
struct span {
	struct region *region; /* NULL: in no region; only for a length of 0 */
	uint32_t offset;       /* in the region */
	uint32_t len;
};

struct memory {
	struct region *regions; /* newest first */
	struct region null;	/* the null region */
	uint8_t *actual;	/* as the checks see it, even if it was taken away from the stack */
	uint8_t *stack;		/* the same bytes, as the stack sees them */
	uint8_t *expected;
	size_t size;
	/* the mappings that contain these; behind the stack's is a page without access rights */
	uint8_t *view;
	uint8_t *mapping;
	size_t mapped;
};

/** Create a region without bytes. */
struct region *memory_add_region(struct memory *memory, unsigned int access);

/** Take fresh bytes of a region, with canaries around them. */
struct span region_take(struct region *region, uint32_t len, uint32_t align, struct rng *rng);

/** Take some bytes of the null region. */
struct span memory_take_null(struct memory *memory, uint32_t len, struct rng *rng);

/** Lay out the regions, and fill both images with the same random bytes. */
void memory_lay_out(struct memory *memory, int host, struct rng *rng);

/** Register all regions, some under an address of their own choice. */
void memory_register(struct memory *memory, struct pd *pd, struct rng *rng);
void memory_deregister(struct memory *memory);

/** Unmap what is under a region for the stack, and map all of it again. */
void memory_take_away(const struct region *region);
void memory_give_back(struct memory *memory);

/** Forget the regions; keep the mapping for the next program. */
void memory_clear(struct memory *memory);
void memory_fini(struct memory *memory);

/** Return true if the span has memory: it is neither empty nor in the null region. */
uint8_t *span_actual(const struct span *span);
uint8_t *span_expected(const struct span *span);

/** Copy the actual, or the expected, bytes to `to`. */
void span_load_actual(const struct span *span, uint8_t *to);
void span_load_expected(const struct span *span, uint8_t *to);

/** Expect these bytes in the span. */
void span_store_expected(const struct span *span, const uint8_t *from, uint32_t len);

uint64_t span_iova(const struct span *span);
uint32_t span_key(const struct span *span);
/** Return `len` bytes of a span from `offset` on. */
struct span span_part(const struct span *span, uint32_t offset, uint32_t len);

/** Accept any bytes: expect the ones that are there. */
void span_forgive(const struct span *span);

/** Return the offset of the first byte of a span that is not as expected, or -1. */
int64_t span_compare(const struct span *span);

/** Do the same for all memory. */
int64_t memory_compare(const struct memory *memory);

#endif
