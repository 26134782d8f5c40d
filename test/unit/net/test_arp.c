/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/net/arp.c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "net/arp.h"
#include "test.h"

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};
static const uint8_t ip_a[4] = {10, 0, 0, 1};
static const uint8_t ip_b[4] = {10, 0, 0, 2};

/* An ARP request, "Who has 10.0.0.2? Tell 10.0.0.1", written out from RFC 826. */
static const uint8_t request_frame[ARP_FRAME_LEN] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,	0, 0, 0, 0, 0xa, 0x08, 0x06, /* Ethernet */
	0,    1,    0x08, 0x00, 6,    4,    0,	1, /* Ethernet, IPv4, their lengths, request */
	2,    0,    0,	  0,	0,    0xa,  10, 0, 0, 1, /* sender */
	0,    0,    0,	  0,	0,    0,    10, 0, 0, 2, /* target */
};

TEST(arp_build_request__is_as_the_rfc_says)
{
	uint8_t frame[ARP_FRAME_LEN];

	assert_int_equal(arp_build_request(frame, mac_a, ip_a, ip_b), ARP_FRAME_LEN);
	assert_memory_equal(frame, request_frame, ARP_FRAME_LEN);
}

TEST(arp_parse__takes_a_request)
{
	struct arp arp;

	assert_true(arp_parse(request_frame, ARP_FRAME_LEN, &arp));
	assert_true(arp.request);
	assert_memory_equal(arp.sender_mac, mac_a, 6);
	assert_memory_equal(arp.sender_ip, ip_a, 4);
	assert_memory_equal(arp.target_ip, ip_b, 4);
}

TEST(arp_build_reply__answers_the_sender)
{
	uint8_t frame[ARP_FRAME_LEN];
	struct arp request, reply;

	arp_parse(request_frame, ARP_FRAME_LEN, &request);
	assert_int_equal(arp_build_reply(frame, mac_b, &request), ARP_FRAME_LEN);
	assert_memory_equal(frame, mac_a, 6);
	assert_memory_equal(frame + 6, mac_b, 6);
	assert_true(arp_parse(frame, ARP_FRAME_LEN, &reply));
	assert_false(reply.request);
	assert_memory_equal(reply.sender_mac, mac_b, 6);
	assert_memory_equal(reply.sender_ip, ip_b, 4);
	assert_memory_equal(reply.target_ip, ip_a, 4);
	assert_memory_equal(frame + 32, mac_a, 6);
}

/* Every byte that says what the frame is makes it another's when it is changed. */
TEST(arp_parse__refuses_other_frames)
{
	static const size_t offsets[] = {12, 13, 14, 15, 16, 17, 18, 19, 20};
	uint8_t frame[ARP_FRAME_LEN];
	struct arp arp;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		memcpy(frame, request_frame, sizeof(frame));
		frame[offsets[i]] ^= 0x40;
		assert_false(arp_parse(frame, sizeof(frame), &arp));
	}
	memcpy(frame, request_frame, sizeof(frame));
	frame[21] = 3; /* RARP */
	assert_false(arp_parse(frame, sizeof(frame), &arp));
}

TEST(arp_parse__refuses_short_frames)
{
	struct arp arp;

	for (size_t len = 0; len < ARP_FRAME_LEN; len++)
		assert_false(arp_parse(request_frame, len, &arp));
}

TEST(arp_parse__refuses_senders_that_are_no_host)
{
	uint8_t frame[ARP_FRAME_LEN];
	struct arp arp;

	memcpy(frame, request_frame, sizeof(frame));
	memset(frame + 22, 0xff, 6);
	assert_false(arp_parse(frame, sizeof(frame), &arp));
	memset(frame + 22, 0, 6);
	assert_false(arp_parse(frame, sizeof(frame), &arp));
}
