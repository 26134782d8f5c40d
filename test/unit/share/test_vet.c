/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/vet.c. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "share/vet.h"
#include "wire/build.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "test.h"

#define QPN	  0x123456
#define QPN_FIRST 0x4000
#define QPN_COUNT 0x4000
#define VLAN	  5

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, other_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t ipv6[GID_LEN] = {0xfd, [15] = 1}, other_ipv6[GID_LEN] = {0xfd, [15] = 2};
static struct addresses addresses;
static const struct vet vet = {
	.mac = mac,
	.addresses = &addresses,
	.mtu_bytes = PACKET_FRAME_MAX,
	.qpn_first = QPN_FIRST,
	.qpn_count = QPN_COUNT,
};

/* The fields of a frame. */
struct wish {
	uint8_t opcode;
	bool ipv6;
	bool unsealed;
	int32_t vlan;
	uint32_t src_qpn; /* of a datagram */
	uint32_t dest_qpn;
	uint8_t sgid[GID_LEN];
	uint8_t src_mac[6];
};

static struct wish wish_for(uint8_t opcode, bool over_ipv6)
{
	struct wish wish = {.opcode = opcode,
			    .ipv6 = over_ipv6,
			    .vlan = -1,
			    .src_qpn = QPN_FIRST + 1,
			    .dest_qpn = QPN};

	if (over_ipv6)
		memcpy(wish.sgid, ipv6, GID_LEN);
	else
		gid_from_ipv4("\x0a\x00\x00\x01", wish.sgid);
	memcpy(wish.src_mac, mac, sizeof(mac));
	return wish;
}

static size_t build(uint8_t *frame, const struct wish *wish)
{
	static const char payload[] = "some bytes, of no round number";
	struct path_attr attr = {.vlan_tci = wish->vlan, .udp_sport = 0xc000, .hop_limit = 64};
	const struct bth_fields bth = {
		.opcode = wish->opcode, .pkey = 0xffff, .dest_qpn = wish->dest_qpn};
	struct packet_out out = {.frame = frame, .unsealed = wish->unsealed};
	struct path path;
	int len;

	memcpy(attr.sgid, wish->sgid, GID_LEN);
	memcpy(attr.src_mac, wish->src_mac, sizeof(attr.src_mac));
	if (wish->ipv6)
		memcpy(attr.dgid, other_ipv6, GID_LEN);
	else
		gid_from_ipv4("\x0a\x00\x00\x02", attr.dgid);
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	if ((wish->opcode & OPCODE_SERVICE_MASK) == OPCODE_UD) {
		struct deth *deth = packet_extend(&out, sizeof(*deth));

		memset(deth, 0, sizeof(*deth));
		deth->src_qpn[0] = (uint8_t)(wish->src_qpn >> 16);
		deth->src_qpn[1] = (uint8_t)(wish->src_qpn >> 8);
		deth->src_qpn[2] = (uint8_t)wish->src_qpn;
	}
	packet_payload(&out, FRAG_COPY, payload, sizeof(payload));
	/* Whatever was said of that before it began. */
	out.unsealed = wish->unsealed;
	len = packet_seal(&out);
	assert_true(len > 0);
	return (size_t)len;
}

static bool passes(const struct wish *wish)
{
	uint8_t frame[PACKET_FRAME_MAX];
	const size_t len = build(frame, wish);

	return vet_frame(&vet, frame, len) == VET_PASSES;
}

static int setup(TEST_STATE)
{
	struct address address = {.vlan = -1, .prefix_len = 24};

	addresses.count = 0;
	gid_from_ipv4("\x0a\x00\x00\x01", address.gid);
	assert_int_equal(addresses_add(&addresses, &address), 0);
	memcpy(address.gid, ipv6, GID_LEN);
	assert_int_equal(addresses_add(&addresses, &address), 0);
	gid_from_ipv4("\x0a\x00\x05\x01", address.gid);
	address.vlan = VLAN;
	assert_int_equal(addresses_add(&addresses, &address), 0);
	return 0;
}

TEST_GROUP(setup, NULL);

TEST(vet_frame__lets_pass_what_is_its_own)
{
	struct wish wish;

	for (int form = 0; form < 2; form++) {
		wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, form);
		assert_true(passes(&wish));
		wish = wish_for(OPCODE_UD | OPCODE_SEND_ONLY, form);
		assert_true(passes(&wish));
		wish.src_qpn = QPN_FIRST + QPN_COUNT - 1;
		assert_true(passes(&wish));
	}
	wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, false);
	gid_from_ipv4("\x0a\x00\x05\x01", wish.sgid);
	wish.vlan = VLAN;
	assert_true(passes(&wish));
}

TEST(vet_frame__knows_the_mac)
{
	struct wish wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, false);

	memcpy(wish.src_mac, other_mac, sizeof(other_mac));
	assert_false(passes(&wish));
}

TEST(vet_frame__knows_the_addresses)
{
	struct wish wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, false);

	gid_from_ipv4("\x0a\x00\x00\x02", wish.sgid);
	assert_false(passes(&wish));
	wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, true);
	memcpy(wish.sgid, other_ipv6, GID_LEN);
	assert_false(passes(&wish));
}

