/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK device arguments as users write them: "net_memif0,role=server", "0000:00:04.0,key=value".
 *
 * The arguments are parsed as rte_kvargs does it in drivers, with lists in brackets. One thing is
 * different: a value may contain '=', because a memif socket's name and secret may; rte_kvargs
 * would take the '=' for the end of another key. The device's name is not parsed by
 * rte_devargs_parse: that function knows loaded drivers only, and EAL loads them later, in
 * uroce-run never.
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
	DEVARGS_OTHER, /* "bus:name": EAL's to understand */
};

/* All functions: one thread at a time on one struct. */
struct devargs {
	enum devargs_bus bus;
	char name[DEVARGS_NAME_MAX]; /* without the bus; a PCI address has its domain */
	char args[DEVARGS_TEXT_MAX]; /* "key=value,...", or "" */
};

/** Parse. 0, or -EINVAL with `error` where it is no device's name, or not of the form. */
int devargs_read(const char *text, struct devargs *devargs, char *error, size_t error_size);

/** The same. 0, or -EINVAL (logged). */
int devargs_parse(const char *text, struct devargs *devargs);

/** Return true if the device is of a driver of virtual devices: its name is the driver's and a
 * number. */
bool devargs_is(const struct devargs *devargs, const char *driver);

/**
 * Call `each` with all arguments, until it returns something else than 0.
 *
 * @param each
 *   Its `value` is NULL where the argument has none.
 * @return
 *   What `each` returned last.
 */
int devargs_each(const struct devargs *devargs,
		 int (*each)(const char *key, const char *value, void *arg), void *arg);

/** Copy an argument's value; false where it is not there, has none, or does not fit. */
bool devargs_get(const struct devargs *devargs, const char *key, char *value, size_t size);

/** Read an argument's value, a decimal number; where it is not there, `number` stays. 0, or -EINVAL
 * (logged) where it is none. */
int devargs_get_number(const struct devargs *devargs, const char *key, unsigned long *number);

/** Add an argument unless the user gave it. 0 or -ENOSPC. */
int devargs_default(struct devargs *devargs, const char *key, const char *value);

#endif
