/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser on frames that are made by hand: every field, and every way of being wrong. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/headers.h"
#include "wire/icrc.h"
#include "wire/packet.h"
#include "test.h"

#define EXT_SEED 0x10 /* first byte of the extended headers; each next is one more */

static uint8_t frame[512];
static uint8_t *l3, *udp, *bth;
static size_t frame_len;
static bool ipv6;
static struct packet packet;

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t sum_words(const uint8_t *p, size_t len, uint32_t sum)
{
	size_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Write the IPv4 header checksum anew, and with `udp_too` the UDP checksum. */
static void set_checksums(bool udp_too)
{
	const size_t udp_len = frame_len - (size_t)(udp - frame);
	uint32_t sum;

	if (!ipv6) {
		put16(l3 + 10, 0);
		put16(l3 + 10, ~sum_words(l3, 20, 0));
	}
	if (!udp_too)
		return;
	put16(udp + 6, 0);
	sum = sum_words(ipv6 ? l3 + 8 : l3 + 12, ipv6 ? 32 : 8, (uint32_t)udp_len + 17);
	put16(udp + 6, ~sum_words(udp, udp_len, sum));
}

static void set_icrc(void)
{
	const size_t end = frame_len - WIRE_ICRC_LEN;
	const uint32_t headers = icrc_headers(l3, (size_t)(udp - l3), (size_t)(bth + 12 - l3));

	icrc_store(icrc_update(headers, bth + 12, (size_t)(frame + end - bth) - 12), frame + end);
}

/* Lengths as they are, then all that depends on them. */
static void finish(void)
{
	const size_t udp_len = frame_len - (size_t)(udp - frame);

	put16(udp + 4, udp_len);
	if (ipv6)
		put16(l3 + 4, udp_len);
	else
		put16(l3 + 2, udp_len + 20);
	set_checksums(false);
	set_icrc();
}

static size_t put_ether(bool tagged)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

	memcpy(frame, macs, sizeof(macs));
	if (tagged) {
		put16(frame + 12, 0x8100);
		put16(frame + 14, 0xa005);
	}
	put16(frame + (tagged ? 16 : 12), ipv6 ? 0x86dd : 0x0800);
	return tagged ? 18 : 14;
}

static void put_ip(void)
{
	static const uint8_t ipv4[20] = {0x45, 0x6a, 0,	 0, 0x12, 0x34, 0x40, 0, 61, 17,
					 0,    0,    10, 9, 0,	  1,	10,   9, 0,  2};
	static const uint8_t gid[16] = {0xfe, 0x80, [8] = 0x50, [14] = 1, [15] = 7};

	if (!ipv6) {
		memcpy(l3, ipv4, sizeof(ipv4));
		return;
	}
	memset(l3, 0, 40);
	l3[0] = 0x66;
	l3[1] = 0xa1;
	l3[6] = 17;
	l3[7] = 61;
	memcpy(l3 + 8, gid, 16);
	memcpy(l3 + 24, gid, 16);
	l3[39] = 8;
}

/* A packet of an opcode with its extended headers and `payload` bytes, pad included. */
static void make(bool over_ipv6, bool tagged, uint8_t opcode, size_t payload)
{
	static const uint8_t ports[8] = {0xc1, 0x23, 0x12, 0xb7};
	static const uint8_t bth_bytes[12] = {0,    0x40, 0x80, 0x01, 0,    0x12,
					      0x34, 0x56, 0,	0xab, 0xcd, 0xef};
	size_t i, rest = opcode_info(opcode)->ext_len + payload;

	memset(frame, 0, sizeof(frame));
	ipv6 = over_ipv6;
	l3 = frame + put_ether(tagged);
	put_ip();
	udp = l3 + (ipv6 ? 40 : 20);
	memcpy(udp, ports, sizeof(ports));
	bth = udp + 8;
	memcpy(bth, bth_bytes, sizeof(bth_bytes));
	bth[0] = opcode;
	for (i = 0; i < rest; i++)
		bth[12 + i] = (uint8_t)(EXT_SEED + i);
	frame_len = (size_t)(bth - frame) + 12 + rest + WIRE_ICRC_LEN;
	finish();
}

static void set_pad(unsigned int pad)
{
	bth[1] = (uint8_t)((bth[1] & 0xcf) | pad << 4);
}

