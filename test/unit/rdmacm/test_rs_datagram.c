/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the headers of rs_datagram.c. */
#include <arpa/inet.h>
#include <string.h>

#include "rs_datagram.h"
#include "test.h"

#define IPV4_AT 32 /* of the source in a GRH, as the next one */
#define IPV6_AT 8

static struct sockaddr_storage ipv4(const char *text)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	struct sockaddr_in *in = (struct sockaddr_in *)&address;

	in->sin_port = htons(0x1234);
	assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
	return address;
}

static struct sockaddr_storage ipv6(const char *text)
{
	struct sockaddr_storage address = {.ss_family = AF_INET6};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;

	in6->sin6_port = htons(0x1234);
	assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	return address;
}

TEST(rs_address_put__has_the_stock_layout)
{
	const struct sockaddr_storage four = ipv4("10.1.2.3"), six = ipv6("fd01::2");
	struct rs_datagram_wire wire;

	assert_int_equal(rs_address_put(&wire, &four), 8);
	assert_memory_equal(&wire, "\x04\x08\x12\x34\x0a\x01\x02\x03", 8);
	assert_int_equal(rs_address_put(&wire, &six), 24);
	assert_memory_equal(&wire, "\x06\x18\x12\x34\0\0\0\0\xfd\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x02",
			    24);
}

TEST(rs_address_get__must_be_the_packets_source)
{
	const struct sockaddr_storage four = ipv4("10.1.2.3");
	struct sockaddr_storage from;
	struct rs_datagram_wire wire;
	struct ibv_grh grh = {0};

	rs_address_put(&wire, &four);
	assert_int_equal(rs_address_get(&wire, 8, &grh, &from), 0);
	memcpy((uint8_t *)&grh + IPV4_AT, wire.ipv4, 4);
	assert_int_equal(rs_address_get(&wire, 8, &grh, &from), 8);
	assert_true(rs_datagram_is_same(&from, &four));
	/* The datagram is too short. */
	assert_int_equal(rs_address_get(&wire, 7, &grh, &from), 0);
	wire.length = 24;
	assert_int_equal(rs_address_get(&wire, 8, &grh, &from), 0);
	wire.version = 6;
	assert_int_equal(rs_address_get(&wire, 8, &grh, &from), 0);
}

TEST(rs_address_get__ipv6)
{
	const struct sockaddr_storage six = ipv6("fd01::2");
	struct sockaddr_storage from;
	struct rs_datagram_wire wire;
	struct ibv_grh grh = {0};

	rs_address_put(&wire, &six);
	memcpy((uint8_t *)&grh + IPV6_AT, wire.ipv6.addr, 16);
	assert_int_equal(rs_address_get(&wire, 24, &grh, &from), 24);
	assert_true(rs_datagram_is_same(&from, &six));
	assert_int_equal(rs_address_get(&wire, 23, &grh, &from), 0);
	((uint8_t *)&grh)[IPV6_AT] ^= 1;
	assert_int_equal(rs_address_get(&wire, 24, &grh, &from), 0);
}

TEST(rs_udp_put__has_the_stock_layout)
{
	struct ibv_qp qp = {.qp_num = 0x123456};
	struct rdma_cm_id id = {.qp = &qp};
	const struct sockaddr_storage four = ipv4("10.1.2.3");
	struct rs_pair pair = {.id = &id};
	struct rs_udp_wire wire;
	enum rs_op op;
	uint32_t qpn;

	rs_address_put(&pair.header, &four);
	assert_int_equal(rs_udp_put(&wire, &pair, RS_OP_CONTROL), 16);
	assert_memory_equal(&wire, "UUUU\x04\x07\x10\0\0\x12\x34\x56\x0a\x01\x02\x03", 16);
	assert_int_equal(rs_udp_get(&wire, 16, AF_INET, &op, &qpn), 16);
	assert_int_equal(op, RS_OP_CONTROL);
	assert_int_equal(qpn, 0x123456);
}

TEST(rs_udp_get__refuses_what_is_no_header)
{
	const uint8_t good[28] = "UUUU\x04\0\x10\0\0\x12\x34\x56\x0a\x01\x02\x03";
	uint8_t data[28];
	enum rs_op op;
	uint32_t qpn;

	assert_int_equal(rs_udp_get(good, 28, AF_INET, &op, &qpn), 16);
	assert_int_equal(rs_udp_get(good, 15, AF_INET, &op, &qpn), 0);
	assert_int_equal(rs_udp_get(good, 28, AF_INET6, &op, &qpn), 0);
	/* The tag, the version, the operation, the length. */
	for (size_t i = 0; i < 7; i++) {
		memcpy(data, good, sizeof(data));
		data[i] ^= 2;
		assert_int_equal(rs_udp_get(data, sizeof(data), AF_INET, &op, &qpn), 0);
	}
}
