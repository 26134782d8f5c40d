/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols in other versions than those of rdma-core 44 (libibverbs.map). Nothing here may include
 * verbs.h, whose later releases declare some of these names. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The second, older versions of symbols. IBVERBS_1.0 had another layout of every object (before
 * 2007), and ibv_register_driver was for drivers of that time. No program of today binds to them;
 * one that does gets an error.
 */
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

/*
 * The private symbols of rdma-core's library in the versions of releases later than 44, where
 * private.c has those of 44. A version may hold more names than that release has.
 */
static int answer_errno(void)
{
	return EOPNOTSUPP;
}

static void *answer_null(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static void answer_nothing(void)
{
}

/* Export an object of this file under another name and version. */
#define EXPORT(object, name, release)                                               \
	extern __typeof__(object) name##_##release __attribute__((alias(#object))); \
	__asm__(".symver " #name "_" #release "," #name "@IBVERBS_PRIVATE_" #release);

#define EXPORT_ALL(object, name) \
	EXPORT(object, name, 57) \
	EXPORT(object, name, 59) \
	EXPORT(object, name, 64) \
	EXPORT(object, name, 65)

#define PRIVATE_ERRNO(name)   EXPORT_ALL(answer_errno, name)
#define PRIVATE_NULL(name)    EXPORT_ALL(answer_null, name)
#define PRIVATE_NOTHING(name) EXPORT_ALL(answer_nothing, name)
#include "private_names.def"

/* Exported under the private versions of later releases, too, although it does something. */
int ibv_query_gid_type(void *context, uint8_t port_num, unsigned int index, int *type);

static int answer_gid_type(void *context, uint8_t port_num, unsigned int index, int *type)
{
	return ibv_query_gid_type(context, port_num, index, type);
}

EXPORT_ALL(answer_gid_type, ibv_query_gid_type)

static int answer_minus_one(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

EXPORT_ALL(answer_minus_one, ibv_read_ibdev_sysfs_file)

static int answer_no_completions(void)
{
	return -EOPNOTSUPP;
}

EXPORT_ALL(answer_no_completions, ibv_cmd_poll_cq)

static unsigned int answer_0(void)
{
	return 0;
}

EXPORT_ALL(answer_0, __ioctl_final_num_attrs)

static bool disassociates;

EXPORT_ALL(disassociates, verbs_allow_disassociate_destroy)

const char *ibv_wr_opcode_str(unsigned int opcode);

static const char *answer_opcode(unsigned int opcode)
{
	return ibv_wr_opcode_str(opcode);
}

EXPORT_ALL(answer_opcode, ibv_wr_opcode_str)

EXPORT(answer_nothing, verbs_register_driver_57, 57)
EXPORT(answer_nothing, verbs_register_driver_59, 59)
EXPORT(answer_nothing, verbs_register_driver_64, 64)
EXPORT(answer_nothing, verbs_register_driver_65, 65)