static enum packet_status parse(void)
{
	memset(&packet, 0xa5, sizeof(packet));
	return packet_parse(frame, frame_len, false, &packet);
}

TEST(packet_parse__reads_ipv4)
{
	static const uint8_t sgid[16] = {[10] = 0xff, 0xff, 10, 9, 0, 1};
	static const uint8_t dgid[16] = {[10] = 0xff, 0xff, 10, 9, 0, 2};

	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	assert_int_equal(parse(), PACKET_OK);
	assert_ptr_equal(packet.l3, frame + 14);
	assert_ptr_equal(packet.src_mac, frame + 6);
	assert_int_equal(packet.l3_len, 20);
	assert_int_equal(packet.headers_len, 20 + 8 + 12);
	assert_false(packet.ipv6);
	assert_int_equal(packet.tclass, 0x6a);
	assert_int_equal(packet.hop_limit, 61);
	assert_int_equal(packet.vlan_tci, -1);
	assert_int_equal(packet.vlan_id, -1);
	assert_int_equal(packet.udp_sport, 0xc123);
	assert_memory_equal(packet.sgid, sgid, 16);
	assert_memory_equal(packet.dgid, dgid, 16);
	assert_ptr_equal(packet.payload, bth + 12);
	assert_int_equal(packet.payload_len, 8);
	assert_int_equal(packet.pad, 0);
}

