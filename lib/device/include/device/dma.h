/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that an engine may send from their place: those whose pages are huge, and so stay where
 * they are. */
#ifndef DEVICE_DMA_H
#define DEVICE_DMA_H

struct device;
struct mr;

/** A region is new, or was given other memory: let the engine map it, if it is huge pages. Engine's
 * lock. */
void device_map(struct device *device, struct mr *mr);

/**
 * A region goes, or will be given other memory: on return the port reads nothing of it any more.
 * Engine's lock. Before mr_deregister, and where that fails device_map again.
 */
void device_unmap(struct device *device, struct mr *mr);

#endif
