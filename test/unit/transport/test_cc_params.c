/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/transport/cc_params.c: names, limits and defaults. */
#include <errno.h>
#include <stdint.h>

#include "transport/cc_params.h"
#include "test.h"

TEST(cc_param_find__every_name)
{
	for (uint32_t i = 0; i < CC_PARAM_COUNT; i++)
		assert_int_equal(cc_param_find(cc_param(i)->name), i);
	assert_int_equal(cc_param_find("rpg_ai"), CC_PARAM_COUNT);
	assert_int_equal(cc_param_find(""), CC_PARAM_COUNT);
}

TEST(cc_param_set__within_its_limits)
{
	struct cc_params params = cc_params_normal;

	for (uint32_t i = 0; i < CC_PARAM_COUNT; i++) {
		const struct cc_param *param = cc_param(i);
		const uint32_t normal = cc_param_get(&params, i);

		assert_in_range(normal, param->least, param->most);
		assert_int_equal(cc_param_set(&params, i, param->most + 1), -ERANGE);
		if (param->least > 0)
			assert_int_equal(cc_param_set(&params, i, param->least - 1), -ERANGE);
		assert_int_equal(cc_param_get(&params, i), normal);
		assert_int_equal(cc_param_set(&params, i, param->most), 0);
		assert_int_equal(cc_param_get(&params, i), param->most);
		assert_int_equal(cc_param_set(&params, i, param->least), 0);
		assert_int_equal(cc_param_get(&params, i), param->least);
	}
	assert_int_equal(cc_param_set(&params, CC_PARAM_COUNT, 1), -ENOENT);
	assert_int_equal(cc_param_set(&params, UINT32_MAX, 1), -ENOENT);
}

TEST(cc_param_set__the_member_of_that_name)
{
	struct cc_params params = cc_params_normal;

	assert_int_equal(cc_param_set(&params, cc_param_find("rpg_ai_rate"), 77), 0);
	assert_int_equal(params.rpg_ai_rate, 77);
	assert_int_equal(cc_params_normal.rpg_ai_rate, 40);
}
