/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/wire/mad.c. */
#include <stdint.h>
#include <string.h>

#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/packet.h"
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

TEST(put__a_packet_from_qp_1_to_qp_1)
{
	const struct path_attr attr = {.vlan_tci = -1,
				       .sgid = {[10] = 0xff, 0xff, 10, 9, 0, 1},
				       .dgid = {[10] = 0xff, 0xff, 10, 9, 0, 2},
				       .hop_limit = WIRE_HOP_LIMIT,
				       .udp_sport = WIRE_UDP_SPORT_MIN};
	uint8_t mad[MAD_LEN], frame[PACKET_FRAME_MAX];
	struct packet_out out = {.frame = frame};
	struct packet packet;
	struct path path;
	int len;

	make(mad, MAD_SEND);
	assert_int_equal(path_init(&path, &attr), 0);
	mad_put(&out, &path, psn_make(0xabcdef), mad);
	len = packet_seal(&out);
	assert_true(len > 0);
	assert_int_equal(packet_parse(frame, (size_t)len, false, &packet), PACKET_OK);
	assert_true(packet_icrc_ok(&packet));
	assert_int_equal(packet.opcode, OPCODE_UD | OPCODE_SEND_ONLY);
	assert_int_equal(packet.dest_qpn, GSI_QPN);
	assert_int_equal(packet.src_qpn, GSI_QPN);
	assert_int_equal(packet.qkey, GSI_QKEY);
	assert_int_equal(packet.psn.v, 0xabcdef);
	assert_int_equal(packet.hop_limit, 64);
	assert_int_equal(packet.payload_len, MAD_LEN);
	assert_memory_equal(packet.payload, mad, MAD_LEN);
}