TEST(vet_frame__knows_the_vlan)
{
	struct wish wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, false);

	wish.vlan = VLAN;
	assert_false(passes(&wish));
	gid_from_ipv4("\x0a\x00\x05\x01", wish.sgid);
	wish.vlan = -1;
	assert_false(passes(&wish));
}

TEST(vet_frame__knows_the_queue_pairs)
{
	struct wish wish = wish_for(OPCODE_UD | OPCODE_SEND_ONLY, false);

	wish.src_qpn = QPN_FIRST - 1;
	assert_false(passes(&wish));
	wish.src_qpn = QPN_FIRST + QPN_COUNT;
	assert_false(passes(&wish));
	wish.src_qpn = 1;
	assert_false(passes(&wish));
}

static enum vet_verdict verdict_on(uint8_t opcode, uint32_t src_qpn, uint32_t dest_qpn)
{
	struct wish wish = wish_for(opcode, false);
	uint8_t frame[PACKET_FRAME_MAX];
	size_t len;

	wish.src_qpn = src_qpn;
	wish.dest_qpn = dest_qpn;
	len = build(frame, &wish);
	return vet_frame(&vet, frame, len);
}

/* Only packets that the arbiter checks go to, or come from, management queue pairs. */
TEST(vet_frame__knows_management_queue_pairs)
{
	assert_int_equal(verdict_on(OPCODE_UD | OPCODE_SEND_ONLY, 1, 1), VET_MAD);
	assert_int_equal(verdict_on(OPCODE_UD | OPCODE_SEND_ONLY, QPN_FIRST, 1), VET_REFUSED);
	assert_int_equal(verdict_on(OPCODE_UD | OPCODE_SEND_ONLY, 1, QPN), VET_REFUSED);
	assert_int_equal(verdict_on(OPCODE_UD | OPCODE_SEND_ONLY, 1, 0), VET_REFUSED);
	assert_int_equal(verdict_on(OPCODE_UD | OPCODE_SEND_ONLY, 0, 0), VET_REFUSED);
	assert_int_equal(verdict_on(OPCODE_UD | OPCODE_SEND_ONLY, QPN_FIRST, QPN), VET_PASSES);
	assert_int_equal(verdict_on(OPCODE_RC | OPCODE_SEND_ONLY, 0, 1), VET_REFUSED);
	assert_int_equal(verdict_on(OPCODE_RC | OPCODE_SEND_ONLY, 0, QPN), VET_PASSES);
}

TEST(vet_frame__knows_the_longest)
{
	const struct wish wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, false);
	uint8_t frame[PACKET_FRAME_MAX];
	const size_t len = build(frame, &wish);
	struct vet narrow = vet;

	narrow.mtu_bytes = (uint32_t)len - RTE_ETHER_HDR_LEN;
	assert_true(vet_frame(&narrow, frame, len));
	narrow.mtu_bytes--;
	assert_false(vet_frame(&narrow, frame, len));
}

/* Copy a short frame to the end of its memory, so that a read beyond it faults. */
static uint8_t *start_of(const uint8_t *frame, size_t len)
{
	uint8_t *start = malloc(len ? len : 1);

	memcpy(start, frame, len);
	return start;
}

TEST(vet_frame__wants_whole_packets)
{
	const struct wish wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, false);
	uint8_t frame[PACKET_FRAME_MAX];
	const size_t len = build(frame, &wish);

	for (size_t end = 0; end < len; end++) {
		uint8_t *copy = start_of(frame, end);

		assert_false(vet_frame(&vet, copy, end));
		free(copy);
	}
	frame[12] ^= 1;
	assert_false(vet_frame(&vet, frame, len));
}

TEST(vet_seal__gives_what_is_missing)
{
	for (int form = 0; form < 4; form++) {
		struct wish wish = wish_for(form & 2 ? OPCODE_UD | OPCODE_SEND_ONLY
						     : OPCODE_RC | OPCODE_SEND_ONLY,
					    form & 1);
		uint8_t frame[PACKET_FRAME_MAX], whole[PACKET_FRAME_MAX];
		struct packet packet;
		size_t len;

		len = build(whole, &wish);
		wish.unsealed = true;
		assert_int_equal(build(frame, &wish), len);
		assert_memory_not_equal(frame, whole, len);
		assert_true(vet_seal(frame, len));
		assert_memory_equal(frame, whole, len);
		assert_int_equal(packet_parse(frame, len, false, &packet), PACKET_OK);
		assert_true(packet_icrc_ok(&packet));
	}
}

TEST(vet_seal__leaves_others_alone)
{
	const struct wish wish = wish_for(OPCODE_RC | OPCODE_SEND_ONLY, true);
	uint8_t frame[PACKET_FRAME_MAX];
	const size_t len = build(frame, &wish);

	for (size_t end = 0; end < len; end++) {
		uint8_t *copy = start_of(frame, end);

		assert_false(vet_seal(copy, end));
		assert_memory_equal(copy, frame, end);
		free(copy);
	}
}
