/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parent domain (ibv_alloc_parent_domain(3)) with an allocator and a thread domain. The rings of
 * all queues are in one memory area that the program provides, and no queue takes a lock.
 *
 *     uroce-run --port net_null0 --ip 10.0.0.1/24 -- parent_domain
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "loop.h"
#include "uroce/verbs.h"

#define ARENA_BYTES ((size_t)1 << 20)
#define MESSAGES    1000

/* An allocator that hands out memory from the start of an area, and never reuses a piece. */
struct arena {
	uint8_t *base;
	size_t used;
	int pieces; /* pieces allocated and not freed */
};

static uint8_t source[4096], target[4096];

static const char *name_of(enum uroce_resource resource)
{
	switch (resource) {
	case UROCE_RESOURCE_SEND_QUEUE:
		return "a send queue";
	case UROCE_RESOURCE_RECV_QUEUE:
		return "a receive queue";
	case UROCE_RESOURCE_SHARED_RECV_QUEUE:
		return "a shared receive queue";
	case UROCE_RESOURCE_COMPLETION_QUEUE:
		return "a completion queue";
	}
	return "something newer";
}

/* Allocate memory for a ring. If the result is NULL, the call that needs the ring fails. The memory
 * of other drivers' resources comes from the default allocator. */
static void *arena_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
			 uint64_t resource_type)
{
	struct arena *arena = pd_context;
	const size_t start = (arena->used + alignment - 1) / alignment * alignment;

	(void)pd;
	if (resource_type >> 32 != UROCE_DRIVER_ID)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (start > ARENA_BYTES || size > ARENA_BYTES - start)
		return NULL;
	printf("%6zu bytes at %6zu for %s\n", size, start, name_of((uint32_t)resource_type));
	arena->used = start + size;
	arena->pieces++;
	return arena->base + start;
}

static void arena_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type)
{
	(void)pd, (void)ptr, (void)resource_type;
	((struct arena *)pd_context)->pieces--;
}

/* Map the area. MADV_DONTFORK excludes it from fork(), as the manual page requires. */
static void arena_open(struct arena *arena)
{
	arena->base =
		mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena->base == MAP_FAILED || madvise(arena->base, ARENA_BYTES, MADV_DONTFORK) != 0)
		loop_fail("memory for the rings");
}

static struct ibv_cq *create_cq(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(parent->context, &attr);

	if (!cq)
		loop_fail("ibv_create_cq_ex");
	return ibv_cq_ex_to_cq(cq);
}

static void talk(struct ibv_pd *parent)
{
	struct loop loop = {.cq = create_cq(parent)};
	struct ibv_mr *from = ibv_reg_mr(parent, source, sizeof(source), 0);
	struct ibv_mr *to = ibv_reg_mr(parent, target, sizeof(target), IBV_ACCESS_LOCAL_WRITE);

	if (!from || !to)
		loop_fail("ibv_reg_mr");
	loop_connect(&loop, parent);
	for (int i = 0; i < MESSAGES; i++) {
		struct ibv_sge out = {(uintptr_t)source, sizeof(source), from->lkey};
		struct ibv_sge in = {(uintptr_t)target, sizeof(target), to->lkey};

		memset(source, i, sizeof(source));
		loop_recv(loop.b, &in, 1);
		loop_send(loop.a, IBV_WR_SEND, &out, 1, NULL, 0);
		loop_wait(&loop, 2);
		errno = EBADMSG;
		if (memcmp(source, target, sizeof(source)) != 0)
			loop_fail("message");
	}
	printf("%d messages went through these rings\n", MESSAGES);
	loop_disconnect(&loop);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
}

int main(void)
{
	struct arena arena = {.used = 0};
	struct ibv_context *context = loop_open();
	struct ibv_pd *pd = ibv_alloc_pd(context), *parent;
	struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){.comp_mask = 0});
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = arena_alloc,
		.free = arena_free,
		.pd_context = &arena,
	};

	if (!pd || !td)
		loop_fail("ibv_alloc_pd and ibv_alloc_td");
	arena_open(&arena);
	parent = ibv_alloc_parent_domain(context, &attr);
	if (!parent)
		loop_fail("ibv_alloc_parent_domain");
	talk(parent);
	errno = ibv_dealloc_pd(parent);
	if (errno != 0 || ibv_dealloc_td(td) != 0 || ibv_dealloc_pd(pd) != 0 || arena.pieces != 0)
		loop_fail("freeing the domains and their memory");
	return ibv_close_device(context);
}
