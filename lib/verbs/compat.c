/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second, older versions of symbols. IBVERBS_1.0 had another layout of every object (before
 * 2007), and ibv_register_driver was for drivers of that time. No program of today binds to them;
 * one that does gets an error.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define OLD(name, version, type, ...)                        \
	type old_##name(void);                               \
	__asm__(".symver old_" #name "," #name "@" version); \
	type old_##name(void)                                \
	{                                                    \
		__VA_ARGS__;                                 \
	}

#define OLD_ERRNO(name)	  OLD(name, "IBVERBS_1.0", int, return errno = EOPNOTSUPP)
#define OLD_MINUS_1(name) OLD(name, "IBVERBS_1.0", int, errno = EOPNOTSUPP; return -1)
#define OLD_NULL(name)	  OLD(name, "IBVERBS_1.0", void *, errno = EOPNOTSUPP; return NULL)
#define OLD_NOTHING(name) OLD(name, "IBVERBS_1.0", void, return )

OLD_NULL(ibv_get_device_list)
OLD_NOTHING(ibv_free_device_list)
OLD_NULL(ibv_get_device_name)
OLD(ibv_get_device_guid, "IBVERBS_1.0", uint64_t, return 0)
OLD_NULL(ibv_open_device)
OLD_MINUS_1(ibv_close_device)
OLD_MINUS_1(ibv_get_async_event)
OLD_NOTHING(ibv_ack_async_event)
OLD_ERRNO(ibv_query_device)
OLD_ERRNO(ibv_query_port)
OLD_MINUS_1(ibv_query_gid)
OLD_MINUS_1(ibv_query_pkey)
OLD_NULL(ibv_alloc_pd)
OLD_ERRNO(ibv_dealloc_pd)
OLD_NULL(ibv_reg_mr)
OLD_ERRNO(ibv_dereg_mr)
OLD_NULL(ibv_create_cq)
OLD_ERRNO(ibv_resize_cq)
OLD_ERRNO(ibv_destroy_cq)
OLD_MINUS_1(ibv_get_cq_event)
OLD_NOTHING(ibv_ack_cq_events)
OLD_NULL(ibv_create_srq)
OLD_ERRNO(ibv_modify_srq)
OLD_ERRNO(ibv_query_srq)
OLD_ERRNO(ibv_destroy_srq)
OLD_NULL(ibv_create_qp)
OLD_ERRNO(ibv_modify_qp)
OLD_ERRNO(ibv_query_qp)
OLD_ERRNO(ibv_destroy_qp)
OLD_NULL(ibv_create_ah)
OLD_ERRNO(ibv_destroy_ah)
OLD_ERRNO(ibv_attach_mcast)
OLD_ERRNO(ibv_detach_mcast)
OLD(ibv_register_driver, "IBVERBS_1.1", void, return )
