/* SPDX-License-Identifier: BSD-3-Clause */
/* What congestion control of a queue pair needs of its device. */
#include "device_cc.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"

int device_prepare_cc(struct device *device, enum cc_kind kind)
{
	struct cc_paths *paths;

	if (!cc_ops(kind)->times || device->cc_paths)
		return 0;
	paths = calloc(1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	/* Release: a thread that sees the pointer sees the zeros behind it. */
	__atomic_store_n(&device->cc_paths, paths, __ATOMIC_RELEASE);
	return 0;
}

struct cc_attr device_cc_of(const struct device *device, enum cc_kind kind)
{
	return (struct cc_attr){.kind = kind,
				.link_mbps = device->config.link_mbps,
				.paths = __atomic_load_n(&device->cc_paths, __ATOMIC_ACQUIRE),
				.params = &device->cc_params};
}

struct cc_attr device_cc(const struct device *device)
{
	/* Acquire: pairs with the store of device_change_cc, which has made the paths before. */
	return device_cc_of(device, __atomic_load_n(&device->config.cc, __ATOMIC_ACQUIRE));
}
