/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private symbols of rdma-core's library in the versions of releases later than 44, where
 * private.c has those of 44. A version may hold more names than that release has. Nothing here may
 * include verbs.h, whose later releases declare some of these names.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
