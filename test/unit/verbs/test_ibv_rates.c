/* SPDX-License-Identifier: BSD-3-Clause */
/* Static rates; test/abi compares all of them with the system's library. */
#include "fake_provider.h"
#include "test.h"

TEST(rate_to_mult__and_back)
{
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_5_GBPS), 2);
	for (int rate = IBV_RATE_MAX; rate <= IBV_RATE_1200_GBPS; rate++) {
		const int mult = ibv_rate_to_mult((enum ibv_rate)rate);

		if (mult > 0)
			assert_int_equal(mult_to_ibv_rate(mult), rate);
	}
}

TEST(rate_to_mbps__and_back)
{
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_5_GBPS), 5000);
	for (int rate = IBV_RATE_2_5_GBPS; rate <= IBV_RATE_1200_GBPS; rate++)
		assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps((enum ibv_rate)rate)), rate);
}

TEST(rates__that_are_none)
{
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_MAX), -1);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1);
	assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)99), -1);
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(mult_to_ibv_rate(-1), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}
