/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Symbols of rdma-core's library that its drivers use (private_names.def). No driver is ever asked
 * to open a device here, so each of these functions only returns an error.
 *
 * They are declared without parameters, because no header declares them; a caller's arguments are
 * ignored.
 */
#include "private.h"
#include "verbs_internal.h"

bool verbs_allow_disassociate_destroy;

#define PRIVATE_ERRNO(name)        \
	int name(void);            \
	int name(void)             \
	{                          \
		return EOPNOTSUPP; \
	}
#define PRIVATE_NULL(name)                     \
	void *name(void);                      \
	void *name(void)                       \
	{                                      \
		return face_null(-EOPNOTSUPP); \
	}
#define PRIVATE_NOTHING(name) \
	void name(void);      \
	void name(void)       \
	{                     \
	}

#include "private_names.def"

/* Drivers' constructors call this one when they are loaded. */
PRIVATE_NOTHING(verbs_register_driver_34)

int ibv_cmd_poll_cq(void);
unsigned int __ioctl_final_num_attrs(void);

/* Return a negative value: others are a number of completions. */
int ibv_cmd_poll_cq(void)
{
	return -EOPNOTSUPP;
}

/* Return the number of attributes of an ioctl command, which execute_ioctl would use. */
unsigned int __ioctl_final_num_attrs(void)
{
	return 0;
}