TEST(packet_parse__reads_ipv6)
{
	make(true, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	assert_int_equal(parse(), PACKET_OK);
	assert_ptr_equal(packet.l3, frame + 14);
	assert_int_equal(packet.l3_len, 40);
	assert_int_equal(packet.headers_len, 40 + 8 + 12);
	assert_true(packet.ipv6);
	assert_int_equal(packet.tclass, 0x6a);
	assert_int_equal(packet.hop_limit, 61);
	assert_memory_equal(packet.sgid, l3 + 8, 16);
	assert_memory_equal(packet.dgid, l3 + 24, 16);
	assert_int_equal(packet.payload_len, 8);
}

TEST(packet_parse__reads_a_vlan_tag)
{
	make(false, true, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	assert_int_equal(parse(), PACKET_OK);
	assert_int_equal(packet.vlan_tci, 0xa005);
	assert_int_equal(packet.vlan_id, 5);
	assert_ptr_equal(packet.l3, frame + 18);
	make(true, true, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	assert_int_equal(parse(), PACKET_OK);
	assert_int_equal(packet.vlan_tci, 0xa005);
	assert_int_equal(packet.vlan_id, 5);
	assert_int_equal(packet.payload_len, 8);
}

TEST(packet_parse__reads_the_bth)
{
	make(false, false, OPCODE_UC | OPCODE_SEND_ONLY, 8);
	assert_int_equal(parse(), PACKET_OK);
	assert_int_equal(packet.opcode, 0x24);
	assert_ptr_equal(packet.op, opcode_info(0x24));
	assert_int_equal(packet.pkey, 0x8001);
	assert_int_equal(packet.dest_qpn, 0x123456);
	assert_int_equal(packet.psn.v, 0xabcdef);
	assert_true(packet.migrated);
	assert_false(packet.solicited || packet.ack_req || packet.fecn || packet.becn);
	bth[1] = 0x80;
	bth[4] = 0x80;
	assert_int_equal(parse(), PACKET_OK);
	assert_true(packet.solicited && packet.fecn);
	assert_false(packet.migrated || packet.ack_req || packet.becn);
	bth[4] = 0x40;
	bth[8] = 0x80;
	assert_int_equal(parse(), PACKET_OK);
	assert_true(packet.becn && packet.ack_req);
	assert_false(packet.fecn);
}

TEST(packet_parse__ignores_reserved_bits)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	bth[4] = 0x3f;
	bth[8] = 0x7f;
	assert_int_equal(parse(), PACKET_OK);
	assert_false(packet.fecn || packet.becn || packet.ack_req);
}

/* The `n` bytes that stand at offset `at` of the extended headers, big-endian. */
static uint64_t ext(size_t at, size_t n)
{
	uint64_t v = 0;

	for (; n != 0; n--, at++)
		v = v << 8 | (uint8_t)(EXT_SEED + at);
	return v;
}

static size_t check_request_headers(uint32_t flags, size_t at)
{
	if (flags & OPCODE_HAS_XRCETH) {
		assert_int_equal(packet.xrc_srqn, ext(at + 1, 3));
		at += 4;
	}
	if (flags & OPCODE_HAS_DETH) {
		assert_int_equal(packet.qkey, ext(at, 4));
		assert_int_equal(packet.src_qpn, ext(at + 5, 3));
		at += 8;
	}
	if (flags & OPCODE_HAS_FETH) {
		assert_int_equal(packet.flush_place, ext(at + 3, 1) & 0xf);
		assert_int_equal(packet.flush_select, ext(at + 3, 1) >> 4 & 3);
		at += 4;
	}
	if (flags & (OPCODE_HAS_RETH | OPCODE_HAS_ATOMICETH)) {
		assert_int_equal(packet.iova, ext(at, 8));
		assert_int_equal(packet.rkey, ext(at + 8, 4));
		at += 12;
	}
	if (flags & OPCODE_HAS_RETH) {
		assert_int_equal(packet.dma_length, ext(at, 4));
		at += 4;
	}
	if (flags & OPCODE_HAS_ATOMICETH) {
		assert_int_equal(packet.swap_add, ext(at, 8));
		assert_int_equal(packet.compare, ext(at + 8, 8));
		at += 16;
	}
	return at;
}

static size_t check_other_headers(uint32_t flags, size_t at)
{
	if (flags & OPCODE_HAS_AETH) {
		assert_int_equal(packet.syndrome, ext(at, 1));
		assert_int_equal(packet.msn, ext(at + 1, 3));
		at += 4;
	}
	if (flags & OPCODE_HAS_ATOMICACKETH) {
		assert_int_equal(packet.atomic_original, ext(at, 8));
		at += 8;
	}
	if (flags & OPCODE_HAS_IMM) {
		assert_memory_equal(&packet.imm_be, bth + 12 + at, 4);
		at += 4;
	}
	if (flags & OPCODE_HAS_IETH) {
		assert_int_equal(packet.rkey, ext(at, 4));
		at += 4;
	}
	if (flags & OPCODE_HAS_SACKETH) {
		assert_int_equal(packet.sack_serial, ext(at, 4));
		at += 4;
	}
	return at;
}

TEST(packet_parse__reads_the_extended_headers_of_each_opcode)
{
	unsigned int opcode, known = 0;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct opcode_info *info = opcode_info((uint8_t)opcode);
		const size_t payload = info->flags & OPCODE_PAYLOAD ? 12 : 0;
		size_t len;

		if (!(info->flags & OPCODE_KNOWN))
			continue;
		make(opcode & 1, opcode & 2, (uint8_t)opcode, payload);
		assert_int_equal(parse(), PACKET_OK);
		assert_int_equal(packet.payload_len, payload);
		assert_ptr_equal(packet.payload, bth + 12 + info->ext_len);
		len = check_other_headers(info->flags, check_request_headers(info->flags, 0));
		assert_int_equal(len, opcode == OPCODE_CNP ? 0 : info->ext_len);
		known++;
	}
	assert_int_equal(known, 25 + 12 + 2 + 25 + 2);
}

TEST(packet_parse__what_is_not_roce_is_somebody_elses)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	put16(frame + 12, 0x0806);
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	l3[9] = 6;
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	put16(udp + 2, 4790);
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	make(true, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	put16(udp + 2, 4790);
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	/* The destination port alone makes a packet RoCE. */
	put16(udp, 4791);
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	/* A second tag. */
	make(false, true, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	put16(frame + 16, 0x8100);
	assert_int_equal(parse(), PACKET_NOT_ROCE);
}

TEST(packet_parse__wrong_ip_versions_options_and_extension_headers)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	l3[0] = 0x46;
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	l3[0] = 0x44;
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	l3[0] = 0x65;
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	make(true, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	l3[0] = 0x46;
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	/* Hop-by-hop options, fragment. */
	make(true, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	l3[6] = 0;
	assert_int_equal(parse(), PACKET_NOT_ROCE);
	l3[6] = 44;
	assert_int_equal(parse(), PACKET_NOT_ROCE);
}

TEST(packet_parse__ipv4_fragments_are_not_roce)
{
	unsigned int bit;

	for (bit = 0; bit < 16; bit++) {
		make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
		put16(l3 + 6, 1u << bit);
		set_checksums(false);
		/* The offset and more-fragments; not don't-fragment, not the reserved bit. */
		assert_int_equal(parse(), bit < 14 ? PACKET_NOT_ROCE : PACKET_OK);
	}
}

TEST(packet_parse__ethernet_padding_is_no_payload)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 0);
	frame_len += 30;
	assert_int_equal(parse(), PACKET_OK);
	assert_int_equal(packet.payload_len, 0);
	make(true, false, OPCODE_RC | OPCODE_SEND_ONLY, 4);
	frame_len += 1;
	assert_int_equal(parse(), PACKET_OK);
	assert_int_equal(packet.payload_len, 4);
}

TEST(packet_parse__ip_length_beyond_the_frame)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	frame_len--;
	assert_int_equal(parse(), PACKET_BAD_LENGTH);
	make(true, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	frame_len--;
	assert_int_equal(parse(), PACKET_BAD_LENGTH);
	put16(l3 + 4, 0xffff);
	put16(udp + 4, 0xffff);
	assert_int_equal(parse(), PACKET_BAD_LENGTH);
}

TEST(packet_parse__ip_length_too_short_for_its_headers)
{
	unsigned int len;

	for (len = 0; len < 8 + 12 + 4; len++) {
		make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
		put16(l3 + 2, 20 + len);
		put16(udp + 4, len);
		set_checksums(false);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
		put16(l3 + 2, len);
		set_checksums(false);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
		make(true, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
		put16(l3 + 4, len);
		put16(udp + 4, len);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
	}
}

TEST(packet_parse__udp_length_is_the_ip_length)
{
	unsigned int over_ipv6;

	for (over_ipv6 = 0; over_ipv6 < 2; over_ipv6++) {
		make(over_ipv6, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
		put16(udp + 4, 8 + 12 + 8 + 4 - 4);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
		put16(udp + 4, 8 + 12 + 8 + 4 + 4);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
		put16(udp + 4, 0);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
	}
}

TEST(packet_parse__ipv4_header_checksum)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	l3[11] ^= 1;
	assert_int_equal(parse(), PACKET_BAD_CHECKSUM);
	assert_int_equal(packet_parse(frame, frame_len, true, &packet), PACKET_OK);
}

TEST(packet_parse__udp_checksum)
{
	unsigned int over_ipv6;
	size_t payload;

	for (over_ipv6 = 0; over_ipv6 < 2; over_ipv6++)
		for (payload = 0; payload <= 300; payload += 4) {
			make(over_ipv6, false, OPCODE_RC | OPCODE_SEND_ONLY, payload);
			set_checksums(true);
			assert_int_equal(parse(), PACKET_OK);
			frame[frame_len - 1] ^= 0x10;
			assert_int_equal(parse(), PACKET_BAD_CHECKSUM);
			assert_int_equal(packet_parse(frame, frame_len, true, &packet), PACKET_OK);
			/* 0: not computed. */
			put16(udp + 6, 0);
			assert_int_equal(parse(), PACKET_OK);
		}
}

TEST(packet_parse__udp_checksum_is_not_of_ethernet_padding)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 4);
	set_checksums(true);
	frame[frame_len] = 0x55;
	frame_len += 2;
	assert_int_equal(parse(), PACKET_OK);
}

