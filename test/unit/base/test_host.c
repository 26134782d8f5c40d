/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/host.c. */
#include <stdint.h>

#include "base/host.h"
#include "test.h"

/* The vectors are from the FNV authors' test suite. */
TEST(hash_bytes__is_fnv_1a)
{
	assert_true(hash_bytes(HASH_START, "", 0) == UINT64_C(0xcbf29ce484222325));
	assert_true(hash_bytes(HASH_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(hash_bytes(HASH_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
	assert_true(hash_bytes(hash_bytes(HASH_START, "foo", 3), "bar", 3) ==
		    UINT64_C(0x85944171f73967e8));
}

TEST(hash_host__stays_and_goes_on)
{
	assert_true(hash_host(HASH_START) == hash_host(HASH_START));
	assert_true(hash_host(HASH_START) != HASH_START);
	assert_true(hash_host(HASH_START) != hash_host(1));
}

/* A caller that uses only bits in the middle gets others for a text that differs in its last byte.
 */
TEST(hash_unique__the_last_byte_reaches_the_middle)
{
	const uint64_t a = hash_unique("uroce0"), b = hash_unique("uroce1");

	assert_true(hash_unique("uroce0") == a);
	assert_int_not_equal(a >> 12 & 0xffffff, b >> 12 & 0xffffff);
}
