/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsupported calls: each returns EOPNOTSUPP. */
#include "later.h"
#include "verbs_internal.h"

/*
 * Calls of releases of rdma-core later than 44, by their symbols, because later releases of verbs.h
 * declare them with types that this one lacks: handles for steering of DMA, which this device does
 * not do; dma-bufs of device memory, which is memory of the process; counters of completions.
 */
#define LATER_ERRNO(symbol)                          \
	int later_##symbol(void) LATER_CALL(symbol); \
	int later_##symbol(void)                     \
	{                                            \
		return face_errno(-EOPNOTSUPP);      \
	}
#define LATER_MINUS_ONE(symbol)                      \
	int later_##symbol(void) LATER_CALL(symbol); \
	int later_##symbol(void)                     \
	{                                            \
		return face_minus_one(-EOPNOTSUPP);  \
	}
#define LATER_NULL(symbol)                             \
	void *later_##symbol(void) LATER_CALL(symbol); \
	void *later_##symbol(void)                     \
	{                                              \
		return face_null(-EOPNOTSUPP);         \
	}

LATER_NULL(ibv_alloc_dmah)
LATER_ERRNO(ibv_dealloc_dmah)
LATER_MINUS_ONE(ibv_dm_export_dmabuf_fd)
LATER_ERRNO(_ibv_query_comp_cntr_caps)
LATER_NULL(ibv_create_comp_cntr)
LATER_ERRNO(ibv_destroy_comp_cntr)
LATER_ERRNO(ibv_inc_comp_cntr)
LATER_ERRNO(ibv_inc_err_comp_cntr)
LATER_ERRNO(ibv_qp_attach_comp_cntr)
LATER_ERRNO(ibv_read_comp_cntr)
LATER_ERRNO(ibv_read_err_comp_cntr)
LATER_ERRNO(ibv_set_comp_cntr)
LATER_ERRNO(ibv_set_err_comp_cntr)
