/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices of this process, which the provider starts on first need, or one by one before. */
#include "device/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#define REGISTRY_DEVICES_MAX 16

static const struct device_provider *registry_provider;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
/* under registry_lock; constant once started */
static struct device *registry_list[REGISTRY_DEVICES_MAX];
static bool registry_started;
static __thread bool registry_starts; /* this thread is in the provider's start */
static int registry_result;	      /* count, or -errno of the only start */

void registry_set_provider(const struct device_provider *provider)
{
	registry_provider = provider;
}

/* Let the provider start devices behind those that are there. Return their number or -errno. */
static int registry_start(void)
{
	int count;

	registry_starts = true;
	count = registry_provider->start(registry_list + registry_result,
					 REGISTRY_DEVICES_MAX - (size_t)registry_result);
	registry_starts = false;
	return count;
}

int registry_devices(struct device *const **devices)
{
	int result;

	*devices = registry_list;
	/* Something that the provider calls asks for devices. There are none yet, and this thread
	 * has the lock. */
	if (registry_starts)
		return 0;
	pthread_mutex_lock(&registry_lock);
	if (!registry_started && registry_provider) {
		if (registry_result == 0)
			registry_result = registry_start();
		/* Do not try again after a failure: it would only print the same message again. */
		registry_started = true;
	}
	result = registry_result;
	pthread_mutex_unlock(&registry_lock);
	return result;
}

int registry_add(void)
{
	int count = -EBUSY;

	pthread_mutex_lock(&registry_lock);
	if (!registry_started)
		count = registry_result < REGISTRY_DEVICES_MAX ? registry_start() : -ENOSPC;
	if (count > 0)
		registry_result += count;
	pthread_mutex_unlock(&registry_lock);
	return count;
}

void registry_forget(void)
{
	registry_started = false;
	registry_result = 0;
	/* Make it anew: another thread of the parent may have held it. */
	registry_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