TEST(packet_parse__transport_version)
{
	unsigned int version;

	for (version = 1; version < 16; version++) {
		make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
		bth[1] = (uint8_t)(bth[1] | version);
		assert_int_equal(parse(), PACKET_BAD_VERSION);
	}
}

TEST(packet_parse__undefined_opcodes)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		if (opcode_info((uint8_t)opcode)->flags)
			continue;
		make(false, false, (uint8_t)opcode, 32);
		assert_int_equal(parse(), PACKET_BAD_OPCODE);
	}
}

TEST(packet_parse__pad_count)
{
	unsigned int pad;

	for (pad = 0; pad < 4; pad++) {
		make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8);
		set_pad(pad);
		assert_int_equal(parse(), PACKET_OK);
		assert_int_equal(packet.pad, pad);
		assert_int_equal(packet.payload_len, 8 - pad);
		/* The pad is longer than the payload. */
		make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 0);
		set_pad(pad);
		assert_int_equal(parse(), pad == 0 ? PACKET_OK : PACKET_BAD_LENGTH);
	}
}

TEST(packet_parse__payload_and_pad_are_a_multiple_of_four)
{
	unsigned int extra, pad;

	for (extra = 1; extra < 4; extra++)
		for (pad = 0; pad < 4; pad++) {
			make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 8 + extra);
			set_pad(pad);
			assert_int_equal(parse(), PACKET_BAD_LENGTH);
		}
}

