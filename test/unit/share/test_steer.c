/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/steer.c, and that all who look at frames agree which are RoCE. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "share/claim.h"
#include "share/steer.h"
#include "wire/build.h"
#include "wire/frame.h"
#include "wire/packet.h"
#include "test.h"

#define QPN 0x123456

/* A frame of ours to a GID; returns its length. */
static size_t build(uint8_t *frame, const char *dgid4, const uint8_t *dgid6, int32_t vlan,
		    uint32_t qpn)
{
	struct path_attr attr = {.vlan_tci = vlan, .udp_sport = 0xc000, .hop_limit = 64};
	const struct bth_fields bth = {.opcode = 4, .pkey = 0xffff, .dest_qpn = qpn};
	struct packet_out out = {.frame = frame};
	struct path path;
	int len;

	if (dgid6) {
		memset(attr.sgid, 0xfd, GID_LEN);
		memcpy(attr.dgid, dgid6, GID_LEN);
	} else {
		gid_from_ipv4("\x0a\x00\x00\x01", attr.sgid);
		gid_from_ipv4(dgid4, attr.dgid);
	}
	assert_int_equal(path_init(&path, &attr), 0);
	packet_begin(&out, &path, &bth);
	len = packet_seal(&out);
	assert_true(len > 0);
	return (size_t)len;
}

TEST(steer_frame__finds_the_queue_pair)
{
	static const uint8_t gid[GID_LEN] = {0xfd, [15] = 2};
	uint8_t frame[PACKET_FRAME_MAX];
	struct steering steering;

	for (int form = 0; form < 4; form++) {
		const size_t len = build(frame, "\x0a\x00\x00\x02", form & 1 ? gid : NULL,
					 form & 2 ? 5 : -1, QPN);

		memset(&steering, 0, sizeof(steering));
		assert_int_equal(steer_frame(frame, len, &steering), STEER_QP);
		assert_int_equal(steering.qpn, QPN);
		assert_int_equal(steering.sgid[form & 1 ? 0 : 12], form & 1 ? 0xfd : 0x0a);
	}
}

TEST(steer_frame__finds_the_group)
{
	static const uint8_t group[GID_LEN] = {0xff, 0x0e, [15] = 2};
	uint8_t frame[PACKET_FRAME_MAX], expected[GID_LEN];
	struct steering steering;
	size_t len;

	len = build(frame, NULL, group, -1, 0xffffff);
	assert_int_equal(steer_frame(frame, len, &steering), STEER_MULTICAST);
	assert_memory_equal(steering.dgid, group, GID_LEN);
	len = build(frame, "\xef\x00\x00\x09", NULL, -1, 0xffffff);
	assert_int_equal(steer_frame(frame, len, &steering), STEER_MULTICAST);
	gid_from_ipv4("\xef\x00\x00\x09", expected);
	assert_memory_equal(steering.dgid, expected, GID_LEN);
}

/* The check reads only bytes that exist: the frame ends with its memory. */
TEST(steer_frame__leaves_short_frames_alone)
{
	uint8_t frame[PACKET_FRAME_MAX];
	const size_t full = build(frame, "\x0a\x00\x00\x02", NULL, 5, QPN) - WIRE_ICRC_LEN;
	struct steering steering;

	for (size_t len = 0; len < full; len++) {
		uint8_t *copy = malloc(len ? len : 1);

		memcpy(copy, frame, len);
		assert_int_equal(steer_frame(copy, len, &steering), STEER_OTHER);
		free(copy);
	}
	assert_int_equal(steer_frame(frame, full, &steering), STEER_QP);
}

TEST(steer_frame__leaves_what_is_no_roce)
{
	uint8_t frame[PACKET_FRAME_MAX];
	const size_t len = build(frame, "\x0a\x00\x00\x02", NULL, -1, QPN);
	static const struct {
		size_t at;
		uint8_t value;
	} changes[] = {
		{13, 0x06}, /* ARP */
		{14, 0x44}, /* a header shorter than IPv4's */
		{20, 0x20}, /* more fragments */
		{21, 0x01}, /* a later fragment */
		{23, 6},    /* TCP */
		{37, 0xb8}, /* another port */
	};
	struct steering steering;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const uint8_t before = frame[changes[i].at];

		frame[changes[i].at] = changes[i].value;
		assert_int_equal(steer_frame(frame, len, &steering), STEER_OTHER);
		frame[changes[i].at] = before;
	}
	assert_int_equal(steer_frame(frame, len, &steering), STEER_QP);
}

/* A RoCE frame after a change. */
struct variant {
	bool ipv6;
	uint16_t tags[2];  /* their EtherTypes; 0: none */
	uint8_t at, value; /* a byte of the IP header that is changed; value 0: none */
	uint8_t options;   /* bytes that are put in behind the IP header */
	uint8_t next;	   /* the kind of IPv6 extension header that these are */
	bool is_roce;
};

