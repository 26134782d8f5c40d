/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that are built: their fields, their limits, and that the parser agrees. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guard.h"
#include "wire/build.h"
#include "wire/headers.h"
#include "wire/packet.h"
#include "test.h"

/* clang-format off */
static const struct path_attr ipv4_attr = {
	.vlan_tci = -1,
	.sgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 1},
	.dgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 2},
	.tclass = 2,
	.hop_limit = 64,
	.udp_sport = 0xc123,
};

static const struct path_attr ipv6_attr = {
	.vlan_tci = 5,
	.sgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
	.dgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},
	.hop_limit = 64,
	.udp_sport = 0xc123,
};
/* clang-format on */

static const struct bth_fields send_only = {
	.opcode = OPCODE_RC | OPCODE_SEND_ONLY,
	.migrated = true,
	.pkey = WIRE_PKEY_DEFAULT,
	.dest_qpn = 0x123456,
	.psn = {0xabcdef},
};

static uint8_t frame[PACKET_FRAME_MAX + 1];
static uint8_t data[WIRE_MTU_MAX + 1];
static struct packet_out out;
static struct path path;

static int fresh(TEST_STATE)
{
	size_t i;

	/* Fill the frame, so that unwritten bytes show. */
	memset(frame, 0xa5, sizeof(frame));
	memset(&out, 0xa5, sizeof(out));
	out.frame = frame;
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	return path_init(&path, &ipv4_attr);
}

TEST_FIXTURE(fresh, NULL);

static void parse(uint32_t len, struct packet *packet)
{
	assert_int_equal(packet_parse(frame, len, false, packet), PACKET_OK);
	assert_true(packet_icrc_ok(packet));
}

TEST(packet_begin__writes_the_bth)
{
	static const uint8_t expected[] = {0x04, 0x40, 0xff, 0xff, 0,	 0x12,
					   0x34, 0x56, 0,    0xab, 0xcd, 0xef};

	packet_begin(&out, &path, &send_only);
	assert_int_equal(out.hdr_len, 14 + 20 + 8 + 12);
	assert_memory_equal(frame, path.hdr, path.len);
	assert_memory_equal(frame + 42, expected, sizeof(expected));
}

TEST(packet_begin__each_flag_is_its_bit)
{
	struct bth_fields bth = {.opcode = 0x11};

	packet_begin(&out, &path, &bth);
	assert_int_equal(frame[43], 0);
	assert_int_equal(frame[46], 0);
	assert_int_equal(frame[50], 0);
	bth.solicited = true;
	packet_begin(&out, &path, &bth);
	assert_int_equal(frame[43], 0x80);
	bth.ack_byte = BTH_ACK_REQ;
	packet_begin(&out, &path, &bth);
	assert_int_equal(frame[50], 0x80);
	bth.becn = true;
	packet_begin(&out, &path, &bth);
	assert_int_equal(frame[46], 0x40);
}

TEST(packet_begin__forgets_the_packet_before)
{
	uint32_t len;

	packet_begin(&out, &path, &send_only);
	out.ip_id = 99;
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 100), 0);
	packet_begin(&out, &path, &send_only);
	assert_int_equal(out.frags, 0);
	assert_int_equal(out.payload_len, 0);
	len = packet_seal(&out);
	assert_int_equal(len, 14 + 20 + 8 + 12 + 4);
	assert_int_equal(frame[18] << 8 | frame[19], 0);
}

TEST(packet_extend__reserves_behind_what_is_there)
{
	packet_begin(&out, &path, &send_only);
	assert_ptr_equal(packet_extend(&out, 16), frame + 54);
	assert_ptr_equal(packet_extend(&out, 4), frame + 70);
	assert_int_equal(out.hdr_len, 74);
}

TEST(packet_payload__refuses_a_fragment_too_many)
{
	int i;

	packet_begin(&out, &path, &send_only);
	for (i = 0; i < PACKET_FRAGS_MAX; i++)
		assert_int_equal(packet_payload(&out, FRAG_COPY, data + i, 1), 0);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 1), -ENOSPC);
	assert_int_equal(out.payload_len, PACKET_FRAGS_MAX);
	/* An empty fragment needs no room. */
	assert_int_equal(packet_payload(&out, FRAG_COPY, NULL, 0), 0);
}

TEST(packet_payload__refuses_more_than_the_largest_mtu)
{
	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, WIRE_MTU_MAX + 1), -EMSGSIZE);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, WIRE_MTU_MAX), 0);
	assert_int_equal(packet_payload(&out, FRAG_ZERO, NULL, 1), -EMSGSIZE);
	assert_int_equal(packet_payload(&out, FRAG_ZERO, NULL, UINT32_MAX), -EMSGSIZE);
	assert_int_equal(out.payload_len, WIRE_MTU_MAX);
}

