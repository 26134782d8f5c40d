/* SPDX-License-Identifier: BSD-3-Clause */
/* The opcode table against IBTA 9.2 tables 37 and 38, and annex A19. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/opcode.h"
#include "test.h"

/* The operations that each service defines, one bit an operation. */
#define OPERATIONS_UC 0x000fffu
#define OPERATIONS_RC 0x30dfffffu /* 21 is reserved, and 24 to 27 */
#define OPERATIONS_UD 0x000030u

static uint32_t operations(uint8_t service)
{
	switch (service) {
	case OPCODE_RC:
	case OPCODE_XRC:
		return OPERATIONS_RC;
	case OPCODE_UC:
		return OPERATIONS_UC;
	case OPCODE_UD:
		return OPERATIONS_UD;
	default:
		return 0;
	}
}

TEST(opcode_info__knows_what_is_defined_and_nothing_else)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct opcode_info *info = opcode_info((uint8_t)opcode);
		const bool defined = operations(opcode & OPCODE_SERVICE_MASK) >>
					     (opcode & OPCODE_OPERATION_MASK) &
				     1;

		assert_non_null(info->name);
		if (defined || opcode == OPCODE_CNP || opcode == OPCODE_SACK) {
			assert_true(info->flags & OPCODE_KNOWN);
		} else {
			assert_int_equal(info->flags, 0);
			assert_int_equal(info->ext_len, 0);
		}
	}
}

#define ONLY	 (OPCODE_FIRST | OPCODE_LAST)
#define SEND	 (OPCODE_KNOWN | OPCODE_REQUEST | OPCODE_IS_SEND | OPCODE_PAYLOAD)
#define WRITE	 (OPCODE_KNOWN | OPCODE_REQUEST | OPCODE_IS_WRITE | OPCODE_PAYLOAD)
#define RESPONSE (OPCODE_KNOWN | OPCODE_IS_READ_RESPONSE | OPCODE_PAYLOAD)
#define ATOMIC	 (OPCODE_KNOWN | OPCODE_REQUEST | OPCODE_IS_ATOMIC | OPCODE_HAS_ATOMICETH | ONLY)

/* RC by opcode number, as table 38 lists the headers. */
static const struct expected {
	uint8_t opcode;
	uint8_t ext_len;
	uint32_t flags;
} rc[] = {
	{0x00, 0, SEND | OPCODE_FIRST},
	{0x01, 0, SEND},
	{0x02, 0, SEND | OPCODE_LAST},
	{0x03, 4, SEND | OPCODE_LAST | OPCODE_HAS_IMM},
	{0x04, 0, SEND | ONLY},
	{0x05, 4, SEND | ONLY | OPCODE_HAS_IMM},
	{0x06, 16, WRITE | OPCODE_FIRST | OPCODE_HAS_RETH},
	{0x07, 0, WRITE},
	{0x08, 0, WRITE | OPCODE_LAST},
	{0x09, 4, WRITE | OPCODE_LAST | OPCODE_HAS_IMM},
	{0x0a, 16, WRITE | ONLY | OPCODE_HAS_RETH},
	{0x0b, 20, WRITE | ONLY | OPCODE_HAS_RETH | OPCODE_HAS_IMM},
	{0x0c, 16, OPCODE_KNOWN | OPCODE_REQUEST | ONLY | OPCODE_HAS_RETH},
	{0x0d, 4, RESPONSE | OPCODE_FIRST | OPCODE_HAS_AETH},
	{0x0e, 0, RESPONSE},
	{0x0f, 4, RESPONSE | OPCODE_LAST | OPCODE_HAS_AETH},
	{0x10, 4, RESPONSE | ONLY | OPCODE_HAS_AETH},
	{0x11, 4, OPCODE_KNOWN | ONLY | OPCODE_HAS_AETH},
	{0x12, 12, OPCODE_KNOWN | ONLY | OPCODE_HAS_AETH | OPCODE_HAS_ATOMICACKETH},
	{0x13, 28, ATOMIC},
	{0x14, 28, ATOMIC},
	{0x16, 4, SEND | OPCODE_LAST | OPCODE_HAS_IETH},
	{0x17, 4, SEND | ONLY | OPCODE_HAS_IETH},
	{0x1c, 20, OPCODE_KNOWN | OPCODE_REQUEST | ONLY | OPCODE_HAS_FETH | OPCODE_HAS_RETH},
	{0x1d, 16, OPCODE_KNOWN | OPCODE_REQUEST | ONLY | OPCODE_PAYLOAD | OPCODE_HAS_RETH},
};

#define RC_COUNT (sizeof(rc) / sizeof(rc[0]))

TEST(opcode_info__rc_headers)
{
	size_t i;

	for (i = 0; i < RC_COUNT; i++) {
		assert_int_equal(opcode_info(rc[i].opcode)->flags, rc[i].flags);
		assert_int_equal(opcode_info(rc[i].opcode)->ext_len, rc[i].ext_len);
	}
}

TEST(opcode_info__uc_has_the_headers_of_rc)
{
	size_t i;

	for (i = 0; i < 12; i++) {
		assert_int_equal(opcode_info(OPCODE_UC | rc[i].opcode)->flags, rc[i].flags);
		assert_int_equal(opcode_info(OPCODE_UC | rc[i].opcode)->ext_len, rc[i].ext_len);
	}
}

TEST(opcode_info__ud_has_a_deth)
{
	const uint32_t flags = SEND | ONLY | OPCODE_HAS_DETH;

	assert_int_equal(opcode_info(0x64)->flags, flags);
	assert_int_equal(opcode_info(0x64)->ext_len, 8);
	assert_int_equal(opcode_info(0x65)->flags, flags | OPCODE_HAS_IMM);
	assert_int_equal(opcode_info(0x65)->ext_len, 12);
}

TEST(opcode_info__xrc_requests_have_an_xrceth)
{
	size_t i;

	for (i = 0; i < RC_COUNT; i++) {
		const struct opcode_info *info = opcode_info(OPCODE_XRC | rc[i].opcode);
		const bool request = rc[i].flags & OPCODE_REQUEST;

		assert_int_equal(info->flags, rc[i].flags | (request ? OPCODE_HAS_XRCETH : 0));
		assert_int_equal(info->ext_len, rc[i].ext_len + (request ? 4 : 0));
	}
}

TEST(opcode_info__cnp_is_sixteen_reserved_bytes)
{
	assert_int_equal(opcode_info(0x81)->flags, OPCODE_KNOWN);
	assert_int_equal(opcode_info(0x81)->ext_len, 16);
}

TEST(opcode_info__our_opcode_is_one_that_manufacturers_define)
{
	assert_true(OPCODE_SACK >= 0xc0);
	assert_int_equal(opcode_info(OPCODE_SACK)->flags,
			 OPCODE_KNOWN | OPCODE_PAYLOAD | OPCODE_HAS_SACKETH);
	assert_int_equal(opcode_info(OPCODE_SACK)->ext_len, 4);
}

TEST(opcode_info__names)
{
	unsigned int i, j;

	assert_string_equal(opcode_info(0x04)->name, "RC SEND Only");
	assert_string_equal(opcode_info(0x2b)->name, "UC RDMA WRITE Only with Immediate");
	assert_string_equal(opcode_info(0xb7)->name, "XRC SEND Only with Invalidate");
	for (i = 0; i < 256; i++)
		for (j = 0; j < i; j++)
			if (opcode_info((uint8_t)i)->flags && opcode_info((uint8_t)j)->flags)
				assert_string_not_equal(opcode_info((uint8_t)i)->name,
							opcode_info((uint8_t)j)->name);
}
