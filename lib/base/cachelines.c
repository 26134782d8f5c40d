/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts objects from chunks of pages, or from larger freed blocks; keeps freed blocks in a list for
 * each size. */
#include "base/cachelines.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rte_common.h>

#define BYTES_MAX   4096u /* a larger object gets pages of its own */
#define SMALL_BYTES (UINT64_C(64) << 10)
/* From this total on, chunks are huge pages; a few objects do not need one. */
#define SMALL_TOTAL (UINT64_C(512) << 10)
#define HUGE_BYTES  (UINT64_C(2) << 20)

#if defined(__SANITIZE_ADDRESS__)
#define FROM_HEAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FROM_HEAP 1
#endif
#endif
#ifndef FROM_HEAP
#define FROM_HEAP 0 /* 1: take each object from the heap, where AddressSanitizer sees it */
#endif

struct gap {
	struct gap *next;
};

/* All of these are under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gap *gaps[BYTES_MAX / RTE_CACHE_LINE_SIZE + 1]; /* index: size in cache lines */
static uint8_t *chunk;					      /* the part that is not cut yet */
static size_t chunk_bytes;
static uint64_t total_bytes;

/* Lock around fork(), so that the child can use the allocator whatever other threads did. */
static void lock_it(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_it(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void cachelines_init(void)
{
	pthread_atfork(lock_it, unlock_it, unlock_it);
}

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Map one huge page, aligned; the kernel decides if it gives one. */
static uint8_t *map_huge(void)
{
	uint8_t *const at = map(2 * HUGE_BYTES), *aligned;

	if (!at)
		return NULL;
	aligned = RTE_PTR_ALIGN_CEIL(at, HUGE_BYTES);
	if (aligned > at)
		munmap(at, (size_t)(aligned - at));
	munmap(aligned + HUGE_BYTES, (size_t)(at + HUGE_BYTES - aligned));
	madvise(aligned, HUGE_BYTES, MADV_HUGEPAGE);
	return aligned;
}

static void put_gap(void *at, size_t bytes)
{
	struct gap *gap = at;

	gap->next = gaps[bytes / RTE_CACHE_LINE_SIZE];
	gaps[bytes / RTE_CACHE_LINE_SIZE] = gap;
}

/* Take the first gap of a size, and keep the rest of it as a smaller gap. */
static void *take_gap(size_t gap_bytes, size_t bytes)
{
	struct gap *gap = gaps[gap_bytes / RTE_CACHE_LINE_SIZE];

	gaps[gap_bytes / RTE_CACHE_LINE_SIZE] = gap->next;
	if (gap_bytes > bytes)
		put_gap((uint8_t *)gap + bytes, gap_bytes - bytes);
	return gap;
}

/* Take the smallest gap that is large enough. */
static void *find_gap(size_t bytes)
{
	for (size_t at = bytes; at <= BYTES_MAX; at += RTE_CACHE_LINE_SIZE)
		if (gaps[at / RTE_CACHE_LINE_SIZE])
			return take_gap(at, bytes);
	return NULL;
}

/* Map a new chunk. The rest of the old one becomes a gap: it is less than the caller needs. */
static int next_chunk(void)
{
	uint8_t *next = total_bytes >= SMALL_TOTAL ? map_huge() : NULL;
	const size_t bytes = next ? HUGE_BYTES : SMALL_BYTES;

	/* Fall back to a small chunk: the address space may have no room for two huge pages. */
	if (!next)
		next = map(SMALL_BYTES);
	if (!next)
		return -1;
	if (chunk_bytes > 0)
		put_gap(chunk, chunk_bytes);
	chunk = next;
	chunk_bytes = bytes;
	total_bytes += chunk_bytes;
	return 0;
}

/* Take from the current chunk; cut a larger gap only if a new chunk would be needed otherwise. */
static void *cut(size_t bytes)
{
	uint8_t *at;

	if (chunk_bytes < bytes) {
		at = find_gap(bytes);
		if (at || next_chunk() != 0)
			return at;
	}
	at = chunk;
	chunk += bytes;
	chunk_bytes -= bytes;
	return at;
}

void *cachelines_alloc(size_t bytes)
{
	const size_t whole = RTE_ALIGN_CEIL(RTE_MAX(bytes, (size_t)1), RTE_CACHE_LINE_SIZE);
	void *at;

	if (bytes > BYTES_MAX || FROM_HEAP)
		return posix_memalign(&at, RTE_CACHE_LINE_SIZE, bytes) == 0 ? at : NULL;
	pthread_mutex_lock(&lock);
	at = gaps[whole / RTE_CACHE_LINE_SIZE] ? take_gap(whole, whole) : cut(whole);
	pthread_mutex_unlock(&lock);
	return at;
}

void cachelines_free(void *at, size_t bytes)
{
	if (bytes > BYTES_MAX || FROM_HEAP) {
		free(at);
		return;
	}
	if (!at)
		return;
	pthread_mutex_lock(&lock);
	put_gap(at, RTE_ALIGN_CEIL(RTE_MAX(bytes, (size_t)1), RTE_CACHE_LINE_SIZE));
	pthread_mutex_unlock(&lock);
}
