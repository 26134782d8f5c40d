/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the conversions of lib/rdmacm/addrinfo.c. */
#include "rdmacm_rig.h"

TEST(address_len__of_each_family)
{
	const struct sockaddr unknown = {.sa_family = AF_UNIX}, ib = {.sa_family = AF_IB};

	assert_int_equal(address_len(rig_ipv4(0, 0)), sizeof(struct sockaddr_in));
	assert_int_equal(address_len(rig_ipv6(0, 0)), sizeof(struct sockaddr_in6));
	assert_int_equal(address_len(&ib), sizeof(struct sockaddr_ib));
	assert_int_equal(address_len(&unknown), 0);
}

TEST(address_gid__and_back)
{
	const char *const texts[] = {"10.1.2.3", "fd00::5"};

	for (size_t i = 0; i < RTE_DIM(texts); i++) {
		const struct sockaddr *address = rig_address(texts[i], 0);
		struct sockaddr_storage made;
		uint8_t gid[GID_LEN];

		assert_true(address_gid(address, gid));
		address_from_gid(AF_UNSPEC, gid, &made);
		assert_memory_equal(&made, address, address_len(address));
		address_from_gid(AF_IB, gid, &made);
		assert_int_equal(made.ss_family, AF_IB);
		assert_memory_equal(&((struct sockaddr_ib *)&made)->sib_addr, gid, GID_LEN);
	}
}

TEST(address_is_any__and_loopback)
{
	struct sockaddr_storage ib = {.ss_family = AF_IB};
	struct sockaddr *address = (struct sockaddr *)&ib;

	assert_true(address_is_any(rig_address("0.0.0.0", 1)));
	assert_true(address_is_any(rig_address("::", 1)));
	assert_false(address_is_any(rig_ipv4(0, 0)));
	assert_true(address_is_any(address));
	address_set_loopback(address);
	assert_true(address_is_loopback(address));
	assert_false(address_is_any(address));
	assert_true(address_is_loopback(rig_address("127.9.9.9", 0)));
	assert_true(address_is_loopback(rig_address("::1", 0)));
	assert_true(address_is_loopback(rig_address("::ffff:127.0.0.1", 0)));
	assert_false(address_is_loopback(rig_address("128.0.0.1", 0)));
}

TEST(address_port__is_the_end_of_a_service_id)
{
	struct sockaddr_storage ib = {.ss_family = AF_IB};
	struct sockaddr *address = (struct sockaddr *)&ib, *ipv6 = rig_ipv6(0, 0);

	address_set_service(address, CM_PS_TCP, 0x1234);
	assert_int_equal(address_port(address), RTE_BE16(0x1234));
	assert_true(address_service(RDMA_PS_IB, address) == 0x0000000001061234);
	address_set_port(address, RTE_BE16(0x4321));
	assert_true(address_service(RDMA_PS_IB, address) == 0x0000000001064321);
	address_set_port(ipv6, RTE_BE16(0x4321));
	assert_int_equal(address_port(ipv6), RTE_BE16(0x4321));
	assert_true(address_service(RDMA_PS_UDP, ipv6) == 0x0000000001114321);
}

/* Linux's rules: RDMA_PS_IB may be bound to any space's service, the others to their own. */
TEST(address_space__of_a_service_id)
{
	struct sockaddr_ib ib = {.sib_family = AF_IB};
	struct sockaddr *address = (struct sockaddr *)&ib;

	assert_int_equal(address_space(RDMA_PS_TCP, rig_ipv4(0, 0)), CM_PS_TCP);
	/* The mask covers no bit. */
	assert_int_equal(address_space(RDMA_PS_IB, address), CM_PS_IB);
	assert_int_equal(address_space(RDMA_PS_UDP, address), CM_PS_UDP);
	address_set_service(address, CM_PS_TCP, 5);
	assert_int_equal(address_space(RDMA_PS_IB, address), CM_PS_TCP);
	assert_int_equal(address_space(RDMA_PS_TCP, address), CM_PS_TCP);
	assert_int_equal(address_space(RDMA_PS_UDP, address), ADDRESS_NO_SPACE);
	ib.sib_sid = RTE_BE64(0x1122334455667788);
	assert_int_equal(address_space(RDMA_PS_IB, address), ADDRESS_NO_SPACE);
}

TEST(address_scope__of_each_family)
{
	struct sockaddr_ib ib = {.sib_family = AF_IB, .sib_scope_id = 3};

	assert_int_equal(address_scope(rig_ipv4(0, 0)), 0);
	assert_int_equal(address_scope(rig_link_local(0, 0, 9)), 9);
	assert_int_equal(address_scope((struct sockaddr *)&ib), 3);
}
