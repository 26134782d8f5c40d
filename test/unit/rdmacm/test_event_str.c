/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/event_str.c. */
#include "later.h"
#include "rdmacm_rig.h"

TEST(rdma_event_str__every_event_has_its_own_name)
{
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
			    "RDMA_CM_EVENT_ADDR_RESOLVED");
	assert_string_equal(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			    "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	assert_string_equal(rdma_event_str(LATER_EVENT_USER), "RDMA_CM_EVENT_USER");
	for (int i = 1; i <= (int)LATER_EVENT_INTERNAL; i++)
		assert_string_not_equal(rdma_event_str((enum rdma_cm_event_type)i),
					rdma_event_str((enum rdma_cm_event_type)(i - 1)));
}

TEST(rdma_event_str__unknown)
{
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT");
	assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}
