/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/rdmacm/addrinfo.c. */
#include <netdb.h>

#include "rdmacm_rig.h"

static struct rdma_addrinfo *get(const char *node, const char *service,
				 const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info;

	assert_int_equal(rdma_getaddrinfo(node, service, hints, &info), 0);
	return info;
}

TEST(rdma_getaddrinfo__defaults_to_a_connection)
{
	struct rdma_addrinfo *info = get("10.0.0.2", "7174", NULL);

	assert_int_equal(info->ai_family, AF_INET);
	assert_int_equal(info->ai_port_space, RDMA_PS_TCP);
	assert_int_equal(info->ai_qp_type, IBV_QPT_RC);
	assert_int_equal(info->ai_dst_len, sizeof(struct sockaddr_in));
	assert_memory_equal(info->ai_dst_addr, rig_ipv4(1, RIG_PORT), sizeof(struct sockaddr_in));
	assert_null(info->ai_src_addr);
	assert_null(info->ai_next);
	rdma_freeaddrinfo(info);
	rdma_freeaddrinfo(NULL);
}

TEST(rdma_getaddrinfo__passive_is_our_own)
{
	const struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_family = AF_INET6};
	struct rdma_addrinfo *info = get(NULL, "7174", &hints);

	assert_true(info->ai_flags & RAI_PASSIVE);
	assert_null(info->ai_dst_addr);
	assert_memory_equal(info->ai_src_addr, rig_address("::", RIG_PORT),
			    sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(info);
}

/* Each of type and space tells the other. */
TEST(rdma_getaddrinfo__types)
{
	struct rdma_addrinfo hints = {.ai_qp_type = IBV_QPT_UD};
	struct rdma_addrinfo *info = get("10.0.0.2", NULL, &hints);

	assert_int_equal(info->ai_port_space, RDMA_PS_UDP);
	rdma_freeaddrinfo(info);
	hints = (struct rdma_addrinfo){.ai_port_space = RDMA_PS_IPOIB};
	info = get("10.0.0.2", "1", &hints);
	assert_int_equal(info->ai_qp_type, IBV_QPT_UD);
	rdma_freeaddrinfo(info);
	hints = (struct rdma_addrinfo){.ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_XRC_SEND};
	info = get("10.0.0.2", "1", &hints);
	assert_int_equal(info->ai_port_space, RDMA_PS_IB);
	assert_int_equal(info->ai_qp_type, IBV_QPT_XRC_SEND);
	rdma_freeaddrinfo(info);
}

TEST(rdma_getaddrinfo__numeric_hosts_alone)
{
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST};
	struct rdma_addrinfo *info;

	assert_int_equal(rdma_getaddrinfo("localhost", "1", &hints, &info), EAI_NONAME);
}

TEST(rdma_getaddrinfo__source_of_the_hints)
{
	const struct rdma_addrinfo hints = {.ai_src_addr = rig_ipv4(0, 5000),
					    .ai_src_len = sizeof(struct sockaddr_in)};
	struct rdma_addrinfo *info = get("10.0.0.2", "1", &hints);

	assert_ptr_not_equal(info->ai_src_addr, hints.ai_src_addr);
	assert_memory_equal(info->ai_src_addr, hints.ai_src_addr, hints.ai_src_len);
	rdma_freeaddrinfo(info);
}

TEST(rdma_getaddrinfo__addresses_of_the_hints_alone)
{
	struct rdma_addrinfo hints = {.ai_dst_addr = rig_ipv6(1, RIG_PORT),
				      .ai_dst_len = sizeof(struct sockaddr_in6)};
	struct rdma_addrinfo *info = get(NULL, NULL, &hints);

	assert_int_equal(info->ai_family, AF_INET6);
	assert_memory_equal(info->ai_dst_addr, hints.ai_dst_addr, hints.ai_dst_len);
	rdma_freeaddrinfo(info);
	rig_fails(rdma_getaddrinfo(NULL, NULL, NULL, &info), EINVAL);
	rig_fails(rdma_getaddrinfo("10.0.0.2", NULL, NULL, NULL), EINVAL);
}

/* A program asks like this for a group's address, which is no connection's source. */
TEST(rdma_getaddrinfo__takes_a_source_alone)
{
	const struct rdma_addrinfo hints = {.ai_src_addr = rig_ipv4(0, 5000),
					    .ai_src_len = sizeof(struct sockaddr_in)};
	struct rdma_addrinfo *info = get(NULL, NULL, &hints);

	assert_int_equal(info->ai_src_len, hints.ai_src_len);
	assert_memory_equal(info->ai_src_addr, hints.ai_src_addr, hints.ai_src_len);
	assert_null(info->ai_dst_addr);
	assert_int_equal(info->ai_dst_len, 0);
	rdma_freeaddrinfo(info);
}

/* A GID is written as an IPv6 address, and its port is the end of a service id. */
TEST(rdma_getaddrinfo__gid)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
				      .ai_family = AF_IB,
				      .ai_port_space = RDMA_PS_IB};
	struct rdma_addrinfo *info = get("fd00::2", "7174", &hints);
	const struct sockaddr_ib *ib = (const struct sockaddr_ib *)info->ai_dst_addr;

	assert_int_equal(info->ai_family, AF_IB);
	assert_int_equal(info->ai_dst_len, sizeof(*ib));
	assert_int_equal(ib->sib_family, AF_IB);
	assert_int_equal(ib->sib_pkey, 0xffff);
	assert_int_equal(ib->sib_addr.sib_raw[15], 2);
	assert_true(ib->sib_sid == RTE_BE64(0x00000000013f1c06));
	assert_true(ib->sib_sid_mask == UINT64_MAX);
	rdma_freeaddrinfo(info);
	hints.ai_flags |= RAI_PASSIVE;
	info = get("fd00::2", NULL, &hints);
	ib = (const struct sockaddr_ib *)info->ai_src_addr;
	assert_true(ib->sib_sid_mask == RTE_BE64(0xffffffffffff0000));
	rdma_freeaddrinfo(info);
	assert_int_equal(rdma_getaddrinfo("10.0.0.2", "1", &hints, &info), EAI_ADDRFAMILY);
}
