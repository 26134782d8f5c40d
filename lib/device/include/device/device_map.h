/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that an engine may send from without a copy: those of huge pages, which stay where they
 * are. */
#ifndef DEVICE_DEVICE_MAP_H
#define DEVICE_DEVICE_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct device;
struct mr;

/* Functions of a port that reads memory of the program. The first argument is device.dma_user. */
struct device_dma_ops {
	/*
	 * Map memory in huge pages, so that the port can send it without a copy: return the
	 * argument for unmap, or NULL if it must be copied. After unmap the port reads nothing of
	 * the memory. Under lock.
	 */
	void *(*map)(void *user, const void *addr, size_t length);
	void (*unmap)(void *user, void *mapping);
};

/** Return true if the engine may map a region that is new or got other memory: its port reads
 * memory, and the region has huge pages. This may ask the kernel. MT-safe. */
bool device_may_map(const struct device *device, const struct mr *mr);

/** Let the engine map a region for which device_may_map is true. Engine's lock. */
void device_map(struct device *device, struct mr *mr);

/**
 * Unmap a region before it is deregistered or gets other memory: on return the port reads nothing
 * of it any more. Engine's lock. Call it before mr_deregister, and map the region again if that
 * fails.
 */
void device_unmap(struct device *device, struct mr *mr);

#endif
