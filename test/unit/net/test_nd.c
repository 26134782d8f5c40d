/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/nd.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/nd.h"
#include "test.h"

#define OFF_HOP_LIMIT 21
#define OFF_SRC_IP    22
#define OFF_DST_IP    38
#define OFF_TYPE      54
#define OFF_CODE      55
#define OFF_CHECKSUM  56
#define OFF_FLAGS     58
#define OFF_TARGET    62
#define OFF_OPTION    78

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};
static const uint8_t ip_a[16] = {0xfd, [15] = 1};
static const uint8_t ip_b[16] = {0xfd, [13] = 0x11, 0x22, 0x33};

static uint8_t frame[ND_FRAME_LEN];
static struct nd nd;

static int set_up(TEST_STATE)
{
	nd_build_solicitation(frame, mac_a, ip_a, ip_b);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

/* Compute the ICMPv6 checksum, independently of the code under test. */
static void seal(uint8_t *f)
{
	uint32_t sum = 32 + 58; /* upper-layer length and next header */

	f[OFF_CHECKSUM] = f[OFF_CHECKSUM + 1] = 0;
	for (size_t i = OFF_SRC_IP; i < ND_FRAME_LEN; i += 2)
		sum += (uint32_t)f[i] << 8 | f[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	f[OFF_CHECKSUM] = (uint8_t)(~sum >> 8);
	f[OFF_CHECKSUM + 1] = (uint8_t)~sum;
}

TEST(nd_build_solicitation__goes_to_the_targets_group)
{
	const uint8_t group[16] = {0xff, 2, [11] = 1, 0xff, 0x11, 0x22, 0x33};
	uint8_t sealed[ND_FRAME_LEN];

	assert_memory_equal(frame, ((uint8_t[]){0x33, 0x33, 0xff, 0x11, 0x22, 0x33}), 6);
	assert_memory_equal(frame + 6, mac_a, 6);
	assert_memory_equal(frame + OFF_DST_IP, group, 16);
	assert_memory_equal(frame + OFF_SRC_IP, ip_a, 16);
	assert_memory_equal(frame + OFF_TARGET, ip_b, 16);
	assert_int_equal(frame[OFF_HOP_LIMIT], 255);
	memcpy(sealed, frame, sizeof(sealed));
	seal(sealed);
	assert_memory_equal(frame, sealed, sizeof(sealed));
}

TEST(nd_parse__takes_a_solicitation)
{
	assert_true(nd_parse(frame, sizeof(frame), &nd));
	assert_true(nd.solicitation);
	assert_memory_equal(nd.src_ip, ip_a, 16);
	assert_memory_equal(nd.target, ip_b, 16);
	assert_true(nd.has_mac);
	assert_memory_equal(nd.mac, mac_a, 6);
}

TEST(nd_build_advertisement__answers_the_asker)
{
	uint8_t answer[ND_FRAME_LEN];
	struct nd back;

	nd_parse(frame, sizeof(frame), &nd);
	assert_int_equal(nd_build_advertisement(answer, mac_b, &nd), ND_FRAME_LEN);
	assert_memory_equal(answer, mac_a, 6);
	assert_memory_equal(answer + OFF_DST_IP, ip_a, 16);
	assert_memory_equal(answer + OFF_SRC_IP, ip_b, 16);
	assert_int_equal(answer[OFF_FLAGS], 0x60); /* solicited, override */
	assert_true(nd_parse(answer, sizeof(answer), &back));
	assert_false(back.solicitation);
	assert_memory_equal(back.target, ip_b, 16);
	assert_true(back.has_mac);
	assert_memory_equal(back.mac, mac_b, 6);
}

/* RFC 4861 7.2.4: duplicate address detection is answered to all nodes. */
TEST(nd_build_advertisement__answers_a_prober_by_multicast)
{
	uint8_t answer[ND_FRAME_LEN];

	nd_parse(frame, sizeof(frame), &nd);
	memset(nd.src_ip, 0, sizeof(nd.src_ip));
	nd.has_mac = false;
	nd_build_advertisement(answer, mac_b, &nd);
	assert_memory_equal(answer, ((uint8_t[]){0x33, 0x33, 0, 0, 0, 1}), 6);
	assert_int_equal(answer[OFF_FLAGS], 0x20); /* override */
}

TEST(nd_parse__refuses_short_frames)
{
	for (size_t len = 0; len < sizeof(frame); len++)
		assert_false(nd_parse(frame, len, &nd));
}

TEST(nd_parse__refuses_what_a_router_may_have_passed)
{
	frame[OFF_HOP_LIMIT] = 254;
	assert_false(nd_parse(frame, sizeof(frame), &nd));
}

TEST(nd_parse__refuses_other_messages)
{
	frame[OFF_TYPE] = 134; /* router advertisement */
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
	frame[OFF_TYPE] = 135;
	frame[OFF_CODE] = 1;
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
	frame[OFF_CODE] = 0;
	seal(frame);
	assert_true(nd_parse(frame, sizeof(frame), &nd));
	frame[20] = 17; /* UDP */
	assert_false(nd_parse(frame, sizeof(frame), &nd));
}

TEST(nd_parse__refuses_a_wrong_checksum)
{
	frame[OFF_CHECKSUM] ^= 1;
	assert_false(nd_parse(frame, sizeof(frame), &nd));
}

TEST(nd_parse__refuses_options_that_do_not_end)
{
	frame[OFF_OPTION + 1] = 0; /* RFC 4861 4.6: a length of 0 is invalid */
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
	frame[OFF_OPTION + 1] = 2;
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
}

TEST(nd_parse__refuses_a_mac_from_an_unspecified_address)
{
	memset(frame + OFF_SRC_IP, 0, 16);
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
}

/* RFC 4861, 7.1.1: the check for a duplicate address goes to a group. */
TEST(nd_parse__refuses_a_probe_to_another_address_than_a_group)
{
	memset(frame + OFF_SRC_IP, 0, 16);
	frame[OFF_OPTION] = 14; /* nonce, RFC 3971: no link-layer address */
	seal(frame);
	assert_true(nd_parse(frame, sizeof(frame), &nd));
	assert_false(nd.has_mac);
	frame[OFF_DST_IP + 12] = 0xfe;
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
	memcpy(frame + OFF_DST_IP, ip_b, 16);
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
}

/* RFC 4861, 7.1.2: an advertisement to a group answers nobody's solicitation. */
TEST(nd_parse__refuses_a_solicited_advertisement_to_a_group)
{
	uint8_t answer[ND_FRAME_LEN];

	nd_parse(frame, sizeof(frame), &nd);
	memset(nd.src_ip, 0, sizeof(nd.src_ip));
	nd_build_advertisement(answer, mac_b, &nd);
	assert_true(nd_parse(answer, sizeof(answer), &nd));
	answer[OFF_FLAGS] |= 0x40;
	seal(answer);
	assert_false(nd_parse(answer, sizeof(answer), &nd));
}

TEST(nd_parse__refuses_a_group_as_mac_or_target)
{
	frame[OFF_OPTION + 2] = 0x33;
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
	frame[OFF_OPTION + 2] = 2;
	frame[OFF_TARGET] = 0xff;
	seal(frame);
	assert_false(nd_parse(frame, sizeof(frame), &nd));
}
