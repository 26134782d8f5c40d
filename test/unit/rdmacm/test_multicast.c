/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/multicast.c. */

#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static struct sockaddr *group(void)
{
	return rig_address("239.1.2.3", 0);
}

static struct rdma_cm_id *create_bound(void)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_UDP);

	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, 0)), 0);
	return id;
}

TEST(rdma_join_multicast__attaches_when_the_event_is_taken)
{
	struct rdma_cm_id *id = create_bound();
	struct rdma_cm_event *event;

	rig_create_qp(id);
	assert_int_equal(rdma_join_multicast(id, group(), &rig), 0);
	assert_int_equal(rig.joined, 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(rig.joined, 1);
	assert_ptr_equal(event->id, id);
	assert_ptr_equal(event->param.ud.private_data, &rig);
	assert_int_equal(event->param.ud.qp_num, 0xffffff);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	assert_int_equal(event->param.ud.ah_attr.grh.hop_limit, 64);
	assert_int_equal(event->param.ud.ah_attr.grh.dgid.raw[12], 239);
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_leave_multicast(id, group()), 0);
	assert_int_equal(rig.joined, 0);
	rig_fails(rdma_leave_multicast(id, group()), EADDRNOTAVAIL);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

/* Another thread cannot destroy the queue pair while the thread that takes the event attaches it,
 * or detaches it. */
TEST(rdma_join_multicast__locks_the_queue_pair_that_it_attaches)
{
	struct rdma_cm_id *id = create_bound();

	rig_create_qp(id);
	assert_int_equal(rdma_join_multicast(id, group(), NULL), 0);
	rig_try_qp_lock(id);
	rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(rig.qp_lock_rc, EBUSY);
	rig_try_qp_lock(id);
	assert_int_equal(rdma_leave_multicast(id, group()), 0);
	assert_int_equal(rig.qp_lock_rc, EBUSY);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

TEST(rdma_join_multicast__ipoib_and_an_ipv6_group)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_IPOIB);
	struct sockaddr *address = rig_address("ff0e::1:2:3", 0);

	assert_int_equal(rdma_bind_addr(id, rig_ipv6(0, 0)), 0);
	rig_create_qp(id);
	assert_int_equal(rdma_join_multicast(id, address, NULL), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN), id);
	assert_int_equal(rig.joined, 1);
	assert_int_equal(rdma_leave_multicast(id, address), 0);
	assert_int_equal(rig.joined, 0);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

/* A send-only member learns the group, but the network does not learn of the member. */
TEST(rdma_join_multicast_ex__send_only_is_not_attached)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = group(),
	};
	struct rdma_cm_id *id = create_bound();

	rig_create_qp(id);
	assert_int_equal(rdma_join_multicast_ex(id, &attr, NULL), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN), id);
	assert_int_equal(rig.joined, 0);
	assert_int_equal(rdma_leave_multicast(id, group()), 0);
	attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	assert_int_equal(rdma_join_multicast_ex(id, &attr, NULL), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_MULTICAST_JOIN), id);
	assert_int_equal(rig.joined, 1);
	rdma_destroy_qp(id);
	assert_int_equal(rig.joined, 0);
	rdma_destroy_id(id);
}

TEST(rdma_join_multicast_ex__wrong_calls)
{
	struct rdma_cm_join_mc_attr_ex attr = {.addr = group()};
	struct rdma_cm_id *id = create_bound();

	rig_fails(rdma_join_multicast_ex(NULL, &attr, NULL), EINVAL);
	rig_fails(rdma_join_multicast_ex(id, NULL, NULL), EINVAL);
	rig_fails(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	rig_fails(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	rig_fails(rdma_join_multicast_ex(id, &attr, NULL), EINVAL);
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_RESERVED;
	rig_fails(rdma_join_multicast_ex(id, &attr, NULL), ENOTSUP);
	rdma_destroy_id(id);
}

TEST(rdma_join_multicast__wrong_calls)
{
	const struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct rdma_cm_id *id = rig_create(RDMA_PS_UDP), *tcp = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_join_multicast(NULL, group(), NULL), EINVAL);
	rig_fails(rdma_join_multicast(id, NULL, NULL), EINVAL);
	rig_fails(rdma_join_multicast(id, group(), NULL), EINVAL);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, 0)), 0);
	rig_fails(rdma_join_multicast(id, rig_ipv4(0, 0), NULL), EINVAL);
	assert_int_equal(rdma_bind_addr(tcp, rig_ipv4(0, 0)), 0);
	rig_fails(rdma_join_multicast(tcp, group(), NULL), EINVAL);
	rig_fails(rdma_leave_multicast(NULL, group()), EINVAL);
	rig_fails(rdma_leave_multicast(id, NULL), EINVAL);
	rig_fails(rdma_leave_multicast(id, (struct sockaddr *)&unknown), EINVAL);
	rdma_destroy_id(tcp);
	rdma_destroy_id(id);
}

TEST(rdma_leave_multicast__drops_the_unread_event)
{
	struct rdma_cm_id *id = create_bound();

	assert_int_equal(rdma_join_multicast(id, group(), NULL), 0);
	assert_int_equal(rdma_leave_multicast(id, group()), 0);
	rig_no_event(rig_channel);
	assert_int_equal(rdma_join_multicast(id, group(), NULL), 0);
	rdma_destroy_id(id);
	rig_no_event(rig_channel);
}
