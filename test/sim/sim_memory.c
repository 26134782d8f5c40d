/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a host, twice: as the stack leaves it, and as it should be. */
#include "sim_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/mr.h"
#include "mem/pd.h"

#define PAGE_BYTES    4096u
#define GAP_MAX_BYTES 40
/* The addresses are the same in each run, so that printed addresses repeat too. */
#define MAPPING_BASE   0x200000000000ull
#define MAPPING_STRIDE 0x10000000000ull

static void *checked(void *p, const char *what)
{
	if (p == NULL || p == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return p;
}

struct region *memory_add_region(struct memory *memory, unsigned int access)
{
	struct region *region = checked(calloc(1, sizeof(*region)), "sim: region");

	region->memory = memory;
	region->access = access;
	region->next = memory->regions;
	memory->regions = region;
	return region;
}

struct span region_take(struct region *region, uint32_t len, uint32_t align, struct rng *rng)
{
	struct span span = {.region = region, .len = len};

	region->size += (uint32_t)rng_below(rng, GAP_MAX_BYTES);
	region->size = (region->size + align - 1) / align * align;
	span.offset = region->size;
	region->size += len;
	return span;
}

struct span memory_take_null(struct memory *memory, uint32_t len, struct rng *rng)
{
	memory->null.is_null = true;
	memory->null.memory = memory;
	return (struct span){
		.region = &memory->null, .offset = (uint32_t)rng_next(rng), .len = len};
}

static void fill(uint8_t *to, size_t len, struct rng *rng)
{
	while (len >= 8) {
		const uint64_t v = rng_next(rng);

		memcpy(to, &v, 8);
		to += 8;
		len -= 8;
	}
	while (len-- > 0)
		*to++ = (uint8_t)rng_next(rng);
}

static size_t to_page(size_t size)
{
	return (size + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

static uint8_t *map(int fd, size_t len, void *wish, int access)
{
	return checked(mmap(wish, len, access, MAP_SHARED, fd, 0), "sim: memory");
}

static void protect(uint8_t *from, size_t len, int access)
{
	checked(mprotect(from, len, access) == 0 ? from : NULL, "sim: memory");
}

static void memory_unmap(struct memory *memory)
{
	if (memory->mapped > 0) {
		munmap(memory->mapping, memory->mapped);
		munmap(memory->view, memory->mapped);
	}
	free(memory->expected);
}

/* The stack's image ends at a page without access rights; it also begins behind one. */
static void memory_map(struct memory *memory, int host)
{
	const size_t need = (memory->size + 3 * PAGE_BYTES) & ~(size_t)(PAGE_BYTES - 1);

	if (need > memory->mapped) {
		void *wish = (void *)(uintptr_t)(MAPPING_BASE + (uint64_t)host * MAPPING_STRIDE);
		const int fd = memfd_create("sim", MFD_CLOEXEC);

		memory_unmap(memory);
		memory->mapped = need * 2;
		checked(fd >= 0 && ftruncate(fd, (off_t)memory->mapped) == 0 ? memory : NULL,
			"sim: memory");
		memory->mapping = map(fd, memory->mapped, wish, PROT_NONE);
		memory->view = map(fd, memory->mapped, NULL, PROT_READ | PROT_WRITE);
		close(fd);
		memory_give_back(memory);
		memory->expected = checked(malloc(memory->mapped), "sim: memory");
	}
	memory->stack = memory->mapping + memory->mapped - PAGE_BYTES - memory->size;
	memory->actual = memory->view + (memory->stack - memory->mapping);
}

void memory_take_away(const struct region *region)
{
	protect(region->memory->stack + region->offset, to_page(region->size), PROT_NONE);
}

void memory_give_back(struct memory *memory)
{
	protect(memory->mapping + PAGE_BYTES, memory->mapped - 2 * PAGE_BYTES,
		PROT_READ | PROT_WRITE);
}

void memory_lay_out(struct memory *memory, int host, struct rng *rng)
{
	size_t size = 0;
	bool paged = false;

	for (struct region *region = memory->regions; region != NULL; region = region->next) {
		region->size += 1 + (uint32_t)rng_below(rng, GAP_MAX_BYTES);
		size += rng_below(rng, 2 * GAP_MAX_BYTES);
		/*
		 * Return an even address, so that aligned words of the region are aligned in
		 * memory.
		 */
		size = region->alone ? to_page(size) : (size + 63) & ~(size_t)63;
		region->offset = size;
		size += region->alone ? to_page(region->size) : region->size;
		paged |= region->alone;
	}
	memory->size = (size + rng_below(rng, GAP_MAX_BYTES) + 63) & ~(size_t)63;
	if (paged)
		memory->size = to_page(memory->size);
	memory_map(memory, host);
	fill(memory->actual, memory->size, rng);
	memcpy(memory->expected, memory->actual, memory->size);
}

static void check_registered(int err)
{
	if (err == 0)
		return;
	fprintf(stderr, "sim: mr_register: %s\n", strerror(-err));
	exit(1);
}

void memory_register(struct memory *memory, struct pd *pd, struct rng *rng)
{
	check_registered(mr_create_null(pd, &memory->null.mr));
	memory->null.key = memory->null.mr->key;
	memory->null.iova = rng_next(rng) >> 1;
	for (struct region *region = memory->regions; region != NULL; region = region->next) {
		uint8_t *addr = memory->stack + region->offset;
		unsigned int access = region->access;
		uint64_t iova = (uintptr_t)addr;

		switch (rng_below(rng, 4)) {
		case 0: /* an address of the user's choice, ibv_reg_mr_iova(3) */
			iova = (iova & (PAGE_BYTES - 1)) + rng_below(rng, 1ull << 40) * PAGE_BYTES;
			break;
		case 1: /* at the end of the address space */
			iova = (iova & (PAGE_BYTES - 1)) + ~0ull -
			       ((uint64_t)region->size + 4 * PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES +
			       1;
			break;
		case 2:
			/*
			 * Words keep their alignment, because the region's address is a multiple of
			 * 64.
			 */
			access |= IBV_ACCESS_ZERO_BASED;
			iova = 0;
			break;
		default:
			break;
		}
		if (pd->pager != NULL)
			access |= IBV_ACCESS_ON_DEMAND;
		check_registered(mr_register(pd, addr, region->size, iova, access, &region->mr));
		region->iova = region->mr->iova;
		region->key = region->mr->key;
	}
}

void memory_deregister(struct memory *memory)
{
	mr_deregister(memory->null.mr);
	for (struct region *region = memory->regions; region != NULL; region = region->next) {
		if (region->mr != NULL)
			mr_deregister(region->mr);
		region->mr = NULL;
	}
}

void memory_clear(struct memory *memory)
{
	while (memory->regions != NULL) {
		struct region *region = memory->regions;

		memory->regions = region->next;
		free(region);
	}
	memory->size = 0;
}

void memory_fini(struct memory *memory)
{
	memory_clear(memory);
	memory_unmap(memory);
	*memory = (struct memory){0};
}

uint8_t *span_actual(const struct span *span)
{
	return span->region->memory->actual + span->region->offset + span->offset;
}

uint8_t *span_expected(const struct span *span)
{
	return span->region->memory->expected + span->region->offset + span->offset;
}

static bool has_bytes(const struct span *span)
{
	return span->len > 0 && !span->region->is_null;
}

static void load(const struct span *span, uint8_t *(*at)(const struct span *), uint8_t *to)
{
	if (has_bytes(span))
		memcpy(to, at(span), span->len);
	else
		memset(to, 0, span->len);
}

void span_load_actual(const struct span *span, uint8_t *to)
{
	load(span, span_actual, to);
}

void span_load_expected(const struct span *span, uint8_t *to)
{
	load(span, span_expected, to);
}

void span_store_expected(const struct span *span, const uint8_t *from, uint32_t len)
{
	if (has_bytes(span))
		memcpy(span_expected(span), from, len);
}

uint64_t span_iova(const struct span *span)
{
	return span->region->iova + span->offset;
}

uint32_t span_key(const struct span *span)
{
	return span->region->key;
}

struct span span_part(const struct span *span, uint32_t offset, uint32_t len)
{
	return (struct span){.region = span->region, .offset = span->offset + offset, .len = len};
}

void span_forgive(const struct span *span)
{
	if (has_bytes(span))
		memcpy(span_expected(span), span_actual(span), span->len);
}

static int64_t compare(const uint8_t *a, const uint8_t *b, size_t len)
{
	if (memcmp(a, b, len) == 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (a[i] != b[i])
			return (int64_t)i;
	}
	return -1;
}

int64_t span_compare(const struct span *span)
{
	if (!has_bytes(span))
		return -1;
	return compare(span_actual(span), span_expected(span), span->len);
}

int64_t memory_compare(const struct memory *memory)
{
	return compare(memory->actual, memory->expected, memory->size);
}
