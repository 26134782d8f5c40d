/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/device/device_share.c: queues of one engine, and of several. */
#include "device/device.h"
#include "device/device_share.h"
#include "queue/cq.h"
#include "queue/srq.h"
#include "test.h"

static struct device *device;
static struct device_engine *first, *second;
static struct cq *cq;
static uint64_t time_ns[2] = {5, 7};

static uint64_t now(void *driver)
{
	return *(const uint64_t *)driver;
}

static const struct engine_ops ops = {.now = now};

static int set_up(TEST_STATE)
{
	const struct device_config config = {
		.name = "share", .unique = "share", .port_mtu_bytes = 1500, .engines = 2};
	const struct cq_attr attr = {.cqe = 4};

	(void)state;
	if (device_create(&config, &device) != 0 || cq_create_in(&attr, &cq) != 0)
		return -1;
	for (uint32_t i = 0; i < 2; i++) {
		device->engines[i]->ops = &ops;
		device->engines[i]->driver = &time_ns[i];
		device->engines[i]->now_ns = &time_ns[i];
	}
	first = device->engines[0];
	second = device->engines[1];
	return 0;
}

static int tear_down(TEST_STATE)
{
	(void)state;
	cq->users = 0;
	cq_destroy(cq);
	device_destroy(device);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

TEST(device_share_cq__moves_an_unused_queue)
{
	struct device_engine *home = first;

	cq->users = 1;
	device_share_cq(cq, &home, second, 1);
	assert_ptr_equal(home, second);
	assert_false(cq->shared);
	assert_ptr_equal(cq->moderation.moderator, &second->moderator);
	assert_ptr_equal(cq->now_ns, second->now_ns);
}

TEST(device_share_cq__shares_a_used_queue)
{
	struct device_engine *home = first;

	cq->users = 2;
	device_share_cq(cq, &home, first, 1);
	assert_false(cq->shared);
	device_share_cq(cq, &home, second, 1);
	assert_true(cq->shared);
	assert_ptr_equal(home, first);
	/* No engine delays its events, and each reads a clock that all may read. */
	assert_null(cq->moderation.moderator);
	assert_int_equal(cq->clock(cq->clock_arg), time_ns[1]);
}

TEST(device_share_srq__from_the_second_engine_on)
{
	struct device_engine *home = NULL;
	struct srq srq = {.shared = false};

	device_share_srq(&srq, &home, second);
	device_share_srq(&srq, &home, second);
	assert_false(srq.shared);
	device_share_srq(&srq, &home, first);
	assert_true(srq.shared);
}

TEST(device_share_xrc__if_there_are_several_engines)
{
	struct srq srq = {.cq = cq};

	device->engine_count = 1;
	device_share_xrc(device, &srq);
	assert_false(srq.shared || cq->shared);
	device->engine_count = 2;
	device_share_xrc(device, &srq);
	assert_true(srq.shared && cq->shared);
}
