/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines of a device: what each has to itself, and what is done to all of them. */
#include "device/device_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "device/device.h"
#include "transport/ooo.h"

int device_engine_create(struct device *device, uint32_t number, struct device_engine **created)
{
	struct device_engine *engine = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*engine), RTE_CACHE_LINE_SIZE));

	if (!engine)
		return -ENOMEM;
	memset(engine, 0, sizeof(*engine));
	engine->device = device;
	engine->number = number;
	TAILQ_INIT(&engine->waiting);
	moderator_init(&engine->moderator);
	if (ooo_pool_create(OOO_POOL_PKTS, &engine->ooo) != 0) {
		free(engine);
		return -ENOMEM;
	}
	*created = engine;
	return 0;
}

void device_engine_destroy(struct device_engine *engine)
{
	if (!engine)
		return;
	ooo_pool_destroy(engine->ooo);
	free(engine->cc_paths);
	free(engine);
}

void device_lock(const struct device *device)
{
	/* Always in this order: whoever has the first engine may stop the others. */
	for (uint32_t i = 0; i < device->engine_count; i++)
		device->engines[i]->ops->lock(device->engines[i]->driver);
}

void device_unlock(const struct device *device)
{
	for (uint32_t i = device->engine_count; i-- > 0;)
		device->engines[i]->ops->unlock(device->engines[i]->driver);
}

void device_wait(const struct device *device, uint32_t engines)
{
	for (uint32_t left = engines; left != 0; left &= left - 1)
		device_engine_wait(device->engines[__builtin_ctz(left)]);
}

uint64_t device_counter(const struct device *device, enum counter counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < device->engine_count; i++)
		sum += counters_get(&device->engines[i]->counters, counter);
	return sum;
}

void device_counters(const struct device *device, struct counters *sum)
{
	for (int i = 0; i < COUNTER_COUNT; i++)
		sum->value[i] = device_counter(device, (enum counter)i);
}
