/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/quota.c. */
#include <errno.h>
#include <stdint.h>

#include "device/device.h"
#include "device/limits.h"
#include "test.h"

TEST(quota_take__keeps_what_device_query_tells)
{
	const struct device_config config = {.name = "uroce0", .port_mtu_bytes = 1500};
	struct ibv_device_attr_ex attr;
	struct device *device;

	assert_int_equal(device_create(&config, &device), 0);
	device_query(device, &attr);
	{
		const int told[DEVICE_QUOTA_KINDS] = {
			[DEVICE_QUOTA_PD] = attr.orig_attr.max_pd,
			[DEVICE_QUOTA_CQ] = attr.orig_attr.max_cq,
			[DEVICE_QUOTA_AH] = attr.orig_attr.max_ah,
			[DEVICE_QUOTA_MR] = attr.orig_attr.max_mr,
			[DEVICE_QUOTA_MW] = attr.orig_attr.max_mw,
			[DEVICE_QUOTA_SRQ] = attr.orig_attr.max_srq,
			[DEVICE_QUOTA_COMP_CNTR] = DEVICE_MAX_COMP_CNTR,
		};

		for (int kind = 0; kind < DEVICE_QUOTA_KINDS; kind++) {
			assert_true(told[kind] > 0);
			for (int i = 0; i < told[kind]; i++)
				assert_int_equal(quota_take(device, (enum device_quota)kind), 0);
			assert_int_equal(quota_take(device, (enum device_quota)kind), -ENOMEM);
			quota_give(device, (enum device_quota)kind);
			assert_int_equal(quota_take(device, (enum device_quota)kind), 0);
			assert_int_equal(quota_take(device, (enum device_quota)kind), -ENOMEM);
		}
	}
	device_destroy(device);
}

TEST(quota_give__never_counts_below_none)
{
	const struct device_config config = {
		.name = "uroce0", .port_mtu_bytes = 1500, .mr_limit_bytes = 100};
	struct device *device;

	assert_int_equal(device_create(&config, &device), 0);
	for (int kind = 0; kind < DEVICE_QUOTA_KINDS; kind++) {
		assert_int_equal(quota_take(device, (enum device_quota)kind), 0);
		for (int i = 0; i < 3; i++)
			quota_give(device, (enum device_quota)kind);
		assert_int_equal(device->quota[kind], 0);
		assert_int_equal(quota_take(device, (enum device_quota)kind), 0);
	}
	assert_int_equal(quota_take_bytes(device, 60), 0);
	quota_give_bytes(device, 61);
	assert_int_equal(device->mr_bytes, 0);
	assert_int_equal(quota_take_bytes(device, 100), 0);
	assert_int_equal(quota_take_bytes(device, 1), -ENOMEM);
	device_destroy(device);
}

TEST(quota_take_bytes__as_configured)
{
	struct device_config config = {
		.name = "uroce0", .port_mtu_bytes = 1500, .mr_limit_bytes = 100};
	struct device *device;

	assert_int_equal(device_create(&config, &device), 0);
	assert_int_equal(quota_take_bytes(device, 60), 0);
	assert_int_equal(quota_take_bytes(device, 41), -ENOMEM);
	assert_int_equal(quota_take_bytes(device, UINT64_MAX), -ENOMEM);
	assert_int_equal(quota_take_bytes(device, 40), 0);
	assert_int_equal(quota_take_bytes(device, 1), -ENOMEM);
	quota_give_bytes(device, 60);
	assert_int_equal(quota_take_bytes(device, 60), 0);
	device_destroy(device);
	config.mr_limit_bytes = 0;
	assert_int_equal(device_create(&config, &device), 0);
	assert_int_equal(quota_take_bytes(device, UINT64_MAX / 2), 0);
	/* The sum does not wrap either. */
	assert_int_equal(quota_take_bytes(device, UINT64_MAX), -ENOMEM);
	device_destroy(device);
}

TEST(device_alloc_qpn__as_configured)
{
	const struct device_config config = {
		.name = "uroce0", .port_mtu_bytes = 1500, .qp_limit = 2};
	struct ibv_device_attr_ex attr;
	struct device *device;
	int qpn;

	assert_int_equal(device_create(&config, &device), 0);
	device_query(device, &attr);
	assert_int_equal(attr.orig_attr.max_qp, 2);
	qpn = device_alloc_qpn(device_first(device));
	assert_true(qpn > 0);
	assert_true(device_alloc_qpn(device_first(device)) > 0);
	assert_int_equal(device_alloc_qpn(device_first(device)), -ENOSPC);
	device_free_qpn(device, (uint32_t)qpn);
	assert_true(device_alloc_qpn(device_first(device)) > 0);
	device_destroy(device);
}
