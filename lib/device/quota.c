/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of a device's objects, held against its limits. */
#include "device/quota.h"

#include <errno.h>

#include "device/device.h"
#include "device/limits.h"

static const uint32_t limits[DEVICE_QUOTA_KINDS] = {
	[DEVICE_QUOTA_PD] = DEVICE_MAX_PD,
	[DEVICE_QUOTA_CQ] = DEVICE_MAX_CQ,
	[DEVICE_QUOTA_AH] = DEVICE_MAX_AH,
	[DEVICE_QUOTA_MR] = DEVICE_MAX_MR,
	[DEVICE_QUOTA_MW] = DEVICE_MAX_MW,
	[DEVICE_QUOTA_SRQ] = DEVICE_MAX_SRQ,
};

int quota_take(struct device *device, enum device_quota kind)
{
	if (__atomic_add_fetch(&device->quota[kind], 1, __ATOMIC_RELAXED) <= limits[kind])
		return 0;
	quota_give(device, kind);
	return -ENOMEM;
}

void quota_give(struct device *device, enum device_quota kind)
{
	__atomic_sub_fetch(&device->quota[kind], 1, __ATOMIC_RELAXED);
}