TEST(packet_parse__extended_headers_must_be_there)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		if (opcode_info((uint8_t)opcode)->ext_len == 0)
			continue;
		make(false, false, (uint8_t)opcode, 0);
		frame_len -= 4;
		finish();
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
	}
}

TEST(packet_parse__payload_where_none_may_be)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		const uint32_t flags = opcode_info((uint8_t)opcode)->flags;

		if (!(flags & OPCODE_KNOWN) || flags & OPCODE_PAYLOAD)
			continue;
		make(false, false, (uint8_t)opcode, 4);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
		set_pad(3);
		assert_int_equal(parse(), PACKET_BAD_LENGTH);
	}
}

TEST(packet_parse__runts)
{
	size_t len;

	make(false, true, OPCODE_RC | OPCODE_SEND_ONLY, 8);
	/* A frame cannot be recognised as RoCE before the UDP header is complete. */
	for (len = 0; len < 18 + 20 + 8; len++)
		assert_int_equal(packet_parse(frame, len, false, &packet), PACKET_NOT_ROCE);
	for (; len < frame_len; len++)
		assert_int_equal(packet_parse(frame, len, false, &packet), PACKET_BAD_LENGTH);
	assert_int_equal(packet_parse(frame, len, false, &packet), PACKET_OK);
}

TEST(packet_icrc_ok__covers_headers_payload_and_pad)
{
	size_t at;

	make(false, false, OPCODE_RC | OPCODE_WRITE_ONLY, 12);
	set_pad(2);
	set_icrc();
	assert_int_equal(parse(), PACKET_OK);
	assert_true(packet_icrc_ok(&packet));
	/* Destination QPN, PSN, RETH, payload, pad and the ICRC itself; the length fields stay. */
	for (at = (size_t)(bth - frame) + 5; at < frame_len; at++) {
		frame[at] ^= 0x04;
		assert_int_equal(parse(), PACKET_OK);
		assert_false(packet_icrc_ok(&packet));
		frame[at] ^= 0x04;
	}
}

/* Linux's rxe covers a FLUSH's transport headers once more; nobody else, and of no other packet. */
TEST(packet_icrc_ok__takes_rxes_flush)
{
	static const uint8_t opcodes[] = {OPCODE_RC | OPCODE_FLUSH,
					  OPCODE_RC | OPCODE_READ_REQUEST};
	uint32_t icrc;

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		make(false, false, opcodes[i], 0);
		set_icrc();
		assert_int_equal(parse(), PACKET_OK);
		assert_true(packet_icrc_ok(&packet));
		icrc = icrc_update(icrc_load(packet.payload), (const uint8_t *)bth,
				   (uint32_t)(packet.payload - (const uint8_t *)bth));
		icrc_store(icrc, (uint8_t *)(uintptr_t)packet.payload);
		assert_int_equal(packet_icrc_ok(&packet), i == 0);
		frame[frame_len - 6] ^= 1;
		assert_int_equal(parse(), PACKET_OK);
		assert_false(packet_icrc_ok(&packet));
	}
}

TEST(packet_icrc_ok__does_not_cover_what_routers_change)
{
	make(false, false, OPCODE_RC | OPCODE_SEND_ONLY, 12);
	l3[1] ^= 0xff;
	l3[8]--;
	bth[4] ^= 0xff;
	set_checksums(true);
	assert_int_equal(parse(), PACKET_OK);
	assert_true(packet_icrc_ok(&packet));
	make(true, true, OPCODE_RC | OPCODE_SEND_ONLY, 12);
	l3[0] ^= 0x0f;
	l3[1] ^= 0xff;
	l3[3] ^= 0xff;
	l3[7]--;
	bth[4] ^= 0xff;
	set_checksums(true);
	assert_int_equal(parse(), PACKET_OK);
	assert_true(packet_icrc_ok(&packet));
}
