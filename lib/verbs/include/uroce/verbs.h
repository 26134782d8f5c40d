/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions in addition to infiniband/verbs.h: the uses of memory that a parent domain's
 * allocator provides. */
#ifndef UROCE_VERBS_H
#define UROCE_VERBS_H

#include <stdint.h>

/*
 * Our driver id, in the place of the kernel's enum rdma_driver_id ("uroc"; the kernel counts from
 * 0): the upper 32 bits of an allocator's resource_type (ibv_alloc_parent_domain(3)).
 */
#define UROCE_DRIVER_ID UINT32_C(0x75726f63)

/* The lower 32 bits: the use of the memory. Each queue has one piece. */
enum uroce_resource {
	UROCE_RESOURCE_SEND_QUEUE = 1,
	UROCE_RESOURCE_RECV_QUEUE = 2,
	UROCE_RESOURCE_SHARED_RECV_QUEUE = 3,
	UROCE_RESOURCE_COMPLETION_QUEUE = 4,
};

/** Return the resource_type of a piece of memory. MT-safe. */
static inline uint64_t uroce_resource_type(enum uroce_resource resource)
{
	return (uint64_t)UROCE_DRIVER_ID << 32 | (uint32_t)resource;
}

/*
 * When the callbacks are called, and with what:
 *
 * - alloc: by the thread that calls ibv_create_qp (send queue, then receive queue; a queue without
 *   entries has no memory), ibv_create_srq or ibv_create_cq_ex; and, for queues that were created
 *   with the parent domain, ibv_resize_cq and ibv_modify_srq with IBV_SRQ_MAX_WR. Sizes are in
 *   bytes. The alignment is that of a cache line. If alloc returns NULL, or memory that is not
 *   aligned so (which is freed again), the call fails with ENOMEM. The memory need not be cleared.
 *
 * - free: with the same resource_type, once for each piece that alloc returned (never for
 *   IBV_ALLOCATOR_USE_DEFAULT), when its queue is destroyed or has moved to other memory, or when
 *   the call that asked for it fails. Nothing accesses the memory any more.
 *
 * No lock is held meanwhile, and the device continues to run: callbacks may call verbs.
 */

#endif