TEST(packet_payload__is_read_by_seal)
{
	struct packet packet;

	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 8), 0);
	memset(data, 0x77, 8);
	parse(packet_seal(&out), &packet);
	assert_memory_equal(packet.payload, data, 8);
}

TEST(packet_seal__pads_with_zeros_to_four_bytes)
{
	struct packet packet;
	uint32_t len, i;

	for (len = 0; len <= 80; len++) {
		fresh(state);
		packet_begin(&out, &path, &send_only);
		assert_int_equal(packet_payload(&out, FRAG_COPY, data, len), 0);
		parse(packet_seal(&out), &packet);
		assert_int_equal(packet.payload_len, len);
		assert_int_equal(packet.pad, (4 - len % 4) % 4);
		assert_memory_equal(packet.payload, data, len);
		for (i = 0; i < packet.pad; i++)
			assert_int_equal(packet.payload[len + i], 0);
		/* No byte is written behind the ICRC, except in the space that the headers of any
		 * packet may use. */
		if (packet.payload + len + packet.pad + 4 >= frame + sizeof(path.hdr))
			assert_int_equal(packet.payload[len + packet.pad + 4], 0xa5);
	}
}

TEST(packet_seal__may_be_called_again)
{
	struct packet packet;
	uint32_t len;

	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 5), 0);
	len = packet_seal(&out);
	assert_int_equal(packet_seal(&out), len);
	parse(len, &packet);
	assert_int_equal(packet.pad, 3);
}

TEST(packet_seal__gathers_copies_and_zeros)
{
	static const uint8_t zeros[1000];
	struct packet packet;

	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 3), 0);
	assert_int_equal(packet_payload(&out, FRAG_ZERO, NULL, 1000), 0);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data + 3, 70), 0);
	assert_int_equal(packet_payload(&out, FRAG_ZERO, NULL, 2), 0);
	parse(packet_seal(&out), &packet);
	assert_int_equal(packet.payload_len, 1075);
	assert_memory_equal(packet.payload, data, 3);
	assert_memory_equal(packet.payload + 3, zeros, 1000);
	assert_memory_equal(packet.payload + 1003, data + 3, 70);
	assert_memory_equal(packet.payload + 1073, zeros, 2);
}

/* Whole but for ICRC and UDP checksum. */
TEST(packet_seal__of_who_is_trusted_leaves_the_icrc_out)
{
	static const uint8_t zeros[4];
	struct packet packet;
	int len, sealed_len;

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		fresh(state);
		assert_int_equal(path_init(&path, ipv6 ? &ipv6_attr : &ipv4_attr), 0);
		packet_begin(&out, &path, &send_only);
		assert_int_equal(packet_payload(&out, FRAG_COPY, data, 70), 0);
		assert_int_equal(packet_payload(&out, FRAG_ZERO, NULL, 3), 0);
		assert_false(out.unsealed);
		out.unsealed = true;
		len = packet_seal(&out);
		assert_int_equal(packet_parse(frame, (size_t)len, true, &packet), PACKET_OK);
		assert_int_equal(packet.payload_len, 73);
		assert_memory_equal(packet.payload, data, 70);
		assert_memory_equal(packet.payload + 70, zeros, 3);
		assert_memory_equal(frame + len - 4, zeros, 4);
		assert_int_equal(frame[len], 0xa5);
		out.unsealed = false;
		sealed_len = packet_seal(&out);
		assert_int_equal(sealed_len, len);
		parse((uint32_t)sealed_len, &packet);
	}
}

TEST(packet_seal__memory_that_is_gone_is_a_fault)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *gone = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct packet packet;

	assert_ptr_not_equal(gone, MAP_FAILED);
	assert_int_equal(guard_install(), 0);
	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 100), 0);
	assert_int_equal(packet_payload(&out, FRAG_COPY, gone, 100), 0);
	assert_int_equal(packet_seal(&out), -EFAULT);
	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, gone, 8), 0);
	assert_int_equal(packet_seal(&out), -EFAULT);
	/* The next one is not harmed. */
	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 100), 0);
	parse(packet_seal(&out), &packet);
	assert_memory_equal(packet.payload, data, 100);
	munmap(gone, page);
}

TEST(packet_seal__own_memory_is_copied_as_any)
{
	struct packet packet;

	for (uint32_t len = 1; len <= 100; len++) {
		packet_begin(&out, &path, &send_only);
		assert_int_equal(packet_payload(&out, FRAG_OWN, data, len), 0);
		assert_false(out.guarded);
		assert_int_equal(out.copy_len, len);
		parse((uint32_t)packet_seal(&out), &packet);
		assert_int_equal(packet.payload_len, len);
		assert_memory_equal(packet.payload, data, len);
	}
}