/* Make the frame. Returns its length. */
static size_t vary(const struct variant *variant, uint8_t *frame)
{
	static const uint8_t gid[GID_LEN] = {0xfd, [15] = 2};
	const size_t ip_len = variant->ipv6 ? 40 : 20, len_at = variant->ipv6 ? 4 : 2;
	size_t len = build(frame, "\x0a\x00\x00\x02", variant->ipv6 ? gid : NULL, -1, QPN);
	uint8_t *ip = frame + 14;

	if (variant->value)
		ip[variant->at] = variant->value;
	if (variant->options > 0) {
		memmove(ip + ip_len + variant->options, ip + ip_len, len - 14 - ip_len);
		memset(ip + ip_len, 0, variant->options);
		ip[len_at + 1] = (uint8_t)(ip[len_at + 1] + variant->options);
		len += variant->options;
		if (variant->ipv6) {
			ip[ip_len] = ip[6];
			ip[6] = variant->next;
		}
	}
	for (int i = 1; i >= 0; i--) {
		if (variant->tags[i] == 0)
			continue;
		memmove(frame + 16, frame + 12, len - 12);
		frame[12] = (uint8_t)(variant->tags[i] >> 8);
		frame[13] = (uint8_t)variant->tags[i];
		frame[14] = 0;
		frame[15] = 5;
		len += 4;
	}
	return len;
}

/* Assert that all who look at a frame take it for RoCE, or that all do not. */
static void all_agree(const uint8_t *bytes, size_t len, bool is_roce)
{
	static const struct addresses nobody;
	static const uint8_t mac[6];
	uint8_t *frame = malloc(len ? len : 1); /* it ends with its memory */
	struct steering steering;
	struct udp_frame headers;
	struct packet packet;
	uint32_t qpn = 0;

	memcpy(frame, bytes, len);
	assert_int_equal(packet_parse(frame, len, true, &packet) == PACKET_OK, is_roce);
	assert_int_equal(packet_peek_qpn(frame, len, &qpn), is_roce);
	assert_int_equal(qpn, is_roce ? QPN : 0);
	assert_int_equal(roce_frame_find(frame, len, &headers) != NULL, is_roce);
	assert_int_equal(steer_frame(frame, len, &steering), is_roce ? STEER_QP : STEER_OTHER);
	assert_int_equal(claim_frame(&nobody, mac, frame, len) == CLAIM_ALL, is_roce);
	if (is_roce) {
		assert_ptr_equal(packet.l3, frame + headers.l3_off);
		assert_memory_equal(packet.sgid, steering.sgid, GID_LEN);
		assert_memory_equal(packet.dgid, steering.dgid, GID_LEN);
	}
	free(frame);
}

TEST(frames__all_agree_which_are_roce)
{
	static const struct variant variants[] = {
		{.is_roce = true},
		{.is_roce = true, .tags = {0x8100}},
		{.is_roce = true, .ipv6 = true},
		{.is_roce = true, .ipv6 = true, .tags = {0x8100}},
		{.tags = {0x8100, 0x8100}},
		{.tags = {0x88a8, 0x8100}},
		{.tags = {0x88a8}},
		{.ipv6 = true, .tags = {0x8100, 0x8100}},
		{.at = 0, .value = 0x46, .options = 4},
		{.at = 0, .value = 0x44},
		{.at = 0, .value = 0x65},
		{.at = 6, .value = 0x20}, /* more fragments */
		{.at = 7, .value = 1},	  /* a later fragment */
		{.at = 9, .value = 6},	  /* TCP */
		{.at = 22, .value = 1},	  /* another port */
		{.ipv6 = true, .at = 0, .value = 0x45},
		{.ipv6 = true, .at = 6, .value = 6},
		{.ipv6 = true, .at = 42, .value = 1},
		{.ipv6 = true, .options = 8, .next = 0},  /* hop-by-hop options */
		{.ipv6 = true, .options = 8, .next = 44}, /* a fragment */
	};
	uint8_t frame[PACKET_FRAME_MAX];

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		const size_t len = vary(&variants[i], frame);

		all_agree(frame, len, variants[i].is_roce);
		for (size_t end = 0; variants[i].is_roce && end < len - WIRE_ICRC_LEN; end++)
			all_agree(frame, end, false);
	}
}

TEST(steer_is_mad__looks_at_frames_of_their_length)
{
	static const uint8_t gid[GID_LEN] = {0xfd, [15] = 2};
	uint8_t frame[PACKET_FRAME_MAX];

	for (int form = 0; form < 4; form++) {
		const uint8_t *dgid6 = form & 1 ? gid : NULL;
		const int32_t vlan = form & 2 ? 5 : -1;
		/* Headers of datagrams and the MAD; what is built here has neither. */
		const size_t len = build(frame, "\x0a\x00\x00\x02", dgid6, vlan, 1) + 8 + 256;

		assert_true(steer_is_mad(frame, len));
		assert_false(steer_is_mad(frame, len - 64));
		assert_false(steer_is_mad(frame, len + 64));
		build(frame, "\x0a\x00\x00\x02", dgid6, vlan, 2);
		assert_false(steer_is_mad(frame, len));
	}
}
