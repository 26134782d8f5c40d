/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of enumerators, and static rates; test/abi compares all of them with the system's library.
 */
#include <limits.h>
#include <string.h>

#include "fake_provider.h"
#include "later.h"
#include "test.h"

TEST(strs__name_their_values)
{
	assert_string_equal(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
	assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
	assert_string_equal(ibv_event_type_str(IBV_EVENT_COMM_EST), "communication established");
	assert_string_equal(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR),
			    "transport retry counter exceeded");
}

TEST(wr_opcode_str__names_opcodes)
{
	assert_string_equal(later_wr_opcode_str(IBV_WR_RDMA_WRITE), "rdma-write");
	assert_string_equal(later_wr_opcode_str(IBV_WR_ATOMIC_WRITE), "atomic-write");
	assert_string_equal(later_wr_opcode_str((enum ibv_wr_opcode)14), "flush");
	assert_string_equal(later_wr_opcode_str((enum ibv_wr_opcode)13), "unknown");
	assert_string_equal(later_wr_opcode_str((enum ibv_wr_opcode)16), "unknown");
}

TEST(strs__of_other_values_are_unknown)
{
	assert_string_equal(ibv_node_type_str(IBV_NODE_UNKNOWN), "unknown");
	assert_string_equal(ibv_node_type_str((enum ibv_node_type)0), "unknown");
	assert_string_equal(ibv_port_state_str((enum ibv_port_state)6), "unknown");
	assert_string_equal(ibv_event_type_str((enum ibv_event_type)20), "unknown");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)24), "unknown");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)INT_MIN), "unknown");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status) - 1), "unknown");
}

/* Every status that a completion may have has words of its own. */
TEST(wc_status_str__differ)
{
	for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++) {
		for (int j = 0; j < i; j++)
			assert_string_not_equal(ibv_wc_status_str((enum ibv_wc_status)i),
						ibv_wc_status_str((enum ibv_wc_status)j));
	}
}

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