/* The longest packet: XRC's atomic headers and a full MTU behind a tagged IPv6 header. */
TEST(packet_seal__longest_packet_fits_its_frame)
{
	const struct bth_fields bth = {.opcode = OPCODE_XRC | OPCODE_WRITE_ONLY_IMM};
	struct packet packet;
	uint32_t len;

	assert_int_equal(path_init(&path, &ipv6_attr), 0);
	packet_begin(&out, &path, &bth);
	memset(packet_extend(&out, 24), 0, 24);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, WIRE_MTU_MAX), 0);
	len = packet_seal(&out);
	assert_true(len <= PACKET_FRAME_MAX);
	parse(len, &packet);
	assert_int_equal(packet.vlan_tci, 5);
	assert_memory_equal(packet.payload, data, WIRE_MTU_MAX);
	assert_int_equal(frame[len], 0xa5);
}

TEST(packet_seal__ipv4_id_and_its_checksum)
{
	struct packet packet;
	unsigned int id;

	/* Sums that carry are among so many. */
	for (id = 0; id < 0x10000; id += 17) {
		packet_begin(&out, &path, &send_only);
		out.ip_id = (uint16_t)id;
		parse(packet_seal(&out), &packet);
		assert_int_equal(frame[18] << 8 | frame[19], id);
		/* UDP checksum 0: the ICRC covers more than it would. */
		assert_int_equal(frame[40] << 8 | frame[41], 0);
	}
}

TEST(packet_seal__ipv6_udp_checksum_of_zero_is_sent_as_ones)
{
	struct packet packet;
	unsigned int round, ones = 0;
	uint32_t payload;

	assert_int_equal(path_init(&path, &ipv6_attr), 0);
	for (round = 0; round < 2000000 && ones == 0; round++) {
		uint8_t *checksum = frame + 18 + 40 + 6;

		payload = round * 2654435761u;
		packet_begin(&out, &path, &send_only);
		assert_int_equal(packet_payload(&out, FRAG_COPY, &payload, sizeof(payload)), 0);
		parse(packet_seal(&out), &packet);
		assert_true(checksum[0] != 0 || checksum[1] != 0);
		ones += checksum[0] == 0xff && checksum[1] == 0xff;
	}
	/* One packet in 65,536 has this checksum. */
	assert_int_equal(ones, 1);
}

/* The port adds up what the pseudo header's sum leaves. */
TEST(packet_seal__ipv6_udp_checksum_may_be_the_ports_to_complete)
{
	const uint16_t *words;
	struct packet packet;
	uint32_t sum = 0, len;

	assert_int_equal(path_init(&path, &ipv6_attr), 0);
	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, data, 100), 0);
	out.udp_sum_by_port = true;
	len = (uint32_t)packet_seal(&out);
	words = (const uint16_t *)(const void *)(frame + out.l4_off);
	for (uint32_t i = 0; i < (len - out.l4_off) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
	memcpy(frame + out.l4_off + 6, &sum, 2);
	parse(len, &packet);
	assert_memory_equal(packet.payload, data, 100);
}

/* The same bytes, in two places. */
TEST(packet_seal_in_place__makes_the_packet_that_packet_seal_makes)
{
	static uint8_t whole[PACKET_FRAME_MAX];
	uint8_t tail[PACKET_TAIL_MAX];

	for (uint32_t payload = 1; payload <= WIRE_MTU_MAX; payload += payload < 9 ? 1 : 401) {
		int len, tail_len;

		packet_begin(&out, &path, &send_only);
		assert_int_equal(packet_payload(&out, FRAG_COPY, data, payload / 2), 0);
		assert_int_equal(
			packet_payload(&out, FRAG_COPY, data + payload / 2, payload - payload / 2),
			0);
		len = packet_seal(&out);
		memcpy(whole, frame, (size_t)len);
		packet_begin(&out, &path, &send_only);
		assert_int_equal(packet_payload(&out, FRAG_COPY, data, payload), 0);
		tail_len = packet_seal_in_place(&out, tail);
		assert_int_equal(out.hdr_len + payload + (uint32_t)tail_len, len);
		assert_memory_equal(frame, whole, out.hdr_len);
		assert_memory_equal(tail, whole + out.hdr_len + payload, (size_t)tail_len);
	}
}

TEST(packet_seal_in_place__memory_that_is_gone_is_a_fault)
{
	uint8_t tail[PACKET_TAIL_MAX];
	const size_t page = 4096;
	uint8_t *gone = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(gone, MAP_FAILED);
	assert_int_equal(guard_install(), 0);
	packet_begin(&out, &path, &send_only);
	assert_int_equal(packet_payload(&out, FRAG_COPY, gone, 100), 0);
	assert_int_equal(packet_seal_in_place(&out, tail), -EFAULT);
	munmap(gone, page);
}
