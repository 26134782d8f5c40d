/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/tag.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/tag.h"
#include "netdev/netdev.h"
#include "test.h"

static const uint8_t plain[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x08, 0x06, 0xaa, 0xbb};
static const uint8_t tagged[] = {1,  2,	 3,    4,    5,	   6,	 7,    8,    9,	   10,
				 11, 12, 0x81, 0x00, 0x0f, 0xfe, 0x08, 0x06, 0xaa, 0xbb};

TEST(tag_insert__puts_it_behind_the_addresses)
{
	uint8_t frame[sizeof(tagged)];

	memcpy(frame, plain, sizeof(plain));
	assert_int_equal(tag_insert(frame, sizeof(plain), 0xffe), sizeof(tagged));
	assert_memory_equal(frame, tagged, sizeof(tagged));
	memcpy(frame, plain, sizeof(plain));
	assert_int_equal(tag_insert(frame, sizeof(plain), VLAN_NONE), sizeof(plain));
	assert_memory_equal(frame, plain, sizeof(plain));
	/* An empty answer stays empty. */
	assert_int_equal(tag_insert(frame, 0, 5), 0);
}

TEST(tag_remove__takes_vlan_and_tag)
{
	uint8_t frame[sizeof(tagged)];
	size_t len = sizeof(frame);
	int32_t vlan;
	uint8_t *at;

	memcpy(frame, tagged, sizeof(tagged));
	frame[14] |= 0xf0; /* a priority */
	at = tag_remove(frame, &len, &vlan);
	assert_int_equal(vlan, 0xffe);
	assert_int_equal(len, sizeof(plain));
	assert_memory_equal(at, plain, sizeof(plain));
}

TEST(tag_remove__a_priority_alone_is_no_vlan)
{
	uint8_t frame[sizeof(tagged)];
	size_t len = sizeof(frame);
	int32_t vlan;
	uint8_t *at;

	memcpy(frame, tagged, sizeof(tagged));
	frame[14] = 0xe0;
	frame[15] = 0;
	at = tag_remove(frame, &len, &vlan);
	assert_int_equal(vlan, VLAN_NONE);
	assert_memory_equal(at, plain, sizeof(plain));
}

TEST(tag_remove__leaves_other_frames)
{
	uint8_t frame[sizeof(tagged)];
	size_t len;
	int32_t vlan;

	memcpy(frame, plain, sizeof(plain));
	len = sizeof(plain);
	assert_ptr_equal(tag_remove(frame, &len, &vlan), frame);
	assert_int_equal(len, sizeof(plain));
	assert_int_equal(vlan, VLAN_NONE);
	memcpy(frame, tagged, sizeof(tagged));
	for (len = 0; len < 18; len++) {
		size_t left = len;

		assert_ptr_equal(tag_remove(frame, &left, &vlan), frame);
		assert_int_equal(left, len);
	}
}
