/* SPDX-License-Identifier: BSD-3-Clause */
/* Enforces the limits on a device's objects that ibv_query_device(3) reports. */
#ifndef DEVICE_QUOTA_H
#define DEVICE_QUOTA_H

#include <stdint.h>

struct device;

/* Kinds of objects. Queue pairs are missing, because their table of numbers is the limit. Limits
 * are in device/limits.h. */
enum device_quota {
	DEVICE_QUOTA_PD,
	DEVICE_QUOTA_CQ,
	DEVICE_QUOTA_AH,
	DEVICE_QUOTA_MR,
	DEVICE_QUOTA_MW,
	DEVICE_QUOTA_SRQ,
	DEVICE_QUOTA_COMP_CNTR,
	DEVICE_QUOTA_KINDS,
};

/** Add one object. MT-safe. 0, or -ENOMEM if the limit is reached. */
int quota_take(struct device *device, enum device_quota kind);

/** Remove one object; does nothing at 0. MT-safe. */
void quota_give(struct device *device, enum device_quota kind);

/** Add bytes of registered memory, up to the limit in the device's configuration. MT-safe. 0 or
 * -ENOMEM. */
int quota_take_bytes(struct device *device, uint64_t bytes);

/** Remove bytes, not below 0. MT-safe. */
void quota_give_bytes(struct device *device, uint64_t bytes);

#endif
