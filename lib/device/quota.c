/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts a device's objects, and enforces its limits. */
#include "device/quota.h"

#include <errno.h>

#include "device/device.h"
#include "device/limits.h"

/* clang-format off: one in each line */
static const uint32_t limits[DEVICE_QUOTA_KINDS] = {
	[DEVICE_QUOTA_PD] = DEVICE_MAX_PD,
	[DEVICE_QUOTA_CQ] = DEVICE_MAX_CQ,
	[DEVICE_QUOTA_AH] = DEVICE_MAX_AH,
	[DEVICE_QUOTA_MR] = DEVICE_MAX_MR,
	[DEVICE_QUOTA_MW] = DEVICE_MAX_MW,
	[DEVICE_QUOTA_SRQ] = DEVICE_MAX_SRQ,
	[DEVICE_QUOTA_COMP_CNTR] = DEVICE_MAX_COMP_CNTR,
};
/* clang-format on */

/* Count one object, but never exceed the limit, not even temporarily: another thread would then
 * fail although the quota has room. */
int quota_take(struct device *device, enum device_quota kind)
{
	uint32_t used = __atomic_load_n(&device->quota[kind], __ATOMIC_RELAXED);

	do {
		if (used >= limits[kind])
			return -ENOMEM;
	} while (!__atomic_compare_exchange_n(&device->quota[kind], &used, used + 1, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}

/* Uncount one object, but never go below 0: the count would wrap, and the device would be full for
 * ever. */
void quota_give(struct device *device, enum device_quota kind)
{
	uint32_t used = __atomic_load_n(&device->quota[kind], __ATOMIC_RELAXED);

	do {
		if (used == 0)
			return;
	} while (!__atomic_compare_exchange_n(&device->quota[kind], &used, used - 1, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

int quota_take_bytes(struct device *device, uint64_t bytes)
{
	const uint64_t limit = device->config.mr_limit_bytes;
	uint64_t used = __atomic_load_n(&device->mr_bytes, __ATOMIC_RELAXED);

	do {
		if (limit > 0 && (used > limit || bytes > limit - used))
			return -ENOMEM;
		if (bytes > UINT64_MAX - used)
			return -ENOMEM;
	} while (!__atomic_compare_exchange_n(&device->mr_bytes, &used, used + bytes, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}

void quota_give_bytes(struct device *device, uint64_t bytes)
{
	uint64_t used = __atomic_load_n(&device->mr_bytes, __ATOMIC_RELAXED);
	uint64_t left;

	do
		left = used > bytes ? used - bytes : 0;
	while (!__atomic_compare_exchange_n(&device->mr_bytes, &used, left, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
}
