/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK device arguments as users write them: "net_memif0,role=server", "0000:00:04.0,key=value".
 *
 * The arguments are parsed as rte_kvargs does it in drivers, with lists in brackets. There is one
 * difference: a value may contain '=', because the name and the secret of a memif socket may;
 * rte_kvargs would treat that '=' as the end of another key. rte_devargs_parse is not used for the
 * device's name, because it knows loaded drivers only: EAL loads them later, and uroce-run never
 * does.
 */
#ifndef CONFIG_DEVARGS_H
#define CONFIG_DEVARGS_H

#include <stdbool.h>
#include <stddef.h>

#define DEVARGS_NAME_MAX 64
#define DEVARGS_TEXT_MAX 1024

enum devargs_bus {
	DEVARGS_NONE, /* there are no arguments: another process has the device */
	DEVARGS_PCI,
	DEVARGS_VDEV,
	DEVARGS_OTHER, /* "bus:name", which EAL interprets */
};

/* All functions: one thread at a time on one struct. */
struct devargs {
	enum devargs_bus bus;
	char name[DEVARGS_NAME_MAX]; /* without the bus; a PCI address has its domain */
	char args[DEVARGS_TEXT_MAX]; /* "key=value,...", or "" */
};

/** Parse device arguments. 0, or -EINVAL with `error` if there is no device name, or the form is
 * wrong. */
int devargs_read(const char *text, struct devargs *devargs, char *error, size_t error_size);

/** Do the same, with the error logged. 0 or -EINVAL. */
int devargs_parse(const char *text, struct devargs *devargs);

/** Return true if the device belongs to this driver of virtual devices: its name is the driver's
 * name and a number. */
bool devargs_is(const struct devargs *devargs, const char *driver);

/**
 * Call `each` with all arguments, until it returns a value other than 0.
 *
 * @param each
 *   Its `value` is NULL if the argument has none.
 * @return
 *   The last result of `each`.
 */
int devargs_each(const struct devargs *devargs,
		 int (*each)(const char *key, const char *value, void *arg), void *arg);

/** Copy an argument's value; false if the argument is missing, has no value, or does not fit. */
bool devargs_get(const struct devargs *devargs, const char *key, char *value, size_t size);

/** Read an argument's value, a decimal number. If the argument is missing, `number` is unchanged.
 * 0, or -EINVAL (logged) if the value is not a number. */
int devargs_get_number(const struct devargs *devargs, const char *key, unsigned long *number);

/** Add an argument unless the user has given it. 0 or -ENOSPC. */
int devargs_default(struct devargs *devargs, const char *key, const char *value);

#endif
