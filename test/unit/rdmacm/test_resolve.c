/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/resolve.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

static void assert_source(struct rdma_cm_id *id, const struct sockaddr *address)
{
	const struct sockaddr *source = rdma_get_local_addr(id);

	assert_int_equal(source->sa_family, address->sa_family);
	if (address->sa_family == AF_INET)
		assert_int_equal(((const struct sockaddr_in *)source)->sin_addr.s_addr,
				 ((const struct sockaddr_in *)address)->sin_addr.s_addr);
	else
		assert_memory_equal(&((const struct sockaddr_in6 *)source)->sin6_addr,
				    &((const struct sockaddr_in6 *)address)->sin6_addr, GID_LEN);
}

TEST(rdma_resolve_addr__chooses_device_address_and_port)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_non_null(id->verbs);
	assert_int_equal(id->port_num, 1);
	assert_int_not_equal(rdma_get_src_port(id), 0);
	assert_int_equal(rdma_get_dst_port(id), htons(RIG_PORT));
	assert_source(id, rig_ipv4(0, 0));
	rdma_destroy_id(id);
}

TEST(rdma_resolve_addr__from_an_address_that_the_program_names)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(id, rig_ipv6(1, 5000), rig_ipv6(0, RIG_PORT), 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_source(id, rig_ipv6(1, 0));
	assert_int_equal(rdma_get_src_port(id), htons(5000));
	rdma_destroy_id(id);
}

TEST(rdma_resolve_addr__link_local_needs_the_scopes_device)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(
		rdma_resolve_addr(id, NULL, rig_link_local(0, RIG_PORT, RIG_IFINDEX + 1), 1000), 0);
	assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
	assert_source(id, rig_link_local(1, 0, 0));
	assert_int_equal(id->route.addr.src_sin6.sin6_scope_id, RIG_IFINDEX + 1);
	rdma_destroy_id(id);
}

TEST(rdma_resolve_addr__loopback_is_this_host)
{
	const char *const targets[] = {"127.0.0.1", "::1", "0.0.0.0", "::"};

	for (size_t i = 0; i < RTE_DIM(targets); i++) {
		struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

		assert_int_equal(rdma_resolve_addr(id, NULL, rig_address(targets[i], RIG_PORT), 0),
				 0);
		assert_ptr_equal(rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED), id);
		assert_source(id, rig_address(i % 2 == 0 ? "127.0.0.1" : "::1", 0));
		rdma_destroy_id(id);
	}
}

TEST(rdma_resolve_addr__silent_peer_is_a_time_out)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	rig.silent = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), 0);
	rig_pass(RIG_SECOND - 1);
	rig_no_event(rig_channel);
	rig_pass(RIG_SECOND);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(event->status, -ETIMEDOUT);
	rdma_ack_cm_event(event);
	/* The address may be resolved again. */
	rig.silent = false;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_destroy_id(id);
}

/* The address chosen for a silent peer does not carry over to the next peer. */
TEST(rdma_resolve_addr__second_peer_gets_an_address_of_its_own)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig.silent = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_link_local(1, 1, RIG_IFINDEX + 1), 10), 0);
	assert_source(id, rig_link_local(1, 0, 0));
	rig_pass(RIG_SECOND);
	rig_expect(RDMA_CM_EVENT_ADDR_ERROR);
	rig.silent = false;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv6(1, RIG_PORT), 1000), 0);
	rig_expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_source(id, rig_ipv6(0, 0));
	rdma_destroy_id(id);
}

TEST(rdma_resolve_addr__no_way_there)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	rig.unreachable = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), 0);
	event = rig_event_of(rig_channel, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(event->status, -ENETUNREACH);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

TEST(rdma_resolve_addr__wrong_calls)
{
	const struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_resolve_addr(NULL, NULL, rig_ipv4(1, 1), 1), EINVAL);
	rig_fails(rdma_resolve_addr(id, NULL, NULL, 1), EINVAL);
	rig_fails(rdma_resolve_addr(id, NULL, (struct sockaddr *)&unknown, 1), EINVAL);
	rig_fails(rdma_resolve_addr(id, (struct sockaddr *)&unknown, rig_ipv4(1, 1), 1), EINVAL);
	rig_fails(rdma_resolve_addr(id, rig_ipv6(0, 0), rig_ipv4(1, 1), 1), EINVAL);
	rig_fails(rdma_resolve_route(id, 1), EINVAL);
	rig_fails(rdma_resolve_route(NULL, 1), EINVAL);
	rig.silent = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), 0);
	rig_fails(rdma_resolve_addr(id, NULL, rig_ipv4(1, 1), 1000), EINVAL);
	rdma_destroy_id(id);
}

TEST(rdma_resolve_route__fills_the_path)
{
	struct rdma_cm_id *id = rig_resolve(RDMA_PS_TCP);

	assert_int_equal(id->route.num_paths, 1);
	assert_int_equal(id->route.path_rec->mtu, IBV_MTU_1024);
	assert_int_equal(id->route.path_rec->pkey, 0xffff);
	assert_memory_equal(&id->route.path_rec->dgid, &id->route.addr.addr.ibaddr.dgid, GID_LEN);
	rig_fails(rdma_resolve_route(id, 1), EINVAL);
	rdma_destroy_id(id);
}

/* Synchronous calls return when their event is there, and give its status as errno. */
TEST(rdma_resolve_addr__synchronous)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	rig.silent = true;
	rig.wait_ns = 2 * RIG_SECOND;
	rig_fails(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), ETIMEDOUT);
	rig.silent = false;
	assert_int_equal(rdma_resolve_addr(id, NULL, rig_ipv4(1, RIG_PORT), 1000), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	rdma_destroy_id(id);
}
