/* SPDX-License-Identifier: BSD-3-Clause */
/* What congestion control of a queue pair needs of its device and engine. */
#include "device_cc.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"

static int prepare_engine(struct device_engine *engine)
{
	struct cc_paths *paths;

	if (engine->cc_paths)
		return 0;
	paths = calloc(1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	/* Release: a thread that sees the pointer sees the zeros behind it. */
	__atomic_store_n(&engine->cc_paths, paths, __ATOMIC_RELEASE);
	return 0;
}

int device_prepare_cc(struct device *device, enum cc_kind kind)
{
	int rc = 0;

	for (uint32_t i = 0; i < device->engine_count && cc_ops(kind)->times && rc == 0; i++)
		rc = prepare_engine(device->engines[i]);
	return rc;
}

struct cc_attr device_cc_of(const struct device_engine *engine, enum cc_kind kind)
{
	return (struct cc_attr){.kind = kind,
				.link_mbps = engine->device->config.link_mbps,
				.paths = __atomic_load_n(&engine->cc_paths, __ATOMIC_ACQUIRE),
				.params = &engine->device->cc_params};
}

enum cc_kind device_cc_kind(const struct device *device)
{
	/* Acquire: pairs with the store of device_change_cc, which has made the paths before. */
	return __atomic_load_n(&device->config.cc, __ATOMIC_ACQUIRE);
}

struct cc_attr device_engine_cc(const struct device_engine *engine)
{
	return device_cc_of(engine, device_cc_kind(engine->device));
}
