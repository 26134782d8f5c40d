/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are copied, and verified on the way. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/build.h"
#include "wire/packet.h"
#include "test.h"

#define IPV4_LEN_AT  16
#define IPV6_LEN_AT  18
#define UDP_LEN_IPV4 38

static uint8_t frame[PACKET_FRAME_MAX], copied[PACKET_FRAME_MAX + 8];

/* Bytes of a packet of so much payload. */
static size_t build(bool ipv6, int32_t vlan, uint32_t len)
{
	struct path_attr attr = {.vlan_tci = vlan, .hop_limit = 64, .udp_sport = 0xc123};
	const struct bth_fields fields = {.opcode = OPCODE_RC | OPCODE_SEND_ONLY,
					  .migrated = true,
					  .pkey = WIRE_PKEY_DEFAULT,
					  .dest_qpn = 5};
	static uint8_t data[WIRE_MTU_MAX];
	struct packet_out out = {.frame = frame};
	struct path path;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(attr.sgid + 10, ipv6 ? 1 : 0xff, 2);
	memset(attr.dgid + 10, ipv6 ? 2 : 0xff, 2);
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &fields);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, len), 0);
	return (size_t)packet_seal(&out);
}

static bool copy(size_t len)
{
	bool right;

	memset(copied, 0x5a, sizeof(copied));
	right = packet_copy(copied, frame, len);
	assert_memory_equal(copied, frame, len);
	assert_int_equal(copied[len], 0x5a);
	return right;
}

TEST(packet_copy__finds_what_the_parser_finds)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (uint32_t len = 0; len <= WIRE_MTU_MAX; len += len < 600 ? 1 : 511) {
			const size_t bytes = build(ipv6, -1, len);
			struct packet packet;

			assert_int_equal(packet_parse(frame, bytes, false, &packet), PACKET_OK);
			assert_true(packet_icrc_ok(&packet));
			/* Short ones are left to the parser. */
			assert_int_equal(copy(bytes), bytes >= 512);
		}
	}
}

TEST(packet_copy__finds_each_wrong_byte)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		const size_t bytes = build(ipv6, -1, 1000);
		const size_t bth = 14 + (ipv6 ? 40 : 20) + 8;

		for (size_t i = bth; i < bytes; i++) {
			frame[i] ^= 0x10;
			/* The byte beside FECN and BECN is left out of the ICRC. */
			assert_int_equal(copy(bytes), i == bth + 4);
			frame[i] ^= 0x10;
		}
	}
}

/* The place of the ICRC must be certain. */
TEST(packet_copy__leaves_odd_lengths_to_the_parser)
{
	static const size_t at[] = {IPV4_LEN_AT, UDP_LEN_IPV4};
	size_t bytes;

	for (int i = 0; i < 2; i++) {
		bytes = build(false, -1, 1000);
		frame[at[i] + 1] ^= 4;
		assert_false(copy(bytes));
	}
	bytes = build(true, -1, 1000);
	frame[IPV6_LEN_AT + 1] ^= 4;
	assert_false(copy(bytes));
	bytes = build(false, -1, 1000);
	assert_false(copy(bytes + 4));
	assert_false(copy(bytes - 4));
}

TEST(packet_copy__leaves_other_frames_alone)
{
	static const size_t at[] = {12, 14, 23, 37};
	size_t bytes;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		bytes = build(false, -1, 1000);
		frame[at[i]] ^= 1;
		assert_false(copy(bytes));
	}
	/* Right, but tagged: rare. */
	assert_false(copy(build(false, 5, 1000)));
}
