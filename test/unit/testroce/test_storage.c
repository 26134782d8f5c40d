/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode storage: the commands that a target takes, and the regions of both sides. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "endpoint.h"
#include "mode.h"
#include "plan.h"
#include "storage.h"
#include "test.h"

static struct plan plan;
static char error[256];

static int setup(TEST_STATE)
{
	plan_init(&plan);
	plan.mode = MODE_STORAGE;
	plan.region_bytes = 1 << 20;
	plan_default_size(&plan);
	return 0;
}

TEST_FIXTURE(setup, NULL);

static int check(uint32_t op, uint64_t block, uint32_t bytes)
{
	const struct storage_command command = {.op = op, .block = block};

	return storage_check_command(&plan, &command, bytes);
}

TEST(storage_check_command__takes_reads_and_writes_of_the_disk)
{
	assert_int_equal(check(STORAGE_READ, 0, 64), 0);
	assert_int_equal(check(STORAGE_READ, 255, 64), 0);
	assert_int_equal(check(STORAGE_WRITE, 255, 64 + 4096), 0);
	plan.in_capsule_bytes = 4095;
	assert_int_equal(check(STORAGE_WRITE, 255, 64), 0);
}

TEST(storage_check_command__refuses_what_is_none)
{
	assert_int_equal(check(STORAGE_OPS, 0, 64), -EPROTO);
	assert_int_equal(check(UINT32_MAX, 0, 64), -EPROTO);
	assert_int_equal(check(STORAGE_READ, 0, 0), -EPROTO);
	assert_int_equal(check(STORAGE_READ, 0, 63), -EPROTO);
}

/* The target would store bytes of an earlier command. */
TEST(storage_check_command__refuses_a_block_of_another_length)
{
	assert_int_equal(check(STORAGE_READ, 0, 64 + 4096), -EPROTO);
	assert_int_equal(check(STORAGE_WRITE, 0, 64), -EPROTO);
	assert_int_equal(check(STORAGE_WRITE, 0, 64 + 4095), -EPROTO);
	plan.in_capsule_bytes = 0;
	assert_int_equal(check(STORAGE_WRITE, 0, 64 + 4096), -EPROTO);
}

TEST(storage_check_command__refuses_what_is_behind_the_disk)
{
	assert_int_equal(check(STORAGE_READ, 256, 64), -ERANGE);
	assert_int_equal(check(STORAGE_WRITE, 256, 64 + 4096), -ERANGE);
	assert_int_equal(check(STORAGE_READ, UINT64_MAX, 64), -ERANGE);
	assert_int_equal(check(STORAGE_READ, (UINT64_MAX >> 12) + 1, 64), -ERANGE);
	/* The last part of the disk is too small for a block. */
	plan.region_bytes += 4095;
	assert_int_equal(check(STORAGE_READ, 256, 64), -ERANGE);
}

TEST(storage_lay__the_parts_do_not_overlap)
{
	static const uint64_t sizes[] = {1, 64, 512, 4096, 5000, 131072};

	for (size_t i = 0; i < 6 * 2; i++) {
		const uint64_t requests = plan.qps * plan.depth;
		struct storage_layout target, initiator;

		plan.size_bytes = sizes[i % 6];
		plan.in_capsule_bytes = i / 6 * 8192;
		target = storage_lay_target(&plan);
		initiator = storage_lay_initiator(&plan);
		assert_int_equal(target.disk, 0);
		assert_true(target.buffers >= storage_blocks(&plan) * plan.size_bytes);
		assert_int_equal(initiator.buffers, 0);
		assert_true(target.capsule_bytes >=
			    64 + (storage_in_capsule(&plan) ? plan.size_bytes : 0));
		assert_int_equal(initiator.capsule_bytes, 64);
		for (size_t side = 0; side < 2; side++) {
			const struct storage_layout *layout = side ? &target : &initiator;

			assert_true(layout->buffer_bytes >= plan.size_bytes);
			assert_true(layout->capsules - layout->buffers >=
				    requests * layout->buffer_bytes);
			assert_true(layout->responses - layout->capsules >=
				    requests * layout->capsule_bytes);
			assert_true(layout->bytes - layout->responses >= requests * 16);
		}
	}
}

TEST(storage__refuses_too_many_requests)
{
	plan.region_bytes = 1 << 20;
	plan.size_bytes = 4096;
	plan.depth = 128;
	assert_int_equal(plan_check(&plan, error, sizeof(error)), 0);
	plan.depth = 129;
	assert_int_equal(plan_check(&plan, error, sizeof(error)), -EINVAL);
	plan.region_bytes = PLAN_REGION_MAX / 2;
	plan.size_bytes = 1;
	plan.depth = 16384;
	plan.qps = 64;
	assert_int_equal(plan_check(&plan, error, sizeof(error)), 0);
	plan.qps = 65;
	assert_int_equal(plan_check(&plan, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "million"));
}
