/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of packet_peek_qpn: it finds what packet_parse finds, and reads nothing beyond the frame.
 */
#include <glob.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pcap.h"
#include "wire/build.h"
#include "wire/headers.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "test.h"

#define QPN	  0x123456u
#define UNTAGGED  (-1)
#define TAGGED	  0xa005
#define ETHER_LEN 14
#define TAG_LEN	  4
#define UDP_LEN	  8

static const uint8_t ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
static const uint8_t ipv6[16] = {0xfd, [15] = 1};

static uint8_t frame[PACKET_FRAME_MAX];

/* Make a SEND of ten bytes in `frame`. Returns its length. */
static size_t build(const uint8_t gid[16], int32_t vlan_tci)
{
	static const uint8_t payload[10] = "ten bytes";
	const struct bth_fields bth = {
		.opcode = OPCODE_RC | OPCODE_SEND_ONLY, .pkey = WIRE_PKEY_DEFAULT, .dest_qpn = QPN};
	struct path_attr attr = {.vlan_tci = vlan_tci, .hop_limit = 64, .udp_sport = 0xc000};
	struct packet_out out = {.frame = frame};
	struct path path;

	memcpy(attr.sgid, gid, sizeof(attr.sgid));
	memcpy(attr.dgid, gid, sizeof(attr.dgid));
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	assert_int_equal(packet_payload(&out, FRAG_COPY, payload, sizeof(payload)), 0);
	return packet_seal(&out);
}

static size_t ip_offset(int32_t vlan_tci)
{
	return ETHER_LEN + (vlan_tci < 0 ? 0 : TAG_LEN);
}

static size_t bth_offset(const uint8_t gid[16], int32_t vlan_tci)
{
	return ip_offset(vlan_tci) + (gid == ipv4 ? 20 : 40) + UDP_LEN;
}

/* Peek at a copy that ends where its memory ends, so that the address sanitizer sees a read beyond.
 * A number is written only if there is one. */
static bool peek(const uint8_t *bytes, size_t len, uint32_t *qpn)
{
	uint8_t *copy = malloc(len ? len : 1);
	bool found;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	*qpn = UINT32_MAX;
	found = packet_peek_qpn(copy + (len ? 0 : 1), len, qpn);
	if (found)
		assert_true(*qpn < 1u << 24);
	else
		assert_int_equal(*qpn, UINT32_MAX);
	free(copy);
	return found;
}

static void assert_finds_nothing(size_t len)
{
	uint32_t qpn;

	assert_false(peek(frame, len, &qpn));
}

/* Whatever the parser takes as a RoCE packet has the number that it finds. Returns true if the
 * parser takes the frame. */
static bool agrees(const uint8_t *bytes, size_t len)
{
	struct packet packet;
	uint32_t qpn;
	const bool found = peek(bytes, len, &qpn);

	if (packet_parse(bytes, len, true, &packet) != PACKET_OK)
		return false;
	assert_true(found);
	assert_int_equal(qpn, packet.dest_qpn);
	return true;
}

static void each_kind(void (*check)(const uint8_t gid[16], int32_t vlan_tci))
{
	check(ipv4, UNTAGGED);
	check(ipv4, TAGGED);
	check(ipv6, UNTAGGED);
	check(ipv6, TAGGED);
}

static void finds_the_number(const uint8_t gid[16], int32_t vlan_tci)
{
	const size_t len = build(gid, vlan_tci);
	uint32_t qpn;

	assert_true(agrees(frame, len));
	assert_true(peek(frame, len, &qpn));
	assert_int_equal(qpn, QPN);
	memset(frame + bth_offset(gid, vlan_tci) + offsetof(struct bth, dest_qpn), 0xff, 3);
	assert_true(peek(frame, len, &qpn));
	assert_int_equal(qpn, WIRE_QPN_MULTICAST);
}

TEST(packet_peek_qpn__finds_the_number_that_the_parser_finds)
{
	each_kind(finds_the_number);
}

