/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/share/steer.c. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "share/steer.h"

#include "wire/build.h"
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
