/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/later.c. */
#include <string.h>

#include "later.h"
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(rdma_resolve_addrinfo__raises_its_result)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_addrinfo *info;

	rig_fails(later_query_addrinfo(id, &info), EINVAL);
	assert_int_equal(later_resolve_addrinfo(id, "10.0.0.2", "7174", NULL), 0);
	rig_expect(LATER_EVENT_ADDRINFO_RESOLVED);
	assert_int_equal(later_query_addrinfo(id, &info), 0);
	assert_memory_equal(info->ai_dst_addr, rig_ipv4(1, RIG_PORT), sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(info);
	rig_fails(later_query_addrinfo(id, &info), EINVAL);
	rdma_destroy_id(id);
}

/* The id frees a result that nobody takes; the next result replaces the one before. */
TEST(rdma_resolve_addrinfo__again)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(later_resolve_addrinfo(id, "10.0.0.2", "7174", NULL), 0);
		rig_expect(LATER_EVENT_ADDRINFO_RESOLVED);
	}
	rdma_destroy_id(id);
}

TEST(rdma_resolve_addrinfo__raises_a_failure)
{
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST};
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	assert_int_equal(later_resolve_addrinfo(id, "no address", NULL, &hints), 0);
	event = rig_event_of(rig_channel, LATER_EVENT_ADDRINFO_ERROR);
	assert_int_equal(event->status, -EINVAL);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

TEST(rdma_resolve_addrinfo__wrong_calls)
{
	const struct rdma_addrinfo hints = {.ai_flags = LATER_RAI_SA};
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(later_resolve_addrinfo(NULL, "10.0.0.2", NULL, NULL), EINVAL);
	rig_fails(later_resolve_addrinfo(id, NULL, NULL, NULL), EINVAL);
	rig_fails(later_resolve_addrinfo(id, NULL, "7174", &hints), EOPNOTSUPP);
	rig_no_event(rig_channel);
	rdma_destroy_id(id);
}

TEST(rdma_write_cm_event__carries_status_and_argument)
{
	const uint64_t expected = 0x123456789abcdef0;
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_cm_event *event;
	uint64_t arg;

	assert_int_equal(later_write_cm_event(id, LATER_EVENT_USER, 7, expected), 0);
	event = rig_event_of(rig_channel, LATER_EVENT_USER);
	assert_ptr_equal(event->id, id);
	assert_int_equal(event->status, 7);
	memcpy(&arg, &event->param, sizeof(arg));
	assert_true(arg == expected);
	rdma_ack_cm_event(event);
	rig_fails(later_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
	rig_no_event(rig_channel);
	rdma_destroy_id(id);
}
