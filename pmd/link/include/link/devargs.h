/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK device arguments as users write them: "net_memif0,role=server", "0000:00:04.0,key=value". */
#ifndef LINK_DEVARGS_H
#define LINK_DEVARGS_H

#include <stdbool.h>
#include <stddef.h>

#define DEVARGS_NAME_MAX 64
#define DEVARGS_TEXT_MAX 1024

enum devargs_bus {
	DEVARGS_PCI,
	DEVARGS_VDEV,
	DEVARGS_OTHER, /* "bus:name": EAL's to understand */
};

/* All functions: one thread at a time on one struct. */
struct devargs {
	enum devargs_bus bus;
	char name[DEVARGS_NAME_MAX]; /* without the bus */
	char args[DEVARGS_TEXT_MAX]; /* "key=value,...", or "" */
};

/** Parse. 0, or -EINVAL (logged) where it is no device's name. */
int devargs_parse(const char *text, struct devargs *devargs);

/** Whether the device is of a driver of virtual devices: its name is the driver's and a number. */
bool devargs_is(const struct devargs *devargs, const char *driver);

/** Copy an argument's value; false where it is not there or does not fit. */
bool devargs_get(const struct devargs *devargs, const char *key, char *value, size_t size);

/** Return true if there is an argument that is not among those `known`; its name is in `key` then.
 */
bool devargs_find_other(const struct devargs *devargs, const char *const *known, size_t count,
			char *key, size_t size);

/** Read an argument's value, a decimal number; where it is not there, `number` stays. 0, or -EINVAL
 * (logged) where it is none. */
int devargs_get_number(const struct devargs *devargs, const char *key, unsigned long *number);

/** Add an argument unless the user gave it. 0 or -ENOSPC. */
int devargs_default(struct devargs *devargs, const char *key, const char *value);

#endif
