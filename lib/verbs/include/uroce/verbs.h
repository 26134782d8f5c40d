/* SPDX-License-Identifier: BSD-3-Clause */
/* What uroce says beyond infiniband/verbs.h: which memory it asks a parent domain's allocator for.
 */
#ifndef UROCE_VERBS_H
#define UROCE_VERBS_H

#include <stdint.h>

/*
 * Stands where the kernel's drivers have their enum rdma_driver_id ("uroc"; the kernel counts from
 * 0): in the upper 32 bits of an allocator's resource_type (ibv_alloc_parent_domain(3)).
 */
#define UROCE_DRIVER_ID UINT32_C(0x75726f63)

/* The lower 32 bits: what the memory is for. Each queue has one piece. */
enum uroce_resource {
	UROCE_RESOURCE_SEND_QUEUE = 1,
	UROCE_RESOURCE_RECV_QUEUE = 2,
	UROCE_RESOURCE_SHARED_RECV_QUEUE = 3,
	UROCE_RESOURCE_COMPLETION_QUEUE = 4,
};

/** The resource_type of a piece of memory. MT-safe. */
static inline uint64_t uroce_resource_type(enum uroce_resource resource)
{
	return (uint64_t)UROCE_DRIVER_ID << 32 | (uint32_t)resource;
}

/*
 * When the callbacks are called, and with what:
 *
 * - alloc, by the thread that calls ibv_create_qp (send queue, then receive queue; one that is to
 *   hold nothing has no memory), ibv_create_srq, ibv_create_cq_ex, and, for queues that were
 * created with the parent domain, ibv_resize_cq and ibv_modify_srq with IBV_SRQ_MAX_WR. Sizes are
 * in bytes; the alignment is that of a cache line, and memory that is not aligned so is given back,
 * and the call fails with ENOMEM, as with NULL. The memory need not be cleared.
 * - free, with the same resource_type, once for each piece that alloc gave (never for
 *   IBV_ALLOCATOR_USE_DEFAULT): when its queue is destroyed or has moved to other memory, or the
 * call that asked for it fails. Nothing touches the memory any more.
 *
 * No lock is held meanwhile, and the device goes on: callbacks may call verbs.
 */

#endif
