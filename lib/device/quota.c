/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts a device's objects, and enforces its limits. */
#include "device/quota.h"

#include <errno.h>

#include "device/device.h"
#include "device/limits.h"
#include "like/like.h"

static uint64_t limit_of(enum device_quota kind)
{
	switch (kind) {
	case DEVICE_QUOTA_PD:
		return like_most(LIKE_max_pd, DEVICE_MAX_PD);
	case DEVICE_QUOTA_CQ:
		return like_most(LIKE_max_cq, DEVICE_MAX_CQ);
	case DEVICE_QUOTA_AH:
		return like_most(LIKE_max_ah, DEVICE_MAX_AH);
	case DEVICE_QUOTA_MR:
		return like_most(LIKE_max_mr, DEVICE_MAX_MR);
	case DEVICE_QUOTA_MW:
		return like_most(LIKE_max_mw, DEVICE_MAX_MW);
	case DEVICE_QUOTA_SRQ:
		return like_most(LIKE_max_srq, DEVICE_MAX_SRQ);
	case DEVICE_QUOTA_COMP_CNTR:
		return DEVICE_MAX_COMP_CNTR;
	case DEVICE_QUOTA_KINDS:
		break;
	}
	return 0;
}

/* Count one object, but never exceed the limit, not even temporarily: another thread would then
 * fail although the quota has room. */
int quota_take(struct device *device, enum device_quota kind)
{
	const uint64_t limit = limit_of(kind);
	uint32_t used = __atomic_load_n(&device->quota[kind], __ATOMIC_RELAXED);

	do {
		if (used >= limit)
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
