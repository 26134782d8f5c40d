/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry of devices: it lets the facade get devices without knowing their driver. */
#ifndef DEVICE_REGISTRY_H
#define DEVICE_REGISTRY_H

#include <stddef.h>

struct device;

struct device_provider {
	/*
	 * Start the devices that the process is configured to use. Called under the registry's
	 * lock: once, on first need, and again in a child of fork(); or by registry_add. Fills at
	 * most `max` devices, which live until the process ends. Returns their number, or -errno
	 * (already logged).
	 */
	int (*start)(struct device **devices, size_t max);
};

/** Register the provider of devices; called by a constructor before main. Not MT-safe. */
void registry_set_provider(const struct device_provider *provider);

/** Return the devices, and start them at the first call. MT-safe. Count (0 without a provider, and
 * in a call from the provider's own start), or -errno. */
int registry_devices(struct device *const **devices);

/** Start further devices, before the first call of registry_devices, which then starts none.
 * MT-safe. Returns their number; -EBUSY after that call; -ENOSPC; or the provider's -errno, after
 * which nothing has changed. */
int registry_add(void);

/** Forget the devices in a child of fork(), because they are the parent's. The next call of
 * registry_devices starts new ones. Not MT-safe. */
void registry_forget(void);

#endif
