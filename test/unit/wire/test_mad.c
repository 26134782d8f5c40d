/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/wire/mad.c. */
#include <stdint.h>
#include <string.h>

#include "wire/mad.h"
#include "test.h"

static void make(uint8_t *mad, uint8_t method)
{
	memset(mad, 0x5a, MAD_LEN);
	mad[0] = 9; /* a version that nobody has */
	mad[1] = 0x04;
	mad[2] = 1;
	mad[3] = method;
}

TEST(respond__keeps_class_tid_and_attribute)
{
	uint8_t mad[MAD_LEN], response[MAD_LEN];

	make(mad, MAD_GET);
	memset(response, 0xff, sizeof(response));
	assert_true(mad_respond(mad, MAD_CODE_BAD_ATTRIBUTE, response));
	assert_int_equal(response[0], MAD_BASE_VERSION);
	assert_memory_equal(response + 1, mad + 1, 2);
	assert_int_equal(response[3], 0x81);
	assert_int_equal(response[4] << 8 | response[5], 0x000c);
	assert_memory_equal(response + 6, mad + 6, sizeof(struct mad_header) - 6);
	for (size_t i = sizeof(struct mad_header); i < MAD_LEN; i++)
		assert_int_equal(response[i], 0);
}

TEST(respond__set_has_a_response_too)
{
	uint8_t mad[MAD_LEN], response[MAD_LEN];

	make(mad, MAD_SET);
	assert_true(mad_respond(mad, MAD_CODE_BAD_ATTRIBUTE, response));
	assert_int_equal(response[3], 0x81);
}

TEST(respond__nothing_else_has_one)
{
	uint8_t mad[MAD_LEN], response[MAD_LEN];

	for (unsigned int method = 0; method < 256; method++) {
		if (method == MAD_GET || method == MAD_SET)
			continue;
		make(mad, (uint8_t)method);
		assert_false(mad_respond(mad, MAD_CODE_BAD_ATTRIBUTE, response));
	}
}