static void needs_a_whole_bth(const uint8_t gid[16], int32_t vlan_tci)
{
	const size_t whole = build(gid, vlan_tci);
	const size_t needed = bth_offset(gid, vlan_tci) + sizeof(struct bth);
	uint32_t qpn;

	for (size_t len = 0; len < needed; len++)
		assert_finds_nothing(len);
	for (size_t len = needed; len <= whole; len++) {
		assert_true(peek(frame, len, &qpn));
		assert_int_equal(qpn, QPN);
	}
}

TEST(packet_peek_qpn__needs_a_whole_bth_and_reads_no_more)
{
	each_kind(needs_a_whole_bth);
}

static void needs_udp(const uint8_t gid[16], int32_t vlan_tci)
{
	const size_t len = build(gid, vlan_tci);
	uint8_t *const protocol = frame + ip_offset(vlan_tci) + (gid == ipv4 ? 9 : 6);

	for (int other = 0; other < 256; other++) {
		*protocol = (uint8_t)other;
		if (other != 17)
			assert_finds_nothing(len);
	}
}

TEST(packet_peek_qpn__needs_udp)
{
	each_kind(needs_udp);
}

static void needs_the_port(const uint8_t gid[16], int32_t vlan_tci)
{
	const size_t len = build(gid, vlan_tci);
	uint8_t *const ports = frame + bth_offset(gid, vlan_tci) - UDP_LEN;
	uint32_t qpn;

	for (int bit = 0; bit < 16; bit++) {
		ports[2 + bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_finds_nothing(len);
		ports[2 + bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	/* The source port says nothing. */
	memset(ports, 0, 2);
	assert_true(peek(frame, len, &qpn));
	memcpy(ports, ports + 2, 2);
	memset(ports + 2, 0, 2);
	assert_finds_nothing(len);
}

TEST(packet_peek_qpn__needs_the_destination_port)
{
	each_kind(needs_the_port);
}

static void needs_ip(const uint8_t gid[16], int32_t vlan_tci)
{
	static const uint8_t others[][2] = {{0x08, 0x06}, {0x89, 0x15}, {0x88, 0xa8},
					    {0, 46},	  {0, 0},	{0xff, 0xff}};
	const size_t len = build(gid, vlan_tci);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		memcpy(frame + ip_offset(vlan_tci) - 2, others[i], 2);
		assert_finds_nothing(len);
	}
}

TEST(packet_peek_qpn__needs_ip)
{
	each_kind(needs_ip);
}

/* A second tag is no IP. The BTH stands where it would be after two tags. */
TEST(packet_peek_qpn__takes_one_tag)
{
	static const uint8_t tag[TAG_LEN] = {0x81, 0x00, 0, 5};
	const size_t len = build(ipv4, TAGGED);

	memmove(frame + 12 + TAG_LEN, frame + 12, len - 12);
	memcpy(frame + 12, tag, sizeof(tag));
	assert_finds_nothing(len + TAG_LEN);
	assert_false(agrees(frame, len + TAG_LEN));
}

static void agrees_on_damage(const uint8_t gid[16], int32_t vlan_tci)
{
	const size_t len = build(gid, vlan_tci);
	unsigned int parsed = 0;

	for (size_t bit = 0; bit < len * 8; bit++) {
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		parsed += agrees(frame, len);
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	/* At least the numbers' own bits do no harm to the rest. */
	assert_in_range(parsed, 24, len * 8 - 24);
}

TEST(packet_peek_qpn__agrees_with_the_parser_on_each_wrong_bit)
{
	each_kind(agrees_on_damage);
}

static unsigned int check_capture(const char *path)
{
	struct pcap_frame next;
	unsigned int frames = 0;
	struct pcap pcap;
	int ret;

	assert_int_equal(pcap_open(&pcap, path), 0);
	while ((ret = pcap_next(&pcap, &next)) > 0) {
		assert_true(agrees(next.data, next.len));
		frames++;
	}
	assert_int_equal(ret, 0);
	pcap_close(&pcap);
	return frames;
}

/* test_wire_captures.c counts the files and their packets. */
TEST(packet_peek_qpn__agrees_with_the_parser_on_captures)
{
	unsigned int frames = 0;
	glob_t found;

	assert_int_equal(glob(TEST_DATA "/wire/*.pcap", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		frames += check_capture(found.gl_pathv[i]);
	assert_int_equal(frames, 894);
	globfree(&found);
}
