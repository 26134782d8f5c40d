/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the binding of lib/rdmacm/resolve.c. */
#include "rdmacm_rig.h"

TEST_FIXTURE(rig_set_up, rig_tear_down);

TEST(rdma_bind_addr__address_chooses_the_device)
{
	struct rdma_cm_id *one = rig_create(RDMA_PS_TCP), *two = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(one, rig_ipv4(0, RIG_PORT)), 0);
	assert_int_equal(rdma_bind_addr(two, rig_ipv4(1, RIG_PORT)), 0);
	assert_non_null(one->verbs);
	assert_ptr_not_equal(one->verbs, two->verbs);
	/* Programs use its domain before they make a queue pair. */
	assert_non_null(one->pd);
	assert_ptr_equal(one->pd->context, one->verbs);
	assert_int_equal(rdma_get_src_port(one), htons(RIG_PORT));
	rdma_destroy_id(one);
	rdma_destroy_id(two);
}

TEST(rdma_bind_addr__any_address_has_no_device)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *other = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(id, rig_address("0.0.0.0", RIG_PORT)), 0);
	assert_null(id->verbs);
	rig_fails(rdma_bind_addr(other, rig_ipv4(1, RIG_PORT)), EADDRINUSE);
	assert_null(other->verbs);
	assert_null(other->pd);
	assert_int_equal(rdma_bind_addr(other, rig_ipv6(1, RIG_PORT)), 0);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
}

TEST(rdma_bind_addr__any_ipv6_address_takes_ipv4_too)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP), *other = rig_create(RDMA_PS_TCP);
	int yes = 1;

	assert_int_equal(rdma_bind_addr(id, rig_address("::", RIG_PORT)), 0);
	rig_fails(rdma_bind_addr(other, rig_ipv4(1, RIG_PORT)), EADDRINUSE);
	rdma_destroy_id(id);
	id = rig_create(RDMA_PS_TCP);
	assert_int_equal(
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)), 0);
	assert_int_equal(rdma_bind_addr(id, rig_address("::", RIG_PORT)), 0);
	assert_int_equal(rdma_bind_addr(other, rig_ipv4(1, RIG_PORT)), 0);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
}

TEST(rdma_bind_addr__port_spaces_have_ports_of_their_own)
{
	struct rdma_cm_id *tcp = rig_create(RDMA_PS_TCP), *udp = rig_create(RDMA_PS_UDP);

	assert_int_equal(rdma_bind_addr(tcp, rig_ipv4(0, RIG_PORT)), 0);
	assert_int_equal(rdma_bind_addr(udp, rig_ipv4(0, RIG_PORT)), 0);
	rdma_destroy_id(tcp);
	rdma_destroy_id(udp);
}

TEST(rdma_bind_addr__chooses_a_port)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(id, rig_address("0.0.0.0", 0)), 0);
	assert_true(ntohs(rdma_get_src_port(id)) >= 32768);
	rdma_destroy_id(id);
}

TEST(rdma_bind_addr__link_local_address_of_a_scope)
{
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_bind_addr(id, rig_link_local(1, RIG_PORT, RIG_IFINDEX)), EADDRNOTAVAIL);
	assert_int_equal(rdma_bind_addr(id, rig_link_local(1, RIG_PORT, RIG_IFINDEX + 1)), 0);
	rdma_destroy_id(id);
}

TEST(rdma_bind_addr__refused_id_may_be_bound_again)
{
	const struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct rdma_cm_id *id = rig_create(RDMA_PS_TCP);

	rig_fails(rdma_bind_addr(NULL, rig_ipv4(0, 0)), EINVAL);
	rig_fails(rdma_bind_addr(id, NULL), EINVAL);
	rig_fails(rdma_bind_addr(id, (struct sockaddr *)&unknown), EINVAL);
	rig_fails(rdma_bind_addr(id, rig_address("192.0.2.1", 0)), EADDRNOTAVAIL);
	assert_int_equal(rdma_bind_addr(id, rig_ipv4(0, 0)), 0);
	rig_fails(rdma_bind_addr(id, rig_ipv4(0, 0)), EINVAL);
	rdma_destroy_id(id);
}

TEST(rdma_bind_addr__reused_address_has_one_listener)
{
	struct rdma_cm_id *one = rig_create(RDMA_PS_TCP), *two = rig_create(RDMA_PS_TCP);
	struct rdma_cm_id *three = rig_create(RDMA_PS_TCP);
	int yes = 1;

	rdma_set_option(one, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes));
	rdma_set_option(two, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes));
	rdma_set_option(three, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes));
	assert_int_equal(rdma_bind_addr(one, rig_ipv4(0, RIG_PORT)), 0);
	assert_int_equal(rdma_bind_addr(two, rig_ipv4(0, RIG_PORT)), 0);
	rig_fails(rdma_listen(one, 1), EADDRINUSE);
	rdma_destroy_id(two);
	assert_int_equal(rdma_listen(one, 1), 0);
	rig_fails(rdma_bind_addr(three, rig_ipv4(0, RIG_PORT)), EADDRINUSE);
	rdma_destroy_id(one);
	rdma_destroy_id(three);
}
