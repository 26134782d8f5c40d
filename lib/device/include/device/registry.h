/* SPDX-License-Identifier: BSD-3-Clause */
/* How the facade gets its devices without knowing who drives them. */
#ifndef DEVICE_REGISTRY_H
#define DEVICE_REGISTRY_H

#include <stddef.h>

struct device;

struct device_provider {
	/*
	 * Start what the process was configured to use, on first need. Called once, and again in a
	 * child of fork(), under the registry's lock. Fills at most `max` devices, which live until
	 * the process ends. Returns how many, or -errno (already logged).
	 */
	int (*start)(struct device **devices, size_t max);
};

/** Say who brings devices; called by a constructor before main. Not MT-safe. */
void registry_set_provider(const struct device_provider *provider);

/** The devices, started on the first call. MT-safe. Count (0 without a provider), or -errno. */
int registry_devices(struct device *const **devices);

/** In a child of fork(): the devices are the parent's. The next call of registry_devices starts
 * others. Not MT-safe. */
void registry_forget(void);

#endif
