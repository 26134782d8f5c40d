/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a host's queues: filled with random bytes when it is allocated, and when it is
 * freed. */
#include "rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "device/device.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "sim.h"

#define GROWTH_MAX 4 /* limit of the size, as a multiple of the first one */

/* The header of each piece, for freeing it. */
struct piece {
	size_t bytes;
	enum ring_kind kind;
} __rte_cache_aligned;

static int give(void *user, size_t bytes, size_t alignment, enum ring_kind kind, void **memory)
{
	struct host *host = user;
	struct piece *piece;

	sim_check(host->sim, alignment <= sizeof(*piece), "a ring aligned to %zu bytes", alignment);
	if (rng_chance(&host->rings.rng, 100000))
		return 0; /* use the heap instead */
	piece = aligned_alloc(sizeof(*piece), sizeof(*piece) + RTE_ALIGN(bytes, sizeof(*piece)));
	sim_check(host->sim, piece != NULL, "out of memory");
	*piece = (struct piece){.bytes = bytes, .kind = kind};
	memset(piece + 1, 0xa5, bytes);
	host->rings.pieces++;
	*memory = piece + 1;
	return 0;
}

static void take_back(void *user, void *memory, enum ring_kind kind)
{
	struct piece *piece = (struct piece *)memory - 1;
	struct host *host = user;

	sim_check(host->sim, piece->kind == kind, "memory of kind %d is freed as kind %d",
		  (int)piece->kind, (int)kind);
	memset(memory, 0xdd, piece->bytes);
	free(piece);
	host->rings.pieces--;
}

void rings_start(struct host *host, uint32_t cqe)
{
	struct rings *rings = &host->rings;

	*rings = (struct rings){
		.rng = rng_fork(host->sim->seed, 400 + (uint64_t)host->number),
		.allocator = {.alloc = give, .free = take_back, .user = host},
		.cqe = cqe,
	};
	if (rng_chance(&rings->rng, 500000))
		rings->domain.allocator = &rings->allocator;
	/* Return true: there is one thread. */
	rings->domain.single_threaded = rng_chance(&rings->rng, 500000);
	if (rng_chance(&rings->rng, 300000))
		rings->change_ppm = (uint32_t)rng_range(&rings->rng, 1000, 50000);
}

void rings_stop(struct host *host)
{
	sim_check(host->sim, host->rings.pieces == 0, "host %d: %llu pieces of memory are left",
		  host->number, (unsigned long long)host->rings.pieces);
}

static uint32_t other_size(struct rings *rings, uint32_t least)
{
	return (uint32_t)rng_range(&rings->rng, least, GROWTH_MAX * (uint64_t)least);
}

static void change_cq(struct host *host, struct cq *cq)
{
	const struct device *device = host->device;
	const uint32_t waiting = cq->prod - cq->cons;
	struct cq_ring ring;
	bool fits;

	sim_check(host->sim,
		  cq_make_ring(cq, other_size(&host->rings, host->rings.cqe), &ring) == 0,
		  "cq_make_ring");
	fits = waiting <= ring.mask + 1;
	device_lock(device);
	sim_check(host->sim, cq_change_ring(cq, &ring) == (fits ? 0 : -EINVAL),
		  "host %d: %u completions in a queue of %u", host->number, waiting, ring.mask + 1);
	device_unlock(device);
	ring_free(&ring.memory);
}

static void change_pool(struct host *host, struct pool *pool)
{
	const struct device *device = host->device;
	struct srq *srq = pool->srq;
	const uint32_t waiting = srq->rq.prod - srq->rq.cons;
	struct rq_ring ring;
	bool fits;

	sim_check(host->sim,
		  rq_make_ring(&srq->rq, other_size(&host->rings, pool->max_wr), &ring) == 0,
		  "rq_make_ring");
	fits = waiting <= ring.slots && srq_limit(srq) <= ring.slots;
	device_lock(device);
	sim_check(host->sim, srq_change_ring(srq, &ring) == (fits ? 0 : -EINVAL),
		  "host %d: %u requests in a queue of %u", host->number, waiting, ring.slots);
	device_unlock(device);
	ring_free(&ring.memory);
}

void rings_change(struct host *host)
{
	struct rings *rings = &host->rings;
	struct pool *pool;

	if (rings->change_ppm == 0 || !rng_chance(&rings->rng, rings->change_ppm))
		return;
	pool = &host->pools[rng_below(&rings->rng, POOLS)];
	if (pool->in_use && rng_chance(&rings->rng, 500000))
		change_pool(host, pool);
	else
		change_cq(host, host->cqs[rng_below(&rings->rng, host->cq_count)].cq);
}
