/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that an engine may send from without a copy: those on huge pages, which stay where they
 * are. */
#ifndef DEVICE_DEVICE_MAP_H
#define DEVICE_DEVICE_MAP_H

struct device;
struct mr;

/** Let the engine map a region that is new or got other memory, if it is on huge pages. Engine's
 * lock. */
void device_map(struct device *device, struct mr *mr);

/**
 * Unmap a region before it is deregistered or gets other memory: on return the port reads nothing
 * of it any more. Engine's lock. Call it before mr_deregister, and device_map again if that fails.
 */
void device_unmap(struct device *device, struct mr *mr);

#endif
