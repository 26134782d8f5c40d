/* SPDX-License-Identifier: BSD-3-Clause */
/* How many objects of a kind a device may have: what ibv_query_device(3) tells is kept. */
#ifndef DEVICE_QUOTA_H
#define DEVICE_QUOTA_H

#include <stdint.h>

struct device;

/* Queue pairs have a table of their own, which is full when they are. Regions and windows share
 * one. */
enum device_quota {
	DEVICE_QUOTA_PD,
	DEVICE_QUOTA_CQ,
	DEVICE_QUOTA_AH,
	DEVICE_QUOTA_MR,
	DEVICE_QUOTA_MW,
	DEVICE_QUOTA_SRQ,
	DEVICE_QUOTA_KINDS,
};

/** Count one more. MT-safe. 0, or -ENOMEM where there are as many as there may be. */
int quota_take(struct device *device, enum device_quota kind);

/** Count one less; nothing where there is none. MT-safe. */
void quota_give(struct device *device, enum device_quota kind);

/** Count bytes of registered memory, held against the device's configuration. MT-safe. 0 or
 * -ENOMEM. */
int quota_take_bytes(struct device *device, uint64_t bytes);

/** Count them out, as far as there are so many. MT-safe. */
void quota_give_bytes(struct device *device, uint64_t bytes);

#endif
