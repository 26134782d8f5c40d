/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/psock/udp_frame.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "frames.h"
#include "psock/udp_frame.h"
#include "test.h"

static uint8_t frame[FRAME_MAX], other[FRAME_MAX];
static struct udp_frame headers;

TEST(udp_frame_find__knows_both_ips_with_and_without_a_tag)
{
	static const struct {
		bool ipv6, tagged;
		uint8_t l3_off, l4_off;
	} cases[] = {{false, false, 14, 34},
		     {false, true, 18, 38},
		     {true, false, 14, 54},
		     {true, true, 18, 58}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct frame what = {
			.ipv6 = cases[i].ipv6, .tagged = cases[i].tagged, .len = 64};
		const uint32_t len = frame_make(&what, frame);

		assert_true(udp_frame_find(frame, len, &headers));
		assert_int_equal(headers.ipv6, cases[i].ipv6);
		assert_int_equal(headers.l3_off, cases[i].l3_off);
		assert_int_equal(headers.l4_off, cases[i].l4_off);
		assert_int_equal(headers.len, cases[i].l4_off + 8);
		assert_true(udp_frame_find(frame, headers.len, &headers));
		for (uint32_t shorter = 0; shorter < headers.len; shorter++)
			assert_false(udp_frame_find(frame, shorter, &headers));
	}
}

TEST(udp_frame_find__leaves_other_packets_alone)
{
	static const struct {
		size_t at;
		uint8_t value;
	} changes[] = {{13, 6}, {14, 0x46}, {14, 0x65}, {20, 0x20}, {21, 1}, {23, 6}};
	const struct frame what = {.len = 64};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const uint32_t len = frame_make(&what, frame);

		frame[changes[i].at] = changes[i].value;
		assert_false(udp_frame_find(frame, len, &headers));
	}
}

TEST(udp_frame_set__makes_what_was_sealed)
{
	for (int i = 0; i < 4; i++) {
		const struct frame what = {
			.ipv6 = i & 1, .tagged = i & 2, .id = 0xfffe, .len = 256};
		const uint32_t len = frame_make(&what, frame);

		memcpy(other, frame, len);
		assert_true(udp_frame_find(frame, len, &headers));
		assert_true(udp_frame_lengths_match(frame, &headers, len - headers.len));
		udp_frame_set(other, &headers, 4, 1);
		assert_false(udp_frame_lengths_match(other, &headers, len - headers.len));
		udp_frame_set(other, &headers, len - headers.len, 0xfffe);
		assert_memory_equal(other, frame, len);
		assert_int_equal(udp_frame_id(other, &headers), what.ipv6 ? 0 : 0xfffe);
	}
}

TEST(udp_frame_same__minds_every_byte_but_what_the_kernel_writes)
{
	for (int v6 = 0; v6 < 2; v6++) {
		const struct frame what = {.ipv6 = v6, .tagged = true, .len = 64};
		const uint32_t len = frame_make(&what, frame);

		assert_true(udp_frame_find(frame, len, &headers));
		for (uint32_t i = 0; i < headers.len; i++) {
			const uint32_t l3 = i - headers.l3_off;
			const bool written = i >= headers.l4_off + 4u ||
					     (v6 ? l3 == 4 || l3 == 5
						 : (l3 >= 2 && l3 <= 5) || l3 == 10 || l3 == 11);

			memcpy(other, frame, len);
			other[i] ^= 1;
			assert_int_equal(udp_frame_same(frame, other, &headers), written);
		}
	}
}
